"""What the sequential meaning computes with: data, which of it exists, and the ends of windows that may have no element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tile_eg.ir import arithmetic as ar
from tile_eg.ir import kernel as kn
from tile_eg.ir.reference_places import Array
from tile_eg.ops.elementwise import REDUCE
from tile_eg.ops.whole_tiles import WHOLE_TILES


@dataclass
class Tile:
    """Data and, where not all of it is valid, a mask of the same shape. A Number has no dtype of its own."""

    data: Array
    valid: Array | None = None
    number: bool = False
    spread: Array | None = None
    """Of shape (2, *shape) in `reference_bounds`: see `rounding`."""
    ends: tuple[Array, ...] | None = None
    """Where a window's length may be none: which places exist along each axis, so that it is known where no element is valid."""

    def taken(self, place: tuple) -> Tile:
        spread = None if self.spread is None else self.spread[(slice(None), *place)]
        ends = None if self.ends is None else _ends_at(self.ends, place)
        return Tile(self.data[place], None if self.valid is None else self.valid[place], spread=spread, ends=ends)

    @property
    def flipped(self) -> Tile:
        spread = None if self.spread is None else self.spread.swapaxes(-1, -2)
        ends = None if self.ends is None else self.ends[::-1]
        return Tile(self.data.T, None if self.valid is None else self.valid.T, spread=spread, ends=ends)

    def along(self, axis: int) -> Array:
        """Which places along an axis have elements, or would have if the window were longer along the others."""
        assert self.valid is not None
        if self.ends is not None and not self.valid.any():
            return np.broadcast_to(self.ends[axis], self.valid.shape[axis : axis + 1])
        others = tuple(n for n in range(self.valid.ndim) if n != axis)
        return np.asarray(self.valid.any(axis=others))


def _ends_at(ends: tuple[Array, ...], place: tuple) -> tuple[Array, ...] | None:
    """The ends of a part that keeps all axes, some of them new; None of any other part."""
    left, found = iter(ends), []
    for item in place:
        if item is None:
            found.append(np.ones(1, bool))
        elif isinstance(item, slice):
            found.append(next(left)[item])
        else:
            return None
    return tuple(found)


def common_ends(*tiles: Tile) -> tuple[Array, ...] | None:
    """The ends of what is computed of tiles element by element; None where no window of theirs may be empty."""
    known = [t for t in tiles if t.valid is not None and t.valid.ndim]
    if not any(t.ends is not None for t in known) or len({t.valid.ndim for t in known}) > 1:  # type: ignore[union-attr]
        return None
    axes = range(known[0].valid.ndim)  # type: ignore[union-attr]
    return tuple(np.logical_and.reduce(np.broadcast_arrays(*(t.along(n) for t in known))) for n in axes)


def numbers_with(x: Tile, value: float) -> Array:
    """A tile's numbers, and `value` in the place of those that do not exist."""
    return x.data if x.valid is None else np.where(x.valid, x.data, np.asarray(value).astype(x.data.dtype))


def existing(e: kn.Whole, xs: list[Tile], shape: tuple[int, ...]) -> Array | None:
    """Which elements exist of the result of an operation on whole tiles."""
    first, *others = xs
    if first.valid is None and all(x.valid is None for x in others):
        return None
    valid = np.ones(first.data.shape, bool) if first.valid is None else first.valid
    if e.op in ("cumsum", "cumprod"):
        return valid
    if e.op in ("argmax", "argmin"):
        return np.asarray(valid.any(axis=e.numbers[0])).reshape(shape)
    if not WHOLE_TILES[e.op].moves:
        return None
    marks = ar.whole(e.op, e.numbers, [valid.astype(f"u{first.data.dtype.itemsize}"), *(numbers_with(x, 0) for x in others)])
    found = marks.reshape(shape) != 0
    return found if not others or others[0].valid is None else found & others[0].valid


def common(x: Tile, y: Tile) -> np.dtype:
    if x.number or y.number:
        return y.data.dtype if x.number else x.data.dtype
    return x.data.dtype if x.data.dtype == y.data.dtype else np.dtype(np.float32)


def both(x: Array | None, y: Array | None) -> Array | None:
    if x is None or y is None:
        return y if x is None else x
    return x & y


def filled(op: str, x: Tile) -> Array:
    """A tile's data where what is not valid does not count in a reduction."""
    if x.valid is None:
        return x.data
    least = REDUCE[op].neutral
    if x.data.dtype.kind in ar.WHOLE:
        limits = np.iinfo(x.data.dtype)
        least = max(limits.min, min(limits.max, least))
    return np.where(x.valid, x.data, np.asarray(least, x.data.dtype))


def meeting(a: Tile, b: Tile) -> tuple[Tile, Tile]:
    """The operands of a product, 0 at inner indices that are not valid on both sides."""
    if a.valid is None and b.valid is None:
        return a, b
    va = np.ones(a.data.shape, bool) if a.valid is None else a.valid
    vb = np.ones(b.data.shape, bool) if b.valid is None else b.valid
    inner = np.logical_and(np.any(va, axis=0), np.any(vb, axis=1))
    return _zeroed(a, va & inner), _zeroed(b, vb & inner[:, None])


def _zeroed(x: Tile, valid: Array) -> Tile:
    spread = None if x.spread is None else np.where(valid, x.spread, 0.0)
    return Tile(np.where(valid, x.data, np.asarray(0, x.data.dtype)), valid, spread=spread, ends=x.ends)
