"""Row panels: the rows of a block's tiles in several passes, one behind the other, or each in a block of its own.

An equality of values: a store of a tile is a loop, or a grid, of stores of its panels. What a panel needs as a
whole (an operand of all rows, a reduction over them) is made whole again in every panel, unless it can be kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_eg.ir.index import BLOCK, EACH, Expr, const, maximum, minimum, var, variables
from tile_eg.ir.machine import FRACTAL
from tile_eg.ir.program.tasks import free_names
from tile_eg.ir.values import VERSIONS, WRITES, Builder, Term, Values, first_version, reachable
from tile_eg.transforms.any_size import row_stride
from tile_eg.transforms.rewriter import over_blocks

ROWS, COLS, NONE = "rows", "cols", "none"
VARIABLE = "panel"
ALONE = 1  # rows of what vector cores do


class CannotSplit(Exception):
    """The rows of some stored value cannot be told apart."""


def in_panels(values: Values, panels: int) -> Values | None:
    """The same kernel with the rows of its largest stored tile in `panels` passes; None where its rows cannot be told apart."""
    rows = max((t.args[3].rows for t in stores(values)), default=1)
    unit = FRACTAL if any(t.op == "matmul" for t in reachable(values)) else ALONE
    if panels < 2 or rows % (panels * unit):
        return None
    try:
        return Splitter(values, rows, panels).values_in_panels()
    except CannotSplit:
        return None


def in_blocks(values: Values, panels: int) -> Values | None:
    """The same kernel with a block for each panel of the rows of its largest stored tile: all first panels, then all second ones.

    None where its rows cannot be told apart.
    """
    rows = max((t.args[3].rows for t in stores(values)), default=1)
    if panels < 2 or rows % panels:
        return None
    try:
        return Splitter(over_blocks(values, panels), rows, panels, var(BLOCK) // values.blocks).outputs_in_panels()
    except CannotSplit:
        return None


def stores(values: Values) -> list[Term]:
    """The terms that write to tensors."""
    out, seen, stack = [], set(), list(values.outputs)
    while stack:
        t = stack.pop()
        if t in seen:
            continue
        seen.add(t)
        if t.op in WRITES:
            out.append(t)
        stack += [a for a in _terms(t.args) if isinstance(a, Term)]
    return out


def _terms(args: tuple) -> list[Any]:
    """The arguments, those of nested tuples (a loop's states) included."""
    return [x for a in args for x in (_terms(a) if isinstance(a, tuple) else [a])]


class Splitter:
    """Rebuilds a kernel's terms for one panel. A term is asked for along an axis: the one of its own that the panels cut.

    The loops `outside` stay before the one over panels.
    """

    def __init__(self, values: Values, rows: int, panels: int, panel: Expr | None = None) -> None:
        """`panel` says which one a block has; None: a loop goes through all of them."""
        self.values, self.rows, self.panels, self.height = values, rows, panels, rows // panels
        self.loop = max(values.parents, default=0) + 1 if panel is None else 0
        self.builder = Builder()
        self.axes: dict[tuple[int, int], str] = {}
        self.unknown: set[tuple[int, int]] = set()
        self.done: dict[tuple[Term, str], Term] = {}
        self.outside: set[int] = set()
        self.outputs = [t.args[0] for t in (first_version(o) for o in values.outputs)]
        self.variable = free_names((VARIABLE,), values.variables.values())[VARIABLE]
        self.start = (panel or var(self.variable)) * self.height

    def rebuilt(self) -> tuple[Term, ...]:
        """The last versions of the outputs, of one panel."""
        v = self.values
        while True:  # a state's axis may become known only after its loop was built
            before, self.unknown = dict(self.axes), set()
            self.done.clear()
            after = [self.version(o) for o in v.outputs]
            if self.axes == before and not self.unknown:
                return tuple(after)
            if self.axes == before:
                self.axes |= dict.fromkeys(self.unknown, NONE)

    def outputs_in_panels(self) -> Values:
        """The values of a block that has one panel."""
        return self._told(outputs=self.rebuilt())

    def values_in_panels(self) -> Values:
        """The values of a block that goes through all panels."""
        v, after = self.values, self.rebuilt()
        given = [first_version(o) for o in v.outputs]
        loop = self.builder.make("loop", self.loop, self.panels, tuple(zip(given, after, strict=True)), 0)
        outputs = tuple(self.builder.make("tproj", loop, k) for k in range(len(after)))
        parents = {x: around or (0 if x in self.outside else self.loop) for x, around in v.parents.items()} | {self.loop: 0}
        trips, variables = v.trips | {self.loop: self.panels}, v.variables | {self.loop: self.variable}
        return self._told(outputs=outputs, parents=parents, trips=trips, variables=variables)

    def _told(self, **changed: Any) -> Values:
        """The values with these fields, and what is known of their terms."""
        v = self.values
        spans = {new: v.spans[old] for (old, _), new in self.done.items() if old in v.spans}
        buffers = {new: v.buffers[old] for (old, _), new in self.done.items() if old in v.buffers}
        return replace(v, spans=spans, buffers=buffers, **changed)

    # ---- versions of tensors ----

    def version(self, t: Term) -> Term:
        if t.op == "given":
            if t.args[0] in self.outputs and self.loop:
                return self.builder.make("targ", self.loop, self.outputs.index(t.args[0]))
            return t
        if t.op == "targ":
            return t
        if t.op == "tproj":
            return self.builder.make("tproj", self.looped(t.args[0]), t.args[1])
        before, offset, stride, value = t.args
        axis = self._stored_axis(value)
        if EACH in variables(offset):
            raise CannotSplit
        shift = self.start * (row_stride(t, self.values) if axis == ROWS else 1)
        return self.builder.make(t.op, self.version(before), offset + shift, stride, self.tile(value, axis))

    def _stored_axis(self, value: Term) -> str:
        if value.rows == self.rows:
            return ROWS
        if value.rows == 1 and value.cols == self.rows:
            return COLS
        raise CannotSplit

    # ---- tiles ----

    def tile(self, t: Term, axis: str) -> Term:
        if (t, axis) not in self.done:
            self.done[t, axis] = t if axis == NONE and t.op in ("fill",) else getattr(self, f"_{t.op}")(t, axis)
        return self.done[t, axis]

    def shape(self, t: Term, axis: str) -> dict[str, Any]:
        """The shape and the valid extents of a term's panel."""
        out = _own_shape(t)
        if axis == ROWS:
            out |= {"rows": self._cut(t.rows), "vrows": self._valid(t.vrows, t.rows)}
        elif axis == COLS:
            out |= {"cols": self._cut(t.cols), "vcols": self._valid(t.vcols, t.cols)}
        return out

    def _cut(self, size: int) -> int:
        if size != self.rows:
            raise CannotSplit
        return self.height

    def _valid(self, valid: Expr | None, size: int) -> Expr | None:
        if valid is None or valid.value == size:
            return const(self.height)
        return maximum(0, minimum(self.height, valid - self.start))

    def _load(self, t: Term, axis: str) -> Term:
        version, offset, stride = t.args
        first = first_version(version)
        if EACH in variables(offset):
            raise CannotSplit
        if first.op != "given" or first.args[0] in self.outputs:  # a panel must not read what another one stores
            raise CannotSplit
        shift = self.start * {ROWS: row_stride(t, self.values), COLS: 1, NONE: 0}[axis]
        return self.builder.make("load", self.version(version), offset + shift, stride, **self.shape(t, axis))

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

    def _piece(self, t: Term, axis: str) -> Term:
        return self._whole(t, axis)

    _put = _piece

    def _whole(self, t: Term, axis: str) -> Term:
        if axis != NONE:
            raise CannotSplit
        args = (self.tile(x, NONE) if isinstance(x, Term) else x for x in t.args)
        return self.builder.make(t.op, *args, **self.shape(t, axis))

    def _choose_at(self, t: Term, axis: str) -> Term:
        op, i, j, bound, *pair = t.args
        args = op, i, j, bound - self._passed(i, j, axis), *(self.tile(x, axis) for x in pair)
        return self.builder.make("choose_at", *args, **self.shape(t, axis))

    def _passed(self, i: int, j: int, axis: str) -> Expr:
        """What the positions of a panel's elements lack to those in the whole tile."""
        return self.start * {ROWS: i, COLS: j, NONE: 0}[axis]

    def _bcast(self, t: Term, axis: str) -> Term:
        along, v = t.args
        inner = COLS if (axis == ROWS and along == 1) or (axis == COLS and along == 0) else NONE
        return self.builder.make("bcast", along, self.tile(v, inner), **self.shape(t, axis))

    def _reduce(self, t: Term, axis: str) -> Term:
        over, name, x = t.args
        inner = {(1, COLS): ROWS, (0, COLS): COLS}.get((over, axis), NONE)
        return self.builder.make("reduce", over, name, self.tile(x, inner), **self.shape(t, axis))

    def _nest(self, t: Term, axis: str) -> Term:
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
            return self.builder.make(s.op, op, p, q, bound - self._passed(p, q, axis), x, y, **_own_shape(s))
        if s.op == "s_index":
            p, q, start = s.args
            return self.builder.make(s.op, p, q, start + self._passed(p, q, axis), **_own_shape(s))
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


def _own_shape(t: Term) -> dict[str, Any]:
    return {"rows": t.rows, "cols": t.cols, "dtype": t.dtype, "vrows": t.vrows, "vcols": t.vcols}
