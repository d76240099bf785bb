"""`import tile_eg` is the front door: it opens at once, and everything promised stands behind it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tile_eg
from tile_eg.search.compiler import Lowered

EXAMPLES = Path(__file__).parent.parent / "examples"
HEAVY = ["egglog", "ortools", "numpy", "ml_dtypes", "lark", "typer", "rich", "torch"]


def loaded_after(statement: str) -> set[str]:
    """The top-level modules in a fresh interpreter after a statement."""
    code = f"{statement}\nimport sys\nprint(' '.join({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def after_import() -> set[str]:
    return loaded_after("import tile_eg")


@pytest.mark.parametrize("heavy", HEAVY)
def test_importing_the_package_does_not_load(heavy: str, after_import: set[str]) -> None:
    assert heavy not in after_import


@pytest.mark.parametrize("name", tile_eg.__all__)
def test_everything_promised_is_there(name: str) -> None:
    assert getattr(tile_eg, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        tile_eg.no_such_name  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize("first", ["import tile_eg.jit", "import tile_eg.language", "import tile_eg.search.compiler", "pass"])
def test_jit_is_the_decorator_whatever_was_imported_first(first: str) -> None:
    loaded_after(f"{first}\nimport tile_eg\nassert tile_eg.jit(out_idx=[-1])")


# ---- the stages of a kernel ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def low() -> Lowered:
    return tile_eg.load(EXAMPLES / "vector_add.tile").compile(M=40, N=72, chip="910B2")


@pytest.mark.slow
def test_a_loaded_kernel_computes() -> None:
    a, b = (np.arange(40 * 72, dtype=np.float32).reshape(40, 72) * s for s in (1, 0.5))
    assert (tile_eg.load(EXAMPLES / "vector_add.tile")(a, b) == a * 1.5).all()


@pytest.mark.parametrize(
    ("view", "part"),
    [
        ("source", "AscendC::Add("),
        ("host", "launch"),
        ("schedule", "VBin.add"),
        ("program", "vadd"),
        ("cost", "predicted"),
        ("memory", "UB"),
        ("explanation", "decisions"),
    ],
)
def test_each_view_prints_the_same_at_the_prompt_and_in_a_notebook(low: Lowered, view: str, part: str) -> None:
    shown = getattr(low, view)
    assert part in str(shown)
    assert repr(shown) == str(shown)
    assert shown._repr_html_().startswith("<") and part in shown._repr_html_()


def test_the_source_is_a_string(low: Lowered) -> None:
    assert low.source.splitlines()[0].startswith("//")


def test_running_takes_and_gives_arrays_by_name(low: Lowered) -> None:
    ones = np.ones((40, 72), np.float32)
    assert (low.run({"A": ones, "B": ones})["C"] == 2).all()


def test_an_array_of_the_wrong_shape_is_refused(low: Lowered) -> None:
    with pytest.raises(tile_eg.TileError, match="'B' has shape"):
        low.run({"A": np.ones((40, 72), np.float32), "B": np.ones((72, 40), np.float32)})


def test_the_seconds_of_each_stage_are_kept(low: Lowered) -> None:
    searched = {"moves", "shuffle-k", "prefetch-tile", "past-l2"}
    assert set(low.timings) == {"check", "values", "saturate", "extract", "plan", "rank", *searched}


def test_the_chosen_schedule_is_the_fastest_of_those_ranked(low: Lowered) -> None:
    times = [c.microseconds for c in low.candidates]
    assert times == sorted(times)
    assert low.program == low.candidates[0].planned.program


def test_an_unknown_cost_model_is_refused_before_the_search() -> None:
    kernel = tile_eg.load(EXAMPLES / "vector_add.tile", cost_model="oracle").with_sizes(M=16, N=16)
    with pytest.raises(tile_eg.TileError, match="unknown cost model 'oracle'"):
        kernel.compile()
