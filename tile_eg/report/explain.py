"""The chosen schedule as a tree, the decisions in it with what else the rules offered, and the schedules that lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tile_eg.egraph import Graph, Node, Phase, Where
from tile_eg.extract.base import DECISIONS, Extraction
from tile_eg.extract.schedule import Item, LoopStep, Schedule, Step, Storage, StorageId
from tile_eg.ir.printed import Printed
from tile_eg.ir.types import Level
from tile_eg.report.cost import Cost
from tile_eg.report.text import Branch, duration, indent, table, tree


@dataclass(frozen=True, repr=False)
class Explanation(Printed):
    """What `explain` shows. `ranked` are the schedules with their predicted microseconds, the chosen one first."""

    signature: str
    cost: Cost
    ranked: Sequence[tuple[Schedule, float]]
    dropped: Sequence[tuple[Schedule, Exception]]
    extraction: Extraction
    phases: Sequence[Phase]

    def __str__(self) -> str:
        schedule = self.ranked[0][0]
        sections = {
            "": self.cost.headline(),
            "schedule": schedule_text(schedule),
            "decisions": decisions_text(schedule),
            "alternatives": self._alternatives(),
            "refused": self._refused(),
            "search": self._search(),
        }
        parts = [f"{title}\n{indent(text)}" if title else text for title, text in sections.items() if text]
        return "\n\n".join([self.signature, *parts])

    def _alternatives(self) -> str:
        best = self.ranked[0][0]
        others = [f"{_cost(s, us)}\n{indent(difference(s, best))}" for s, us in self.ranked[1:]]
        return "\n".join([f"{_cost(*self.ranked[0])}: chosen", *others])

    def _refused(self) -> str:
        illegal = [f"{cost:.0f} cycles: {r.kind}: {r.what}" for cost, r in self.extraction.refused]
        return "\n".join(illegal + [f"{s.cost:.0f} cycles: {error}" for s, error in self.dropped])

    def _search(self) -> str:
        rows = [(p.name, p.rounds, p.rows, sum(p.matches.values()), _stopped(p)) for p in self.phases]
        solves = f"{self.extraction.extractor} extractor, {self.extraction.solves} solves, {len(self.extraction.refused)} refused"
        return table(rows, ("phase", "rounds", "rows", "matches", ""), right=(1, 2, 3)) + "\n" + solves


def schedule_text(schedule: Schedule) -> str:
    """Every instruction in its order of issue: what it computes, where that lies, its cycles, and the rules that made it."""
    blocks = schedule.graph.values.blocks
    root = Branch(f"each of {blocks} blocks" if blocks > 1 else "one block", (), _branches(schedule, schedule.top))
    text = tree([root], ("", "pipe", "result in", "cycles", "line", "made by"), right=(3, 4))
    shares = {s.share for s in schedule.storages.values()}
    return "\n".join([text, *(f"{SHARED[s]}" for s in (0, 1) if s in shares)])


SHARED = {0: "/rows: each of the two vector cores has half of the rows", 1: "/cols: each has half of the columns"}


@dataclass(frozen=True, repr=False)
class ScheduleView(Printed):
    """A schedule that prints as its tree."""

    schedule: Schedule

    def __str__(self) -> str:
        return schedule_text(self.schedule)


def _branches(schedule: Schedule, items: Iterable[Item]) -> list[Branch]:
    return [_loop(schedule, i) if isinstance(i, LoopStep) else _step(schedule, i) for i in items]


def _loop(schedule: Schedule, loop: LoopStep) -> Branch:
    name = schedule.graph.values.variables[loop.loop]
    ring = f", rings of {loop.stages}" if loop.stages > 1 else ""
    skew = f", skewed by {loop.skew}" if loop.skew else ""
    return Branch(f"for {name} in {loop.trips}{ring}{skew}", (), _branches(schedule, loop.body))


def _step(schedule: Schedule, step: Step) -> Branch:
    sources = ", ".join(_name(schedule, s) for s in step.srcs if s != step.dst or not isinstance(s, str))
    late = f" (trip - {step.lag})" if step.lag else ""
    label = f"{_name(schedule, step.dst)} = {instruction(step.node)}({sources}){late}"
    rules = [*step.node.rules, *(r for n in cuts(schedule, step.node) for r in n.rules)]
    line = _line(schedule.graph, step.node)
    return Branch(label, (step.pipe, _lies(schedule, step.dst), str(step.cycles), line, ", ".join(rules)))


def instruction(node: Node) -> str:
    """A node's instruction with the operation that it does: VBin.add."""
    operation = next((p for p in node.payload if isinstance(p, str) and p not in ("flat", "rows")), "")
    return f"{node.op}.{operation}" if operation and node.op[0] == "V" else node.op


def cuts(schedule: Schedule, node: Node) -> list[Node]:
    """The choice of steps for L0 that goes with a matrix product."""
    return [n for n in schedule.nodes if n.op == "L0" and n.cls in node.children]


def _name(schedule: Schedule, storage: StorageId) -> str:
    return storage if isinstance(storage, str) else schedule.storages[storage].name


def _lies(schedule: Schedule, storage: StorageId) -> str:
    return "GM" if isinstance(storage, str) else _storage(schedule.storages[storage])


def _storage(s: Storage) -> str:
    slots = f" x {s.slots}" if s.slots > 1 else ""
    return f"{_place(s.level, s.share)} {s.dtype}[{s.rows}, {s.cols}]{slots}"


def _place(level: Level, share: int | None) -> str:
    return str(level) + {None: "", 0: "/rows", 1: "/cols"}[share]


def _line(graph: Graph, node: Node) -> str:
    place = graph.where.get(node.cls)
    span = graph.values.spans.get(place.tile.term) if place and place.tile.term else None
    return str(span.line) if span else ""


# ---- decisions ----------------------------------------------------------------------------------------------------------------


def decisions_text(schedule: Schedule) -> str:
    """For every choice that the rules left open: what it is about, what was chosen, what else was offered."""
    rows = [(subject(schedule, n), option(n), ", ".join(others)) for n, others in open_choices(schedule)]
    return table(dict.fromkeys(rows), ("about", "chosen", "also offered"))


def open_choices(schedule: Schedule) -> Iterator[tuple[Node, list[str]]]:
    """The chosen nodes whose class offered something else; a skew that moved nothing was no choice."""
    skewed = {item.loop for _, around in schedule.walk() for item in around if item.skew}
    for node in schedule.nodes:
        if node.op == "Skew" and node.payload[1] and node.payload[0] not in skewed:
            continue
        others = [option(m) for m in schedule.graph.classes[node.cls] if m is not node]
        others = [o for o in dict.fromkeys(others) if o != option(node)]
        if others:
            yield node, others


def subject(schedule: Schedule, node: Node) -> str:
    """What a choice is about, in the kernel's own names."""
    graph = schedule.graph
    if node.op in ("Stages", "Skew"):
        return f"loop {graph.values.variables[node.payload[0]]}"
    if node.op == "State":
        return f"{_state(graph, node)} of loop {graph.values.variables[node.payload[0]]}"
    if node.op == "L0":
        users = [n for n in schedule.nodes if node.cls in n.children and n.cls in graph.where]
        return f"steps of {_value(graph, graph.where[users[0].cls])}" if users else "steps of a product"
    if node.cls in graph.where:
        place = graph.where[node.cls]
        return f"{_value(graph, place)} in {_place(place.level, place.share)}"
    stored = next((p for p in node.payload if isinstance(p, tuple) and p and isinstance(p[0], str)), None)
    return f"store to {stored[0]}" if stored else node.op


def _state(graph: Graph, node: Node) -> str:
    place = graph.where.get(node.children[0])
    return _value(graph, place) if place else f"state {node.payload[1]}"


def _value(graph: Graph, place: Where) -> str:
    """The name of the buffer that a value was written to, or its shape."""
    named = graph.values.buffers.get(place.tile.term) if place.tile.term else None
    return named[0] if named else f"{place.tile.dtype}[{place.tile.rows}, {place.tile.cols}]"


def option(node: Node) -> str:
    """One way to decide, in few words."""
    if node.op == "Stages":
        return f"{node.payload[1]} slot{'s' * (node.payload[1] > 1)}"
    if node.op == "Skew":
        return "skewed" if node.payload[1] else "not skewed"
    if node.op == "L0":
        return " x ".join(str(p) for p in node.payload[2:])
    if node.op == "State":
        return _place(*node.payload[2])
    share = next((p for p in node.payload if p in (0, 1)), None) if node.op in ("UBToGM", "UBToWS") else None
    return instruction(node) + {None: "", 0: "/rows", 1: "/cols"}[share]


# ---- alternatives -------------------------------------------------------------------------------------------------------------


def difference(schedule: Schedule, best: Schedule) -> str:
    """What a schedule decides otherwise than the best one, a line each."""
    ours, theirs = ({n.cls: n for n in s.nodes if n.op in DECISIONS or n.op == "L0"} for s in (schedule, best))
    changed = [
        f"{subject(schedule, n)}: {option(n)}, not {option(theirs[c])}"
        for c, n in ours.items()
        if c in theirs and option(n) != option(theirs[c])
    ]
    return "\n".join(dict.fromkeys(changed)) or "other instructions: " + ", ".join(_only(schedule, best))


def _only(schedule: Schedule, best: Schedule) -> list[str]:
    known = {n.index for n in best.nodes}
    return list(dict.fromkeys(option(n) for n in schedule.nodes if n.index not in known and n.cls in schedule.graph.where))


def _cost(schedule: Schedule, microseconds: float) -> str:
    return f"{duration(microseconds * 1e-6)} predicted, {schedule.cost:.0f} cycles by the search model"


def _stopped(phase: Phase) -> str:
    return f"stopped at {phase.stopped_by}" if phase.stopped_by else ""
