"""What a stream does, instruction by instruction: which storage each touches, and what it must wait for.

A trace walks the loops of one core. Long loops are shortened: some first and some last trips show every dependence there is,
since rings come round after as many trips as they have slots; what is left out is a multiple of every ring's period. Of a loop
over tiles nothing is left out: `tasks` makes it short.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from tile_eg.emit.sync.steps import Steps, parted, steps
from tile_eg.errors import PlanError
from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, SUB, ZERO, Expr, Interval
from tile_eg.ir.program import Buffer, Gm, Instr, Loop, Node, Operand, Program, Tasks, Tile, When, walk
from tile_eg.ops.types import Level
from tile_eg.timeline.expressions import Value, compiled

Path = tuple[int, ...]
Env = dict[str, int]
Counts = Mapping[str, Sequence[int]]
MAX_TRACE = 200_000


class SyncError(PlanError):
    """No synchronisation could be found: an error of ours, not of the kernel's author."""


class Window(NamedTuple):
    """Rows r0 .. r1 and columns c0 .. c1 (exclusive) of one slot of a buffer."""

    buffer: str
    r0: int
    r1: int
    c0: int
    c1: int

    def overlaps(self, o: Any) -> bool:
        return self.buffer != o.buffer or (self.r0 < o.r1 and o.r0 < self.r1 and self.c0 < o.c1 and o.c0 < self.c1)

    def covers(self, o: Any) -> bool:
        return self.buffer == o.buffer and self.r0 <= o.r0 and o.r1 <= self.r1 and self.c0 <= o.c0 and o.c1 <= self.c1


class GmWindow(NamedTuple):
    """Elements of a GM tensor: `far` are the parts of the offset that the block decides, `base` the rest (None: unknown).

    Windows of different tasks of a block never meet, as those of different blocks do not.
    """

    far: tuple
    base: int | None
    stride: int
    rows: int
    cols: int
    task: int = 0

    def overlaps(self, o: Any) -> bool:
        if self.task != o.task:
            return False
        if self.base is None or o.base is None or self.far != o.far or self.stride != o.stride:
            return True
        low, high = (self, o) if self.base <= o.base else (o, self)
        down, right = divmod(high.base - low.base, max(1, self.stride))  # type: ignore[operator]
        return (down < low.rows and right < low.cols) or (down + 1 < low.rows and self.stride - right < high.cols)

    def covers(self, o: Any) -> bool:
        return self == o and self.base is not None


class Access(NamedTuple):
    """One storage cell that an instruction touches, and in which of its steps (`Steps.of`)."""

    cell: tuple
    write: bool
    window: Window | GmWindow
    buffer: str = ""
    whole: bool = False
    steps: str = ""


@dataclass
class Instance:
    """One execution of an instruction. `number` counts within its pipe, from 1; `stepped`: a barrier stands within (`Steps`)."""

    path: Path
    instr: Instr
    pipe: str
    number: int
    env: Env
    accesses: tuple[Access, ...] = ()
    stepped: bool = False


class Dependence(NamedTuple):
    """`after` must not start before `before` has finished. `buffers` are those that they use one place of ("": a GM tensor)."""

    before: int
    after: int
    buffers: tuple[str, str]


@dataclass
class Trace:
    """`steps` are in program order: kind, path, loop variables, index into `instances` (or -1).

    Kinds: pre and post (an item begins, ends), run (an instruction), enter and leave (the body of a guard that only run time
    decides).
    """

    steps: list[tuple[str, Path, Env, int]] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    dependences: list[Dependence] = field(default_factory=list)


def operand_shape(i: Instr, o: Operand) -> tuple[Expr, Expr] | None:
    """The rows and columns of the window that `i` touches in its operand, or None where that is the whole slot."""
    r, c, d = i.rows, i.cols, i.depth
    if i.op in ("l1_to_l0a", "l1_to_l0b"):
        shape = (r, d) if i.op == "l1_to_l0a" else (d, c)
        return (shape[1], shape[0]) if o is not i.dst and i.transpose else shape
    if i.op == "mmad":
        return (r, c) if o is i.dst else (r, d) if o is i.srcs[0] else (d, c)
    if i.op in ("gm_to_l1", "fixpipe", "gm_to_ub", "ub_to_gm", "ub_to_l1", "l1_to_ub"):
        return r, c
    return None


@dataclass
class Layout:
    """Where the buffers of a program lie, in cells: pieces of memory that no buffer's slot covers in part.

    `counts` are trips that the block decides, by their name: what each tile of a block has, and so on again.
    """

    program: Program
    counts: Counts = field(default_factory=dict)
    _read: dict[int, tuple[Expr, frozenset[str], Value]] = field(default_factory=dict)
    _operands: dict[int, tuple[Instr, list[tuple[bool, Operand, str]]]] = field(default_factory=dict)
    _touched: dict[tuple, list[Access]] = field(default_factory=dict)
    _all: dict[str, Window] = field(default_factory=dict)

    @cached_property
    def buffers(self) -> dict[str, Buffer]:
        return {b.name: b for b in self.program.buffers}

    @cached_property
    def written(self) -> frozenset[str]:
        """The GM tensors that some instruction writes: only these can be in conflict."""
        nodes = (*walk(self.program.cube), *walk(self.program.vector))
        return frozenset(n.dst.tensor for n in nodes if isinstance(n, Instr) and isinstance(n.dst, Gm))

    @cached_property
    def windowed(self) -> frozenset[str]:
        """Buffers of which some instruction uses a window that does not start at the slot's first element."""
        out = set()
        for n in (*walk(self.program.cube), *walk(self.program.vector)):
            if isinstance(n, Instr):
                tiles = [o for o in (n.dst, *n.srcs) if isinstance(o, Tile)]
                out |= {t.buffer for t in tiles if t.row != ZERO or t.col != ZERO}
        return frozenset(out)

    @cached_property
    def cells(self) -> dict[tuple[str, int], tuple[tuple, ...]]:
        """(buffer, slot) -> its cells."""
        edges: dict[Level, set[int]] = {}
        for b in self.program.buffers:
            edges.setdefault(b.level, set()).update(x for a in b.addresses for x in (a, a + b.slot_bytes))
        order = {level: sorted(e) for level, e in edges.items()}
        return {(b.name, s): self._slot_cells(b, s, order[b.level]) for b in self.program.buffers for s in range(b.slots)}

    def _slot_cells(self, b: Buffer, slot: int, edges: list[int]) -> tuple[tuple, ...]:
        if not b.addresses:
            return ((b.name, slot),)
        start = b.addresses[slot]
        return tuple((b.level, x) for x in edges if start <= x < start + b.slot_bytes)

    def shared_slots(self, before: str, after: str) -> int:
        """How many slots two buffers have that share their places slot by slot (a buffer with itself: its own); 1 otherwise."""
        if before == after:
            return self.buffers[before].slots if before else 1
        slots = {self.buffers[b].slots if b else 1 for b in (before, after)}
        count = slots.pop()
        pairs = ((i, j) for i in range(count) for j in range(count) if i != j)
        apart = not slots and all(set(self.cells[before, i]).isdisjoint(self.cells[after, j]) for i, j in pairs)
        return count if apart else 1

    @cached_property
    def ranges(self) -> dict[str, Interval]:
        lets = {let.name: (0, let.most) for let in (*self.program.lets, *(let for t in self.tasks for let in t.lets))}
        return {BLOCK: (0, max(0, self.program.blocks - 1)), SUB: (0, 1)} | lets

    def named(self, task: int = 0) -> Env:
        """The names of numbers of trips, as they are for a tile of a block."""
        return {name: of[task % len(of)] for name, of in self.counts.items()}

    @cached_property
    def tasks(self) -> tuple[Tasks, ...]:
        """The loops over the block's tiles, one a stream where there are any."""
        return tuple(n for n in (*self.program.cube, *self.program.vector) if isinstance(n, Tasks))

    def interval(self, e: Expr, env: Mapping[str, int]) -> Interval:
        if e.op == "const":
            return e.args[0], e.args[0]
        _, names, value = self._read.get(id(e)) or self._reader(e)
        if names <= env.keys():
            n = value(env)
            return n, n
        return ix.bounds(e, self.ranges | {k: (v, v) for k, v in env.items()})

    def at(self, e: Expr, env: Mapping[str, int]) -> int:
        """The value of an expression whose variables are all bound."""
        return e.args[0] if e.op == "const" else (self._read.get(id(e)) or self._reader(e))[2](env)

    def _reader(self, e: Expr) -> tuple[Expr, frozenset[str], Value]:
        """An expression with its variables and as a function; looked up by identity, which is quicker than by value."""
        self._read[id(e)] = e, ix.variables(e), compiled(e)
        return self._read[id(e)]

    def window(self, i: Instr, t: Tile, env: Env) -> Window | None:
        """What an instruction touches in the slot of an operand; None: all of it."""
        b = self.buffers[t.buffer]
        shape = operand_shape(i, t) if t.buffer in self.windowed else None
        if shape is None:
            return None
        (r0, r1), (c0, c1) = self.interval(t.row, env), self.interval(t.col, env)
        grain = 16 if b.layout != "nd" else 1
        up = lambda n: -(-n // 16) * 16 if b.layout != "nd" else n  # noqa: E731
        high_r, high_c = r1 + up(self.interval(shape[0], env)[1]), c1 + up(self.interval(shape[1], env)[1])
        c_end = high_c if b.layout != "nd" else -(-high_c * b.dtype.bytes // 32) * 32 // b.dtype.bytes
        return Window(t.buffer, r0 // grain * grain, high_r, c0 // grain * grain, c_end)

    def gm_window(self, i: Instr, g: Gm, env: Env) -> GmWindow:
        terms = g.offset.args if g.offset.op == "add" else (g.offset,)
        far = tuple(t for t in terms if not ix.variables(t) <= env.keys())
        near = [t for t in terms if ix.variables(t) <= env.keys()]
        mixed = any(ix.variables(t) & env.keys() for t in far) or any(_wraps(t) for t in near)
        rows, cols = self.interval(i.rows, env)[1], self.interval(i.cols, env)[1]
        base = None if mixed else sum(self.at(t, env) for t in near)
        return GmWindow(far, base, g.stride, rows, cols, next((env[t.var] for t in self.tasks if t.var in env), 0))

    def accesses(self, i: Instr, env: Env) -> Iterator[Access]:
        for write, o, within in self.operands(i):
            if isinstance(o, Tile):
                yield from self._tile_accesses(o.buffer, write, self.interval(o.slot, env), self.window(i, o, env), within)
            elif o.tensor in self.written:
                yield Access(("GM", o.tensor), write, self.gm_window(i, o, env))

    def operands(self, i: Instr) -> list[tuple[bool, Operand, str]]:
        """What an instruction reads and writes, with its steps; looked up by identity."""
        if id(i) not in self._operands:
            of = (steps(i, self.buffers) or Steps()).of
            self._operands[id(i)] = i, [*((False, o, of(o)) for o in i.reads()), *((True, o, of(o)) for o in i.writes())]
        return self._operands[id(i)][1]

    def _tile_accesses(self, buffer: str, write: bool, slots: Interval, window: Window | None, of: str) -> list[Access]:
        """The cells of a window of slots; the same ones come round again and again."""
        key = buffer, write, slots, window, of
        if key not in self._touched:
            b, (low, high) = self.buffers[buffer], slots
            w = window or self._all.setdefault(buffer, Window(buffer, 0, b.rows, 0, b.pitch))
            whole = w.r0 == 0 and w.c0 == 0 and w.r1 >= b.rows and w.c1 >= b.cols and low == high
            cells = (c for s in range(max(0, low), min(high, b.slots - 1) + 1) for c in self.cells[buffer, s])
            self._touched[key] = [Access(cell, write, w, buffer, whole, of) for cell in cells]
        return self._touched[key]


def _wraps(e: Expr) -> bool:
    """True where an expression is not a plain multiple of one variable, so that far trips may come back to the same value."""
    return e.op not in ("const", "var") and not (e.op == "mul" and e.args[0].op == "var" and e.args[1].op == "const")


def opaque(condition: Expr, env: Mapping[str, int]) -> bool:
    """True where the block index decides a condition, so that nobody knows it at compile time."""
    return not ix.variables(condition) <= env.keys()


def _changes(loop: Loop, env: Env) -> tuple[int, int] | None:
    """Trips (first, last) such that the guards in the loop's body are constant between them; None where nobody can tell."""
    conditions = [n.condition for n in walk(loop.body) if isinstance(n, When) and loop.var in ix.variables(n.condition)]
    first, last, edge = 0, 0, 16
    for c in conditions:
        if not ix.variables(c) <= {loop.var}:
            return None
        head = [ix.evaluate(c, {loop.var: k}) for k in range(min(edge, loop.trips))]
        tail = [ix.evaluate(c, {loop.var: loop.trips - 1 - k}) for k in range(min(edge, loop.trips))]
        if loop.trips > 2 * edge and not (head[-1] and tail[-1]):
            return None
        first = max([first, *(k for k in range(1, len(head)) if head[k] != head[k - 1])])
        last = max([last, *(k for k in range(1, len(tail)) if tail[k] != tail[k - 1])])
    return first, last


def shortened(program: Program) -> dict[str, int]:
    """Loop variable -> how many trips in the middle may be left out, the same for every loop of that name on both cores."""
    slots = [b.slots for b in program.buffers] or [1]
    period, most = math.lcm(*slots), max(slots)
    out: dict[str, int] = {}
    for n in (*walk(program.cube), *walk(program.vector)):
        if isinstance(n, Loop):
            changes = _changes(n, {})
            spare = 0 if changes is None or isinstance(n, Tasks) else n.trips - sum(changes) - 2 * (most + 1)
            out[n.var] = min(out.get(n.var, spare), spare)
    return {v: max(0, s) // period * period for v, s in out.items()}


def _kept(loop: Loop, skip: int) -> Iterator[int]:
    changes = (_changes(loop, {}) or (0, 0)) if skip else (0, 0)
    spare = loop.trips - skip - changes[0] - changes[1]
    head = changes[0] + spare // 2 if skip else loop.trips
    yield from range(head)
    yield from range(head + skip, loop.trips)


class _Walker:
    def __init__(self, layout: Layout, skips: Mapping[str, int]) -> None:
        self.layout, self.skips = layout, skips
        self.trace, self.counts = Trace(), dict[str, int]()
        self.live: dict[tuple, list[tuple[int, Access]]] = {}
        self.guards = 0

    def nodes(self, nodes: tuple[Node, ...], path: Path, env: Env) -> None:
        for at, n in enumerate(nodes):
            here = (*path, at)
            self.trace.steps.append(("pre", here, env, -1))
            if isinstance(n, Tasks):
                for k in range(n.trips):
                    self.nodes(n.body, here, env | {n.var: k} | self.layout.named(k))
            elif isinstance(n, Loop):
                for k in range(ix.evaluate(n.until, env)) if n.until else _kept(n, self.skips.get(n.var, 0)):
                    self.nodes(n.body, here, env | {n.var: k})
            elif isinstance(n, When):
                self.guarded(n, here, env)
            elif isinstance(n, Instr):
                self.instr(n, here, env)
            self.trace.steps.append(("post", here, env, -1))
            if len(self.trace.steps) > MAX_TRACE:
                raise SyncError("the loops are too irregular to be analysed")

    def guarded(self, n: When, here: Path, env: Env) -> None:
        if opaque(n.condition, env):
            self.guards += 1
            self.trace.steps.append(("enter", here, env, -1))
            self.nodes(n.body, here, env)
            self.trace.steps.append(("leave", here, env, -1))
            self.guards -= 1
        elif ix.evaluate(n.condition, env):
            self.nodes(n.body, here, env)

    def instr(self, n: Instr, path: Path, env: Env) -> None:
        self.counts[n.pipe] = self.counts.get(n.pipe, 0) + 1
        me = len(self.trace.instances)
        accesses, stepped = tuple(self.layout.accesses(n, env)), steps(n, self.layout.buffers) is not None
        instance = Instance(path, n, n.pipe, self.counts[n.pipe], env, accesses, stepped)
        self.trace.instances.append(instance)
        self.trace.steps.append(("run", path, env, me))
        found = {d for a in accesses for d in self.conflicts(me, a)}
        for a in accesses:
            self.remember(me, a)
        self.trace.dependences += sorted(found, key=lambda d: (d.before, d.buffers))

    def conflicts(self, me: int, a: Access) -> set[Dependence]:
        out, instr = set(), self.trace.instances[me].instr
        for other, b in self.live.get(a.cell, ()):
            if other == me or not (a.write or b.write):
                continue
            meet = a.window is b.window or a.window.overlaps(b.window)
            within = self.one_pipe(me, other) and parted(b.steps, a.steps)
            if meet and not within and not instr.hands_over(self.trace.instances[other].instr):
                out.add(Dependence(other, me, (b.buffer, a.buffer)))
        return out

    def remember(self, me: int, a: Access) -> None:
        """Forget what the new access stands for: everything that a write covers, and earlier reads on the same pipe.

        An access that may not happen stands for nothing.
        """
        known = self.live.get(a.cell, ())
        self.live[a.cell] = [*((n, b) for n, b in known if n == me or self.guards or not self.stands_for(me, a, n, b)), (me, a)]

    def stands_for(self, me: int, a: Access, other: int, b: Access) -> bool:
        """Whether what is ordered with an access is so with an earlier one, too."""
        if not a.write and (b.write or a.buffer != b.buffer or not self.one_pipe(me, other)):
            return False
        return a.whole or (type(a.window) is type(b.window) and a.window.covers(b.window))

    def one_pipe(self, me: int, other: int) -> bool:
        return self.trace.instances[me].pipe == self.trace.instances[other].pipe


def trace(layout: Layout, core: str, skips: Mapping[str, int]) -> Trace:
    """The trace of one core's stream, with every direct dependence between its instructions."""
    w = _Walker(layout, skips)
    w.nodes(layout.program.core(core), (), layout.named())
    return w.trace
