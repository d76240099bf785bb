"""Words that make tiles of positions, and those that see the same bits as another element type."""

from __future__ import annotations

from typing import Any

from tile_eg.errors import NotSearched, Span, TileError
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.mask_words import HANDLERS
from tile_eg.frontend.python.values import Buffer, Window, as_dtype, as_region, as_tile, describe, is_index, value_buffer
from tile_eg.frontend.python.words import copied, handles, whole_count
from tile_eg.ir import index
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Assign, Binary, Broadcast, Cast, Index, Number, Parallel, Region, TileExpr

__all__ = ["HANDLERS"]


@handles("tile.createvecindex")
def _vector_index(b: Builder, span: Span, dst: Any, first: Any) -> None:
    _progression(b, span, dst, first, 1, None)


@handles("tile.arith_progression")
def _progression(b: Builder, span: Span, dst: Any, first: Any, step: Any, count: Any) -> None:
    to = as_region(dst, span)
    whole_count(count, to, span)
    if len(to.shape) not in (1, 2) or not isinstance(dst, Buffer):
        raise TileError("positions fill a whole buffer of one or two dimensions", span, help="copy a part of it")
    names = tuple(b.unique(name) for name in ("i", "j")[-len(to.shape) :])
    points = tuple(map(index.var, names))
    at = points[0] if len(points) == 1 else points[0] * to.shape[1] + points[1]
    target = Region(to.name, points, (None,) * len(points), span)
    b.statements.append(Parallel(names, to.shape, (Assign(target, _value(at, first, step, span), span),), span))
    b.written(to.name)


def _value(at: Expr, first: Any, step: Any, span: Span) -> TileExpr:
    """first + step * at: an index where both are whole numbers."""
    if is_index(first) and is_index(step):
        return Index(index.wrap(first) + at * index.wrap(step), span)
    for x in (first, step):
        if not isinstance(x, (int, float)):
            raise TileError(f"a progression takes numbers, not {describe(x)}", span)
    return Binary("add", Binary("mul", Index(at, span), Number(float(step), span), span), Number(float(first), span), span)


@handles("reinterpretcast")
def _reinterpret(b: Builder, span: Span, dst: Any, src: Any, dtype: Any) -> None:
    wanted = as_dtype(dtype, span)
    to, value = copied(src, dst, None, span)
    if not all(isinstance(v, (Buffer, Window)) for v in (dst, src)):
        raise TileError("T.reinterpretcast takes two buffers", span)
    new, old = value_buffer(dst).dtype, value_buffer(src).dtype
    if new != wanted:
        raise TileError(f"{to.name} holds {new}, not {wanted}", span)
    if new.bits != old.bits:
        raise TileError(f"{old} and {new} have bits of another number", span, help="a type of as many bits: uint32 of float32")
    if not (new.whole and old.whole or new == old):
        raise NotSearched(f"the search has no form for the bits of {old} as {new}", span)
    b.assign(to, Cast(new, value, span), span)


def _by_rows(op: str) -> Any:
    def handler(b: Builder, span: Span, dst: Any, src: Any, rows: Any, tmp: Any) -> None:
        to, r = as_region(dst, span), as_region(rows, span)
        if 1 in r.shape and len(r.shape) == 2:
            r = Region(r.name, r.starts, tuple(None if e == 1 else e for e in r.extents), r.span)
        b.assign(to, Binary(op, as_tile(src, span), Broadcast(r, 1, span), span), span)

    return handler


HANDLERS["tile.row_expand_mul"] = _by_rows("mul")
for _op in ("mul", "sub", "div"):
    HANDLERS[f"tile.row_expand_{_op}_experiment"] = _by_rows(_op)
