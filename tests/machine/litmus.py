"""Litmus kernels: a few lines of Ascend C for one clause of docs/machine.md, with the findings that the clause demands.

All litmus kernels of one kernel type are cases of one source, so that they compile once; GM argument `which` selects the case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from tile_eg.simulator.run import Simulation, simulate

HEAD = """#include "kernel_operator.h"
using namespace AscendC;
#define SET(src, dst, id) SetFlag<HardEvent::src##_##dst>(id)
#define WAIT(src, dst, id) WaitFlag<HardEvent::src##_##dst>(id)
#define ORDER(src, dst) SET(src, dst, 0); WAIT(src, dst, 0)

extern "C" __global__ __aicore__ void litmus(GM_ADDR xAddress, GM_ADDR which, GM_ADDR yAddress, GM_ADDR workspace) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_%s);
    GlobalTensor<int32_t> selector; selector.SetGlobalBuffer((__gm__ int32_t*)which);
    const int32_t number = selector.GetValue(0);
    TPipe pipe;
    GlobalTensor<float> x, y, ws;
    x.SetGlobalBuffer((__gm__ float*)xAddress);
    y.SetGlobalBuffer((__gm__ float*)yAddress);
    ws.SetGlobalBuffer((__gm__ float*)workspace);
"""
VECTOR = """
    TBuf<TPosition::VECCALC> memory;
    if ASCEND_IS_AIV { pipe.InitBuffer(memory, 65536); }
    LocalTensor<float> a, b, c;
    if ASCEND_IS_AIV {
        a = memory.GetWithOffset<float>(256, 0);
        b = memory.GetWithOffset<float>(256, 1024);
        c = memory.GetWithOffset<float>(256, 2048);
    }
    auto rows = [&](int count, int bytes) {
        DataCopyPad(a, x, DataCopyExtParams(count, bytes, 0, 0, 0), DataCopyPadExtParams<float>(false, 0, 0, 0.0f));
    };
"""
CUBE = """
    TBuf<TPosition::A1> l1; TBuf<TPosition::A2> l0a; TBuf<TPosition::B2> l0b; TBuf<TPosition::CO1> l0c;
    LocalTensor<half> p, q, left, right; LocalTensor<float> acc;
    GlobalTensor<half> h; h.SetGlobalBuffer((__gm__ half*)xAddress);
    if ASCEND_IS_AIC {
        pipe.InitBuffer(l1, 65536); pipe.InitBuffer(l0a, 65536); pipe.InitBuffer(l0b, 65536); pipe.InitBuffer(l0c, 131072);
        p = l1.GetWithOffset<half>(8192, 0), q = l1.GetWithOffset<half>(8192, 16384);
        left = l0a.GetWithOffset<half>(8192, 0), right = l0b.GetWithOffset<half>(8192, 0);
        acc = l0c.GetWithOffset<float>(16384, 0);
    }
    // an n x n matrix of x to L1, both operands to L0, and what orders them
    auto operands = [&](int n) {
        DataCopy(p, h, Nd2NzParams(1, n, n, 0, n, n, 1, 0));
        ORDER(MTE2, MTE1);
        for (int i = 0; i < n / 16; ++i) {
            LoadData(left[i * n * 16], p[i * 256], LoadData2DParams(0, n / 16, n / 16, 0, 0, false, 0));
            LoadData(right[i * n * 16], p[i * 256], LoadData2DParams(0, n / 16, n / 16, 0, 0, true, 0));
        }
        ORDER(MTE1, M);
    };
    auto mmad = [&](int m, int n, int k, bool init) { Mmad(acc, left, right, MmadParams(m, n, k, 0, false, init)); };
    auto product = [&](int n, bool init) { mmad(n, n, n, init); };
    auto toL1 = [&](int n) {
        Fixpipe<half, float, CFG_NZ>(q, acc, FixpipeParamsV220(n, 32, 32, 32, false, QuantMode_t::F322F16, 0, 1, 0, 0, 0));
    };
    auto out = [&](int n) {
        Fixpipe<float, float, CFG_ROW_MAJOR>(y, acc, FixpipeParamsV220(n, n, n, n, false, QuantMode_t::NoQuant, 0, 1, 0, 0, 0));
    };
    // a product of 64 x 64 x 64 with a unit flag, into result `at` of L0C, and how it leaves to a place of its own in y
    int leaves = 0;
    auto flagged = [&](int unit, bool init, int at = 0) {
        Mmad(acc[at * 4096], left, right, MmadParams(64, 64, 64, unit, false, init));
    };
    auto leave = [&](int unit, int at = 0, int rows = 64, int col = 0, int cols = 64) {
        const FixpipeParamsV220 params(cols, rows, 64, 64, false, QuantMode_t::NoQuant, 0, 1, 0, 0, unit);
        Fixpipe<float, float, CFG_ROW_MAJOR>(y[leaves++ * 4096], acc[at * 4096 + col * 64], params);
    };
    auto row = [&] {
        const FixpipeParamsV220 params(32, 1, 16, 32, false, QuantMode_t::NoQuant, 0, 1, 0, 0, 0);
        Fixpipe<float, float, CFG_ROW_MAJOR>(y, acc, params);
    };
    auto give = [&] {
        const FixpipeParamsV220 params(16, 16, 16, 16, false, QuantMode_t::NoQuant, 0, 1, 0, 0, 0);
        Fixpipe<float, float, CFG_ROW_MAJOR>(ws, acc, params);
    };
"""
PARTS = {"AIV_ONLY": VECTOR, "AIC_ONLY": CUBE, "MIX_AIC_1_2": VECTOR + CUBE}


@dataclass(frozen=True)
class Litmus:
    """The cases of one kernel type: name -> body."""

    kernel_type: str
    cases: Mapping[str, str]

    def run(self, name: str, x: np.ndarray | None = None, *, launch: int = 1, kernel_type: str = "") -> Simulation:
        """Runs one case; x and y have 16384 floats. `kernel_type` launches the kernel as another type than it says."""
        data = np.arange(16384, dtype=np.float32) if x is None else x
        which = np.array([list(self.cases).index(name)] * 8, dtype=np.int32)
        arguments = (data, which, np.empty(16384, dtype=np.float32))
        return simulate(_source(self.kernel_type, tuple(self.cases.values())), "litmus", arguments,
                        kernel_type=kernel_type or self.kernel_type, launch=launch, workspace=65536, outputs=(2,))  # fmt: skip

    def kinds(self, name: str) -> set[str]:
        return {finding.kind for finding in self.run(name).findings}


@cache
def _source(kernel_type: str, bodies: tuple[str, ...]) -> str:
    cases = "".join(f"    case {i}: {{\n{body}\n    }} break;\n" for i, body in enumerate(bodies))
    return f"{HEAD % kernel_type}{PARTS[kernel_type]}    switch (number) {{\n{cases}    }}\n}}\n"
