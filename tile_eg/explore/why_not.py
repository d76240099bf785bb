"""Why was this not chosen? The decision is forced, and what comes out says what it costs, or why it cannot be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tile_eg.egraph import Graph, Node
from tile_eg.errors import TileError, did_you_mean
from tile_eg.explore.otherwise import Otherwise
from tile_eg.extract.base import Overflow
from tile_eg.extract.buffers import decided, depth_of, place_of
from tile_eg.extract.forced import Answer
from tile_eg.extract.schedule import Storage
from tile_eg.ir.printed import Printed
from tile_eg.ops.physical import LOADS
from tile_eg.ops.records import record
from tile_eg.report.cost import between
from tile_eg.report.decisions import (
    UNDECIDED,
    distinct_subject,
    grid_option,
    more,
    open_choices,
    option,
    subject,
    value_name,
)  # fmt: skip
from tile_eg.report.differences import difference
from tile_eg.report.schedule_tree import place_text
from tile_eg.report.text import duration, indent, times
from tile_eg.rules import registry
from tile_eg.search import nearest_rule
from tile_eg.search.compiler import Candidate, Lowered
from tile_eg.search.moves import MOVES
from tile_eg.search.queue import Tried

FORMS = {
    "buffers=3": "how many buffers a tile has in a loop, asked of each; k.buffers=3 of one loop, a.buffers=3 of one tile",
    "skew=0": "by how many half trips work behind a handover between cores is issued later; k.skew=0 of one loop",
    "L0 128,256,64": "the steps m, n, k of a product",
    "rule=NAME": "a schedule with something that this rule made",
    "grid=24,3,0": "blocks, tiles in a band, direction; or grid=blocks, grid=strips,B",
    "grid=parts,4": "sums in so many parts; also grid=added,4",
    "q in L1=reloaded": "anything in the table of decisions",
    "row-panels=4": "a move of the search, any name of `tile-eg rules moves`; also without =",
}


@record
class Verdict:
    """One way to take the decision: what it is, and what comes of it."""

    what: str
    said: str


@record(repr=False)
class WhyNot(Printed):
    """The answer to one question, with the chosen schedule's microseconds, and between what times they lie."""

    question: str
    chosen: float
    verdicts: Sequence[Verdict]
    interval: tuple[float, float] | None = None

    def __str__(self) -> str:
        parts = [f"{v.what}\n{indent(v.said)}" for v in self.verdicts]
        return "\n".join([f"chosen: {between(self.chosen, self.interval)}", *parts])


def why_not(lowered: Lowered, question: str) -> WhyNot:
    """What `question` (one of `FORMS`) would cost, or why it is refused. TileError where it asks for nothing that there is."""
    otherwise = Otherwise(lowered)
    for pattern, asked in _QUESTIONS:
        match = re.fullmatch(pattern, question.strip())
        if match:
            verdicts = asked(otherwise, *match.groups())
            return WhyNot(question, otherwise.chosen.microseconds, verdicts, otherwise.chosen.interval)
    known = "".join(f"\n  {form:<{max(map(len, FORMS))}}  {what}" for form, what in FORMS.items())
    raise TileError(f"--why-not {question}: this names no decision", help=f"ask for one of these:{known}")


def _skew(otherwise: Otherwise, loop: str | None, value: str) -> list[Verdict]:
    """The skew of one loop or of each."""
    graph = otherwise.graph
    names = {n.payload[0]: graph.values.variables[n.payload[0]] for n in graph.nodes if n.op == "Skew"}
    if loop is not None and loop not in names.values():
        raise TileError(f"there is no loop '{loop}' whose skew is decided", help=did_you_mean(loop, names.values()))
    out = []
    for number, name in sorted(names.items()):
        if loop in (None, name):
            offered = [n for n in graph.nodes if n.op == "Skew" and n.payload[0] == number]
            members = [n for n in offered if n.payload[1] == int(value)]
            out.append(_verdict(otherwise, f"skew of loop {name}: {value}", members, _offered(offered, graph)))
    if not out:
        raise TileError("the kernel has no loop whose skew is decided")
    return out


def _depth(otherwise: Otherwise, name: str | None, value: str) -> list[Verdict]:
    """How many buffers a tile has: of each that the chosen loops move, of those of one loop, or of one tile.

    Of a loop that was not chosen, the tiles that it loads.
    """
    graph = otherwise.graph
    tiles = {n.cls: _tile_name(otherwise, n.cls) for n in graph.nodes if n.op == "Buffers"}
    loops = {cls: graph.values.variables[graph.classes[cls][0].region] for cls in tiles}
    if not tiles:
        raise TileError("the kernel has no loop whose buffers are decided")
    if name is not None and name not in {*tiles.values(), *loops.values()}:
        known = [n for n in (*loops.values(), *tiles.values()) if n.isidentifier()]
        raise TileError(f"there is no loop or tile '{name}' whose buffers are decided", help=did_you_mean(name, known))
    used = {n.cls for n in otherwise.chosen.schedule.nodes}
    loaded = {decided(n) for n in graph.nodes if n.op in LOADS}
    asked = [c for c in tiles if name in (None, tiles[c], loops[c])]
    wanted = [c for c in asked if c in used] or [c for c in asked if c in loaded] or asked
    return [_depth_of(otherwise, c, int(value), tiles[c], loops[c]) for c in wanted]


def _depth_of(otherwise: Otherwise, cls: int, value: int, tile: str, loop: str) -> Verdict:
    """The verdict on so many buffers of one tile."""
    offered = otherwise.graph.classes[cls]
    place = place_of(offered[0])
    title = f"buffers of {tile} in {place_text(place.level, place.share)}, loop {loop}: {value}"
    members = [n for n in offered if depth_of(n) == value]
    return _verdict(otherwise, title, members, _given(offered, otherwise.graph) or _offered(offered, otherwise.graph))


def _tile_name(otherwise: Otherwise, cls: int) -> str:
    """The name of the tile whose buffers a class decides."""
    nodes = otherwise.graph.classes[cls]
    held = (otherwise.chosen.schedule.holding(n) for n in nodes)
    return next((s.name for s in held if s), value_name(otherwise.graph, place_of(nodes[0])))


def _given(offered: Sequence[Node], graph: Graph) -> str:
    """That the author decided how many buffers there are, where he did."""
    given = graph.values.stages.get(offered[0].region) if len(offered) == 1 else None
    return f"not offered: the loop is written with stages={given}; without it the search is free" if given else ""


def _steps(otherwise: Otherwise, m: str, n: str, k: str) -> list[Verdict]:
    graph = otherwise.graph
    offered = [x for x in graph.nodes if x.op == "L0"]
    if not offered:
        raise TileError("the kernel has no product whose steps are decided")
    members = [x for x in offered if x.payload[2:] == (int(m), int(n), int(k))]
    return [_verdict(otherwise, f"steps {m} x {n} x {k}", members, _offered(offered, graph))]


def _rule(otherwise: Otherwise, name: str) -> list[Verdict]:
    known = registry(otherwise.lowered.search.theories)
    if name not in known:
        everything = registry()
        if name in everything:
            return [Verdict(f"rule {name}", "it was left out of this search")]
        help = f"it is a move of the search: --why-not {name}" if name in MOVES else nearest_rule(name, known)
        raise TileError(f"there is no rule '{name}'", help=help)
    if ways := [g for g in otherwise.graph.grids if name in g.rules and g.op in ("Parts", "Added", "Strips")]:
        return [_on_grid(otherwise, f"grid: {grid_option(g)}", g) for g in ways]
    members = [n for n in otherwise.graph.nodes if name in n.rules]
    matches = sum(p.matches.get(name, 0) for p in otherwise.lowered.phases)
    if members or not matches:
        none = f"it matched nothing in this kernel: {known[name].maths}"
        return [_verdict(otherwise, f"rule {name}", members, none)]
    said = f"it matched {times(matches)} and makes values, not instructions: --without {name} compiles without it"
    return [Verdict(f"rule {name}", said)]


def _grid(otherwise: Otherwise, wanted: str) -> list[Verdict]:
    grids = otherwise.graph.grids
    spelled = {_spelled(g): g for g in grids}
    if wanted not in spelled:
        there = ", ".join(f"grid={s} ({grid_option(g)})" for s, g in spelled.items())
        return [Verdict(f"grid {wanted}", f"not offered; there is {there}")]
    title = f"grid: {grid_option(spelled[wanted])}"
    return [_on_grid(otherwise, title, spelled[wanted])]


def _spelled(grid: Node) -> str:
    """How a question names a way to give tiles to cores."""
    numbers = ",".join(map(str, grid.payload))
    if grid.op == "Blocks":
        return "blocks"
    return f"{grid.op.lower()},{numbers}" if grid.op in ("Parts", "Added", "Strips") else numbers


def _on_grid(otherwise: Otherwise, title: str, grid: Node) -> Verdict:
    if grid_option(grid) == grid_option(otherwise.chosen.schedule.on_cores):
        return Verdict(title, "this is what was chosen")
    candidate, why = otherwise.on_grid(grid)
    return Verdict(title, _costs(otherwise, candidate) if candidate else f"refused: {why}")


def _move(otherwise: Otherwise, name: str, what: str | None) -> list[Verdict]:
    """What became of the offers of a move; one that was dropped is made now."""
    if name not in otherwise.lowered.search.moves:
        return [Verdict(name, "it was left out of this search")]
    offered = [t for t in otherwise.lowered.tried if t.offer.move.name == name]
    if not offered:
        return [Verdict(name, f"not offered for this kernel: {MOVES[name].says}")]
    asked = [t for t in offered if what in (None, t.offer.what, t.offer.what.split()[0])]
    if not asked:
        return [Verdict(f"{name}: {what}", "not offered; there is " + ", ".join(dict.fromkeys(t.offer.what for t in offered)))]
    forms = dict.fromkeys(t.offer.form.name for t in offered if t.offer.form)
    return [Verdict(f"{name}: {t.offer.what}{_in_form(t) if len(forms) > 1 else ''}", _tried(otherwise, t)) for t in asked]


def _in_form(tried: Tried) -> str:
    """In which form of the kernel an offer was made."""
    return f", {tried.offer.form.name}" if tried.offer.form else ""


def _tried(otherwise: Otherwise, tried: Tried) -> str:
    """Why an offer was dropped, if it was, and what comes of it."""
    dropped = "" if tried.made else f"not made: {tried.why} (at least {duration(tried.offer.bound * 1e-6)}); made now:\n"
    try:
        made = tried.offer.make()
    except TileError as error:
        return f"{dropped}refused: {error.message}"
    if found := made.form.candidates if made.form else made.candidates:
        same = str(found[0].planned.program) == str(otherwise.chosen.planned.program)
        return dropped + ("this is what was chosen" if same else _costs(otherwise, found[0]))
    if tried.microseconds is not None:
        which = ", which is what was chosen" if tried.microseconds == otherwise.chosen.microseconds else ""
        return f"made in the search: {duration(tried.microseconds * 1e-6)}{which}"
    reasons = [str(error) for _, error in made.dropped] or ([made.why] if made.why else [])
    return dropped + ("refused: " + "; ".join(dict.fromkeys(reasons)) if reasons else "there is nothing for it to do")


def _named(otherwise: Otherwise, about: str, wanted: str) -> list[Verdict]:
    """A decision as the table of decisions calls it."""
    schedule, graph = otherwise.chosen.schedule, otherwise.graph
    offered: dict[str, list[Node]] = {}
    for node, _ in open_choices(schedule):
        for name in {subject(schedule, node), distinct_subject(schedule, node)}:
            offered.setdefault(name, []).extend(graph.classes[node.cls])
    if about not in offered:
        words = {form.partition("=")[0] for form in FORMS if " " not in form}
        help = did_you_mean(about, {*offered, *words})
        raise TileError(f"--why-not {about}={wanted}: there is no such decision", help=help)
    members = [n for n in offered[about] if option(n, graph) == wanted]
    return [_verdict(otherwise, f"{about}: {wanted}", members, _offered(offered[about], graph))]


_MOVE = "|".join(map(re.escape, sorted(MOVES, key=len, reverse=True)))
_QUESTIONS: tuple[tuple[str, Callable[..., list[Verdict]]], ...] = (
    (r"(?:(\w+)\.)?(?:buffers|stages|ring) *= *(\d+)", _depth),
    (r"(?:(\w+)\.)?skew *= *(\d+)", _skew),
    (r"L0[ =]+(\d+) *[,x] *(\d+) *[,x] *(\d+)", _steps),
    (r"rule *= *([\w-]+)", _rule),
    (r"grid *= *([\w,]+(?: and \w+)*)", _grid),
    (rf"({_MOVE})(?: *= *(.+))?", _move),
    (r"(.+?) *= *(.+)", _named),
)


def _offered(nodes: Sequence[Node], graph: Graph) -> str:
    return "not offered; there is " + ", ".join(dict.fromkeys(option(n, graph) for n in nodes))


def _verdict(otherwise: Otherwise, title: str, members: Sequence[Node], none: str) -> Verdict:
    if not members:
        return Verdict(title, none)
    chosen = {n.index for n in otherwise.chosen.schedule.nodes}
    if any(n.index in chosen for n in members):
        return Verdict(title, "this is what was chosen")
    answer, candidate, why = otherwise.taking(members)
    if candidate is None:
        return Verdict(title, f"refused: {why}" if why else _refused(answer, otherwise))
    return Verdict(title, _costs(otherwise, candidate))


def _costs(otherwise: Otherwise, candidate: Candidate) -> str:
    """The time, how much more that is, what bounds it, and what else changes with the decision."""
    best = otherwise.chosen
    extra = more(candidate.microseconds, best.microseconds)
    bound = candidate.planned.timeline.bound
    cores = best.planned.cost.on_cores
    undecided = f"; {UNDECIDED}" * (cores is not None and candidate.microseconds <= cores[1])
    lines = [f"{between(candidate.microseconds, candidate.interval)} ({extra}), bound by {bound}{undecided}"]
    if candidate.schedule.shrunk > best.schedule.shrunk:
        fewer = candidate.schedule.shrunk - best.schedule.shrunk
        lines.append(f"for lack of room or flags, its tiles have {fewer} buffer{'s' * (fewer > 1)} fewer than asked for")
    return "\n".join([*lines, difference(candidate.schedule, best.schedule)])


def _refused(answer: Answer, otherwise: Otherwise) -> str:
    if answer.overflow:
        return _too_large(answer.overflow, otherwise.lowered.chip.name)
    reasons = dict.fromkeys(str(r) for r in answer.refused)
    return "refused: " + ("; ".join(list(reasons)[:3]) or "no legal schedule has it")


def _too_large(over: Overflow, chip: str) -> str:
    """Which memory, and what lives in it together, with bytes and lines."""
    head = f"refused: it needs {over.bytes:,} bytes of {over.level} at once; {chip} has {over.capacity:,}"
    return "\n".join([head, *(f"  {_live(name, size, held)}" for name, size, held in over.live)])


def _live(name: str, size: int, held: object) -> str:
    if not isinstance(held, Storage):
        return f"{name}: {size:,} bytes"
    line = f", line {held.span.line}" if held.span else ""
    return f"{name}: {held.dtype}[{held.rows}, {held.cols}] x {held.slots} = {size:,} bytes{line}"
