"""What a stream does, instruction by instruction: which storage each touches, and what it must wait for. `sync_walk` finds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from tile_eg.emit.sync.steps import Steps, ends
from tile_eg.errors import LimitError, PlanError
from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, SUB, ZERO, Expr, Interval, var
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.program import Buffer, Gm, Instr, Loop, Operand, Program, Tasks, Tile, walk
from tile_eg.ir.sizes import usual
from tile_eg.ops.types import Level
from tile_eg.timeline.expressions import Value, compiled

Path = tuple[int, ...]
Site = tuple[str, Path]  # what happens at an item of the stream, and its path
Env = dict[str, int]
Counts = Mapping[str, Sequence[int]]
MAX_TRACE = 200_000


class SyncError(PlanError):
    """No synchronisation could be found: an error of ours, not of the kernel's author."""


class FlagsRunOut(SyncError, LimitError):
    """More pairs of instructions wait for each other at a time than there are flags: `at` a core, from one pipe to another.

    `place` is the core and the path of an instruction that waits, whose line is told.
    """

    at: tuple[str, str, str] | None = None
    place: tuple[str, Path] | None = None
    help = "part the kernel into two launches: what passes between the units of a core, or between cores, needs a flag of its own"


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
    """`steps` are in program order: (kind, path), loop variables, index into `instances` (or -1).

    Kinds: pre and post (an item begins, ends), run (an instruction), enter and leave (the body of a guard that only run time
    decides). All steps of one kind and path hold the same pair.
    """

    steps: list[tuple[Site, Env, int]] = field(default_factory=list)
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
    _fewest: dict[int, tuple[Instr, tuple[int, int]]] = field(default_factory=dict)
    _touched: dict[tuple, list[Access]] = field(default_factory=dict)
    _all: dict[str, Window] = field(default_factory=dict)

    @cached_property
    def buffers(self) -> dict[str, Buffer]:
        return {b.name: b for b in self.program.buffers}

    @cached_property
    def held(self) -> dict[str, str]:
        """The first buffer at the very place of each one, by name: there may be others that read it as another element type."""
        first: dict[object, str] = {}
        places = {b.name: (b.level, b.addresses, b.slot_bytes) if b.addresses else b.name for b in self.program.buffers}
        return {name: first.setdefault(place, name) for name, place in places.items()}

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
    def in_turns(self) -> frozenset[str]:
        """Buffers in L0C that take places in turns: one has in some trip the place that another one has in the next."""
        able = [b.name for b in self.buffers.values() if b.level is Level.L0C and b.slots > 1]
        pairs = ((a, b) for a in able for b in able if a != b)
        slots = {(a, b): [(i, j) for i in range(self.buffers[a].slots) for j in range(self.buffers[b].slots)] for a, b in pairs}
        meet = lambda a, i, b, j: not set(self.cells[a, i]).isdisjoint(self.cells[b, j])  # noqa: E731
        return frozenset(a for (a, b), found in slots.items() if any(i != j and meet(a, i, b, j) for i, j in found))

    @cached_property
    def ranges(self) -> dict[str, Interval]:
        lets = {let.name: (0, let.most) for let in (*self.program.lets, *(let for t in self.tasks for let in t.lets))}
        return {BLOCK: (0, max(0, self.program.blocks - 1)), SUB: (0, 1)} | lets

    def named(self, task: int = 0) -> Env:
        """The names of numbers of trips, as they are for a tile of a block, and that of how many tiles it has."""
        now = {name: of[task % len(of)] for name, of in self.counts.items()}
        for t in self.tasks:
            if t.behind:
                now |= {t.behind: t.trips - 1}
                now |= _beside(t, task, self.counts)
        return now

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
        anywhere = ix.EACH in ix.variables(g.offset) or bool(elements_in(g.offset))
        mixed = anywhere or any(ix.variables(t) & env.keys() for t in far) or any(_wraps(t) for t in near)
        rows, cols = self.interval(i.rows, env)[1], self.interval(i.cols, env)[1]
        base = None if mixed else sum(self.at(t, env) for t in near)
        return GmWindow(far, base, usual(g.stride), rows, cols, next((env[t.var] for t in self.tasks if t.var in env), 0))

    def accesses(self, i: Instr, env: Env) -> Iterator[Access]:
        for write, o, within in self.operands(i):
            if isinstance(o, Tile):
                yield from self._tile_accesses(o.buffer, write, self.interval(o.slot, env), self.window(i, o, env), within)
            elif o.tensor in self.written:
                yield Access(("GM", o.tensor), write, self.gm_window(i, o, env))

    def deciding(self, i: Instr, env: Env) -> Iterator[Expr]:
        """The expressions on whose values depends what `accesses` finds; a task's variable where the tasks are told apart."""
        for _, o, _ in self.operands(i):
            if isinstance(o, Tile):
                shape = operand_shape(i, o) if o.buffer in self.windowed else None
                yield from (o.slot,) if shape is None else (o.slot, o.row, o.col, *shape)
            elif o.tensor in self.written:
                yield from (var(v) for v in sorted(ix.variables(o.offset) - {ix.EACH}))
                yield from (i.rows, i.cols, *(var(t.var) for t in self.tasks if t.var in env))

    def fewest(self, i: Instr) -> tuple[int, int]:
        """The fewest rows and cols that an mmad covers; looked up by identity."""
        if id(i) not in self._fewest:
            env = {n.var: (0, n.trips - 1) for n in walk(self.program.cube) if isinstance(n, Loop)}
            rows, cols = (max(1, ix.bounds(e, self.ranges | env)[0]) for e in (i.rows, i.cols))
            self._fewest[id(i)] = i, (rows, cols)
        return self._fewest[id(i)][1]

    def operands(self, i: Instr) -> list[tuple[bool, Operand, str]]:
        """What an instruction reads and writes, with its steps; looked up by identity."""
        if id(i) not in self._operands:
            of = (ends(i, self.buffers) or Steps()).of
            self._operands[id(i)] = i, [*((False, o, of(o)) for o in i.reads()), *((True, o, of(o)) for o in i.writes())]
        return self._operands[id(i)][1]

    def _tile_accesses(self, buffer: str, write: bool, slots: Interval, window: Window | None, of: str) -> list[Access]:
        """The cells of a window of slots; the same ones come round again and again."""
        key = buffer, write, slots, window, of
        if key not in self._touched:
            b, (low, high) = self.buffers[buffer], slots
            if high < 0 or low >= b.slots:
                raise ValueError(f"slot {low} of {buffer} is used, which has {b.slots}")
            w = window or self._all.setdefault(buffer, Window(buffer, 0, b.rows, 0, b.pitch))
            whole = w.r0 == 0 and w.c0 == 0 and w.r1 >= b.rows and w.c1 >= b.cols and low == high
            cells = (c for s in range(max(0, low), min(high, b.slots - 1) + 1) for c in self.cells[buffer, s])
            self._touched[key] = [Access(cell, write, w, buffer, whole, of) for cell in cells]
        return self._touched[key]


def _beside(tasks: Tasks, task: int, counts: Counts) -> Env:
    """How often loops run that go on from tile to tile: for a tile and for the one before it, 0 where there is none, and what
    follows from these numbers alone."""
    out: Env = {}
    for now, old in tasks.before:
        of = counts[now]
        out[now] = of[task % len(of)] if task < tasks.trips - 1 else 0
        out[old] = of[(task - 1) % len(of)] if task else 0
    for let in tasks.lets if tasks.before else ():
        if let.name not in out and ix.variables(let.value) <= out.keys():
            out[let.name] = ix.evaluate(let.value, out)
    return out


def _wraps(e: Expr) -> bool:
    """True where an expression is not a plain multiple of one variable, so that far trips may come back to the same value."""
    return e.op not in ("const", "var") and not (e.op == "mul" and e.args[0].op == "var" and e.args[1].op == "const")


def opaque(condition: Expr, env: Mapping[str, int]) -> bool:
    """True where the block index decides a condition, so that nobody knows it at compile time."""
    return not ix.variables(condition) <= env.keys()
