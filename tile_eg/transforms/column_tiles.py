"""Column tiles: rows that are too long for UB, some columns at a time, in as many passes as their statistics take.

An equality of values but for the order of sums: the reduction of a row is a fold over its column tiles, a store of rows a loop of
stores. A pass goes through the columns for all statistics that need no others; the last one stores. What a pass needs of the
tile is made again in it, from its loads. The sum of exponentials less a maximum that serves for nothing else is folded along
with the maximum (online softmax: Milakov and Gimelshein, Online normalizer calculation for softmax), so softmax takes two passes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

from tile_eg.ir.index import ZERO, Expr, const, minimum, var
from tile_eg.ir.values import WRITES, Builder, Term, Values, first_version, reachable
from tile_eg.ops.elementwise import REDUCE
from tile_eg.ops.types import BF16, F16, DType

NARROWEST = 64  # columns of a tile
LOWEST = {F16: -65504.0, BF16: -3.3895313892515355e38}
LOWEST_F32 = -3.4028234663852886e38
ELEMENTWISE = ("fill", "unary", "binary", "cast", "choose")
VARIABLE = "col"


class CannotSplit(Exception):
    """The columns of some value cannot be told apart, or are needed as a whole."""


def in_columns(values: Values, width: int) -> Values | None:
    """The same kernel with its longest rows in tiles of `width` columns; None where that cannot be, or the rows are no longer.

    Only for kernels of vector cores without loops of their own.
    """
    try:
        return _Columns(values, width).values_in_columns()
    except CannotSplit:
        return None


def sums_in_columns(values: Values) -> bool:
    """Whether column tiles would change the order of a sum."""
    return any(t.op == "reduce" and t.args[:2] == (1, "sum") for t in reachable(values))


def part_of(variable: str) -> str:
    """What a loop goes through that a form of a kernel has and the kernel has not."""
    return "column tiles" if variable.startswith(VARIABLE) else "row panels"


class _Columns:
    """Rebuilds a kernel's terms: in a pass, their part in a trip's columns; in none (None), what is the same in all columns."""

    def __init__(self, values: Values, width: int) -> None:
        self.values, self.width, self.builder = values, width, Builder()
        self.terms = reachable(values)
        self.cols = max((t.cols for t in self.terms), default=0)
        self.done: dict[tuple[Term, int | None], Term] = {}
        self.folded: dict[Term, Term] = {}
        self.loops: dict[int, Term] = {}
        if values.parents or width >= self.cols or any(t.op in ("matmul", "loop") for t in self.terms):
            raise CannotSplit

    # ---- passes ----

    @cached_property
    def valid(self) -> int:
        """The valid columns of the rows, which a number has to tell."""
        found = {t.vcols for t in self.terms if t.op == "load" and t.cols == self.cols and t.vcols is not None}
        if len(found) != 1 or (valid := next(iter(found)).value) is None:
            raise CannotSplit
        return valid

    @cached_property
    def trips(self) -> int:
        return -(-self.valid // self.width)

    @cached_property
    def folds(self) -> list[Term]:
        """The reductions of whole rows."""
        return [t for t in self.terms if t.op == "reduce" and t.args[0] == 1 and t.args[2].cols == self.cols]

    @cached_property
    def along(self) -> dict[Term, Term]:
        """Sums of exponentials that are folded along with the maximum in their exponents, and that maximum."""
        return {r: m for r in self.folds if (m := self._maximum_below(r)) is not None}

    def _maximum_below(self, r: Term) -> Term | None:
        """m in sum(exp(x - m)), where m is the maximum of x and serves for such differences only."""
        _, name, e = r.args
        if name != "sum" or e.op != "unary" or e.args[0] != "exp" or e.args[1].op != "binary":
            return None
        op, x, spread = e.args[1].args
        if op != "sub" or spread.op != "bcast" or spread.args[0] != 1:
            return None
        m = spread.args[1]
        only = all(u is spread or u is m or m not in u.args for u in self.terms)
        differences = all(u is e.args[1] or spread not in u.args for u in self.terms)
        return m if m in self.folds and m.args[1:] == ("max", x) and only and differences else None

    def first_pass(self, r: Term) -> int:
        """The pass in which a reduction is folded: behind those of the statistics that it needs."""
        return self.first_pass(self.along[r]) if r in self.along else self.needs(r.args[2])

    def needs(self, t: Term) -> int:
        """How many passes have to be over before a term can be made."""
        if t not in self._needs:
            below = [x for x in t.args if isinstance(x, Term)]
            own = self.first_pass(t) + 1 if t in self.folds else 0
            self._needs[t] = max([own, *map(self.needs, below)], default=0)
        return self._needs[t]

    @cached_property
    def _needs(self) -> dict[Term, int]:
        return {}

    @cached_property
    def groups(self) -> dict[int, list[Term]]:
        """The reductions of each pass; maxima stand before the sums that go along with them."""
        out = defaultdict(list)
        for r in sorted(self.folds, key=lambda r: r in self.along):
            out[self.first_pass(r)].append(r)
        return out

    # ---- the kernel ----

    def values_in_columns(self) -> Values:
        v = self.values
        outputs = tuple(map(self._output, v.outputs))
        known = {old: [new for (t, _), new in self.done.items() if t is old] for old in self.terms}
        for old, new in self.folded.items():
            known[old] += [new, self._start_of(old)]
        return replace(
            v, outputs=outputs, parents={p + 1: 0 for p in self.names}, trips={p + 1: self.trips for p in self.names},
            variables={p + 1: name for p, name in self.names.items()},
            spans={new: v.spans[old] for old in known if old in v.spans for new in known[old]},
            buffers={new: v.buffers[old] for old in known if old in v.buffers for new in known[old]},
        )  # fmt: skip

    @cached_property
    def names(self) -> dict[int, str]:
        """The variable of each pass's loop."""
        passes = sorted({*self.groups, *([self.last] if self.stored else [])})
        return {p: f"{VARIABLE}_{n}" if n else VARIABLE for n, p in enumerate(passes)}

    def start(self, at: int) -> Expr:
        """The first column of a trip of a pass."""
        return var(self.names[at]) * self.width

    @cached_property
    def stored(self) -> list[Term]:
        """The outputs whose stores are of whole rows: all of them, or none, for each."""
        out = []
        for last in self.values.outputs:
            chain = list(_stores_of(last))
            wide = {t.args[3].cols == self.cols for t in chain}
            if len(wide) > 1:
                raise CannotSplit
            out += [last] if wide == {True} else []
        return out

    @cached_property
    def last(self) -> int:
        """The pass that stores."""
        return max((self.needs(t.args[3]) for o in self.stored for t in _stores_of(o)), default=0)

    def _output(self, last: Term) -> Term:
        if last in self.stored:
            return self.builder.make("tproj", self._looped(self.last), self._place(last))
        version = first_version(last)
        for t in reversed(list(_stores_of(last))):
            version = self.builder.make(t.op, version, *t.args[1:3], self.tile(t.args[3], None))
        return version

    def _place(self, last: Term) -> int:
        """Which state of the last pass a tensor is: behind the statistics."""
        return len(self.groups.get(self.last, ())) + self.stored.index(last)

    def _looped(self, at: int) -> Term:
        """A pass: its states are folds of statistics and, in the last one, tensors."""
        if at not in self.loops:
            states = [(self._start_of(r), self._folded(r, at)) for r in self.groups.get(at, ())]
            states += [(first_version(x), self._stored_in(x, at)) for x in self.stored] if at == self.last else []
            self.loops[at] = self.builder.make("loop", at + 1, self.trips, tuple(states), 0)
        return self.loops[at]

    def _stored_in(self, last: Term, at: int) -> Term:
        """A tensor at the end of a trip."""
        version = self.builder.make("targ", at + 1, self._place(last))
        for t in reversed(list(_stores_of(last))):
            _, offset, stride, value = t.args
            self._whole_in_trips(value)
            version = self.builder.make(t.op, version, offset + self.start(at), stride, self.tile(value, at))
        return version

    def _start_of(self, r: Term) -> Term:
        """What a fold begins with. A maximum with sums along begins with the lowest number: two infinities have no difference."""
        lowest = LOWEST.get(_dtype(r), LOWEST_F32) if r in self.along.values() else float("-inf")
        value = {"sum": 0.0, "max": lowest, "min": float("inf")}[r.args[1]]
        shape = _shape(r) | {"vrows": const(r.rows), "vcols": const(r.cols)}
        return self.builder.make("fill", value, **shape)

    def _folded(self, r: Term, at: int) -> Term:
        """The fold of a reduction at the end of a trip."""
        if r not in self.folded:
            self._whole_in_trips(r.args[2])
            self.folded[r] = self._rescaled(r, self.along[r], at) if r in self.along else self._added(r, at)
        return self.folded[r]

    def _state(self, r: Term, at: int) -> Term:
        return self.builder.make("arg", at + 1, self.groups[at].index(r), **_shape(r))

    def _added(self, r: Term, at: int) -> Term:
        _, name, x = r.args
        part = self.builder.make("reduce", 1, name, self.tile(x, at), **_shape(r))
        return self.builder.make("binary", REDUCE[name].joins, self._state(r, at), part, **_shape(r))

    def _rescaled(self, r: Term, greatest: Term, at: int) -> Term:
        """l * exp(m - m') + sum(exp(x - m')), where m' is the maximum with this trip's columns."""
        exponent = r.args[2].args[1]
        before, after, own = self._state(greatest, at), self._folded(greatest, at), _shape(r)
        spread = self.builder.make("bcast", 1, after, **self._part(exponent.args[2], at))
        less = self.builder.make("binary", "sub", self.tile(exponent.args[1], at), spread, **self._part(exponent, at))
        part = self.builder.make("reduce", 1, "sum", self.builder.make("unary", "exp", less, **self._part(exponent, at)), **own)
        scale = self.builder.make("unary", "exp", self.builder.make("binary", "sub", before, after, **own), **own)
        kept = self.builder.make("binary", "mul", self._state(r, at), scale, **own)
        return self.builder.make("binary", "add", kept, part, **own)

    # ---- tiles ----

    def tile(self, t: Term, at: int | None) -> Term:
        """A term in the columns of a trip of pass `at`; None: a term that has no such columns."""
        if (t, at) not in self.done:
            if at is not None and t.cols != self.cols:
                raise CannotSplit
            self.done[t, at] = self._tile(t, at)
        return self.done[t, at]

    def _tile(self, t: Term, at: int | None) -> Term:
        if at is None and t in self.folds:
            p = self.first_pass(t)
            return self.builder.make("proj", self._looped(p), self.groups[p].index(t), **_shape(t))
        shape = _shape(t) if at is None else self._part(t, at)
        if t.op in ELEMENTWISE:
            return self.builder.make(t.op, *(self.tile(x, at) if isinstance(x, Term) else x for x in t.args), **shape)
        return getattr(self, f"_{t.op}")(t, at, shape)

    def _part(self, t: Term, at: int) -> dict[str, Any]:
        """The shape and the valid extents of a term's part, of which each trip has some."""
        if t.vcols is None or t.vcols.value is None or t.vcols.value <= (self.trips - 1) * self.width:
            raise CannotSplit
        short = t.vcols.value < self.trips * self.width
        valid = minimum(self.width, t.vcols.value - self.start(at)) if short else const(self.width)
        return _shape(t) | {"cols": self.width, "vcols": valid}

    def _whole_in_trips(self, t: Term) -> None:
        """CannotSplit where more of a term exists than of what is loaded, by which the trips go: positions."""
        if t.vcols is None or t.vcols.value is None or t.vcols.value > self.trips * self.width:
            raise CannotSplit

    def _load(self, t: Term, at: int | None, shape: dict[str, Any]) -> Term:
        version, offset, stride = t.args
        if version.op != "given" or version.args[0] in {first_version(o).args[0] for o in self.values.outputs}:
            raise CannotSplit
        return self.builder.make("load", version, offset + (ZERO if at is None else self.start(at)), stride, **shape)

    def _bcast(self, t: Term, at: int | None, shape: dict[str, Any]) -> Term:
        along, v = t.args
        return self.builder.make("bcast", along, self.tile(v, at if along == 0 else None), **shape)

    def _reduce(self, t: Term, at: int | None, shape: dict[str, Any]) -> Term:
        over, name, x = t.args
        if over == 1 and at is not None:
            raise CannotSplit
        return self.builder.make("reduce", over, name, self.tile(x, at), **shape)

    def _choose_at(self, t: Term, at: int | None, shape: dict[str, Any]) -> Term:
        op, i, j, bound, *pair = t.args
        moved = bound if at is None else bound - self.start(at) * j
        return self.builder.make("choose_at", op, i, j, moved, *(self.tile(x, at) for x in pair), **shape)

    def _choose_bits(self, t: Term, at: int | None, shape: dict[str, Any]) -> Term:
        if at is not None:  # eight elements share a byte
            raise CannotSplit
        return self.builder.make(t.op, *(self.tile(x, at) for x in t.args), **shape)

    _bytes = _pack = _choose_bits

    def _piece(self, t: Term, at: int | None, shape: dict[str, Any]) -> Term:
        return self._whole(t, at, shape)

    _put = _piece

    def _whole(self, t: Term, at: int | None, shape: dict[str, Any]) -> Term:
        if at is not None:
            raise CannotSplit
        return self.builder.make(t.op, *(self.tile(x, None) if isinstance(x, Term) else x for x in t.args), **shape)

    def _nest(self, t: Term, at: int | None, shape: dict[str, Any]) -> Term:
        return self.builder.make("nest", self._scalar(t.args[0], at), **shape)

    def _scalar(self, s: Term, at: int | None) -> Term:
        """A nest's scalar expression at the elements of a trip."""
        if s.op in ("elem", "elem_row", "elem_col"):
            return self.builder.make(s.op, self.tile(s.args[0], None if s.op == "elem_row" else at), **_shape(s))
        if s.op == "s_reduce":
            raise CannotSplit
        passed = ZERO if at is None else self.start(at)
        args = [self._scalar(a, at) if isinstance(a, Term) else a for a in s.args]
        if s.op == "s_choose_at":
            args[3] = s.args[3] - passed * s.args[2]
        elif s.op == "s_index":
            args[2] = s.args[2] + passed * s.args[1]
        return self.builder.make(s.op, *args, **_shape(s))


def _stores_of(version: Term) -> Iterable[Term]:
    """What was stored, or added, on the way to a version, the last one first."""
    while version.op in WRITES:
        yield version
        version = version.args[0]


def _dtype(t: Term) -> DType:
    assert t.dtype is not None
    return t.dtype


def _shape(t: Term) -> dict[str, Any]:
    return {"rows": t.rows, "cols": t.cols, "dtype": t.dtype, "vrows": t.vrows, "vcols": t.vcols}
