"""The last trip of a loop on its own, where its tiles alone are short: those of all other trips are whole.

An equality of values: a fold over n trips is one more step on the fold over the first n - 1. Whole tiles lie in one run, and one
instruction goes over all of their rows; where a tile may be short in any trip, each of its rows is done for itself in all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_eg.ir.index import Expr, const, evaluate, variables
from tile_eg.ir.values import VERSIONS, Term, Values, made_of, reachable
from tile_eg.transforms.rewriter import Rewriter

Extents = Mapping[Expr, Expr]


def with_last_trips_apart(values: Values) -> Values | None:
    """The kernel in which each innermost loop whose tiles have short columns in its last trip alone does that one behind its
    others; None where there is no such loop."""
    terms = list(reachable(values))
    used_in_part = {t.args[0] for t in terms if t.op == "proj" and not _is_whole(t)}
    loops = (t for t in terms if t.op == "loop" and t not in used_in_part)
    found = {t: extents for t in loops if (extents := _whole_before_last(values, t))}
    return _Apart(values, found).values_with_last_trips_apart() if found else None


def _is_whole(result: Term) -> bool:
    """Whether all that a loop makes of a state is used."""
    loop, k = result.args
    _, after = loop.args[2][k]
    return (result.vrows, result.vcols) == (after.vrows, after.vcols)


def _whole_before_last(values: Values, loop: Term) -> Extents:
    """What the valid columns of a loop's tiles are in all trips but the last, in which they are fewer.

    Empty where that is not so of some, where there are none, and of loops around others or whose trips the block decides.
    """
    number, trips = loop.args[:2]
    name = values.variables[number]
    if number in values.counts or number in values.parents.values() or trips < 2:
        return {}
    tiles = [t for t in made_of(loop.args[2]) if t.vcols is not None and t.rows > 1]
    extents = {t.vcols for t in tiles if t.vcols is not None and name in variables(t.vcols)}
    found = {e: _before_last(e, name, trips) for e in extents}
    return {} if None in found.values() else {e: const(n) for e, n in found.items() if n is not None}


def _before_last(extent: Expr, name: str, trips: int) -> int | None:
    """What an extent is in each trip but the last, in which it is less; None where that is not so."""
    if variables(extent) != {name}:
        return None
    *before, last = (evaluate(extent, {name: trip}) for trip in range(trips))
    return before[0] if len(set(before)) == 1 and 0 < last < before[0] else None


class _Apart:
    """Rebuilds a kernel around loops whose last trips stand behind them."""

    def __init__(self, values: Values, loops: Mapping[Term, Extents]) -> None:
        self.values, self.loops = values, loops
        self.around = _Part({}, apart=self)
        self.parts = [self.around]
        self.results: dict[Term, Sequence[Term]] = {}

    def values_with_last_trips_apart(self) -> Values:
        v = self.values
        outputs = tuple(map(self.around.term, v.outputs))
        trips = v.trips | {loop.args[0]: loop.args[1] - 1 for loop in self.loops}
        gone = {number for number, n in trips.items() if n == 1 and v.trips[number] > 1}
        left = {name: {k: x for k, x in known.items() if k not in gone} for name, known in (
            ("parents", v.parents), ("trips", trips), ("variables", v.variables))}  # fmt: skip
        spans = {new: v.spans[old] for part in self.parts for old, new in part.terms.items() if old in v.spans}
        buffers = {new: v.buffers[old] for part in self.parts for old, new in part.terms.items() if old in v.buffers}
        return self.around.values(v, outputs, **left, spans=spans, buffers=buffers)

    def after(self, loop: Term) -> Sequence[Term]:
        """The states of a loop when its last trip has ended."""
        if loop not in self.results:
            number, trips, states, *rest = loop.args
            begun = [self.around.term(before) for before, _ in states]
            if trips > 2:
                body = self._part({}, whole=self.loops[loop])
                pairs = tuple((before, body.term(after)) for before, (_, after) in zip(begun, states, strict=True))
                short = self.around.builder.make("loop", number, trips - 1, pairs, *rest)
                begun = [self._result(short, k, after) for k, (_, after) in enumerate(pairs)]
            else:
                begun = self._trip(loop, 0, begun)
            self.results[loop] = self._trip(loop, trips - 1, begun)
        return self.results[loop]

    def _result(self, loop: Term, k: int, after: Term) -> Term:
        if after.op in VERSIONS:
            return self.around.builder.make("tproj", loop, k)
        shape = {"rows": after.rows, "cols": after.cols, "dtype": after.dtype, "vrows": after.vrows, "vcols": after.vcols}
        return self.around.builder.make("proj", loop, k, **shape)

    def _trip(self, loop: Term, trip: int, before: Sequence[Term]) -> list[Term]:
        """The states behind one trip."""
        number, _, states, *_ = loop.args
        one = self._part({self.values.variables[number]: const(trip)}, states={number: before})
        return [one.term(after) for _, after in states]

    def _part(self, names: Mapping[str, Expr], **of: Any) -> _Part:
        part = _Part(names, builder=self.around.builder, apart=self, **of)
        self.parts.append(part)
        return part


@dataclass
class _Part(Rewriter):
    """What stands around the loops, the trips of one that are whole (`whole` has their extents), or one trip alone (`states` has
    what it begins with, by loop)."""

    apart: _Apart = field(kw_only=True)
    whole: Extents = field(default_factory=dict)
    states: Mapping[int, Sequence[Term]] = field(default_factory=dict)

    def term(self, t: Term) -> Term:
        if t.op in ("proj", "tproj") and t.args[0] in self.apart.loops:
            self.terms.setdefault(t, self.apart.after(t.args[0])[t.args[1]])
        elif t.op in ("arg", "targ") and t.args[0] in self.states:
            self.terms.setdefault(t, self.states[t.args[0]][t.args[1]])
        return super().term(t)

    def anything(self, x: Any) -> Any:
        return self.whole[x] if isinstance(x, Expr) and x in self.whole else super().anything(x)
