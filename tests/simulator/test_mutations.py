"""A correct kernel without any one of its flags and barriers is caught: nothing of them is there for nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.simulator.kernels import VECTOR_ADD, gemm_blocked, run_vector
from tests.simulator.test_cores import GOOD, fused
from tests.simulator.test_cores import run as run_fused
from tile_eg.simulator.run import Simulation, simulate

SYNC = re.compile(r"(ORDER\(|PipeBarrier<|SetFlag<|WaitFlag<|CrossCoreSetFlag<|CrossCoreWaitFlag\()[^;]*;")


def run_vector_add(source: str) -> Simulation:
    a = np.ones(8192, np.float32)
    return run_vector(source, a, a, a)


def run_gemm(source: str) -> Simulation:
    a = np.ones((128, 128), np.float16)
    return simulate(source, "k", [a, a, np.zeros((128, 128), np.float32)], kernel_type="AIC_ONLY", launch=1, outputs=[2])


KERNELS: dict[str, tuple[str, Callable[[str], Simulation]]] = {
    "vector add": (VECTOR_ADD, run_vector_add),
    "gemm": (gemm_blocked(128, 128, 128, 128, 128, 32), run_gemm),
    "fused": (fused(rounds=2, **GOOD), run_fused),
}


def places(source: str) -> list[tuple[int, int]]:
    """Where the flags and barriers of a kernel's body stand."""
    body = source.index("{")
    return [m.span() for m in SYNC.finditer(source) if m.start() > body]


@pytest.mark.few(2)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_without_one_of_its_flags_is_caught(name: str) -> None:
    source, run = KERNELS[name]
    assert run(source).ok
    for start, end in places(source):
        left = run(source[:start] + ";" + source[end:])
        assert not left.ok, f"not missed: {source[start:end]} at line {source[:start].count(chr(10)) + 1}"
