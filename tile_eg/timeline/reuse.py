"""Which part of what a program reads comes from HBM and which from L2, told from its loops and index expressions.

What fits into L2 as a whole comes from HBM once; otherwise `timeline.l2` follows what the cores touch.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from math import prod

from tile_eg.chips import Chip
from tile_eg.ir.index import BLOCK
from tile_eg.ir.program import Program
from tile_eg.ir.sharing import once
from tile_eg.timeline.accesses import Access, at_start
from tile_eg.timeline.l2 import L2


def misses(program: Program, found: list[Access], l2_bytes: int, at_once: int) -> dict[int, float]:
    """The share of its bytes that each load brings from HBM, by `id` of its Instr; `at_once` blocks run side by side."""
    past = {id(a.instr): 1.0 for a in found if a.past_l2 and a.reads}
    return past | _through_l2(program, [a for a in found if not a.past_l2], l2_bytes, at_once)


def _through_l2(program: Program, found: list[Access], l2_bytes: int, at_once: int) -> dict[int, float]:
    """The same of accesses that L2 sees."""
    tensors = {t.name: t.dtype.bytes * prod(t.shape) for t in program.in_gm}
    loads = [a for a in found if a.reads]
    if sum(tensors[name] for name in {a.window.tensor for a in found}) <= l2_bytes:
        return _once(loads, tensors)

    def followed() -> list[float | None]:
        shares = L2(program, found, tensors, l2_bytes, min(program.blocks, at_once)).shares()
        return [shares.get(id(a.instr)) for a in found]

    key = program.blocks, tuple(tensors.items()), l2_bytes, at_once, _alike(found)
    return {id(a.instr): n for a, n in zip(found, once("misses", key, followed), strict=True) if n is not None}


def _alike(found: Sequence[Access]) -> Hashable:
    """All of accesses but their instructions' names and places on chip: what L2 sees of them."""
    loops: dict[int, int] = {}
    each = ((a, [(loops.setdefault(id(v), len(loops)), v.var, v.trips) for v in a.loops]) for a in found)
    return tuple(
        (a.window, tuple(around), a.guards, a.bytes, a.reads, a.blocks, a.halves, tuple(a.means.items()))
        + (a.instr.core, at_start(a.instr.rows), at_start(a.instr.cols))
        for a, around in each
    )


def _once(loads: list[Access], tensors: dict[str, int]) -> dict[int, float]:
    """All of it fits into L2: every byte comes from HBM once."""
    read, new = dict.fromkeys(tensors, 0.0), dict.fromkeys(tensors, 0.0)
    for a in loads:
        read[a.window.tensor] += a.bytes * a.runs
        new[a.window.tensor] += (a.blocks if BLOCK in a.names else 1) * a.bytes * a.times(v for v in a.loops if a.varies(v))
    return {id(a.instr): min(1.0, min(new[name], tensors[name]) / max(1, read[name])) for a in loads if (name := a.window.tensor)}


def handed_over(program: Program, l2_bytes: int) -> frozenset[str]:
    """The tensors that the blocks share, where L2 holds them from the writes to the reads: none of it crosses HBM."""
    shared = {t.name: t.dtype.bytes * prod(t.shape) for t in program.shared}
    return frozenset(shared) if sum(shared.values()) <= l2_bytes else frozenset()


def shares(found: Sequence[Access], missed: Mapping[int, float], handed: Collection[str] = ()) -> tuple[float, float]:
    """Of what HBM moves, the part that is read (1 where nothing is written but what stays in L2, `handed`), and the part that
    leaves L2 out."""
    moved, past = {True: 0.0, False: 0.0}, 0.0
    for a in found:
        if a.window.tensor in handed:
            continue
        n = a.bytes * a.runs * (missed.get(id(a.instr), 1.0) if a.reads else 1.0)
        moved[a.reads] += n
        past += n if a.past_l2 else 0.0
    total = sum(moved.values())
    return (moved[True] / total if moved[False] else 1.0), (past / total if total else 0.0)


def mixed_rate(chip: Chip, past: float) -> float:
    """Bytes per second of a kernel that reads and writes, where this part of them leaves L2 out."""
    return 1 / ((1 - past) / chip.shared.hbm_mixed + past / chip.shared.hbm_bypass)


def with_reads(chip: Chip, share: float, past: float = 0.0) -> Chip:
    """The chip as a kernel meets it whose reads are this share of what HBM moves, and where the part `past` leaves L2 out.

    HBM serves reads and writes in turn: reads have `reads_least` of it at the least, and what is written waits in L2. What both
    need together bounds the launch as a whole (`engine._hbm_cycles`).
    """
    shared, rate = chip.shared, mixed_rate(chip, past) * max(share, chip.shared.reads_least)
    return replace(chip, shared=replace(shared, hbm_read=min(shared.hbm_read, rate))) if 0 < share < 1 else chip
