"""Synchronised programs in the simulator, which judges flags and races by its own lights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tile_eg.emit.ascend_c.kernel import kernel_text
from tile_eg.emit.sync.planning import SyncError, synchronise
from tile_eg.ir.program import Program
from tile_eg.ir.program.parser import parse_program

from .random_programs import fused_programs, vector_programs
from .simulated import numpy_type, simulated

pytestmark = pytest.mark.slow(but=1)
ORDER = {"race", "deadlock", "double_set", "leftover_flag", "flag_id", "cross_flag"}
FEW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))


def example(name: str) -> Program:
    return parse_program((Path(__file__).parent / "programs" / f"{name}.program").read_text(), f"{name}.program")


def arrays(p: Program, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {t.name: rng.uniform(-1, 1, t.shape).astype(numpy_type(t.dtype)) for t in p.tensors if not t.output}


@pytest.mark.slow
def test_the_product() -> None:
    p = example("gemm")
    x = arrays(p)
    assert np.allclose(simulated(p, x)["C"], x["A"].astype(np.float32) @ x["B"].astype(np.float32), atol=1e-3)


def test_the_sum_and_exponential() -> None:
    p = example("vector_add_exp")
    x = arrays(p)
    assert np.allclose(simulated(p, x)["C"], np.exp(x["A"] + x["B"]), rtol=1e-5)


def test_the_softmax_of_rows_that_end_inside_a_half() -> None:
    p = example("softmax_rows")
    x = arrays(p)["X"]
    e = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(simulated(p, {"X": x})["Y"], e / e.sum(1, keepdims=True), rtol=1e-5)


def test_the_fused_kernel_keeps_the_machine_s_rules() -> None:
    p = example("flash_attention")
    assert simulated(p, arrays(p))["O"].shape == (512, 64)


def findings(p: Program) -> list[str]:
    from tile_eg.simulator.run import simulate

    try:
        made = synchronise(p)
    except SyncError as error:
        assume("ids" not in str(error))
        raise
    given_arrays = [np.zeros(t.shape, numpy_type(t.dtype)) for t in p.tensors]
    run = simulate(
        kernel_text(made), p.name, given_arrays, kernel_type=p.kernel_type, launch=1, workspace=p.workspace, outputs=[1]
    )
    return [str(f) for f in run.findings if f.kind in ORDER]


@FEW
@given(vector_programs())
def test_the_simulator_finds_no_race_in_any_vector_program(p: Program) -> None:
    assert findings(p) == []


@FEW
@given(fused_programs(), st.none())
def test_the_simulator_finds_no_race_in_any_ring_between_the_cores(p: Program, _: None) -> None:
    assert findings(p) == []
