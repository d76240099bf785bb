"""Steady trips: schedules whose skewed loops are ordered, and given places in UB and L0, as trips run while the loop is full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tile_eg.extract.schedule import LoopStep, Schedule
from tile_eg.extract.trip_order import by_vectors
from tile_eg.report.text import duration
from tile_eg.search.bounds import floor
from tile_eg.search.candidates import Candidate, plan_each, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.persistent import expected_of, persistent_of
from tile_eg.search.queue import Made, Offer

NAME = "steady-trips"


def offers(form: Form) -> Iterator[Offer]:
    """The steady forms of a form's schedules with skewed loops. All have the bound of the best. Where the trips are ordered for
    the vector cores, the search model tells best which is fast, and its cheapest comes first; else the fastest as it is."""
    able = [c for c in form.candidates if _able(c.schedule)]
    bound = min((floor(c, form.setting.chip) for c in able), default=0.0) / form.setting.chip.sync.fullest
    for c in sorted(able, key=lambda c: c.schedule.cost if _by_vectors(c.schedule) else 0.0):
        yield _offer(form, c, bound)


def offers_of(form: Form, c: Candidate) -> Iterator[Offer]:
    """The steady form of a schedule whose rings have fewer ids than slots: these were not there when the form's were offered."""
    if c.schedule.few_ids and not c.schedule.steady and _able(c.schedule):
        yield _offer(form, c, floor(c, form.setting.chip) / form.setting.chip.sync.fullest, "few ids")


def _offer(form: Form, c: Candidate, bound: float, group: str | None = None) -> Offer:
    what, closer = f"the schedule of {duration(c.microseconds * 1e-6)}", partial(form.expected, NAME, c)
    return Offer(MOVES[NAME], what, bound, partial(_made, form, c), form, group, closer=closer)


def _made(form: Form, c: Candidate) -> Made:
    """The steady form of a schedule; the form keeps the most that any of them gained."""
    made = made_anew(form, partial(rebuilt, form, c.schedule, steady=True))
    form.note_gain(NAME, c, made.candidates)
    return made


def _able(s: Schedule) -> bool:
    """Whether a schedule has a skewed loop, and its choice stands for all of it."""
    return any(map(_skewed, s.top)) and not (s.persistent or s.finished) and s.one_phase


def _by_vectors(s: Schedule) -> bool:
    return all(by_vectors(x) for x in s.top if isinstance(x, LoopStep))


def _skewed(item: object) -> bool:
    return isinstance(item, LoopStep) and (item.skew > 0 or any(map(_skewed, item.body)))


def made_anew(form: Form, build: Callable[[], list[Schedule]]) -> Made:
    """What is built of a schedule's choice, as blocks and persistent."""
    planned, dropped = plan_each(build(), form.setting.chip)
    made = ranked(planned, form.setting.model) if planned else ()
    if not made or not any(g.op == "Persistent" for g in form.grids) or not form.slower_than(expected_of(form, made[0])):
        return Made(made, dropped)
    grids, others = plan_each(persistent_of(form, made[0]), form.setting.chip)
    return Made((*made, *ranked(grids, form.setting.model)), (*dropped, *others))


def rebuilt(
    form: Form,
    schedule: Schedule,
    *,
    steady: bool = False,
    grouped: bool = False,
    early: bool = False,
    ahead: bool = False,
) -> list[Schedule]:
    """The same choice built anew, as in `build_schedule`, with as few ids; nothing where there is no room for it then. A steady
    one also with what its trips make of nothing kept for all of them: the timeline tells what is faster."""
    from tile_eg.cost_models import roles, search_model
    from tile_eg.extract.base import Refused
    from tile_eg.extract.build_schedule import build_schedule
    from tile_eg.extract.kept import kept
    from tile_eg.extract.pricing import Pricer

    chip, graph = form.setting.chip, schedule.graph
    pricer = Pricer(graph, chip, search_model(roles(form.setting.options.cost_model, chip).search, chip))
    choices = [schedule.nodes, *([other] if steady and (other := kept(graph, schedule.nodes)) != schedule.nodes else [])]
    out = list[Schedule]()
    for nodes in choices:
        try:
            prices = [pricer.price(n) for n in graph.nodes]
            out.append(build_schedule(graph, nodes, prices, chip, steady=steady, grouped=grouped, early=early, ahead=ahead))
        except Refused:
            continue
        out[-1].few_ids = out[-1].few_ids or schedule.few_ids
    return out
