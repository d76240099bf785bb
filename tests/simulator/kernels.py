"""Ascend C by hand, as small as it gets: the kernels that the simulator is tested with."""

from __future__ import annotations

HEADER = '#include "kernel_operator.h"\n'


def kernel(parameters: str, kernel_type: str, body: str) -> str:
    """A kernel `k` with GM parameters `parameters` and a workspace; `body` starts at line 4."""
    arguments = ", ".join(f"GM_ADDR {name}" for name in [*parameters.split(), "workspace"])
    return f'{HEADER}extern "C" __global__ __aicore__ void k({arguments}) {{\nKERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_{kernel_type});\n{body}\n}}\n'


def vector(parameters: str, body: str, elements: int = 65536) -> str:
    """A kernel for one vector core: gmX (float) for each parameter X, `ub` over the whole UB; `body` starts at line 5."""
    tensors = "".join(
        f"AscendC::GlobalTensor<float> gm{p}; gm{p}.SetGlobalBuffer((__gm__ float*){p}, {elements}); " for p in parameters.split()
    )
    pipe = "AscendC::TPipe pipe; AscendC::TBuf<AscendC::TPosition::VECCALC> ub; pipe.InitBuffer(ub, 196608); "
    return kernel(parameters, "AIV_ONLY", "using namespace AscendC; " + tensors + pipe + "\n" + body)


VECTOR_ADD = vector(
    "A B C",
    """
for (int i = 0; i < 8; ++i) {
  int s = i % 2;
  auto a = ub.GetWithOffset<float>(1024, s * 8192), b = ub.GetWithOffset<float>(1024, s * 8192 + 4096);
  if (i >= 2) WaitFlag<HardEvent::MTE3_MTE2>(s);
  DataCopy(a, gmA[i * 1024], 1024);
  DataCopy(b, gmB[i * 1024], 1024);
  SetFlag<HardEvent::MTE2_V>(s);
  WaitFlag<HardEvent::MTE2_V>(s);
  Add(a, a, b, 1024);
  SetFlag<HardEvent::V_MTE3>(s);
  WaitFlag<HardEvent::V_MTE3>(s);
  DataCopy(gmC[i * 1024], a, 1024);
  SetFlag<HardEvent::MTE3_MTE2>(s);
}
WaitFlag<HardEvent::MTE3_MTE2>(0);
WaitFlag<HardEvent::MTE3_MTE2>(1);
""",
    8192,
)
