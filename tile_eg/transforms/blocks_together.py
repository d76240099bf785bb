"""Blocks together: the tiles of neighbouring blocks as one block's, which loads once what they share.

An equality of values: what a block computes does not depend on the others, so one block may do the work of several. Their loops
of products become one whose states stand side by side; loads at the same place are the same value then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from tile_eg.ir.index import BLOCK, ZERO, Expr, var
from tile_eg.ir.values import Term, Values, first_version
from tile_eg.transforms.rewriter import Rewriter
from tile_eg.transforms.split_k import loop_of_sums, results


def together(values: Values, along: int, count: int) -> Values | None:
    """The kernel with a block for each `count` neighbours along a dimension of the grid; None where that is no whole number of
    them, or where its blocks do more than one loop of sums of products."""
    loop = loop_of_sums(values)
    if loop is None or values.sizes or count < 2 or along >= len(values.grid) or values.grid[along] % count:
        return None
    if prod(values.grid) != values.blocks or any(first_version(o).op != "given" for o in values.outputs):
        return None
    return _together(values, loop, along, count)


def _together(values: Values, loop: Term, along: int, count: int) -> Values:
    grid = tuple(n // count if d == along else n for d, n in enumerate(values.grid))
    copies = [_Copy({BLOCK: _block(values.grid, grid, along, count, i)}) for i in range(count)]
    builder, each = copies[0].builder, len(loop.args[2])
    for i, copy in enumerate(copies):
        copy.builder, copy.loop, copy.first = builder, loop.args[0], i * each
    number, trips, _, stages = loop.args
    states = tuple((copy.term(init), copy.term(after)) for copy in copies for init, after in loop.args[2])
    sums = builder.make("loop", number, trips, states, stages)
    outputs = tuple(map(first_version, values.outputs))
    for copy in copies:
        for k in range(each):
            for t in results(values, loop, k):
                copy.terms[t] = builder.make("proj", sums, copy.first + k, **_shape(states[copy.first + k][1]))
        copy.terms |= dict(zip(map(first_version, values.outputs), outputs, strict=True))
        outputs = tuple(map(copy.term, values.outputs))
    made = copies[0].values(values, outputs, blocks=values.blocks // count, grid=grid)
    for copy in copies[1:]:
        made.spans.update({new: values.spans[old] for old, new in copy.terms.items() if old in values.spans})
        made.buffers.update({new: values.buffers[old] for old, new in copy.terms.items() if old in values.buffers})
    return made


def _block(grid: tuple[int, ...], fewer: tuple[int, ...], along: int, count: int, i: int) -> Expr:
    """Which of the kernel's blocks is the i-th one of a block."""
    left, out = var(BLOCK), ZERO
    for d, n in enumerate(fewer):
        at = left % n if d < len(fewer) - 1 else left
        left = left // n
        out = out + (at * count + i if d == along else at) * prod(grid[:d])
    return out


@dataclass
class _Copy(Rewriter):
    """Rebuilds what one of the blocks does; the states of its loop begin at number `first` of those of all."""

    loop: int = field(default=0, kw_only=True)
    first: int = field(default=0, kw_only=True)

    def term(self, t: Term) -> Term:
        if t not in self.terms and t.op == "arg" and t.args[0] == self.loop:
            made = super().term(t)
            self.terms[t] = self.builder.make("arg", self.loop, self.first + t.args[1], **_shape(made))
        return super().term(t)


def _shape(t: Term) -> dict[str, object]:
    return {"rows": t.rows, "cols": t.cols, "dtype": t.dtype, "vrows": t.vrows, "vcols": t.vcols}
