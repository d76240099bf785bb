"""Trips in blocks: where blocks leave cores without work in their last turn, several blocks share the trips of each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tile_eg.ir.values import Values, reachable
from tile_eg.search.bounds import timing
from tile_eg.search.form import Form, searched
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer
from tile_eg.timeline.works import blocks_at_once
from tile_eg.transforms.stores_of_trips import loop_of_stores, trips_in_blocks

NAME = "trips-in-blocks"
FULL = 0.95
"""The part of all turns in which cores have work, beyond which there is little to gain (assumed)."""


def offers(form: Form) -> Iterator[Offer]:
    """The fewest blocks for each that fill the turns of all cores, or as far as whole numbers of trips allow."""
    v, chip = form.values, form.setting.chip
    if form.moves or not form.candidates or v.shared or v.sizes or v.deeper or v.counts:
        return
    if any(t.op == "matmul" for t in reachable(v)) or any(p.slots for p in v.places.values()):
        return
    filled = {n: filling(v.blocks * n, chip.vector_cores) for n in _shares(v)}
    if filling(v.blocks, chip.vector_cores) > FULL or not filled:
        return
    parts = next((n for n in sorted(filled) if filled[n] >= FULL), max(filled, key=lambda n: (filled[n], -n)))
    if (values := trips_in_blocks(v, parts)) is not None:
        make, closer = partial(_made, form, parts, values), partial(_bound, form, filled[parts])
        yield Offer(MOVES[NAME], str(parts), 0.0, make, form, closer=closer)


def filling(blocks: int, cores: int) -> float:
    """In what part of all turns a core has work."""
    return blocks / (-(-blocks // cores) * cores)


def _shares(v: Values) -> list[int]:
    """How many blocks may share the trips of each: a whole number of trips."""
    loop = loop_of_stores(v)
    return [n for n in range(2, loop.args[1]) if loop.args[1] % n == 0] if loop else []


def _bound(form: Form, filled: float) -> float:
    """What the best schedule takes where its cores have as much more to do at a time."""
    best = form.best
    if best is None:
        return float("inf")
    time, program = timing(best), best.planned.program
    now = filling(form.values.blocks, blocks_at_once(program, form.setting.chip))
    fuller = time.launch_us + time.core_us * now / filled
    return best.microseconds * fuller / time.microseconds if now < filled else float("inf")


def _made(form: Form, parts: int, values: Values) -> Made:
    return Made(form=searched(form.kernel, form.source, form.setting, values, (f"{NAME} {parts}",)))
