"""What one instruction costs: busy cycles on its pipe and bytes moved, from the chip's tables.

Pure and quick: search models call `cycles` for every candidate, the timeline for every instruction of a program.
"""

from __future__ import annotations

from dataclasses import replace

from tile_eg.chips.model import Chip
from tile_eg.ops.types import fractal_depth
from tile_eg.timeline.moves import MOVES, Rule, burst_bytes, gm_bytes, line_bytes, moved_bytes
from tile_eg.timeline.vector_cycles import VECTOR_RULES, plain_cycles, repeat_cycles, vector_places
from tile_eg.timeline.work import ANYWHERE, Work

__all__ = [
    "ANYWHERE",
    "Work",
    "burst_bytes",
    "cycles",
    "gm_bytes",
    "line_bytes",
    "mmad_fractals",
    "moved_bytes",
    "places",
    "repeat_cycles",
]

def cycles(chip: Chip, work: Work, *, cold: bool = False) -> float:
    """Busy cycles of `work` on its pipe, back to back with others; `cold` adds the start-up of an isolated instruction.

    An empty extent costs nothing: the instruction is not issued.
    """
    if work.rows <= 0 or work.cols <= 0 or work.depth <= 0:
        return 0.0
    if work.form == ANYWHERE:
        one = replace(work, rows=1, form="flat")
        warm = cycles(chip, one)
        return work.rows * warm + (cycles(chip, one, cold=True) - warm if cold else 0.0)
    rule = _RULES.get(work.op)
    return rule(chip, work, cold) if rule else plain_cycles(chip, work, cold)


def places(chip: Chip, work: Work) -> int:
    """Places that it takes in its pipe's queue: the instructions it is written as, and the barriers between them.

    Of moves and of the cube it is one.
    """
    return vector_places(chip, work) if work.op.startswith("v") and work.rows > 1 else 1


def mmad_fractals(work: Work) -> int:
    """Fractals of 16 x 16 x 32 bytes: every dimension is padded (ASC, theoretical cube performance)."""
    return -(-work.rows // 16) * -(-work.cols // 16) * -(-work.depth // fractal_depth(work.src_dtype))


def _mmad(chip: Chip, work: Work, cold: bool) -> float:
    """2.4 + 0.992 cycles a half fractal back to back, 23.1 isolated (MSKPP); a float fractal takes two (ASC)."""
    cube = chip.cube
    depth = fractal_depth(work.src_dtype)
    each = cube.fractal * (16 * 16 * depth) / cube.macs[work.src_dtype.name]
    return (cube.startup if cold else cube.issue) + each * mmad_fractals(work)


def _stored_by_scalar(chip: Chip, work: Work, cold: bool) -> float:
    """The scalar unit writes one element after the other (`scalar_access` of the chip's table)."""
    return work.rows * work.cols * chip.sync.scalar_access


_RULES: dict[str, Rule] = {
    **MOVES,
    "store_element": _stored_by_scalar,
    "mmad": _mmad,
    **VECTOR_RULES,
}
