"""Unit flags in a trace: which products and fixpipes hand the same blocks of L0C to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tile_eg.timeline.replay.row import Row

KEEPS, HANDS_OVER = 2, 3
Blocks = tuple[int, int]
"""The first byte of L0C, and the end."""


def units(rows: Sequence[Row]) -> Mapping[int, str]:
    """A name for the blocks of each row of one core that is under a unit flag, by the row's place among `rows`.

    Rows whose blocks meet share a name. None for blocks that change hands in parts, or without their flags at times: their bytes
    say then what waits for what.
    """
    blocks = {at: _blocks(row) for at, row in enumerate(rows) if row.unit_flag}
    if not blocks:
        return {}
    without = [(begin, end) for row in rows if not row.unit_flag for level, begin, end, _ in row.touched if level == "L0C"]
    found: dict[int, str] = {}
    for begin, end in _apart(sorted(blocks.values())):
        own = [at for at, (first, _) in blocks.items() if begin <= first < end]
        if _in_turns([rows[at] for at in own]) and not any(a < end and begin < b for a, b in without):
            found |= dict.fromkeys(own, f"L0C at {begin}")
    return found


def _blocks(row: Row) -> Blocks:
    """What a product writes, or a fixpipe reads, in L0C."""
    own = [(begin, end) for level, begin, end, written in row.touched if level == "L0C" and bool(written) == (row.pipe == "M")]
    return min(own)[0], max(end for _, end in own)


def _apart(blocks: Sequence[Blocks]) -> Iterator[Blocks]:
    """The stretches that they cover, from the first byte on."""
    held: Blocks | None = None
    for begin, end in blocks:
        if held and begin < held[1]:
            held = held[0], max(held[1], end)
        else:
            if held:
                yield held
            held = begin, end
    if held:
        yield held


def _in_turns(rows: Sequence[Row]) -> bool:
    """Whether products and fixpipes come in turns, and each turn ends with the one that hands the blocks over."""
    pipe = "M"
    for row in rows:
        if row.pipe != pipe:
            return False
        if row.unit_flag == HANDS_OVER:
            pipe = "FIX" if pipe == "M" else "M"
    return pipe == "M"
