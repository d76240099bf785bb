"""The choice of nodes as a constraint model: one node for each used class, no cycles, storage laws, capacity bounds, makespan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set
from copy import copy
from functools import cached_property
from itertools import product
from typing import Any

from tile_eg.chips import Chip
from tile_eg.egraph import Demand, Graph, Node
from tile_eg.extract.accumulators import Accumulators, layout
from tile_eg.extract.buffers import ALONE, Buffer, buffered, decided, depth_of, pause, place_of, trips_in, waits
from tile_eg.extract.constraints import constraints
from tile_eg.extract.cycles import cyclic_groups
from tile_eg.extract.forms import forms_of_loops
from tile_eg.extract.makespan import BACK, HOPS, MEETING, NEAR, THERE
from tile_eg.extract.needs import read_too_late
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.room import Live, overfull, used_with
from tile_eg.extract.selection import is_half, tensor_of, touches_whole
from tile_eg.extract.solver import load_cp_model
from tile_eg.ir.machine import USABLE_EVENT_IDS, scale_bytes
from tile_eg.ir.program import AIC
from tile_eg.ops.physical import ALIASES, HELD, OVERWRITES, STORES, TOUCHES, VECTOR
from tile_eg.ops.types import Level

HORIZON = 10**10
ROOM = 8192
"""Bytes that count as an instruction, where two choices take as long and work as much (assumed: with four times as many,
ssd of 4096 tokens takes 969 us instead of 611)."""


def slot_bytes(place: Demand, ahead: int = 1) -> int:
    """Bytes of one slot of so many tiles of a value side by side at its place, fractals and 32-byte rows included."""
    r, c, size = place.shape[0], place.shape[1] * ahead, place.tile.dtype.bytes
    if place.tile.dtype.scale:
        return place.tiles * scale_bytes(r, c)
    if place.level in (Level.L1, Level.L0C):
        unit = max(16, 16 if place.level is Level.L0C else 32 // size)
        return place.tiles * -(-r // unit) * unit * (-(-c // unit) * unit) * size
    return place.tiles * r * (-(-c * size // 32) * 32 + place.gap * size)


class Model:
    """A CP-SAT model of a graph. `chosen[n.index]` is true where node n is part of the schedule."""

    def __init__(self, graph: Graph, chip: Chip, pricer: Pricer, capacity: bool = True) -> None:
        self.graph, self.chip = graph, chip
        self.cp: Any = load_cp_model().CpModel()
        self.chosen = [self.cp.new_bool_var(f"{n.op}{n.index}") for n in graph.nodes]
        self.used = {c: self.cp.new_bool_var(f"class{c}") for c in graph.classes}
        self.prices = [pricer.price(n) for n in graph.nodes]
        self._choices()
        self._no_cycles()
        self._states()
        self._skews()
        self._storage()
        self._accumulators()
        self._tensors()
        self.skew = self._loops()
        self.moves = self._moves()
        self._one_place()
        self._flags()
        if capacity:
            self._capacity()
        self.loop_times: dict[int, Any] = {}
        self.time = self._makespan()

    def copy(self) -> Model:
        """The same model, to which more can be added without this one."""
        out = copy(self)
        out.cp = self.cp.clone()
        return out

    def minimise_time(self) -> None:
        """Shortest first; among equals the least work on all pipes and waiting at all buffers, then the fewest instructions, of
        which positions that fill more room count for more."""
        work = sum(
            p.total * self.graph.total_trips(n.region) * x
            for n, p, x in zip(self.graph.nodes, self.prices, self.chosen, strict=True)
        )
        deep = ((self._buffer(m[0], d), d) for c, m in self.moves.items() for d in self.graph.classes[c])
        depths = sum((b.handover * self.graph.total_trips(d.region) + b.depth) * self.chosen[d.index] for b, d in deep)
        each = sum((1 + self._room(n)) * x for n, x in zip(self.graph.nodes, self.chosen, strict=True))
        self.cp.minimize(self.time * 64 + work + depths + each)

    def _room(self, n: Node) -> int:
        """What positions fill in UB, in parts of `ROOM` bytes: those in 16 bits do what those in 32 do."""
        positions = n.op in VECTOR and VECTOR[n.op].kind == "position"
        return slot_bytes(self.graph.demands[n.cls]) // ROOM if positions else 0

    def parts(self) -> list[Any]:
        """The times of loops, each with its other forms, of which a choice has one; those in others first."""
        return [sum(self.loop_times[loop] for loop in forms) for forms in forms_of_loops(self.graph, self.loop_times)]

    def forbid(self, nodes: Iterable[Node]) -> None:
        """Not all of these together."""
        self.cp.add_bool_or([self.chosen[i].Not() for i in sorted({n.index for n in nodes})])

    # ---- what a choice is ----

    def _choices(self) -> None:
        users: dict[int, list] = defaultdict(list)
        for n in self.graph.nodes:
            for c in set(n.children):
                self.cp.add_implication(self.chosen[n.index], self.used[c])
                users[c].append(self.chosen[n.index])
        for c, nodes in self.graph.classes.items():
            self.cp.add_exactly_one([self.chosen[n.index] for n in nodes] + [self.used[c].Not()])
            if c != self.graph.root:
                self.cp.add_bool_or([*users[c], self.used[c].Not()])
        self.cp.add(self.used[self.graph.root] == 1)

    def _no_cycles(self) -> None:
        for group in cyclic_groups(self.graph):
            level = {c: self.cp.new_int_var(0, len(group), "") for c in group}
            for c in group:
                for n in self.graph.classes[c]:
                    for k in set(n.children) & group:
                        self.cp.add(level[k] + 1 <= level[c]).only_enforce_if(self.chosen[n.index])

    def _states(self) -> None:
        """A state is read, inside its loop and after it, where it was placed."""
        placed: dict[tuple, list] = defaultdict(list)
        for n in self.graph.nodes:
            if n.op == "State":
                placed[n.payload].append(self.chosen[n.index])
        for n in self.graph.nodes:
            if n.op in ("PArg", "PProj"):
                self.cp.add_bool_or([*placed[n.payload], self.chosen[n.index].Not()])

    def _skews(self) -> None:
        """Only a loop in which the cores meet is skewed, and far only one in which they meet there and back."""
        for n in self.graph.nodes:
            if n.op == "Skew" and n.payload[1]:
                for ways in (THERE, BACK) if n.payload[1] > NEAR else (MEETING,):
                    meeting = [self.chosen[m.index] for m in self.graph.nodes if m.op in ways and m.region == n.payload[0]]
                    self.cp.add_bool_or([*meeting, self.chosen[n.index].Not()])

    def _storage(self) -> None:
        """What may not be chosen together."""
        for constraint in constraints(self.graph):
            if constraint.most == 1:
                self.cp.add_at_most_one([self.chosen[n.index] for n in constraint.nodes])
            else:
                self.forbid(constraint.nodes)
        for nodes in read_too_late(self.graph):
            self.forbid(nodes)

    def _accumulators(self) -> None:
        """Products that add up in one accumulator lay it out alike: a number for the layout of each of its parts."""
        found = Accumulators(self.graph)
        for group in found.groups:
            cuts = [(n, part, cut) for n, part, cut in found.made if part in group]
            layouts = sorted({layout(x) for _, _, cut in cuts for x in self.graph.classes[cut]}, key=str)
            number = {part: self.cp.new_int_var(0, len(layouts) - 1, "") for part in sorted(group, key=str)}
            for n, a, b in found.links:
                if a in number and b in number:
                    self.cp.add(number[a] == number[b]).only_enforce_if(self.chosen[n.index])
            for n, part, cut in cuts:
                for x in self.graph.classes[cut]:
                    on = [self.chosen[n.index], self.chosen[x.index]]
                    self.cp.add(number[part] == layouts.index(layout(x))).only_enforce_if(*on)

    def _tensors(self) -> None:
        """A tensor that is stored to belongs to one kind of core: only the workspace has flags between cores.

        Where both vector cores work, each has its own half of the tensors in which they would meet.
        """
        stored = {tensor_of(n) for n in self.graph.nodes if n.op in STORES}
        cube = {tensor: self.cp.new_bool_var(f"cube {tensor}") for tensor in sorted(stored)}
        halves = self.cp.new_bool_var("halves")
        for n in self.graph.nodes:
            on = self.chosen[n.index]
            if n.op in TOUCHES and (tensor := tensor_of(n)) in stored:
                self.cp.add_implication(on, cube[tensor] if TOUCHES[n.op] == AIC else cube[tensor].Not())
            if self.graph.met and is_half(self.graph, n):
                self.cp.add_implication(on, halves)
            elif touches_whole(self.graph, n):
                self.cp.add_implication(on, halves.Not())

    # ---- loops ----

    def _loops(self) -> dict[int, list[tuple[int, Any]]]:
        """For each loop its skews, with their literals."""
        out: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        for n in self.graph.nodes:
            if n.op == "Skew":
                out[n.payload[0]].append((n.payload[1], self.chosen[n.index]))
        return out

    def _moves(self) -> dict[int, list[Node]]:
        """For each decision how many buffers a tile has, the moves that have it."""
        out: dict[int, list[Node]] = defaultdict(list)
        for n in self.graph.nodes:
            if (cls := decided(n)) is not None and self.graph.classes[cls][0].op == "Buffers":
                out[cls].append(n)
        return out

    def _both(self, x: Any, y: Any) -> Any:
        z = self.cp.new_bool_var("")
        self.cp.add_bool_and([x, y]).only_enforce_if(z)
        self.cp.add_bool_or([x.Not(), y.Not(), z])
        return z

    def _one_place(self) -> None:
        """What is a state's, is kept for all trips or is written over has one place and no second buffer."""
        for cls, moves in self.moves.items():
            several = [d for d in self.graph.classes[cls] if depth_of(d) > ALONE]
            for n in moves if len(self.graph.classes[cls]) > 1 else ():
                for d, m in product(several, self._fixed[buffered(n)]):
                    self.cp.add_bool_or([self.chosen[x.index].Not() for x in (d, m)])

    @cached_property
    def _fixed(self) -> dict[int, list[Node]]:
        """By class, the nodes with which what is there has a place that does not change from trip to trip."""
        out: dict[int, list[Node]] = defaultdict(list)
        for n in self.graph.nodes:
            if n.op in ALIASES or n.op in OVERWRITES or n.op in ("PArg", "PProj"):
                out[n.cls].append(n)
            if n.op in ("Give", "NextIn"):
                out[n.children[0]].append(n)
        return out

    def _flags(self) -> None:
        """Each of several buffers has a flag of its own between two pipes, but where the author gave their number.

        Scales go along with their operands.
        """
        taken: dict[tuple[Level, str], list] = defaultdict(list)
        for cls, moves in self.moves.items():
            offered = self.graph.classes[cls]
            place = place_of(offered[0])
            for d in offered if len(offered) > 1 else ():
                if depth_of(d) > ALONE and not place.tile.dtype.scale:
                    taken[place.level, self.prices[moves[0].index].pipe].append(depth_of(d) * self.chosen[d.index])
        for terms in taken.values():
            self.cp.add(sum(terms) <= len(USABLE_EVENT_IDS))

    def _capacity(self) -> None:
        """Lower bounds: what lives through a whole loop (states, kept values, buffers of two and more) lives there together.

        Before one tile has a second buffer, each one that a loop moves has a place that it shares with none of the others.
        """
        held: dict[tuple[int, Level], list] = defaultdict(list)
        alone: dict[tuple[int, Level], list] = defaultdict(list)
        second: dict[tuple[int, Level], list] = defaultdict(list)
        for n in self.graph.nodes:
            if n.op in ("State", "Keep"):
                place = self.graph.demands[n.children[0]]
                held[n.payload[0], place.level].append(slot_bytes(place) * self._new_place(n))
            elif n.op == "Buffers":
                place, several = place_of(n), depth_of(n) > ALONE
                size = depth_of(n) * slot_bytes(place, trips_in(n))
                (held if several else alone)[n.region, place.level].append(size * self.chosen[n.index])
                second[n.region, place.level] += [self.chosen[n.index]] if several else []
        for loop in self.skew:
            for level in (Level.L1, Level.UB, Level.L0C):
                around = [x for r in self.graph.ancestors(loop) for x in held[r, level]]
                limit = self.chip.level_bytes(level)
                if around:
                    self.cp.add(sum(around) <= limit)
                if second[loop, level] and alone[loop, level]:
                    any_second = self.cp.new_bool_var("")
                    for on in second[loop, level]:
                        self.cp.add_implication(on, any_second)
                    self.cp.add(sum(around) + sum(alone[loop, level]) <= limit).only_enforce_if(any_second)
        self._live()

    def _live(self) -> None:
        """What is live at the least while an instruction runs."""
        known: dict[Live, Any] = {}
        for full in overfull(self.graph, self.chip, slot_bytes):
            for v in (v for v in full.live if not v.always and v not in known):
                known[v] = self.cp.new_bool_var("")
                for on in (*(self.chosen[m.index] for m in v.readers), *(self.used[c] for c in v.classes)):
                    self.cp.add_implication(on, known[v])
            total = full.own + sum(v.bytes * (1 if v.always else known[v]) for v in full.live)
            self.cp.add(total <= full.limit).only_enforce_if(self.chosen[full.node.index])
        for cls, c in used_with(self.graph) if known else ():
            self.cp.add_implication(self.used[cls], self.used[c])

    def _new_place(self, n: Node) -> Any:
        """True where a state or a kept value has a place of its own, not one that an outer loop holds already."""
        held = []
        for q in self.graph.classes[n.children[0]]:
            on = self.chosen[q.index]
            if n.op == "Keep" and q.op in HELD:
                held.append(on)
            elif n.op == "State" and q.op == "Give":
                outer = [x for x in self.graph.classes[q.children[0]] if x.op == "PArg"]
                held += [self._both(on, self.chosen[x.index]) for x in outer]
        if not held:
            return self.chosen[n.index]
        own = self.cp.new_bool_var("")
        self.cp.add_bool_or([own, self.chosen[n.index].Not(), *held])
        return own

    # ---- time ----

    def _makespan(self) -> Any:
        loads: dict[int, dict[str, list]] = defaultdict(lambda: defaultdict(list))
        for n, price in zip(self.graph.nodes, self.prices, strict=True):
            for pipe, c in price.cycles.items():
                loads[n.region][pipe].append(c * self.chosen[n.index])
        outer = (loop for loop, r in self.graph.parents.items() if r == 0 and loop in self.skew)
        return sum(x for terms in loads[0].values() for x in terms) + sum([self._loop_time(loop, loads) for loop in outer])

    def _loop_time(self, loop: int, loads: dict[int, dict[str, list]]) -> Any:
        """As `makespan.loop_time`, but for the way there and back: `skews` follow that."""
        trips = self.graph.trips[loop]
        inner = sum(self._loop_time(k, loads) for k, r in self.graph.parents.items() if r == loop and k in self.skew)
        total = sum(sum(x) for x in loads[loop].values())
        inside = self._inside(loop)
        waiting = self._waiting(inside, loads[loop])
        slowest = {core: self._max([x for p, x in waiting.items() if p.startswith(core)]) for core in ("AIC", "AIV")}
        overall = self._max(list(slowest.values()))
        uncovered = self._uncovered(inside, loads[loop])
        each = overall + inner + uncovered
        hop = round(self.chip.sync.cross_latency)
        time = self.loop_times[loop] = self.cp.new_int_var(0, HORIZON, f"time{loop}")
        meets = self._meets(loop)
        for skew, on in self.skew[loop]:
            once = total - overall + ((HOPS + skew - 1) * hop if skew else 0)
            filled = (on,) if skew else (on, meets.Not())
            self.cp.add(time >= trips * each + once).only_enforce_if(*filled)
            if skew and not self.graph.parents[loop]:
                late = self._meets(0, BACK)
                self.cp.add(time >= trips * each + 2 * once).only_enforce_if(on, late)
            if not skew:
                turns = slowest["AIC"] + slowest["AIV"] + inner + 2 * hop + uncovered
                self.cp.add(time >= trips * turns).only_enforce_if(on, meets)
        return time

    def _inside(self, loop: int) -> list[tuple[Buffer, Node, Node]]:
        """What a loop may hold: the buffers, the move, the node that says how many."""
        out = []
        for cls, moves in self.moves.items():
            if moves[0].region == loop:
                out += [(self._buffer(n, d), n, d) for n in moves for d in self.graph.classes[cls]]
        return out

    def _buffer(self, move: Node, decision: Node) -> Buffer:
        return Buffer.of(move, decision, self.prices[move.index], self.chip.sync.refill)

    def _waiting(self, inside: list[tuple[Buffer, Node, Node]], loads: dict[str, list]) -> dict[str, Any]:
        """As `buffers.busy`: what each pipe does in a trip, and the moves that it waits for."""
        pipes = {p: list(x) for p, x in loads.items()}
        late = self._late(inside)
        for b, n, d in inside:
            if b.depth == ALONE and not b.late:
                on = self.chosen[d.index]
                on = on if len(self.moves[d.cls]) == 1 else self._both(self.chosen[n.index], on)
                for p, x in pipes.items():
                    x += [b.cycles * on] if waits(p, b.pipe) else []
        for p, x in pipes.items():
            x += [late] if late is not None and any(waits(p, b.pipe) for b, *_ in inside if b.trips > 1) else []
        return {p: sum(x) for p, x in pipes.items()}

    def _late(self, inside: list[tuple[Buffer, Node, Node]]) -> Any:
        """The longest `buffers.pause` of a loop; None where no load is for several trips."""
        several = {n: b for b, n, _ in inside if b.trips > 1}
        if not several:
            return None
        late = self.cp.new_int_var(0, HORIZON, "")
        for n, long in several.items():
            for other, m, d in inside:
                if cycles := pause(long, other):
                    self.cp.add(late >= cycles).only_enforce_if(*(self.chosen[x.index] for x in (n, m, d)))
        return late

    def _uncovered(self, inside: list[tuple[Buffer, Node, Node]], loads: dict[str, list]) -> Any:
        """As `buffers.uncovered`."""
        handovers, idle = (self.cp.new_int_var(0, HORIZON, "") for _ in range(2))
        for b, n, d in (x for x in inside if not x[0].late):
            on = {self.chosen[d.index]} if len(self.moves[d.cls]) == 1 else {self.chosen[d.index], self.chosen[n.index]}
            self.cp.add(handovers >= b.handover).only_enforce_if(*on)
        several = [(b, d) for b, _, d in inside if b.trips > 1 and b.depth == ALONE]
        for b, d in several:
            work = sum(x for p, terms in loads.items() if waits(p, b.pipe) for x in terms)
            self.cp.add(b.trips * idle >= work).only_enforce_if(self.chosen[d.index])
        return handovers + idle if several else handovers

    def _meets(self, loop: int, ways: Set[str] = MEETING) -> Any:
        """True where cube and vector cores meet in the loop (0: outside of all), in one of these ways."""
        meets = self.cp.new_bool_var(f"meets{loop}")
        meeting = [self.chosen[n.index] for n in self.graph.nodes if n.op in ways and n.region == loop]
        for on in meeting:
            self.cp.add_implication(on, meets)
        self.cp.add_bool_or([*meeting, meets.Not()])
        return meets

    def _max(self, terms: list) -> Any:
        top = self.cp.new_int_var(0, HORIZON, "")
        for t in terms:
            self.cp.add(top >= t)
        return top
