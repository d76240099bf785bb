"""How long bytes of an on-chip memory are live: from what fills them to what reads them last before they are filled again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tile_eg.ir.index import evaluate
from tile_eg.ir.program import Program, Tile
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.timeline.cores import Span


@record
class Life:
    """`size` bytes of a core's memory, from cycle `first` to cycle `last`."""

    core: str
    level: str
    size: int
    first: float
    last: float


@record
class Touch:
    """An instruction that reads and writes pieces of a core's memories, each named by a key."""

    core: str
    start: float
    complete: float
    reads: frozenset[tuple[str, int]]
    writes: frozenset[tuple[str, int]]


def program_lives(program: Program, spans: Sequence[Span]) -> list[Life]:
    """The lives of the slots of a Program's on-chip buffers; `spans` are when its instructions ran."""
    buffers = {b.name: b for b in program.buffers if b.level is not Level.WS}

    def places(span: Span, operands: Iterable[object]) -> frozenset[tuple[str, int]]:
        tiles = (t for t in operands if isinstance(t, Tile) and t.buffer in buffers)
        return frozenset((t.buffer, evaluate(t.slot, span.env)) for t in tiles)

    touches = [
        Touch(s.core, s.start, s.complete, places(s, s.instr.reads()), places(s, s.instr.writes()))
        for s in sorted(spans, key=lambda s: s.start)
    ]
    sizes = {name: (b.level.value, b.slot_bytes) for name, b in buffers.items()}
    return [Life(core, *sizes[name], first, last) for core, (name, _), first, last in _lives(touches)]


def touched_lives(spans: Sequence[Span], touched: Mapping[int, Sequence[tuple[str, int, int, int]]]) -> list[Life]:
    """The lives of the bytes that instructions touched: (level, first byte, end, written) by id of the instruction.

    Every memory is cut at the ends of all that is touched in it, so that each piece is touched as a whole or not at all.
    """
    cuts: dict[str, set[int]] = {}
    for pieces in touched.values():
        for level, begin, end, _ in pieces:
            cuts.setdefault(level, set()).update((begin, end))
    ends = {level: sorted(found) for level, found in cuts.items()}

    def places(span: Span, written: bool) -> frozenset[tuple[str, int]]:
        mine = (piece for piece in touched[id(span.instr)] if bool(piece[3]) == written)
        return frozenset((level, i) for level, a, b, _ in mine for i in range(*(bisect_left(ends[level], x) for x in (a, b))))

    known = [s for s in sorted(spans, key=lambda s: s.start) if id(s.instr) in touched]
    touches = [Touch(s.core, s.start, s.complete, places(s, False), places(s, True)) for s in known]
    return [
        Life(core, level, ends[level][i + 1] - ends[level][i], first, last) for core, (level, i), first, last in _lives(touches)
    ]


def _lives(touches: Sequence[Touch]) -> Iterator[tuple[str, tuple[str, int], float, float]]:
    """(core, piece, first, last cycle) of each filling of each piece.

    A write that starts before the last use has ended joins the filling: several instructions fill one piece.
    """
    open_: dict[tuple[str, tuple[str, int]], list[float]] = {}
    for touch in touches:
        for piece in sorted(touch.reads | touch.writes):
            place = touch.core, piece
            if place in open_ and (piece in touch.reads or touch.start <= open_[place][1]):
                open_[place][1] = max(open_[place][1], touch.complete)
                continue
            if place in open_:
                yield (*place, open_[place][0], open_[place][1])
            open_[place] = [touch.start, touch.complete]
    for place, (first, last) in open_.items():
        yield (*place, first, last)
