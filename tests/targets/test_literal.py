"""The literal schedule of a source: right numbers, one buffer each, a row at a time, a wait behind each instruction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.targets.literal import literal
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program import Instr, Loop, PipeBarrier, SetFlag, WaitFlag, walk
from tile_eg.search.compiler import Planned, lower, meaning

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {
    "gemm": {"M": 300, "N": 500, "K": 200},
    "flash_attention": {"B": 1, "H": 2, "S": 160, "D": 64},
    "softmax": {"M": 70, "N": 500, "BM": 8},
    "matmul_add": {"M": 200, "N": 130, "K": 96},
}


def kernel(name: str) -> Kernel:
    return load_text((EXAMPLES / f"{name}.tile").read_text("utf-8"), name).instantiate(SIZES[name])


def nodes(planned: Planned) -> list:
    return list(walk((*planned.program.cube, *planned.program.vector)))


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_it_computes_what_the_source_says(name: str) -> None:
    k, rng = kernel(name), np.random.default_rng(0)
    arrays = {t.name: rng.uniform(-1, 1, t.shape).astype(t.dtype.numpy) for t in k.tensors if not t.output}
    run = literal(k, "910B2").run(arrays)
    for out, expected in meaning(k, arrays).items():
        assert np.allclose(run[out].astype(np.float32), expected.astype(np.float32), rtol=4e-3, atol=4e-3)


@pytest.mark.slow
def test_it_has_no_ring() -> None:
    assert all(b.slots == 1 for b in literal(kernel("flash_attention"), "910B2").program.buffers)


@pytest.mark.slow
def test_it_waits_for_all_pipes_instead_of_flags() -> None:
    found = nodes(literal(kernel("flash_attention"), "910B2"))
    assert not any(isinstance(n, SetFlag | WaitFlag) for n in found)
    assert sum(n == PipeBarrier("ALL") for n in found) >= sum(isinstance(n, Instr) for n in found)


@pytest.mark.slow
def test_it_computes_row_by_row() -> None:
    loops = [n for n in nodes(literal(kernel("softmax"), "910B2")) if isinstance(n, Loop) and n.var == "row"]
    assert loops
    assert all(n.rows.value == 1 for loop in loops for n in walk(loop.body) if isinstance(n, Instr))


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_the_search_finds_something_faster(name: str) -> None:
    k = kernel(name)
    assert lower(k, "910B2").timeline.microseconds < literal(k, "910B2").timeline.microseconds
