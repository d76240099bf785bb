"""Ready-made functions of the high-level API: their numbers, their temporary buffers, and those that are not there."""

from __future__ import annotations

from collections.abc import Callable
from math import erf

import numpy as np
import pytest

from tests.simulator.kernels import gm, kernel, run_vector
from tile_eg.simulator.run import Simulation

N = 208  # no multiple of what is computed at a time
X = np.concatenate([np.linspace(-6, 6, N - 4), [-40, 40, 0, -0.0]]).astype(np.float32)


def exact_gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def faster_gelu_v2(x: np.ndarray) -> np.ndarray:
    return x * (np.sign(x) * (0.5 - 0.1444 * (np.minimum(np.abs(0.7071 * x), 1.769) - 1.769) ** 2) + 0.5)


MEANING: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Erf": np.vectorize(erf),
    "Gelu": exact_gelu,
    "FasterGelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "FasterGeluV2": faster_gelu_v2,
}
LEAST = {
    ("Tanh", "float"): 128,
    ("Tanh", "half"): 256,
    ("Sigmoid", "float"): 128,
    ("Erf", "float"): 384,
    ("Erf", "half"): 512,
    ("Gelu", "float"): 256,
    ("Gelu<half, true>", "half"): 384,
    ("FasterGelu", "half"): 64,
    ("FasterGeluV2", "float"): 384,
}


def applied(call: str, dtype: str, tmp: int) -> Simulation:
    """The call on X, with a temporary buffer of so many bytes."""
    body = f"""{gm("A B", dtype, N)}
LocalTensor<{dtype}> a(TPosition::VECCALC, 0, {N}), b(TPosition::VECCALC, 1024, {N});
LocalTensor<uint8_t> tmp(TPosition::VECCALC, 2048, {tmp});
DataCopy(a, gmA, {N}); ORDER(MTE2_V);
{call}
ORDER(V_MTE3); DataCopy(gmB, b, {N});
"""
    x = X.astype(np.float16 if dtype == "half" else np.float32)
    return run_vector(kernel("A B", "AIV_ONLY", body), x, np.zeros_like(x))


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(("name", "dtype"), LEAST)
def test_a_function_in_the_least_temporary_buffer_computes_what_it_means(name: str, dtype: str) -> None:
    run = applied(f"{name}(b, a, tmp, {N});", dtype, LEAST[name, dtype])
    assert run.ok, run
    x = X.astype(np.float16 if dtype == "half" else np.float32).astype(np.float64)
    meant = MEANING[name.partition("<")[0]](x)
    close = 2e-6 if dtype == "float" else 4e-3 if name == "FasterGelu" else 1e-3
    np.testing.assert_allclose(run.outputs[0].astype(np.float64), meant, rtol=close, atol=close)


WITHOUT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Silu(b, a, {n})": lambda x: x / (1 + np.exp(-x)),
    "Swish(b, a, {n}, {t}(0.5))": lambda x: x / (1 + np.exp(-x / 2)),
    "ClampMax(b, a, {t}(2), {n})": lambda x: np.minimum(x, 2),
    "ClampMin(b, a, tmp, {t}(-3), {n})": lambda x: np.maximum(x, -3),
    "Abs(a, a, {n}); PipeBarrier<PIPE_V>(); Adds(a, a, {t}(1), {n}); Log(b, a)": lambda x: np.log(np.abs(x) + 1),
    "Abs(a, a, {n}); PipeBarrier<PIPE_V>(); Adds(a, a, {t}(1), {n}); Log10(b, a, {n})": lambda x: np.log10(np.abs(x) + 1),
    "Abs(a, a, {n}); PipeBarrier<PIPE_V>(); Adds(a, a, {t}(1), {n}); Log2(b, a, tmp)": lambda x: np.log2(np.abs(x) + 1),
    "Adds(c, a, {t}(1), {n}); SwiGLU(b, c, a, 1.0f, tmp, {n})": lambda x: (x + 1) * x / (1 + np.exp(-x)),
}


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("dtype", ["float", "half"])
@pytest.mark.parametrize("call", WITHOUT)
def test_a_function_of_each_element_computes_what_it_means(call: str, dtype: str) -> None:
    given = f"LocalTensor<{dtype}> c(TPosition::VECCALC, 4096, {N}); "
    run = applied(given + call.format(n=N, t=dtype) + ";", dtype, 2048)
    assert run.ok, run
    x = X.astype(np.float16 if dtype == "half" else np.float32).astype(np.float64)
    close = 3e-6 if dtype == "float" else 4e-3
    np.testing.assert_allclose(run.outputs[0].astype(np.float64), WITHOUT[call](x), rtol=close, atol=close)


@pytest.mark.slow
def test_a_source_that_is_read_again_must_not_be_written_over() -> None:
    assert "Silu reads its source after its destination is written" in str(applied(f"Silu(a, a, {N});", "float", 32))


@pytest.mark.slow
def test_a_temporary_buffer_that_is_too_small_is_told_with_the_size_that_it_needs() -> None:
    run = applied(f"Erf(b, a, tmp, {N});", "float", 352)
    assert not run.ok
    assert "Erf has a temporary buffer of 352 bytes, and needs 384 at least" in str(run)


def test_more_elements_than_the_source_has_are_told() -> None:
    run = applied("Sigmoid(b, a, tmp, 256);", "float", 1024)
    assert f"Sigmoid is to compute 256 elements, and its destination has {N}" in str(run)


@pytest.mark.slow
def test_without_a_temporary_buffer_what_the_pipe_has_left_is_taken() -> None:
    body = f"""{gm("A B", "float", N)} TPipe pipe; TBuf<TPosition::VECCALC> x, y;
pipe.InitBuffer(x, {N * 4}); pipe.InitBuffer(y, {N * 4});
auto a = x.Get<float>(), b = y.Get<float>();
DataCopy(a, gmA, {N}); ORDER(MTE2_V); Tanh(b, a); ORDER(V_MTE3); DataCopy(gmB, b, {N});
"""
    run = run_vector(kernel("A B", "AIV_ONLY", body), X, np.zeros_like(X))
    assert run.ok, run
    np.testing.assert_allclose(run.outputs[0], np.tanh(X), rtol=2e-6, atol=2e-6)


@pytest.mark.slow
def test_without_a_temporary_buffer_and_without_a_pipe_the_way_out_is_told() -> None:
    assert "the kernel has no TPipe: give it a LocalTensor<uint8_t>" in str(applied(f"Tanh(b, a, {N});", "float", 32))


def broadcast(dtype: str, given: tuple[int, int], wanted: tuple[int, int], tmp: int, axis: int) -> tuple[Simulation, np.ndarray]:
    """Numbers of the one shape broadcast to the other, with a temporary buffer of so many bytes; and what is meant."""
    source, result = int(np.prod(given)), int(np.prod(wanted))
    bytes_ = np.dtype({"half": "f2", "float": "f4", "int8_t": "i1"}[dtype]).itemsize
    room, out = -(-source * bytes_ // 512) * 512, -(-result * bytes_ // 32) * 32 // bytes_
    body = f"""{gm("A", dtype, room // bytes_)} {gm("B", dtype, out)}
LocalTensor<{dtype}> a(TPosition::VECCALC, 0, {room // bytes_}), b(TPosition::VECCALC, {room}, {out});
LocalTensor<uint8_t> tmp(TPosition::VECCALC, 131072, {tmp});
uint32_t wanted[] = {{{wanted[0]}, {wanted[1]}}}, given[] = {{{given[0]}, {given[1]}}};
DataCopy(a, gmA, {room // bytes_}); ORDER(MTE2_V);
Broadcast<{dtype}, 2, {axis}>(b, a, wanted, given, tmp);
ORDER(V_MTE3); DataCopyExtParams all(1, {result * bytes_}, 0, 0, 0); DataCopyPad(gmB, b, all);
"""
    x = np.random.default_rng(0).integers(-100, 100, room // bytes_).astype({2: "f2", 4: "f4", 1: "i1"}[bytes_])
    run = run_vector(kernel("A B", "AIV_ONLY", body), x, np.zeros(result, x.dtype))
    return run, np.broadcast_to(x[:source].reshape(given), wanted)


@pytest.mark.few(4)
@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("dtype", "given", "wanted", "tmp", "axis"),
    [
        ("float", (19, 1), (19, 16), 256, 1),  # 8 rows at a time
        ("float", (19, 1), (19, 13), 768, 1),  # rows that are no whole blocks
        ("half", (33, 1), (33, 48), 512, 1),
        ("half", (1, 32), (11, 32), 32, 0),
        ("float", (1, 2048), (3, 2048), 32, 0),  # rows of 256 blocks
        ("float", (1, 1), (3, 7), 32, 1),
        ("half", (5, 16), (5, 16), 32, 1),
        ("int8_t", (16, 1), (16, 32), 32 + 1024 + 512, 1),
    ],
)
def test_a_broadcast_repeats_rows_or_columns(
    dtype: str, given: tuple[int, int], wanted: tuple[int, int], tmp: int, axis: int
) -> None:
    run, meant = broadcast(dtype, given, wanted, tmp, axis)
    assert run.ok, run
    np.testing.assert_array_equal(run.outputs[0], meant.ravel())


@pytest.mark.slow
def test_a_broadcast_in_too_little_room_is_told_with_the_size_that_it_needs() -> None:
    run, _ = broadcast("float", (19, 1), (19, 13), 736, 1)
    assert "Broadcast has a temporary buffer of 736 bytes, and needs 768 at least for rows of 13 elements" in str(run)


@pytest.mark.slow
def test_a_broadcast_along_the_other_axis_is_told() -> None:
    run, _ = broadcast("float", (19, 1), (19, 16), 256, 0)
    assert "Broadcast along axis 0: dimension 1 has 1 in the source and 16 in the destination" in str(run)
