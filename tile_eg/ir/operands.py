"""What an expression of tiles is made of."""

from __future__ import annotations

from collections.abc import Iterator

from tile_eg.ir import kernel as kn


def operands(e: kn.TileExpr) -> tuple[kn.TileExpr, ...]:
    """The expressions that an expression is made of."""
    match e:
        case kn.Unary() | kn.Cast() | kn.Bytes() | kn.Pack() | kn.Pad() | kn.Reduce() | kn.Broadcast():
            return (e.x,)
        case kn.Binary() | kn.Select():
            return (e.x, e.y)
        case kn.Whole():
            return e.xs
        case kn.Choose():
            return (e.a, e.b, e.x, e.y)
        case kn.MatMul():
            return (e.a, e.b)
        case kn.Scaled():
            return (e.x, e.scale)
    return ()


def parts(e: kn.TileExpr) -> Iterator[kn.TileExpr]:
    """An expression and all that it is made of, each once: what several parts have in common is one object."""
    return _unseen(e, set())


def _unseen(e: kn.TileExpr, seen: set[int]) -> Iterator[kn.TileExpr]:
    if id(e) not in seen:
        seen.add(id(e))
        yield e
        for x in operands(e):
            yield from _unseen(x, seen)


def regions(e: kn.TileExpr) -> Iterator[kn.Region]:
    """Every region that an expression reads."""
    return (x for x in parts(e) if isinstance(x, kn.Region))
