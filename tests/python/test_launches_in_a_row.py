"""Functions with several launches: they run one behind the other, and the later ones read what the earlier ones stored."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.cli.app import run
from tile_eg.errors import TileError, TileWarning

X = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32)


@tile_eg.jit(out_idx=[-1], workspace_idx=[1])
def sums(parts, columns=16, rows=16, dtype="float32"):
    @T.prim_func
    def row_sums(
        X: T.Tensor((16, 64), "float32"), part: T.Tensor((parts, 16), dtype), Y: T.Tensor((16,), dtype)
    ):  # fmt: skip
        with T.Kernel(parts) as p:
            x, s = T.alloc_shared((16, columns), dtype), T.alloc_fragment((16,), dtype)
            T.copy(X[0, p * columns], x)
            T.reduce_sum(x, s, dim=1)
            T.copy(s[:rows], part[p, :rows])
        with T.Kernel(1):
            y, s = T.alloc_shared((parts, 16), dtype), T.alloc_fragment((16,), dtype)
            T.copy(part[0, 0], y)
            T.reduce_sum(y, s, dim=0)
            T.copy(s, Y[0])

    return row_sums


@functools.cache
def summed() -> Any:
    return sums(4)


@tile_eg.jit
def twice_and_more(A, times):
    M = T.const("M")
    A: T.Tensor((M, 64), "float32")
    B = T.empty((M, 64), "float32")
    with T.Kernel(M // 8) as b:
        a = T.alloc_shared((8, 64), "float32")
        T.copy(A[b * 8, 0], a)
        a[:, :] = a * 2.0
        T.copy(a, B[b * 8, 0])
    C = T.empty((M, 64), "float32")
    with T.Kernel(1):
        c = T.alloc_shared((M, 64), "float32")
        T.copy(B[0, 0], c)
        T.copy(c, C[0, 0])
    for n in range(times):
        with T.Kernel(1):
            c = T.alloc_shared((M, 64), "float32")
            T.copy(C[0, 0], c)
            c[:, :] = c + (n + 1.0)
            T.copy(c, C[0, 0])
    return B, C


@functools.cache
def of_any_size() -> Any:
    M = T.symbolic("M")

    @tile_eg.jit(out_idx=[-1], workspace_idx=[1])
    @T.prim_func
    def more(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32"), C: T.Tensor((M, 64), "float32")):
        with T.Kernel(T.ceildiv(M, 8)) as b:
            a = T.alloc_shared((8, 64), "float32")
            T.copy(A[b * 8, 0], a)
            a[:, :] = a * 2.0
            T.copy(a, B[b * 8, 0])
        with T.Kernel(T.ceildiv(M, 16)) as b:
            a = T.alloc_shared((16, 64), "float32")
            T.copy(B[b * 16, 0], a)
            a[:, :] = a + 1.0
            T.copy(a, C[b * 16, 0])

    return more


@pytest.mark.slow
def test_a_later_launch_reads_what_an_earlier_one_stored() -> None:
    np.testing.assert_allclose(summed()(X), X.sum(1), rtol=1e-5, atol=1e-5)


def test_each_launch_has_the_tensors_that_it_uses() -> None:
    assert [[t.name for t in k.kernel.tensors] for k in summed().launches] == [["X", "part"], ["part", "Y"]]


@pytest.mark.slow
def test_launches_that_a_function_comes_to_are_taken_in_their_order() -> None:
    b, c = twice_and_more(X, 2)
    np.testing.assert_array_equal(b, X * 2)
    np.testing.assert_array_equal(c, X * 2 + 1 + 2)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("rows", [13, 0, 16])
def test_launches_have_their_sizes_from_each_call(rows: int) -> None:
    np.testing.assert_array_equal(of_any_size()(X[:rows]), X[:rows] * 2 + 1)


def test_all_launches_stand_in_one_file() -> None:
    text = summed().get_kernel_source()
    assert [text.count(s) for s in ("void row_sums_1(", "void row_sums_2(", "#include", "int32_t Min(")] == [1, 1, 1, 1]


def test_the_host_part_launches_one_behind_the_other() -> None:
    text = summed().get_host_source()
    assert text.index("row_sums_1_host::launch(stream, X, part") < text.index("row_sums_2_host::launch(stream, part, Y")


def test_the_time_is_that_of_all_launches() -> None:
    kernel = summed()
    assert kernel.predicted_ms == sum(k.predicted_ms for k in kernel.launches) > 0


@pytest.mark.slow
def test_what_no_launch_wrote_is_told_where_a_later_one_reads_it() -> None:
    with pytest.warns(TileWarning, match="launch 2 reads part, but 16 of 64 elements"):
        found = sums(4, rows=12)(X)
    assert np.isnan(found[12:]).all() and not np.isnan(found[:12]).any()


def test_sizes_that_the_search_is_to_find_are_refused() -> None:
    with pytest.raises(TileError, match="columns of row_sums, which has several launches") as caught:
        sums(4, columns=T.auto)
    assert "autotune" in caught.value.help


@tile_eg.jit
def exchanged(A):
    A: T.Tensor((8, 64), "float32")
    B, C = T.empty((8, 64), "float32"), T.empty((8, 64), "float32")
    with T.Kernel(1):
        T.copy(A[:, :], B[:, :])
    B, C = C, B
    with T.Kernel(1):
        T.copy(C[:, :], B[:, :])
    return B


def test_a_name_that_stands_for_two_tensors_is_refused() -> None:
    with pytest.raises(TileError, match="`B` is another tensor at this launch") as caught:
        exchanged(X[:8])
    assert caught.value.span is not None


@tile_eg.jit
def gives_what_is_not_there(A):
    A: T.Tensor((8, 64), "float32")
    Result = T.empty((8, 64), "float32")
    with T.Kernel(1):
        T.copy(A[:, :], Result[:, :])
    return Resalt  # noqa: F821


@tile_eg.jit
def computes_with_a_tensor(A):
    A: T.Tensor((8, 64), "float32")
    B = T.empty((8, 64), "float32")
    with T.Kernel(1):
        T.copy(A[:, :], B[:, :])
    return B + 1.0


def test_what_is_computed_of_a_tensor_outside_of_a_launch_is_told_at_its_place() -> None:
    with pytest.raises(TileError, match="a tensor has no elements outside of a launch") as caught:
        computes_with_a_tensor(X[:8])
    assert caught.value.span is not None and caught.value.help


def test_an_unknown_name_behind_a_launch_is_told_at_its_place() -> None:
    with pytest.raises(TileError, match="unknown name `Resalt`") as caught:
        gives_what_is_not_there(X[:8])
    assert caught.value.span is not None and "Result" in caught.value.help


FILE = """
import tile_eg
import tile_eg.language as T


@tile_eg.jit
@T.prim_func
def both(X: T.Tensor((16, 64), "float32"), part: T.Tensor((16,), "float32"), Y: T.Tensor((16, 64), "float32")):
    with T.Kernel(1):
        x, s = T.alloc_shared((16, 64), "float32"), T.alloc_fragment((16,), "float32")
        T.copy(X[0, 0], x)
        T.reduce_max(x, s, dim=1)
        T.copy(s, part[0])
    with T.Kernel(1):
        x, s = T.alloc_shared((16, 64), "float32"), T.alloc_fragment((16,), "float32")
        T.copy(X[0, 0], x)
        T.copy(part[0], s)
        x[:, :] = x - s[:, None]
        T.copy(x, Y[0, 0])
"""


@pytest.fixture
def file(tmp_path: Any) -> str:
    (tmp_path / "both.py").write_text(FILE)
    return str(tmp_path / "both.py")


@pytest.mark.slow
def test_run_hands_on_what_a_launch_stored(file: str, tmp_path: Any, capsys: Any) -> None:
    assert run(["run", file, "--inputs", "uniform", "--save", str(tmp_path / "saved")]) == 0
    x, y = (np.load(tmp_path / "saved" / f"{n}.npy") for n in "XY")
    np.testing.assert_array_equal(y, x - x.max(1)[:, None])
    assert capsys.readouterr().out.count("good") == 4


@pytest.mark.slow
def test_one_launch_of_a_file_is_named_by_its_number(file: str, capsys: Any) -> None:
    assert run(["emit", f"{file}:2", "--program"]) == 0
    assert capsys.readouterr().out.startswith("program both_2 on 910B2")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["alternatives", "{}"], "`both` is 2 launches, and this is of one"),
        (["run", "{}:3"], "`both` is 2 launches, and has no number 3"),
        (["run", "{}", "--sample", "1"], "--sample is of one launch"),
    ],
    ids=["a command of one launch", "no such launch", "a sample"],
)
def test_what_is_of_one_launch_is_refused_of_several(command: list[str], message: str, file: str, capsys: Any) -> None:
    assert run([c.format(file) for c in command]) == 1
    assert message in capsys.readouterr().err


OWN = """
import tile_eg
import tile_eg.language as T


@tile_eg.jit(effort="none")
@T.prim_func
def steps(X: T.Tensor((T.dynamic("M"), 64), "float32"), s: T.float32, Y: T.Tensor((64,), "float32")):
    with T.Kernel(1):
        y = T.alloc_shared((64,), "float32")
        T.copy(X[0, :], y)
        T.copy(y, Y)
    with T.Kernel(1):
        y = T.alloc_shared((64,), "float32")
        T.copy(Y, y)
        y[:] = y * s
        T.copy(y, Y)
    with T.Kernel(1):
        y = T.alloc_shared((64,), "float32")
        T.copy(Y, y)
        T.copy(y, Y)
"""


@pytest.mark.slow
def test_each_launch_of_a_command_takes_the_numbers_that_it_has(tmp_path: Any, capsys: Any) -> None:
    (tmp_path / "steps.py").write_text(OWN)
    assert run(["run", str(tmp_path / "steps.py"), "--set", "M=2", "--set", "s=0.5", "--inputs", "uniform"]) == 0
    assert run(["run", str(tmp_path / "steps.py"), "--set", "M=2", "--set", "s=0.5", "--set", "q=1"]) == 1
    assert "has no size called `q`" in capsys.readouterr().err


@tile_eg.jit(out_idx=[-1])
def shared_between():
    @T.prim_func
    def doubled_twice(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
        between = T.alloc_global((16, 64), "float32")
        with T.Kernel(2) as b:
            x = T.alloc_shared((8, 64), "float32")
            T.copy(X[b * 8, 0], x)
            x[:, :] = x * 2.0
            T.copy(x, between[b * 8, 0])
        with T.Kernel(1):
            x = T.alloc_shared((16, 64), "float32")
            T.copy(between[0, 0], x)
            x[:, :] = x * 2.0
            T.copy(x, Y[0, 0])

    return doubled_twice


@pytest.mark.slow
def test_a_tensor_that_is_allocated_before_the_launches_is_made_by_the_call() -> None:
    np.testing.assert_array_equal(shared_between()(X), X * 4)


def by_macros(several: bool) -> Any:
    """A kernel whose launches stand in macros."""
    rows = 16

    @T.macro
    def sums(X, s):
        with T.Kernel(rows // 8) as b:
            x, t = T.alloc_shared((8, 64), "float32"), T.alloc_fragment((8,), "float32")
            T.copy(X[b * 8, 0], x)
            T.reduce_sum(x, t, dim=1)
            T.copy(t, s[b * 8])

    @T.macro
    def twice(s, out):
        with T.Kernel(1):
            t, scaled = T.alloc_shared((rows,), "float32"), lambda v: 2.0 * v
            T.copy(s[0], t)
            T.tile.mul(t, t, scaled(1))
            T.copy(t, out[0])

    @T.prim_func
    def one(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows,), "float32")):
        sums(X, s=Y)

    @T.prim_func
    def two(X: T.Tensor((rows, 64), "float32"), P: T.Tensor((rows,), "float32"), Y: T.Tensor((rows,), "float32")):
        sums(X, P)
        twice(P, Y)

    return two if several else one


@pytest.mark.slow
@pytest.mark.parametrize(("several", "factor"), [(False, 1), (True, 2)])
def test_a_launch_may_stand_in_a_macro(several: bool, factor: int) -> None:
    kernel = tile_eg.compile(by_macros(several), out_idx=[-1], workspace_idx=[1] if several else None)
    x = np.round(X * 8)
    np.testing.assert_array_equal(kernel(x), factor * x.sum(1))


def test_a_name_of_such_a_macro_keeps_its_meaning() -> None:
    rows = 8

    @T.macro
    def first(X, Y):
        with T.Kernel(1):
            x = T.alloc_shared((rows, 64), "float32")
            T.copy(X[0, 0], x)
            T.copy(x, Y[0, 0])

    @T.prim_func
    def outer(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
        rows = 16  # noqa: F841
        first(X, Y)

    with pytest.raises(TileError, match="has to end with one") as caught:
        tile_eg.compile(outer, out_idx=[-1])
    assert "names that mean the same in both" in caught.value.help


@functools.cache
def totals() -> Any:
    M = T.symbolic("M")

    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def total_of(X: T.Tensor((M, 64), "float32"), Y: T.Tensor((64,), "float32")):
        total = T.alloc_global((64,), "float32")
        with T.Kernel(T.ceildiv(M, 8)) as b:
            x, s = T.alloc_shared((8, 64), "float32"), T.alloc_fragment((64,), "float32")
            T.copy(X[b * 8, 0], x)
            T.reduce_sum(x, s, dim=0)
            T.atomic_add(total[0], s)
        with T.Kernel(1):
            s = T.alloc_fragment((64,), "float32")
            T.copy(total[0], s)
            T.copy(s, Y[0])

    return total_of


@pytest.mark.slow
def test_what_a_launch_without_blocks_would_add_to_is_0() -> None:
    np.testing.assert_array_equal(totals()(X[:0]), np.zeros(64, np.float32))
