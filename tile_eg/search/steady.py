"""Steady trips: schedules whose skewed loops are ordered, and given places in UB and L0, as trips run while the loop is full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from tile_eg.extract.schedule import LoopStep, Schedule
from tile_eg.search.bounds import floor
from tile_eg.search.candidates import Candidate, plan_each, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Made, Offer

FULLEST = 0.94
"""The part of the time that the busiest pipe of a skewed loop works at the most (assumed)."""


def offers(form: Form) -> Iterator[Offer]:
    """The steady schedules of a form, where it has any with a skewed loop."""
    found = [c for c in form.candidates if _able(c.schedule)]
    if found:
        bound = min(floor(c, form.setting.chip) for c in found) / FULLEST
        yield Offer(MOVES["steady-trips"], f"{len(found)} schedules", bound, partial(_made, form, found), form)


def _able(s: Schedule) -> bool:
    """Whether a schedule has a skewed loop, and its choice stands for all of it."""
    return any(map(_skewed, s.top)) and not (s.persistent or s.shuffled) and s.parts is None and s.second is None


def _skewed(item: object) -> bool:
    return isinstance(item, LoopStep) and (item.skew > 0 or any(map(_skewed, item.body)))


def _made(form: Form, found: Sequence[Candidate]) -> Made:
    """The steady form of each schedule, and the persistent one of the fastest."""
    planned, dropped = plan_each(_built(form, [c.schedule for c in found]), form.setting.chip)
    made = ranked(planned, form.setting.model) if planned else ()
    if not made or not any(g.op == "Persistent" for g in form.grids):
        return Made(made, dropped)
    grids, others = plan_each(_persistent(form, made[0]), form.setting.chip)
    return Made((*made, *ranked(grids, form.setting.model)), (*dropped, *others))


def _persistent(form: Form, candidate: Candidate) -> list[Schedule]:
    from tile_eg.extract.grid import orders, with_grids
    from tile_eg.timeline.works import blocks_at_once

    chip = form.setting.chip
    grids = orders(candidate.schedule, chip, blocks_at_once(candidate.planned.program, chip))
    return [s for g in grids[:1] for s in with_grids(candidate.schedule, g, chip)]


def _built(form: Form, schedules: Sequence[Schedule]) -> list[Schedule]:
    """The same choices built anew; without those for which there is no room then."""
    from tile_eg.cost_models import roles, search_model
    from tile_eg.extract.base import Refused
    from tile_eg.extract.build_schedule import build_schedule
    from tile_eg.extract.pricing import Pricer

    chip, graph = form.setting.chip, schedules[0].graph
    pricer = Pricer(graph, chip, search_model(roles(form.setting.options.cost_model, chip).search, chip))
    prices = [pricer.price(n) for n in graph.nodes]
    out = []
    for s in schedules:
        try:
            out.append(build_schedule(graph, s.nodes, prices, chip, steady=True))
        except Refused:
            continue
    return out
