"""Tiles that do not fit UB: what is made of them, and what is told where nothing can be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tile_eg.chips import load_chip
from tile_eg.cost_models import rank_model
from tile_eg.errors import TileError
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower, meaning
from tile_eg.search.form import Form, Setting, searched, values_of
from tile_eg.search.smaller_tiles import in_smaller_tiles, offers
from tile_eg.sizing.estimate import estimate

EXAMPLES = Path(__file__).parents[2] / "examples"
CHIP = load_chip("910B2")


def kernel(name: str, **sizes: int) -> Kernel:
    made = load_text((EXAMPLES / f"{name}.tile").read_text()).instantiate(sizes)
    assert isinstance(made, Kernel)
    return made


def form(name: str, **sizes: int) -> Form:
    """The kernel as it is written, searched."""
    setting = Setting(CHIP, search_options(), rank_model("timeline", CHIP))
    held = kernel(name, **sizes)
    return searched(held, values_of(held, setting), setting)


def loops(made: Lowered) -> set[str]:
    return set(made.extraction.best.graph.values.variables.values())


def runs(made: Lowered) -> None:
    random = np.random.default_rng(0)
    arrays = {t.name: random.uniform(-1, 1, t.shape).astype(t.dtype.numpy) for t in made.kernel.tensors if not t.output}
    run = made.run(arrays)
    assert not run.findings
    for name, want in meaning(made.kernel, arrays).items():
        np.testing.assert_allclose(run.outputs[name].astype(float), want.astype(float), rtol=2e-3, atol=2e-3)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(("rows", "cols", "said"), [(32, 4096, "row panels"), (4, 65536, "column tiles")])
def test_the_schedule_says_what_was_parted(rows: int, cols: int, said: str) -> None:
    made = lower(kernel("rms_norm", M=64, N=cols, BM=rows), search=search_options(without=("split-folds",)))
    lines = str(made.schedule).splitlines()
    loops = [x.rstrip() for x in lines if "─ for " in x]
    assert loops and all(x.endswith(said) for x in loops)


@pytest.mark.slow
def test_forms_fit_and_the_fastest_comes_first() -> None:
    found = [f.estimate for f in in_smaller_tiles(form("rms_norm", M=4096, N=4096, BM=32))]
    assert found and all(e.excess(CHIP) <= 1 for e in found)
    assert [e.cycles for e in found] == sorted(e.cycles for e in found)


@pytest.mark.slow
def test_too_many_rows_go_through_in_panels() -> None:
    made = lower(kernel("rms_norm", M=64, N=4096, BM=32), search=search_options(without=("split-folds",)))
    assert loops(made) == {"panel"}
    runs(made)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "cols"), [("softmax", 65536), ("softmax", 50257), ("layer_norm", 30000), ("rms_norm", 19363)])
@pytest.mark.parametrize("rows", [4, pytest.param(1, marks=pytest.mark.long)])
def test_rows_that_are_too_long_go_through_in_tiles_of_columns(name: str, cols: int, rows: int) -> None:
    made = lower(kernel(name, M=6, N=cols, BM=rows))
    assert "col" in loops(made)
    runs(made)


@pytest.mark.long
def test_many_rows_cost_no_more_than_a_few() -> None:
    few, many = (lower(kernel("rms_norm", M=32768, N=4096, BM=rows)).timeline.microseconds for rows in (4, 16))
    assert many <= 1.03 * few


@pytest.mark.slow
def test_tiles_that_fill_ub_are_parted_where_that_is_faster() -> None:
    full, roomy = (form("rms_norm", M=32768, N=4096, BM=rows) for rows in (8, 4))
    assert [o for o in offers(full) if o.bound < full.microseconds]
    assert not list(offers(roomy))


@pytest.mark.slow
def test_tiles_of_a_loop_are_parted_too() -> None:
    assert list(offers(form("online_softmax", M=4096, N=32768, BM=64, BN=512)))


@pytest.mark.slow
def test_a_loop_in_panels_computes_what_the_whole_does() -> None:
    options = search_options(without=("whole-rows", "whole-tiles"))
    made = lower(kernel("online_softmax", M=130, N=1100, BM=64, BN=512), search=options)
    assert "panel" in loops(made)
    runs(made)


@pytest.mark.slow
def test_sums_keep_their_order_in_exact_math() -> None:
    with pytest.raises(TileError, match="bytes of UB at once"):
        lower(kernel("softmax", M=8, N=65536, BM=2), search=search_options(exact_math=True))


@pytest.mark.slow
def test_rows_may_be_parted_in_exact_math() -> None:
    assert loops(lower(kernel("rms_norm", M=64, N=4096, BM=32), search=search_options(exact_math=True))) == {"panel"}


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "sizes", "move"), [
    ("rms_norm", {"M": 64, "N": 4096, "BM": 32}, "row-panels"),
    ("softmax", {"M": 6, "N": 65536, "BM": 1}, "column-tiles-of-sums"),
])  # fmt: skip
def test_tiles_that_fit_no_other_way_are_refused_without_the_move(name: str, sizes: dict[str, int], move: str) -> None:
    assert any(t.offer.move.name == move and t.made for t in lower(kernel(name, **sizes)).tried)
    with pytest.raises(TileError, match="bytes of UB at once"):
        lower(kernel(name, **sizes), search=search_options(without=["row-panels", "column-tiles", "column-tiles-of-sums"]))


@pytest.mark.long
def test_a_kernel_that_does_not_fit_is_never_slower_for_more_forms() -> None:
    quick, full = (lower(kernel("rms_norm", M=64, N=4096, BM=32), search=search_options(effort=e)) for e in ("quick", "full"))
    assert full.candidates[0].microseconds <= quick.candidates[0].microseconds


def test_a_bound_counts_what_every_launch_takes() -> None:
    made = estimate(to_values(kernel("rms_norm", M=64, N=1024)), CHIP)
    assert made.least_us(CHIP, 0) == CHIP.launch_us(0, mixed=False) > 0
    assert made.least_us(CHIP, 1) == pytest.approx(CHIP.launch_us(0, mixed=False) + CHIP.microseconds(made.cycles))


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["softmax", "gelu_mul", "rms_norm"])
def test_no_form_is_faster_than_its_bound(name: str) -> None:
    made = load_text((EXAMPLES / "beginner" / f"{name}.tile").read_text()).instantiate({"M": 256, "N": 1024})
    forms = [t for t in lower(made).tried if t.made and t.microseconds and t.offer.group in ("open sizes", "smaller tiles")]
    assert {t.offer.group for t in forms} == {"open sizes", "smaller tiles"}
    assert [t.offer.what for t in forms if t.offer.bound > t.microseconds] == []
