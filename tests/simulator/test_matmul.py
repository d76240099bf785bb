"""Matrix products: the load recipes of docs/simulator.md against NumPy, and what the cube does with edges."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.simulator.kernels import gemm_blocked, kernel, matmul
from tile_eg.simulator.run import Simulation, simulate

pytestmark = pytest.mark.slow(but=3)

DTYPES = {"half": np.float16, "bfloat16_t": ml_dtypes.bfloat16, "float": np.float32}


def operands(m: int, n: int, k: int, dtype: str = "half") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((m, k)).astype(DTYPES[dtype]), rng.standard_normal((k, n)).astype(DTYPES[dtype])


def multiply(source: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, launch: int = 1) -> Simulation:
    return simulate(source, "k", [a, b, c], kernel_type="AIC_ONLY", launch=launch, outputs=[2])


@pytest.mark.few(17)
@pytest.mark.parametrize("sizes", [(64, 64, 64), (30, 40, 70), (40, 50, 36)], ids=str)
@pytest.mark.parametrize("b_turned", [False, True], ids=["B", "Bt"])
@pytest.mark.parametrize("a_turned", [False, True], ids=["A", "At"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_load_recipe_gives_the_product(dtype: str, a_turned: bool, b_turned: bool, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b = operands(m, n, k, dtype)
    source = matmul(m, n, k, dtype, a_turned=a_turned, b_turned=b_turned)
    run = multiply(source, a.T if a_turned else a, b.T if b_turned else b, np.zeros((m, n), np.float32))
    assert run.ok, run
    np.testing.assert_allclose(run.outputs[0], a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("out", ["half", "bfloat16_t"])
def test_fixpipe_casts_to_the_nearest_even_and_cuts_below_zero(out: str) -> None:
    a, b = operands(32, 48, 64)
    exact = multiply(matmul(32, 48, 64), a, b, np.zeros((32, 48), np.float32)).outputs[0]
    run = multiply(matmul(32, 48, 64, out=out, relu=True), a, b, np.zeros((32, 48), DTYPES[out]))
    assert run.ok, run
    np.testing.assert_array_equal(run.outputs[0].astype(np.float32), np.maximum(exact, 0).astype(DTYPES[out]).astype(np.float32))


def test_one_row_of_mmad_reads_its_left_operand_unpadded() -> None:
    a, b = operands(1, 16, 64)
    padded = multiply(matmul(1, 16, 64, pad_m=16), a, b, np.zeros((1, 16), np.float32))
    np.testing.assert_allclose(padded.outputs[0], a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-4)
    vector_mode = multiply(matmul(1, 16, 64), a, b, np.zeros((1, 16), np.float32))
    assert [f.kind for f in vector_mode.findings] == ["uninitialised"]


def test_a_blocked_gemm_over_several_blocks_counts_what_it_moves() -> None:
    a, b = operands(256, 256, 256)
    run = multiply(gemm_blocked(256, 256, 256, 128, 128, 64), a, b, np.zeros((256, 256), np.float32), launch=4)
    assert run.ok, run
    np.testing.assert_allclose(run.outputs[0], a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-3)
    assert run.counts.bytes["macs"] == 256**3
    assert run.counts.bytes["GM->L1"] == 2 * 4 * 128 * 256 * 2
    assert run.counts.instructions["Mmad"] == 16


CHAIN = kernel(
    "A B C D",
    "AIC_ONLY",
    """GlobalTensor<half> gmA, gmB, gmC; GlobalTensor<float> gmD;
gmA.SetGlobalBuffer((__gm__ half*)A, 24 * 32); gmB.SetGlobalBuffer((__gm__ half*)B, 32 * 40);
gmC.SetGlobalBuffer((__gm__ half*)C, 40 * 32); gmD.SetGlobalBuffer((__gm__ float*)D, 24 * 32);
LocalTensor<half> a1(TPosition::A1, 0, 32 * 32), b1(TPosition::A1, 8192, 32 * 48), c1(TPosition::A1, 16384, 48 * 32);
LocalTensor<half> p1(TPosition::A1, 32768, 32 * 48), a2(TPosition::A2, 0, 2048), p2(TPosition::A2, 8192, 2048);
LocalTensor<half> b2(TPosition::B2, 0, 2048), c2(TPosition::B2, 8192, 2048);
LocalTensor<float> p(TPosition::CO1, 0, 2048), d(TPosition::CO1, 16384, 2048);
DataCopy(a1, gmA, Nd2NzParams(1, 24, 32, 0, 32, 32, 1, 0));
DataCopy(b1, gmB, Nd2NzParams(1, 32, 40, 0, 40, 32, 1, 0));
DataCopy(c1, gmC, Nd2NzParams(1, 40, 32, 0, 32, 48, 1, 0));
SetFlag<HardEvent::MTE2_MTE1>(0); WaitFlag<HardEvent::MTE2_MTE1>(0);
for (int i = 0; i < 2; ++i) LoadData(a2[i * 512], a1[i * 256], LoadData2DParams(0, 2, 2, 0, 0, false, 0));
for (int i = 0; i < 2; ++i) LoadData(b2[i * 768], b1[i * 256], LoadData2DParams(0, 3, 2, 0, 0, true, 0));
for (int i = 0; i < 3; ++i) LoadData(c2[i * 512], c1[i * 256], LoadData2DParams(0, 2, 3, 0, 0, true, 0));
SetFlag<HardEvent::MTE1_M>(0); WaitFlag<HardEvent::MTE1_M>(0);
Mmad(p, a2, b2, MmadParams(24, 40, 32, 0, false, true));
SetFlag<HardEvent::M_FIX>(0); WaitFlag<HardEvent::M_FIX>(0);
Fixpipe<half, float, CFG_NZ>(p1, p, FixpipeParamsV220(48, 24, 32, 32, false, QuantMode_t::F322F16, 0, 1, 0, 0, 0));
SetFlag<HardEvent::FIX_MTE1>(0); WaitFlag<HardEvent::FIX_MTE1>(0);
for (int i = 0; i < 2; ++i) LoadData(p2[i * 768], p1[i * 256], LoadData2DParams(0, 3, 2, 0, 0, false, 0));
SetFlag<HardEvent::MTE1_M>(0); WaitFlag<HardEvent::MTE1_M>(0);
Mmad(d, p2, c2, MmadParams(24, 32, 40, 0, false, true));
SetFlag<HardEvent::M_FIX>(0); WaitFlag<HardEvent::M_FIX>(0);
Fixpipe(gmD, d, FixpipeParamsV220(32, 24, 32, 32, false));
""",
)


def test_a_product_goes_back_to_l1_and_its_padding_is_carried_but_never_seen() -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal(s).astype(np.float16) for s in ((24, 32), (32, 40), (40, 32)))
    run = simulate(CHAIN, "k", [a, b, c, np.zeros((24, 32), np.float32)], kernel_type="AIC_ONLY", launch=1, outputs=[3])
    assert run.ok, run
    between = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16).astype(np.float32)
    np.testing.assert_allclose(run.outputs[0], between @ c.astype(np.float32), rtol=1e-2, atol=0.2)
