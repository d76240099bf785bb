"""Element and row loops as `nest` terms: every assignment becomes one tile whose element (i, j) is a scalar expression."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from typing import Any

from tile_eg.errors import NotSearched, TileError, attempted
from tile_eg.frontend.hints import hint
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.liveness import Names
from tile_eg.frontend.ssa import columns, outside
from tile_eg.frontend.ssa.by_position import chosen_by
from tile_eg.frontend.ssa.dependence import Step, multiple, steps, temporaries
from tile_eg.frontend.ssa.extents import meet
from tile_eg.frontend.ssa.positions import Position, number, parts, position, whole_number
from tile_eg.frontend.ssa.regions import Env, Regions
from tile_eg.frontend.ssa.rounding import constant_as
from tile_eg.frontend.ssa.scalars import Axes, Scalar
from tile_eg.frontend.ssa.steps import between, computing, promoted, reducing
from tile_eg.frontend.ssa.tiles import valid_cols, valid_rows
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.operands import regions
from tile_eg.ir.passed import as_number
from tile_eg.ir.values import Term
from tile_eg.ops.elementwise import REDUCE
from tile_eg.ops.types import F16, F32, I32, U32, DType

ROW = ":"
"""The column coordinate of a statement over a whole row, `s[i, :]`."""


def convert(c: Regions, s: kn.For | kn.Parallel, env: Env, after: Names) -> Env:
    """The environment behind an element loop or a row loop. Raises TileError where iterations depend on one another."""
    nest = steps(s, c.decide, c.chosen)
    shapes = {name: b.shape for name, b in c.buffers.items()}
    private = temporaries(nest, shapes, after)
    if isinstance(private, TileError):
        raise private
    for step in nest:
        env = env | {step.assign.target.name: Statement(c, step, env, private).term()}
    return {name: term for name, term in env.items() if name not in private}


def independent(c: Regions, s: kn.Parallel, after: Names) -> bool:
    """Whether no iteration of an element loop uses what another one writes."""
    found = temporaries(steps(s, c.decide, c.chosen), {name: b.shape for name, b in c.buffers.items()}, after)
    return not isinstance(found, TileError)


class Statement:
    """Converts one assignment of a nest."""

    def __init__(self, c: Regions, step: Step, env: Env, private: Names) -> None:
        self.c, self.step, self.env, self.private = c, step, env, private
        c.env = env
        self.tiles = c.tiles
        self.known: dict[tuple[int, Axes, DType], tuple[kn.TileExpr, Scalar]] = {}
        self.cut: dict[tuple[Term, ix.Expr | None, ix.Expr | None, Axes], Term] = {}

    def term(self) -> Term:
        """The value of the target behind the statement: a nest, or a store of one."""
        assign, target = self.step.assign, self.step.assign.target
        axes, dtype = self.axes(target), self.array(target).dtype
        self.c.ended = []
        value = self.to(self.scalar(assign.value, axes, dtype), dtype)
        nest = self.nest(value, axes)
        if target.name in self.c.tensors:
            self.c.refuse_ended(target)
            return self.c.store(replace(assign, target=self.opened(target)), nest, self.env)
        if (window := self.window(target)) is not None:
            return self.c.filled(window, self.c.where_there(nest, window, self.env), self.env, self.stride(target))
        nest = self.c.where_there(nest, self.opened(target), self.env)
        self.tiles_named(nest, target.name)
        return nest

    def window(self, target: kn.Region) -> kn.Region | None:
        """The window of a buffer that the statement writes; None where it writes all of it."""
        opened = self.opened(target)
        whole = self.stride(target) == 1 and self.c.is_whole(replace(opened, starts=tuple(map(self.c.index, opened.starts))))
        return None if whole or target.name in self.private else opened

    def stride(self, target: kn.Region) -> int:
        """How far apart the elements of a row are that are written, y[2*j + 1]."""
        last = [v for v in self.step.extents if v in ix.variables(target.starts[-1])]
        return multiple(target.starts[-1], last[0]) if last and target.extents[-1] is None else 1

    def tiles_named(self, nest: Term, name: str) -> None:
        buffer = self.c.buffers[name]
        self.c.named.setdefault(nest, (buffer.name, buffer.scope))

    def nest(self, s: Scalar, axes: Axes) -> Term:
        shape = self.extents(s, axes.rows, axes.cols)
        return self.tiles.make(self.step.assign.span, "nest", s.term, dtype=s.term.dtype, **shape)

    def extents(self, s: Scalar, rows: int, cols: int) -> dict[str, Any]:
        return {"rows": rows, "cols": cols, "vrows": s.vrows or ix.const(rows), "vcols": s.vcols or ix.const(cols)}

    def array(self, r: kn.Region) -> kn.Tensor | kn.Alloc:
        return self.c.tensors.get(r.name) or self.c.buffers[r.name]

    # coordinates

    def coordinates(self, r: kn.Region) -> tuple[tuple[str, int], ...]:
        """The coordinate and extent of each dimension of a region, dimensions of one element left out."""
        pairs = [self.coordinate(r, d) for d in range(len(r.starts))]
        found = [p for p in pairs if p is not None]
        if r.name in self.private:
            row = next(iter(self.step.extents))
            found = [(row, self.step.extents[row]), *found]
        return tuple(found)

    def coordinate(self, r: kn.Region, d: int) -> tuple[str, int] | None:
        start, extent = r.starts[d], r.extents[d]
        inside = [v for v in self.step.extents if v in ix.variables(start)]
        if extent is not None and inside:
            raise self.unsupported(r, f"a window that begins at {index_text(start)}")
        if extent is not None:
            return (ROW, extent)
        if not inside:
            return None
        if inside and (rows := self.gathered(r)) and rows[0] in inside:
            return (rows[0], self.step.extents[rows[0]]) if rows[1] == d and len(inside) == 1 else None
        if len(inside) != 1 or not self.plain(r, d, inside[0]):
            raise self.unsupported(r, f"the index {index_text(start)}")
        return (inside[0], self.step.extents[inside[0]])

    def gathered(self, r: kn.Region) -> tuple[str, int] | None:
        """The variable by which the rows or elements of a tensor are gathered, an index being read with it, and the first
        dimension that it picks. TileError where it is not one variable that picks an element."""
        if r.name not in self.c.tensors:
            return None
        read = [x for start in r.starts for x in elements_in(start)]
        found = [v for v in self.step.extents if any(v in ix.variables(x) for x in read)]
        if not found:
            return None
        picks = [found[0] in ix.variables(start) for start in r.starts]
        rows = any(self.runs(r, d) and not picked for d, picked in enumerate(picks) if d > picks.index(True))
        if not rows and (r is self.step.assign.target or any(self.runs(r, d) for d, picked in enumerate(picks) if not picked)):
            how = "written where an index says" if r is self.step.assign.target else "gathered by more than one variable"
            message = f"single elements of `{r.name}` are {how}: not supported yet"
            raise TileError(message, r.span, help=f"whole rows are: {r.name}[idx[i], :]")
        return found[0], picks.index(True)

    def plain(self, r: kn.Region, d: int, variable: str) -> bool:
        """Whether an index is the variable and an offset that does not vary with the nest. Of rows that are read, and of the last
        dimension of a buffer that is written, it may be a multiple of the variable."""
        times = multiple(r.starts[d], variable)
        rest = r.starts[d] - ix.var(variable) * times
        rows = any(self.runs(r, later) for later in range(d + 1, len(r.starts)))
        if r is self.step.assign.target and r.name not in self.c.tensors:
            rows = not rows
        return not ix.variables(rest) & set(self.step.extents) and (times == 1 or (times > 1 and rows))

    def runs(self, r: kn.Region, d: int) -> bool:
        return r.extents[d] is not None or bool(ix.variables(r.starts[d]) & set(self.step.extents))

    def unsupported(self, r: kn.Region, what: str) -> NotSearched:
        return NotSearched(
            f"{what} of `{r.name}` is not supported in an element loop yet", r.span,
            help="buffers are indexed by the loop variables alone, as in s[i, j], m[i] or s[i, :]",
        )  # fmt: skip

    def axes(self, target: kn.Region) -> Axes:
        """What the statement runs over, as its target says."""
        found = self.coordinates(target)
        missing = [v for v, n in self.step.extents.items() if v not in dict(found) and n > 1]
        if missing:
            raise TileError(f"every iteration of `{missing[0]}` writes the same element of `{target.name}`", target.span)
        if len(found) > 2:
            raise self.unsupported(target, f"a loop over {len(found)} dimensions")
        if len(found) == 2:
            return Axes(found[0][0], found[1][0], found[0][1], found[1][1])
        return Axes(None, found[0][0], 1, found[0][1]) if found else Axes(None, None, 1, 1)

    # scalar expressions

    def scalar(self, e: kn.TileExpr, axes: Axes, dtype: DType) -> Scalar:
        """An expression at the point (i, j); `dtype` is what a bare number becomes. What several parts have in common is made
        once, but where it takes elements that may not exist, as these are noted each time."""
        key, ended = (id(e), axes, dtype), self.c.ended
        if key in self.known:
            return self.known[key][1]
        before, made = len(ended), self.scalar_of(e, axes, dtype)
        if self.c.ended is ended and len(ended) == before:
            self.known[key] = e, made
        return made

    def scalar_of(self, e: kn.TileExpr, axes: Axes, dtype: DType) -> Scalar:
        match e:
            case kn.Number():
                return Scalar(self.make(e, "number", as_number(e.value), dtype=dtype))
            case kn.Index():
                place = number(e, self.c.index(e.value), (axes.row, axes.col), self.step.extents, self.tiles.ranges)
                return Scalar(self.make(e, "s_index", *place, dtype=F32))
            case kn.Region():
                return self.element(e, axes, self.value(e))
            case kn.Pad(x=kn.Region() as r) if self.c.is_window(self.opened(r)):
                window = outside.Padded(self.env[r.name], self.c.tensors[r.name], self.c.located(self.opened(r)), e.value)
                return self.element(r, axes, outside.ending(self.tiles, window, e.ends, r.span))
            case kn.Unary():
                x = self.scalar(e.x, axes, dtype)
                work = self.to(x, computing(x.term.dtype))
                return self.to(replace(work, term=self.make(e, "s_unary", e.op, work.term)), x.term.dtype)
            case kn.Binary():
                return self.binary(e, axes, dtype)
            case kn.Cast(dtype=wanted, x=kn.Index(value=value)) if wanted in (I32, U32):
                place = whole_number(self.c.index(value), (axes.row, axes.col), self.step.extents, e.span)
                index = self.tiles.index(place, (axes.rows, axes.cols), e.span, I32)
                return self.to(Scalar(self.make(e, "elem", index)), wanted)
            case kn.Cast():
                return self.to(self.scalar(e.x, axes, e.dtype), e.dtype)
            case kn.Reduce():
                return self.reduce(e, axes)
            case kn.Select():
                return self.select(e, axes, dtype)
            case kn.Choose(op=kn.BIT):
                raise TileError("bits select whole tiles, no rows of them yet", e.span, help="select outside of the loop")
            case kn.Choose():
                return self.choose(e, axes, dtype)
        raise TileError("this operation is not supported in an element loop yet", e.span)

    def make(self, e: kn.TileExpr, op: str, *args: object, dtype: DType | None = None, **shape: Any) -> Term:
        if dtype is None:
            dtype = next(a.dtype for a in args if isinstance(a, Term))
        return self.tiles.make(e.span, op, *args, dtype=dtype, **shape)

    def to(self, s: Scalar, dtype: DType | None) -> Scalar:
        if s.term.dtype == dtype or dtype is None:
            return s
        if s.term.op == "number" and (known := constant_as(s.term.args[0], s.term.dtype, dtype)) is not None:
            return replace(s, term=self.tiles.make(None, "number", known, dtype=dtype))
        step = between(s.term.dtype, dtype)
        if step is not None:
            return self.to(self.to(s, step), dtype)
        return replace(s, term=self.tiles.make(None, "s_cast", s.term, dtype=dtype))

    def binary(self, e: kn.Binary, axes: Axes, dtype: DType) -> Scalar:
        x, y, wide = self.pair(e.x, e.y, axes, dtype)
        (x, y), valid = self.meeting((x, y), axes, e.span)
        return self.to(Scalar(self.make(e, "s_binary", e.op, x.term, y.term), *valid), wide)

    def pair(self, a: kn.TileExpr, b: kn.TileExpr, axes: Axes, dtype: DType) -> tuple[Scalar, Scalar, DType]:
        """Two operands in the dtype that the vector unit works in on them, and the wider of their own."""
        x, y = self.scalar(a, axes, dtype), self.scalar(b, axes, dtype)
        if isinstance(a, kn.Number):
            x = self.scalar(a, axes, y.term.dtype or dtype)
        elif isinstance(b, kn.Number):
            y = self.scalar(b, axes, x.term.dtype or dtype)
        wide = promoted(x.term.dtype, y.term.dtype)
        return self.to(x, computing(wide)), self.to(y, computing(wide)), wide

    def choose(self, e: kn.Choose, axes: Axes, dtype: DType) -> Scalar:
        a, b, _ = self.pair(e.a, e.b, axes, F32)
        x, y, wide = self.pair(e.x, e.y, axes, dtype)
        (a, b, x, y), valid = self.meeting((a, b, x, y), axes, e.span)
        term = self.make(e, "s_choose", e.op, a.term, b.term, x.term, y.term, dtype=x.term.dtype)
        return self.to(Scalar(term, *valid), wide)

    def select(self, e: kn.Select, axes: Axes, dtype: DType) -> Scalar:
        """A choice by position; where that is the same for all elements, what is chosen, unless what is not ends before it."""
        inside = {v: n for v, n in self.step.extents.items() if v in ix.variables(e.condition)}
        truth = self.c.truth(e.condition, inside)
        if truth is not None and (alone := self.chosen_alone(e, truth, axes, dtype)) is not None:
            return alone
        yes, no, c = parts(e) if truth is None else (e.x, e.y, e.condition)
        everywhere = Position("ge", 0, 0, ix.const(0 if truth else 1))
        at = (axes.row, axes.col), self.step.extents, self.tiles.ranges, e.span
        holds = position(self.c.index(c), *at) if truth is None else everywhere
        arms = (partial(self.scalar, arm, axes, dtype) for arm in (yes, no))
        x, y, wide = chosen_by(self.c, holds, partial(self.pair, yes, no, axes, dtype), *arms)
        if e.branch:
            full = ix.const(axes.rows), ix.const(axes.cols)
            self.c.check_branch(e, *((s.vrows or full[0], s.vcols or full[1]) for s in (x, y)))
        (x, y), valid = self.meeting((x, y), axes, e.span)
        term = self.make(e, "s_choose_at", *holds, x.term, y.term, dtype=x.term.dtype)
        return self.to(Scalar(term, *valid), wide)

    def chosen_alone(self, e: kn.Select, truth: bool, axes: Axes, dtype: DType) -> Scalar | None:
        """What a choice that is the same for all elements takes; None where the other value ends, and not at the same place."""
        chosen, left = (e.x, e.y) if truth else (e.y, e.x)
        known, found = attempted(lambda: self.scalar(left, axes, dtype)), self.scalar(chosen, axes, dtype)
        return found if isinstance(known, TileError) or found.ends_with(known) else None

    def meeting(
        self, xs: tuple[Scalar, ...], axes: Axes, span: kn.Span | None
    ) -> tuple[tuple[Scalar, ...], tuple[ix.Expr | None, ix.Expr | None]]:
        """Operands, none of which ends behind another one unless it is whole, and the valid extents of their result."""
        rows = self.least([x.vrows for x in xs], axes.rows)
        cols = self.least([x.vcols for x in xs], axes.cols)
        return tuple(replace(x, term=self.ending(x.term, rows, cols, axes, span)) for x in xs), (rows, cols)

    def least(self, extents: list[ix.Expr | None], full: int) -> ix.Expr | None:
        known = [e for e in extents if e is not None]
        return self.tiles.extent(reduce(lambda a, b: meet(a, b, full, self.tiles.ranges), known)) if known else None

    def ending(self, s: Term, rows: ix.Expr | None, cols: ix.Expr | None, axes: Axes, span: kn.Span | None) -> Term:
        """A scalar term of elements that end where a result does, but for those of whole tiles."""
        key = s, rows, cols, axes
        if key not in self.cut:
            self.cut[key] = self.cut_off(s, rows, cols, axes, span)
        return self.cut[key]

    def cut_off(self, s: Term, rows: ix.Expr | None, cols: ix.Expr | None, axes: Axes, span: kn.Span | None) -> Term:
        ends = {"elem": (rows, cols), "elem_row": (None, rows), "elem_col": (None, cols)}.get(s.op)
        if ends is not None:
            return self.tiles.make(self.tiles.spans.get(s), s.op, self.tiles.ending(s.args[0], *ends, span), like=s)
        inner = (rows, cols) if s.op != "s_reduce" else (rows, None) if axes.row is not None else (cols, None)
        args = [self.ending(a, *inner, axes, span) if isinstance(a, Term) else a for a in s.args]
        return s if args == list(s.args) else self.tiles.make(self.tiles.spans.get(s), s.op, *args, like=s)

    def element(self, r: kn.Region, axes: Axes, v: Term) -> Scalar:
        """The element of the tile `v` that a region takes its elements from."""
        found = tuple(name for name, _ in self.coordinates(r))
        if v.op == "load" and ix.EACH in ix.variables(v.args[1]) and len(found) == 1:
            v = columns.taken(self.tiles, v, r.span)
        if found == () or (found == (axes.col,) and axes.row is None):
            if found == () and (v.rows, v.cols) == (1, 1) and axes.rows == 1:
                return self.repeated(r, "elem_row", v)
            if found == () and (v.rows, v.cols) == (1, 1):
                return self.repeated(r, "elem_col", self.tiles.broadcast(v, 1, axes.cols, r.span))
            if (v.rows, v.cols) != (axes.rows, axes.cols):
                raise self.unsupported(r, "one fixed element")
            return Scalar(self.make(r, "elem", v), valid_rows(v), valid_cols(v))
        if found == (axes.row, axes.col) and (v.rows, v.cols) == (axes.rows, axes.cols):
            return Scalar(self.make(r, "elem", v), valid_rows(v), valid_cols(v))
        if found == (axes.row,):
            return replace(self.repeated(r, "elem_row", v), vrows=valid_cols(v))
        if found == (axes.col,) and v.cols == axes.cols:
            return replace(self.repeated(r, "elem_col", v), vcols=valid_cols(v))
        raise self.unsupported(r, f"the access [{', '.join(found)}] beside [{', '.join(filter(None, (axes.row, axes.col)))}]")

    def repeated(self, r: kn.Region, op: str, v: Term) -> Scalar:
        """An element that several of the loop share; a byte as the number of f16 that it is, as bytes are not repeated."""
        if v.dtype is None or v.dtype.bytes > 1:
            return Scalar(self.make(r, op, v))
        return self.to(Scalar(self.make(r, op, self.tiles.cast(v, F16, r.span))), v.dtype)

    def value(self, r: kn.Region) -> Term:
        """The tile or vector that a region takes its elements from."""
        if r.name in self.c.tensors:
            return self.c.region(self.opened(r), self.env)
        t = self.c.held(r.name, self.env, r.span)
        return t if r.name in self.private else self.part(self.opened(r), t)

    def part(self, r: kn.Region, t: Term) -> Term:
        """The window of a buffer that an access runs over, its plain indices as one row or column."""
        p = self.c.place(r)
        whole = (p.row, p.col, p.rows, p.cols, p.step) == (ix.ZERO, ix.ZERO, t.rows, t.cols, 1)
        return t if whole else self.c.piece(r, t)

    def opened(self, r: kn.Region) -> kn.Region:
        """A region with every index that runs over a loop variable opened to the whole range of it."""
        starts, extents, steps, rows = [], [], [1], self.gathered(r)
        for d, (start, extent) in enumerate(zip(r.starts, r.extents, strict=True)):
            inside = [v for v in self.step.extents if v in ix.variables(start)]
            if rows and rows[0] in inside:
                starts.append(ix.substitute(start, {rows[0]: ix.var(ix.EACH)}))
                extents.append(self.step.extents[rows[0]] if d == rows[1] else extent)
                continue
            if any(v in ix.variables(s) for v in inside for s in r.starts[:d]):
                raise self.unsupported(r, f"the index {index_text(start)} in a second dimension")
            steps += [multiple(start, v) for v in inside]
            starts.append(ix.substitute(start, dict.fromkeys(inside, ix.ZERO)))
            extents.append(self.step.extents[inside[0]] if inside and extent is None else extent)
        return replace(r, starts=tuple(starts), extents=tuple(extents), step=max(steps))

    def reduce(self, e: kn.Reduce, axes: Axes) -> Scalar:
        """A reduction over one row: `max(s[i, :])`."""
        row, rows = (axes.row, axes.rows) if axes.row is not None else (axes.col, axes.cols)
        cols = self.row_length(e.x)
        if cols is None or row is None or row == ROW:
            help = hint("reduce a row: max(s[i, :])", "reduce the whole tile: T.reduce_max(s, m, dim=1)", e.span)
            raise TileError(f"`{e.op}` of this is not supported in an element loop", e.span, help=help)
        x = self.scalar(e.x, Axes(row, ROW, rows, cols), F32)
        given = x.term.dtype
        x = self.to(self.with_some(e, x), reducing(e.op, given))
        term = self.make(e, "s_reduce", e.op, x.term, **self.extents(x, rows, cols))
        return self.to(Scalar(term, vrows=x.vrows) if axes.row is not None else Scalar(term, vcols=x.vrows), given)

    def with_some(self, e: kn.Reduce, x: Scalar) -> Scalar:
        """What is reduced; a row that may have no elements, as a window's length is read, lies in one of neutral ones."""
        if not self.tiles.may_be_none(x.vcols):
            return x
        if x.term.op != "elem":
            help = hint("v = rowsum(x * y)", "T.reduce_sum(x, v, dim=1)", e.span) + ", behind a loop that computes it"
            raise TileError(
                f"`{e.op}` of what is computed here may be one of no elements, as the length of a window is read: not supported "
                "yet in an element loop", e.span, help=f"reduce the whole tile: {help}",
            )  # fmt: skip
        tile = self.tiles.with_some(x.term.args[0], REDUCE[e.op].neutral, 1, e.span)
        return replace(x, term=self.make(e, "elem", tile), vcols=valid_cols(tile))

    def row_length(self, e: kn.TileExpr) -> int | None:
        """The length of the rows that an expression is made of."""
        lengths = [n for r in regions(e) for name, n in self.coordinates(r) if name == ROW]
        return lengths[0] if lengths else None
