"""Kernels as callables: which arrays go in and come out, what is refused, what is kept."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError, TileWarning
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.reference import written_elements
from tile_eg.jit.arrays import by_name

EXAMPLES = Path(__file__).parents[2] / "examples"
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@T.prim_func
def shift(X: T.Tensor((40, 64), "float32"), Y: T.Tensor((40, 64), "float32"), Z: T.Tensor((40, 64), "float32")):
    """Y = X + 1, Z = X * 2."""
    with T.Kernel(3) as b:
        x = T.alloc_shared((16, 64), "float32")
        y = T.alloc_shared((16, 64), "float32")
        T.copy(X[b * 16, 0], x)
        T.tile.add(y, x, 1.0)
        T.copy(y, Y[b * 16, 0])
        T.tile.mul(y, x, 2.0)
        T.copy(y, Z[b * 16, 0])


def written(kernel: Kernel, name: str) -> np.ndarray:
    return written_elements(kernel, {t.name: np.zeros(t.shape, np.float32) for t in kernel.tensors if not t.output})[name]


@T.prim_func
def upper_half(X: T.Tensor((32, 64), "float32"), Y: T.Tensor((32, 64), "float32")):
    with T.Kernel(1):
        x = T.alloc_shared((16, 64), "float32")
        T.copy(X[0, 0], x)
        T.copy(x, Y[0, 0])


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((40, 64), np.float32)


@pytest.mark.slow
def test_outputs_come_back_in_the_order_of_out_idx(x: np.ndarray) -> None:
    z, y = tile_eg.jit(out_idx=[-1, 1])(shift)(x)
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(z, x * 2)


@pytest.mark.slow
def test_each_call_of_a_kernel_is_one_run_of_it(x: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever counts or watches runs does it at one place."""
    jit = sys.modules["tile_eg.jit"]
    runs, run = [], jit.run_lowered  # type: ignore[attr-defined]
    monkeypatch.setattr(jit, "run_lowered", lambda *given: runs.append(given) or run(*given))
    kernel = tile_eg.jit(out_idx=2)(shift)
    for _ in range(2):
        kernel(x, np.zeros_like(x))
    assert len(runs) == 2


def test_without_out_idx_outputs_are_filled_in_place(x: np.ndarray) -> None:
    y, z = np.zeros_like(x), np.zeros_like(x)
    assert tile_eg.jit(shift)(x, y, z) is None
    np.testing.assert_array_equal(y, x + 1)


def test_one_output_comes_back_alone_and_others_are_filled(x: np.ndarray) -> None:
    y = np.zeros_like(x)
    np.testing.assert_array_equal(tile_eg.jit(out_idx=2)(shift)(x, y), x * 2)
    np.testing.assert_array_equal(y, x + 1)


@pytest.mark.slow
def test_what_a_kernel_does_not_write_stays_as_it_was() -> None:
    x, y = np.ones((32, 64), np.float32), np.full((32, 64), 7, np.float32)
    tile_eg.jit(upper_half)(x, y)
    assert (y[:16] == 1).all()
    assert (y[16:] == 7).all()


def test_arrays_may_be_given_by_name(x: np.ndarray) -> None:
    np.testing.assert_array_equal(tile_eg.jit(out_idx=[1, 2])(shift)(X=x)[0], x + 1)


def test_an_array_may_be_a_view(x: np.ndarray) -> None:
    wide = np.repeat(x, 2, axis=1)
    np.testing.assert_array_equal(tile_eg.jit(out_idx=[1, 2])(shift)(wide[:, ::2])[0], x + 1)


@pytest.mark.slow
def test_a_workspace_is_made_by_the_call(x: np.ndarray) -> None:
    np.testing.assert_array_equal(tile_eg.jit(out_idx=[2], workspace_idx=[1])(shift)(x), x * 2)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], r"expected 1 array \(X\), got 0: X missing"),
        ([np.zeros((40, 64), np.float32)] * 2, r"expected 1 array \(X\), got 2"),
        ([np.zeros((40, 65), np.float32)], r"'X' has shape \(40, 65\), not \(40, 64\)"),
        ([np.zeros((40, 64), np.float64)], "'X' has elements of type float64, not float32"),
        ([[1.0, 2.0]], "X is no array but of type list"),
    ],
    ids=["too few", "too many", "shape", "dtype", "no array"],
)
def test_a_wrong_array_is_refused_with_what_was_expected(arrays: list, message: str) -> None:
    with pytest.raises(TileError, match=message):
        tile_eg.jit(out_idx=[1, 2])(shift)(*arrays)


def test_an_output_that_is_read_only_is_refused(x: np.ndarray) -> None:
    y = np.zeros_like(x)
    y.flags.writeable = False
    with pytest.raises(TileError, match="Y is read-only"):
        tile_eg.jit(out_idx=[2])(shift)(x, y)


@pytest.mark.parametrize(
    ("kwargs", "message"), [({"y": 1}, "no argument y"), ({"X": 1}, "X is given twice")], ids=["unknown", "doubled"]
)
def test_a_wrong_name_is_refused(kwargs: dict, message: str) -> None:
    with pytest.raises(TileError, match=message):
        by_name(["X"], [0], kwargs)


@pytest.mark.parametrize("out_idx", [[3], [-4], ["Y"]])
def test_a_position_that_is_none_is_refused(out_idx: list) -> None:
    with pytest.raises(TileError, match="not the position of one of the 3 arguments of shift"):
        tile_eg.jit(out_idx=out_idx)(shift)


def test_an_output_that_is_never_written_is_refused() -> None:
    with pytest.raises(TileError, match="X is in out_idx, and shift never writes it"):
        tile_eg.jit(out_idx=[0])(shift)


def test_an_output_that_is_written_in_part_is_not_given_back(x: np.ndarray) -> None:
    with pytest.raises(TileError, match=r"1024 of 2048 elements of Y are never written, the first is Y\[16, 0\]"):
        tile_eg.jit(out_idx=[1])(upper_half)(x[:32])


@pytest.mark.slow
def test_what_lies_beyond_the_end_of_an_input_is_left_as_it_was_in_an_output(x: np.ndarray) -> None:
    @T.prim_func
    def copied(X: T.Tensor((20, 64), "float32"), Y: T.Tensor((32, 64), "float32")):
        with T.Kernel(1):
            a = T.alloc_shared((32, 64), "float32")
            T.copy(X[0, 0], a)
            T.copy(a, Y[0, 0])

    y = np.full((32, 64), 7, np.float32)
    tile_eg.jit(copied)(x[:20], y)
    np.testing.assert_array_equal(y, np.concatenate([x[:20], np.full((12, 64), 7, np.float32)]))


def test_a_function_that_gives_no_kernel_is_refused() -> None:
    @tile_eg.jit
    def nothing():
        return 3

    with pytest.raises(TileError, match="nothing is under @tile_eg.jit and gave int"):
        nothing()


def test_jit_takes_functions_only() -> None:
    with pytest.raises(TileError, match="stands on a function, not on int"):
        tile_eg.jit(3)


def test_the_sizes_of_a_function_are_its_arguments() -> None:
    with pytest.raises(TileError, match="M: the sizes of shift are fixed"):
        tile_eg.jit(shift).compile(M=3)


def test_the_source_is_ascend_c() -> None:
    assert "__global__ __aicore__" in tile_eg.jit(shift).get_kernel_source()


@pytest.mark.slow
def test_a_kernel_that_means_the_same_is_lowered_once() -> None:
    tile_eg.cache.clear_cache()
    assert tile_eg.jit(shift).compile() is tile_eg.jit(out_idx=[1])(shift).compile()


@pytest.mark.slow
def test_another_chip_is_another_lowered_kernel() -> None:
    assert tile_eg.jit(upper_half).compile() is not tile_eg.jit(upper_half, chip="910B1").compile()


def test_a_cleared_cache_is_empty() -> None:
    first = tile_eg.jit(upper_half).compile()
    tile_eg.cache.clear_cache()
    assert tile_eg.jit(upper_half).compile() is not first


@pytest.mark.slow
def test_a_disabled_cache_keeps_nothing() -> None:
    tile_eg.disable_cache()
    try:
        assert tile_eg.jit(upper_half).compile() is not tile_eg.jit(upper_half).compile()
    finally:
        tile_eg.enable_cache()


@pytest.mark.slow
def test_importing_the_module_leaves_the_decorator_callable() -> None:
    code = "import tile_eg.jit, tile_eg; print(tile_eg.jit(lambda: 3).function())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "3\n"


def test_a_factory_keeps_its_name_and_documentation() -> None:
    @tile_eg.jit(out_idx=[1])
    def copies(n):
        """Copies n elements."""

    assert (copies.__name__, copies.__doc__) == ("copies", "Copies n elements.")


# `.tile` files


@pytest.mark.slow
def test_a_tile_kernel_takes_its_sizes_from_the_arrays() -> None:
    a = np.ones((20, 36), np.float32)
    np.testing.assert_array_equal(tile_eg.load(EXAMPLES / "vector_add.tile")(a, a), a + a)


@pytest.mark.slow
def test_a_tile_kernel_takes_sizes_by_name() -> None:
    a = np.ones((20, 36), np.float32)
    np.testing.assert_array_equal(tile_eg.load(EXAMPLES / "vector_add.tile")(a, B=a, BM=8), a + a)


@pytest.mark.slow
def test_a_tile_kernel_compiles_for_sizes_and_a_chip() -> None:
    low = tile_eg.load(EXAMPLES / "vector_add.tile").compile(M=32, N=32, chip="910B1")
    assert (low.kernel.tensors[0].shape, low.chip.name) == ((32, 32), "910B1")


def test_arrays_that_disagree_about_a_size_are_refused() -> None:
    with pytest.raises(TileError, match="M is 20"):
        tile_eg.load(EXAMPLES / "vector_add.tile")(np.ones((20, 4), np.float32), np.ones((21, 4), np.float32))


@pytest.mark.slow
def test_sizes_may_be_integers_of_numpy() -> None:
    low = tile_eg.load(EXAMPLES / "softmax.tile").compile(M=np.int64(7), N=np.int32(33))
    assert low.kernel.tensors[0].shape == (7, 33)


@pytest.mark.parametrize("size", ["5", 5.5, None, [5]])
def test_a_size_that_is_no_whole_number_is_refused(size: object) -> None:
    with pytest.raises(TileError, match="the size M is a whole number, not"):
        tile_eg.load(EXAMPLES / "softmax.tile").compile(M=size)  # type: ignore[arg-type]


def test_a_lowered_kernel_shows_what_it_is_in_a_line() -> None:
    low = tile_eg.load(EXAMPLES / "softmax.tile").compile(M=7, N=33)
    assert repr(low).startswith("<softmax(X: f32[7, 33], Y: f32[7, 33]) for 910B2, predicted ")
    assert "\n" not in repr(low)


def test_a_python_file_is_imported_not_loaded() -> None:
    with pytest.raises(TileError, match="is Python, and load reads .tile text") as caught:
        tile_eg.load(EXAMPLES / "softmax.py")
    assert "import the function" in caught.value.help


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TileError, match="cannot read .*none.tile: No such file"):
        tile_eg.load(tmp_path / "none.tile")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tile").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TileError, match="it is not UTF-8 text"):
        tile_eg.load(tmp_path / "x.tile")


# What a kernel writes


def test_windows_beyond_the_end_of_a_tensor_are_cut_off() -> None:
    assert written(tile_eg.jit(shift).kernel, "Y").all()


def test_conditions_and_loops_decide_what_is_written() -> None:
    text = """
    kernel some() -> Y: f32[4, 8] {
      grid b = 4
      shared y: f32[1, 2] = 1
      for k in serial(4) {
        if k < 2 { Y[b, k*2] = y } else { if b == 3 { Y[b, k*2] = y } }
      }
    }
    """
    expected = np.zeros((4, 8), bool)
    expected[:, :4] = expected[3, 4:] = True
    np.testing.assert_array_equal(written(load_text(text).instantiate(), "Y"), expected)


def test_element_loops_write_their_elements() -> None:
    @T.prim_func
    def diagonal(Y: T.Tensor((4, 8), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                Y[i, i * 2] = 1.0

    np.testing.assert_array_equal(np.argwhere(written(tile_eg.jit(diagonal).kernel, "Y")), [[0, 0], [1, 2], [2, 4], [3, 6]])


# torch


@needs_torch
def test_torch_tensors_give_torch_tensors(x: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    y, _ = tile_eg.jit(out_idx=[1, 2])(shift)(torch.from_numpy(x))
    assert isinstance(y, torch.Tensor)
    torch.testing.assert_close(y, torch.from_numpy(x + 1))


@needs_torch
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_tensor_goes_to_numpy_and_back(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    from tile_eg.jit.arrays import to_numpy, to_torch

    tensor = torch.randn(4, 3).to(getattr(torch, dtype))
    array = to_numpy(tensor, "A")
    assert array.dtype.name == dtype
    assert torch.equal(to_torch(array), tensor)


@pytest.mark.slow
def test_torch_is_not_imported_for_numpy_arrays() -> None:
    code = "import sys, numpy, tile_eg.jit.arrays as a; a.to_numpy(numpy.zeros(3), 'A'); a.is_torch(3)"
    code += "; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@T.prim_func
def rows_kept(X: T.Tensor((64, 2, 32), "float32"), N: T.Tensor((1,), "int32"), Y: T.Tensor((64, 2, 32), "float32")):
    with T.Kernel(1) as _:  # noqa: SIM117
        with T.Scope("V"):
            x = T.alloc_ub((2, 32), "float32")
            for i in T.serial(N[0]):
                T.barrier_all()
                T.copy(X[i, :, :], x)
                T.barrier_all()
                T.copy(x, Y[i, :, :])


@pytest.mark.slow
def test_of_an_array_with_more_rows_the_first_ones_are_taken_with_a_note() -> None:
    more = np.arange(80 * 64, dtype=np.float32).reshape(80, 64)
    with pytest.warns(TileWarning, match="X has 5120 elements, and the kernel takes the first 2560"):
        y, _ = tile_eg.jit(out_idx=[1, 2])(shift)(more)
    np.testing.assert_array_equal(y, more[:40] + 1)


def test_an_array_of_a_kept_kernel_may_end_before_its_tensor() -> None:
    x, y = np.arange(6 * 64, dtype=np.float32).reshape(6, 64), np.zeros((6, 64), np.float32)
    with pytest.warns(TileWarning, match="X has 384 elements, and the kernel may touch those alone of X"):
        tile_eg.compile(rows_kept)(x, np.array([6], np.int32), y)
    np.testing.assert_array_equal(y, x)


@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_what_lies_behind_the_end_of_an_array_is_not_there() -> None:
    with pytest.raises(TileError, match="out_of_bounds") as told:
        tile_eg.compile(rows_kept)(np.zeros((6, 64), np.float32), np.array([7], np.int32), np.zeros((8, 64), np.float32))
    assert "X[6, 0, 0]" in str(told.value.render()) and "ends after 384 elements" in told.value.render()


@pytest.mark.parametrize("shape", [(32, 2, 64), (64, 32, 2), (128, 32), (2, 32, 64)])
def test_rows_of_another_length_or_order_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(TileError, match="'X' has shape"):
        tile_eg.compile(rows_kept)(np.zeros(shape, np.float32), np.array([1], np.int32), np.zeros((64, 64), np.float32))


def test_an_array_of_a_searched_kernel_has_all_of_its_tensor() -> None:
    with pytest.raises(TileError, match="'X' has shape"):
        tile_eg.jit(out_idx=[1, 2])(shift)(np.zeros((39, 64), np.float32))


@pytest.mark.slow
def test_a_vector_takes_no_parts_of_an_arrays_rows() -> None:
    @T.prim_func
    def twice(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((64,), "float32")
            T.copy(X[0], x)
            for i in T.Parallel(64):
                x[i] = x[i] * 2
            T.copy(x, Y[0])

    call = tile_eg.jit(out_idx=[-1])(twice)
    with pytest.raises(TileError, match=r"X' has shape \(64, 2\), not \(64\)|X' has shape \(64, 2\), not \(64,\)"):
        call(np.zeros((64, 2), np.float32))
    with pytest.warns(TileWarning, match="takes the first 64"):  # rows as long as the vector: its first one
        call(np.zeros((3, 64), np.float32))
    assert call(np.ones((64, 1), np.float32)).sum() == 128
