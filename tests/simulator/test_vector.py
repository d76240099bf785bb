"""Vector instructions against NumPy: numbers, masks, repeats and strides."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.kernels import TYPES, UB, VECTOR_ADD, gm, kernel, run_vector, vector
from tile_eg.simulator.run import Simulation

N = 256
IN = f"DataCopy(x, gmA, {N}); DataCopy(y, gmB, {N}); ORDER(MTE2_V);"
OUT = f"ORDER(V_MTE3); DataCopy(gmC, z, {N});"


def compute(body: str, a: np.ndarray, b: np.ndarray, dtype: str = "float") -> np.ndarray:
    """z = `body`(x, y) on N elements."""
    run = run_vector(vector("A B C", f"{IN}\n{body}\n{OUT}", dtype, N), a, b, np.zeros_like(a))
    assert run.ok, run
    return run.outputs[0]


def operands(dtype: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 4, N).astype(TYPES[dtype]), rng.uniform(-4, 4, N).astype(TYPES[dtype])


def rounded(exact: np.ndarray, like: np.ndarray) -> np.ndarray:
    return exact.astype(like.dtype)


UNARY = {
    "Exp": np.exp, "Ln": np.log, "Sqrt": np.sqrt, "Abs": np.abs, "Relu": lambda x: np.maximum(x, 0),
}  # fmt: skip
BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Max": np.maximum, "Min": np.minimum}
SCALAR = {"Adds": np.add, "Muls": np.multiply, "Maxs": np.maximum, "Mins": np.minimum}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float", "half"])
def test_elementwise_instructions_round_once(dtype: str) -> None:
    a, b = operands(dtype)
    calls = [f"{name}(z, x, {N});" for name in UNARY] + [f"{name}(z, x, y, {N});" for name in BINARY]
    calls += [f"{name}(z, x, ({dtype})1.5f, {N});" for name in SCALAR]
    wide = [a.astype(np.float64), b.astype(np.float64)]
    exact = [f(wide[0]) for f in UNARY.values()] + [f(*wide) for f in BINARY.values()]
    exact += [f(wide[0], 1.5) for f in SCALAR.values()]
    for call, expected in zip(calls, exact, strict=True):
        np.testing.assert_array_equal(compute(call, a, b, dtype), rounded(expected, a), err_msg=call)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(("dtype", "least", "most"), [("half", 1e-3, 4e-3), ("float", 1e-4, 1e-3)])
@pytest.mark.parametrize("name", ["Reciprocal", "Rsqrt"])
def test_reciprocal_and_rsqrt_are_approximations(name: str, dtype: str, least: float, most: float) -> None:
    a, b = operands(dtype)
    exact = 1 / a.astype(np.float64) if name == "Reciprocal" else 1 / np.sqrt(a.astype(np.float64))
    error = np.abs(compute(f"{name}(z, x, {N});", a, b, dtype) / exact - 1).max()
    assert least < error < most


@pytest.mark.slow
def test_instructions_that_overwrite_their_destination_read_it_too() -> None:
    a, b = operands("float")
    np.testing.assert_allclose(
        compute(f"Duplicate(z, 1.0f, {N}); PipeBarrier<PIPE_V>(); Axpy(z, x, 2.0f, {N});", a, b), 1 + 2 * a, rtol=1e-6
    )
    body = f"Duplicate(z, 1.0f, {N}); PipeBarrier<PIPE_V>(); MulAddDst(z, x, y, {N});"
    np.testing.assert_allclose(compute(body, a, b), 1 + a * b, rtol=1e-5, atol=1e-6)


CAST = kernel(
    "A C",
    "AIV_ONLY",
    f"""{gm("A", "FROM", N)} {gm("C", "TO", N)}
{UB} auto x = ub.GetWithOffset<FROM>({N}, 0); auto z = ub.GetWithOffset<TO>({N}, 65536);
DataCopy(x, gmA, {N}); ORDER(MTE2_V);
Cast(z, x, RoundMode::MODE, {N});
ORDER(V_MTE3); DataCopy(gmC, z, {N});
""",
)


def cast(a: np.ndarray, from_type: str, to_type: str, mode: str, like: np.ndarray) -> np.ndarray:
    source = CAST.replace("FROM", from_type).replace("TO", to_type).replace("MODE", mode)
    run = run_vector(source, a, np.zeros_like(like))
    assert run.ok, run
    return run.outputs[0]


@pytest.mark.slow
@pytest.mark.parametrize(("to_type", "dtype"), [("half", np.float16), ("bfloat16_t", ml_dtypes.bfloat16)])
def test_cast_rint_rounds_ties_to_even(to_type: str, dtype: type) -> None:
    a = np.random.default_rng(0).standard_normal(N).astype(np.float32)
    a[:8] = np.float32(1) + np.arange(8, dtype=np.float32) / 2**11
    result = cast(a, "float", to_type, "CAST_RINT", np.zeros(N, dtype))
    np.testing.assert_array_equal(result.astype(np.float32), a.astype(dtype).astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "function"),
    [("CAST_FLOOR", np.floor), ("CAST_CEIL", np.ceil), ("CAST_TRUNC", np.trunc), ("CAST_RINT", np.rint)],
)
def test_cast_to_integers_rounds_as_its_mode_says(mode: str, function: np.ufunc) -> None:
    a = np.linspace(-8, 8, N, dtype=np.float32)
    a[0] = 3e9
    expected = np.clip(function(a.astype(np.float64)), -(2**31), 2**31 - 1).astype(np.int32)
    np.testing.assert_array_equal(cast(a, "float", "int32_t", mode, np.zeros(N, np.int32)), expected)


@pytest.mark.slow
def test_a_widening_cast_is_exact() -> None:
    a = np.random.default_rng(0).standard_normal(N).astype(np.float16)
    np.testing.assert_array_equal(cast(a, "half", "float", "CAST_NONE", np.zeros(N, np.float32)), a.astype(np.float32))


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    rows=st.integers(1, 7), cols=st.integers(1, 64), pitch=st.integers(8, 10), times=st.integers(0, 1), seed=st.integers(0, 99)
)
def test_masks_and_strides_touch_their_lanes_only(rows: int, cols: int, pitch: int, times: int, seed: int) -> None:
    """rows of `cols` elements, `pitch` blocks apart; the second operand is one row for all, or a row for each."""
    size = 7 * 80
    tensors = " ".join(f"auto {t} = ub.GetWithOffset<float>({size}, {i * 8192});" for i, t in enumerate("uvw"))
    body = f"""{gm("A B C", elements=size)} {UB} {tensors}
DataCopy(u, gmA, {size}); DataCopy(v, gmB, {size}); Duplicate(w, 7.0f, {size}); PipeBarrier<PIPE_V>(); ORDER(MTE2_V);
Add(w, u, v, {cols}, {rows}, BinaryRepeatParams(1, 1, 1, {pitch}, {pitch}, {pitch * times}));
ORDER(V_MTE3); DataCopy(gmC, w, {size});
"""
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(size).astype(np.float32) for _ in range(2))
    run = run_vector(kernel("A B C", "AIV_ONLY", body), a, b, np.zeros_like(a))
    assert run.ok, run
    expected = np.full(size, 7, np.float32)
    for row in range(rows):
        at, other = row * pitch * 8, row * pitch * 8 * times
        expected[at : at + cols] = a[at : at + cols] + b[other : other + cols]
    np.testing.assert_array_equal(run.outputs[0], expected)


@pytest.mark.slow
def test_a_bit_mask_picks_its_lanes() -> None:
    a, b = operands("float")
    picked = np.array([(0x5A0F >> (i % 16)) & 1 for i in range(64)], bool)
    body = f"uint64_t bits[2] = {{0x5A0F5A0F5A0F5A0F, 0}};\nDuplicate(z, 0.0f, {N}); PipeBarrier<PIPE_V>();\n"
    result = compute(body + "Add(z, x, y, bits, 1, BinaryRepeatParams(1, 1, 1, 8, 8, 8));", a, b)
    np.testing.assert_array_equal(result[:64], np.where(picked, a[:64] + b[:64], 0))


@pytest.mark.slow
def test_brcb_fills_a_block_with_each_element_for_row_broadcasts() -> None:
    a, b = operands("float")
    body = "Brcb(z, x, 1, BrcbRepeatParams(1, 8)); PipeBarrier<PIPE_V>();\n"
    body += "Mul(z, y, z, uint64_t(8), 8, BinaryRepeatParams(1, 1, 1, 1, 1, 1)); Duplicate(z[64], 0.0f, 192);"
    result = compute(body, a, b)
    np.testing.assert_array_equal(result[:64].reshape(8, 8), b[:64].reshape(8, 8) * a[:8, None])


def tree(values: np.ndarray) -> np.ndarray:
    """The sum over neighbours, each step rounded."""
    while values.shape[-1] > 1:
        values = values[..., 0::2] + values[..., 1::2]
    return values[..., 0]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float", "half"])
def test_a_sum_of_rounds_is_a_tree_of_neighbours(dtype: str) -> None:
    a, b = operands(dtype)
    lanes = 64 if dtype == "float" else 128
    body = f"Duplicate(z, ({dtype})0, {N}); PipeBarrier<PIPE_V>(); WholeReduceSum(z, x, {lanes}, {N // lanes}, 1, 1, 8);"
    result = compute(body, a, b, dtype)
    np.testing.assert_array_equal(result[: N // lanes], tree(a.reshape(-1, lanes)))


@pytest.mark.slow
def test_a_maximum_of_rounds_comes_alone_or_with_its_index() -> None:
    a, b = operands("float")
    fill = f"Duplicate(z, 0.0f, {N}); PipeBarrier<PIPE_V>(); "
    rows = a.reshape(4, 64)[:, :50]
    alone = compute(fill + "WholeReduceMax(z, x, 50, 4, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);", a, b)
    np.testing.assert_array_equal(alone[:4], rows.max(1))
    both = compute(fill + "WholeReduceMax(z, x, 50, 4, 1, 1, 8);", a, b)[:8].reshape(4, 2)
    np.testing.assert_array_equal(both[:, 0], rows.max(1))
    np.testing.assert_array_equal(np.ascontiguousarray(both[:, 1]).view(np.uint32), rows.argmax(1))


@pytest.mark.slow
def test_block_reductions_leave_one_value_for_each_block() -> None:
    a, b = operands("float")
    result = compute(f"Duplicate(z, 0.0f, {N}); PipeBarrier<PIPE_V>(); BlockReduceMin(z, x, 4, 64, 1, 1, 8);", a, b)
    np.testing.assert_array_equal(result[:32], a.reshape(32, 8).min(1))


@pytest.mark.slow
def test_a_reduction_of_everything_uses_its_scratch() -> None:
    a, b = operands("float")
    body = f"Duplicate(z, 0.0f, {N}); PipeBarrier<PIPE_V>(); ReduceMax(z, y, x, {N}, true); ReduceSum(z[8], y, x, {N});"
    result = compute(body.replace("ReduceSum", "PipeBarrier<PIPE_V>(); ReduceSum"), a, b)
    assert result[0] == b.max()
    assert result[1:2].view(np.uint32)[0] == b.argmax()
    np.testing.assert_allclose(result[8], b.sum(), rtol=1e-5)


@pytest.mark.slow
def test_compare_and_select_pick_elements() -> None:
    a, b = operands("float")
    body = f"""auto bits = ub.GetWithOffset<uint8_t>({N // 8}, 188416 - 256);
Compare(bits, x, y, CMPMODE::GT, {N}); PipeBarrier<PIPE_V>();
Select(z, bits, x, y, SELMODE::VSEL_TENSOR_TENSOR_MODE, {N});"""
    source = vector("A B C", f"{IN}\n{body}\n{OUT}", "float", N).replace("196608", "188416")
    run = run_vector(source, a, b, np.zeros_like(a))
    assert run.ok, run
    np.testing.assert_array_equal(run.outputs[0], np.maximum(a, b))


def test_a_tiled_vector_addition_with_two_slots_overlaps_its_copies() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(8192).astype(np.float32) for _ in range(2))
    run = run_vector(VECTOR_ADD, a, b, np.zeros_like(a))
    assert run.ok, run
    np.testing.assert_array_equal(run.outputs[0], a + b)
    assert run.counts.bytes == {"GM->UB": 65536, "UB->GM": 32768, "vector": 32768}


PAD = kernel(
    "A C",
    "AIV_ONLY",
    f"""{gm("A", "half", 1000)} {gm("C", "half", 1000)} {UB} auto x = ub.GetWithOffset<half>(512, 0);
DataCopyPad(x, gmA[3], DataCopyExtParams(ROWS, COLS * 2, (40 - COLS) * 2, 1, 0), DataCopyPadExtParams<half>(PAD));
ORDER(MTE2_V); Adds(x, x, (half)1.0f, TOUCHED); ORDER(V_MTE3);
DataCopyPad(gmC[5], x, DataCopyExtParams(ROWS, TOUCHED * 2, 1, (50 - TOUCHED) * 2, 0));
""",
)


def padded(rows: int, cols: int, pad: str, touched: int) -> tuple[Simulation, np.ndarray, np.ndarray]:
    a = np.arange(1000, dtype=np.float16)
    source = PAD.replace("ROWS", str(rows)).replace("COLS", str(cols)).replace("TOUCHED", str(touched)).replace("PAD", pad)
    run = run_vector(source, a, np.zeros(1000, np.float16))
    return run, a, np.lib.stride_tricks.as_strided(run.outputs[0][5:], (rows, cols), (100, 2))


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(rows=st.integers(1, 7), cols=st.integers(1, 40))
def test_rows_of_any_length_go_in_and_out(rows: int, cols: int) -> None:
    run, a, result = padded(rows, cols, "false, 0, 0, (half)0.0f", cols)
    assert run.ok, run
    expected = np.lib.stride_tricks.as_strided(a[3:], (rows, cols), (80, 2)).copy()
    expected[0] += 1
    np.testing.assert_array_equal(result, expected)


@pytest.mark.slow
def test_padding_that_is_asked_for_but_given_no_value_holds_nothing() -> None:
    run, _, _ = padded(1, 10, "false, 0, 2, (half)0.0f", 12)
    assert [f.kind for f in run.findings] == ["uninitialised"]


@pytest.mark.slow
def test_padding_with_a_value_may_be_read() -> None:
    run, _, _ = padded(1, 10, "true, 0, 2, (half)0.0f", 12)
    assert run.ok, run
