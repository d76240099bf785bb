"""A schedule as a tree: every instruction in its order of issue, where its result lies, and the rules that made it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from html import escape

from tile_eg.egraph import Graph, Node
from tile_eg.extract.schedule import Item, LoopStep, Rest, Schedule, Step, Storage, StorageId
from tile_eg.extract.statements import statement
from tile_eg.ir.printed import Printed
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.report.html import html_tree, paragraphs
from tile_eg.report.text import Branch, tree
from tile_eg.rules import registry, signatures
from tile_eg.transforms.packed_operand import strides


def schedule_text(schedule: Schedule) -> str:
    """Every instruction in its order of issue: what it computes, where that lies, its cycles, and the rules that made it."""
    return "\n".join([tree(_phases(schedule), COLUMNS, right=(3, 4)), *_legend(schedule)])


def _legend(schedule: Schedule) -> list[str]:
    """What parts of names say: of the two vector cores, and of instructions."""
    shares = {s.share for each in schedule.phases for s in each.storages.values()}
    apart = any("apart" in n.payload for each in schedule.phases for n in each.nodes)
    return [*(LEGEND[SHARES[s]] for s in (0, 1) if s in shares), *([LEGEND[APART]] if apart else [])]


def _phases(schedule: Schedule) -> list[Branch]:
    if schedule.behind is not None:
        between = "all cores meet" if schedule.meets else "behind it, on the cores that are done"
        meeting = Branch(between, ("", "", "", "", schedule.parted))
        return [*_phases(replace(schedule, behind=None)), meeting, *_phases(schedule.behind)]
    if schedule.one_phase:
        return _roots(schedule)
    rules = ("", "", "", "", ", ".join(schedule.parts.rules)) if schedule.parts else ()
    if schedule.second is None and schedule.rest is None and not schedule.in_strips:
        return [*_roots(schedule), Branch("the first parts are stored; all cores meet; the others are added", rules)]
    sums, added = _of_rest(schedule.rest) if schedule.rest else ([], [])
    meeting, last = Branch("all cores meet", rules), schedule.second or schedule
    before = [*(_roots(schedule) if schedule.second else []), *sums]
    beside = "beside it " if before else ""
    copied = [(tensor, name) for tensor, name, _ in strides(last.graph.values)]
    copies = [Branch(f"{beside}{name} = {tensor}, in strips of 32 bytes") for tensor, name in copied]
    return [*before, *copies, meeting, *added, *_roots(last)]


def _of_rest(rest: Rest) -> tuple[list[Branch], list[Branch]]:
    """The sums of the tiles that fill no turn of the cores, before these meet, and what is made of them."""
    which = "the first tile" if rest.tiles == 1 else f"the first {rest.tiles} tiles"
    sums = Branch(f"sums of {which}, in {rest.parts} parts each", (), _roots(rest.sums))
    return [sums], [Branch("what is made of these sums, beside what follows", (), _roots(rest.added))]


def _roots(schedule: Schedule) -> list[Branch]:
    """What a block does for each tile, and before that what it does once."""
    once, each = ([i for i in schedule.top if schedule.before_tiles(i) is first] for first in (True, False))
    out = (
        [Branch(f"each of {schedule.grid.payload[0]} blocks, once", (), _branches(schedule, once))]
        if once and schedule.grid
        else []
    )
    return [*out, Branch(_blocks(schedule), (), _branches(schedule, each))]


def _blocks(schedule: Schedule) -> str:
    shuffled = "; sums from another trip on in each" if schedule.shuffled else ""
    ahead = "; what the next tile loads is issued during the work on this one" if schedule.prefetched else ""
    ahead += "; its loop goes on from tile to tile" if schedule.joined else ""
    return _tiles(schedule) + shuffled + ahead + (f"; loaded past L2: {past_l2(schedule)}" if schedule.past_l2 else "")


def past_l2(schedule: Schedule) -> str:
    """The tensors that are loaded past L2."""
    return ", ".join(sorted(schedule.past_l2)) or "nothing"


def _tiles(schedule: Schedule) -> str:
    tiles = schedule.graph.values.blocks
    if schedule.grid is not None and schedule.persistent:
        which = f"{schedule.tiles[0]} to {sum(schedule.tiles) - 1} of {tiles}" if schedule.tiles else str(tiles)
        return f"each of {schedule.grid.payload[0]} blocks, one tile of {which} after the other"
    return f"each of {tiles} blocks" if tiles > 1 else "one block"


COLUMNS = ("", "pipe", "result in", "cycles", "line", "made by")
SHARES, APART = ("/rows", "/cols"), " apart"
LEGEND = {
    "/rows": "/rows: each of the two vector cores has half of the rows",
    "/cols": "/cols: each of the two vector cores has half of the columns",
    " apart": "apart: the number of each row lies in both bank groups of UB, so that no part of the row meets it in its own",
}
"""What parts of names of places and instructions say."""


@record(repr=False)
class ScheduleView(Printed):
    """A schedule that prints as its tree."""

    schedule: Schedule

    def __str__(self) -> str:
        return schedule_text(self.schedule)

    def _repr_html_(self) -> str:
        """The tree as a table, with the cycles of each instruction as bars."""
        return paragraphs(html_tree(_phases(self.schedule), COLUMNS, bars=3, right=(3, 4)), *map(escape, _legend(self.schedule)))


def _branches(schedule: Schedule, items: Iterable[Item]) -> list[Branch]:
    return [_loop(schedule, i) if isinstance(i, LoopStep) else _step(schedule, i) for i in items]


def _loop(schedule: Schedule, loop: LoopStep) -> Branch:
    name = schedule.graph.values.variables[loop.loop]
    ring = f", stages={loop.given} as written" if loop.given else ""
    skew = f", skew {_skew(schedule, loop)}: up to {loop.skew} trips late" if loop.skew and not schedule.early else ""
    skew = ", loads a trip ahead" if loop.skew and schedule.early else skew
    columns = ("", "", "", "", ", ".join(schedule.graph.forms.get(loop.loop, ())))
    trips = f"up to {loop.trips}" if loop.loop in schedule.graph.values.counts else str(loop.trips)
    return Branch(f"for {name} in {trips}{ring}{skew}", columns, _branches(schedule, loop.body))


def _skew(schedule: Schedule, loop: LoopStep) -> int:
    """The skew as it was decided: half trips for each handover between cores."""
    return next((n.payload[1] for n in schedule.nodes if n.op == "Skew" and n.payload[0] == loop.loop), 0)


def _step(schedule: Schedule, step: Step) -> Branch:
    sources = ", ".join(_name(schedule, s) for s in step.srcs if s != step.dst or not isinstance(s, str))
    late = f" ({step.at or ''}{' ' if step.at else ''}trip{f' - {step.lag}' if step.lag else ''})" if step.lag or step.at else ""
    label = f"{_name(schedule, step.dst)} = {instruction(step.node)}({sources}){late}"
    made_by = ", ".join([chain(schedule.graph, step.node), *(r for n in cuts(schedule, step.node) for r in n.rules)])
    span = statement(schedule.graph, step.node)
    line = str(span.line) if span else ""
    return Branch(label, (step.pipe, lies(schedule, step.dst), str(step.cycles), line, made_by))


def chain(graph: Graph, node: Node) -> str:
    """The rules from what the source says to the instruction: those that rewrote the value into what the last one looks for.

    Rules that offer the same stand side by side: `nest-bin > row-operand > v-rows`.
    """
    rules = registry(graph.theories or None)
    place = graph.demands.get(node.cls)
    found = [node.rules] if node.rules else []
    needed = _values(rules[r].needs for r in node.rules)
    left = {r for r in (place.tile.rules if place else ()) if r in rules}
    while step := sorted(r for r in left if rules[r].makes & needed):
        last = [r for r in step if rules[r].needs & needed]  # they turn one form of a constructor into another
        step = last if len(last) < len(step) and last else step
        found.append(tuple(step))
        left -= set(step)
        needed = _values(rules[r].needs for r in step)
    return " > ".join("|".join(step) for step in reversed(found))


def _values(needs: Iterable[frozenset[str]]) -> frozenset[str]:
    """The constructors of values among what rules look for."""
    return frozenset(c for each in needs for c in each if signatures().get(c, ((), ""))[1] == "V")


def instruction(node: Node) -> str:
    """A node's instruction with the operation that it does: VBin.add."""
    operation = next((p for p in node.payload if isinstance(p, str) and p not in ("flat", "rows", "apart")), "")
    operation += APART if "apart" in node.payload else ""
    return f"{node.op}.{operation}" if operation and node.op[0] == "V" else node.op


def cuts(schedule: Schedule, node: Node) -> list[Node]:
    """The choice of steps for L0 that goes with a matrix product."""
    return [n for n in schedule.nodes if n.op == "L0" and n.cls in node.children]


def _name(schedule: Schedule, storage: StorageId) -> str:
    return storage if isinstance(storage, str) else schedule.labels[storage]


def lies(schedule: Schedule, storage: StorageId) -> str:
    return "GM" if isinstance(storage, str) else _storage(schedule.storages[storage])


def _storage(s: Storage) -> str:
    slots = f" x {s.slots}" if s.slots > 1 else ""
    return f"{place_text(s.level, s.share)} {s.dtype}[{s.rows}, {s.cols}]{slots}"


def place_text(level: Level, share: int | None) -> str:
    return str(level) + ("" if share is None else SHARES[share])
