"""In which of its rounds a vector instruction waits for banks of UB (machine, clause 30): by the addresses of its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, product

from tile_eg.ir.machine import BANK_ROW, BLOCK_BYTES, REPEAT_BYTES, writes_in_the_way
from tile_eg.ir.program import BINARY, OVERWRITES, REDUCE, SCALAR, SPREAD, UNARY, Buffer, Instr, Tile
from tile_eg.ops.records import record
from tile_eg.timeline.work import HALF_OF_ROUNDS, HALVES

ROWS, CHUNKS = 16, 8
"""Rounds fall in the same banks again after so many rows and chunks, wherever these begin."""
ONE = frozenset(f"v{name}" for name in (*UNARY, *SCALAR, "axpy", "cast", "piece", "put", "reshape"))
MORE = {f"v{name}{kind}": kind[1:] for name in (*BINARY, "muladd") for kind in ("", *SPREAD)}
FOLDS = frozenset(f"v{along}{name}" for along in ("row", "col") for name in REDUCE)


@record
class Side:
    """An operand as the rounds see it: where it begins, and the bytes from row to row and from chunk to chunk of 256 bytes."""

    start: int
    row: int = 0
    chunk: int = 0

    def at(self, row: int, chunk: int) -> int:
        return self.start + row * self.row + chunk * self.chunk


@record
class Meetings:
    """The share of the rounds in which two sources lie in one group of banks; and the result in the banks of a source."""

    sources: float = 0.0
    result: float = 0.0


def meetings(i: Instr, buffers: Mapping[str, Buffer], rows: int, cols: int) -> Meetings | None:
    """Those of an instruction with these valid sizes; None where the addresses say nothing of it."""
    tiles = [o for o in (i.dst, *i.srcs) if isinstance(o, Tile)]
    homes = [buffers[t.buffer] for t in tiles]
    if not all(b.addresses for b in homes) or len(tiles) < 2:
        return None
    lanes = REPEAT_BYTES // max(b.dtype.bytes for b in homes)
    sides = [Side(_first(t, b), b.pitch * b.dtype.bytes, lanes * b.dtype.bytes) for t, b in zip(tiles, homes, strict=True)]
    chunks = -(-cols // lanes)
    if i.op == "vput":
        sides = [_further(sides[0], i, homes[0]), sides[2]]
    elif i.op == "vpiece":
        sides[1] = _further(sides[1], i, homes[1])
    if i.op in FOLDS:
        return _of_folds(i, buffers, sides[1], rows, chunks)
    if i.op in ONE or MORE.get(i.op) == "":
        if i.form == "flat":
            rows = chunks = 1
        return _shared(sides, i.op in OVERWRITES, rows, 1 if rows < chunks else chunks)
    if i.op.startswith("vchoose"):
        return Meetings(_of_choice(i.op, [side.start for side in sides[1:]]))
    if i.op not in MORE:
        return None
    if i.form == "apart":
        return Meetings(float(any(b.addresses[0] % REPEAT_BYTES for b in homes[1:])), _apart(sides, rows))
    start = sides[2].start
    sides[2] = Side(start, 0, sides[2].chunk) if i.op.endswith("_cols") else Side(start, BLOCK_BYTES)
    if i.op.endswith("_outer"):
        sides[1] = Side(sides[1].start, 0, sides[1].chunk)
    return _shared(sides, i.op in OVERWRITES, rows, 1 if i.op.endswith("_cols") and rows == 1 else chunks)


def _first(t: Tile, home: Buffer) -> int:
    """The byte at which a window begins that is read where it lies; one that moves from trip to trip, as at the tile's."""
    return home.addresses[0] + ((t.row * home.pitch + t.col).value or 0) * home.dtype.bytes


def _further(side: Side, i: Instr, home: Buffer) -> Side:
    """A window of it that begins at an element."""
    return replace(side, start=side.start + (i.bound.value or 0) * home.dtype.bytes)


def _of_folds(i: Instr, buffers: Mapping[str, Buffer], src: Side, rows: int, chunks: int) -> Meetings | None:
    """Of the folds of a reduction: chunks of each row into the scratch (by blocks: in its first step), or further rows into the
    result."""
    if i.form in HALVES:
        return None
    if i.op.startswith("vcol"):
        assert isinstance(i.dst, Tile)
        to = Side(buffers[i.dst.buffer].addresses[0])
        return _shared([to, to, src], False, rows, 1)
    if i.scratch is None or not buffers[i.scratch.buffer].addresses:
        return Meetings(HALF_OF_ROUNDS)
    to = Side(buffers[i.scratch.buffer].addresses[0], REPEAT_BYTES)
    return _shared([to, to, src], False, rows, chunks)


def _of_choice(op: str, sources: Sequence[int]) -> float:
    """Of its two instructions: a comparison, of two tiles where none is a number, and the selection between two others."""
    compared = op.startswith("vchoose_") and _one_group(sources[:2])
    return (compared + _one_group(sources[-2:])) / 2


def _apart(sides: Sequence[Side], rows: int) -> float:
    """Blocks of eight rows lie side by side, those of one row 256 bytes from their copies: their banks are those of their row."""
    to, *others = sides
    blocks = [Side(s.start, BLOCK_BYTES) if s.row == min(o.row for o in others) else s for s in others]
    return _shared([to, *blocks], False, rows, 1).result


def _shared(sides: Sequence[Side], again: bool, rows: int, chunks: int) -> Meetings:
    """`again`: it reads its result, too."""
    return _counted(tuple(sides), again, min(rows, ROWS), min(chunks, CHUNKS))


@lru_cache(maxsize=65536)
def _counted(sides: tuple[Side, ...], again: bool, rows: int, chunks: int) -> Meetings:
    rounds = [[s.at(*place) for s in sides] for place in product(range(rows), range(chunks))]
    sources = sum(_one_group(at if again else at[1:]) for at in rounds)
    result = sum(any(writes_in_the_way(at[0], source) for source in at[1:]) for at in rounds)
    return Meetings(sources / max(1, len(rounds)), result / max(1, len(rounds)))


def _one_group(at: Sequence[int]) -> bool:
    """Whether two of them begin in one half of 512 bytes."""
    return any(a % BANK_ROW // REPEAT_BYTES == b % BANK_ROW // REPEAT_BYTES for a, b in combinations(at, 2))
