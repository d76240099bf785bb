"""What `x[items]` means, as NumPy has it: windows of numbers and slices, and elements at indices that are read."""

from __future__ import annotations

from collections.abc import Sequence

from tile_eg.errors import Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.values import NEW_AXIS, REST, Item, Slice, Value
from tile_eg.ops.types import I32


def part(x: Value, items: Sequence[Item | Value], span: Span | None = None) -> Value:
    """x[items]: numbers, slices, new axes, the rest of the axes as they are, and i32 values.

    Values are indices: they broadcast, and numbers beside them. What they pick stands where the first of them does, or in front
    where slices lie between them.
    """
    if not any(isinstance(i, Value) for i in items):
        return v.window(x, items, span)  # type: ignore[arg-type]
    full = _of_each_axis(x, items, span)
    axes: list[int] = []
    indices: list[Value] = []
    rest: list[Slice | str] = []
    between: list[int] = []
    for item in full:
        n = len(axes) + sum(i != NEW_AXIS for i in rest)
        if isinstance(item, int | Value):
            between.append(len(rest))
            axes.append(n)
            indices.append(_index(item, x.shape[n], span))
        else:
            rest.append(item)
    inner = [i for i in rest if i != NEW_AXIS]
    slices = iter(inner)
    cut = v.window(x, [Slice() if n in axes else next(slices) for n in range(len(x.shape))], span)
    together = len(set(between)) == 1
    before = rest[: between[0]] if together else []
    picked = _picked(cut, axes, indices, sum(i != NEW_AXIS for i in before), span)
    if len(inner) == len(rest):
        return picked
    whole: list[Item] = [Slice()] * (len(picked.shape) - len(inner))
    as_is = [NEW_AXIS if i == NEW_AXIS else Slice() for i in rest]
    return v.window(picked, [*as_is[: len(before)], *whole, *as_is[len(before) :]], span)


def _of_each_axis(x: Value, items: Sequence[Item | Value], span: Span | None) -> list[Item | Value]:
    """The items with a slice for each axis that has none."""
    rests = [n for n, i in enumerate(items) if isinstance(i, str) and i == REST]
    named = sum(not isinstance(i, str) for i in items)
    if named > len(x.shape) or len(rests) > 1:
        raise v.too_many(x, named, span)
    more: list[Item | Value] = [Slice()] * (len(x.shape) - named)
    at = rests[0] if rests else len(items)
    return [*items[:at], *more, *items[at + len(rests) :]]


def _index(item: int | Value, size: int, span: Span | None) -> Value:
    if isinstance(item, int):
        v.window(v.arange(max(size, 1), span), [item], span)
        return v.number(item % size, span)
    if item.truth:
        help = f"choose elements by it: {hint('where(x > 0, x, 0)', 'T.where(x > 0, x, 0)', span)}"
        raise TileError("a tensor has no elements at a condition: how many would not be known", span or item.span, help=help)
    if item.dtype not in (None, I32):
        help = f"pass an array of {hint('i32', 'int32', span)} as the index"
        raise TileError(f"an index is i32, not {item}", span or item.span, help=help)
    return item


def _picked(x: Value, axes: Sequence[int], indices: Sequence[Value], place: int, span: Span | None) -> Value:
    """The elements of x at indices of some axes, whose own axes stand at a place among the others."""
    lead = v.broadcast("gather", *indices, span=span)
    rest = [n for a, n in enumerate(x.shape) if a not in axes]
    shape = (*rest[:place], *lead, *rest[place:])
    return Value("gather", (x, *indices), (tuple(axes), place, len(lead)), shape, x.dtype, span, truth=x.truth)
