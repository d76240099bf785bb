"""Valid extents: how many rows or columns of a tile lie inside the tensor that it came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from tile_eg.errors import Span, TileError
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.ranges import Ranges, at_most, extremes, surely_equal
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr


def inside(start: Expr, extent: int, size: int, ranges: Ranges, step: int = 1, where: Expr = ix.ONE) -> Expr:
    """How many of `extent` elements, `step` apart, lie below `size`; simply the extent where all do whenever `where` holds."""
    if at_most(start, size - 1 - (extent - 1) * step, ranges, where):
        return ix.const(extent)
    left = ix.minimum(extent, (size - start + (step - 1)) // step)
    return left if at_most(start, size, ranges, where) else ix.maximum(0, left)


def known_as(e: Expr, known: Iterable[Expr], ranges: Ranges) -> Expr:
    """The first of the known expressions that surely equals e, a number where e is always the same one, else e itself.

    The rules compare extents by their form.
    """
    corners = list(_at_corners(e, ranges))
    if len(set(corners)) == 1 and surely_equal(e, ix.const(corners[0]), ranges):
        return ix.const(corners[0])
    alike = (k for k in known if all(a == b for a, b in zip(corners, _at_corners(k, ranges), strict=True)))
    return next((k for k in alike if surely_equal(e, k, ranges)), e)


def _at_corners(e: Expr, ranges: Ranges) -> Iterator[int]:
    """The values of e where every variable is at an end of its interval or in the middle of it."""
    points = product(*((low, (low + high) // 2, high) for low, high in ranges.values()))
    return (ix.evaluate(e, dict(zip(ranges, point, strict=True))) for point in points)


def meet(a: Expr, b: Expr, full: int, ranges: Ranges) -> Expr:
    """The extent that two operands share on one axis of `full` elements: a result is there where both are."""
    if a == b or b.value == full:
        return a
    return b if a.value == full or surely_equal(a, b, ranges) else smaller(a, b, ranges)


def same(a: Expr, b: Expr, full: int, ranges: Ranges, what: str, span: Span | None) -> Expr:
    """The extent of two operands that have to end at one place. TileError where neither is whole and they may differ."""
    if a.value != full != b.value and not surely_equal(a, b, ranges):
        raise TileError(
            f"the operands have different valid {what}: {index_text(a)} and {index_text(b)}", span,
            help="both come from the edge of a tensor; tiles that meet must end at the same place",
        )  # fmt: skip
    return meet(a, b, full, ranges)


def smaller(a: Expr, b: Expr, ranges: Ranges) -> Expr:
    """min(a, b), simplified where one is always the smaller."""
    if a == b or (a.op == "min" and b in a.args):
        return a
    if b.op == "min" and a in b.args:
        return b
    low, high = ix.bounds(a - b, ranges)
    if low < 0 < high:
        low, high = extremes(a - b, ranges)
    return a if high <= 0 else b if low >= 0 else ix.minimum(a, b)
