"""Trips of products whose operands are windows of one tile, each some rows further: several of them in one trip, which loads that
tile once (a convolution: a product for each shift).

An equality of values: the sum over trips is the sum over groups of them, in the same order. The tile that the windows of a group
lie in is said beside the values (`Values.within`): in L1 a window may begin at any row (rule `l1-part`, `rules/40_moves.egg`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, EACH, Expr, const, simplified, var, variables
from tile_eg.ir.left_padding import LEFT
from tile_eg.ir.machine import FRACTAL
from tile_eg.ir.values import Border, Builder, Term, Values, reachable
from tile_eg.ops.records import record
from tile_eg.transforms.k_tiling import adds_products
from tile_eg.transforms.rewriter import Rewriter

T = TypeVar("T")
MOST_STEPS = 16
"""Trips that become one at the most: rules take as long as there are products."""
TURNED_BYTES = 2
"""Bytes of the elements whose fractals LoadData turns wherever they begin: a window of others begins at whole fractals."""


def in_shared_windows(values: Values, room: int) -> Values | None:
    """The kernel with as many trips of its one loop of products in one as have windows for which there is `room` in L1, in bytes;
    None where no windows of two trips that follow each other overlap, or where there is no room."""
    loop = _loop(values)
    if loop is None or not _overlaps(values, loop):
        return None
    trips = loop.args[1]
    for count in (n for n in range(min(trips, MOST_STEPS), 1, -1) if trips % n == 0):
        found = _Grouped(values, loop, count)
        if found.tiles and found.bytes <= room:
            return found.values_in_groups()
    return None


def _loop(values: Values) -> Term | None:
    """The one loop of products, of which no trip depends on more than its sums and its number."""
    terms = reachable(values)
    loops = [t for t in terms if t.op == "loop"]
    if len(loops) != 1 or not adds_products(loops[0]) or loops[0].args[0] in values.counts or loops[0].args[0] in values.stages:
        return None
    read = [t for t in terms if t.op in ("proj", "arg")]
    alike = all(_extents(t) == _extents(x) for t in read for x in loops[0].args[2][t.args[1]])
    return loops[0] if alike else None


def _extents(t: Term) -> tuple[Expr | None, Expr | None]:
    return t.vrows, t.vcols


def _overlaps(values: Values, loop: Term) -> bool:
    """Whether the first two trips have an operand in common, but for its first and last rows."""
    pairs = _Grouped(values, replace(loop, args=(loop.args[0], 2, *loop.args[2:])), 2).operands
    shifts = ((_below(a, b), a.term) for a, b in pairs)
    return any(shift is not None and 0 < abs(shift) < x.rows and _may_begin(x, shift) for shift, x in shifts)


def _may_begin(x: Term, row: int) -> bool:
    """Whether a window with elements as those of x may begin at a row of a tile in L1."""
    return x.dtype is not None and (x.dtype.bytes == TURNED_BYTES or row % FRACTAL == 0)


@record
class _Window:
    """An operand in one trip: a load, or one in a tile of zeros, of which `border` says what it is a window of."""

    term: Term
    border: Border | None

    @property
    def load(self) -> Term:
        return self.term.args[2] if self.term.op == "put" else self.term


def _below(a: _Window, b: _Window) -> int | None:
    """How many rows of their tensor b begins below a; None where they are windows of other columns, or that is no number."""
    x, y = a.load, b.load
    if (x.args[0], x.args[2], x.rows, x.cols, x.vcols) != (y.args[0], y.args[2], y.rows, y.cols, y.vcols):
        return None
    if a.border is None or b.border is None:
        apart = (y.args[1] - x.args[1]).value if a.border is b.border else None
        return apart // x.args[2] if apart is not None and apart % x.args[2] == 0 else None
    moved = [(q - p).value for p, q in zip(a.border.starts, b.border.starts, strict=True)]
    row = moved.pop(a.border.row)
    return row if not any(m != 0 for m in moved) else None


@dataclass
class _Grouped:
    """`count` trips of a loop as one."""

    values: Values
    loop: Term
    count: int
    builder: Builder = field(default_factory=Builder)

    @property
    def whole(self) -> bool:
        """Whether all trips are one, so that no loop is left."""
        return bool(self.count == self.loop.args[1])

    @cached_property
    def steps(self) -> list[Rewriter]:
        name = self.values.variables[self.loop.args[0]]
        trip = const(0) if self.whole else var(name) * self.count
        return [Rewriter({name: trip + i}, builder=self.builder) for i in range(self.count)]

    @cached_property
    def operands(self) -> list[list[_Window]]:
        """Each operand of the trip's products that is loaded, in all trips of a group."""
        products = [x for _, after in self.loop.args[2] for x in after.args[1:] if x.op == "matmul"]
        found = dict.fromkeys(x for p in products for x in p.args[:2] if self._is_window(x))
        return [[self._window(x, step) for step in self.steps] for x in found]

    def _is_window(self, x: Term) -> bool:
        load = x.args[2] if x.op == "put" else x
        if load.op != "load" or {LEFT, EACH} & set(variables(load.args[1])):
            return False
        if x.op == "load":
            return x.vrows is not None and x.vrows.value is not None
        fill = x.args[1]
        return x in self.values.borders and fill.op == "fill" and fill.args[0] == 0 and load.vcols == const(x.cols)

    def _window(self, x: Term, step: Rewriter) -> _Window:
        border = self.values.borders[x].at(step.names) if x.op == "put" else None
        return _Window(step.term(x), border)

    @cached_property
    def tiles(self) -> list[tuple[Term, list[tuple[Term, int]]]]:
        """The tiles that several windows lie in, each with these and the rows that they begin at."""
        return [t for windows in self.operands for group in _groups(windows) if (t := self._tile(group))]

    def _tile(self, group: Sequence[tuple[int, _Window]]) -> tuple[Term, list[tuple[Term, int]]] | None:
        first, x = group[0][0], group[0][1].term
        if len(group) < 2 or not all(_may_begin(x, at - first) for at, _ in group):
            return None
        rows = max(at - first + -(-x.rows // FRACTAL) * FRACTAL for at, _ in group)
        there = max(at - first + x.rows for at, _ in group)
        tile = self._padded(group[0][1], rows, there) if x.op == "put" else self._loaded(x, group, rows)
        return tile, [(w.term, at - first) for at, w in group]

    def _loaded(self, x: Term, group: Sequence[tuple[int, _Window]], rows: int) -> Term:
        there = max(at - group[0][0] + w.term.vrows.value for at, w in group)  # type: ignore[union-attr, operator]
        return self.builder.make("load", *x.args, rows=rows, cols=x.cols, dtype=x.dtype, vrows=const(there), vcols=x.vcols)

    def _padded(self, w: _Window, rows: int, there: int) -> Term:
        """A window of so many rows, of which the first `there` are asked for, from where one begins."""
        assert w.border is not None
        load, border = w.load, w.border
        start, size = border.starts[border.row], border.sizes[border.row]
        above = self._simple(ix.minimum(there, ix.maximum(0, start * -1)))
        left = ix.maximum(0, ix.minimum(there - above, ix.maximum(0, start) * -1 + size))
        shape: dict[str, Any] = {"rows": rows, "cols": load.cols, "dtype": load.dtype}
        loaded = self.builder.make("load", *load.args, **shape, vrows=self._simple(left * self._exists(border)), vcols=load.vcols)
        shape |= {"vrows": const(rows), "vcols": const(load.cols)}
        zeros = self.builder.make("fill", 0.0, **shape)
        return self.builder.make("put", above * load.cols, zeros, loaded, **shape)

    def _exists(self, border: Border) -> Expr:
        """1 where the indices that take no rows or columns are in their dimensions, else 0."""
        there = ix.ONE
        for d, (start, size) in enumerate(zip(border.starts, border.sizes, strict=True)):
            if d not in (border.row, border.column):
                there = ix.both(there, ix.both(ix.less(-1, start), ix.less(start, size)))
        return there

    def _simple(self, e: Expr) -> Expr:
        names = {name: (0, self.values.trips[loop] - 1) for loop, name in self.values.variables.items()}
        return simplified(e, names | {BLOCK: (0, self.values.blocks - 1)})

    @cached_property
    def bytes(self) -> int:
        """Of a buffer for each tile, and for each window that lies in none."""
        inside = {part for _, parts in self.tiles for part, _ in parts}
        alone = {w.term for windows in self.operands for w in windows} - inside
        return sum(_bytes(t) for t in (*(tile for tile, _ in self.tiles), *alone))

    def values_in_groups(self) -> Values:
        v, (number, trips, states, *rest) = self.values, self.loop.args
        again = Rewriter({}, builder=self.builder)
        args = {t.args[1]: t for _, after in states for t in after.args[1:] if t.op == "arg"}
        now = [again.term(init if self.whole else args[k]) for k, (init, _) in enumerate(states)]
        for step in self.steps:
            step.terms |= {args[k]: x for k, x in enumerate(now)}
            now = [step.term(after) for _, after in states]
        if not self.whole:
            pairs = tuple((again.term(init), after) for (init, _), after in zip(states, now, strict=True))
            again.terms[self.loop] = self.builder.make("loop", number, trips // self.count, pairs, *rest)
        for t in (t for t in reachable(v) if t.op == "proj" and self.whole):
            again.terms[t] = now[t.args[1]]
        outputs = tuple(map(again.term, v.outputs))
        known = {"spans": self._known(v.spans, again), "buffers": self._known(v.buffers, again)}
        return again.values(v, outputs, within=tuple(self._within()), **known, **self._loops(number, trips // self.count))

    def _known(self, of: Mapping[Term, T], again: Rewriter) -> dict[Term, T]:
        """What is known of terms, of those in each trip, and of the tiles that these lie in."""
        found = {new: of[old] for r in (*self.steps, again) for old, new in r.terms.items() if old in of}
        return found | {tile: found[parts[0][0]] for tile, parts in self.tiles if parts[0][0] in found}

    def _within(self) -> Iterator[tuple[Term, Term, int]]:
        return ((part, tile, row) for tile, parts in self.tiles for part, row in parts)

    def _loops(self, number: int, trips: int) -> dict[str, Any]:
        v = self.values
        if not self.whole:
            return {"trips": v.trips | {number: trips}, "fewest": v.fewest | {number: trips}}
        known = (("parents", v.parents), ("trips", v.trips), ("variables", v.variables), ("fewest", v.fewest))
        return {name: {k: x for k, x in of.items() if k != number} for name, of in known}


def _groups(windows: Sequence[_Window]) -> Iterator[list[tuple[int, _Window]]]:
    """Windows that overlap or follow each other, with the rows that they begin at, counted from one of them."""
    left = list(dict.fromkeys(windows))
    while left:
        placed = [(at, w) for w in left if (at := _below(left[0], w)) is not None]
        left = [w for w in left if not any(w is x for _, x in placed)]
        placed.sort(key=lambda p: p[0])
        cuts = [n for n, (a, b) in enumerate(zip(placed, placed[1:], strict=False), 1) if b[0] > a[0] + a[1].term.rows]
        for first, end in zip([0, *cuts], [*cuts, len(placed)], strict=True):
            yield placed[first:end]


def _bytes(t: Term) -> int:
    assert t.dtype is not None
    return -(-t.rows // FRACTAL) * FRACTAL * t.cols * t.dtype.bytes
