"""A tile for each vector core: blocks of two neighbouring tiles, of which each vector core works on its own.

An equality of values: a block's first tile is that of its first vector core, the second one that of the second. The cube core
does what both ask of it. So work that cannot be halved by rows, as a running sum or a sort, is not done by both cores.
"""

from __future__ import annotations

from tile_eg.ir.index import BLOCK, SUB, var
from tile_eg.ir.values import Values, reachable
from tile_eg.transforms.rewriter import Rewriter


def tile_each(values: Values) -> Values | None:
    """The kernel with half as many blocks; None where their number is odd or not known, or phases of a launch share tensors."""
    known = not (values.sizes or values.counts or values.shared or values.strips or values.deeper or values.tile_each)
    meets = any(t.op == "matmul" for t in reachable(values))
    if not known or not meets or values.blocks % 2 or values.stages or any(p.slots for p in values.places.values()):
        return None
    again = Rewriter({BLOCK: var(BLOCK) * 2 + var(SUB)})
    outputs = tuple(map(again.term, values.outputs))
    return again.values(values, outputs, blocks=values.blocks // 2, grid=_halved(values), tile_each=True)


def _halved(values: Values) -> tuple[int, ...]:
    """The grid with half of its first dimension, whose tiles follow each other; in one where that is odd."""
    first, *others = values.grid or (values.blocks,)
    return (values.blocks // 2,) if first % 2 else (first // 2, *others)
