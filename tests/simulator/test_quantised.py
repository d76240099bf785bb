"""Products of whole numbers, biases, and the conversions on the way out of L0C, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.kernels import CUBE, gm, kernel, load_a, load_b
from tile_eg.simulator.run import Simulation, simulate

pytestmark = pytest.mark.slow(but=4)

M, N, K = 48, 64, 96
OUT = {"int32_t": np.int32, "half": np.float16, "int8_t": np.int8, "uint8_t": np.uint8}


def product(out: str, way: str, *, bias: bool = False, table: bool | str = False, turned: bool = True) -> str:
    """C = A @ B of int8_t, B as N x K, or K x N and turned on its way to L0B. `way` is the text of the Fixpipe parameters."""
    load_b = (
        f"LoadData(b2, b1, LoadData2DParams(0, {N // 16 * K // 32}, 1, 0, 0, false, 0));"
        if turned
        else f"for (int i = 0; i < {K // 32}; ++i) LoadDataWithTranspose(b2[i * {N * 32}], b1[i * 1024], "
        f"LoadData2dTransposeParams(0, {N // 32}, {K // 32}, 1, 0));"
    )
    rows, cols = (N, K) if turned else (K, N)
    return kernel(
        "A B S P C",
        "AIC_ONLY",
        f"""{gm("A B", "int8_t", M * K + N * K)} {gm("S", "int32_t", N)} {gm("P", "uint64_t", N)} {gm("C", out, M * N)}
{CUBE}
auto a1 = l1.GetWithOffset<int8_t>({M * K}, 0); auto b1 = l1.GetWithOffset<int8_t>({N * K}, 65536);
auto s1 = l1.GetWithOffset<int32_t>({N}, 131072); auto p1 = l1.GetWithOffset<uint64_t>({N}, 139264);
auto a2 = l0a.Get<int8_t>(); auto b2 = l0b.Get<int8_t>(); auto c = l0c.Get<int32_t>();
LocalTensor<int32_t> bt(TPosition::C2, 0, {N});
DataCopy(a1, gmA, Nd2NzParams(1, {M}, {K}, 0, {K}, {M}, 1, 0));
DataCopy(b1, gmB, Nd2NzParams(1, {rows}, {cols}, 0, {cols}, {rows}, 1, 0));
DataCopy(s1, gmS, {N}); DataCopy(p1, gmP, {N});
ORDER(MTE2_MTE1); ORDER(MTE2_FIX);
for (int i = 0; i < {M // 16}; ++i)
  LoadData(a2[i * {K // 32 * 512}], a1[i * 512], LoadData2DParams(0, {K // 32}, {M // 16}, 0, 0, false, 0));
{load_b}
DataCopy(bt, s1, {N});
ORDER(MTE1_M);
Mmad(c, a2, b2{", bt" if bias else ""}, MmadParams({M}, {N}, {K}, 0, false, {str(not bias).lower()}));
ORDER(M_FIX);
FixpipeParamsV220 way({way});
{table if isinstance(table, str) else ""}
Fixpipe<{out}, int32_t, CFG_ROW_MAJOR>(gmC, c{", p1" if table is True else ""}, way);
""",
    )


def scale(value: float, offset: int = 0, signed: bool = True) -> int:
    return int(np.float32(value).view(np.uint32)) | (offset & 0x1FF) << 37 | int(signed) << 46


def way(quant: str, *, relu: bool = False, deq: int = 0) -> str:
    return f"{N}, {M}, {M}, {N}, {str(relu).lower()}, QuantMode_t::{quant}, {deq}ll, 1, 0, 0, 0"


def operands(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((M, K), (K, N)))
    return a, b, rng.integers(-(10**5), 10**5, N, np.int32)


def run(source: str, out: str, *, turned: bool = True, table: np.ndarray | None = None) -> Simulation:
    a, b, bias = operands()
    scales = np.zeros(N, np.uint64) if table is None else table
    arrays = [a, b.T if turned else b, bias, scales, np.zeros((M, N), OUT[out])]
    return simulate(source, "k", arrays, kernel_type="AIC_ONLY", launch=1, outputs=[4])


def exact() -> np.ndarray:
    a, b, _ = operands()
    return a.astype(np.int64) @ b.astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("turned", [False, True], ids=["B", "Bt"])
def test_bytes_are_multiplied_exactly_from_either_layout(turned: bool) -> None:
    done = run(product("int32_t", way("NoQuant"), turned=turned), "int32_t", turned=turned)
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], exact())


@pytest.mark.slow
def test_sums_start_at_the_bias_of_their_column() -> None:
    done = run(product("int32_t", way("NoQuant", relu=True), bias=True), "int32_t")
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], np.maximum(exact() + operands()[2], 0))


def cut(value: float) -> np.float32:
    """A scale as the hardware holds it: 10 bits of mantissa."""
    return (np.float32(value).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.slow
def test_scales_that_were_set_before_are_those_of_the_next_fixpipe() -> None:
    given = f"LocalTensor<uint64_t> fb(TPosition::C2PIPE2GM, 0, {N}); DataCopy(fb, p1, {N}); SetFixPipeConfig(fb);"
    values = np.linspace(1e-4, 3e-3, N)
    table = np.array([scale(v) for v in values], np.uint64)
    done = run(product("half", way("VDEQF16"), table=given), "half", table=table)
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], (exact() * [np.float64(cut(v)) for v in values]).astype(np.float16))


def test_biases_of_16_bits_are_floats_in_their_table() -> None:
    n = 64
    source = kernel(
        "A B S C",
        "AIC_ONLY",
        f"""{gm("A B S", "half", 16 * n)} {gm("C", "float", 16 * n)}
{CUBE}
auto a1 = l1.GetWithOffset<half>(256, 0); auto b1 = l1.GetWithOffset<half>({16 * n}, 65536);
auto s1 = l1.GetWithOffset<half>({n}, 131072); auto a2 = l0a.Get<half>(); auto b2 = l0b.Get<half>(); auto c = l0c.Get<float>();
LocalTensor<float> bt(TPosition::C2, 0, {n});
DataCopy(a1, gmA, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0)); DataCopy(b1, gmB, Nd2NzParams(1, {n}, 16, 0, 16, {n}, 1, 0));
DataCopy(s1, gmS, {n}); ORDER(MTE2_MTE1);
LoadData(a2, a1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
LoadData(b2, b1, LoadData2DParams(0, {n // 16}, 1, 0, 0, false, 0));
DataCopy(bt, s1, DataCopyParams(1, {n // 32}, 0, 0)); ORDER(MTE1_M);
Mmad(c, a2, b2, bt, MmadParams(16, {n}, 16, 0, false, false)); ORDER(M_FIX);
Fixpipe<float, float, CFG_ROW_MAJOR>(gmC, c, FixpipeParamsV220({n}, 16, 16, {n}, false));
""",
    )
    rng = np.random.default_rng(0)
    a, b, s = (rng.integers(-8, 9, shape).astype(np.float16) for shape in ((16, 16), (n, 16), (n,)))
    done = simulate(source, "k", [a, b, s, np.zeros((16, n), np.float32)], kernel_type="AIC_ONLY", launch=1, outputs=[3])
    assert done.ok, done
    np.testing.assert_array_equal(done.outputs[0], a.astype(np.float32) @ b.T.astype(np.float32) + s.astype(np.float32))


@pytest.mark.parametrize("relu", [False, True])
def test_a_scale_turns_whole_numbers_into_halves(relu: bool) -> None:
    done = run(product("half", way("DEQF16", relu=relu, deq=scale(0.0123))), "half")
    assert done.ok, done
    expected = exact() * np.float64(cut(0.0123))
    np.testing.assert_array_equal(done.outputs[0], (np.maximum(expected, 0) if relu else expected).astype(np.float16))


@pytest.mark.parametrize(("out", "offset"), [("int8_t", -7), ("uint8_t", 20)])
def test_each_column_has_its_scale(out: str, offset: int) -> None:
    values = np.linspace(1e-4, 3e-3, N)
    table = np.array([scale(v, offset, out == "int8_t") for v in values], np.uint64)
    done = run(product(out, way("VREQ8"), table=True), out, table=table)
    assert done.ok, done
    info = np.iinfo(OUT[out])
    rounded = np.rint(np.clip(exact() * np.array([cut(v) for v in values], np.float64), -256, 255)) + offset
    np.testing.assert_array_equal(done.outputs[0], np.clip(rounded, info.min, info.max).astype(OUT[out]))


def test_a_mode_that_does_not_fit_its_types_is_named() -> None:
    done = run(product("half", way("F322F16")), "half")
    assert [f.kind for f in done.findings] == ["field"]
    assert "DEQF16" in done.findings[0].message


def from_floats(out: str, quant: str, deq: int, relu: bool) -> str:
    """Sixteen rows of float through L0C: A times the identity, on its way out as `out`."""
    return kernel(
        "A B C",
        "AIC_ONLY",
        f"""{gm("A B", "float", 256)} {gm("C", out, 256)}
{CUBE}
auto a1 = l1.GetWithOffset<float>(256, 0); auto b1 = l1.GetWithOffset<float>(256, 4096);
auto a2 = l0a.Get<float>(); auto b2 = l0b.Get<float>(); auto c = l0c.Get<float>();
DataCopy(a1, gmA, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0)); DataCopy(b1, gmB, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0));
ORDER(MTE2_MTE1);
{load_a(16, 16, "float", False)} {load_b(16, 16, "float", True)}
ORDER(MTE1_M);
Mmad(c, a2, b2, MmadParams(16, 16, 16, 0, false, true));
ORDER(M_FIX);
FixpipeParamsV220 way(16, 16, 16, 16, {str(relu).lower()}, QuantMode_t::{quant}, {deq}ll, 1, 0, 0, 0);
Fixpipe<{out}, float, CFG_ROW_MAJOR>(gmC, c, way);""",
    )


@settings(max_examples=8, deadline=None)
@given(
    out=st.sampled_from(["int8_t", "uint8_t"]), value=st.floats(2.0**-8, 16, width=32), offset=st.integers(-256, 255),
    relu=st.booleans(), numbers=st.lists(st.floats(-300, 300, width=32), min_size=256, max_size=256),
)  # fmt: skip
def test_floats_become_bytes_by_scale_and_offset(out: str, value: float, offset: int, relu: bool, numbers: list[float]) -> None:
    a, info = np.array(numbers, np.float32).reshape(16, 16), np.iinfo(OUT[out])
    source = from_floats(out, "QF322B8_PRE", scale(value, offset, out == "int8_t"), relu)
    done = simulate(
        source,
        "k",
        [a, np.eye(16, dtype=np.float32), np.zeros((16, 16), OUT[out])],
        kernel_type="AIC_ONLY",
        launch=1,
        outputs=[2],
    )
    assert done.ok, done
    scaled = (np.maximum(a, 0) if relu else a).astype(np.float64) * cut(value)
    expected = np.clip(np.rint(np.clip(scaled, -256, 255)) + offset, info.min, info.max)
    np.testing.assert_array_equal(done.outputs[0], expected.astype(OUT[out]))


@pytest.mark.parametrize(("special", "byte"), [(np.inf, 127), (-np.inf, -128), (np.nan, 0), (1e-45, 0), (-1e30, -128)], ids=str)
def test_a_special_number_becomes_the_nearest_byte(special: float, byte: int) -> None:
    a, ones = np.full((16, 16), special, np.float32), np.zeros((16, 16), np.float32)
    a[:, 1:], ones[0] = 0, 1  # each result is the special number itself
    source = from_floats("int8_t", "QF322B8_PRE", scale(1.0), False).replace(
        load_b(16, 16, "float", True), load_b(16, 16, "float", False)
    )
    done = simulate(source, "k", [a, ones, np.zeros((16, 16), np.int8)], kernel_type="AIC_ONLY", launch=1, outputs=[2])
    assert done.ok, done
    assert done.outputs[0].tolist() == [[byte] * 16] * 16
