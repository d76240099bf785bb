"""How many cores draw from HBM at a time: while one of them reads from L2, the others have its share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from tile_eg.chips import Chip
from tile_eg.timeline.accesses import Access, at_start
from tile_eg.timeline.instruction import cycles
from tile_eg.timeline.moves import from_hbm
from tile_eg.timeline.work import Work
from tile_eg.timeline.works import Pricer


def beside(chip: Chip, load: Work, others: Iterable[Work], often: Iterable[float] = repeat(1.0)) -> float:
    """How many cores draw from HBM beside a load that comes in turn with others, each of them so `often` for one of it.

    Together they keep HBM busy, unless a turn takes longer than HBM needs for all of them. While another load misses L2 together
    with this one, its core does not read from L2.
    """
    (size, rate), elsewhere = from_hbm(chip, load), 0.0
    for other, times in zip(others, often, strict=False):
        with_it = min(1.0, other.miss / load.miss)
        size += times * with_it * from_hbm(chip, other)[0]
        elsewhere += times * (1 - with_it) * cycles(chip, other)
    return max(1.0, load.cores - elsewhere * rate / size) if size else 0.0


def turns(chip: Chip, pricer: Pricer, found: Sequence[Access]) -> dict[int, float]:
    """How many cores draw from HBM beside a load, by `id` of its Instr: it is in turn with the others of its innermost loop, and
    with those around or inside that loop, as one for several trips is with those of each."""
    loads = [a for a in found if a.reads and a.loops and not a.past_l2]
    if not any(pricer.missed.get(id(a.instr)) for a in loads):
        return {}
    works = {id(a.instr): _work(pricer, a) for a in loads}
    out: dict[int, float] = {}
    for a in loads:
        own = works[id(a.instr)]
        others = {id(b.instr): n for b in loads if b is not a and (n := _in_turn(a, b))} if own.miss else {}
        if others:
            out[id(a.instr)] = beside(chip, own, [works[i] for i in others], others.values())
    return out


def _in_turn(a: Access, b: Access) -> float:
    """How often one load comes for each time that another one does; 0 where they are not in turn."""
    if a.instr.core != b.instr.core or a.instr is b.instr:
        return 0.0
    outer, inner = sorted((a, b), key=lambda x: len(x.loops))
    if any(x is not y for x, y in zip(outer.loops, inner.loops, strict=False)):
        return 0.0
    times = inner.times(inner.loops[len(outer.loops) :])
    return times if inner is b else 1 / max(1.0, times)


def _work(pricer: Pricer, a: Access) -> Work:
    return pricer.work(a.instr, *map(at_start, (a.instr.rows, a.instr.cols, a.instr.depth)))
