"""Which loads bring a part of what another load brings: that one's tile in L1 serves both.

Operands of products leave L1 by windows of whole fractals, so a part that begins at one is there without a move
(rule `l1-part`, `rules/40_moves.egg`); index arithmetic is Python's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import permutations

from tile_eg.ir.index import EACH, Expr, variables
from tile_eg.ir.left_padding import LEFT
from tile_eg.ir.machine import BLOCK_BYTES, FRACTAL
from tile_eg.ir.values import Term


def parts_of_loads(terms: Iterable[Term]) -> Iterator[tuple[Term, Term, int, int]]:
    """Each load of a part with a load of the whole, and the row and the column of the whole that the part begins at."""
    alike: dict[tuple[Term, int], list[Term]] = defaultdict(list)
    for t in terms:
        if t.op == "load" and LEFT not in variables(t.args[1]):
            alike[t.args[0], t.args[2]].append(t)
    for loads in alike.values():
        for part, whole in permutations(loads, 2):
            at = _begin(part, whole)
            if at is not None and _within(part, whole, *at):
                yield part, whole, *at


def _begin(part: Term, whole: Term) -> tuple[int, int] | None:
    """The row and column of one load at which another one begins; None where they are no numbers."""
    apart, stride = (part.args[1] - whole.args[1]).value, part.args[2]
    if apart is None or apart < 0 or whole.cols > stride:
        return None
    row, col = divmod(apart, stride)
    anywhere = EACH in variables(part.args[1])  # rows by an index are the same ones in both
    return None if anywhere and row else (row, col)


def _within(part: Term, whole: Term, row: int, col: int) -> bool:
    """Whether a part begins at whole fractals of a larger tile, and all that is valid of it is valid there.

    Its last columns are followed by zeros in L1, as those of a load are, where they fill their blocks or are the last of both.
    """
    assert part.dtype is not None
    block = BLOCK_BYTES // part.dtype.bytes
    side = max(FRACTAL, block)
    if row % side or col % side or row + part.rows > whole.rows or col + part.cols > whole.cols:
        return False
    ends = _end(part.vcols, whole.vcols, col)
    filled = part.vcols is not None and (part.vcols.value or 1) % block == 0
    rows = _end(part.vrows, whole.vrows, row)
    return (part.rows, part.cols) != (whole.rows, whole.cols) and rows is not None and ends is not None and (filled or ends == 0)


def _end(part: Expr | None, whole: Expr | None, at: int) -> int | None:
    """How many valid rows or columns of the whole lie behind those of a part; None where that is unknown or some are missing."""
    left = whole - part - at if part is not None and whole is not None else None
    return left.value if left is not None and left.value is not None and left.value >= 0 else None
