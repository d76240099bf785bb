"""Blocks together: the tiles of neighbouring blocks as one block's, which loads once what they share.

An equality of values: what a block computes does not depend on the others, so one block may do the work of several. Tiles that
lie beside each other in their tensors become one of as many rows or columns. Where they do not, the blocks' loops of products
become one whose states stand side by side; loads at the same place are the same value then.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from tile_eg.ir.index import BLOCK, EACH, ZERO, Expr, const, minimum, substitute, var, variables
from tile_eg.ir.values import WRITES, Term, Values, first_version, reachable
from tile_eg.ops.records import record
from tile_eg.transforms.axes import COLS, NONE, ROWS, Axes, CannotSplit
from tile_eg.transforms.rewriter import Rewriter
from tile_eg.transforms.row_panels import stores

MOST_SUMS = 4
"""States of a loop that stand side by side: their buffers are decided one by one, which takes longer than it gains."""


def together(values: Values, along: int, count: int) -> Values | None:
    """The kernel with a block for each `count` neighbours along a dimension of the grid; None where that is no whole number of
    them, or where their tiles lie apart, and their blocks do more than one loop of sums of products."""
    blocks = neighbours(values, along, count)
    return (_wider(values, blocks) or side_by_side(values, along, count)) if blocks else None


def side_by_side(values: Values, along: int, count: int) -> Values | None:
    """The same with tiles as they are, the sums of all blocks in one loop."""
    blocks, loop = neighbours(values, along, count), _one_loop(values)
    sums = loop and sum(init.vrows is not None for init, _ in loop.args[2])
    return _side_by_side(values, loop, blocks) if blocks and loop and sums and sums * count <= MOST_SUMS else None


def neighbours(values: Values, along: int, count: int) -> Neighbours | None:
    """The grid with one block for so many of a dimension; None where that is no whole number of them."""
    if values.sizes or count < 2 or along >= len(values.grid) or values.grid[along] % count:
        return None
    if prod(values.grid) != values.blocks or any(first_version(o).op != "given" for o in values.outputs):
        return None
    return Neighbours(values.grid, along, count)


@record
class Neighbours:
    """A grid in which `count` neighbours along a dimension are one block."""

    before: tuple[int, ...]
    along: int
    count: int

    @property
    def grid(self) -> tuple[int, ...]:
        return tuple(n // self.count if d == self.along else n for d, n in enumerate(self.before))

    def one(self, i: int) -> dict[str, Expr]:
        """Which of the blocks before is the i-th one of a block."""
        left, out, grid = var(BLOCK), ZERO, self.grid
        for d, n in enumerate(grid):
            at = left % n if d < len(grid) - 1 else left
            left = left // n
            out = out + (at * self.count + i if d == self.along else at) * prod(self.before[:d])
        return {BLOCK: out}


def _wider(values: Values, blocks: Neighbours) -> Values | None:
    """The kernel with tiles that are as large as those of the blocks together; None where these do not lie beside each other."""
    for size in sorted({n for o in stores(values) for n in (o.args[3].rows, o.args[3].cols)}, reverse=True):
        try:
            wider = _Wider(values, size, blocks)
            counts = {loop: wider.kept(e) for loop, e in values.counts.items()}
            return wider.told(outputs=wider.rebuilt(), blocks=prod(blocks.grid), grid=blocks.grid, counts=counts)
        except CannotSplit:
            continue
    return None


class _Wider(Axes):
    """Rebuilds the terms of one block with those of its neighbours behind it."""

    def __init__(self, values: Values, size: int, blocks: Neighbours) -> None:
        super().__init__(values, size, size * blocks.count)
        self.names = [blocks.one(i) for i in range(blocks.count)]

    def _apart(self, e: Expr, step: int) -> Expr:
        """The expression of the first block, where that of each is `step` more than of the one before."""
        first, *others = (substitute(e, names) for names in self.names)
        if any(other != first + n * step for n, other in enumerate(others, 1)):
            raise CannotSplit
        return first

    def kept(self, x: Any) -> Any:
        return self._apart(x, 0) if isinstance(x, Expr) else x

    def stored_axis(self, store: Term) -> str:
        _, offset, stride, value = store.args
        step = substitute(offset, self.names[1]) - substitute(offset, self.names[0])
        if step.value == value.cols == self.size:
            return COLS
        if step.value == stride * self.size and value.rows == self.size:
            return ROWS
        raise CannotSplit

    def tile(self, t: Term, axis: str) -> Term:
        """A row that all blocks have in common is that of each row of the tile."""
        try:
            return super().tile(t, axis)
        except CannotSplit:
            if axis != ROWS or t.rows != 1 or self.size != 1:
                raise
            self.done[t, axis] = self.builder.make("bcast", 0, super().tile(t, NONE), **self.shape(t, axis))
            return self.done[t, axis]

    def window(self, t: Term, axis: str) -> Expr:
        x = t.args[3] if t.op in WRITES else t
        whole = x.vcols is not None and x.vcols.value == self.size
        next_row = axis == COLS and x.rows > 1 and whole and self.now > t.args[2]
        if next_row or (axis != NONE and EACH in variables(t.args[1])):
            raise CannotSplit
        return self._apart(t.args[1], {ROWS: self.size * t.args[2], COLS: self.size, NONE: 0}[axis])

    def valid(self, valid: Expr | None) -> Expr | None:
        if valid is None or valid.value == self.size:
            return const(self.now)
        rest = [e for e in valid.args if e.value != self.size] if valid.op == "min" else []
        if len(rest) != 1:
            raise CannotSplit
        return minimum(self.now, self._apart(rest[0], -self.size))

    def first(self, start: Expr, i: int, j: int, axis: str) -> Expr:
        return self._apart(start, self.size * {ROWS: i, COLS: j, NONE: 0}[axis])


def _one_loop(values: Values) -> Term | None:
    """The only loop, at the top, with as many trips in each block; nothing that is written is read, or was written before it."""
    terms = reachable(values)
    loops = [t for t in terms if t.op == "loop"]
    if len(loops) != 1 or values.counts or any(t.op == "load" and t.args[0].op != "given" for t in terms):
        return None
    written = [init for init, _ in loops[0].args[2] if init.vrows is None]
    return loops[0] if all(init.op == "given" for init in written) else None


def chained(values: Values) -> bool:
    """Whether each trip of the only loop multiplies what the trip before it made."""
    if _one_loop(values) is None:
        return False
    products = (t for t in reachable(values) if t.op == "matmul")
    made_of = ({t.op for t in reachable(replace(values, outputs=(product,)))} for product in products)
    return any("arg" in ops and "loop" not in ops for ops in made_of)


def _side_by_side(values: Values, loop: Term, blocks: Neighbours) -> Values:
    number, trips, states, stages = loop.args
    tensors, tiles = ([k for k, (init, _) in enumerate(states) if (init.vrows is None) == t] for t in (True, False))
    copies = [_Copy(blocks.one(i), loop=number) for i in range(blocks.count)]
    builder, held = copies[0].builder, [(states[k][0], states[k][1]) for k in tensors]
    for copy, before in zip(copies, [None, *copies], strict=False):
        copy.builder = builder
        copy.states = {k: n for n, k in enumerate(tensors)} | {k: len(held) + n for n, k in enumerate(tiles)}
        copy.written = {k: before.term(states[k][1]) for k in tensors} if before else {}
        held += [(copy.term(states[k][0]), copy.term(states[k][1])) for k in tiles]
    held[: len(tensors)] = [(copies[-1].term(init), copies[-1].term(after)) for init, after in held[: len(tensors)]]
    joined = builder.make("loop", number, trips, tuple(held), stages)
    starts = outputs = tuple(map(first_version, values.outputs))
    for copy in copies:
        now = dict(zip(starts, outputs, strict=True))
        for t in reachable(values):
            if t.op == "proj" and t.args[0] is loop:
                at = copy.states[t.args[1]]
                copy.terms[t] = builder.make("proj", joined, at, **_shape(held[at][1]))
            elif t.op == "tproj" and t.args[0] is loop:
                written = builder.make("tproj", joined, copy.states[t.args[1]])
                copy.terms[t] = written if copy is copies[0] else now[first_version(t)]
        copy.terms |= now
        outputs = tuple(map(copy.term, values.outputs))
    made = copies[0].values(values, outputs, blocks=prod(blocks.grid), grid=blocks.grid)
    for copy in copies[1:]:
        made.spans.update({new: values.spans[old] for old, new in copy.terms.items() if old in values.spans})
        made.buffers.update({new: values.buffers[old] for old, new in copy.terms.items() if old in values.buffers})
    return made


@dataclass
class _Copy(Rewriter):
    """Rebuilds what one of the blocks does: which number its states of a loop have among those of all, and by that of a tensor
    what the block before it has `written` of it in the same trip."""

    loop: int = field(default=0, kw_only=True)
    states: dict[int, int] = field(default_factory=dict, kw_only=True)
    written: dict[int, Term] = field(default_factory=dict, kw_only=True)

    def term(self, t: Term) -> Term:
        if t not in self.terms and t.op in ("arg", "targ") and t.args[0] == self.loop:
            made = super().term(t)
            other = self.builder.make(t.op, self.loop, self.states[t.args[1]], **(_shape(made) if t.op == "arg" else {}))
            self.terms[t] = self.written.get(t.args[1], other)
        return super().term(t)


def _shape(t: Term) -> dict[str, object]:
    return {"rows": t.rows, "cols": t.cols, "dtype": t.dtype, "vrows": t.vrows, "vcols": t.vcols}
