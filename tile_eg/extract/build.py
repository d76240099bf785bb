"""From a choice of nodes to an ordered schedule: storages, steps, back-edge copies, rings."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from tile_eg.egraph import Graph, Node
from tile_eg.egraph.placed import slots_of
from tile_eg.extract.base import Refused
from tile_eg.extract.buffers import buffered, decided, depth_of
from tile_eg.extract.flags import decide
from tile_eg.extract.model import slot_bytes
from tile_eg.extract.order import Dependences, as_late, by_lag, in_groups, order_regions
from tile_eg.extract.pricing import Price, bit_elements
from tile_eg.extract.schedule import Item, LoopStep, Schedule, Step, Storage, StorageId, walk
from tile_eg.extract.selection import Selection, trips_ahead
from tile_eg.extract.skew import lags, loads_first
from tile_eg.ir.machine import BLOCK_BYTES, BLOCK_ELEMENTS, REPEAT_BYTES, block_steps, dot_elements
from tile_eg.ops.physical import DEEP, LOADS, MOVES, OVERWRITES, PRODUCTS, STORES, VECTOR
from tile_eg.ops.types import Level
from tile_eg.ops.whole_tiles import WHOLE_TILES

SPREAD = {name: term.row_bytes for name, term in VECTOR.items() if term.row_bytes}


def step_price(chosen: Selection, prices: list[Price], node: Node) -> Price:
    """A node's price; a product's stands at its L0 cut, and its loads run under its Mmads."""
    if node.op not in PRODUCTS:
        return prices[node.index]
    cut = prices[chosen.pick[node.children[0]].index]
    return Price({"AIC.M": max(cut.cycles.values(), default=0)}, cut.works)


def is_fill(node: Node) -> bool:
    """Whether a node only puts a constant into a buffer."""
    return node.op == "ZeroL0C" or (node.op in VECTOR and VECTOR[node.op].kind == "fill")


class Builder:
    """Builds the schedule of one choice. Refused where it has no order or a cell would need two shapes.

    `late`: constants are made where they are read first, so that they take room no longer than that. `steady`: the trips of a
    skewed loop are ordered as they run once the loop is full. `grouped`: V's instructions are ordered in groups that do not need
    each other. `early`: loops issue what a trip loads before the work of the trip before it. `ahead`: what a trip loads and later
    trips read has slots for that beyond its buffers.
    """

    def __init__(
        self,
        graph: Graph,
        nodes: list[Node],
        prices: list[Price],
        late: bool = False,
        steady: bool = False,
        grouped: bool = False,
        early: bool = False,
        ahead: bool = False,
    ) -> None:
        self.graph, self.steady, self.grouped, self.early, self.ahead = graph, steady, grouped, early, ahead
        self.chosen = Selection(graph, nodes)
        self.prices = prices
        self.price = {n.cls: step_price(self.chosen, prices, n) for n in self.chosen.instructions}
        self.needs = Dependences(self.chosen)
        self.orders = order_regions(self.chosen, self.needs, self.price)
        if grouped:
            on_v = {n.cls for n in self.chosen.instructions if self._pipe(n.cls) == "AIV.V"}
            self.orders = {r: in_groups(order, self.needs.edges[r], on_v) for r, order in self.orders.items()}
        if late:
            fills = {n.cls for n in self.chosen.instructions if is_fill(n) and n.op not in OVERWRITES}
            self.orders = {r: as_late(order, fills, self.needs.edges[r]) for r, order in self.orders.items()}
        self.lag: dict[int, int] = defaultdict(int)
        self.storages: dict[int, Storage] = {}
        self.ids: dict[object, int] = {}
        self.begun: set[int] = set()
        self.targets = self._targets()

    def build(self) -> Schedule:
        for loop in self.chosen.loops:
            core = {x: self._pipe(x).split(".")[0] for x in self.orders[loop] if x > 0}
            self.lag |= lags(self.chosen, loop, self.orders[loop], self.needs.edges[loop], core)
            self.lag |= loads_first(self.chosen, loop, self.orders[loop]) if self.early else {}
            self.orders[loop].sort(key=lambda x: self.lag[x])
            if self.steady and any(self.lag[x] for x in self.orders[loop]):
                self.orders[loop] = by_lag(self.orders[loop], self.lag, self.needs.edges[loop], self.price)
        top = self._body(0)
        for n in self.chosen.nodes:
            if n.op == "Stays":
                self.storages[self.storage(n.cls)].stays = self.graph.trips[n.payload[1]]  # type: ignore[index]
        able = rings(top, self.storages)
        self._keep_given(top)
        if self.ahead:
            ahead_of_readers(top, self.storages)
        schedule = Schedule(self.graph, self.chosen.nodes, top, self.storages, steady=self.steady)
        schedule.grouped, schedule.early, schedule.ahead, schedule.few_ids = self.grouped, self.early, self.ahead, self.ahead
        for sid, storage in self.storages.items():
            decide(schedule, storage)
            if sid not in able:
                storage.decisions = ()
        return schedule

    def _keep_given(self, top: list[Item]) -> None:
        """What a loop loads, and what the author keeps in slots, has exactly so many. Refused where that cannot be."""
        for step, around in walk(top):
            cls = buffered(step.node) if step.node.op in DEEP else step.node.cls
            sid = self.storage(self.chosen.base(cls))
            if not around or step.node.op not in (*LOADS, *DEEP) or sid not in self.storages:
                continue
            storage, loop = self.storages[sid], around[-1]
            said = slots_of(self.graph.demands[cls].tile, storage.level)
            given = min(said, loop.trips) if said else loop.given if step.node.op in LOADS else 0
            if given and storage.slots != given:
                name = self.graph.values.variables[loop.loop]
                what = f"{storage.name} needs {storage.slots} slots in loop {name}, and the source gives it {given}"
                skew = [n for n in self.chosen.nodes if n.op == "Skew" and n.payload[0] == loop.loop]
                raise Refused("stages", what, [*self._cell_nodes(sid), *skew])
            storage.given = given or storage.given

    def _pipe(self, cls: int) -> str:
        if pipe := self.price[cls].pipe:
            return pipe
        return "AIC.M" if self.chosen.pick[cls].op == "ZeroL0C" else "AIV.V"

    # ---- storages ----

    def storage(self, cls: object) -> StorageId:
        root = self.chosen.cells.find(cls)
        if root in self.chosen.cells.tensor:
            return self.chosen.cells.tensor[root]
        return self.ids.setdefault(root, len(self.ids))

    def _destination(self, node: Node) -> StorageId:
        sid = self.storage(node.cls)
        if isinstance(sid, str):
            return sid
        place = self.graph.demands[node.cls]
        ahead = trips_ahead(node)
        r, c = place.shape[0], place.shape[1] * ahead
        size = slot_bytes(place, ahead)
        if node.op in SPREAD:  # one repeat writes eight rows
            r, size = -(-r // 8) * 8, -(-r // 8) * 8 * SPREAD[node.op]
        new = Storage(sid, self._name(node), place.level, r, c, place.tile.dtype, place.share, slot_bytes=size)
        new.ahead, new.region, new.gap, new.tiles = ahead, node.region, place.gap, place.tiles
        new.span = self.graph.values.spans.get(place.tile.term) if place.tile.term else None
        old = self.storages.setdefault(sid, new)
        if is_fill(node):
            self.begun |= {sid} if old is new else set()
        elif sid in self.begun:  # one constant may begin several buffers, and has the name of one of them
            old.name = new.name
            self.begun.remove(sid)
        if (old.level, old.rows, old.cols, old.dtype, old.share) != (new.level, r, c, new.dtype, new.share):
            raise Refused("cell", f"one cell as {old.rows}x{old.cols} {old.dtype} and {r}x{c} {new.dtype}", self._cell_nodes(sid))
        return sid

    def _cell_nodes(self, sid: int) -> list[Node]:
        return [n for n in self.chosen.nodes if n.cls in self.graph.demands and self.storage(n.cls) == sid]

    def _name(self, node: Node) -> str:
        """The buffer that a value is assigned to, or that the statement which computes it assigns to."""
        term = self.graph.demands[node.cls].tile.term
        named = self.graph.values.buffers.get(term) if term else None
        if named:
            return named[0]
        span = self.graph.values.spans.get(term) if term else None
        if span and (span.file, span.line) in self.targets:
            return self.targets[span.file, span.line]
        if node.op in SPREAD:
            return f"{self._source_name(node)}_blocks"
        return "constant" if node.op in VECTOR and is_fill(node) else self._source_name(node)

    def _source_name(self, node: Node) -> str:
        """The name of the first value that a node reads, constants aside."""
        ids = [self.storage(self.chosen.base(c)) for c in self.chosen.sources(node)]
        names = [self.storages[i].name for i in ids if i in self.storages]
        return next((n for n in names if n != "constant"), f"t{node.cls}")

    def _targets(self) -> dict[tuple[str, int], str]:
        """The buffer that the statement on each line of the source assigns to; of lines that assign to several, none."""
        values, found = self.graph.values, dict[tuple[str, int], set[str]]()
        for term, (name, _) in values.buffers.items():
            if span := values.spans.get(term):
                found.setdefault((span.file, span.line), set()).add(name)
        return {line: next(iter(names)) for line, names in found.items() if len(names) == 1}

    # ---- steps ----

    def _body(self, region: int) -> list[Item]:
        out: list[Item] = []
        for x in self.orders[region]:
            out.append(self._loop(-x) if x < 0 else self._step(x))
        return out

    def _loop(self, loop: int) -> LoopStep:
        body = self._body(loop)
        last = max((s.lag for s in body if isinstance(s, Step)), default=0)
        body += self._back_edge(loop)
        halves = self.chosen.skews.get(loop, 0) if last else 0
        given = self.graph.values.stages.get(loop, 0)
        return LoopStep(loop, self.graph.trips[loop], body, last, self._ahead(loop, last), halves, given)

    def _ahead(self, loop: int, skew: int) -> int:
        """How many trips' tiles the loads of a loop bring that bring several: all of them as many, and none in a skewed loop."""
        loads = [n for n in self.chosen.instructions if n.region == loop and trips_ahead(n) > 1]
        found = {trips_ahead(n) for n in loads}
        if len(found) > 1 or (found and skew):
            raise Refused("order", "loads that bring several trips' tiles do not go together with others, or with a skew", loads)
        return found.pop() if found else 1

    def _step(self, cls: int) -> Step:
        n = self.chosen.pick[cls]
        sources = self.chosen.sources(n)
        versions = tuple(self.chosen.base(c) for c in sources)
        srcs = tuple(self.storage(v) for v in versions)
        dst = self._destination(n)
        self._depth(n, dst, srcs)
        return Step(
            n, n.region, self._pipe(cls), self.price[cls].total, dst, srcs, versions, self.lag[cls], scratch=self._scratch(n)
        )

    def _depth(self, node: Node, dst: StorageId, srcs: tuple[StorageId, ...]) -> None:
        """Tells the storage of a move's tile what was decided of it."""
        cls = decided(node)
        if cls is not None and self.chosen.pick[cls].op == "Buffers":
            move = MOVES[node.op]
            sid = dst if move.staged else srcs[move.operand]
            if isinstance(sid, int):
                held = self.storages[sid]
                held.decisions = tuple(dict.fromkeys((*held.decisions, self.chosen.pick[cls])))

    def _scratch(self, node: Node) -> int | None:
        """Room for the partial rows of a row reduction: one repeat of 256 bytes a row, where a row is longer than that.

        A reduction by blocks keeps what each of its steps leaves, one by halves what the first does. A choice keeps the bits of
        its comparison.
        """
        if node.op == "VRedBlock":
            rows, cols = self.graph.demands[node.children[0]].shape
            between = rows * sum(left for _, left in block_steps(cols, rows) if left > 1)
            return self._room(node, 1, max(8, between)) if cols > BLOCK_ELEMENTS else None
        if node.op == "VRedChunks":
            rows, cols = self.graph.demands[node.children[0]].shape
            lanes = REPEAT_BYTES // self.graph.demands[node.children[0]].tile.dtype.bytes
            return self._room(node, rows, cols // lanes // 2 * lanes)
        if node.op == "VRedHalves":
            rows, cols = self.graph.demands[node.children[0]].shape
            return self._room(node, rows // 2, cols)
        if node.op == "VRedHalvesRows":
            place = self.graph.demands[node.children[0]]
            block = BLOCK_BYTES // place.tile.dtype.bytes
            return self._room(node, place.shape[0] // 2, -(-place.shape[1] // block) * block)
        if node.op == "VRedMul":
            rows, cols = self.graph.demands[node.children[0]].shape
            return self._room(node, 1, dot_elements(rows, cols))
        if node.op in VECTOR and VECTOR[node.op].kind == "choice":
            compared = self.graph.demands[node.children[0]]
            return self._room(node, 1, bit_elements(compared, self.graph.demands[node.cls]), "bits")
        if node.op in VECTOR and VECTOR[node.op].kind == "whole":
            op, *numbers = node.payload
            entry, (rows, cols) = WHOLE_TILES[op], self.graph.demands[node.cls].shape
            need = rows * cols if entry.doubled else entry.scratch((numbers[0], numbers[1]))
            return self._room(node, 1, need) if need else None
        if node.op != "VRed" or node.payload[0] != 1:
            return None
        place = self.graph.demands[node.children[0]]
        rows, lanes = place.shape[0], 256 // place.tile.dtype.bytes
        return self._room(node, rows, lanes) if place.shape[1] > lanes else None

    def _room(self, node: Node, rows: int, cols: int, what: str = "rows") -> int:
        place = self.graph.demands[node.children[0]]
        sid = self.ids.setdefault(("scratch", node.cls), len(self.ids))
        size, name = rows * cols * place.tile.dtype.bytes, f"{self._name(node)}_{what}"
        self.storages[sid] = Storage(sid, name, Level.UB, rows, cols, place.tile.dtype, place.share, slot_bytes=size)
        return sid

    def _back_edge(self, loop: int) -> list[Item]:
        """The back edge is a parallel copy: first what nobody still reads is overwritten; a cycle needs a third place."""
        todo = []
        for (at, k), state in sorted(self.chosen.states.items()):
            after = self.chosen.after(state)
            if at == loop and after.op == "NextCp":
                base = self.chosen.base(after.children[0])
                cell = self.storage(("cell", loop, k))
                if self.storage(base) != cell:
                    todo.append((cell, self.storage(base), base, after))
        out: list[Item] = []
        while todo:
            free = next((c for c in todo if not any(c[0] == o[1] for o in todo if o is not c)), None)
            if free is None:
                todo, step = self._set_aside(todo, loop)
                out.append(step)
                continue
            todo.remove(free)
            out.append(self._copy(loop, *free))
        return out

    def _copy(self, loop: int, cell: StorageId, source: StorageId, base: int, node: Node) -> Step:
        cycles = self.prices[node.index].total
        return Step(node, loop, "AIV.V", cycles, cell, (source,), (base,), self.lag[base], True)

    def _set_aside(self, todo: list, loop: int) -> tuple[list, Step]:
        """Copies the first cell of a cycle elsewhere; whoever reads it reads the copy."""
        cell = todo[0][0]
        old = self.storages[cell]
        aside = len(self.ids)
        self.ids[("aside", loop, cell)] = aside
        self.storages[aside] = replace(old, id=aside, name=f"{old.name}_old")
        reader = next(c for c in todo if c[1] == cell)
        step = self._copy(loop, aside, cell, reader[2], reader[3])
        return [(c[0], aside if c[1] == cell else c[1], c[2], c[3]) for c in todo], step


def rings(top: list[Item], storages: dict[int, Storage]) -> set[int]:
    """Slots of every storage: as many as were decided, and more for a value that lives across a lag. A state's cell has one.

    The storages that may have several.
    """
    able = set[int]()
    writes: dict[StorageId, list] = defaultdict(list)
    reads: dict[StorageId, list] = defaultdict(list)
    for step, around in walk(top):
        writes[step.dst].append((step, around))
        for s in step.srcs:
            reads[s].append((step, around))
    for sid, storage in storages.items():
        if len(writes[sid]) == 1:
            writer, around = writes[sid][0]
            able |= {sid} if _ring(storage, writer, around, reads[sid], _deepest(around, storages)) else set()
    return able


def _deepest(around: tuple[LoopStep, ...], storages: dict[int, Storage]) -> int:
    """The most buffers that a tile of a loop was given."""
    loop = around[-1].loop if around else 0
    return max((depth_of(d) for s in storages.values() for d in s.decisions if d.region == loop), default=1)


def _ring(storage: Storage, writer: Step, around: tuple[LoopStep, ...], reads: list, deepest: int) -> bool:
    if not around or writer.node.op in OVERWRITES or writer.node.op in STORES:
        return False
    loop = around[-1]
    inside = [s for s, path in reads if path and path[-1] is loop]
    if storage.stays:
        wanted = max((depth_of(d) for d in storage.decisions), default=1)
        storage.least, storage.slots, storage.ring = storage.stays, max(storage.stays, wanted), loop.loop
        return True
    if any(loop not in path for _, path in reads):
        return False
    position = {id(s): i for i, s in enumerate(loop.body)}
    if any((s.lag, position[id(s)]) <= (writer.lag, position[id(writer)]) for s in inside):
        return False
    least = max([s.lag - writer.lag for s in inside], default=0) + 1
    storage.least = least
    wanted = max((depth_of(d) for d in storage.decisions), default=1)
    if storage.level is Level.WS:  # has room: as deep as the trips until the writer hears that a slot was read
        wanted = max(deepest, loop.halves + 1)
    storage.slots = _even(max(least, wanted), deepest)
    storage.ring = loop.loop if storage.slots > 1 else None
    return True


def _even(least: int, deepest: int) -> int:
    """Slots that come round with the deepest of the loop's other buffers: a long loop repeats itself every few trips."""
    return least if least <= deepest else deepest * -(-least // deepest)


def ahead_of_readers(top: list[Item], storages: dict[int, Storage]) -> None:
    """Gives what a loop loads, and reads in later trips as well, its buffers beyond the slots that hold tiles for these: else no
    load could run ahead."""
    for step, around in walk(top):
        held = storages.get(step.dst) if isinstance(step.dst, int) else None
        if held and step.node.op in LOADS and held.ring and held.least > 1 and not (held.given or held.stays):
            wanted = max((depth_of(d) for d in held.decisions), default=1)
            held.slots = _even(held.least - 1 + wanted, _deepest(around, storages))
            held.later = held.least - 1
