"""How many cores draw from HBM at a time: while one of them reads from L2, the others have its share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tile_eg.chips import Chip
from tile_eg.timeline.accesses import Access, at_start
from tile_eg.timeline.instruction import cycles
from tile_eg.timeline.moves import from_hbm
from tile_eg.timeline.work import Work
from tile_eg.timeline.works import Pricer


def beside(chip: Chip, load: Work, others: Iterable[Work]) -> float:
    """How many cores draw from HBM beside a load that comes in turn with others.

    Together they keep HBM busy, unless a turn takes longer than HBM needs for all of them. While another load misses L2 together
    with this one, its core does not read from L2.
    """
    (size, rate), elsewhere = from_hbm(chip, load), 0.0
    for other in others:
        with_it = min(1.0, other.miss / load.miss)
        size += with_it * from_hbm(chip, other)[0]
        elsewhere += (1 - with_it) * cycles(chip, other)
    return max(1.0, load.cores - elsewhere * rate / size) if size else 0.0


def turns(chip: Chip, pricer: Pricer, found: Sequence[Access]) -> dict[int, float]:
    """How many cores draw from HBM beside a load, by `id` of its Instr: it is in turn with the others of its innermost loop."""
    loops: dict[object, list[Access]] = defaultdict(list)
    for a in found:
        if a.reads and a.loops and not a.past_l2:
            loops[a.instr.core, id(a.loops[-1])].append(a)
    out: dict[int, float] = {}
    for loads in loops.values():
        if len(loads) > 1 and any(pricer.missed.get(id(a.instr)) for a in loads):
            works = {id(a.instr): _work(pricer, a) for a in loads}
            out |= {i: beside(chip, w, [v for v in works.values() if v is not w]) for i, w in works.items() if w.miss}
    return out


def _work(pricer: Pricer, a: Access) -> Work:
    return pricer.work(a.instr, *map(at_start, (a.instr.rows, a.instr.cols, a.instr.depth)))
