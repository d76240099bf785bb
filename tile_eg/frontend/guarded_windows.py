"""Choices by position whose arms read what not every block has: `T.if_then_else(b * 8 + i > 0, X[b * 8 + i - 1, j], 0.0)`.

The equality: where a condition holds only at elements that exist, its arm may have any number in the place of the others, as it
is not chosen there. So a window that would begin outside of its tensor is one with zeros for what is not there. Where the
condition says nothing of the tensor's end, what lies behind it still does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from tile_eg.frontend.guarded_parts import Ranges
from tile_eg.frontend.scalars import negation
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Pad, Parallel, Region, Select, TileExpr
from tile_eg.ir.operands import parts, regions

TensorShape = Callable[[str], tuple[int, ...] | None]


def with_guarded_windows(s: Parallel, tensor: TensorShape, ranges: Ranges) -> Parallel:
    """The loop with zeros for what its choices leave out of the tensors that they read. `tensor` gives the dimensions of a
    tensor, None for a buffer; `ranges` are those of the variables around the loop."""
    around = {**ranges, **{v: (0, max(0, n - 1)) for v, n in zip(s.vars, s.extents, strict=True)}}
    read = _Read(s.vars, tensor, around)
    body = tuple(replace(a, value=value) if (value := read.value(a.value, ())) is not a.value else a for a in s.body)
    return s if all(a is b for a, b in zip(body, s.body, strict=True)) else replace(s, body=body)


def is_guarded(s: Parallel) -> bool:
    """Whether a loop reads such windows."""
    return any(isinstance(e, Pad) for a in s.body for e in parts(a.value))


def is_cut_off(s: Parallel, tensor: TensorShape, ranges: Ranges) -> bool:
    """Whether a tensor's end may leave out elements that a loop reads. Its parts would each end there for themselves, and have
    zeros behind it; a choice between them ends where the shorter arm does."""
    around = {**ranges, **{v: (0, max(0, n - 1)) for v, n in zip(s.vars, s.extents, strict=True)}}
    read = (r for a in s.body for r in regions(a.value))
    places = ((start, n) for r in read for start, n in zip(r.starts, tensor(r.name) or (), strict=False))
    return any(
        ix.variables(start) <= around.keys() and not elements_in(start) and ix.bounds(start, around)[1] >= n
        for start, n in places
    )


class _Read:
    """Expressions of a loop over `own` variables, in arms of choices in which `facts` are never negative."""

    def __init__(self, own: tuple[str, ...], tensor: TensorShape, ranges: Ranges) -> None:
        self.first = dict.fromkeys(own, ix.ZERO)
        self.tensor, self.ranges = tensor, ranges

    def value(self, e: TileExpr, facts: tuple[Expr, ...]) -> TileExpr:
        match e:
            case Pad():
                return e
            case Select():
                x = self.value(e.x, (*facts, *_facts(e.condition)))
                y = self.value(e.y, (*facts, *_facts(negation(e.condition))))
                return e if x is e.x and y is e.y else replace(e, x=x, y=y)
            case Region():
                return self.window(e, facts) if facts else e
        inner = {f.name: v for f in fields(e) if isinstance(v := getattr(e, f.name), TileExpr)}  # type: ignore[arg-type]
        new: dict[str, Any] = {n: x for n, v in inner.items() if (x := self.value(v, facts)) is not v}
        return replace(e, **new) if new else e

    def window(self, r: Region, facts: tuple[Expr, ...]) -> TileExpr:
        shape = self.tensor(r.name)
        if shape is None or any(e is not None for e in r.extents) or not all(map(self.known, r.starts)):
            return r
        places = [(d, start, *self.bounds(start), n) for d, (start, n) in enumerate(zip(r.starts, shape, strict=True))]
        if not all(low >= 0 or self.follows(start, facts) for _, start, low, _, _ in places):
            return r
        behind = [(d, start, n) for d, start, _, high, n in places if high >= n]
        left = [(d, start, n) for d, start, n in behind if not self.follows(n - 1 - start, facts)]
        begins = all(self.bounds(ix.substitute(start, self.first))[1] < n for _, start, n in left)
        outside = any(low < 0 for _, _, low, _, _ in places) or len(left) < len(behind)
        return Pad(r, 0.0, r.span, tuple(d for d, _, _ in left)) if outside and begins else r

    def known(self, e: Expr) -> bool:
        return not elements_in(e) and ix.variables(e) <= self.ranges.keys()

    def bounds(self, e: Expr) -> ix.Interval:
        return ix.bounds(e, self.ranges)

    def follows(self, e: Expr, facts: tuple[Expr, ...]) -> bool:
        """Whether an index is never negative where one of the facts is not."""
        return any(self.bounds(e - f)[0] >= 0 for f in facts if self.known(f))


def _facts(c: Expr) -> Iterator[Expr]:
    """What is never negative where a condition holds."""
    if c.op == "and":
        for x in c.args:
            yield from _facts(x)
    elif c.op == "lt" and c.args[1] == ix.ONE and c.args[0].op == "lt":
        a, b = c.args[0].args
        yield a - b
    elif c.op == "lt":
        a, b = c.args
        yield b - a - 1
