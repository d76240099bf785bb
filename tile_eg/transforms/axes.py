"""A kernel's terms built again, each along an axis: the one of its own whose extent is another one then.

What is done to each element is done to those of fewer or more rows, or columns; a product has the rows of its left operand and
the columns of its right one. What needs all of a term along the axis cannot be built so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_eg.ir.index import Expr
from tile_eg.ir.values import VERSIONS, Builder, Term, Values, first_version

ROWS, COLS, NONE = "rows", "cols", "none"


class CannotSplit(Exception):
    """The rows or columns of some value cannot be told apart."""


class Axes:
    """Rebuilds a kernel's terms: what has an extent of `size` along the axis has one of `now` then.

    A subclass says which windows and positions are meant: `window` is the offset of a load or store, `stored_axis` along which
    axis a store has its value, `valid` a valid extent along the axis, `kept` an expression that has nothing to do with it, and
    `first` what stands for `start` in the position i * row + j * col + start.
    """

    def __init__(self, values: Values, size: int, now: int) -> None:
        self.values, self.size, self.now, self.builder = values, size, now, Builder()
        self.axes: dict[tuple[int, int], str] = {}
        self.unknown: set[tuple[int, int]] = set()
        self.done: dict[tuple[Term, str], Term] = {}
        self.outputs = [t.args[0] for t in (first_version(o) for o in values.outputs)]

    def stored_axis(self, store: Term) -> str:
        raise NotImplementedError

    def window(self, t: Term, axis: str) -> Expr:
        raise NotImplementedError

    def valid(self, valid: Expr | None) -> Expr | None:
        raise NotImplementedError

    def first(self, start: Expr, i: int, j: int, axis: str) -> Expr:
        raise NotImplementedError

    def kept(self, x: Any) -> Any:
        return x

    def given(self, t: Term) -> Term:
        return t

    def rebuilt(self) -> tuple[Term, ...]:
        """The last versions of the outputs."""
        while True:  # a state's axis may become known only after its loop was built
            before, self.unknown = dict(self.axes), set()
            self.done.clear()
            after = [self.version(o) for o in self.values.outputs]
            if self.axes == before and not self.unknown:
                return tuple(after)
            if self.axes == before:
                self.axes |= dict.fromkeys(self.unknown, NONE)

    def told(self, **changed: Any) -> Values:
        """The values with these fields, and what is known of their terms."""
        v = self.values
        spans = {new: v.spans[old] for (old, _), new in self.done.items() if old in v.spans}
        buffers = {new: v.buffers[old] for (old, _), new in self.done.items() if old in v.buffers}
        return replace(v, spans=spans, buffers=buffers, **changed)

    # ---- versions of tensors ----

    def version(self, t: Term) -> Term:
        if t.op == "given":
            return self.given(t)
        if t.op == "targ":
            return t
        if t.op == "tproj":
            return self.builder.make("tproj", self.looped(t.args[0]), t.args[1])
        before, _, stride, value = t.args
        axis = self.stored_axis(t)
        return self.builder.make(t.op, self.version(before), self.window(t, axis), stride, self.tile(value, axis))

    # ---- tiles ----

    def tile(self, t: Term, axis: str) -> Term:
        if (t, axis) not in self.done:
            self.done[t, axis] = getattr(self, f"_{t.op}", self._whole)(t, axis)
        return self.done[t, axis]

    def shape(self, t: Term, axis: str) -> dict[str, Any]:
        """The shape and the valid extents of a term, as it is then."""
        out = _own_shape(t)
        if axis == ROWS:
            return out | {"rows": self._extent(t.rows), "vrows": self.valid(t.vrows), "vcols": self.kept(t.vcols)}
        if axis == COLS:
            return out | {"cols": self._extent(t.cols), "vrows": self.kept(t.vrows), "vcols": self.valid(t.vcols)}
        return out | {"vrows": self.kept(t.vrows), "vcols": self.kept(t.vcols)}

    def _extent(self, size: int) -> int:
        if size != self.size:
            raise CannotSplit
        return self.now

    def _load(self, t: Term, axis: str) -> Term:
        version, first = t.args[0], first_version(t.args[0])
        if first.op != "given" or first.args[0] in self.outputs:  # no other part must have stored what is read
            raise CannotSplit
        return self.builder.make("load", self.version(version), self.window(t, axis), t.args[2], **self.shape(t, axis))

    def _fill(self, t: Term, axis: str) -> Term:
        return self.builder.make("fill", t.args[0], **self.shape(t, axis))

    def _matmul(self, t: Term, axis: str) -> Term:
        a, b, ta, tb = t.args
        of_a, of_b = NONE, NONE
        if axis == ROWS:
            of_a = COLS if ta else ROWS
        elif axis == COLS:
            of_b = ROWS if tb else COLS
        return self.builder.make("matmul", self.tile(a, of_a), self.tile(b, of_b), ta, tb, **self.shape(t, axis))

    def _scaled(self, t: Term, axis: str) -> Term:
        if axis == COLS:  # elements share a scale along their row
            raise CannotSplit
        return self.builder.make("scaled", *(self.tile(x, axis) for x in t.args), **self.shape(t, axis))

    def _unary(self, t: Term, axis: str) -> Term:
        return self.builder.make("unary", t.args[0], self.tile(t.args[1], axis), **self.shape(t, axis))

    def _cast(self, t: Term, axis: str) -> Term:
        return self.builder.make("cast", self.tile(t.args[0], axis), **self.shape(t, axis))

    def _binary(self, t: Term, axis: str) -> Term:
        name, x, y = t.args
        return self.builder.make("binary", name, self.tile(x, axis), self.tile(y, axis), **self.shape(t, axis))

    def _choose(self, t: Term, axis: str) -> Term:
        op, *four = t.args
        return self.builder.make("choose", op, *(self.tile(x, axis) for x in four), **self.shape(t, axis))

    def _choose_bits(self, t: Term, axis: str) -> Term:
        if axis == COLS:  # eight elements share a byte
            raise CannotSplit
        return self.builder.make("choose_bits", *(self.tile(x, axis) for x in t.args), **self.shape(t, axis))

    def _bytes(self, t: Term, axis: str) -> Term:
        if axis == COLS:
            raise CannotSplit
        return self.builder.make(t.op, self.tile(t.args[0], axis), **self.shape(t, axis))

    _pack = _bytes

    def _whole(self, t: Term, axis: str) -> Term:
        """What has no form of its own here: it stays where nothing of it changes."""
        if axis != NONE:
            raise CannotSplit
        args = (self.tile(x, NONE) if isinstance(x, Term) else self.kept(x) for x in t.args)
        return self.builder.make(t.op, *args, **self.shape(t, axis))

    def _choose_at(self, t: Term, axis: str) -> Term:
        op, i, j, bound, *pair = t.args
        args = op, i, j, self.first(bound * -1, i, j, axis) * -1, *(self.tile(x, axis) for x in pair)
        return self.builder.make("choose_at", *args, **self.shape(t, axis))

    def _bcast(self, t: Term, axis: str) -> Term:
        along, v = t.args
        inner = COLS if (axis == ROWS and along == 1) or (axis == COLS and along == 0) else NONE
        return self.builder.make("bcast", along, self.tile(v, inner), **self.shape(t, axis))

    def _reduce(self, t: Term, axis: str) -> Term:
        over, name, x = t.args
        if axis == ROWS:  # a vector has one
            raise CannotSplit
        inner = {(1, COLS): ROWS, (0, COLS): COLS}.get((over, axis), NONE)
        return self.builder.make("reduce", over, name, self.tile(x, inner), **self.shape(t, axis))

    def _nest(self, t: Term, axis: str) -> Term:
        if axis == COLS and t.rows > 1 and _reduces(t.args[0]):  # each row is reduced whole
            raise CannotSplit
        return self.builder.make("nest", self.scalar(t.args[0], axis), **self.shape(t, axis))

    def scalar(self, s: Term, axis: str) -> Term:
        """A nest's scalar expression at the elements of one panel."""
        if s.op in ("elem", "elem_row", "elem_col"):
            inner = {("elem", axis): axis, ("elem_row", ROWS): COLS, ("elem_col", COLS): COLS}.get((s.op, axis), NONE)
            return self.builder.make(s.op, self.tile(s.args[0], inner), **_own_shape(s))
        if s.op == "number":
            return s
        if s.op == "s_reduce":
            inner = NONE if axis == NONE else ROWS
            return self.builder.make(s.op, s.args[0], self.scalar(s.args[1], inner), **self.shape(s, inner))
        if s.op == "s_choose_at":
            op, p, q, bound, *pair = s.args
            x, y = (self.scalar(a, axis) for a in pair)
            return self.builder.make(s.op, op, p, q, self.first(bound * -1, p, q, axis) * -1, x, y, **_own_shape(s))
        if s.op == "s_index":
            p, q, start = s.args
            return self.builder.make(s.op, p, q, self.first(start, p, q, axis), **_own_shape(s))
        args = (self.scalar(a, axis) if isinstance(a, Term) else a for a in s.args)
        return self.builder.make(s.op, *args, **_own_shape(s))

    # ---- loops ----

    def _along(self, loop: int, k: int, axis: str) -> None:
        if self.axes.setdefault((loop, k), axis) != axis:
            raise CannotSplit

    def _arg(self, t: Term, axis: str) -> Term:
        loop, k = t.args
        self._along(loop, k, axis)
        return self.builder.make("arg", *t.args, **self.shape(t, axis))

    def _proj(self, t: Term, axis: str) -> Term:
        loop, k = t.args
        self._along(loop.args[0], k, axis)
        return self.builder.make("proj", self.looped(loop), k, **self.shape(t, axis))

    def looped(self, t: Term) -> Term:
        """The loop with its states along the axes known so far."""
        if (t, NONE) not in self.done:
            loop, trips, states, *rest = t.args
            new = tuple(self._pair(loop, k, a, b) for k, (a, b) in enumerate(states))
            self.done[t, NONE] = self.builder.make("loop", loop, trips, new, *rest)
        return self.done[t, NONE]

    def _pair(self, loop: int, k: int, init: Term, after: Term) -> tuple[Term, Term]:
        if init.op in VERSIONS:
            return self.version(init), self.version(after)
        if (loop, k) not in self.axes:
            self.unknown.add((loop, k))
            return init, after
        axis = self.axes[loop, k]
        return self.tile(init, axis), self.tile(after, axis)


def _reduces(s: Term) -> bool:
    """Whether a nest's scalar expression reduces rows."""
    return s.op == "s_reduce" or any(_reduces(x) for x in s.args if isinstance(x, Term) and x.op.startswith("s_"))


def _own_shape(t: Term) -> dict[str, Any]:
    return {"rows": t.rows, "cols": t.cols, "dtype": t.dtype, "vrows": t.vrows, "vcols": t.vcols}
