"""The examples of whole tensors: they compute what NumPy does, and take no longer than the best source with tiles and loops.

The predicted time is the same in every run, so that it may be asserted. Of a source with tiles both are compiled: its sizes as
they are written, and as the search finds them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.test_examples import NUMPY, ROUNDED_TWICE, softmax
from tile_eg.frontend.text import load_text
from tile_eg.inputs import USUAL, drawn_sets
from tile_eg.report.compare import absolute_error, compare
from tile_eg.search.compiler import Lowered, lower

EXAMPLES = Path(__file__).parents[2] / "examples"
BEGINNER = sorted(p.stem for p in (EXAMPLES / "beginner").glob("*.tile"))
NO_SLOWER = 1.1
"""Of the best source with tiles and loops."""
ALSO = {"grouped_attention", "mlp"}
"""The examples that no source with tiles and loops stands beside."""
LENGTHY = {"layer_norm", "rms_norm"}
"""Those whose search takes ten seconds or more."""
LARGE = {
    "vector_add": {"M": 4096, "N": 4096}, "gemm": {"M": 2048, "N": 2048, "K": 2048},
    "matmul_add": {"M": 2048, "N": 1024, "K": 1024},
    "softmax": {"M": 4096, "N": 1024}, "rms_norm": {"M": 4096, "N": 4096}, "layer_norm": {"M": 4096, "N": 2048},
    "gelu_mul": {"M": 2048, "N": 4096}, "flash_attention": {"H": 8, "S": 1024, "D": 128},
    "flash_attention_causal": {"H": 8, "S": 1024, "D": 128},
}  # fmt: skip


def grouped(x: dict[str, np.ndarray]) -> np.ndarray:
    q, k, v = (x[n].swapaxes(0, 1) for n in "QKV")
    k, v = (np.repeat(a, len(q) // len(a), axis=0) for a in (k, v))
    return (softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v).swapaxes(0, 1)


MEANING = {
    **NUMPY,
    "grouped_attention": lambda x: {"O": grouped(x)},
    "mlp": lambda x: {"Y": np.maximum(x["X"] @ x["A"] + x["b"], 0) @ x["C"]},
}


@cache
def beginner(name: str, large: bool = False) -> Lowered:
    text = (EXAMPLES / "beginner" / f"{name}.tile").read_text()
    return lower(load_text(text, f"{name}.tile").instantiate(LARGE[name] if large else {}))


def developer(name: str, large: bool) -> float:
    """Microseconds of the best source with tiles."""
    template = load_text((EXAMPLES / f"{name}.tile").read_text(), f"{name}.tile")
    sizes = LARGE[name] if large else {}
    auto = {n: "auto" for n in template.sizes if n in ("BM", "BN", "BK")}
    return min(lower(template.instantiate({**sizes, **tiles})).cost.microseconds for tiles in ({}, auto))


def test_the_examples_are_those_with_tiles_and_some_more() -> None:
    assert set(BEGINNER) > ALSO
    assert {p.stem for p in EXAMPLES.glob("*.tile")} - set(BEGINNER) == {"flash_attention_rows", "online_softmax"}


AGAIN = ("flash_attention_causal", "gemm_int8", "gemm_transposed")
"""Those of which `make long` compares the two sources: another kernel of their kind is always compared."""
WITH_TILES = [pytest.param(n, marks=[pytest.mark.long] * (n in AGAIN)) for n in BEGINNER if n not in ALSO | LENGTHY]


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_TILES)
def test_an_expression_is_no_slower_than_tiles_and_loops(name: str) -> None:
    assert beginner(name).cost.microseconds <= NO_SLOWER * developer(name, large=False)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(LENGTHY))
def test_nor_is_one_whose_search_takes_long(name: str) -> None:
    assert beginner(name).cost.microseconds <= NO_SLOWER * developer(name, large=False)


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_nor_is_it_on_large_tensors(name: str) -> None:
    assert beginner(name, large=True).cost.microseconds <= NO_SLOWER * developer(name, large=True)


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] * (n in LENGTHY)) for n in BEGINNER])
def test_an_example_computes_what_was_meant(name: str) -> None:
    compiled = beginner(name)
    sets = drawn_sets(compiled.kernel, USUAL, seed=1)
    for drawn in sets:
        got = compiled.run(drawn.arrays).outputs
        assert [(drawn.name, c) for c in compare(got, drawn.meant or {}) if not c.good] == []
        if drawn is sets[0]:
            exact = MEANING[name]({n: a.astype(np.float64) for n, a in drawn.arrays.items()})
            for output, want in (drawn.meant or {}).items():
                far = absolute_error(got[output].astype(np.float64), exact[output])
                assert (far <= 2 * want.allowed + ROUNDED_TWICE).all()
