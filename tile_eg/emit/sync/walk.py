"""The walk through a core's stream that finds its trace.

Long loops are shortened: some first and some last trips show every dependence there is, since rings come round after as many
trips as they have slots; what is left out is a multiple of every ring's period. Of a loop over tiles nothing is left out:
`sync_tasks` makes it short, and what fewer tiles do is the first part of what more of them do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from tile_eg.emit.sync.steps import parted, steps
from tile_eg.emit.sync.tasks import with_tiles
from tile_eg.emit.sync.trace import (
    MAX_TRACE,
    Access,
    Counts,
    Dependence,
    Env,
    Instance,
    Layout,
    Path,
    SyncError,
    Trace,
    opaque,
)  # fmt: skip
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.program import AIC, AIV, Instr, Loop, Node, Program, Tasks, When, walk
from tile_eg.timeline.expressions import Value, compiled, linear

EDGE = 16
"""So many trips at each end of a loop are looked at for guards that change."""
STAND_FOR_TILES = ((0, 1), (1, 1), (0, 2), (1, 2), (2, 2), (1, 3))
"""A tile and how many the block has: alone, the first, the last, one between, and behind the last one."""


class Walks:
    """The traces of one program's cores, for any number of tiles and trips; walks that go on where others end are shared."""

    def __init__(self, program: Program) -> None:
        self.program, self.skips = program, shortened(program)
        self.known: dict[tuple, _Walker] = {}
        self.looked_at: dict[tuple, list[_Item]] = {}

    def trace(self, core: str, tiles: int, counts: Counts, whole: bool = False) -> Trace:
        """The trace of a core's stream, with every direct dependence between its instructions; `whole` shortens no loop."""
        nodes = self.program.core(core)
        last = nodes[-1] if nodes else None
        behind = isinstance(last, Tasks) and bool(last.behind)
        alone = not isinstance(last, Tasks) or behind
        key = core, tuple(counts.items()), whole, tiles if alone else 0
        if key not in self.known:
            layout = Layout(with_tiles(self.program, tiles) if behind else self.program, counts)
            self.known[key] = _Walker(layout, self.items(layout, core, whole), tiles)
        return self.known[key].trace(tiles + behind)

    def items(self, layout: Layout, core: str, whole: bool) -> list[_Item]:
        """The stream of a core, looked at once for all numbers of trips; that of a loop over tiles stands in its node."""
        env = layout.named()
        key = core, whole, tuple(env), tuple(n.trips for n in layout.tasks)
        if key not in self.looked_at:
            self.looked_at[key] = _Stream(layout, {} if whole else self.skips).items(layout.program.core(core), (), env)
        return self.looked_at[key]


def _changes(loop: Loop, tiles: Sequence[Env]) -> tuple[int, int] | None:
    """Trips (first, last) such that the guards in the loop's body are constant between them in all `tiles` that stand for the
    others; None where nobody can tell."""
    conditions = (n.condition for n in walk(loop.body) if isinstance(n, When) and loop.var in ix.variables(n.condition))
    first, last = 0, 0
    for c in dict.fromkeys(part for condition in conditions for part in _parts(condition)):
        if not ix.variables(c) <= {loop.var, *tiles[0]}:
            return None
        for tile in tiles if ix.variables(c) & tiles[0].keys() else tiles[:1]:
            ends = _ends(c, loop, tile)
            if ends is None:
                return None
            first, last = max(first, ends[0]), max(last, ends[1])
    return first, last


def _parts(condition: Expr) -> list[Expr]:
    """The conditions that have to hold together where this one does."""
    return [p for a in condition.args for p in _parts(a)] if condition.op == "and" else [condition]


def _ends(c: Expr, loop: Loop, tile: Env) -> tuple[int, int] | None:
    """The last of the first trips, and of the last ones from the end, at which a condition changes, if not between them."""
    value, edge = compiled(c), min(EDGE, loop.trips)
    head = [value({**tile, loop.var: k}) for k in range(edge)]
    tail = [value({**tile, loop.var: loop.trips - 1 - k}) for k in range(edge)]
    same = head[-1] == tail[-1] and (head[-1] or (c.op == "lt" and all(linear(side, (loop.var,)) for side in c.args)))
    if loop.trips > 2 * EDGE and not same:  # a comparison that holds at neither end may hold between them
        return None
    first, last = (max((k for k in range(1, edge) if at[k] != at[k - 1]), default=0) for at in (head, tail))
    return first, last


def _tiles(program: Program) -> list[Env]:
    """What the guards of loops that go on from tile to tile know of a tile: whether it is the first or the last, or behind it."""
    loops = (n for core in (AIC, AIV) for n in program.core(core) if isinstance(n, Tasks) and n.behind)
    names = dict.fromkeys((n.var, n.behind) for n in loops)
    return [{name: n for pair in names for name, n in zip(pair, at, strict=True)} for at in STAND_FOR_TILES]


def shortened(program: Program) -> dict[str, int]:
    """Loop variable -> how many trips in the middle may be left out, the same for every loop of that name on both cores."""
    slots = [b.slots for b in program.buffers] or [1]
    period, most = math.lcm(*slots), max(slots)
    tiles, out = _tiles(program), dict[str, int]()
    for n in (*walk(program.cube), *walk(program.vector)):
        if isinstance(n, Loop):
            changes = _changes(n, tiles)
            spare = 0 if changes is None or isinstance(n, Tasks) else n.trips - sum(changes) - 2 * (most + 1)
            out[n.var] = min(out.get(n.var, spare), spare)
    return {v: max(0, s) // period * period for v, s in out.items()}


def _kept(loop: Loop, skip: int, tiles: Sequence[Env]) -> Iterator[int]:
    changes = (_changes(loop, tiles) or (0, 0)) if skip else (0, 0)
    spare = loop.trips - skip - changes[0] - changes[1]
    head = changes[0] + spare // 2 if skip else loop.trips
    yield from range(head)
    yield from range(head + skip, loop.trips)


Relation = tuple[tuple[str, str] | None, bool]


@dataclass(eq=False)
class _Use:
    """An access of an instruction at its place in the stream."""

    access: Access
    instr: Instr

    def __post_init__(self) -> None:
        self.cell = self.access.cell
        self.known: dict[_Use, Relation] = {}

    def after(self, other: _Use) -> Relation:
        """How it stands to an earlier use of its cell: the buffers by which it depends on that one (None: it does not), and
        whether what is ordered with it is so with that one, too. `known` keeps it."""
        a, b = self.access, other.access
        one_pipe = self.instr.pipe == other.instr.pipe
        meets = (a.write or b.write) and (a.window is b.window or a.window.overlaps(b.window))  # type: ignore[arg-type]
        ordered = (one_pipe and parted(b.steps, a.steps)) or self.instr.hands_over(other.instr)
        may = a.write or (not b.write and a.buffer == b.buffer and one_pipe)
        covers = a.whole or (type(a.window) is type(b.window) and a.window.covers(b.window))
        self.known[other] = (b.buffer, a.buffer) if meets and not ordered else None, may and covers
        return self.known[other]


Touched = tuple[tuple[_Use, ...], tuple[Access, ...]]


class _Item:
    """A node at its place in the stream, and its body; of a loop the trips that are walked, where they are always the same.

    What an instruction touches follows from what it `reads` of the loop variables: `known` has it for each of these values.
    """

    def __init__(self, node: Node, path: Path) -> None:
        self.node, self.path = node, path
        self.pre, self.post, self.run = ("pre", path), ("post", path), ("run", path)
        self.body: list[_Item] = []
        self.trips: Sequence[int] | None = None
        self.reads: list[Value] = []
        self.known: dict[tuple[int, ...], Touched] = {}
        self.stepped = self.opaque = False


class _Stream:
    """Looks at a stream, whatever trips its loops have that the block decides."""

    def __init__(self, layout: Layout, skips: Mapping[str, int]) -> None:
        self.layout, self.skips, self.tiles = layout, skips, _tiles(layout.program)

    def items(self, nodes: tuple[Node, ...], path: Path, env: Env) -> list[_Item]:
        """`env` has the variables that are known in these nodes."""
        return [self.item(n, (*path, at), env) for at, n in enumerate(nodes)]

    def item(self, n: Node, path: Path, env: Env) -> _Item:
        out = _Item(n, path)
        if isinstance(n, Loop):
            out.body = self.items(n.body, path, env | {n.var: 0})
            out.trips = None if n.until else list(_kept(n, self.skips.get(n.var, 0), self.tiles))
        elif isinstance(n, When):
            out.body, out.opaque = self.items(n.body, path, env), opaque(n.condition, env)
        elif isinstance(n, Instr):
            out.reads, out.stepped = self.reads(n, env), steps(n, self.layout.buffers) is not None
        return out

    def reads(self, i: Instr, env: Env) -> list[Value]:
        """What decides which cells and windows an instruction touches: expressions where they are known, else their variables."""
        values: dict[Value, None] = {}
        for e in self.layout.deciding(i, env):
            known = ix.variables(e) & env.keys()
            whole = known == ix.variables(e)
            values |= dict.fromkeys([compiled(e)] if known and whole else map(_variable, sorted(known)))
        return list(values)


class _Walker:
    """Walks a stream. Of a loop over tiles that ends it, tile after tile as they are asked for."""

    def __init__(self, layout: Layout, items: Sequence[_Item], tiles: int) -> None:
        self.layout, self.tiles = layout, tiles
        self.found, self.counts = Trace(), dict[str, int]()
        self.live: dict[tuple, list[tuple[int, _Use]]] = {}
        self.guards, self.env = 0, layout.named()
        self.last = items[-1] if items and isinstance(items[-1].node, Tasks) else None
        self.walk(items[:-1] if self.last else items, self.env)
        if self.last:
            self.found.steps.append((self.last.pre, self.env, -1))
        self.marks = [self.mark]

    @property
    def mark(self) -> tuple[int, int, int]:
        return len(self.found.steps), len(self.found.instances), len(self.found.dependences)

    def trace(self, tiles: int) -> Trace:
        """The trace where a block has so many tiles."""
        found, last = self.found, self.last
        if last is None:
            return found
        while len(self.marks) <= tiles:
            self.tile(last, len(self.marks) - 1, self.env)
            self.marks.append(self.mark)
        steps, instances, dependences = self.marks[tiles]
        whole = [*found.steps[:steps], (last.post, self.env, -1)]
        return Trace(whole, found.instances[:instances], found.dependences[:dependences])

    def walk(self, items: Sequence[_Item], env: Env) -> None:
        found = self.found.steps
        for item in items:
            n = item.node
            found.append((item.pre, env, -1))
            if isinstance(n, Instr):
                self.instr(item, n, env)
            elif isinstance(n, Tasks):
                for k in range(self.tiles):
                    self.tile(item, k, env)
            elif isinstance(n, Loop):
                for k in item.trips or range(ix.evaluate(n.until, env) if n.until else 0):
                    self.walk(item.body, env | {n.var: k})
            elif isinstance(n, When):
                self.guarded(item, n, env)
            found.append((item.post, env, -1))
            if len(found) > MAX_TRACE:
                raise SyncError("the loops are too irregular to be analysed")

    def tile(self, item: _Item, k: int, env: Env) -> None:
        assert isinstance(item.node, Tasks)
        self.walk(item.body, env | {item.node.var: k} | self.layout.named(k))

    def guarded(self, item: _Item, n: When, env: Env) -> None:
        if item.opaque:
            self.guards += 1
            self.found.steps.append((("enter", item.path), env, -1))
            self.walk(item.body, env)
            self.found.steps.append((("leave", item.path), env, -1))
            self.guards -= 1
        elif ix.evaluate(n.condition, env):
            self.walk(item.body, env)

    def instr(self, item: _Item, n: Instr, env: Env) -> None:
        number = self.counts[n.pipe] = self.counts.get(n.pipe, 0) + 1
        me, key = len(self.found.instances), tuple([value(env) for value in item.reads])
        uses, accesses = item.known.get(key) or self.touched(item, n, env, key)
        self.found.instances.append(Instance(item.path, n, n.pipe, number, env, accesses, item.stepped))
        self.found.steps.append((item.run, env, me))
        found, live = set(), self.live
        for use in uses:
            known = use.known
            for at, other in live.get(use.cell, ()):
                buffers, _ = known.get(other) or use.after(other)
                if buffers:
                    found.add((at, me, buffers))
        if found:
            self.found.dependences += map(Dependence._make, sorted(found))
        for use in uses:
            self.remember(me, use)

    def touched(self, item: _Item, n: Instr, env: Env, key: tuple[int, ...]) -> Touched:
        accesses = tuple(self.layout.accesses(n, env))
        item.known[key] = tuple(_Use(a, n) for a in accesses), accesses
        return item.known[key]

    def remember(self, me: int, use: _Use) -> None:
        """Forget what the new access stands for: everything that a write covers, and earlier reads on the same pipe.

        An access that may not happen stands for nothing.
        """
        live = self.live.setdefault(use.cell, [])
        if live and not self.guards:
            known = use.known
            live[:] = [(n, b) for n, b in live if n == me or not known[b][1]]
        live.append((me, use))


_variable = lru_cache(itemgetter)
