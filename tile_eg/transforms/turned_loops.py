"""Loops that take rows of their tiles apart, every second element of each, with rows as columns all along the way.

An equality of values. Of a turned tile such elements are whole rows, which vector instructions read where they lie; to pick
them out of rows takes many times as long. What works on elements does the same to turned tiles, and what is put together is put
together in the other direction. So the tiles are turned once before the loop, and back once behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tile_eg.ir import index as ix
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.ir.values import Term, Values, made_of, reachable
from tile_eg.ops.types import BF16
from tile_eg.ops.whole_tiles import TURNED, WORDS
from tile_eg.transforms.rewriter import Rewriter


class NotTurned(Exception):
    """Something is done to a tile that is not done to a turned one."""


def in_turned_loops(values: Values) -> Values | None:
    """The kernel with the loops outside of others turned that take rows apart; None where there is none, or not each can be."""
    terms = reachable(values)
    loops = [t for t in terms if t.op == "loop" and values.parents[t.args[0]] == 0 and _takes_apart(t)]
    again = Rewriter({})
    try:
        for loop in loops:
            _turn(again, loop, [t for t in terms if t.op == "proj" and t.args[0] is loop])
    except NotTurned:
        return None
    return again.values(values, tuple(map(again.term, values.outputs))) if loops else None


def _takes_apart(loop: Term) -> bool:
    """Whether elements are picked out of the rows of what a loop has from trip to trip."""
    return any(_of_rows(t) and _depends(t, loop.args[0]) for t in made_of(tuple(after for _, after in loop.args[2])))


def _of_rows(t: Term) -> bool:
    """Whether a term is every so many elements of each row of another one."""
    return t.op == "whole" and t.args[0] == "every" and t.args[3].rows == t.rows > 1 and t.args[3].cols == t.cols * t.args[2]


def _depends(t: Term, loop: int) -> bool:
    return any(x.op == "arg" and x.args[0] == loop for x in made_of(t))


def _turn(again: Rewriter, loop: Term, read: list[Term]) -> None:
    """Notes what is read of a loop: its states turned back."""
    number, trips, states, *rest = loop.args
    work = _Turned(again, number)
    turned = tuple((_transposed(again, again.term(init)), work.tile(after)) for init, after in states)
    made = again.builder.make("loop", number, trips, turned, *rest)
    for t in read:
        again.terms[t] = _transposed(again, again.builder.make("proj", made, t.args[1], **_across(t)))


def _transposed(again: Rewriter, t: Term) -> Term:
    """A tile turned by the instruction for squares. NotTurned where it does not consist of such."""
    if not _whole(t) or t.dtype not in (*WORDS, BF16) or t.rows % TURNED or t.cols % TURNED:
        raise NotTurned
    return again.builder.make("whole", "transpose", t.rows, t.cols, t, **_across(t))


def _across(t: Term) -> dict[str, Any]:
    """The shape of a tile, turned."""
    return {"rows": t.cols, "cols": t.rows, "dtype": t.dtype, "vrows": t.vcols, "vcols": t.vrows}


def _whole(t: Term) -> bool:
    return bool(t.rows and t.vrows and t.vcols) and (t.vrows.value, t.vcols.value) == (t.rows, t.cols)  # type: ignore[union-attr]


@dataclass
class _Turned:
    """What the tiles in a loop become, turned."""

    again: Rewriter
    loop: int
    tiles: dict[Term, Term] = field(default_factory=dict)

    def tile(self, t: Term) -> Term:
        """A tile, turned. NotTurned where that is not known, or not all of it exists."""
        if t not in self.tiles:
            self.tiles[t] = self._made(t)
        return self.tiles[t]

    def _made(self, t: Term) -> Term:
        if not _depends(t, self.loop) and t.op != "fill":
            return _transposed(self.again, self.again.term(t))
        if not _whole(t) or t.op not in _OPS:
            raise NotTurned
        return _OPS[t.op](self, t)

    def make(self, t: Term, op: str, *args: Any) -> Term:
        return self.again.builder.make(op, *args, **_across(t))

    def same(self, t: Term) -> Term:
        """The same of elements that are turned."""
        return self.make(t, t.op, *(self.tile(x) if isinstance(x, Term) else x for x in t.args))

    def by_position(self, t: Term) -> Term:
        op, i, j, bound, *pair = t.args
        return self.make(t, t.op, op, j, i, bound, *map(self.tile, pair))

    def nest(self, t: Term) -> Term:
        return self.make(t, "nest", self.scalar(t.args[0]))

    def scalar(self, s: Term) -> Term:
        """A scalar expression of an element, by its turned position."""
        args = tuple(self._operand(s, x) for x in s.args)
        if s.op in ("s_index", "s_choose_at"):
            at = 1 if s.op == "s_choose_at" else 0
            args = (*args[:at], args[at + 1], args[at], *args[at + 2 :])
        if s.op == "s_reduce":
            raise NotTurned
        return self.again.builder.make(_SWAPPED.get(s.op, s.op), *args, **({"dtype": s.dtype} if s.dtype else {}))

    def _operand(self, s: Term, x: Any) -> Any:
        if not isinstance(x, Term):
            return x
        if s.op == "elem":
            return self.tile(x)
        return self.vector(x) if s.op in _SWAPPED else self.scalar(x)

    def vector(self, v: Term) -> Term:
        """A vector, which is what it was."""
        if not _depends(v, self.loop):
            return self.again.term(v)
        if v.op != "reduce" or not _whole(v):
            raise NotTurned
        axis, name, x = v.args
        shape = {"rows": v.rows, "cols": v.cols, "dtype": v.dtype, "vrows": v.vrows, "vcols": v.vcols}
        return self.again.builder.make("reduce", 1 - axis, name, self.tile(x), **shape)

    def spread(self, t: Term) -> Term:
        axis, v = t.args
        return self.make(t, "bcast", 1 - axis, self.vector(v))

    def part(self, t: Term) -> Term:
        """A window of a tile."""
        offset, x = t.args
        return self.make(t, "piece", _offset(offset, x, t), self.tile(x))

    def put(self, t: Term) -> Term:
        offset, x, y = t.args
        return self.make(t, "put", _offset(offset, x, y), self.tile(x), self.tile(y))

    def picked(self, t: Term) -> Term:
        """Every so many elements of each row: the rows that they have become, as columns of rows so many times as long."""
        if not _of_rows(t) or t.rows * t.dtype.bytes % BLOCK_BYTES:  # type: ignore[union-attr]
            raise NotTurned
        first, step = t.args[1:3]
        rows, cols = t.cols, step * t.rows
        shape = {"rows": rows, "cols": cols, "dtype": t.dtype, "vrows": ix.const(rows), "vcols": ix.const(cols)}
        longer = self.again.builder.make("whole", "reshape", rows, cols, self.tile(t.args[3]), **shape)
        return self.make(t, "piece", ix.const(first * t.rows), longer)


def _offset(offset: ix.Expr, x: Term, window: Term) -> ix.Expr:
    """Where a window of a tile begins in the turned tile. NotTurned where it is not made of whole blocks there."""
    if offset.value is None:
        raise NotTurned
    row, col = divmod(offset.value, x.cols)
    if any(n * x.dtype.bytes % BLOCK_BYTES for n in (row, window.rows)):  # type: ignore[union-attr]
        raise NotTurned
    return ix.const(col * x.rows + row)


_SWAPPED = {"elem_row": "elem_col", "elem_col": "elem_row"}
_OPS: dict[str, Callable[[_Turned, Term], Term]] = {
    "arg": _Turned.same, "fill": _Turned.same, "unary": _Turned.same, "binary": _Turned.same, "cast": _Turned.same,
    "choose": _Turned.same, "choose_at": _Turned.by_position, "nest": _Turned.nest, "bcast": _Turned.spread,
    "piece": _Turned.part, "put": _Turned.put, "whole": _Turned.picked,
}  # fmt: skip
"""What is done to tiles, and to turned ones."""
