"""The cube's other ways: DataCopy out of L0C with its registers, tables, L1 to GM, fractals from GM, images, sparse products."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import CUBE, gm, kernel, load_a, load_b, run_vector, vector
from tests.simulator.test_quantised import OUT, cut, operands, product, scale
from tile_eg.simulator.run import Simulation, simulate

pytestmark = pytest.mark.slow(but=3)

M, N, K = 48, 64, 96
NUMBERS = {"half": np.float16, "float": np.float32, "int8_t": np.int8, "int32_t": np.int32}


def cube(names: str, body: str) -> str:
    return kernel(names, "AIC_ONLY", f"{CUBE}\n{body}")


def run(source: str, *arrays: np.ndarray) -> Simulation:
    return simulate(source, "k", arrays, kernel_type="AIC_ONLY", launch=1, outputs=[len(arrays) - 1])


# ---- DataCopy out of L0C ----------------------------------------------------------------------------------------------------


def registers(out: str, set_up: str, quant: str, *, rows: bool = True) -> str:
    """The product of test_quantised, on its way out by DataCopy instead of Fixpipe."""
    source = product(out, f"{N}, {M}, {M}, {N}, false")
    begin = source.index("FixpipeParamsV220 way")
    stride = N if rows else M * max(16 * np.dtype(OUT[out]).itemsize, 32) // 32
    way = f"DataCopyCO12DstParams way({N}, {M}, {stride}, {M}, QuantMode_t::{quant}, 0, false, {str(rows).lower()});"
    end = source.index("\n}", begin)
    return (
        f"{source[:begin]}{way}\n{'SetFixpipeNz2ndFlag(1, 0, 0);' if rows else ''}{set_up}\nDataCopy(gmC, c, way);{source[end:]}"
    )


def quantised(source: str, out: str, table: np.ndarray | None = None) -> Simulation:
    a, b, bias = operands()
    scales = np.zeros(N, np.uint64) if table is None else table
    return run(source, a, np.ascontiguousarray(b.T), bias, scales, np.zeros((M, N), OUT[out]))


def exact() -> np.ndarray:
    a, b, _ = operands()
    return a.astype(np.int64) @ b.astype(np.int64)


def test_datacopy_out_of_l0c_takes_its_scale_from_a_register() -> None:
    done = quantised(registers("half", f"SetFixpipePreQuantFlag({scale(0.0123)}ull);", "DEQF16"), "half")
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], (exact() * np.float64(cut(0.0123))).astype(np.float16))


def test_a_scale_that_nothing_has_set_is_named() -> None:
    done = quantised(registers("half", "", "DEQF16"), "half")
    assert [f.kind for f in done.findings] == ["uninitialised"]
    assert "SetFixpipePreQuantFlag" in done.findings[0].message


TO_BUFFER = f"""LocalTensor<uint64_t> fb(TPosition::C2PIPE2GM, 0, {N});
DataCopy(fb, p1, DataCopyParams(1, {N * 8 // 128}, 0, 0)); SetFixPipeConfig(fb);"""


def test_scales_by_column_come_from_the_fixpipe_buffer() -> None:
    values = np.linspace(1e-4, 3e-3, N)
    table = np.array([scale(v, 3) for v in values], np.uint64)
    done = quantised(registers("int8_t", TO_BUFFER, "VREQ8"), "int8_t", table)
    assert done.ok, done
    rounded = np.rint(np.clip(exact() * np.array([cut(v) for v in values], np.float64), -256, 255)) + 3
    np.testing.assert_array_equal(done.outputs[0], np.clip(rounded, -128, 127).astype(np.int8))


def test_a_fixpipe_buffer_ends_at_two_kilobytes() -> None:
    big = TO_BUFFER.replace("C2PIPE2GM, 0,", "C2PIPE2GM, 1920,")
    done = quantised(registers("int8_t", big, "VREQ8"), "int8_t", np.zeros(N, np.uint64))
    assert "out_of_bounds" in {f.kind for f in done.findings}


def test_bytes_leave_in_blocks_of_32_columns() -> None:
    done = quantised(registers("int8_t", f"SetFixpipePreQuantFlag({scale(1e-3)}ull);", "REQ8", rows=False), "int8_t")
    assert done.ok, done
    expected = np.clip(np.rint(exact() * np.float64(cut(1e-3))), -128, 127).astype(np.int8)
    np.testing.assert_array_equal(done.outputs[0].reshape(N // 32, M, 32), expected.reshape(M, N // 32, 32).swapaxes(0, 1))


# ---- products -----------------------------------------------------------------------------------------------------------------


def test_sums_start_at_the_bias_table_without_a_tensor_that_names_it() -> None:
    source = product("int32_t", f"{N}, {M}, {M}, {N}, false", bias=True).replace(", bt, MmadParams", ", MmadParams")
    source = source.replace("0, false, false));", "0, true, false));")
    done = quantised(source, "int32_t")
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], exact() + operands()[2])


def nz(matrix: np.ndarray, c0: int) -> np.ndarray:
    """Column blocks of c0, each with all rows: the order of L1."""
    rows, cols = matrix.shape
    return np.ascontiguousarray(matrix.reshape(rows, cols // c0, c0).swapaxes(0, 1))


def packed(matrix: np.ndarray) -> np.ndarray:
    """Two numbers of four bits in a byte, the first in its low half."""
    low, high = (matrix.reshape(-1, 2) & 15).astype(np.uint8).T
    return (low | high << 4).view(np.int8)


NIBBLES = """GlobalTensor<int4b_t> ga, gb; ga.SetGlobalBuffer((__gm__ int4b_t*)A); gb.SetGlobalBuffer((__gm__ int4b_t*)B);
GlobalTensor<int32_t> gc; gc.SetGlobalBuffer((__gm__ int32_t*)C);
LocalTensor<int4b_t> a1(TPosition::A1, 0, {a}), b1(TPosition::B1, 65536, {b});
LocalTensor<int4b_t> a2(TPosition::A2, 0, {a}), b2(TPosition::B2, 0, {b});
auto c = l0c.Get<int32_t>();
DataCopy(a1, ga, {a}); DataCopy(b1, gb, {b});
ORDER(MTE2_MTE1);
{load_a}
{load_b}
ORDER(MTE1_M);
Mmad(c, a2, b2, MmadParams({m}, {n}, {k}, 0, false, true));
ORDER(M_FIX);
Fixpipe<int32_t, int32_t, CFG_ROW_MAJOR>(gc, c, FixpipeParamsV220({n}, {m}, {m}, {n}, false));
"""


def nibble_product(m: int, n: int, k: int, *, turned: bool, image: bool) -> str:
    load_a = (
        f"LoadData3DParamsV2<int4b_t> p; p.l1H = 1; p.l1W = p.mExtension = {m}; "
        f"p.channelSize = p.kExtension = {k}; LoadData(a2, a1, p);"
        if image
        else f"for (int i = 0; i < {m // 16}; ++i) LoadData(a2[i * {k // 64} * 1024], a1[i * 1024], "
        f"LoadData2DParams(0, {k // 64}, {m // 16}, 0, 0, false, 0));"
    )
    load_b = (
        f"LoadData(b2, b1, LoadData2DParams(0, {n // 16 * k // 64}, 1, 0, 0, false, 0));"
        if turned
        else f"for (int i = 0; i < {k // 64}; ++i) LoadDataWithTranspose(b2[i * {n * 64}], b1[i * 4096], "
        f"LoadData2dTransposeParams(0, {n // 64}, {k // 64}, 3, 0));"
    )
    # dstGap counts between first fractals: a square of 64 x 64 leaves four of them, one behind the other
    return cube("A B C", NIBBLES.format(a=m * k, b=n * k, m=m, n=n, k=k, load_a=load_a, load_b=load_b))


@pytest.mark.parametrize("image", [False, True], ids=["fractals", "image"])
@pytest.mark.parametrize("turned", [False, True], ids=["B", "Bt"])
def test_numbers_of_four_bits_are_multiplied_exactly(turned: bool, image: bool) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(-8, 8, (32, 128)), rng.integers(-8, 8, (128, 64))
    source = nibble_product(32, 64, 128, turned=turned, image=image)
    done = run(source, packed(nz(a, 64)), packed(nz(b.T if turned else b, 64)), np.zeros((32, 64), np.int32))
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], a @ b)


def test_what_lies_beside_a_last_number_of_four_bits_is_not_taken_for_it() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(-8, 8, (32, 128)), rng.integers(-8, 8, (128, 64))
    source = nibble_product(32, 64, 128, turned=False, image=False)
    source = source.replace("MmadParams(32, 64, 128,", "MmadParams(32, 64, 70,").replace(
        "DataCopy(b1, gb, 8192);", "DataCopy(b1, gb, DataCopyParams(1, 70, 0, 0));"
    )  # of 128 rows of B 70 are there
    done = run(source, packed(nz(a, 64)), packed(nz(b, 64)), np.zeros((32, 64), np.int32))
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], a[:, :70] @ b[:70])


SPARSE = """GlobalTensor<int8_t> ga, gb; GlobalTensor<uint8_t> gi; GlobalTensor<int32_t> gc;
ga.SetGlobalBuffer((__gm__ int8_t*)A); gb.SetGlobalBuffer((__gm__ int8_t*)B); gi.SetGlobalBuffer((__gm__ uint8_t*)I);
gc.SetGlobalBuffer((__gm__ int32_t*)C);
LocalTensor<int8_t> a1(TPosition::A1, 0, {a}), b1(TPosition::B1, 65536, {b});
LocalTensor<int8_t> a2(TPosition::A2, 0, {a}), b2(TPosition::B2, 0, {b});
LocalTensor<uint8_t> i1(TPosition::B1, 131072, {b} / 4);
auto c = l0c.Get<int32_t>();
DataCopy(a1, ga, {a}); DataCopy(b1, gb, {b}); DataCopy(i1, gi, {b} / 4);
ORDER(MTE2_MTE1);
for (int i = 0; i < {m} / 16; ++i)
  LoadData(a2[i * {k} * 16], a1[i * 512], LoadData2DParams(0, {k} / 32, {m} / 16, 0, 0, false, 0));
LoadDataWithSparse(b2, b1, i1, LoadData2DParams(0, {b} / 512, 0, 0, 0, false, 0));
ORDER(MTE1_M);
MmadWithSparse(c, a2, b2, MmadParams({m}, {n}, {k}, 0, false, true));
ORDER(M_FIX);
Fixpipe<int32_t, int32_t, CFG_ROW_MAJOR>(gc, c, FixpipeParamsV220({n}, {m}, {m}, {n}, false));
"""


def test_a_sparse_product_takes_two_of_every_four() -> None:
    m, n, k = 32, 48, 128
    rng = np.random.default_rng(5)
    a = rng.integers(-128, 128, (m, k)).astype(np.int8)
    places = np.sort(np.argsort(rng.random((n, k // 4, 4)), axis=-1)[..., :2], axis=-1)  # which two of each four are kept
    kept = rng.integers(-128, 128, (n, k // 4, 2)).astype(np.int8)
    whole = np.zeros((n, k // 4, 4), np.int8)
    np.put_along_axis(whole, places, kept, -1)
    indices = (places - [0, 1]).reshape(n, k // 8, 4)  # the first counts from element 0, the second from element 1
    table = (indices << [0, 2, 4, 6]).sum(-1).astype(np.uint8)
    source = cube("A B I C", SPARSE.format(a=m * k, b=n * k // 2, m=m, n=n, k=k))
    done = run(source, nz(a, 32), nz(kept.reshape(n, k // 2), 32), nz(table, 8), np.zeros((m, n), np.int32))
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], a.astype(np.int64) @ whole.reshape(n, k).T.astype(np.int64))


def hf32(x: np.ndarray, to_zero: bool) -> np.ndarray:
    """11 bits of mantissa, to the nearest; ties to even or to zero."""
    bits = x.view(np.uint32).astype(np.uint64)
    half = np.uint64(1 << 11) - np.uint64(1) + (np.uint64(0) if to_zero else bits >> np.uint64(12) & np.uint64(1))
    return ((bits + half) & np.uint64(0xFFFFF000)).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("to_zero", [False, True])
def test_hf32_rounds_the_operands_and_not_the_sums(to_zero: bool) -> None:
    from tests.simulator.kernels import matmul

    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 8), (8, 16)))
    a[0, 0] = np.float32(1 + 2.0**-12)  # half way between two numbers of HF32
    source = matmul(16, 16, 8, "float").replace(
        "Mmad(c,", f"SetHF32Mode(true); SetHF32TransMode({str(to_zero).lower()}); Mmad(c,"
    )
    done = run(source, a, b, np.zeros((16, 16), np.float32))
    assert done.ok, done
    expected = np.zeros((16, 16), np.float32)
    for p in range(8):
        expected += (hf32(a, to_zero)[:, p, None] * hf32(b, to_zero)[p]).astype(np.float32)
    np.testing.assert_allclose(done.outputs[0], expected, rtol=1e-6, atol=1e-6)


# ---- moves --------------------------------------------------------------------------------------------------------------------


def test_l1_goes_to_gm() -> None:
    x = np.arange(512, dtype=np.float32)
    body = f"""{gm("X Z", "float", 512)} auto t = l1.Get<float>();
DataCopy(t, gmX, 512); ORDER(MTE2_MTE3); DataCopy(gmZ, t, 512);"""
    done = run(cube("X Z", body), x, np.zeros(512, np.float32))
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], x)


def test_l1_to_gm_is_not_ordered_by_itself() -> None:
    body = f"""{gm("X Z", "float", 512)} auto t = l1.Get<float>(); DataCopy(t, gmX, 512); DataCopy(gmZ, t, 512);"""
    done = run(cube("X Z", body), np.zeros(512, np.float32), np.zeros(512, np.float32))
    assert [f.kind for f in done.findings] == ["race"]
    assert "MTE2_MTE3" in done.findings[0].message


def test_fractals_come_from_gm_straight_to_the_operands() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 16, 16)).astype(np.float16)
    body = f"""{gm("A B", "half", 256)} {gm("C", "float", 256)}
auto a2 = l0a.Get<half>(), b2 = l0b.Get<half>(); auto c = l0c.Get<float>();
LoadData(a2, gmA, LoadData2DParams(0, 1, 1, 0, 0, false, 0)); LoadData(b2, gmB, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
ORDER(MTE2_M);
Mmad(c, a2, b2, MmadParams(16, 16, 16, 0, false, true));
ORDER(M_FIX);
Fixpipe<float, float, CFG_ROW_MAJOR>(gmC, c, FixpipeParamsV220(16, 16, 16, 16, false));"""
    done = run(cube("A B C", body), a, b.T.copy(), np.zeros((16, 16), np.float32))
    assert done.ok, done
    np.testing.assert_allclose(done.outputs[0], a.astype(np.float32) @ b.astype(np.float32), rtol=1e-5, atol=1e-5)


def test_a_matrix_in_blocks_of_columns_is_stored_in_rows() -> None:
    x = np.arange(3 * 8 * 16, dtype=np.float16).reshape(3, 8, 16)
    body = "DataCopy(x, gmA, 384); ORDER(MTE2_MTE3); DataCopy(gmB, x, Nz2NdParamsFull(1, 8, 48, 1, 8, 48, 1));"
    done = run_vector(vector("A B", body, "half", 384), x, np.zeros((8, 48), np.float16))
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0].reshape(8, 3, 16), x.swapaxes(0, 1))


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 1e-40, 3e38], ids=str)
def test_special_numbers_leave_l0c_as_halves_as_they_round(special: float) -> None:
    a = np.zeros((16, 16), np.float32)
    a[0, 0] = special
    body = f"""{gm("A B", "float", 256)} {gm("C", "half", 256)}
auto a1 = l1.GetWithOffset<float>(256, 0); auto b1 = l1.GetWithOffset<float>(256, 4096);
auto a2 = l0a.Get<float>(); auto b2 = l0b.Get<float>(); auto c = l0c.Get<float>();
DataCopy(a1, gmA, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0)); DataCopy(b1, gmB, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0));
ORDER(MTE2_MTE1);
{load_a(16, 16, "float", False)} {load_b(16, 16, "float", True)}
ORDER(MTE1_M);
Mmad(c, a2, b2, MmadParams(1 + 15, 16, 16, 0, false, true));
ORDER(M_FIX);
Fixpipe<half, float, CFG_ROW_MAJOR>(gmC, c, FixpipeParamsV220(16, 16, 16, 16, false, QuantMode_t::F322F16, 0, 1, 0, 0, 0));"""
    done = run(cube("A B C", body), a, np.eye(16, dtype=np.float32), np.zeros((16, 16), np.float16))
    assert done.ok, done
    with np.errstate(over="ignore", invalid="ignore"):
        expected = (a @ np.eye(16, dtype=np.float32)).astype(np.float16)
    np.testing.assert_array_equal(done.outputs[0], expected)
