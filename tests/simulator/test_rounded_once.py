"""Loops over many elements at once give the numbers that one element after the other gives."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest

from tests.simulator.kernels import CUBE, UB, gm, kernel, run_vector, vector
from tile_eg.simulator.run import simulate

MANY = 4096


@cache
def halves() -> np.ndarray:
    """Numbers of all sizes, subnormal ones, zeros, infinities and NaN."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 65536, MANY, np.uint16).view(np.float16)


@cache
def floats() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.integers(0, 2**32, MANY, np.uint32).view(np.float32)


def same(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))
    np.testing.assert_array_equal(got[numbers], want[numbers])


def binary(instruction: str, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    dtype = "half" if a.dtype == np.float16 else "float"
    b = a[::-1].copy()
    body = f"DataCopy(x, gmX, {MANY}); DataCopy(y, gmY, {MANY}); ORDER(MTE2_V);\n{instruction}(z, x, y, {MANY}); ORDER(V_MTE3);"
    source = vector("X Y Z", f"{body} DataCopy(gmZ, z, {MANY});", dtype, MANY)
    return run_vector(source, a, b, np.zeros_like(a)).outputs[0], a, b


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("instruction", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("numbers", [halves, floats])
def test_a_result_is_the_exact_one_rounded(instruction: str, numbers: object) -> None:
    got, a, b = binary(instruction, numbers())  # type: ignore[operator]
    meant = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}[instruction]
    with np.errstate(all="ignore"):
        wide = meant(a.astype(np.float64), b.astype(np.float64))
        same(got, wide.astype(a.dtype))


def test_a_scalar_between_two_halves_is_not_rounded_before_the_sum() -> None:
    """0.1f is no half: half(x + 0.1f), not half(x + half(0.1f)), and not by way of a rounded float."""
    a = halves()
    body = f"DataCopy(x, gmX, {MANY}); ORDER(MTE2_V); Adds(z, x, half(0.1f), {MANY}); ORDER(V_MTE3); DataCopy(gmZ, z, {MANY});"
    got = run_vector(vector("X Z", body, "half", MANY), a, np.zeros_like(a)).outputs[0]
    with np.errstate(all="ignore"):
        same(got, (a.astype(np.float64) + np.float64(np.float16(0.1))).astype(np.float16))


@pytest.mark.slow
def test_every_half_becomes_its_float_and_every_float_the_nearest_half() -> None:
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    each = 16384
    body = f"""{gm("X", "half")} {gm("Y", "float")} {gm("Z", "half")} {UB}
auto h = ub.GetWithOffset<half>({each}, 0); auto f = ub.GetWithOffset<float>({each}, {each * 2});
for (int i = 0; i < 4; ++i) {{
  DataCopy(h, gmX[i * {each}], {each}); ORDER(MTE2_V);
  Cast(f, h, RoundMode::CAST_NONE, {each}); ORDER(V_MTE3); DataCopy(gmY[i * {each}], f, {each}); ORDER(MTE3_V);
  Muls(f, f, 1.0004f, {each}); PipeBarrier<PIPE_V>();
  Cast(h, f, RoundMode::CAST_NONE, {each}); ORDER(V_MTE3); DataCopy(gmZ[i * {each}], h, {each}); ORDER(MTE3_MTE2);
}}"""
    y, z = np.zeros(65536, np.float32), np.zeros(65536, np.float16)
    done = simulate(kernel("X Y Z", "AIV_ONLY", body), "k", [every, y, z], kernel_type="AIV_ONLY", launch=1, outputs=[1, 2])
    assert done.ok
    with np.errstate(all="ignore"):
        same(done.outputs[0], every.astype(np.float32))
        same(done.outputs[1], (every.astype(np.float32) * np.float32(1.0004)).astype(np.float16))


def product(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    """a (16 x k) times b (k x 16), both put into their fractals by LoadData."""
    c0 = 32 // a.itemsize
    k = a.shape[1]
    left = a.reshape(16, k // c0, c0).transpose(1, 0, 2).copy()
    right = b.T.reshape(16, k // c0, c0).transpose(1, 0, 2).copy()
    n = left.size
    source = kernel(
        "A B C",
        "AIC_ONLY",
        f"""{gm("A B", dtype)} {gm("C")} {CUBE}
auto a1 = l1.GetWithOffset<{dtype}>({n}, 0); auto b1 = l1.GetWithOffset<{dtype}>({n}, 65536);
auto a2 = l0a.Get<{dtype}>(); auto b2 = l0b.Get<{dtype}>(); auto c = l0c.Get<float>();
DataCopy(a1, gmA, {n}); DataCopy(b1, gmB, {n}); ORDER(MTE2_MTE1);
LoadData(a2, a1, LoadData2DParams(0, {k // c0}, 1, 0, 0, false, 0));
LoadData(b2, b1, LoadData2DParams(0, {k // c0}, 1, 0, 0, false, 0)); ORDER(MTE1_M);
Mmad(c, a2, b2, MmadParams(16, 16, {k}, 0, false, true)); ORDER(M_FIX);
Fixpipe<float, float, CFG_ROW_MAJOR>(gmC, c, FixpipeParamsV220(16, 16, 16, 16, false));
""",
    )
    out = np.zeros((16, 16), np.float32)
    done = simulate(source, "k", [left, right, out], kernel_type="AIC_ONLY", launch=1, outputs=[2])
    assert done.ok, done.findings
    return done.outputs[0]


def in_order(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sums in float, one product after the other, each rounded and then added."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    with np.errstate(all="ignore"):
        for p in range(a.shape[1]):
            total += a[:, p, None].astype(np.float32) * b[None, p].astype(np.float32)
    return total


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("dtype", ["half", "bfloat16_t", "float"])
def test_sums_of_products_go_in_the_order_of_k(dtype: str) -> None:
    kind = {"half": np.float16, "bfloat16_t": ml_dtypes.bfloat16, "float": np.float32}[dtype]
    rng = np.random.default_rng(2)
    a, b = ((rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape)).astype(kind) for shape in ((16, 64), (64, 16)))
    same(product(a, b, dtype), in_order(a, b))


def test_a_product_of_bfloat16_that_overflows_is_infinite_before_it_is_added() -> None:
    a, b = np.zeros((16, 16), ml_dtypes.bfloat16), np.zeros((16, 16), ml_dtypes.bfloat16)
    a[:, 0], b[0] = -3e38, 1
    a[:, 1], b[1] = 2e38, 2
    assert np.isinf(product(a, b, "bfloat16_t")).all()
