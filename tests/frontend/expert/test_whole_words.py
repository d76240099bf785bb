"""The words of kernels that are kept that work on whole tiles, cast with a scale, select by bits, or print."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ops.types import BF16

RNG = np.random.default_rng(0)


def kept(lines: Any, dtypes: tuple[str, ...], sizes: tuple[int, ...]) -> Any:
    """A kernel that loads its tensors into UB, does what the lines say, and stores the last buffer."""
    first, last = (dtypes[0], sizes[0]), (dtypes[-1], sizes[-1])

    @T.prim_func
    def main(X: T.Tensor((first[1],), first[0]), C: T.Tensor((last[1],), last[0])):
        with T.Kernel(1) as _:  # noqa: SIM117
            with T.Scope("V"):
                x, c = T.alloc_ub((first[1],), first[0]), T.alloc_ub((last[1],), last[0])
                T.copy(X, x)
                T.barrier_all()
                lines(x, c)
                T.barrier_all()
                T.copy(c, C)

    return tile_eg.compile(main, out_idx=[-1])


@T.macro
def firsts(x, c):
    T.tile.topk(c, x, 16, 100)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_largest_elements(dtype: str) -> None:
    x = RNG.standard_normal(128).astype(dtype)
    got = kept(firsts, (dtype, dtype), (128, 32))(x)
    order = np.argsort(-x[:100], kind="stable")[:16]
    assert (got[0::2] == x[order]).all() and (got[1::2] == order).all()


@T.macro
def turned_round(x, c):
    at, bytes_at = T.alloc_ub((64,), "int32"), T.alloc_ub((64,), "uint32")
    T.tile.arith_progression(at, 252, -4)
    T.barrier_all()
    T.reinterpretcast(bytes_at, at, "uint32")
    T.barrier_all()
    T.tile.gather(c, x, bytes_at, 0)


def test_elements_are_gathered() -> None:
    x = RNG.standard_normal(64).astype(np.float32)
    assert (kept(turned_round, ("float32", "float32"), (64, 64))(x) == x[::-1]).all()


@T.macro
def turned_round_by_halves(x, c):
    at, bytes_at = T.alloc_ub((64,), "int32"), T.alloc_ub((64,), "uint32")
    T.tile.arith_progression(at, 126, -2)
    T.barrier_all()
    T.reinterpretcast(bytes_at, at, "uint32")
    T.barrier_all()
    T.tile.gather(c, x, bytes_at, 0)


@pytest.mark.slow
def test_elements_of_bfloat16_are_gathered() -> None:
    x = RNG.standard_normal(64).astype(numpy_dtype(BF16))
    assert (kept(turned_round_by_halves, ("bfloat16", "bfloat16"), (64, 64))(x) == x[::-1]).all()


@T.macro
def positive(x, c):
    mask = T.alloc_ub((16,), "uint8")
    T.tile.compare(mask, x, 0.0, "GT")
    T.barrier_all()
    T.tile.select(c, mask, x, 7.0, "VSEL_TENSOR_SCALAR_MODE")


@T.macro
def within(x, c):
    low, high = T.alloc_ub((16,), "uint8"), T.alloc_ub((16,), "uint8")
    T.tile.compare(low, x, -1.0, "GT")
    T.tile.compare(high, x, 1.0, "LT")
    T.barrier_all()
    T.tile.bitwise_and(low, low, high)
    T.barrier_all()
    T.tile.select(c, low, x, 7.0, "VSEL_TENSOR_SCALAR_MODE")


def test_masks_are_joined() -> None:
    x = RNG.standard_normal(128).astype(np.float32)
    assert (kept(within, ("float32", "float32"), (128, 128))(x) == np.where(abs(x) < 1, x, 7)).all()


@pytest.mark.slow
def test_a_mask_selects() -> None:
    x = RNG.standard_normal(128).astype(np.float32)
    assert (kept(positive, ("float32", "float32"), (128, 128))(x) == np.where(x > 0, x, 7)).all()


@T.macro
def between(x, c):
    low, high = T.alloc_ub((8,), "uint8"), T.alloc_ub((8,), "uint8")
    T.tile.compare(low, x, -0.5, "GE")
    T.tile.compare(high, x, 0.5, "LE")
    T.barrier_all()
    T.tile.bitwise_and(low, low, high)
    T.barrier_all()
    T.tile.select(c, low, x, 7.0, "VSEL_TENSOR_SCALAR_MODE")


@pytest.mark.slow
def test_masks_of_bytes_are_combined() -> None:
    x = RNG.standard_normal(64).astype(np.float32)
    assert (kept(between, ("float32", "float32"), (64, 64))(x) == np.where(abs(x) <= 0.5, x, 7)).all()


@T.macro
def odd_bytes(x, c):
    T.copy(x, c)
    T.barrier_all()
    T.tile.bitwise_not(c[0:7], x[0:7])


@pytest.mark.slow
def test_bits_of_an_odd_number_of_bytes_leave_what_lies_beside_them() -> None:
    x = RNG.integers(0, 255, 32).astype(np.uint8)
    assert (kept(odd_bytes, ("uint8", "uint8"), (32, 32))(x) == [*~x[:7], *x[7:]]).all()


@T.macro
def scaled(x, c):
    T.set_deq_scale(0.5)
    T.copy(x, c)


@pytest.mark.slow
def test_whole_numbers_are_scaled_on_their_way_to_halves() -> None:
    x = RNG.integers(-1000, 1000, 64).astype(np.int32)
    assert (kept(scaled, ("int32", "float16"), (64, 64))(x) == (x * 0.5).astype(np.float16)).all()


@T.macro
def unscaled(x, c):
    T.copy(x, c)


def test_a_cast_without_its_scale_says_so() -> None:
    with pytest.raises(TileError, match="float16 of int32 takes a scale"):
        kept(unscaled, ("int32", "float16"), (64, 64))


@T.macro
def downwards(x, c):
    T.tile.cast(c, x, "CAST_FLOOR", 64)


@pytest.mark.slow
def test_a_cast_rounds_as_it_is_told() -> None:
    x = RNG.uniform(-5, 5, 64).astype(np.float32)
    assert (kept(downwards, ("float32", "int32"), (64, 64))(x) == np.floor(x)).all()


@T.macro
def printing(x, c):
    T.tile.add(c, x, 1.0)
    T.barrier_all()
    T.printf("first %d of %.1f\n", 7, c[0])
    T.dump_tensor(c, 3, 2)


@pytest.mark.slow
def test_what_a_kernel_prints_comes_from_the_simulator(capfd: pytest.CaptureFixture[str]) -> None:
    kept(printing, ("float32", "float32"), (64, 64))(np.arange(64, dtype=np.float32))
    said = capfd.readouterr().out
    assert "first 7 of 1.0\n" in said and "desc=3" in said and "[1, 2]" in said


@T.macro
def badly_printed(x, c):
    T.tile.add(c, x, 1.0)
    T.printf("%d and %d\n", 7)


def test_a_format_has_as_many_places_as_values() -> None:
    with pytest.raises(TileError, match="the format has 2 places, and 1 values are given"):
        kept(badly_printed, ("float32", "float32"), (64, 64))


def asserting(limit: int) -> Any:
    @T.prim_func
    def main(X: T.Tensor((128,), "float32"), C: T.Tensor((128,), "float32")):
        T.printf("before\n")
        with T.Kernel(2) as cid:  # noqa: SIM117
            with T.Scope("V"):
                x = T.alloc_ub((64,), "float32")
                T.device_assert(cid < limit, "too many blocks")
                T.copy(X[cid * 64], x)
                T.barrier_all()
                T.copy(x, C[cid * 64])

    return tile_eg.compile(main, out_idx=[-1])


@pytest.mark.slow
def test_an_assertion_that_does_not_hold_is_a_finding() -> None:
    x = RNG.standard_normal(128).astype(np.float32)
    assert (asserting(2)(x) == x).all()
    with pytest.raises(TileError, match="the assertion"):
        asserting(1)(x)


@T.macro
def by_32(x, c):
    at = T.alloc_ub((64,), "uint32")
    places = T.alloc_ub((64,), "int32")
    T.tile.createvecindex(places, 0)
    T.barrier_all()
    T.reinterpretcast(at, places, "uint32")
    T.barrier_all()
    T.tile.sort32(c, x, at)


@pytest.mark.slow
def test_32_elements_are_sorted_at_a_time() -> None:
    x = RNG.standard_normal(64).astype(np.float32)
    got = kept(by_32, ("float32", "float32"), (64, 128))(x)
    order = np.concatenate([np.argsort(-x[:32]), 32 + np.argsort(-x[32:])])
    assert (got[0::2] == x[order]).all() and (got[1::2].view(np.uint32) == order).all()


@pytest.mark.parametrize(("rows", "cols", "dtype", "word"), [
    (16, 16, "float16", "AscendC::Transpose("), (32, 24, "float32", "AscendC::TransDataTo5HD<float>("),
])  # fmt: skip
def test_whole_squares_are_transposed(rows: int, cols: int, dtype: str, word: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((rows, cols), dtype), C: T.Tensor((cols, rows), dtype)):
        with T.Kernel(1) as _:
            x, c = T.alloc_ub((rows, cols), dtype), T.alloc_ub((cols, rows), dtype)
            T.copy(X, x)
            T.barrier_all()
            T.tile.transpose(c, x)
            T.barrier_all()
            T.copy(c, C)

    x = RNG.standard_normal((rows, cols)).astype(dtype)
    kernel = tile_eg.compile(main, out_idx=[-1])
    assert (kernel(x) == x.T).all()
    assert kernel.get_kernel_source().count(word) == 1


@T.macro
def rounded(x, c):
    T.tile.round(c, x, 64)


@pytest.mark.slow
def test_as_many_elements_as_are_counted_are_rounded() -> None:
    x = np.linspace(-3, 3.3, 64, dtype=np.float32)
    assert (kept(rounded, ("float32", "float32"), (64, 64))(x) == np.round(x)).all()


@T.prim_func
def counted_on(C: T.Tensor((4, 64), "int32")):
    with T.Kernel(1) as _:
        c = T.alloc_ub((64,), "int32")
        with T.Scope("V"):
            for k in T.serial(4):
                T.barrier_all()
                T.tile.createvecindex(c, k * 64)
                T.barrier_all()
                T.copy(c, C[k, 0])


@pytest.mark.slow
def test_positions_begin_where_a_loop_says() -> None:
    assert (tile_eg.compile(counted_on, out_idx=[-1])().ravel() == np.arange(256)).all()


def from_a_number(dtype: str, first: Any, of: str = "int32") -> Any:
    """Positions in a buffer of a type, from what `first` makes of a tensor of one element and of a buffer that holds it."""

    @T.prim_func
    def main(N: T.Tensor((8,), of), C: T.Tensor((64,), dtype)):
        with T.Kernel(1) as _:
            n, c = T.alloc_ub((8,), of), T.alloc_ub((64,), dtype)
            with T.Scope("V"):
                T.copy(N, n)
                T.barrier_all()
                T.tile.createvecindex(c, first(N, n))
                T.barrier_all()
                T.copy(c, C)

    return tile_eg.compile(main, out_idx=[-1])


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("begin", [3, -7, 2**30 + 1])
@pytest.mark.parametrize("first", [lambda N, n: N[0] * 2, lambda N, n: n[0] * 2], ids=["tensor", "buffer"])
def test_positions_begin_at_a_number_that_is_read(first: Any, begin: int) -> None:
    got = from_a_number("int32", first)(np.full(8, begin, np.int32))
    assert (got == (2 * begin + np.arange(64)).astype(np.int32)).all()


@pytest.mark.slow
def test_positions_in_f32_are_the_nearest_to_those_in_int32() -> None:
    got = from_a_number("float32", lambda N, n: N[0])(np.full(8, 2**24 + 1, np.int32))
    assert (got == (2**24 + 1 + np.arange(64)).astype(np.float32)).all()


@pytest.mark.slow
def test_positions_in_f32_begin_at_any_number() -> None:
    got = from_a_number("float32", lambda N, n: n[0] * 0.5, "float32")(np.full(8, 3, np.float32))
    assert (got == 1.5 + np.arange(64)).all()


def test_positions_of_whole_numbers_begin_at_one() -> None:
    with pytest.raises(TileError, match="begins with a whole number"):
        from_a_number("int32", lambda N, n: n[0], "float32")


def test_positions_that_may_be_too_large_are_refused() -> None:
    with pytest.raises(TileError, match="positions are exact up to 16777216"):
        from_a_number("float16", lambda N, n: N[0])
