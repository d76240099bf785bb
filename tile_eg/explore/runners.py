"""For every decision of a schedule its runner-up: the best that can be had if this one thing is decided otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from tile_eg.egraph import Node
from tile_eg.egraph.profile import profile
from tile_eg.explore.otherwise import Otherwise
from tile_eg.extract.forced import Answer
from tile_eg.frontend.ssa import to_values
from tile_eg.report.decisions import GRID, Runner, grid_option, open_choices, option
from tile_eg.report.explain import Explanation
from tile_eg.search.compiler import Candidate, Lowered


def explained(lowered: Lowered, profiled: bool = False) -> Explanation:
    """The explanation of a compiled kernel with the runner-up of every decision, and with what each rule cost if it is wanted."""
    graph = lowered.candidates[0].schedule.graph
    costs = profile(to_values(lowered.kernel), lowered.chip, graph.theories, lowered.search.budget) if profiled else ()
    return replace(lowered.explanation, runners=runners(lowered), profile=costs)


def runners(lowered: Lowered) -> dict[int, Runner]:
    """The runners-up, by the class of the decision (or `GRID`); microseconds as the rank model predicts them.

    Where blocks go through several tiles, both are timed with a block for each, and the difference is what counts. A schedule of
    the search that decides it otherwise and is faster than that is the runner-up: of a skew only the timeline can tell the best.
    """
    chosen, otherwise = lowered.candidates[0], Otherwise(lowered, plain=True)
    shift = chosen.microseconds - otherwise.chosen.microseconds
    forced = {cls: _shifted(runner, shift) for cls, runner, _ in flips(otherwise, chosen)}
    found = {cls: min([runner, *_ranked(lowered, cls)], key=_time) for cls, runner in forced.items()}
    grid = _grid(lowered)
    return found | ({GRID: grid} if grid else {})


def flips(otherwise: Otherwise, chosen: Candidate | None = None) -> Iterator[tuple[int, Runner, Candidate | None]]:
    """Each open decision of the `chosen` schedule (that which `otherwise` begins with) taken otherwise: its class, the
    runner-up, and its plan."""
    schedule = (chosen or otherwise.chosen).schedule
    graph = schedule.graph
    for node, _ in open_choices(schedule):
        members = [m for m in graph.classes[node.cls] if option(m, graph) != option(node, graph)]
        answer, candidate, why = otherwise.taking(members)
        if candidate is None:
            yield node.cls, Runner("", None, why or refusal(answer)), None
        else:
            yield node.cls, Runner(_taken(candidate, members), candidate.microseconds), candidate


def _ranked(lowered: Lowered, cls: int) -> Iterator[Runner]:
    """The schedules that were ranked of the chosen one's graph, and that decide a class otherwise."""
    chosen, *others = lowered.candidates
    graph = chosen.schedule.graph
    was = next(option(n, graph) for n in chosen.schedule.nodes if n.cls == cls)
    for candidate in others:
        if candidate.schedule.graph is graph:
            found = (option(n, graph) for n in candidate.schedule.nodes if n.cls == cls)
            yield from (Runner(taken, candidate.microseconds) for taken in found if taken != was)


def _time(runner: Runner) -> float:
    return inf if runner.microseconds is None else runner.microseconds


def _shifted(runner: Runner, by: float) -> Runner:
    return replace(runner, microseconds=runner.microseconds + by) if runner.microseconds is not None else runner


def _taken(candidate: Candidate, members: list[Node]) -> str:
    """Which of the members the schedule has."""
    graph = candidate.schedule.graph
    wanted = {m.index for m in members}
    return next((option(n, graph) for n in candidate.schedule.nodes if n.index in wanted), "")


def refusal(answer: Answer) -> str:
    """Why there is no schedule, in few words."""
    if answer.overflow:
        return f"{answer.overflow.bytes:,} bytes of {answer.overflow.level}, which has {answer.overflow.capacity:,}"
    if answer.refused:
        return f"not legal: {answer.refused[0]}"
    return "no legal schedule has it"


def _grid(lowered: Lowered) -> Runner | None:
    """The best candidate that was ranked under another grid."""
    chosen = grid_option(lowered.candidates[0].schedule.on_cores)
    for candidate in lowered.candidates:
        if (other := grid_option(candidate.schedule.on_cores)) != chosen:
            return Runner(other, candidate.microseconds)
    return None
