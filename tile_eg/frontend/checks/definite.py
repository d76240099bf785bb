"""Whether every buffer is written before it is read, in program order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tile_eg.errors import ReadFirst
from tile_eg.frontend.hints import TWO_STREAMS, hint
from tile_eg.frontend.liveness import indexed_by
from tile_eg.frontend.ranges import decided
from tile_eg.frontend.trips import least_trips
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn

Names = frozenset[str]
NONE: Names = frozenset()


class Definite:
    """`known` are the tensors and buffers whose reads are checked. A write to a part of a buffer counts as a write to it. `told`
    has the first wrong read of each."""

    def __init__(self, known: Mapping[str, kn.Tensor | kn.Alloc]) -> None:
        self.known = known
        self.told: dict[str, ReadFirst] = {}

    def run(self, body: tuple[kn.Stmt, ...], written: Names, ranges: dict[str, ix.Interval]) -> Names:
        """What is surely written behind `body`."""
        for s in body:
            written = self.statement(s, written, ranges)
        return written

    def statement(self, s: kn.Stmt, written: Names, ranges: dict[str, ix.Interval]) -> Names:
        match s:
            case kn.Assign():
                self.reads(s.value, written, ranges)
                self.indices(s.target, written)
                self.comes_late(s)
                return written | {s.target.name}
            case kn.For() if s.extent:
                return self.loop(s, written, ranges)
            case kn.Parallel():
                every = {v: (0, n - 1) for v, n in zip(s.vars, s.extents, strict=True)}
                return self.run(s.body, written, ranges | every)
            case kn.If():
                return self.condition(s, written, ranges)
        return written

    def loop(self, s: kn.For, written: Names, ranges: dict[str, ix.Interval]) -> Names:
        """The first trip, and after it all others."""
        first = self.run(s.body, written, ranges | {s.var: (s.start, s.start)})
        if s.extent > 1:
            self.run(s.body, first, ranges | {s.var: (s.start + 1, s.start + s.extent - 1)})
        return first if least_trips(s, ranges) else written

    def condition(self, s: kn.If, written: Names, ranges: dict[str, ix.Interval]) -> Names:
        truth = decided(s.condition, ranges)
        then = NONE if truth is False else self.run(s.then, written, ranges)
        otherwise = NONE if truth else self.run(s.otherwise, written, ranges)
        return then & otherwise if truth is None else then if truth else otherwise

    def reads(self, e: kn.TileExpr, written: Names, ranges: dict[str, ix.Interval]) -> None:
        match e:
            case kn.Region() if e.name in self.known and e.name not in written:
                self.told.setdefault(e.name, self.unwritten(e))
            case kn.Region():
                self.indices(e, written)
            case kn.Unary() | kn.Cast() | kn.Pack() | kn.Pad() | kn.Reduce() | kn.Broadcast():
                self.reads(e.x, written, ranges)
            case kn.Binary():
                self.reads(e.x, written, ranges)
                self.reads(e.y, written, ranges)
            case kn.MatMul():
                self.reads(e.a, written, ranges)
                self.reads(e.b, written, ranges)
            case kn.Scaled():
                self.reads(e.x, written, ranges)
                self.reads(e.scale, written, ranges)
            case kn.Whole():
                for x in e.xs:
                    self.reads(x, written, ranges)
            case kn.Choose():
                for part in (e.a, e.b, e.x, e.y):
                    self.reads(part, written, ranges)
            case kn.Select():
                truth = decided(e.condition, ranges)
                for part in {True: (e.x,), False: (e.y,), None: (e.x, e.y)}[truth]:
                    self.reads(part, written, ranges)

    def indices(self, r: kn.Region, written: Names) -> None:
        """What says where a window begins."""
        for name in sorted(indexed_by(r) & self.known.keys() - written):
            self.told.setdefault(name, self.unwritten(replace(r, name=name)))

    def comes_late(self, s: kn.Assign) -> None:
        """Tells where what was read too early is written."""
        error, late = self.told.get(s.target.name), f"`{s.target.name}` is first written here"
        if not error or not error.span or not s.span or s.span.line <= error.span.line:
            return
        if all(text != late for text, _ in error.notes):
            error.notes = (*error.notes, (late, s.span))

    def unwritten(self, r: kn.Region) -> ReadFirst:
        declared = self.known[r.name]
        if isinstance(declared, kn.Tensor):
            return ReadFirst(
                f"the output `{r.name}` is read before anything is written to it", r.span,
                help=f"statements run in the order they stand in, on cube and vector cores too: move what writes `{r.name}` up"
                + hint("", f"; or let the cores be two streams: {TWO_STREAMS}", r.span),
            )  # fmt: skip
        return ReadFirst(
            f"`{r.name}` is read before it is written", r.span,
            notes=((f"`{r.name}` is declared here, without a value", declared.span),),
            help="statements run in the order they stand in: move the write up, or begin with "
            + hint(f"{r.name} = 0", f"T.clear({r.name})", r.span),
        )  # fmt: skip
