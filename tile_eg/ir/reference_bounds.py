"""The sequential meaning with bounds: for every element of an output, how far roundings may take another right result from it.

Beside its data each tile carries a spread (`rounding`), and each operation says what becomes of it. The bounds follow the
roundings that the source asks for: an output in f32 beside a buffer in bf16 that it does not depend on has the bounds of f32.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import floor, frexp

import numpy as np

from tile_eg.ir import accuracy as ac
from tile_eg.ir import arithmetic as ar
from tile_eg.ir import kernel as kn
from tile_eg.ir import rounding as rd
from tile_eg.ir.known_numbers import at_numbers
from tile_eg.ir.reference import Block, Tile, blocks, common, filled, initial
from tile_eg.ir.reference_places import Array, Env
from tile_eg.ir.seen import as_indexed
from tile_eg.ops.records import record
from tile_eg.ops.types import F32, I8, I32, SCALE_BLOCK, DType
from tile_eg.ops.whole_tiles import WHOLE_TILES


@record
class Expected:
    """What an output should be, and how far each element may be from that: infinite where roundings decide over it altogether."""

    value: Array
    allowed: Array


def run_with_bounds(kernel: kn.Kernel, inputs: Mapping[str, Array], tiles: Collection[int] | None = None) -> dict[str, Expected]:
    """The outputs for these inputs as `run_kernel` has them, with bounds of the same shapes: infinite where only some `tiles` of
    the grid are computed, and others would write."""
    shapes = {t.name: t.shape for t in kernel.tensors}
    kernel = as_indexed(at_numbers(kernel, inputs))
    arrays = initial(kernel, inputs)
    outputs = {t.name: t for t in kernel.tensors if t.output}
    spreads = {name: np.full((2, *t.shape), 0 if tiles is None else np.inf, np.float32) for name, t in outputs.items()}
    sizes = {name: np.abs(arrays[name].astype(np.float32)) for name in kn.added_to(kernel)}
    scales = Scales.of(kernel)
    with np.errstate(all="ignore"):
        for point in blocks(kernel.grid, tiles):
            BoundedBlock(arrays, spreads, sizes, scales).run(kernel.body, point)
        allowed = {name: ac.SIDES * rd.total(spreads[name]) for name in outputs}
    return {name: Expected(arrays[name].reshape(shapes[name]), allowed[name].reshape(shapes[name])) for name in outputs}


@record
class Scales:
    """What the compiler may do with a factor. `least`: the least power of two by which an operand may be scaled instead of a
    product (rule scale-before-loop). `cut`: the kernel has whole numbers, so factors may be cut to `SCALE_BITS`."""

    least: float = 1.0
    cut: bool = False

    @staticmethod
    def of(kernel: kn.Kernel) -> Scales:
        numbers = [abs(f) for f in _factors(kernel.body) if f and frexp(abs(f))[0] == 0.5]
        dtypes = [t.dtype for t in kernel.tensors] + [s.dtype for s in kernel.body if isinstance(s, kn.Alloc)]
        return Scales(min([1.0, *numbers]), any(d in (I8, I32) for d in dtypes))


def _factors(x: object) -> Iterator[float]:
    """The numbers by which something is multiplied."""
    if isinstance(x, tuple):
        for part in x:
            yield from _factors(part)
    elif isinstance(x, kn.Binary) and x.op == "mul":
        yield from (n.value for n in (x.x, x.y) if isinstance(n, kn.Number))
    if hasattr(x, "__dataclass_fields__") and not isinstance(x, kn.Span):
        for name in x.__dataclass_fields__:
            yield from _factors(getattr(x, name))


class BoundedBlock(Block):
    """Runs one block with spreads. `spreads` are those of the outputs; inputs have none. `sizes` are the sums of the magnitudes
    that have been added atomically."""

    def __init__(self, tensors: dict[str, Array], spreads: dict[str, Array], sizes: dict[str, Array], scales: Scales) -> None:
        super().__init__(tensors)
        self.spreads, self.sizes, self.scales = spreads, sizes, scales

    # statements

    def allocated(self, s: kn.Alloc) -> Tile:
        return replace(super().allocated(s), spread=rd.exact(s.shape))

    def write(self, buffer: Tile, place: tuple, value: Tile) -> None:
        super().write(buffer, place, value)
        assert buffer.spread is not None
        result = buffer.data[place]
        value = self.cast(value, buffer.data.dtype)
        buffer.spread[(slice(None), *place)] = rd.repeated(spread(value), result.shape)

    def put(self, s: kn.Assign, array: Array, at: tuple, mask: Array, value: Tile) -> None:
        before = array[at]
        super().put(s, array, at, mask, value)
        value = self.cast(value, array.dtype)
        spreads, new = self.spreads[s.target.name], rd.repeated(spread(value), mask.shape)[:, mask]
        at = (slice(None), *at)
        spreads[at] = self.added(s.target.name, at[1:], before, value, mask, new) if s.atomic else new

    def added(self, name: str, at: tuple, before: Array, value: Tile, mask: Array, new: Array) -> Array:
        """The spread of a sum to which other blocks add in any order: each addition rounds a part of it."""
        sizes, data = self.sizes[name], np.broadcast_to(value.data, mask.shape)[mask]
        sizes[at] += np.abs(data.astype(np.float32))
        sums = sizes[at].astype(np.float64)
        old = self.spreads[name][(slice(None), *at)]
        return rd.rounded("add", sums, sums.astype(before.dtype), old + new)

    def load(self, r: kn.Region, env: Env) -> Tile:
        tile = super().load(r, env)
        if r.name not in self.spreads:
            return replace(tile, spread=rd.exact(tile.data.shape))
        at, inside = self.places_to_load(r, self.tensors[r.name], env)
        found = np.broadcast_to(self.spreads[r.name][(slice(None), *at)], (2, *inside.shape))
        return replace(tile, spread=np.where(inside, found, 0.0))

    # expressions

    def unary(self, op: str, x: Tile) -> Tile:
        result = super().unary(op, x)
        return replace(result, spread=rd.unary(op, x.data, spread(x), result.data))

    def cast(self, x: Tile, dtype: np.dtype) -> Tile:
        result = super().cast(x, dtype)
        return replace(result, spread=rd.cast(x.data, spread(x), result.data))

    def whole(self, e: kn.Whole, xs: list[Tile]) -> Tile:
        """What is moved keeps its spread; an order by values that may differ is any order."""
        result = super().whole(e, xs)
        known = [spread(x) for x in xs]
        if e.op == "cumsum":
            return replace(result, spread=_running(xs[0], known[0], result.data, e.numbers))
        if e.op == "cumprod":
            return replace(result, spread=_products(known[0], result.data))
        first, *others = (x.data for x in xs)
        if WHOLE_TILES[e.op].moves and not any(k.any() for k in known[1:]) and first.size < 1 << 16:
            numbers = np.arange(first.size, dtype=f"u{first.dtype.itemsize}").reshape(first.shape)
            places = ar.whole(e.op, e.numbers, [numbers, *others]).astype(np.int64)
            return replace(result, spread=known[0].reshape(2, -1)[:, places].reshape(2, *result.data.shape))
        return replace(result, spread=np.full((2, *result.data.shape), np.inf if any(k.any() for k in known) else 0.0))

    def padded(self, x: Tile, value: float, there: Array | None = None) -> Tile:
        known = spread(x)
        return replace(super().padded(x, value, there), spread=known if x.valid is None else np.where(x.valid, known, 0.0))

    def packed(self, x: Tile) -> Tile:
        known = rd.total(spread(x)).reshape(*x.data.shape[:-1], -1, 8).any(axis=-1)
        return replace(super().packed(x), spread=np.stack([np.where(known, np.inf, 0.0), np.zeros(known.shape)]))

    def bytes(self, x: Tile, dtype: np.dtype) -> Tile:
        found = np.repeat(rd.total(spread(x)) > 0, 2, axis=-1)
        return replace(super().bytes(x, dtype), spread=np.stack([np.where(found, np.inf, 0.0), np.zeros(found.shape)]))

    def binary(self, op: str, x: Tile, y: Tile) -> Tile:
        result = super().binary(op, x, y)
        a, b = (t.data.astype(common(x, y)) for t in (x, y))
        found = rd.binary(op, a, b, spread(x), spread(y), result.data)
        if op == "mul" and self.scales.cut and x.number != y.number:
            lost = _cut(float(x.data if x.number else y.data))
            found[0] += rd.times(np.abs(result.data.astype(np.float64)), np.full(result.data.shape, lost))
        return replace(result, spread=found)

    def chosen(self, holds: Array, x: Tile, y: Tile, valid: Array | None = None) -> Tile:
        result = super().chosen(holds, x, y, valid)
        sx, sy = (rd.repeated(spread(t), result.data.shape) for t in (x, y))
        return replace(result, spread=np.where(holds, sx, sy))

    def compared(self, op: str, a: Tile, b: Tile, x: Tile, y: Tile) -> Tile:
        result = super().compared(op, a, b, x, y)
        if op == kn.BIT:
            return result
        near = rd.close(a.data, b.data, spread(a), spread(b))
        return replace(result, spread=rd.either(near, x.data, y.data, spread(x), spread(y), spread(result)))

    def reduced(self, op: str, x: Tile, axis: int) -> Tile:
        result = super().reduced(op, x, axis)
        known = spread(x) if x.valid is None else np.where(x.valid, spread(x), 0.0)
        return replace(result, spread=rd.reduce(op, filled(op, x), known, axis if x.data.ndim == 2 else 0, result.data))

    def scaled(self, x: Tile, scale: Tile, packed: DType | None) -> Tile:
        result = super().scaled(x, scale, packed)
        if packed or x.spread is None:
            return replace(result, spread=rd.exact(result.data.shape))
        return replace(result, spread=x.spread * np.repeat(scale.data.astype(np.float64), SCALE_BLOCK, axis=-1))

    def product(self, a: Tile, b: Tile) -> Tile:
        result = super().product(a, b)
        sa, sb = (spread(t) + self.underflow(t.data) for t in (a, b))
        return replace(result, spread=rd.matmul(a.data, b.data, sa, sb, result.data))

    def underflow(self, x: Array) -> Array | float:
        """What a 16-bit operand loses where it becomes subnormal when it is scaled."""
        if x.dtype.itemsize != 2 or self.scales.least == 1.0:
            return 0.0
        least = ac.SMALLEST_HALF_STEP[x.dtype.name]
        scaled = np.abs(x.astype(np.float64)) * self.scales.least
        subnormal = (scaled > 0) & (scaled < least / ac.HALF_STEP[x.dtype.name])
        lost = np.where(subnormal, least / self.scales.least, 0.0)
        return np.stack([lost, np.zeros_like(lost)])


def _running(x: Tile, known: Array, sums: Array, numbers: tuple[int, int]) -> Array:
    """Each of the additions that lead to a sum, in any order, rounds a part of the sum of the magnitudes; where the sums are
    narrower than f32, in which they are added, each of them is rounded once more."""
    wide, sizes, *parts = (
        ar.whole("cumsum", numbers, [part.astype(np.float64)]).reshape(sums.shape) for part in (x.data, np.abs(x.data), *known)
    )
    found = np.stack([sum(parts), rd.sum_error(sums.shape[numbers[0]], sizes + sum(parts))])
    return rd.rounded("cast", wide, sums, found) if sums.dtype.itemsize < F32.bytes else found


def _products(known: Array, products: Array) -> Array:
    """Each of the products that lead to one, in any order, rounds it; nothing is said of those of rounded numbers."""
    size = np.abs(products.astype(np.float64))
    out = np.full((2, *products.shape), np.inf) if known.any() else rd.exact(products.shape)
    for _ in range(max(products.shape)):
        out = rd.rounded("mul", size, size.astype(np.float32) * 0, out)
    return out


def spread(x: Tile) -> Array:
    """A tile's spread; a number or a position has none."""
    return rd.exact(x.data.shape) if x.spread is None else x.spread


def _cut(factor: float) -> float:
    """How much of itself a factor loses when it is cut to `SCALE_BITS` bits of mantissa."""
    mantissa, _ = frexp(abs(factor))
    kept = floor(mantissa * 2.0 ** (ac.SCALE_BITS + 1)) / 2.0 ** (ac.SCALE_BITS + 1)
    return (mantissa - kept) / mantissa if mantissa else 0.0
