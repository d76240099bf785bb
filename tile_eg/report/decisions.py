"""The decisions of a schedule in words: what each is about, what was chosen, what else was offered, and what two differ in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tile_eg.egraph import Demand, Graph, Node
from tile_eg.errors import Note
from tile_eg.extract.buffers import depth_of, place_of
from tile_eg.extract.schedule import Schedule
from tile_eg.ops.physical import BEGINS, MOVES, STORES, TERMS
from tile_eg.ops.records import record
from tile_eg.report.schedule_tree import LEGEND, instruction, place_text, schedule_text
from tile_eg.report.text import duration, table

GRID = -1
SHOWN = 8
RESULTS = ("PProj", "PTProj")
NEXT = ("NextIn", "NextCp")


@record
class Runner:
    """The best schedule that decides one thing otherwise: what it takes instead, and its time, or why there is none."""

    option: str
    microseconds: float | None = None
    why: str = ""


OPEN = ", open"
UNDECIDED = "open: what is assumed of the chip may decide it otherwise"


def decisions_text(
    schedule: Schedule,
    runners: Mapping[int, Runner] | None = None,
    best: float = 0.0,
    interval: tuple[float, float] | None = None,
) -> str:
    """For every choice that the rules left open: what it is about, what was chosen, what else was offered.

    With `runners` (by class, and `GRID`) also the runner-up, and the microseconds that it costs more than `best`; a decision
    whose runner-up lies within the `interval` of the prediction, the launch aside, is marked open.
    """
    rows: dict[tuple[str, ...], None] = {}
    for key, about, chosen, others in choices(schedule):
        runner = (runners or {}).get(key)
        rows[about, chosen, *_runner(runner, best, interval), _few(others)] = None
    if runners is None:
        shown = table(((a, c, o) for a, c, _, _, o in rows), ("about", "chosen", "also offered"))
    else:
        shown = table(rows, ("about", "chosen", "runner-up", "costs", "also offered"), right=(3,))
    undecided = [UNDECIDED] if any(row[3].endswith(OPEN) for row in rows) else []
    return "\n".join([shown, *_legend(schedule, rows), *undecided])


def _legend(schedule: Schedule, rows: Iterable[tuple[str, ...]]) -> list[str]:
    """What the parts of names say that the tree of the schedule does not have, so that nothing there tells it."""
    told, shown = " ".join(" ".join(row) for row in rows), schedule_text(schedule)
    return [text for word, text in LEGEND.items() if word in told and text not in shown]


def _few(others: list[str]) -> str:
    rest = len(others) - SHOWN
    return ", ".join(others[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _runner(runner: Runner | None, best: float, interval: tuple[float, float] | None) -> tuple[str, str]:
    if runner is None:
        return "", ""
    if runner.microseconds is None:
        return f"none: {runner.why}", ""
    within = interval is not None and interval[0] <= runner.microseconds <= interval[1]
    return runner.option, more(runner.microseconds, best) + OPEN * within


def more(microseconds: float, best: float) -> str:
    """By how much a time is longer than the best: +0.4 us."""
    extra = microseconds - best
    return "the same" if abs(extra) <= 5e-4 * best else f"{'+' if extra > 0 else '-'}{duration(abs(extra) * 1e-6)}"


def choices(schedule: Schedule) -> Iterator[tuple[int, str, str, list[str]]]:
    """Each open choice: its class (or `GRID`), what it is about, what was chosen, and what else there was."""
    for node, others in open_choices(schedule):
        yield node.cls, distinct_subject(schedule, node), option(node, schedule.graph), others
    for node in given_depths(schedule):
        yield node.cls, subject(schedule, node), f"{option(node, schedule.graph)}, as written", []
    grids = schedule.graph.grids
    if len(grids) > 1:
        chosen = grid_option(schedule.on_cores)
        yield GRID, "grid", chosen, [o for o in dict.fromkeys(map(grid_option, grids)) if o != chosen]


def given_depths(schedule: Schedule) -> list[Node]:
    """The depths of buffers that the author gave: nothing else is offered there."""
    return [n for s in schedule.storages.values() if s.given for n in s.decisions if len(schedule.graph.classes[n.cls]) == 1]


def missing_slots(schedule: Schedule) -> Iterator[Note]:
    """The slots that an author asked for and that were given up for want of flags."""
    for s in schedule.storages.values():
        if s.slots < s.given:
            have = f"{s.slots} slot{'s' * (s.slots > 1)} of {s.slot_bytes:,} bytes"
            yield Note(f"`{s.name}` has {have}, not the {s.given} that the source asks for: flag ids run out", s.span)


def summary(schedule: Schedule) -> str:
    """The open choices in one line."""
    return ", ".join(dict.fromkeys(f"{about}: {chosen}" for _, about, chosen, _ in choices(schedule)))


def open_choices(schedule: Schedule) -> Iterator[tuple[Node, list[str]]]:
    """The chosen nodes whose class offered something else; a skew that moved nothing was no choice, nor are buffers where the
    order of issue says how many there are."""
    skewed = {item.loop for _, around in schedule.walk() for item in around if item.skew}
    graph = schedule.graph
    for node in schedule.nodes:
        if node.op == "Skew" and node.payload[1] and node.payload[0] not in skewed:
            continue
        if node.op == "Buffers" and schedule.holding(node) is None:
            continue
        others = dict.fromkeys(option(m, graph) for m in graph.classes[node.cls] if m is not node)
        others.pop(option(node, graph), None)
        if others:
            yield node, list(others)


def subject(schedule: Schedule, node: Node) -> str:
    """What a choice is about, in the kernel's own names."""
    graph = schedule.graph
    if node.op == "Skew":
        return f"skew of loop {graph.values.variables[node.payload[0]]}"
    if node.op == "Buffers":
        place, held = place_of(node), schedule.holding(node)
        return f"buffers of {held.name if held else value_name(graph, place)} in {place_text(place.level, place.share)}"
    if node.op == "State":
        return f"{state_name(graph, node)} of loop {graph.values.variables[node.payload[0]]}"
    if node.op == "L0":
        users = [n for n in schedule.nodes if node.cls in n.children and n.cls in graph.demands]
        return f"steps of {value_name(graph, graph.demands[users[0].cls])}" if users else "steps of a product"
    if node.cls in graph.demands:
        place = graph.demands[node.cls]
        lies = f"{value_name(graph, place)} in {place_text(place.level, place.share)}"
        return f"start of {lies}" if node.op in BEGINS else f"{lies} from trip to trip" if node.op in NEXT else lies
    stored = next((p for p in node.payload if isinstance(p, tuple) and p and isinstance(p[0], str)), None)
    return f"store to {stored[0]}" if stored else node.op


def distinct_subject(schedule: Schedule, node: Node) -> str:
    """What a choice is about; where there are several of one name, with its line: `o in UB/rows, line 46`; and where these are of
    one line, with the name that the schedule's tree has for it, `f32[1, 16] of line 16 in UB (r5)`, or with a number."""
    others = [n for n, _ in open_choices(schedule) if n is not node]
    told = ""
    for tell in (subject, _with_line, _with_label, _with_loop, _numbered):
        told = tell(schedule, node)
        if all(tell(schedule, n) != told for n in others):
            break
    return told


def _with_line(schedule: Schedule, node: Node) -> str:
    about = subject(schedule, node)
    place = place_of(node) if node.op == "Buffers" else schedule.graph.demands.get(node.cls)
    span = schedule.graph.values.spans.get(place.tile.term) if place and place.tile.term else None
    return f"{about}, line {span.line}" if span and f" line {span.line}" not in about else about


def _with_label(schedule: Schedule, node: Node) -> str:
    about, label = _with_line(schedule, node), _label(schedule, node)
    return f"{about} ({label})" if label else about


def _with_loop(schedule: Schedule, node: Node) -> str:
    """With the loop through which a tile stays, or does not."""
    about, kept = _with_label(schedule, node), next((m for m in schedule.graph.classes[node.cls] if m.op == "Keep"), None)
    return f"{about} during loop {schedule.graph.values.variables[kept.payload[0]]}" if kept else about


def _label(schedule: Schedule, node: Node) -> str:
    """The name that the schedule's tree has for what a choice is about; of a store, for what it stores; of a tile that stays,
    for what is kept."""
    if node.op == "Keep":
        kept = next((n for n in schedule.nodes if n.cls == node.children[0]), None)
        return _label(schedule, kept) if kept else ""
    if node.op == "Buffers":
        held = schedule.holding(node)
        return next((schedule.labels[sid] for sid, s in schedule.storages.items() if s is held), "")
    step = next((s for s, _ in schedule.walk() if s.node.cls == node.cls), None)
    if step is None:
        return ""
    if not isinstance(step.dst, str):
        return schedule.labels[step.dst]
    return next((f"from {schedule.labels[s]}" for s in step.srcs if not isinstance(s, str)), "")


def _numbered(schedule: Schedule, node: Node) -> str:
    """For what has no name in the tree: which one it is of those that read alike."""
    about = _with_loop(schedule, node)
    alike = [n for n, _ in open_choices(schedule) if _with_loop(schedule, n) == about]
    return f"{about}, {alike.index(node) + 1} of {len(alike)}" if node in alike else about


def state_name(graph: Graph, node: Node) -> str:
    places = (graph.demands.get(c) for c in reversed(node.children))  # what a trip leaves; what it begins with may be a constant
    place = next((p for p in places if p), None)
    return value_name(graph, place) if place else f"state {node.payload[1]}"


def value_name(graph: Graph, place: Demand) -> str:
    """The name of the buffer that a value was written to, or its shape and the line that computes it."""
    term = place.tile.term
    named = graph.values.buffers.get(term) if term else None
    if named:
        return named[0]
    span = graph.values.spans.get(term) if term else None
    line = f" of line {span.line}" if span else ""
    return f"{place.tile.dtype}[{place.tile.rows}, {place.tile.cols}]{line}"


def option(node: Node, graph: Graph) -> str:
    """One way to decide, in few words."""
    if node.op == "Buffers":
        return str(depth_of(node))
    if node.op == "Skew":
        return str(node.payload[1])
    if node.op == "L0":
        return " x ".join(str(p) for p in node.payload[2:])
    if node.op == "State":
        return place_text(*node.payload[2])
    if node.op in RESULTS:
        loop = node.payload[0]
        return f"loop {graph.values.variables[loop]} of {graph.trips[loop]}"
    if node.op == "Stays" and node.payload[0] == node.payload[1]:
        return "stays for a later loop"
    move = MOVES.get(node.op)
    if move and move.several_trips:
        return f"{node.op} of {node.payload[0]} trips"
    if move and move.source in ("GM", "WS") and any(m.op == "Keep" for m in graph.classes[node.cls]):
        return "reloaded"
    stored = move and move.instruction == "ub_to_gm"
    share = next((p for p in node.payload if p in (0, 1)), None) if stored else None
    parts = " in parts" if node.op in STORES and _is_part(node, graph) else ""
    return TERMS[node.op].word or instruction(node) + {None: "", 0: "/rows", 1: "/cols"}[share] + parts


def _is_part(store: Node, graph: Graph) -> bool:
    """Whether what a store writes is the last part of a row that another way to decide stores as a whole."""
    cols = [m.payload[-1][4].value or 0 for m in graph.classes[store.cls] if m.op in STORES]
    return (store.payload[-1][4].value or 0) < max(cols)


def grid_option(grid: Node | None) -> str:
    """How the tiles go to the cores, in few words."""
    if grid is None or grid.op == "Blocks":
        return "a block a tile"
    if grid.op == "Parts":
        return f"{grid.payload[0]} parts of each sum"
    if grid.op == "Added":
        return f"{grid.payload[0]} parts of each sum, added in GM"
    if grid.op == "Strips":
        return f"{grid.payload[0]} copied in strips first"
    blocks, window, direction = grid.payload
    return f"{blocks} blocks" + (f" in bands of {window} {'down' if direction else 'across'}" if window else "")
