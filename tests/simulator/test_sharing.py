"""Blocks run in several processes where the machine has several cores: what comes out is what one process gives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from tests.simulator.kernels import UB, gm, kernel
from tile_eg.simulator.run import Simulation, simulate

BLOCKS, EACH = 8, 64


def long_kernel(store: str, before: str = "") -> str:
    """Enough work for each block that it is worth sharing."""
    return kernel(
        "X Y",
        "AIV_ONLY",
        f"""{gm("X Y", elements=BLOCKS * EACH)} {UB} auto x = ub.GetWithOffset<float>({EACH}, 0);
const int me = GetBlockIdx();
{before}
DataCopy(x, gmX[me * {EACH}], {EACH}); ORDER(MTE2_V);
for (int i = 0; i < 200000; ++i) {{ Adds(x, x, 1.0f, {EACH}); PipeBarrier<PIPE_V>(); }}
ORDER(V_MTE3);
{store}
""",
    )


OWN = f"DataCopy(gmY[me * {EACH}], x, {EACH});"
KERNELS = {
    "two blocks meet": f"DataCopy(gmY[me % 6 * {EACH}], x, {EACH});",
    "blocks of their own": OWN,
    "blocks that print": f'AscendC::printf("block %d\\n", me); {OWN}',
    "a block reads what one of another process wrote": f"{OWN} if (me == 7) DataCopy(x[0], gmY[2 * {EACH}], {EACH});",
    "blocks that add to one place": f"SetAtomicAdd<float>(); DataCopy(gmY, x, {EACH}); SetAtomicNone();",
    "blocks that wait for one another": f"{OWN} SyncAll();",
    "a flag that is left over in one block": f"{OWN} if (me == 6) SetFlag<HardEvent::MTE3_V>(1);",
}


@contextmanager
def one_core() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run(source: str) -> Simulation:
    x = np.arange(BLOCKS * EACH, dtype=np.float32)
    return simulate(source, "k", [x, np.zeros_like(x)], kernel_type="AIV_ONLY", launch=BLOCKS, outputs=[1], inout=[1])


def same_on_one_core(source: str) -> Simulation:
    shared = run(source)
    with one_core():
        alone = run(source)
    assert shared.findings == alone.findings
    assert (shared.counts, shared.printed) == (alone.counts, alone.printed)
    np.testing.assert_array_equal(shared.outputs[0], alone.outputs[0])
    return shared


pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes share the blocks on Linux only")


@pytest.mark.slow
def test_blocks_that_meet_across_processes_are_told_as_by_one() -> None:
    found = same_on_one_core(long_kernel(KERNELS["two blocks meet"])).findings
    assert [f.kind for f in found] == ["block_race"]
    assert "block 0)" in found[0].message and found[0].block == 6


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_many_processes_say_what_one_says(name: str) -> None:
    same_on_one_core(long_kernel(KERNELS[name]))
