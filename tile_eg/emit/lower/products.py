"""Matrix products through L0A and L0B: the cut that was chosen, as loops of loads and Mmads over two slots."""

from __future__ import annotations

from collections import defaultdict

from tile_eg.egraph.graph import Tile as GraphTile
from tile_eg.emit.lower.cuts import Cut, part
from tile_eg.emit.lower.storages import Storages
from tile_eg.emit.lower.units import flag_of, handovers, windows
from tile_eg.extract import LoopStep, Step
from tile_eg.ir.index import ONE, SUB, ZERO, Expr, both, less, minimum, var
from tile_eg.ir.program import Buffer, Instr, Loop, Node, Tile
from tile_eg.ops.physical import ADDING, ALIASES, PRODUCTS, WITH_SCALES
from tile_eg.ops.types import SCALE_BLOCK, DType, Level


class Products:
    """Plans L0A and L0B for a schedule's products, and lowers them."""

    def __init__(self, storages: Storages) -> None:
        self.storages = storages
        self.pick = {n.cls: n for n in storages.schedule.nodes}
        products = [(s, around) for s, around in storages.schedule.walk() if s.node.op in PRODUCTS]
        steps = [s for s, _ in products]
        self.cuts = {s.node.cls: self._cut(s) for s in steps}
        self.turns = self._turns(products)
        self.names = self._unique_names(steps)
        self.l0 = {s.node.cls: self._buffers(s) for s in steps}
        self.buffers = tuple(b for pair in self.l0.values() for b in pair)
        found = handovers(storages.schedule, storages.chip.architecture)
        self.handovers = {s: h for s, h in found.items() if self.whole(h.product)}

    def _cut(self, step: Step) -> Cut:
        tile, _, m, n, k = self.pick[step.node.children[0]].payload
        return Cut(m, n, k, -(-tile.rows // m), -(-tile.cols // n), -(-tile.depth // k))

    def _unique_names(self, steps: list[Step]) -> dict[int, str]:
        """A name for each product: its result's buffer, numbered where several add to one, so that its step counters are new."""
        taken = set(self.storages.values.variables.values())
        out: dict[int, str] = {}
        for s in steps:
            base = name = self.storages.names[s.dst].removesuffix("_l0c")  # type: ignore[index]
            i = 2
            while not taken.isdisjoint((name, *(f"{name}_{d}" for d in "mnk"))):
                name, i = f"{base}{i}", i + 1
            taken.add(name)
            out[s.node.cls] = name
        return out

    def _turns(self, products: list[tuple[Step, tuple[LoopStep, ...]]]) -> dict[int, tuple[int, int]]:
        """For each product the steps of a trip that are issued before its own, and all that are counted.

        Those of all products of its loop in a steady schedule; else its own, or those of two products of one step.
        """
        in_turn = len(products) == 2 and all(c.steps == 1 for c in self.cuts.values())
        passed: dict[int, int] = defaultdict(int)
        places: dict[int, tuple[int, int]] = {}
        for n, (s, around) in enumerate(products):
            group = 0 if in_turn else (around[-1].loop if around else 0) if self.storages.schedule.steady else -n
            places[s.node.cls] = group, passed[group]
            passed[group] += self.cuts[s.node.cls].steps
        return {cls: (before, passed[group]) for cls, (group, before) in places.items()}

    def _buffers(self, step: Step) -> tuple[Buffer, Buffer]:
        """Two slots for each operand; a product of one step that comes to the same one in each trip has that alone."""
        cut, (before, total) = self.cuts[step.node.cls], self.turns[step.node.cls]
        left, right = self._operand_types(step)
        name = self.names[step.node.cls]
        halves = {level: self.storages.chip.level_bytes(level) // 2 for level in (Level.L0A, Level.L0B)}

        def buffer(level: Level, dtype: DType, rows: int, cols: int, layout: str) -> Buffer:
            one = cut.steps == 1 and not total % 2 and not self.storages.values.tile_each
            slots = (before % 2 * halves[level],) if one else (0, halves[level])
            return Buffer(f"{name}_{level.lower()}", level, dtype, rows, cols, cols, layout, len(slots), slots)

        a, b = cut.k // left.together, cut.k // right.together
        return buffer(Level.L0A, left, cut.m, a, "zz"), buffer(Level.L0B, right, b, cut.n, "zn")

    def _operand_types(self, step: Step) -> tuple[DType, DType]:
        """What a product's operands are of: those with scales of the floats that the bytes in L1 hold."""
        if step.node.op in WITH_SCALES:
            left, right = self.tile_of(step).factors
            return left, right
        left, right = (self.storages.buffers[s].dtype for s in step.srcs[-2:])  # type: ignore[index]
        return left, right

    def lower(self, step: Step, around: tuple[LoopStep, ...]) -> list[Node]:
        cut, tile = self.cuts[step.node.cls], self.pick[step.node.children[0]].payload[0]
        m, n, k = (self._index(step, d, count) for d, count in (("m", cut.steps_m), ("n", cut.steps_n), ("k", cut.steps_k)))
        rows, cols = part(tile.vrows, m, cut.m, tile.rows), part(tile.vcols, n, cut.n, tile.cols)
        depth = part(self._depth(step), k, cut.k, tile.depth)
        slot = self._turn(step, m, n, k, around)
        flags = self._init(step, k), flag_of(self.storages, self.handovers.get(step.dst), cut, k)  # type: ignore[arg-type]
        body = self._one(step, (m * cut.m, n * cut.n, k * cut.k), (rows, cols, depth), slot, flags)
        for index, count in ((k, cut.steps_k), (n, cut.steps_n), (m, cut.steps_m)):
            if count > 1:
                body = [Loop(str(index), count, tuple(body))]
        return body

    def _one(
        self, step: Step, at: tuple[Expr, Expr, Expr], size: tuple[Expr, Expr, Expr], slot: Expr, flags: tuple[Expr, Expr]
    ) -> list[Node]:
        """The loads of one step and its Mmad; `flags` are where that overwrites, and its unit flag."""
        (m, n, k), (rows, cols, depth) = at, size
        a, b = self.l0[step.node.cls]
        ta, tb = self.pick[step.node.children[0]].payload[0].matmul or (False, False)
        left, right = (self.storages.source(step, i) for i in (-2, -1))
        c = self.storages.tile(step.dst)
        to_a, to_b = Tile(a.name, slot), Tile(b.name, slot)
        if step.node.op in WITH_SCALES:
            return self._one_scaled(step, at, size, (to_a, to_b), Tile(c.buffer, c.slot, m, n), flags)
        source_a = _window(left, k, m) if ta else _window(left, m, k)
        source_b = _window(right, n, k) if tb else _window(right, k, n)
        return [
            Instr("l1_to_l0a", to_a, (source_a,), rows=rows, depth=depth, transpose=ta),
            Instr("l1_to_l0b", to_b, (source_b,), cols=cols, depth=depth, transpose=tb),
            Instr("mmad", Tile(c.buffer, c.slot, m, n), (to_a, to_b), rows, cols, depth, init=flags[0], unit=flags[1]),
        ]

    def _one_scaled(
        self, step: Step, at: tuple[Expr, Expr, Expr], size: tuple[Expr, Expr, Expr], to: tuple[Tile, Tile], c: Tile,
        flags: tuple[Expr, Expr],
    ) -> list[Node]:  # fmt: skip
        """The same of operands with scales, both of which lie with their depth along the rows."""
        (m, n, k), (rows, cols, depth) = at, size
        scale_a, scale_b, left, right = (self.storages.source(step, i) for i in (-4, -3, -2, -1))
        of_a, of_b = self._operand_types(step)
        a = _window(left, m, k // of_a.together), _window(scale_a, m, k // SCALE_BLOCK)
        b = _window(right, n, k // of_b.together), _window(scale_b, n, k // SCALE_BLOCK)
        return [
            Instr("l1_to_l0a", to[0], a, rows=rows, depth=depth, form="scales"),
            Instr("l1_to_l0b", to[1], b, cols=cols, depth=depth, transpose=True, form="scales"),
            Instr("mmad", c, to, rows, cols, depth, init=flags[0], unit=flags[1], form="scales"),
        ]

    def by_windows(self, step: Step, made: Instr) -> list[Node]:
        """A move as it is, or, where it empties a product under unit flags, in windows of that."""
        handover = self.handovers.get(step.srcs[-1]) if step.srcs else None  # type: ignore[arg-type]
        if handover is None:
            return [made]
        cls = handover.product.node.cls
        return windows(made, self.names[cls], self.cuts[cls], self.tile_of(handover.product).cols)

    def tile_of(self, step: Step) -> GraphTile:
        """What the graph knows of a product."""
        return self.pick[step.node.children[0]].payload[0]

    def whole(self, step: Step) -> bool:
        """Whether a product has all rows in one step, and no step is left out where its depth ends."""
        return self.cuts[step.node.cls].steps_m == 1 and self._depth(step).value == self.tile_of(step).depth

    def _index(self, step: Step, dimension: str, count: int) -> Expr:
        return var(f"{self.names[step.node.cls]}_{dimension}") if count > 1 else ZERO

    def _turn(self, step: Step, m: Expr, n: Expr, k: Expr, around: tuple[LoopStep, ...]) -> Expr:
        """Which slot: steps in their order of issue, those of all products of all trips, counted on from tile to tile where all
        tiles have as many."""
        cut, slots = self.cuts[step.node.cls], len(self.l0[step.node.cls][0].addresses)
        if slots == 1:
            return ZERO
        if self.storages.values.tile_each:  # each trip has the steps of two tiles
            return (var(SUB) * cut.steps + (m * cut.steps_n + n) * cut.steps_k + k) % slots
        before, total = self.turns[step.node.cls]
        trip, count = ZERO, 0 if any(loop.loop in self.storages.values.counts for loop in around) else total
        for loop in around:
            trip = trip * loop.trips + var(self.storages.values.variables[loop.loop])
            count *= loop.trips
        own = (m * cut.steps_n + n) * cut.steps_k + k
        lag = step.lag if total > cut.steps else 0
        return (self.storages.turns(count, slots) + (trip + lag) * total + before + own) % slots

    def _depth(self, step: Step) -> Expr:
        """How much of k is valid: what both operands have."""
        tile = self.pick[step.node.children[0]].payload[0]
        ta, tb = tile.matmul or (False, False)
        a, b = (self.storages.schedule.graph.demands[c].tile for c in step.node.children[-2:])
        of_a, of_b = (a.vrows if ta else a.vcols), (b.vcols if tb else b.vrows)
        if step.node.op in WITH_SCALES:
            of_a, of_b = (of * t.together for of, t in zip((of_a, of_b), self._operand_types(step), strict=True))
        return of_b if of_a.value == tile.depth else of_a if of_b.value == tile.depth or of_a == of_b else minimum(of_a, of_b)

    def _init(self, step: Step, k: Expr) -> Expr:
        """Where an Mmad overwrites its result: the first step in k, and there only where the accumulator is still zero."""
        first = less(k, 1)
        return first if step.node.op not in ADDING else both(first, self._is_zero(step.node.children[1]))

    def _is_zero(self, cls: int) -> Expr:
        chosen = self.pick[cls]
        while chosen.op in ALIASES:
            chosen = self.pick[chosen.children[0]]
        if chosen.op == "ZeroL0C":
            return ONE
        if chosen.op != "PArg":
            return ZERO
        loop, k = chosen.payload[:2]
        state = next(n for n in self.storages.schedule.nodes if n.op == "State" and n.payload[:2] == (loop, k))
        return both(less(var(self.storages.values.variables[loop]), 1), self._is_zero(state.children[0]))


def _window(tile: Tile, row: Expr, col: Expr) -> Tile:
    """A window of a tile, which may itself be one."""
    return Tile(tile.buffer, tile.slot, tile.row + row, tile.col + col)
