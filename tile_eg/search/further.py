"""Further schedules of an e-graph: with prices at the margin of the best one, where a context model says what they are; and what
only `--effort full` does: more of them, and the best one with each decision taken otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from tile_eg.egraph import Node
from tile_eg.extract.makespan import MEETING
from tile_eg.extract.schedule import Schedule
from tile_eg.report.decisions import open_choices, option
from tile_eg.search.candidates import Candidate, plan_each, ranked
from tile_eg.search.form import Form, extraction_of
from tile_eg.search.moves import MOVES
from tile_eg.search.options import MORE
from tile_eg.search.queue import Made, Offer


def offers(form: Form) -> Iterator[Offer]:
    """All, for a form that has a schedule. Nothing bounds what they find but the kernel's own launch."""
    if form.candidates and form.candidates[0].schedule.graph is form.graph and _could_meet(form.candidates[0].schedule):
        yield Offer(MOVES["cores-meeting"], "the best schedule", 0.0, partial(_meeting, form), form)
    if form.candidates and form.setting.guide:
        yield from (Offer(MOVES["at-the-margin"], f"round {n}", 0.0, partial(_at_the_margin, form), form) for n in (1, 2))
    if form.candidates and form.setting.options.found_by[0] == MORE.extractor:
        yield Offer(MOVES["more-schedules"], f"{MORE.schedules} schedules", 0.0, partial(_more, form), form)
        yield from (Offer(MOVES["other-decision"], f"round {n}", 0.0, partial(_otherwise, form), form) for n in (1, 2))


def _more(form: Form) -> Made:
    assert form.graph is not None
    found = extraction_of(form.graph, form.setting, MORE)
    return _new(form, found.schedules)


def _at_the_margin(form: Form) -> Made:
    """Schedules of the e-graph that are the cheapest by what each load would add to the best one of a block for each tile."""
    from tile_eg.extract.margin import AtTheMargin, MarginPrices
    from tile_eg.extract.pricing import Pricer

    setting, graph = form.setting, form.graph
    best = next((c for c in form.candidates if c.schedule.graph is graph), None)
    if best is None or setting.guide is None or graph is None:
        return Made(why="no schedule of the e-graph has a plan")
    pricer = Pricer(graph, setting.chip, MarginPrices(setting.chip, setting.guide.rates(best)))
    found = AtTheMargin().extract(graph, setting.chip, pricer, setting.options.schedules)
    return _new(form, found.schedules)


def _new(form: Form, schedules: list[Schedule]) -> Made:
    """The candidates of the schedules whose choice has none yet."""
    known = {frozenset(n.index for n in c.schedule.nodes) for c in form.candidates if c.schedule.graph is form.graph}
    fresh = [s for s in schedules if frozenset(n.index for n in s.nodes) not in known]
    planned, dropped = plan_each(fresh, form.setting.chip)
    return Made(ranked(planned, form.setting.model), dropped, why="no schedule that was not there")


def _otherwise(form: Form) -> Made:
    """The best schedule of one phase with each open decision taken otherwise, everything else as good as it gets."""
    best = _plain(form)
    if best is None:
        return Made(why="no schedule of the e-graph has a block for each tile")
    return _new(form, list(_flipped(form, best, [node for node, _ in open_choices(best.schedule)])))


def _meeting(form: Form) -> Made:
    """The best schedule of one phase with a skew where its cores do not meet, but may."""
    best = _plain(form)
    nodes = _could_meet(best.schedule) if best else []
    return _new(form, list(_flipped(form, best, nodes))) if best and nodes else Made(why="there is no such loop")


def _could_meet(schedule: Schedule) -> list[Node]:
    """The decisions on the skew of loops in which the cores do not meet, though they may: no skew was tried of these. A loop that
    hands values from trip to trip gains nothing: its sums would cross too."""
    out = {n.region for n in schedule.nodes if n.op in MEETING} | {n.payload[0] for n in schedule.nodes if n.op == "State"}
    return [n for n in schedule.nodes if n.op == "Skew" and n.payload[0] not in out and len(schedule.graph.classes[n.cls]) > 1]


def _plain(form: Form) -> Candidate | None:
    return next((c for c in form.candidates if c.schedule.graph is form.graph and not c.schedule.persistent), None)


def _flipped(form: Form, best: Candidate, nodes: Iterable[Node]) -> Iterator[Schedule]:
    """The best that can be had with each of these decisions taken otherwise."""
    from tile_eg.cost_models import roles, search_model
    from tile_eg.extract.forced import Forced
    from tile_eg.extract.pricing import Pricer

    graph, setting = best.schedule.graph, form.setting
    guide = search_model(roles(setting.options.cost_model, setting.chip).search, setting.chip)
    forced = Forced(graph, setting.chip, Pricer(graph, setting.chip, guide))
    for node in nodes:
        members = [m for m in graph.classes[node.cls] if option(m, graph) != option(node, graph)]
        answer = forced.one_of(members)
        if answer.schedule is not None:
            yield answer.schedule
