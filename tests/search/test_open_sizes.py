"""Open block sizes: which candidates are met, which are compiled, and what is told where none can be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tile_eg.chips import load_chip
from tile_eg.cost_models import rank_model
from tile_eg.errors import TileError
from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.search import driver, search_options
from tile_eg.search.compiler import lower, meaning
from tile_eg.search.form import Setting
from tile_eg.search.open_sizes import OpenSizes
from tile_eg.sizing.candidates import Climb, shortlist

EXAMPLES = Path(__file__).parents[2] / "examples"
CHIP = load_chip("910B2")


def left_open(name: str, *names: str, **sizes: int) -> OpenKernel:
    kernel = load_text((EXAMPLES / f"{name}.tile").read_text()).instantiate({**sizes, **dict.fromkeys(names, "auto")})
    assert isinstance(kernel, OpenKernel)
    return kernel


def found(kernel: OpenKernel):
    return Climb(kernel, CHIP, to_values).run()


@pytest.mark.slow
def test_the_best_sizes_of_a_large_product_fill_l0c():
    best = found(left_open("gemm", "BM", "BN", M=4096, N=4096, K=4096))[0]
    assert best.sizes == (128, 256)


@pytest.mark.slow
def test_candidates_are_multiples_of_sixteen_up_to_512():
    assert all(n % 16 == 0 and 16 <= n <= 512 for c in found(left_open("gemm", "BM", "BN")) for n in c.sizes)


@pytest.mark.slow
def test_row_wise_kernels_may_take_few_rows_and_long_ones():
    sizes = {c.sizes for c in found(left_open("gelu_mul", "BM", "BN", M=16384, N=4096))}
    assert {m for m, _ in sizes} & {1, 2, 4, 8} and {n for _, n in sizes} & {1024, 2048, 4096}


@pytest.mark.slow
def test_sizes_are_met_at_which_a_row_stays_in_ub():
    best = found(left_open("online_softmax", "BM", "BN", M=4096, N=32768))[0]
    assert best.sizes == (1, 8192)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes", "by_hand"),
    [
        ("layer_norm", (4096, 8192), (1, 4)),
        pytest.param("softmax", (333, 12345), (4, 8), marks=pytest.mark.long),
        pytest.param("rms_norm", (32768, 4096), (2, 4, 8), marks=pytest.mark.long),
        pytest.param("softmax", (32768, 2048), (4, 8, 16), marks=pytest.mark.long),
        pytest.param("rms_norm", (500, 20000), (1, 8), marks=pytest.mark.long),
    ],  # fmt: skip
)
def test_sizes_left_open_are_as_good_as_the_best_by_hand(name, sizes, by_hand):
    m, n = sizes
    kernels = [load_text((EXAMPLES / f"{name}.tile").read_text()).instantiate({"M": m, "N": n, "BM": rows}) for rows in by_hand]
    best = min(lower(k).timeline.microseconds for k in kernels)
    assert lower(left_open(name, "BM", M=m, N=n)).timeline.microseconds <= 1.03 * best


@pytest.mark.slow
def test_the_climb_is_the_same_every_time():
    kernel = left_open("flash_attention", "BM", "BN")
    assert [c.sizes for c in found(kernel)] == [c.sizes for c in found(kernel)]


@pytest.mark.slow
def test_what_is_compiled_differs_in_its_estimate_and_fits():
    best = shortlist(found(left_open("gemm", "BM", "BN", "BK", M=16, N=5120, K=5120)), 4)
    assert len({(c.estimate.blocks, round(c.estimate.cycles)) for c in best}) == len(best) == 4
    assert all(c.excess <= 1 for c in best)


@pytest.mark.slow
def test_the_fastest_trial_is_taken():
    low = lower(left_open("softmax", "BM", M=256))
    times = [t.predicted for t in low.trials]
    assert times == sorted(times) and times[0] == low.candidates[0].microseconds
    assert low.kernel == left_open("softmax", "BM", M=256).build(low.trials[0].sizes)


@pytest.mark.long
def test_every_trial_had_the_same_moves():
    """A trial's time is that of its best candidate, persistent grids too, unless a bound says that they cannot win."""
    low = lower(left_open("gemm", "BM", "BN", M=1024, N=1024, K=512))
    waiting = [t for t in low.tried if not t.made and t.offer.move.name == "persistent-grid"]
    assert all(t.offer.bound >= low.candidates[0].microseconds or "budget" in t.why for t in waiting)
    assert len(low.trials) > 1


@pytest.mark.slow
def test_sizes_that_cannot_be_compiled_are_told_and_passed_over(monkeypatch):
    kernel, usual = left_open("softmax", "BM", M=4096, N=512), driver.searched

    def fails_first(*given, **options):
        monkeypatch.setattr(driver, "searched", usual)
        raise TileError("too large")

    monkeypatch.setattr(driver, "searched", fails_first)
    trials = lower(kernel).trials
    assert trials[0].predicted and trials[-1].problem == "too large"


@pytest.mark.slow
def test_where_nothing_fits_the_nearest_sizes_are_named():
    with pytest.raises(TileError, match="with BM=1: the tiles need"):
        lower(left_open("softmax", "BM", M=64, N=65536), search=search_options(exact_math=True))


@pytest.mark.slow
def test_the_kernel_at_the_sizes_found_computes_what_it_means():
    kernel = left_open("gemm", "BM", "BN", "BK", M=70, N=50, K=100)
    rng = np.random.default_rng(0)
    arrays = {t.name: rng.uniform(-1, 1, t.shape).astype(np.float16) for t in kernel.tensors if not t.output}
    lowered = lower(kernel, search=search_options(effort="none"))
    got, want = lowered.run(arrays)["C"], meaning(lowered.kernel, arrays)["C"]
    np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-3)


@pytest.mark.slow
def test_no_effort_compiles_the_sizes_that_look_best():
    assert len(lower(left_open("softmax", "BM"), search=search_options(effort="none")).trials) == 1


@pytest.mark.long
def test_more_effort_tries_more_sizes():
    quick, full = (lower(left_open("softmax", "BM", M=1024), search=search_options(effort=e)) for e in ("quick", "full"))
    assert len(full.trials) > len(quick.trials)
    assert full.candidates[0].microseconds <= quick.candidates[0].microseconds


def test_sizes_are_not_looked_for_where_that_is_left_out():
    with pytest.raises(TileError, match="open-sizes"):
        lower(left_open("softmax", "BM"), search=search_options(without=["open-sizes"]))


@pytest.mark.slow
def test_sizes_that_are_one_kernel_are_compiled_once():
    kernel = load_text((EXAMPLES / "norms/group_norm.tile").read_text()).instantiate({"B": 8, "C": 320, "G": 32, "S": 4096})
    setting = Setting(CHIP, search_options(), rank_model("timeline", CHIP))
    assert isinstance(kernel, OpenKernel)
    channels = [c.sizes[0] for c in OpenSizes(kernel, setting, lambda k, at: driver.as_written(k, setting)).best]
    assert sum(n >= 10 for n in channels) == 1  # a group has ten
    assert 2 in channels  # three passes over two channels fit UB one after the other
