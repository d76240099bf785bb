"""Where a program's buffers lie, and how full each memory is."""

from __future__ import annotations

from tile_eg.chips import Chip
from tile_eg.ir.printed import Printed
from tile_eg.ir.program import Buffer, Program
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.report.html import Cell, Strip, html_table
from tile_eg.report.text import share, size, table

LEVELS = (Level.L1, Level.L0A, Level.L0B, Level.L0C, Level.UB, Level.WS)


@record(repr=False)
class MemoryMap(Printed):
    """The planned memories of one block's cores. Prints as a table; `used` gives the highest byte of each level."""

    program: Program
    chip: Chip

    def used(self, level: Level) -> int:
        """Bytes from the level's beginning to the end of its last slot."""
        return max((a + b.slot_bytes for b in self.buffers(level) for a in b.addresses), default=0)

    def buffers(self, level: Level) -> list[Buffer]:
        return sorted((b for b in self.program.buffers if b.level is level), key=lambda b: b.addresses)

    def __str__(self) -> str:
        rows = [row for level in LEVELS for row in self._level(level)]
        return table(rows, ("level", "buffer", "tile", "bytes", "at"), right=[3])

    def _repr_html_(self) -> str:
        """Each buffer where it lies in its memory, drawn to scale."""
        rows = [row for level in LEVELS for row in self._drawn(level)]
        return html_table(rows, ("level", "buffer", "tile", "bytes", "from the first byte to the last"), right=[3])

    def _drawn(self, level: Level) -> list[tuple[Cell, ...]]:
        found, whole = self.buffers(level), self._usable(level) or self.used(level)
        if not found:
            return []
        head: tuple[Cell, ...] = (str(level), "", "", size(self.used(level)), self._fill(level))
        return [head, *(("", *_buffer(b)[:3], _strip(b, whole)) for b in found)]

    def data(self) -> dict[str, dict[str, int | None]]:
        """Bytes used by level, and what there is of it (the workspace: no limit)."""
        levels = [level for level in LEVELS if self.buffers(level)]
        return {str(level): {"used": self.used(level), "usable": self._usable(level)} for level in levels}

    def _level(self, level: Level) -> list[tuple[str, ...]]:
        found = self.buffers(level)
        if not found:
            return []
        head = (str(level), "", "", size(self.used(level)), self._fill(level))
        return [head, *(("", *_buffer(b)) for b in found)]

    def _usable(self, level: Level) -> int | None:
        return None if level is Level.WS else self.chip.memories[level].usable

    def _fill(self, level: Level) -> str:
        capacity = self._usable(level)
        if capacity is None:
            return f"in GM, for each of {self.program.blocks} blocks"
        return f"{share(self.used(level), capacity)} of {size(capacity)}"


def _strip(b: Buffer, whole: int) -> Strip:
    pieces = tuple((a / whole, (a + b.slot_bytes) / whole) for a in b.addresses)
    return Strip(pieces, f"{b.name}: {_buffer(b)[3]}")


def _buffer(b: Buffer) -> tuple[str, str, str, str]:
    slots = f" x {b.slots}" if b.slots > 1 else ""
    half = ", half" if b.halved else ""
    tile = f"{b.dtype}[{b.rows}, {b.cols}] {b.layout}{slots}{half}"
    return b.name, tile, size(b.slot_bytes * b.slots), " ".join(f"{a:#x}" for a in b.addresses)
