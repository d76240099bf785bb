"""What two schedules of a kernel decide otherwise, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from tile_eg.extract.schedule import IN_TURN, Schedule
from tile_eg.report.decisions import RESULTS, distinct_subject, grid_option, open_choices, option, state_name, subject
from tile_eg.report.schedule_tree import past_l2
from tile_eg.report.text import indent

SHOWN = 8
TOLD = ("Skew", *RESULTS)  # with the loops


def sums_option(schedule: Schedule) -> str:
    """Where the cores begin sums over depth, in few words."""
    return "from another trip on in each core" if schedule.shuffled else "from the first trip on"


def rest_option(schedule: Schedule) -> str:
    """How the tiles go to the cores that would not fill a turn of all of them, in few words."""
    return f"{schedule.rest.parts} parts of each sum" if schedule.rest else "whole"


def rows_option(schedule: Schedule) -> str:
    """When what needs whole rows of a product is done, in few words."""
    behind = schedule.behind and schedule.parted != IN_TURN
    return "once all cores have made its tiles" if behind else "by the block that makes them"


def loads_option(schedule: Schedule) -> str:
    """When a persistent kernel issues what a tile loads, in few words."""
    return "for the next tile, during the work on this one" if schedule.prefetched else "for each tile as its work begins"


def early_option(schedule: Schedule) -> str:
    """When loops of vector cores issue what a trip loads, in few words."""
    return "a trip ahead" if schedule.early else "as a trip begins"


def trips_option(schedule: Schedule) -> str:
    """In which order trips of skewed loops do their work, in few words."""
    return "as while the loop is full" if schedule.steady else "each as it fills and empties the loop"


def groups_option(schedule: Schedule) -> str:
    """How V comes to what does not need each other, in few words."""
    return "side by side, with fewer barriers" if schedule.grouped else "in the order of the source"


def ids_option(schedule: Schedule) -> str:
    """What rings do where there are not flag ids for all their slots, in few words; nothing where there are enough."""
    gave_up = "give up slots" if schedule.fuller else ""
    return "keep their slots, with fewer ids" if schedule.few_ids else gave_up


def tiles_option(schedule: Schedule) -> str:
    """Whether a persistent kernel ends a tile before it begins the next one, in few words."""
    return "as one loop, each begun before the one before it has ended" if schedule.joined else "one after the other"


def copied_option(schedule: Schedule) -> str:
    """How many tiles load an operand's copy in strips, in few words; nothing where none is made."""
    second = schedule.second if schedule.parts and schedule.parts.op == "Strips" else None
    return f"the last {second.tiles[1]}" if second and second.tiles else ""


def results_option(schedule: Schedule) -> str:
    """How outputs follow each other that have only inputs in common, in few words; nothing where a block makes all of them."""
    each = schedule.in_turn if schedule.parted == IN_TURN else []
    return ", then ".join(f"{s.graph.values.blocks} tiles" for s in each)


WHOLE: dict[str, Callable[[Schedule], str]] = {
    "grid": lambda s: grid_option(s.on_cores),
    "tiles that load the copy": copied_option,
    "tiles that fill no turn": rest_option,
    "sums over depth": sums_option,
    "whole rows of a product": rows_option,
    "results": results_option,
    "loads in loops": early_option,
    "trips of skewed loops": trips_option,
    "work of vector cores": groups_option,
    "rings that lack flag ids": ids_option,
    "loads": loads_option,
    "tiles": tiles_option,
    "loaded past L2": past_l2,
}
"""What is decided of a schedule as a whole."""


def differences(schedules: Iterable[tuple[str, Schedule]], best: Schedule) -> list[str]:
    """What each of the named schedules decides otherwise than the best one; where that reads as of one before it, also in what
    it is unlike that."""
    known = dict[str, tuple[str, Schedule]]()
    for name, schedule in schedules:
        text = difference(schedule, best)
        while text in known:
            like, other = known[text]
            text += f"\nunlike {like}\n{indent(difference(schedule, other))}"
        known[text] = name, schedule
    return list(known)


def difference(schedule: Schedule, best: Schedule) -> str:
    """What a schedule decides otherwise than the best one, a line each."""
    lines = [*_loops(schedule, best), *_few(_changed(schedule, best))]
    for about, decided in WHOLE.items():
        mine, was = decided(schedule), decided(best)
        if mine != was and mine and was:
            lines.append(f"{about}: {mine} instead of {was}")
    if not lines:
        others = _only(schedule, best)
        lines = ["other instructions: " + ", ".join(others) if others else "the same decisions, in another order"]
    return "\n".join(dict.fromkeys(lines))


def _few(lines: Iterable[str]) -> list[str]:
    found = list(dict.fromkeys(lines))
    rest = len(found) - SHOWN
    return [*found[:SHOWN], *([f"and {rest} more"] if rest > 0 else [])]


def _changed(schedule: Schedule, best: Schedule) -> Iterator[str]:
    """Decisions about the same thing that differ; skews are told with their loops.

    In another graph, and in a form of a loop that the best one lacks, the same thing is what has the same name.
    """
    if schedule.graph is best.graph:
        theirs = {n.cls: n for n in best.nodes}
        for n in schedule.nodes:
            other = theirs.get(n.cls)
            if other is not None and n.op not in TOLD:
                mine, was = option(n, schedule.graph), option(other, best.graph)
                if mine != was:
                    yield f"{distinct_subject(best, other)}: {mine} instead of {was}"
    by_name = _by_name(best, schedule)
    for about, mine in _by_name(schedule, best).items():
        if by_name.get(about, mine) != mine:
            yield f"{about}: {mine} instead of {by_name[about]}"


def _by_name(schedule: Schedule, other: Schedule) -> dict[str, str]:
    """What has one decision of its name: steps of products, numbers of buffers, and in another graph all else. And the places of
    states of loops that `other` lacks, whatever their loop."""
    graph, theirs = schedule.graph, _settings(other)
    nodes = [n for n in schedule.nodes if n.op == "L0"]
    able = (n for n, _ in open_choices(schedule) if n.op not in ("L0", *TOLD))
    nodes += [n for n in able if n.op == "Buffers" or graph is not other.graph]
    names = Counter(subject(schedule, n) for n in nodes)
    states = (n for n in schedule.nodes if n.op == "State" and n.payload[0] not in theirs)
    found = {name: option(n, graph) for n in nodes if names[name := subject(schedule, n)] == 1}
    return found | {f"{state_name(graph, n)} from trip to trip": option(n, graph) for n in states}


def _loops(schedule: Schedule, best: Schedule) -> Iterator[str]:
    """How the loops differ: their form, their skew."""
    ours, theirs = _settings(schedule), _settings(best)
    for loop in sorted(ours.keys() & theirs.keys()):
        name = schedule.graph.values.variables[loop]
        if ours[loop] != theirs[loop]:
            yield f"skew of loop {name}: {ours[loop]} instead of {theirs[loop]}"
    new, gone = (sorted(a.keys() - b.keys()) for a, b in ((ours, theirs), (theirs, ours)))
    if new or gone:
        yield f"{_forms(schedule, new)} instead of {_forms(best, gone)}"


def _settings(schedule: Schedule) -> dict[int, int]:
    """The skew of each loop."""
    skews = {n.payload[0]: n.payload[1] for n in schedule.nodes if n.op == "Skew"}
    return {i.loop: skews.get(i.loop, 0) if i.skew else 0 for _, around in schedule.walk() for i in around}


def _forms(schedule: Schedule, loops: list[int]) -> str:
    names = schedule.graph.values.variables
    told = (f"loop {names[k]} of {schedule.graph.trips[k]}" for k in loops)
    return " and ".join(told) or "no loop"


def _only(schedule: Schedule, best: Schedule) -> list[str]:
    if schedule.graph is not best.graph:
        return []
    known = {n.index for n in best.nodes}
    fresh = (n for n in schedule.nodes if n.index not in known and n.cls in schedule.graph.demands)
    return list(dict.fromkeys(option(n, schedule.graph) for n in fresh))
