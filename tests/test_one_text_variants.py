"""The kernels that one text holds: for any sizes, for sizes that are whole tiles, and for those that the author names."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tile_eg
from tile_eg.cli.app import run
from tile_eg.emit.any_size_host import Picked, exactly, multiples_of
from tile_eg.errors import InternalError, TileWarning
from tile_eg.frontend.text import load_text
from tile_eg.inputs import draw
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import Values
from tile_eg.report.compare import compare
from tile_eg.search import one_text, search_options
from tile_eg.search.alike import FIRST_PRIMES, values_of_any_size, which_are_open
from tile_eg.search.any_size import AnySize
from tile_eg.search.compiler import expected
from tile_eg.search.one_text import OneText
from tile_eg.search.whole_tiles import whole_sizes
from tile_eg.transforms.any_size import NotAlike, at
from tile_eg.transforms.deeper_trips import in_deeper_trips
from tile_eg.transforms.size_numbers import Numbers

EXAMPLES = Path(__file__).parent.parent / "examples"
SETTINGS = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
PRODUCT = """kernel product[M: dyn, N: dyn, K: dyn](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(M, 32), ceildiv(N, 32))
  shared a: f16[32, 64], b: f16[64, 32]
  fragment c: f32[32, 32] = 0
  for k in pipelined(ceildiv(K, 64)) {
    a = A[bx*32, k*64]
    b = B[k*64, by*32]
    c += a @ b
  }
  C[bx*32, by*32] = c
}
"""


def build_of(text: str, **fixed: int) -> Any:
    template = load_text(text, "kernel.tile")
    return lambda sizes: template.instantiate({**fixed, **sizes})


def outputs_are_right(text: AnySize, kernel: Kernel, sizes: dict[str, int]) -> str:
    """Runs the kernel that a launch at these sizes takes; its name."""
    planned = text.at(kernel, sizes)
    assert planned is not None
    inputs = draw([t for t in kernel.tensors if not t.output], "uniform", seed=0)
    assert [c for c in compare(planned.run(inputs).outputs, expected(kernel, inputs)) if not c.good] == []
    return planned.program.name


# ---- deeper trips ----


@cache
def products() -> Values:
    return values_of_any_size(build_of(PRODUCT), {"M": 256, "N": 256, "K": 4096})


@pytest.mark.slow
@pytest.mark.parametrize("factor", [2, 4])
@SETTINGS
@given(st.integers(1, 70), st.integers(1, 70), st.sampled_from([1, 63, 64, 65, 127, 129, 256, 257, 401, 512]))
def test_deeper_trips_compute_the_same_sums(factor: int, m: int, n: int, k: int) -> None:
    deeper = in_deeper_trips(products(), factor)
    assert deeper is not None
    rng = np.random.default_rng(k)
    inputs = {"A": rng.integers(-4, 5, (m, k)), "B": rng.integers(-4, 5, (k, n))}
    sizes = {"M": m, "N": n, "K": k}
    np.testing.assert_array_equal(run_values(at(deeper, sizes), inputs)["C"], (inputs["A"] @ inputs["B"]).astype(np.float16))


def test_deeper_trips_are_fewer() -> None:
    deeper = in_deeper_trips(products(), 4)
    assert deeper is not None
    assert [str(e) for e in deeper.counts.values()] == ["((K + 255) / 256)"]


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        ("pipelined(ceildiv(K, 64))", "pipelined(ceildiv(K, 64), stages=2)"),  # slots of one trip's tiles, as the author has them
        ("c += a @ b", "a = a + a\n    c += a @ b"),  # the product is not of what was loaded
        ("b = B[k*64, by*32]", "b = B[0, by*32]"),  # one tile serves all trips
        ("k*64", "k*32", "ceildiv(K, 64)", "ceildiv(K, 32)"),  # tiles that overlap
    ],
)
def test_trips_whose_tiles_are_not_one_stay(other: tuple[str, ...]) -> None:
    text = PRODUCT
    for old, new in zip(other[::2], other[1::2], strict=True):
        text = text.replace(old, new)
    values = values_of_any_size(build_of(text), {"M": 256, "N": 256, "K": 4096})
    assert in_deeper_trips(values, 2) is None


@pytest.mark.slow
def test_operands_that_end_at_different_depths_at_some_sizes_have_no_text_for_all() -> None:
    build = build_of(PRODUCT.replace("A[bx*32, k*64]", "A[bx*32, k*32]"))
    found = values_of_any_size(build, {"M": 256, "N": 256, "K": 4096})
    assert isinstance(found, NotAlike)
    assert "at M=1, N=2, K=67 it is not searched: the operands have different valid inner extents" in found.why


@pytest.mark.slow
@SETTINGS
@given(st.sampled_from([1, 63, 64, 65, 129, 257, 321]))
def test_deeper_trips_take_all_of_tiles_that_go_beyond_the_size_that_counts_them(k: int) -> None:
    """The tensors are longer than K: all 64 columns of the last trip's tiles are there."""
    deeper = in_deeper_trips(long_products(), 4)
    assert deeper is not None
    rng = np.random.default_rng(k)
    inputs = {"A": rng.integers(-4, 5, (3, 2 * k + 640)), "B": rng.integers(-4, 5, (2 * k + 640, 5))}
    meant = inputs["A"][:, : (k + 63) // 64 * 64] @ inputs["B"][: (k + 63) // 64 * 64]
    np.testing.assert_array_equal(run_values(at(deeper, {"M": 3, "N": 5, "K": k}), inputs)["C"], meant.astype(np.float16))


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("k", [64, 100, 128, 321])
def test_deeper_trips_of_whole_tiles_alone_take_all_of_them(k: int) -> None:
    """K // 64 trips leave the rest of K out, and nothing else."""
    deeper = in_deeper_trips(values_of_any_size(build_of(ROUNDED_DOWN), {"M": 256, "N": 256, "K": 4096}), 4)
    assert deeper is not None
    rng = np.random.default_rng(k)
    inputs = {"A": rng.integers(-4, 5, (3, k)), "B": rng.integers(-4, 5, (k, 5))}
    meant = inputs["A"][:, : k // 64 * 64] @ inputs["B"][: k // 64 * 64]
    np.testing.assert_array_equal(run_values(at(deeper, {"M": 3, "N": 5, "K": k}), inputs)["C"], meant.astype(np.float16))


ROUNDED_DOWN = PRODUCT.replace("ceildiv(K, 64)", "K // 64")


@cache
def long_products() -> Values:
    text = PRODUCT.replace("[M, K]", "[M, 2*K + 640]").replace("[K, N]", "[2*K + 640, N]")
    return values_of_any_size(build_of(text), {"M": 256, "N": 256, "K": 4096})


@pytest.mark.slow
@pytest.mark.parametrize("column", ["k//5*384 + k%5*64", "min(k, 8)*64"])
def test_trips_whose_tiles_lie_side_by_side_for_a_while_stay(column: str) -> None:
    text = PRODUCT.replace("A[bx*32, k*64]", f"A[bx*32, {column}]").replace("A: f16[M, K]", "A: f16[M, 2*K + 640]")
    values = values_of_any_size(build_of(text), {"M": 256, "N": 256, "K": 4096})
    assert in_deeper_trips(values, 2) is None


@pytest.mark.long
def test_the_search_takes_deeper_trips_of_long_sums() -> None:
    text = OneText(build_of(PRODUCT), ("M", "N", "K"), "910B2", search_options()).text({})
    assert isinstance(text, AnySize)
    form = text.lowered.form
    assert form is not None
    assert form.moves[0].startswith("deeper-trips")
    large = {"M": 4096, "N": 4096, "K": 4096}
    assert text.programs[text.picked.at(large)].shared, "the deeper trips' operands are copied, too"
    for m, n, k in ((1, 1, 1), (33, 31, 257), (7, 40, 1031)):
        sizes = {"M": m, "N": n, "K": k}
        outputs_are_right(text, build_of(PRODUCT)(sizes), sizes)


# ---- sizes of which one decides whether another does ----

COLUMNS = """kernel columns[M: dyn, W: dyn, N: dyn](A: f32[M, W]) -> C: f32[M, N] {
  grid (b, j) = (ceildiv(M, 16), ceildiv(N, 32))
  shared x: f32[16, 32]
  x = A[b*16, j*32]
  C[b*16, j*32] = x
}
"""


@pytest.mark.long
@pytest.mark.slow
@settings(SETTINGS, max_examples=8)
@given(st.integers(1, 40), st.integers(1, 70), st.integers(0, 40))
def test_the_rows_of_a_tensor_may_lie_further_apart_than_what_is_taken_of_them(m: int, n: int, gap: int) -> None:
    sizes = {"M": m, "W": n + gap, "N": n}
    kernel = columns().build(sizes)
    text = columns().text(sizes)
    assert isinstance(text, AnySize), text
    outputs_are_right(text, kernel, sizes)


@cache
def columns() -> OneText:
    return OneText(build_of(COLUMNS), ("M", "W", "N"), "910B2", search_options())


@pytest.mark.slow
def test_a_text_does_not_serve_sizes_in_another_order() -> None:
    text = columns().text({})
    assert isinstance(text, AnySize)
    sizes = {"M": 3, "W": 5, "N": 6}
    assert text.why_not(columns().build(sizes), sizes) == "N is larger than W there"
    assert "N > W" in text.host


def test_a_size_below_another_dimension_is_looked_at() -> None:
    text = """kernel k[W: dyn](A: f32[3, W], B: f32[4]) -> C: f32[3, 4] {
      grid b = 1
      shared x: f32[3, 32], y: f32[32]
      x = A[0, 0]
      y = B[0]
      C[0, 0] = x + y[None, :]
    }"""
    assert values_of_any_size(build_of(text), {"W": 4096}) == NotAlike("at W=1 it computes something else than at large sizes")


def test_the_smaller_of_two_sizes_is_found() -> None:
    sets = [{"M": m, "N": n} for m, n in ((101, 307), (457, 151), (229, 691), (1033, 347), (521, 1553), (2333, 787))]
    found = Numbers(sets, [16], {"M": 4096, "N": 4096}).expr([min(s["M"], s["N"]) for s in sets])
    assert str(found) == "min(M, N)"


@pytest.mark.slow
def test_where_the_depth_alone_is_open_cores_go_through_a_known_number_of_tiles() -> None:
    build = build_of(PRODUCT, M=160, N=160)
    text = OneText(build, ("K",), "910B2", search_options()).text({})
    assert isinstance(text, AnySize)
    assert text.lowered.chosen.schedule.persistent and text.program.blocks == 24
    for k in (1, 130):
        outputs_are_right(text, build({"K": k}), {"K": k})


# ---- sizes that are whole tiles ----


def test_a_size_is_whole_in_multiples_of_its_tiles() -> None:
    assert whole_sizes(products()) == {"M": 32, "N": 32, "K": 256}


@pytest.mark.slow
def test_sizes_that_are_whole_tiles_take_a_kernel_without_tails() -> None:
    build = build_of((EXAMPLES / "rms_norm.tile").read_text(), N=1024, BM=4)
    text = OneText(build, ("M",), "910B2", search_options()).text({})
    assert isinstance(text, AnySize)
    assert text.picked.first == (((("M", 4, (1 << 31) - (1 << 16), 4),), 1),)
    assert text.microseconds({"M": 4096}) < 0.95 * text.microseconds({"M": 4095})
    names = [outputs_are_right(text, build({"M": m}), {"M": m}) for m in (1, 4, 36, 37)]
    assert names == ["rms_norm", "rms_norm_2", "rms_norm_2", "rms_norm"]


# ---- sizes that are named ----


@pytest.mark.long
def test_named_sizes_are_as_fast_as_given_ones() -> None:
    named = {"M": (64,), "N": (64,), "K": (8192,)}
    text = OneText(build_of(PRODUCT), ("M", "N", "K"), "910B2", search_options(), named).text({})
    assert isinstance(text, AnySize)
    sizes = {"M": 64, "N": 64, "K": 8192}
    own = tile_eg.search.compiler.lower(build_of(PRODUCT)(sizes))
    assert text.microseconds(sizes) == pytest.approx(own.cost.microseconds, rel=0.03)
    near = {"M": 64, "N": 64, "K": 8191}
    assert outputs_are_right(text, build_of(PRODUCT)(sizes), sizes) != outputs_are_right(text, build_of(PRODUCT)(near), near)
    assert "if (M == 64 && N == 64 && K == 8192)" in text.host


def test_a_launch_takes_the_kernel_of_its_own_sizes_first() -> None:
    first = [(exactly({"M": 4}), 2), (multiples_of({"M": 16}), 1)]
    picked = Picked.of({"M": (1, 64)}, (0, 3), first)
    assert [picked.at({"M": m}) for m in (1, 4, 16, 17, 64, 65)] == [0, 2, 1, 3, 1, 3]


def test_which_launches_take_a_kernel_is_told_in_words() -> None:
    picked = Picked.of({"M": (1, 64)}, (0, 3), [(exactly({"M": 4}), 2), (multiples_of({"M": 16}), 1)])
    shown = ["sizes near M=1", "M a multiple of 16", "M=4", "sizes near M=64"]
    assert [picked.shown(place) for place in range(4)] == shown
    assert Picked().shown(0) == "all sizes"


# ---- what is told ----

TWICE = """kernel twice[M: dyn](A: f32[M, 64]) -> C: f32[M, 64] {
  grid b = ceildiv(M, 16)
  shared x: f32[16, 64]
  x = A[b*16, 0]
  C[b*16, 0] = x + x
}
"""


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for a text for all sizes has a fault."""

    def fault(*args: Any) -> Any:
        raise InternalError("extract", "IndexError: nothing there")

    monkeypatch.setattr(one_text, "lower_for_any_size", fault)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "twice.tile").write_text(TWICE)
    return tmp_path / "twice.tile"


def rows(m: int) -> np.ndarray:
    return np.ones((m, 64), np.float32)


def test_a_fault_of_ours_is_one_in_this_suite(broken: None, file: Path) -> None:
    with pytest.raises(InternalError, match="nothing there"):
        tile_eg.load(file)(rows(3))


@pytest.mark.slow
def test_a_fault_of_ours_is_told_and_the_kernel_still_works(broken: None, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(one_text.FAULTS_VARIABLE)
    kernel = tile_eg.load(file)
    with pytest.warns(TileWarning, match="compiled for each set of sizes: .* a fault of tile_eg: .*nothing there") as told:
        for m in (3, 4):
            np.testing.assert_array_equal(kernel(rows(m)), rows(m) * 2)
    assert len(told) == 1


def test_a_fault_of_ours_is_one_where_the_text_is_asked_for(
    broken: None, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(one_text.FAULTS_VARIABLE)
    assert run(["emit", str(file)]) == 2
    assert "nothing there" in capsys.readouterr().err


@pytest.mark.slow
def test_the_kernels_of_a_text_are_explained(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(file)]) == 0
    assert "kernel twice, for all sizes; priced at the sizes below\n\ntwice(A: f32[4096, 64]" in capsys.readouterr().out


def test_a_fault_of_ours_is_one_where_it_is_explained(broken: None, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(one_text.FAULTS_VARIABLE)
    assert run(["explain", str(file)]) == 2


@pytest.mark.slow
def test_sizes_with_another_grid_are_told_once() -> None:
    small = build_of(TWICE.replace("16", "8"))

    def build(sizes: Any) -> Kernel:
        return small(sizes) if sizes["M"] in (1000, 1001) else build_of(TWICE)(sizes)

    texts = OneText(build, ("M",), "910B2", search_options())
    with pytest.warns(TileWarning, match="does not serve M=1000, .* a grid of 125 there, not a grid of 63") as told:
        assert texts.at({"M": 1000}, build({"M": 1000})) is None
        assert texts.at({"M": 1000}, build({"M": 1000})) is None
    assert len(told) == 1
    assert texts.at({"M": 999}, build({"M": 999})) is not None


def test_a_size_that_a_kernel_computes_with_is_told_by_two_looks_at_each_scale() -> None:
    text = """kernel k[D: dyn](A: f32[D]) -> C: f32[D] {
      grid b = ceildiv(D, 32)
      shared x: f32[32]
      x = A[b*32]
      C[b*32] = x * D
    }"""
    asked = list[Any]()
    found = which_are_open(lambda sizes: asked.append(sizes) or build_of(text)(sizes), ("D",))
    assert found[0] == () and "a number that follows from the sizes" in found[1]["D"]
    assert len(asked) <= 2 * 2 * (len(FIRST_PRIMES) + 1)
