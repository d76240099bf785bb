"""Statements that run once for each value of a variable, on parts of tiles side by side, as statements on the whole tiles.

The equality: where x_v is rows (or columns) v*h .. v*h + h of a tile x, doing y_v = f(x_v) for all v is y = f(x), for every f
that works along the other axis. Buffers that hold a part become `count` times as long along the axis that is parted; a window of
anything else that moves by its own length, `x[v*h : v*h + h]`, becomes all of them; a loop over the rows of a part becomes one
over all rows. What does not depend on the variable is done once. Where there is no such form, `Parted` says why, and where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tile_eg.errors import Span
from tile_eg.frontend.python.temporaries import temporaries, uses_of
from tile_eg.frontend.python.values import nodes
from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO, Expr, terms_of, variables
from tile_eg.ir.index_elements import with_elements
from tile_eg.ir.kernel import (
    Alloc,
    Assign,
    Binary,
    Broadcast,
    Bytes,
    Cast,
    Choose,
    For,
    If,
    Index,
    MatMul,
    Number,
    Pack,
    Pad,
    Parallel,
    Reduce,
    Region,
    Scaled,
    Select,
    Stmt,
    TileExpr,
    Unary,
    Whole,
)

Axis = int | None
"""The axis of a value along which its parts lie side by side; None where all parts are the same."""


class Parted(Exception):
    """Why the parts are not parts of one tile."""

    def __init__(self, reason: str, span: Span | None) -> None:
        super().__init__(reason)
        self.reason, self.span = reason, span


class _Again(Exception):
    """Something more is known to be parted: what was built is built again."""


@dataclass
class Merge:
    """The merging of `variable`, which takes the values 0 .. count - 1. `shapes` are those of the buffers.

    `axes` has the buffers that are parted, each with its axis; `wide` the loops that run over the rows of a part. Products may be
    parted unless `variable` says which vector core this is: then they are done `once`, by the one cube core.
    """

    variable: str
    count: int
    shapes: Mapping[str, tuple[int, ...]]
    axes: dict[str, int] = field(default_factory=dict)
    wide: set[str] = field(default_factory=set)
    scope: dict[str, int] = field(default_factory=dict)
    span: Span | None = None
    once: bool = False
    temporary: set[str] = field(default_factory=set)
    uses: Counter[str] = field(default_factory=Counter)

    def run(self, body: Sequence[Stmt]) -> tuple[Stmt, ...] | Parted:
        """The statements on whole tiles, or why there are none."""
        self.uses = uses_of(tuple(body))
        while True:
            self.scope = {}
            try:
                return self.block(body)
            except _Again:
                continue
            except Parted as why:
                return why

    def fail(self, reason: str) -> Parted:
        return Parted(reason, self.span)

    def part(self, name: str, axis: int) -> None:
        """Notes that a buffer is parted along one of its axes."""
        if self.axes.get(name, axis) != axis:
            raise self.fail(f"`{name}` would be parted along both of its axes")
        if name not in self.axes:
            self.axes[name] = axis
            raise _Again

    # Statements

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(self.statement(s) for s in body)

    def statement(self, s: Stmt) -> Stmt:
        self.span = s.span or self.span
        match s:
            case Alloc():
                return replace(s, shape=self.longer(s.name, s.shape))
            case Assign():
                return self.assign(s)
            case For():
                return self.loop(s)
            case Parallel():
                extents = self.enter(s.vars, s.extents)
                body = tuple(self.assign(a) for a in s.body)
                self.leave(s.vars)
                return replace(s, extents=extents, body=body)
            case If() if self.variable in variables(s.condition):
                return self.of_one_part(s)
            case If():
                condition = self.position(s.condition)
                return replace(s, condition=condition, then=self.block(s.then), otherwise=self.block(s.otherwise))

    def of_one_part(self, s: If) -> If:
        """A branch that one part takes: what it stores to tensors, and all parts have, is stored by that one alone."""
        each = ({self.variable: ix.const(v)} for v in range(self.count))
        taken = {ix.substitute(s.condition, values).value for values in each}
        stored = all(n.target.name not in self.shapes for n in nodes(s.then) if isinstance(n, Assign))
        windows = (r for r in nodes(s.then) if isinstance(r, Region))
        asks = any(self.variable in variables(x) for r in windows for x in r.starts)
        if taken != {0, 1} or self.count != 2 or s.otherwise or asks or not stored:
            raise self.fail(f"a branch asks for `{self.variable}`, and does more than store what both parts have")
        return replace(s, condition=ix.ONE, then=self.block(s.then))

    def longer(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        axis = self.axes.get(name)
        return tuple(n * self.count if d == axis else n for d, n in enumerate(shape))

    def loop(self, s: For) -> For:
        if s.count is not None and self.variable in variables(s.count):
            raise self.fail(f"how often the loop over `{s.var}` runs depends on `{self.variable}`")
        if s.var in self.wide and (s.start or s.count is not None):
            raise self.fail(f"the loop over `{s.var}` runs over some of the rows")
        (extent,) = self.enter((s.var,), (s.extent,))
        outside, self.temporary = self.temporary, self.temporary | temporaries(s, self.shapes, self.uses)
        body = self.block(s.body)
        self.temporary = outside
        self.leave((s.var,))
        return replace(s, extent=extent, body=body)

    def enter(self, names: Sequence[str], extents: Sequence[int]) -> tuple[int, ...]:
        self.scope |= dict(zip(names, extents, strict=True))
        return tuple(n * self.count if v in self.wide else n for v, n in zip(names, extents, strict=True))

    def leave(self, names: Sequence[str]) -> None:
        for name in names:
            del self.scope[name]

    def assign(self, s: Assign) -> Assign:
        self.span = s.span or self.span
        target, to = self.region(s.target)
        value, of = self.value(s.value)
        if to is None and of is not None:
            self.part_region(s.target, of)
        self.check_rows(s.target)
        if to is not None and of is None:
            self.demand(s.value, to)
        elif to != of:
            raise self.fail(f"rows and columns of `{s.target.name}` are parted")
        return replace(s, target=target, value=value)

    def check_rows(self, target: Region) -> None:
        """In a loop over the rows of a part, what is written belongs to the row."""
        rows = self.wide & self.scope.keys()
        if rows and target.name not in self.temporary and not any(rows & variables(start) for start in target.starts):
            raise self.fail(f"`{target.name}` goes on from row to row of each part")

    # Values

    def value(self, e: TileExpr) -> tuple[TileExpr, Axis]:
        match e:
            case Region():
                return self.region(e)
            case Number():
                return e, None
            case Index():
                return replace(e, value=self.position(e.value)), None
            case Unary() | Cast():
                x, axis = self.value(e.x)
                return replace(e, x=x), axis
            case Binary():
                (x, y), axis = self.together((e.x, e.y))
                return replace(e, x=x, y=y), axis
            case Select():
                (x, y), axis = self.together((e.x, e.y))
                return replace(e, condition=self.position(e.condition), x=x, y=y), axis
            case Choose():
                (a, b, x, y), axis = self.together((e.a, e.b, e.x, e.y))
                return replace(e, a=a, b=b, x=x, y=y), axis
            case Broadcast():
                x, axis = self.value(e.x)
                return replace(e, x=x), None if axis is None else 1 - e.axis
            case Reduce():
                return self.reduction(e)
            case MatMul():
                return self.product(e)
            case Scaled():
                (x, scale), axis = self.together((e.x, e.scale))
                return replace(e, x=x, scale=scale), axis
            case Whole(op="transpose"):
                x, axis = self.value(e.xs[0])
                return replace(e, xs=(x,)), None if axis is None else 1 - axis
            case Bytes() | Pack() | Pad() | Whole():
                raise self.fail("bits, bytes, padding or the order of a tile are taken apart")

    def together(self, parts: Sequence[TileExpr]) -> tuple[list[TileExpr], Axis]:
        """Values of one shape: what is the same in all parts has to be so along the axis that is parted in another."""
        built = [self.value(e) for e in parts]
        found = {axis for _, axis in built if axis is not None}
        if len(found) > 1:
            raise self.fail("rows of one operand and columns of another are parted")
        for axis in found:
            for e, (_, own) in zip(parts, built, strict=True):
                if own is None:
                    self.demand(e, axis)
        return [e for e, _ in built], next(iter(found), None)

    def reduction(self, e: Reduce) -> tuple[TileExpr, Axis]:
        x, axis = self.value(e.x)
        if axis is not None and (axis == e.axis or _rank(e.x) == 1):
            raise self.fail(f"each part is reduced by itself, along the axis that `{self.variable}` parts")
        return replace(e, x=x), None if axis is None else 0

    def product(self, e: MatMul) -> tuple[TileExpr, Axis]:
        (a, of_a), (b, of_b) = self.value(e.a), self.value(e.b)
        if of_a is None and of_b is None:
            return replace(e, a=a, b=b), None
        if self.once:
            raise self.fail(f"an operand of a matrix product depends on `{self.variable}`, and there is one cube core")
        if of_b is None and of_a == int(e.transpose_a):
            return replace(e, a=a, b=b), 0
        if of_a is None and of_b == 1 - int(e.transpose_b):
            return replace(e, a=a, b=b), 1
        raise self.fail("each part is a sum over some of the inner dimension of a matrix product")

    def demand(self, e: TileExpr, axis: int) -> None:
        """Sees to it that a value that is the same in all parts has a form on the whole tile, parted along `axis`."""
        match e:
            case Region() if len(e.shape) > axis:
                self.part_region(e, axis)
            case Unary() | Cast():
                self.demand(e.x, axis)
            case Binary() | Select():
                for x in (e.x, e.y):
                    self.demand(x, axis)
            case Choose():
                for x in (e.a, e.b, e.x, e.y):
                    self.demand(x, axis)
            case Broadcast() if axis == 1 - e.axis:
                self.demand(e.x, 0)
            case Reduce():
                self.demand(e.x, 1 - e.axis)
            case Scaled():
                self.demand(e.x, axis)
                self.demand(e.scale, axis)
            case Whole(op="transpose"):
                self.demand(e.xs[0], 1 - axis)
            case MatMul() if self.once:
                raise self.fail("a matrix product is the same for all parts, and would have to be parted")
            case MatMul():
                self.demand(*((e.a, int(e.transpose_a)) if axis == 0 else (e.b, 1 - int(e.transpose_b))))

    def part_region(self, r: Region, axis: int) -> None:
        """Notes that a buffer is parted along the axis of a window of it that is the window's `axis`."""
        dimension = [d for d, e in enumerate(r.extents) if e is not None][axis]
        if r.name not in self.shapes:
            raise self.fail(f"`{self.variable}` does not say which part of `{r.name}` this is, and the parts differ")
        self.part(r.name, dimension)

    # Windows and positions

    def region(self, r: Region) -> tuple[Region, Axis]:
        if r.counts:
            raise self.fail(f"how many elements of `{r.name}` are meant is known at run time only")
        starts, extents, found = list(r.starts), list(r.extents), []
        kept = [d for d, e in enumerate(r.extents) if e is not None]
        for d, (start, extent) in enumerate(zip(r.starts, r.extents, strict=True)):
            if self.axes.get(r.name) == d:
                self.own(r, d)
                parted = extent is not None
            elif extent is None:
                starts[d], parted = self.element(r, d), False
            else:
                start = with_elements(start, self.read)
                parted = bool(by := self.coefficient(start, self.variable))
                self.check_window(r, start, extent, by)
                starts[d] = start - ix.var(self.variable) * by
            if parted and extent is not None:
                extents[d] = extent * self.count
                found.append(kept.index(d))
        if len(found) > 1 or (found and r.step != 1):
            raise self.fail(f"this window of `{r.name}` is parted along two axes, or has rows that lie apart")
        return replace(r, starts=tuple(starts), extents=tuple(extents)), found[0] if found else None

    def own(self, r: Region, d: int) -> None:
        """An index along the axis of a buffer that holds one part: all of it, or the variable of a loop over its rows."""
        start, extent, size = r.starts[d], r.extents[d], self.shapes[r.name][d]
        if extent == size and start == ZERO:
            return None
        if extent is None and start.op == "var" and self.scope.get(start.args[0]) == size:
            return self.widen(start.args[0])
        raise self.fail(f"`{r.name}` holds one part, and here is some of that part")

    def element(self, r: Region, d: int) -> Expr:
        """A plain index into something that is no part, without the variable."""
        start = r.starts[d]
        self.check_own_rows(r.name, start, d)
        return self.position(start)

    def check_own_rows(self, name: str, index: Expr, d: int) -> None:
        """Where an index counts rows of a part, what it picks them from is parted too."""
        outside = _outside_reads(index)
        if self.variable in variables(outside) or not self.wide & variables(outside):
            return
        if name in self.shapes:
            self.part(name, d)
        raise self.fail(f"each part uses the same rows of `{name}`")

    def read(self, element: Expr) -> Expr:
        """An index that is read, in terms of the whole of what it is read from."""
        name, place = element.args[:2]
        if name not in self.axes:
            self.check_own_rows(name, place, 0)
        elif len(self.shapes[name]) > 1:
            raise self.fail(f"an index is read from a part of `{name}`, which has more than one dimension")
        else:
            self.own(Region(name, (place,), (None,), self.span), 0)
        return element if name in self.axes else ix.read_at(element, self.position)

    def check_window(self, r: Region, start: Expr, extent: int, by: int) -> None:
        if self.wide & variables(_outside_reads(start)):
            raise self.fail(f"a window of `{r.name}` moves along with the rows of a part")
        if by not in (0, extent):
            what = f"`{self.variable}` moves {by} for {extent} elements"
            raise self.fail(f"the windows of `{r.name}` do not lie side by side: {what}")

    def position(self, e: Expr) -> Expr:
        """A number or a condition on the whole tile: where it counts rows of a part from the part's first one."""
        e = with_elements(e, self.read)
        names = variables(_outside_reads(e))
        if e.op in ("lt", "and", "min", "max"):
            return ix.with_operands(e, [self.position(a) for a in e.args])
        rows = [v for v in names if v in self.wide]
        by = self.coefficient(e, self.variable)
        if not by and not rows:
            return e
        for v in names & self.scope.keys():
            if by and by == self.scope[v] * self.coefficient(e, v):
                self.widen(v)
                return e - ix.var(self.variable) * by
        what = f"`{rows[0]}` counts the rows of each part from 0" if rows and not by else f"`{self.variable}` stands in a number"
        raise self.fail(f"{what}: {ix.text(e)}")

    def widen(self, name: str) -> None:
        if name not in self.wide:
            self.wide.add(name)
            raise _Again

    def coefficient(self, e: Expr, name: str) -> int:
        """How far e moves with a variable."""
        if name not in variables(_outside_reads(e)):
            return 0
        terms = terms_of(_outside_reads(e))
        if any(name in variables(k) for k in terms if k != ix.var(name)):
            raise self.fail(f"`{name}` stands in a quotient or a remainder: {ix.text(e)}")
        return terms.get(ix.var(name), 0)


def _outside_reads(e: Expr) -> Expr:
    """What of an index is not read from anywhere."""
    return with_elements(e, lambda _: ZERO)


def _rank(e: TileExpr) -> int:
    """The dimensions of a value, as far as its windows tell them."""
    return max((len(n.shape) for n in nodes(e) if isinstance(n, Region)), default=0)
