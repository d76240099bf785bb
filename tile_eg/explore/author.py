"""A kernel as its author wrote it, with his flags and places, beside what the search makes of it without them."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from tile_eg.ir import index as ix
from tile_eg.ir.printed import Printed
from tile_eg.ir.program import AIC, AIV, Buffer, Gm, Instr, Loop, Node, Operand, PipeBarrier, Tile, When, walk
from tile_eg.ir.program.instructions import CrossSet, CrossWait, SetFlag, SyncAll, Tasks
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.report.cost import between
from tile_eg.report.executed import executed
from tile_eg.report.text import duration, indent, share, size, table
from tile_eg.search.kept import PlannedKept
from tile_eg.search.planned import Planned
from tile_eg.search.result import Lowered

HEAD = ("", "as written", "found")
CORES = {AIC: "cube core", AIV: "each vector core"}
LEVELS = (Level.L1, Level.L0A, Level.L0B, Level.L0C, Level.UB)
PLACE = re.compile(r"_(l1|l0a|l0b|l0c|ub|ws)\d*$")
ALIKE = 0.02
"""Predicted times that differ by less than this share are told as equal."""
WIDE = 46
"""Columns of the source that a table shows."""


@record(repr=False)
class AuthorAndSearch(Printed):
    """`written` is the author's kernel, `found` the same one searched. Prints times, then what is decided otherwise: statements,
    loops, buffers, flags, transfers; `text`: the difference of the Ascend C texts too."""

    written: PlannedKept
    found: Lowered
    text: bool = False

    def __str__(self) -> str:
        sections = {
            "time": self.times(),
            "who computes what, for each line of the source": self.statements(),
            "loops": self.loops(),
            "where values lie": self.buffers(),
            "synchronisation of one block": self.flags(),
            "transfers of the launch": self.transfers(),
        }
        if self.text:
            sections["Ascend C"] = self.texts()
        parts = [f"{title}\n{indent(body)}" for title, body in sections.items() if body]
        return "\n\n".join([self.headline(), *parts])

    @property
    def both(self) -> tuple[Planned, Planned]:
        return self.written, self.found

    @cached_property
    def done(self) -> tuple[list[tuple[str, Node, int]], list[tuple[str, Node, int]]]:
        """What block 0 does on either side: core, node, how often."""
        one, other = ([(c, n, k) for c in (AIC, AIV) for n, k in executed(p.program, c)] for p in self.both)
        return one, other

    def headline(self) -> str:
        """Who is faster, by how much."""
        mine, theirs = (p.timeline.microseconds for p in self.both)
        times = f"{duration(mine * 1e-6)} as its author wrote it, {duration(theirs * 1e-6)} as the search finds it"
        if abs(mine - theirs) <= ALIKE * mine:
            verdict = "as fast as one another"
        else:
            who = "the author's is" if mine < theirs else "the search's is"
            verdict = f"{who} {max(mine, theirs) / min(mine, theirs):.2f} times as fast"
        return f"{self.written.kernel.name} on {self.written.chip.name}: {times} (predicted): {verdict}"

    def times(self) -> str:
        """Predicted time, what bounds it, how busy each pipe of a block is."""
        a, b = (p.timeline for p in self.both)
        rows = [
            ("predicted", *(between(p.timeline.microseconds, p.cost.interval) for p in self.both)),
            ("of it launch", *(duration(t.launch_us * 1e-6) for t in (a, b))),
            ("bound by", a.bound, b.bound),
            ("blocks", *(f"{t.blocks} in {t.waves} wave{'s' * (t.waves > 1)}" for t in (a, b))),
            ("cycles of a block", f"{a.block_cycles:.0f}", f"{b.block_cycles:.0f}"),
        ]
        for key in dict.fromkeys([*a.busy, *b.busy]):
            if a.busy.get(key) or b.busy.get(key):
                rows.append((f"{'.'.join(key)} busy", *(share(t.busy.get(key, 0), t.block_cycles) for t in (a, b))))
        return table(rows, HEAD, right=(1, 2))

    # Who computes what

    def statements(self) -> str:
        """What one block computes otherwise: how often, on which core, over how much at a time. Moves are told by their paths."""
        sides = [_by_line(done) for done in self.done]
        lines = sorted({line for side in sides for line in side})
        rows: list[tuple[str, ...]] = []
        same = 0
        for line in lines:
            a, b = (_counted(side.get(line, Counter())) for side in sides)
            if a == b:
                same += 1
                continue
            rows += _beside((str(line or ""), self._source(line)), a, b)
        if not rows:
            return "the same instructions for every line"
        rest = f"\n{same} more line{'s' * (same != 1)}: the same instructions on both sides" if same else ""
        return table(rows, ("line", "source", "as written", "found")) + rest

    def _source(self, line: int) -> str:
        if not line:
            return "(of several lines)"
        lines = self.written.kernel.source.splitlines()
        text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        return text if len(text) <= WIDE else text[: WIDE - 3] + "..."

    # Loops

    def loops(self) -> str:
        """The loops of each core that have instructions in them, in their order."""
        rows: list[tuple[str, ...]] = []
        for core in (AIC, AIV):
            a, b = (list(_nest(p.program.core(core), 0, skews)) for p, skews in zip(self.both, ({}, self._skews), strict=True))
            if a or b:
                rows += _beside((CORES[core],), a or ["-"], b or ["-"])
        return table(rows, HEAD) if rows else ""

    @cached_property
    def _skews(self) -> dict[str, tuple[int, int]]:
        """The loops of the search's schedule whose stages run apart: their trips, and how many more there are."""
        chosen = self.found.candidates[0].schedule
        loops = [(s, i) for s in chosen.phases for _, around in s.walk() for i in around if i.skew]
        return {s.graph.values.variables[i.loop]: (i.trips, i.skew) for s, i in loops}

    # Buffers

    def buffers(self) -> str:
        """Where each value lies and how deep, and how full each memory is; values that lie alike are left out."""
        sides = [_named(p.program.buffers) for p in self.both]
        rows: list[tuple[str, ...]] = []
        same = 0
        for key in dict.fromkeys([*sides[0], *sides[1]]):
            a, b = (side.get(key, []) for side in sides)
            if _tiles(a) == _tiles(b):
                same += 1
            else:
                rows += _beside((f"{key[0]} in {key[1]}",), _tiles(a) or ["-"], _tiles(b) or ["-"])
        rows += [(f"{level} in use", *(_used(p, level) for p in self.both)) for level in LEVELS if any(
            b.level is level for p in self.both for b in p.program.buffers)]  # fmt: skip
        rows.append(("workspace in GM", size(self._handed()), size(_workspace(self.found))))
        rest = f"\n{same} more: the same on both sides" if same else ""
        return table(rows, HEAD) + rest

    def _handed(self) -> int:
        """The bytes of tensors by which the author's cores hand something over."""
        program = self.written.program
        read = {o.tensor for _, n, _ in self.done[0] if isinstance(n, Instr) for o in n.reads() if isinstance(o, Gm)}
        written = {n.dst.tensor for _, n, _ in self.done[0] if isinstance(n, Instr) and isinstance(n.dst, Gm)}
        return sum(_bytes(t.shape) * t.dtype.bits // 8 for t in program.tensors if t.name in read & written)

    # Flags and transfers

    def flags(self) -> str:
        """Flags, barriers and meetings of one block."""
        a, b = (_synchronised(done) for done in self.done)
        return table(((what, str(a[what]), str(b[what])) for what in SYNCHRONISED if a[what] or b[what]), HEAD, right=(1, 2))

    def transfers(self) -> str:
        """Bytes by path, and in how many instructions a block moves its part."""
        counts = [_moves(done, p) for done, p in zip(self.done, self.both, strict=True)]
        moved = [_through_gm(p.timeline.bytes) for p in self.both]
        rows = []
        for path in dict.fromkeys([*moved[0], *moved[1]]):
            cells = (f"{size(round(m.get(path, 0)))}, {c[path]} a block" if m.get(path) else "-"
                     for m, c in zip(moved, counts, strict=True))  # fmt: skip
            rows.append((path.replace("->", " -> "), *cells))
        return table(rows, HEAD, right=(1, 2))

    def texts(self) -> str:
        """The unified diff of the Ascend C."""
        a, b = (str(p.source).splitlines() for p in self.both)
        return "\n".join(difflib.unified_diff(a, b, "as written", "found", lineterm="", n=2)) or "the same text"


def _beside(names: Sequence[str], a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Rows of two lists of lines beside each other, with their names in the first of them."""
    for k in range(max(len(a), len(b))):
        named = names if k == 0 else [""] * len(names)
        yield (*named, *(side[k] if k < len(side) else "" for side in (a, b)))


def _by_line(done: Iterable[tuple[str, Node, int]]) -> dict[int, Counter[str]]:
    """What is computed for each line of the source: core, instruction and what it covers, how often."""
    out: dict[int, Counter[str]] = {}
    for core, n, count in done:
        if isinstance(n, Instr) and (n.op == "mmad" or n.pipe in ("V", "S")):
            line = n.span.line if n.span else 0
            out.setdefault(line, Counter())[f"{core} {{}} x {n.op} {_covered(n)}"] += count
    return out


def _covered(n: Instr) -> str:
    """What an instruction works on: m x n x k of a product, else how many elements; a size that a block finds is its name."""
    if n.op == "mmad":
        return " x ".join(map(ix.text, (n.rows, n.cols, n.depth)))
    return f"of {ix.text(n.rows * n.cols)}"


def _counted(found: Counter[str]) -> list[str]:
    return [what.format(count) for what, count in found.items()] or ["-"]


def _nest(nodes: Sequence[Node], depth: int, skews: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """The loops of a stream, each under the one that it stands in."""
    for n in nodes:
        if isinstance(n, Loop) and any(isinstance(m, Instr) for m in walk(n.body)):
            trips, skew = skews.get(n.var, (n.trips, 0))
            trips, skew = (trips, skew) if trips + skew == n.trips else (n.trips, 0)
            many = f"up to {trips}" if n.until is not None else str(trips)
            apart = f", its stages up to {skew} trip{'s' * (skew != 1)} apart" if skew else ""
            what = "tiles, one after the other" if isinstance(n, Tasks) else n.var
            yield "  " * depth + f"{what}: {many} trip{'s' * (trips != 1)}{apart}"
            yield from _nest(n.body, depth + 1, skews)
        elif isinstance(n, When):
            yield from _nest(n.body, depth, skews)


def _named(buffers: Sequence[Buffer]) -> dict[tuple[str, Level], list[Buffer]]:
    """Buffers by what the source calls the value in them, and by memory; those of L0 by the memory alone."""
    out: dict[tuple[str, Level], list[Buffer]] = {}
    for b in buffers:
        if b.level is not Level.WS:
            name = "operands" if b.level in (Level.L0A, Level.L0B) else PLACE.sub("", b.name)
            out.setdefault((name, b.level), []).append(b)
    return out


def _tiles(buffers: Sequence[Buffer]) -> list[str]:
    """The different tiles of a value, and how deep the buffer of each is."""
    shown = (f"{b.dtype}[{b.rows}, {b.cols}]" + (f" x {b.slots}" if b.slots > 1 else "") for b in buffers)
    return list(dict.fromkeys(shown))


def _used(p: Planned, level: Level) -> str:
    return f"{size(p.memory.used(level))} of {size(p.chip.memories[level].usable)}"


def _workspace(p: Planned) -> int:
    shared = sum(_bytes(t.shape) * t.dtype.bits // 8 for t in p.program.shared)
    return p.program.workspace * p.program.blocks + shared


def _bytes(shape: Sequence[int]) -> int:
    out = 1
    for n in shape:
        out *= n
    return out


SYNCHRONISED: dict[str, Callable[[Node], bool]] = {
    "flags between pipes": lambda n: isinstance(n, SetFlag),
    "barriers of all pipes": lambda n: isinstance(n, PipeBarrier) and n.pipe == "ALL",
    "barriers of one pipe": lambda n: isinstance(n, PipeBarrier) and n.pipe != "ALL",
    "flags between cores": lambda n: isinstance(n, CrossSet),
    "waits between cores": lambda n: isinstance(n, CrossWait),
    "meetings of all cores": lambda n: isinstance(n, SyncAll),
}


def _synchronised(done: Iterable[tuple[str, Node, int]]) -> Counter[str]:
    out: Counter[str] = Counter()
    for _, n, count in done:
        for what, is_one in SYNCHRONISED.items():
            out[what] += count if is_one(n) else 0
    return out


def _moves(done: Iterable[tuple[str, Node, int]], p: Planned) -> Counter[str]:
    """The instructions of a block that move something from one memory to another."""
    levels = {b.name: str(b.level).replace("WS", "GM") for b in p.program.buffers}
    out: Counter[str] = Counter()
    for _, n, count in done:
        if isinstance(n, Instr) and n.srcs and n.op != "mmad":
            path = _path(n.srcs[0], n.dst, levels)
            out[path] += count
    return out


def _through_gm(moved: Mapping[str, float]) -> Counter[str]:
    """Bytes by path; the workspace of the search lies in GM, as the author's does."""
    out: Counter[str] = Counter()
    for path, count in moved.items():
        out[path.replace("WS", "GM")] += count  # type: ignore[assignment]
    return out


def _path(src: Operand, dst: Operand, levels: dict[str, str]) -> str:
    return "->".join("GM" if isinstance(o, Gm) else levels[o.buffer] for o in (src, dst) if isinstance(o, Gm | Tile))
