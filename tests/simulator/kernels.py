"""Ascend C by hand, as small as it gets: the kernels that the simulator is tested with."""

from __future__ import annotations

import numpy as np

from tile_eg.simulator.run import Simulation, simulate

SHORT = "using namespace AscendC; "
TYPES = {"half": "float16", "float": "float32", "bfloat16_t": "bfloat16"}


def up(n: int, to: int) -> int:
    return -(-n // to) * to


def kernel(parameters: str, kernel_type: str, body: str) -> str:
    """A kernel `k` with GM parameters `parameters` and a workspace. ORDER(MTE2_V) in the body is a set and its wait on flag 0."""
    arguments = ", ".join(f"GM_ADDR {name}" for name in [*parameters.split(), "workspace"])
    return (
        '#include "kernel_operator.h"\n'
        "#define ORDER(pipes) SetFlag<HardEvent::pipes>(0); WaitFlag<HardEvent::pipes>(0)\n"
        f'extern "C" __global__ __aicore__ void k({arguments})\n'
        f"{{ {SHORT}\n"
        f"KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_{kernel_type});\n{body}\n}}\n"
    )


def gm(names: str, dtype: str = "float", elements: int = 65536) -> str:
    """GlobalTensors gmX of `elements` elements for the parameters X."""
    return " ".join(
        f"GlobalTensor<{dtype}> gm{n}; gm{n}.SetGlobalBuffer((__gm__ {dtype}*){n}, {elements});" for n in names.split()
    )


UB = "TPipe pipe; TBuf<TPosition::VECCALC> ub; pipe.InitBuffer(ub, 196608);"
CUBE = (
    "TPipe pipe; TBuf<TPosition::A1> l1; TBuf<TPosition::A2> l0a; TBuf<TPosition::B2> l0b; TBuf<TPosition::CO1> l0c;\n"
    "pipe.InitBuffer(l1, 524288); pipe.InitBuffer(l0a, 65536); pipe.InitBuffer(l0b, 65536); pipe.InitBuffer(l0c, 131072);"
)


def vector(names: str, body: str, dtype: str = "float", elements: int = 256) -> str:
    """A kernel for one vector core: gmX for the parameters X, x, y, z in UB 64 KB apart."""
    tensors = " ".join(f"auto {t} = ub.GetWithOffset<{dtype}>({elements}, {i * 65536});" for i, t in enumerate("xyz"))
    return kernel(names, "AIV_ONLY", f"{gm(names, dtype, elements)} {UB} {tensors}\n{body}")


def run_vector(source: str, *arrays: np.ndarray, outputs: int = 1, inout: bool = False) -> Simulation:
    """Run on one vector core; the last `outputs` arrays are outputs, with `inout` also inputs."""
    last = list(range(len(arrays) - outputs, len(arrays)))
    return simulate(source, "k", arrays, kernel_type="AIV_ONLY", launch=1, outputs=last, inout=last if inout else ())


VECTOR_ADD = kernel(
    "A B C",
    "AIV_ONLY",
    f"""{gm("A B C", elements=8192)} {UB}
for (int i = 0; i < 8; ++i) {{
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
}}
WaitFlag<HardEvent::MTE3_MTE2>(0);
WaitFlag<HardEvent::MTE3_MTE2>(1);
""",
)


def matmul(
    m: int, n: int, k: int, dtype: str = "half", *, a_turned: bool = False, b_turned: bool = False, out: str = "float",
    relu: bool = False, pad_m: int = 0,
) -> str:  # fmt: skip
    """C = A @ B in one product, with the load recipes of docs/simulator.md; turned operands lie transposed in GM.

    `pad_m` is the m of Mmad where it differs (1 switches the cube to its vector mode).
    """
    size = 4 if dtype == "float" else 2
    a_rows, a_cols = (k, m) if a_turned else (m, k)
    b_rows, b_cols = (n, k) if b_turned else (k, n)
    quant = {"float": "NoQuant", "half": "F322F16", "bfloat16_t": "F322BF16"}[out]
    a_size, b_size = up(a_rows, 16) * up(a_cols, 16), up(b_rows, 16) * up(b_cols, 16)
    return kernel(
        "A B C",
        "AIC_ONLY",
        f"""{gm("A", dtype, m * k)} {gm("B", dtype, k * n)} {gm("C", out, m * n)}
{CUBE}
auto a1 = l1.GetWithOffset<{dtype}>({a_size}, 0); auto b1 = l1.GetWithOffset<{dtype}>({b_size}, {a_size * size});
auto a2 = l0a.Get<{dtype}>(); auto b2 = l0b.Get<{dtype}>(); auto c = l0c.Get<float>();
DataCopy(a1, gmA, Nd2NzParams(1, {a_rows}, {a_cols}, 0, {a_cols}, {up(a_rows, 16)}, 1, 0));
DataCopy(b1, gmB, Nd2NzParams(1, {b_rows}, {b_cols}, 0, {b_cols}, {up(b_rows, 16)}, 1, 0));
ORDER(MTE2_MTE1);
{load_a(m, k, dtype, a_turned)}
{load_b(n, k, dtype, b_turned)}
ORDER(MTE1_M);
MmadParams product({pad_m or m}, {n}, {k}, 0, false, true);
product.kDirectionAlign = {str(a_turned and dtype == "float").lower()};
Mmad(c, a2, b2, product);
ORDER(M_FIX);
FixpipeParamsV220 way({n}, {m}, {up(m, 16)}, {n}, {str(relu).lower()}, QuantMode_t::{quant}, 0, 1, 0, 0, 0);
Fixpipe<{out}, float, CFG_ROW_MAJOR>(gmC, c, way);
""",
    )


def load_a(m: int, k: int, dtype: str, turned: bool) -> str:
    """L1 to L0A: the source holds m x k, or turned k x m, its rows padded to 16."""
    m16, k16, k8 = up(m, 16) // 16, up(k, 16) // 16, up(k, 8) // 8
    if dtype == "float":
        return load_3d("a2", "a1", k16 * 16, up(m, 8)) if turned else load_2d(m16, f"a2[i * {k8 * 128}], a1[i * 128]", k8, m16)
    if turned:
        return load_2d(m16, f"a2[i * {k16 * 256}], a1[i * {k16 * 256}]", k16, 1, True)
    return load_2d(m16, f"a2[i * {k16 * 256}], a1[i * 256]", k16, m16)


def load_b(n: int, k: int, dtype: str, turned: bool) -> str:
    """L1 to L0B: the source holds k x n, or turned n x k, its rows padded to 16."""
    n16, k16, k8 = up(n, 16) // 16, up(k, 16) // 16, up(k, 8) // 8
    if turned:
        return load_2d(1, "b2, b1", n16 * (k8 if dtype == "float" else k16), 1)
    if dtype == "float":
        return load_3d("b2", "b1", k16 * 16, up(n, 8))
    return load_2d(k16, f"b2[i * {n16 * 256}], b1[i * 256]", n16, k16, True)


def load_2d(times: int, operands: str, repeat: int, stride: int, transpose: bool = False) -> str:
    params = f"LoadData2DParams(0, {repeat}, {stride}, 0, 0, {str(transpose).lower()}, 0)"
    return f"for (int i = 0; i < {times}; ++i) LoadData({operands}, {params});"


def load_3d(dst: str, src: str, rows: int, cols: int) -> str:
    """A whole NZ matrix of `rows` (padded to 16) x `cols`, transposed into L0A, or as a right operand into L0B."""
    return (
        f"{{ LoadData3DParamsV2<float> p; p.l1H = 1; p.l1W = {rows}; p.channelSize = {cols}; p.enTranspose = true;\n"
        f"p.kExtension = {cols}; p.mExtension = {rows}; LoadData({dst}, {src}, p); }}"
    )


def gemm_blocked(m: int, n: int, k: int, bm: int, bn: int, bk: int) -> str:
    """GEMM of half into float, one block of C for each launch block, with ping-pong in L1 and L0. Sizes are multiples."""
    a_bytes, b_bytes = bm * bk * 2, bk * bn * 2
    return kernel(
        "A B C",
        "AIC_ONLY",
        f"""{gm("A", "half", m * k)} {gm("B", "half", k * n)} {gm("C", "float", m * n)}
{CUBE}
int by = GetBlockIdx() / {n // bn}, bx = GetBlockIdx() % {n // bn};
for (int i = 0; i < {k // bk}; ++i) {{
  int s = i % 2;
  auto a1 = l1.GetWithOffset<half>({bm * bk}, s * {a_bytes});
  auto b1 = l1.GetWithOffset<half>({bk * bn}, {2 * a_bytes} + s * {b_bytes});
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
for (int s = 0; s < 2; ++s) {{ WaitFlag<HardEvent::MTE1_MTE2>(s); WaitFlag<HardEvent::M_MTE1>(s); }}
ORDER(M_FIX);
Fixpipe(gmC[by * {bm * n} + bx * {bn}], l0c.Get<float>(), FixpipeParamsV220({bn}, {bm}, {bm}, {n}, false));
""",
    )
