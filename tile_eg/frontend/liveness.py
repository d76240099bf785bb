"""Which buffers and tensors a piece of code assigns, and which it reads before it assigns them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from tile_eg.errors import Span
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.operands import parts, regions
from tile_eg.ops.records import record

Names = frozenset[str]
Kept = tuple[str, Span | None]


def padded(e: kn.TileExpr) -> Iterator[kn.Region]:
    """The regions that may reach beyond their tensor, as a number stands for what is not there."""
    return (x.x for x in parts(e) if isinstance(x, kn.Pad) and isinstance(x.x, kn.Region))


def indexed_by(*windows: kn.Region) -> Names:
    """The names of which elements say where these windows begin, and how much of them is meant."""
    places = (s for w in windows for s in (*w.starts, *w.counts) if s is not None)
    return frozenset(r.args[0] for s in places for r in all_elements_in(s))


def reads(e: kn.TileExpr) -> Names:
    return frozenset(r.name for r in regions(e)) | indexed_by(*regions(e))


def assigned(body: tuple[kn.Stmt, ...]) -> Names:
    return frozenset(a.target.name for a in kn.assigns(body))


def buffer_shapes(body: tuple[kn.Stmt, ...]) -> dict[str, tuple[int, ...]]:
    """The shape of every buffer in a body."""
    return {s.name: s.shape for s in kn.allocs(body)}


def mentioned(body: tuple[kn.Stmt, ...]) -> Names:
    """The names that a body reads anywhere, whether or not it assigned them before."""
    found = list(kn.assigns(body))
    return frozenset[str]().union(*(reads(a.value) | indexed_by(a.target) for a in found))


@record
class Liveness:
    """`shapes` gives every buffer's shape: an assignment that covers it ends the life of what was there before. Tensors are
    left out: whatever a store does not touch lives on. `kept` are the names, with their places in the source, of targets that
    may stay as they are. `needed` keeps what assignments read, by their ids.
    """

    shapes: Mapping[str, tuple[int, ...]]
    kept: frozenset[Kept] = frozenset()
    needed: dict[int, tuple[kn.Assign, Names]] = field(default_factory=dict, compare=False, repr=False)

    def before(self, body: tuple[kn.Stmt, ...], after: Names, extents: Mapping[str, int] | None = None) -> Names:
        """The names whose value matters before `body`, where those in `after` matter behind it. `extents`: the loops around."""
        for s in reversed(body):
            after = self._step(s, after, extents or {})
        return after

    def _step(self, s: kn.Stmt, live: Names, extents: Mapping[str, int]) -> Names:
        match s:
            case kn.Assign():
                return (live - {s.target.name} if self.covers(s.target, extents) else live) | self._read_by(s)
            case kn.If():
                return self.before(s.then, live, extents) | self.before(s.otherwise, live, extents)
            case kn.Parallel():
                return self.before(s.body, live, {**extents, **dict(zip(s.vars, s.extents, strict=True))})
            case kn.For() if s.extent:
                inner = {**extents, s.var: s.extent} if s.start == 0 and s.count is None else extents
                needed = self.before(s.body, live | self.before(s.body, live, inner), inner)
                return needed if s.count is None else needed | live
        return live

    def _read_by(self, s: kn.Assign) -> Names:
        if id(s) not in self.needed:
            self.needed[id(s)] = s, reads(s.value) | indexed_by(s.target)
        return self.needed[id(s)][1]

    def covers(self, target: kn.Region, extents: Mapping[str, int]) -> bool:
        """Whether an assignment, over all trips of the loops around it, writes the whole buffer."""
        shape = self.shapes.get(target.name)
        if shape is None or (target.name, target.span) in self.kept:
            return False
        whole = ((ix.ZERO, n) for n in shape)
        indexed = zip(target.starts, target.extents, strict=True)
        return all(
            pair == full or (pair[1] is None and _runs_over(pair[0], full[1], extents))
            for pair, full in zip(indexed, whole, strict=True)
        )


def _runs_over(index: ix.Expr, size: int, extents: Mapping[str, int]) -> bool:
    return size == 1 and index == ix.ZERO or index.op == "var" and extents.get(index.args[0]) == size
