"""Windows of one tensor that lie over one another and are read at nearly the same time.

The shifted ones of a stencil do in a trip, and the rows around a tile are those of the next tile, too. L2 has what they share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tile_eg.ir.index import EACH, Expr
from tile_eg.ir.sizes import usual
from tile_eg.timeline.accesses import Access, at_start

OTHERWISE = ("strips", "pairs", "scales")
"""Loads whose rows do not lie as those of a window of the tensor."""
Starts = Sequence[Sequence[int]]
"""Where the windows of the blocks start, step by step."""


def new_shares(found: Sequence[tuple[Access, Starts]]) -> Iterator[float]:
    """The share of each access' bytes that no other load brings: one before it in the same trip, or itself in the trip before or
    another block. 1 where no windows lie over one another, for rows that lie anywhere, and where strips or scales are loaded.
    """
    for n, (a, starts) in enumerate(found):
        if not a.reads or EACH in a.names or a.instr.form in OTHERWISE:
            yield 1.0
            continue
        before = [other for other in found[:n] if other[0].instr.form not in OTHERWISE and _together(other[0], a)]
        shared = [_common(other, a, by) for other, at in before if (by := _shift(at, starts))]
        yield 1 - max([*shared, _rows_again(a, starts)])


def _together(other: Access, a: Access) -> bool:
    """Whether both read windows of one tensor in the same loops."""
    same = other.reads and (other.window.tensor, other.instr.core) == (a.window.tensor, a.instr.core)
    return same and usual(other.window.stride) == usual(a.window.stride) and list(map(id, other.loops)) == list(map(id, a.loops))


def _shift(others: Starts, starts: Starts) -> int:
    """How far apart they start in most blocks, halfway through; 0 where they do not, or not the same blocks read them."""
    half = len(starts) // 2
    if len(others) != len(starts) or len(others[half]) != len(starts[half]) or not starts[half]:
        return 0
    apart = Counter(b - a for a, b in zip(others[half], starts[half], strict=True))
    by, times = apart.most_common(1)[0]
    return by if 2 * times > len(starts[half]) else 0


def _common(other: Access, a: Access, by: int) -> float:
    """The share of a window's elements that another one has too, which starts `by` elements before it."""
    wide = usual(a.window.stride) or max(at_start(x.instr.cols) for x in (other, a)) + abs(by)
    rows, cols = divmod(by + wide // 2, wide)
    shared = _overlap(other.instr.rows, a.instr.rows, rows) * _overlap(other.instr.cols, a.instr.cols, cols - wide // 2)
    return shared / max(1, at_start(a.instr.rows) * at_start(a.instr.cols))


def _overlap(first: Expr, second: Expr, by: int) -> int:
    """How much two runs have in common, of which the second one starts so much later."""
    a, b = at_start(first), at_start(second)
    return max(0, min(a, by + b) - max(0, by))


def _rows_again(a: Access, starts: Starts) -> float:
    """The share of its rows that windows above it have, which other blocks read, or all of them in the trip before."""
    rows, stride, half = at_start(a.instr.rows), usual(a.window.stride), len(starts) // 2
    near = {*starts[half], *starts[half - 1]} if half else {*starts[half]}
    if len(near) < 2 or not stride:
        return 0.0
    above = (next((n for n in range(1, rows) if start - n * stride in near), rows) for start in starts[half])
    return sum(rows - n for n in above) / max(1, rows * len(starts[half]))
