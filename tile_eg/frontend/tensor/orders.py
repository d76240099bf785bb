"""The largest elements of an axis, and products along one, of what there is for values."""

from __future__ import annotations

from math import inf

from tile_eg.errors import Span, TileError
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.joins import join
from tile_eg.frontend.tensor.types import reduced_as
from tile_eg.frontend.tensor.values import NEW_AXIS, REST, Slice, Value
from tile_eg.ops.types import I32

LONGEST, STEPS = 1024, 16
"""The longest axis of which the largest elements are taken, and how many: each is a pass over what is left. Assumed."""
FEW = 64
"""The longest axis whose product is written out."""


def topk(x: Value, k: int, axis: int = -1, largest: bool = True, span: Span | None = None) -> tuple[Value, Value]:
    """The k largest (smallest) elements of an axis in their order, and their places; of equal ones the first comes first.

    Each is the largest of what is left, and is made one that none comes behind then.
    """
    at = v.axis_of(axis, x, span)
    size = x.shape[at]
    if k > size:
        raise TileError(f"an axis of {size} elements has no {k} largest", span, help=f"topk(x, {size}) takes all of them")
    if not 0 < k <= min(size, STEPS) or size > LONGEST:
        help = f"of more than {LONGEST} elements, or {STEPS} of them: T.tile.topk in a kernel of tiles"
        raise TileError(f"the {k} largest of {size} elements are not taken one by one", span, help=help)
    places = v.window(v.arange(size, span), [REST, *[NEW_AXIS] * (len(x.shape) - 1 - at)], span)
    op, last, left = "max" if largest else "min", v.number(_last(x, largest), span), places
    found: tuple[list[Value], list[Value]] = [], []
    for _ in range(k):
        best = v.reduce(op, x, at, True, span)
        place = v.reduce("min", v.where(v.compare("eq", x, best, span), left, v.number(size), span), at, True, span)
        found[0].append(best)
        found[1].append(place)
        taken = v.compare("eq", places, place, span)
        x, left = v.where(taken, last, x, span), v.where(taken, v.number(size), left, span)
    values, chosen = (join(parts, at, span) for parts in found)
    return values, chosen


def _last(x: Value, largest: bool) -> float:
    """What comes behind all elements that x may have."""
    if x.dtype is None or not x.dtype.whole:
        return -inf if largest else inf
    from numpy import iinfo

    ends = iinfo(x.dtype.numpy)
    return int(ends.min if largest else ends.max)


def product(x: Value, axis: int | None = None, keepdims: bool = False, span: Span | None = None) -> Value:
    """The halves of an axis multiplied, until one element is left."""
    if axis is None and len(x.shape) != 1:
        raise TileError(f"`prod` of {x} goes along an axis", span, help="prod(x, axis=-1)")
    at = v.axis_of(axis or 0, x, span)
    if not 0 < x.shape[at] <= FEW:
        help = "cumprod(x, axis=-1), as an output of its own, has the product in its last element"
        raise TileError(f"a product of {x.shape[at]} elements is not written out", span, help=help)
    x = v.cast(reduced_as("sum", x.dtype or I32), x, span) if x.truth or (x.dtype and x.dtype.whole) else x
    before = [Slice()] * at
    left: list[Value] = []
    while (n := x.shape[at]) > 1:
        left += [v.window(x, [*before, Slice(n - 1)], span)] if n % 2 else []
        a, b = (v.window(x, [*before, Slice(first, first + n // 2)], span) for first in (0, n // 2))
        x = v.binary("mul", a, b, span)
    for y in left:
        x = v.binary("mul", x, y, span)
    return x if keepdims else v.window(x, [*before, 0], span)
