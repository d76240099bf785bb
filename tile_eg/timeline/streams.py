"""Inputs that pass through L2 without being found there: what they push out of it, and what HBM would need without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from tile_eg.chips import Chip
from tile_eg.ir.program import Program, SyncAll, walk
from tile_eg.ir.program.any_size import at_sizes
from tile_eg.ir.program.tasks import inlined
from tile_eg.ops.records import record
from tile_eg.timeline.accesses import Access, accesses
from tile_eg.timeline.l2 import Room
from tile_eg.timeline.reuse import handed_over, hbm_seconds, traffic, written_bytes
from tile_eg.timeline.works import blocks_at_once

NOTHING = 1e-3
"""The share of its reads up to which L2 serves nothing of a tensor: what it finds are edges of tiles."""


@record
class Streams:
    """Inputs by `names`, those first of which L2 serves least; the first `unserved` it serves nothing of.

    `microseconds` are what HBM takes at the least where L2 is left to what is written: each byte that is read once, and what
    is written and has no room.
    """

    names: tuple[str, ...] = ()
    unserved: int = 0
    microseconds: float = 0.0


def streams(program: Program, chip: Chip) -> Streams:
    """What a launch reads through L2. None where it keeps all that is written, or where all cores meet: what was written before
    is then read again."""
    if any(isinstance(n, SyncAll) for n in (*walk(program.cube), *walk(program.vector))):
        return Streams()
    program = inlined(at_sizes(program))
    found, handed = accesses(program), handed_over(program, chip.l2_reach)
    seen = traffic(program, found, Room.of(chip), min(program.blocks, blocks_at_once(program, chip)), handed)
    if not seen.pushed:
        return Streams()
    sizes = {t.name: t.dtype.bytes * prod(t.shape) for t in program.in_gm}
    loads = [a for a in found if a.reads and a.window.tensor not in handed]
    read, missed = _bytes(loads, {}), _bytes(loads, seen.missed)
    least = sum(min(n, sizes[name]) for name, n in missed.items())
    beyond = max(0.0, written_bytes(found, sizes, handed) - chip.l2_written)
    inputs = {t.name for t in program.tensors if not t.output} & read.keys()
    served = {name: 1 - missed[name] / max(1.0, read[name]) for name in inputs}
    names = tuple(sorted(served, key=lambda name: (served[name], name)))
    return Streams(names, sum(n < NOTHING for n in served.values()), hbm_seconds(chip, least, beyond) * 1e6)


def _bytes(loads: Sequence[Access], shares: Mapping[int, float]) -> Counter[str]:
    """Bytes that are loaded by tensor, or the share of them by `id` of the instruction."""
    total: Counter[str] = Counter()
    for a in loads:
        total[a.window.tensor] += round(a.moved * shares.get(id(a.instr), 1.0))
    return total
