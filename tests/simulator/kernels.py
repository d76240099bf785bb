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


def matmul(m: int, n: int, k: int, dtype: str = "half", *, a_turned: bool = False, b_turned: bool = False, out: str = "float",
           relu: bool = False) -> str:  # fmt: skip
    """C = A @ B in one product, with the load recipes of docs/simulator.md; turned operands lie transposed in GM."""
    size = 4 if dtype == "float" else 2
    c0 = 32 // size
    up = lambda x, to: -(-x // to) * to  # noqa: E731
    a_rows, a_cols = (k, m) if a_turned else (m, k)
    b_rows, b_cols = (n, k) if b_turned else (k, n)
    quant = {"float": "NoQuant", "half": "F322F16", "bfloat16_t": "F322BF16"}[out]
    l1_b = up(a_rows, 16) * up(a_cols, 16) * size
    return kernel(
        "A B C",
        "AIC_ONLY",
        f"""
using namespace AscendC;
GlobalTensor<{dtype}> gmA, gmB; GlobalTensor<{out}> gmC;
gmA.SetGlobalBuffer((__gm__ {dtype}*)A, {m * k}); gmB.SetGlobalBuffer((__gm__ {dtype}*)B, {k * n}); gmC.SetGlobalBuffer((__gm__ {out}*)C, {m * n});
TPipe pipe; TBuf<TPosition::A1> l1; TBuf<TPosition::A2> l0a; TBuf<TPosition::B2> l0b; TBuf<TPosition::CO1> l0c;
pipe.InitBuffer(l1, 524288); pipe.InitBuffer(l0a, 65536); pipe.InitBuffer(l0b, 65536); pipe.InitBuffer(l0c, 131072);
auto a1 = l1.GetWithOffset<{dtype}>({l1_b // size}, 0); auto b1 = l1.GetWithOffset<{dtype}>({up(b_rows, 16) * up(b_cols, 16)}, {l1_b});
auto a2 = l0a.Get<{dtype}>(); auto b2 = l0b.Get<{dtype}>(); auto c = l0c.Get<float>();
DataCopy(a1, gmA, Nd2NzParams(1, {a_rows}, {a_cols}, 0, {a_cols}, {up(a_rows, 16)}, 1, 0));
DataCopy(b1, gmB, Nd2NzParams(1, {b_rows}, {b_cols}, 0, {b_cols}, {up(b_rows, 16)}, 1, 0));
SetFlag<HardEvent::MTE2_MTE1>(0);
WaitFlag<HardEvent::MTE2_MTE1>(0);
{load_a(m, k, dtype, a_turned)}
{load_b(n, k, dtype, b_turned)}
SetFlag<HardEvent::MTE1_M>(0);
WaitFlag<HardEvent::MTE1_M>(0);
MmadParams product({m}, {n}, {k}, 0, false, true);
product.kDirectionAlign = {str(a_turned and c0 == 8).lower()};
Mmad(c, a2, b2, product);
SetFlag<HardEvent::M_FIX>(0);
WaitFlag<HardEvent::M_FIX>(0);
Fixpipe<{out}, float, CFG_ROW_MAJOR>(gmC, c, FixpipeParamsV220({n}, {m}, {up(m, 16)}, {n}, {str(relu).lower()}, QuantMode_t::{quant}, 0, 1, 0, 0, 0));
""",
    )


def load_a(m: int, k: int, dtype: str, turned: bool) -> str:
    """L1 to L0A: the source holds m x k, or turned k x m, its rows padded to 16."""
    m16, k16 = -(-m // 16), -(-k // 16)
    if dtype == "float":
        if turned:
            return load_3d("a2", "a1", k16 * 16, -(-m // 8) * 8)
        k8 = -(-k // 8)
        return f"for (int i = 0; i < {m16}; ++i) LoadData(a2[i * {k8} * 128], a1[i * 128], LoadData2DParams(0, {k8}, {m16}, 0, 0, false, 0));"
    if turned:
        return f"for (int i = 0; i < {m16}; ++i) LoadData(a2[i * {k16} * 256], a1[i * {k16} * 256], LoadData2DParams(0, {k16}, 1, 0, 0, true, 0));"
    return f"for (int i = 0; i < {m16}; ++i) LoadData(a2[i * {k16} * 256], a1[i * 256], LoadData2DParams(0, {k16}, {m16}, 0, 0, false, 0));"


def load_b(n: int, k: int, dtype: str, turned: bool) -> str:
    """L1 to L0B: the source holds k x n, or turned n x k, its rows padded to 16."""
    n16, k16 = -(-n // 16), -(-k // 16)
    if dtype == "float":
        if turned:
            return f"LoadData(b2, b1, LoadData2DParams(0, {n16 * -(-k // 8)}, 1, 0, 0, false, 0));"
        return load_3d("b2", "b1", k16 * 16, -(-n // 8) * 8)
    if turned:
        return f"LoadData(b2, b1, LoadData2DParams(0, {n16 * k16}, 1, 0, 0, false, 0));"
    return f"for (int i = 0; i < {k16}; ++i) LoadData(b2[i * {n16} * 256], b1[i * 256], LoadData2DParams(0, {n16}, {k16}, 0, 0, true, 0));"


def load_3d(dst: str, src: str, rows: int, cols: int) -> str:
    """A whole NZ matrix of `rows` (padded to 16) x `cols`, transposed into L0A, or as a right operand into L0B."""
    return (
        "LoadData3DParamsV2<float> p; p.l1H = 1; "
        f"p.l1W = {rows}; p.channelSize = {cols}; p.kExtension = {cols}; p.mExtension = {rows}; p.enTranspose = true; LoadData({dst}, {src}, p);"
    ).join("{}")


def gemm_blocked(m: int, n: int, k: int, bm: int, bn: int, bk: int) -> str:
    """GEMM of half into float, one block of C for each launch block, with ping-pong in L1 and L0. Sizes are multiples."""
    steps = k // bk
    return kernel(
        "A B C",
        "AIC_ONLY",
        f"""
using namespace AscendC;
GlobalTensor<half> gmA, gmB; GlobalTensor<float> gmC;
gmA.SetGlobalBuffer((__gm__ half*)A, {m * k}); gmB.SetGlobalBuffer((__gm__ half*)B, {k * n}); gmC.SetGlobalBuffer((__gm__ float*)C, {m * n});
TPipe pipe; TBuf<TPosition::A1> l1; TBuf<TPosition::A2> l0a; TBuf<TPosition::B2> l0b; TBuf<TPosition::CO1> l0c;
pipe.InitBuffer(l1, 524288); pipe.InitBuffer(l0a, 65536); pipe.InitBuffer(l0b, 65536); pipe.InitBuffer(l0c, 131072);
int by = GetBlockIdx() / {n // bn}, bx = GetBlockIdx() % {n // bn};
for (int i = 0; i < {steps}; ++i) {{
  int s = i % 2;
  auto a1 = l1.GetWithOffset<half>({bm * bk}, s * {bm * bk * 2}); auto b1 = l1.GetWithOffset<half>({bk * bn}, {bm * bk * 4} + s * {bk * bn * 2});
  auto a2 = l0a.GetWithOffset<half>({bm * bk}, s * 32768); auto b2 = l0b.GetWithOffset<half>({bk * bn}, s * 32768);
  if (i >= 2) WaitFlag<HardEvent::MTE1_MTE2>(s);
  DataCopy(a1, gmA[by * {bm * k} + i * {bk}], Nd2NzParams(1, {bm}, {bk}, 0, {k}, {bm}, 1, 0));
  DataCopy(b1, gmB[i * {bk * n} + bx * {bn}], Nd2NzParams(1, {bk}, {bn}, 0, {n}, {bk}, 1, 0));
  SetFlag<HardEvent::MTE2_MTE1>(s);
  WaitFlag<HardEvent::MTE2_MTE1>(s);
  if (i >= 2) WaitFlag<HardEvent::M_MTE1>(s);
  {load_a(bm, bk, "half", False)}
  {load_b(bn, bk, "half", False)}
  SetFlag<HardEvent::MTE1_M>(s);
  SetFlag<HardEvent::MTE1_MTE2>(s);
  WaitFlag<HardEvent::MTE1_M>(s);
  Mmad(l0c.Get<float>(), a2, b2, MmadParams({bm}, {bn}, {bk}, 0, false, i == 0));
  SetFlag<HardEvent::M_MTE1>(s);
}}
for (int s = 0; s < 2; ++s) {{
  WaitFlag<HardEvent::MTE1_MTE2>(s);
  WaitFlag<HardEvent::M_MTE1>(s);
}}
SetFlag<HardEvent::M_FIX>(0);
WaitFlag<HardEvent::M_FIX>(0);
Fixpipe(gmC[by * {bm * n} + bx * {bn}], l0c.Get<float>(), FixpipeParamsV220({bn}, {bm}, {bm}, {n}, false));
""",
    )
