"""Copies to L1 of a text: those that make NZ of rows, and those of what lies in GM as it is to lie in L1."""

from __future__ import annotations

import numpy as np
import pytest

from tile_eg.chips import load_chip
from tile_eg.simulator.findings import TraceRow
from tile_eg.simulator.run import simulate
from tile_eg.timeline.instruction import cycles
from tile_eg.timeline.replay.launches import timed_launches
from tile_eg.timeline.work import RUNS, Work

CHIP = load_chip()
LOADS = """
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR w) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    AscendC::GlobalTensor<half> gm;
    gm.SetGlobalBuffer((__gm__ half*)x);
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::A1> buffer;
    pipe.InitBuffer(buffer, 65536);
    AscendC::LocalTensor<half> l1 = buffer.Get<half>();
    AscendC::DataCopy(l1, gm, AscendC::Nd2NzParams(1, 64, 128, 0, 256, 64, 1, 0));
    AscendC::DataCopy(l1[16384], gm, AscendC::DataCopyParams(8, 64, 64, 0));
}
"""


def load(makes_nz: bool) -> float:
    row = TraceRow(
        0, "AIC", "MTE2", "DataCopy", 1, 65536, "GM->L1", "x", 0, (16, 4096, 8192, 2), (("L1", 0, 65536, 1),), makes_nz=makes_nz
    )
    return timed_launches([row], CHIP, kernel="k", kernel_type="AIC_ONLY")[0].timeline.busy["AIC", "MTE2"]


def test_a_copy_that_makes_no_nz_asks_for_no_rows() -> None:
    assert load(False) < load(True) - 100


@pytest.mark.parametrize("stride", [0, 8192])
def test_runs_of_bytes_take_what_their_bytes_take(stride: int) -> None:
    one, several = Work("gm_to_l1", 1, 65536), Work("gm_to_l1", 64, 1024, stride_bytes=stride, form=RUNS)
    assert cycles(CHIP, several) == pytest.approx(cycles(CHIP, one))


def test_the_trace_tells_which_copy_makes_nz() -> None:
    text = '#include "kernel_operator.h"\n' + LOADS
    done = simulate(text, "k", [np.zeros((64, 256), np.float16)], kernel_type="AIC_ONLY", launch=1, trace=True)
    assert [row.makes_nz for row in done.trace if row.path == "GM->L1"] == [True, False]
