"""Which part of what a program reads comes from HBM and which from L2, told from its loops and index expressions.

What fits into L2 as a whole comes from HBM once; otherwise `timeline.l2` follows what the cores touch.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from math import prod

from tile_eg.chips import Chip
from tile_eg.ir.program import Program
from tile_eg.ir.sharing import once
from tile_eg.ops.records import record
from tile_eg.timeline.accesses import Access, at_start
from tile_eg.timeline.l2 import L2, Room


def misses(program: Program, found: Sequence[Access], l2_bytes: int, at_once: int) -> Mapping[int, float]:
    """The share of its bytes that each load brings from HBM, by `id` of its Instr; `at_once` blocks run side by side."""
    return traffic(program, found, Room(l2_bytes), at_once).missed


@record
class Traffic:
    """What a launch has of HBM: by `id` of a load the share of its bytes that comes from there, and the part of what is written
    through L2 that is pushed out of it before the launch ends."""

    missed: Mapping[int, float]
    pushed: float


def traffic(
    program: Program, found: Sequence[Access], room: Room, at_once: int, handed: Collection[str] = frozenset()
) -> Traffic:
    """The traffic of a program's accesses, of which `at_once` blocks run side by side; `handed` tensors are not pushed out."""
    past = {id(a.instr): 1.0 for a in found if a.past_l2 and a.reads}
    seen = [a for a in found if not a.past_l2]
    missed, pushed = _through_l2(program, seen, room, at_once, frozenset(handed))
    return Traffic(past | missed | {id(a.instr): 0.0 for a in found if a.window.tensor in handed}, pushed)


def _through_l2(
    program: Program, found: Sequence[Access], room: Room, at_once: int, handed: frozenset[str]
) -> tuple[dict[int, float], float]:
    """The same of accesses that L2 sees."""
    tensors = {t.name: t.dtype.bytes * prod(t.shape) for t in program.in_gm}
    loads = [a for a in found if a.reads]
    touched = sum(tensors[name] for name in {a.window.tensor for a in found})
    if touched <= room.found:
        return _once(loads, tensors), 0.0
    written = written_bytes(found, tensors, handed)

    def followed() -> tuple[list[float | None], float]:
        pushes = written and touched > room.written
        l2 = L2(program, found, tensors, room if pushes else Room(room.found), min(program.blocks, at_once), handed)
        shares = l2.shares()
        pushed = max(0.0, 1 - l2.unwritten() / written) if pushes else 0.0
        return [shares.get(id(a.instr)) for a in found], pushed

    key = program.blocks, tuple(tensors.items()), room, at_once, handed, _alike(found)
    shares, pushed = once("misses", key, followed)
    return {id(a.instr): n for a, n in zip(found, shares, strict=True) if n is not None}, pushed


def written_bytes(found: Sequence[Access], tensors: Mapping[str, int], handed: Collection[str] = ()) -> float:
    """Bytes that are written, each once, but to the `handed` tensors."""
    written: dict[str, float] = {}
    for a in found:
        if not a.reads and a.window.tensor not in handed:
            written[a.window.tensor] = written.get(a.window.tensor, 0.0) + a.moved
    return sum(min(n, tensors[name]) for name, n in written.items())


def _alike(found: Sequence[Access]) -> Hashable:
    """All of accesses but their instructions' names and places on chip: what L2 sees of them."""
    loops: dict[int, int] = {}
    each = ((a, [(loops.setdefault(id(v), len(loops)), v.var, v.trips) for v in a.loops]) for a in found)
    return tuple(
        (a.window, tuple(around), a.guards, a.bytes, a.filled, a.reads, a.blocks, a.halves, tuple(a.means.items()))
        + (a.instr.core, at_start(a.instr.rows), at_start(a.instr.cols))
        for a, around in each
    )


def _once(loads: list[Access], tensors: dict[str, int]) -> dict[int, float]:
    """All of it fits into L2: every byte comes from HBM once."""
    read, new = dict.fromkeys(tensors, 0.0), dict.fromkeys(tensors, 0.0)
    for a in loads:
        read[a.window.tensor] += a.moved
        new[a.window.tensor] += a.new
    return {id(a.instr): min(1.0, min(new[name], tensors[name]) / max(1, read[name])) for a in loads if (name := a.window.tensor)}


def handed_over(program: Program, l2_bytes: int) -> frozenset[str]:
    """The tensors that the blocks share, where L2 holds them from the writes to the reads: none of it crosses HBM."""
    shared = {t.name: t.dtype.bytes * prod(t.shape) for t in program.shared}
    return frozenset(shared) if sum(shared.values()) <= l2_bytes else frozenset()


def crossing(program: Program, found: Sequence[Access], seen: Traffic, handed: Collection[str] = ()) -> tuple[float, float]:
    """Bytes that HBM reads and writes before the launch ends."""
    tensors = {t.name: t.dtype.bytes * prod(t.shape) for t in program.in_gm}
    read = sum(a.moved * seen.missed.get(id(a.instr), 1.0) for a in found if a.reads and a.window.tensor not in handed)
    through, past = (written_bytes([a for a in found if a.past_l2 is past], tensors, handed) for past in (False, True))
    return read, seen.pushed * through + past


def hbm_seconds(chip: Chip, read: float, written: float) -> float:
    """What HBM needs to read and to write so many bytes: one after the other, each at its own rate."""
    return read / chip.shared.hbm_read + written / chip.shared.hbm_write


def with_reads(chip: Chip, read: float, written: float) -> Chip:
    """The chip as a kernel meets it of which HBM reads and writes so many bytes.

    HBM serves reads and writes in turn: reads have `reads_least` of it at the least, and what is written waits in L2. What both
    need together bounds the launch as a whole (`engine._run`).
    """
    if not read or not written:
        return chip
    rate = max(read / hbm_seconds(chip, read, written), chip.shared.reads_least * chip.shared.hbm_read)
    return replace(chip, shared=replace(chip.shared, hbm_read=rate))
