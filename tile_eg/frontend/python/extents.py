"""Extents that a copy or a product is given beside its operands, `T.copy(A[i, j], a, [m, n])`.

Some may be known only when the kernel is there, `[T.min(64, M - i), n]`: what has such an extent is a slice of that length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.values import Buffer, Slice, Window, describe, element, is_whole, value_buffer, with_rank
from tile_eg.frontend.python.whole_numbers import as_whole
from tile_eg.ir.index import ZERO, Expr
from tile_eg.ir.kernel import Region

Extents = tuple[int | Expr, ...]


def known(value: Any, what: str, span: Span | None) -> int:
    """A size that has to be a Python integer."""
    if isinstance(value, Expr) and value.value is not None:
        return value.value
    if isinstance(value, bool) or not isinstance(value, int):
        help = "what shapes a tile, a grid or a loop is a number; of a tile less may be meant: A[i : T.min(i + 64, n)]"
        help = help if isinstance(value, Expr) else "how many rows there are is x.shape[0]" if isinstance(value, Buffer) else ""
        help = "write // for whole-number division, or T.ceildiv(n, m) to round up" if isinstance(value, float) else help
        if isinstance(value, str) and value.isidentifier():
            help = f'a size that each call tells is {value} = T.symbolic("{value}") before the function, and {value} here'
        raise TileError(f"{what} has to be an integer known when the kernel is compiled, not {describe(value)}", span, help=help)
    return value


def sizes(value: Any, what: str, span: Span | None) -> tuple[int, ...]:
    found = tuple(known(v, what, span) for v in (value if isinstance(value, (list, tuple)) else (value,)))
    if any(n <= 0 for n in found):
        raise TileError(f"{what} has to be positive, got {found}", span)
    return found


def resized(r: Region, size: Sequence[int], span: Span | None) -> Region:
    """The first `size` elements of a region in each dimension; sizes of 1 may stand for dimensions that it lacks."""
    kept = with_rank(r, len(size))
    wanted = list(size) if len(kept.shape) == len(size) else [n for n in size if n != 1]
    if len(wanted) != len(kept.shape):
        what = f"an extent of {list(size)} does not fit {r.name}, whose shape is {r.shape}"
        raise TileError(what, span, help="an extent for each dimension: [m, n]; without extents all of it is meant")
    rest = iter(wanted)
    return Region(kept.name, kept.starts, tuple(None if e is None else next(rest) for e in kept.extents), kept.span)


def extents_of(b: Builder, value: Any, what: str, span: Span) -> Extents:
    """Numbers, and index expressions where only the kernel knows them. TileError for anything else."""
    given = value if isinstance(value, (list, tuple)) else (value,)
    found = tuple(e if isinstance(e := _index(b, v, span), Expr) and e.value is None else known(v, what, span) for v in given)
    if any(isinstance(n, int) and n <= 0 for n in found):
        raise TileError(f"{what} has to be positive, got {found}", span)
    return found


def _index(b: Builder, value: Any, span: Span) -> Any:
    """A number or an index, also one that is read; anything else as it is."""
    value = b.number(value, span)
    if isinstance(value, Window) and value.is_point and is_whole(value):
        return element(value)
    return as_whole(value)


def are_known(extents: Extents) -> bool:
    return all(isinstance(n, int) for n in extents)


def as_slices(b: Builder, src: Any, dst: Any, extents: Extents, span: Span) -> tuple[Any, Any]:
    """Both sides of a copy, with the extents written as slices: of the tensor, or else of the source."""
    sides = [src, dst]
    of = next((n for n, v in enumerate(sides) if isinstance(v, Buffer | Window) and value_buffer(v).scope == "tensor"), 0)
    sides[of] = _sliced(b, sides[of], _of_rank(extents, _rank(sides[1 - of])), span)
    sides[1 - of] = _cut(sides[1 - of], extents)
    return sides[0], sides[1]


def _rank(value: Any) -> int | None:
    """How many dimensions a side of a copy has by itself."""
    if isinstance(value, Buffer):
        return len(value.shape)
    return None if not isinstance(value, Window) or value.is_point else sum(isinstance(i, Slice) for i in value.items)


def _of_rank(extents: Extents, rank: int | None) -> Extents:
    """Without extents of 1 that the other side lacks, the first ones first: they stand for plain indices."""
    found: list[int | Expr | None] = list(extents)
    for n, e in enumerate(extents):
        if rank is None or sum(x is not None for x in found) <= rank:
            break
        if e == 1:
            found[n] = None
    return tuple(0 if e is None else e for e in found)


def _sliced(b: Builder, value: Any, extents: Extents, span: Span) -> Any:
    """A side whose last dimensions are slices of these lengths; 0 leaves an index."""
    if not isinstance(value, Buffer | Window):
        raise TileError("extents stand beside a buffer, or a start point of one", span, help="T.copy(A[i, j], a, [m, n])")
    buffer = value_buffer(value)
    items = value.items if isinstance(value, Window) else (ZERO,) * len(buffer.shape)
    if len(extents) > len(items) or None in items:
        raise TileError(f"{len(extents)} extents do not fit {buffer.name}, which has {len(items)} dimensions", span)
    lead = len(items) - len(extents)
    found = list(items)
    for n, (extent, size) in enumerate(zip(extents, buffer.shape[-len(extents) :], strict=True), lead):
        item = items[n]
        start = item.start if isinstance(item, Slice) else item
        assert start is not None
        if extent != 0:
            found[n] = Slice(start, extent) if isinstance(extent, int) else b.counted_slice(start, extent, size, span)
    if buffer.scope != "tensor":
        found = [_full(i, size) for i, size in zip(found, buffer.shape, strict=True)]
    return Window(buffer, tuple(found), span)


def _full(item: Any, size: int) -> Any:
    """A slice of a buffer, which has as many elements as there are at most."""
    return replace(item, extent=size) if isinstance(item, Slice) and not item.extent else item


def _cut(value: Any, extents: Extents) -> Any:
    """The other side, as long as the extents that are known say."""
    if not isinstance(value, Buffer) or len(extents) != len(value.shape):
        return value
    if all(n == size for n, size in zip(extents, value.shape, strict=True) if isinstance(n, int)):
        return value
    sizes = [n if isinstance(n, int) else size for n, size in zip(extents, value.shape, strict=True)]
    return Window(value, tuple(Slice(ZERO, n) for n in sizes))


def counted(r: Region, extents: Sequence[int | Expr], span: Span | None) -> Region:
    """The first elements of a buffer in each dimension, as many as the extents say."""
    kept = with_rank(r, len(extents))
    if len(kept.shape) != len(extents):
        raise TileError(f"{len(extents)} extents do not fit {r.name}, whose shape is {r.shape}", span)
    sizes = [n if isinstance(e, Expr) else e for n, e in zip(kept.shape, extents, strict=True)]
    found = kept if kept.shape == tuple(sizes) else resized(kept, sizes, span)
    given = iter(extents)
    counts = tuple(e if n is not None and isinstance(e := next(given), Expr) else None for n in found.extents)
    return replace(found, counts=counts) if any(counts) else found
