"""Words without an instruction of their own, words of single instructions, places of extremes, running products."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.jit import TileKernel

RANDOM = np.random.default_rng(5)
ERF = np.vectorize(math.erf)


def run(body: str, *arrays: np.ndarray, out: tuple[int, ...], dtype: str = "float32", scope: bool = False) -> np.ndarray:
    """What a kernel of one block stores: buffers a, b, ... hold the arrays, y the result. With `scope` it is kept as written."""
    names = "ABCD"[: len(arrays)]
    arguments = ", ".join(f'{n}: T.Tensor({x.shape}, "{x.dtype}")' for n, x in zip(names, arrays, strict=True))
    lines = [f"{n.lower()} = T.alloc_ub({x.shape}, '{x.dtype}')" for n, x in zip(names, arrays, strict=True)]
    lines += [f"y = T.alloc_ub({out}, '{dtype}')", *(f"T.copy({n}, {n.lower()})" for n in names)]
    lines += [*body.split("\n"), "T.copy(y, Y)"]
    head = ['with T.Scope("V"):'] if scope else ["if True:"]
    text = f"@T.prim_func\ndef f({arguments}, Y: T.Tensor({out}, '{dtype}')):\n    with T.Kernel(1, is_npu=True) as cid:\n"
    text += "\n".join([f"        {head[0]}", *(f"            {line}" for line in lines)]) + "\n"
    kernel = tile_eg.compile(prim_func(text), out_idx=[-1], pass_configs={"tl.ascend_auto_sync": True})
    return np.asarray(kernel(*arrays))


def floats(*shape: int, low: float = -3, high: float = 3) -> np.ndarray:
    return RANDOM.uniform(low, high, shape).astype(np.float32)


FUNCTIONS = {
    "sin": np.sin, "cos": np.cos, "erf": ERF, "sign": np.sign, "softplus": lambda x: np.logaddexp(x, 0), "exp2": np.exp2,
    "gelu": lambda x: x * 0.5 * (1 + ERF(x * math.sqrt(0.5))),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.few(3)
@pytest.mark.parametrize("word", FUNCTIONS)
def test_functions_without_an_instruction_in_kept_kernels(word: str) -> None:
    x = floats(8, 64)
    np.testing.assert_allclose(run(f"T.tile.{word}(y, a)", x, out=(8, 64), scope=True), FUNCTIONS[word](x), rtol=2e-5, atol=2e-6)


@pytest.mark.slow
def test_powers_and_leaky_relus_in_kept_kernels_of_parts_of_buffers() -> None:
    x, z = floats(8, 64, low=0.2), floats(8, 64)
    found = run("T.tile.fill(y, 1.0)\nT.tile.pow(y[2:4, :], a[2:4, :], b[2:4, :])", x, z, out=(8, 64), scope=True)
    np.testing.assert_allclose(found[2:4], x[2:4] ** z[2:4], rtol=1e-4)
    assert (found[4:] == 1).all()
    found = run("T.tile.leaky_relu(y, b, 0.5)", x, z, out=(8, 64), scope=True)
    assert (found == np.where(z >= 0, z, z * np.float32(0.5))).all()


def test_operands_that_differ_in_size_are_refused() -> None:
    with pytest.raises(TileError, match="the operands differ in size: 8 x 64, 4 x 64"):
        run("T.tile.pow(y, a, b[0:4, :])", floats(8, 64), floats(8, 64), out=(8, 64), scope=True)


KINDS = pytest.mark.parametrize("scope", [False, True], ids=["in order", "kept"])


@pytest.mark.slow
@KINDS
def test_repeats_of_whole_and_of_block_reductions(scope: bool) -> None:
    x = floats(4, 64)
    found = run("T.tile.wholereducemax(y, a, 64, 4, 1, 1, 8)", x, out=(8,), scope=scope)
    assert (found[0::2] == x.max(1)).all() and (found[1::2].view(np.uint32) == x.argmax(1)).all()
    values = 'T.tile.fill(y, 0.0)\nT.tile.wholereducemin(y, a, 64, 4, 1, 1, 8, "ORDER_ONLY_VALUE")'
    assert (run(values, x, out=(8,), scope=scope)[:4] == x.min(1)).all()
    found = run("T.tile.block_reduce_max(y, a, 4, 64, 1, 1, 8)", x, out=(32,), scope=scope)
    assert (found == x.reshape(32, 8).max(1)).all()


@pytest.mark.slow
@KINDS
def test_blocks_are_gathered_and_elements_become_blocks(scope: bool) -> None:
    x, at = floats(256), (RANDOM.permutation(32) * 32).astype(np.uint32)
    found = run("T.tile.gatherb(y, a, b, 4, 1, 8)", x, at, out=(256,), scope=scope)
    assert (found.reshape(32, 8) == x.reshape(32, 8)[at // 32]).all()
    x = floats(16)
    assert (run("T.tile.brcb_experiment(y, a, 2, 1, 8)", x, out=(16, 8), scope=scope) == x[:, None]).all()


def test_a_field_that_is_too_small_for_its_number_is_named() -> None:
    with pytest.raises(TileError, match="mask is 65, and its field holds 1 to 64"):
        run("T.tile.wholereducesum(y, a, 65, 4, 1, 1, 8)", floats(4, 64), out=(8,), scope=True)


@pytest.mark.slow
@KINDS
def test_rows_with_their_own_number(scope: bool) -> None:
    x, v = floats(16, 64), floats(16, low=1)
    for word, meaning in (("mul", np.multiply), ("sub", np.subtract), ("div", np.divide)):
        found = run(f"T.tile.row_expand_{word}_experiment(y, a, b)", x, v, out=(16, 64), scope=scope)
        np.testing.assert_allclose(found, meaning(x, v[:, None]), rtol=1e-6)


@pytest.mark.slow
@KINDS
def test_elements_are_gathered_by_their_places(scope: bool) -> None:
    x, at = floats(256), RANDOM.integers(0, 256, 32).astype(np.uint32)
    assert (run("T.tile.gather_mask(y, a, b)", x, at, out=(32,), scope=scope) == x[at]).all()


@pytest.mark.slow
@KINDS
def test_elements_are_picked_by_a_list_of_places(scope: bool) -> None:
    x, at = floats(256), [0, 1, 3, 4, 5, 7, 255, 9]
    assert (run(f"T.tile.gather_mask(y, a, {at})", x, out=(8,), scope=scope) == x[at]).all()


@pytest.mark.slow
def test_what_a_pattern_leaves_of_a_longer_buffer_stays() -> None:
    x = floats(1, 256)
    found = run('T.tile.gather_mask(y, a, "P1010")', x, out=(1, 256))
    assert (found[:, :128] == x[:, 1::2]).all()


@pytest.mark.slow
@KINDS
def test_a_pattern_takes_elements_of_bf16(scope: bool) -> None:
    x = floats(1, 256).astype(ml_dtypes.bfloat16)
    assert (run('T.tile.gather_mask(y, a, "P1010")', x, out=(1, 128), dtype="bfloat16", scope=scope) == x[:, 1::2]).all()


def test_a_kernel_that_prints_is_done_in_order(capfd: pytest.CaptureFixture[str]) -> None:
    x = floats(8, 64)
    with pytest.warns(match="the search has no form for T.printf"):
        found = run('T.tile.add(y, a, 1.0)\nT.printf("done %d\\n", 7)', x, out=(8, 64))
    assert (found == x + 1).all() and "done 7" in capfd.readouterr().out


@pytest.mark.slow
def test_an_element_is_printed_once_it_is_loaded(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(match="the search has no form for T.printf"):
        run('T.printf("first %f\\n", a[0, 0])\nT.copy(a, y)', np.full((8, 64), 2.5, np.float32), out=(8, 64))
    assert "first 2.5" in capfd.readouterr().out


@pytest.mark.slow(but=1)
@KINDS
@pytest.mark.parametrize("mode", ["FLOOR", "CEIL", "TRUNC", "ROUND", "ODD"])
def test_a_cast_to_short_floats_rounds_as_it_says(mode: str, scope: bool) -> None:
    x = np.array([[1 + 2**-12, -1 - 2**-12, 1 + 3 * 2**-11, 0.5]] * 16, np.float32).reshape(1, 64)
    up, down = 1 + 2**-10, 1.0
    found = run(f'T.tile.cast(y, a, "CAST_{mode}", 64)', x, out=(1, 64), dtype="float16", scope=scope)
    want = {"FLOOR": (down, -up, 1 + 2**-10), "CEIL": (up, -down, 1 + 2**-9), "TRUNC": (down, -down, 1 + 2**-10),
            "ROUND": (down, -down, 1 + 2**-9), "ODD": (up, -up, 1 + 2**-10)}[mode]  # fmt: skip
    assert found[0, :4].tolist() == [*want, 0.5]


@pytest.mark.slow
@KINDS
def test_an_assertion_about_the_block(scope: bool) -> None:
    x = floats(8, 64)
    assert (run("T.copy(a, y)\nassert cid == 0", x, out=(8, 64), scope=scope) == x).all()
    with pytest.raises(TileError, match="does not hold"):
        run("T.copy(a, y)\nassert cid == 1", x, out=(8, 64), scope=scope)


@KINDS
def test_the_first_elements_alone(scope: bool) -> None:
    x = floats(8, 64)
    found = run("T.tile.fill(y, 5.0)\nT.tile.clamp_max(y, a, 1.0, 256)", x, out=(8, 64), scope=scope)
    assert (found[:4] == np.minimum(x[:4], 1)).all() and (found[4:] == 5).all()


@pytest.mark.slow
@pytest.mark.few(3)
@pytest.mark.parametrize("word", ["argmax", "argmin"])
@pytest.mark.parametrize(("dim", "out"), [(1, (16,)), (0, (64,)), (-1, (16,))])
def test_the_first_place_of_an_extreme(word: str, dim: int, out: tuple[int, ...]) -> None:
    x = RANDOM.integers(0, 5, (16, 64)).astype(np.float16)
    found = run(f"T.{word}(a, y, dim={dim})", x, out=out, dtype="int32")
    assert (found == getattr(np, word)(x, axis=dim)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "reverse"), [(0, False), (1, False), (1, True)])
def test_running_products(dim: int, reverse: bool) -> None:
    x = floats(16, 64, low=0.7, high=1.3)
    turned = np.flip(x, dim) if reverse else x
    wanted = np.cumprod(turned, axis=dim)
    found = run(f"T.cumprod(a, y, dim={dim}, reverse={reverse})", x, out=(16, 64))
    np.testing.assert_allclose(found, np.flip(wanted, dim) if reverse else wanted, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_tiles_of_three_dimensions_are_reduced(dim: int) -> None:
    x = floats(4, 8, 64)
    out = tuple(n for k, n in enumerate(x.shape) if k != dim)
    assert (run(f"T.reduce_max(a, y, dim={dim})", x, out=out) == x.max(dim)).all()


@pytest.mark.slow
def test_planes_of_kept_kernels_are_reduced() -> None:
    x = floats(4, 8, 64)
    assert (run("T.reduce_min(a, y, dim=1)", x, out=(4, 64), scope=True) == x.min(1)).all()
    with pytest.raises(TileError, match="dim 0 of 3 is not reduced in a kernel that is kept"):
        run("T.reduce_min(a, y, dim=0)", x, out=(8, 64), scope=True)


TILE = """
kernel words[N=64](A: f32[16, N], B: u8[16, N]) -> (I: i32[16], P: f32[16, N], Q: u8[16, N], S: i32[16]) {
  grid b = 1
  shared a: f32[16, N], c: u8[16, N]
  a = A[0, 0]
  c = B[0, 0]
  I[0] = argmax(a)
  P[0, 0] = cumprod(a)
  Q[0, 0] = (c & 15) * 3 + c
  S[0] = rowsum(i32(c))
}
"""


@pytest.mark.slow
def test_the_same_in_tile_text() -> None:
    a, b = floats(16, 64, low=0.8, high=1.2), RANDOM.integers(0, 256, (16, 64)).astype(np.uint8)
    places, products, bytes_, sums = TileKernel(load_text(TILE))(a, b)
    assert (places == a.argmax(1)).all() and (bytes_ == (b & 15) * np.uint8(3) + b).all() and (sums == b.sum(1)).all()
    np.testing.assert_allclose(products, np.cumprod(a, 1), rtol=1e-5)


@pytest.mark.parametrize(
    ("line", "way"),
    [
        ("v = T.alloc_ub((8, 64), 'uint4')", "x & 15 and x >> 4"),
        ("v = T.alloc_ub((8, 64), 'float64')", 'take "float32"'),
        ("v = T.alloc_ub((8, 64), 'int64')", 'take "int32"'),
        ("v = T.alloc_L1((8, 64), 'bool')", 'compare: m'),
        ("T.tile.bilinear_interpolation(y, a, a, a, 1, 1, True, 1, 1, 1)", "T.tile.gather"),
    ],
)
def test_a_word_that_is_not_there_says_what_to_write(line: str, way: str) -> None:
    with pytest.raises(TileError, match=way):
        run(f"T.copy(a, y)\n{line}", floats(8, 64), out=(8, 64))


@pytest.mark.slow
def test_the_way_to_another_shape() -> None:
    x = floats(512)
    for scope in (False, True):
        found = run("for i, j in T.Parallel(8, 64):\n    y[i, j] = a[i * 64 + j]", x, out=(8, 64), scope=scope)
        assert (found == x.reshape(8, 64)).all()


@KINDS
def test_the_bits_of_floats_are_those_of_whole_numbers(scope: bool) -> None:
    x = floats(8, 64)
    found = run('T.reinterpretcast(y, a, "int32")', x, out=(8, 64), dtype="int32", scope=scope)
    assert (found == x.view(np.int32)).all()
