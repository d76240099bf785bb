"""A finding that ends a run in a destructor is told like any other, and not followed by what its unwinding finds."""

from __future__ import annotations

import numpy as np

from tests.simulator.kernels import UB, gm, kernel
from tile_eg.simulator.run import Simulation, simulate

GUARD = "using namespace AscendC;\nstruct Guard { ~Guard() {\nWaitFlag<HardEvent::MTE2_V>(0); } };\n"


def run(body: str, launch: int = 1) -> Simulation:
    source = kernel("A", "AIV_ONLY", f"{gm('A', elements=64)} {UB}\n{body}").replace('extern "C"', f'{GUARD}extern "C"')
    return simulate(source, "k", [np.zeros(64, np.float32)], kernel_type="AIV_ONLY", launch=launch, outputs=[0])


def test_a_wait_without_its_set_in_a_destructor_is_told() -> None:
    done = run("Guard guard;")
    assert [finding.kind for finding in done.findings] == ["deadlock"]


def test_it_is_told_where_blocks_run_in_several_processes() -> None:
    assert {finding.kind for finding in run("Guard guard;", launch=16).findings} == {"deadlock"}


def test_what_a_destructor_finds_after_the_finding_that_ended_the_run_is_not_told() -> None:
    done = run("Guard guard; ub.Get<float>(1 << 20);")
    assert [finding.kind for finding in done.findings] == ["out_of_bounds"]
