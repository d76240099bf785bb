"""A schedule: the chosen instructions in their order of issue, and the storages they read and write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Union

from tile_eg.egraph import Graph, Node
from tile_eg.errors import Span
from tile_eg.ops.physical import VECTOR
from tile_eg.ops.records import record
from tile_eg.ops.types import DType, Level

FIRST, LAST = "first", "last"
"""What a step of a joined schedule is for: a tile's first trip, or its last one."""
IN_TURN = "results-apart"
"""The move that makes outputs one behind the other which have only inputs in common."""
StorageId = Union[int, str]  # a number on chip or in the workspace, a tensor's name in GM


@dataclass(eq=False)
class Storage:
    """A piece of one memory, `slots` times for a ring over loop `ring`; `least` slots are needed for correctness.

    `rows` and `cols` are what one core holds; `share` as in `egraph.Where`. A slot holds the tiles of `ahead` trips of loop
    `region`, side by side. The author asked for `given` slots (0: for none). `decisions` are the nodes that say how many it has;
    `held`: so it is asked for, and none can be missed. `stays`: it holds the tiles of so many trips for a later loop. `later`: so
    many of its slots hold tiles for readers in later trips, beyond its buffers. Between two of its rows there is a `gap` of so
    many elements. A slot holds so many `tiles`, of which each vector core has one.
    """

    id: int
    name: str
    level: Level
    rows: int
    cols: int
    dtype: DType
    share: int | None
    slots: int = 1
    ring: int | None = None
    least: int = 1
    slot_bytes: int = 0
    span: Span | None = None
    ahead: int = 1
    region: int = 0
    given: int = 0
    decisions: tuple[Node, ...] = ()
    held: bool = False
    stays: int = 0
    later: int = 0
    gap: int = 0
    tiles: int = 1

    @property
    def depth(self) -> int:
        """Its buffers: the slots into which loads may run ahead, and the one that is read."""
        return self.slots - self.later

    @property
    def spare(self) -> int:
        """The slots that it could do without, beyond those that its author asked for."""
        return 0 if self.held else self.slots - max(self.least, self.given)

    @property
    def bytes(self) -> int:
        return self.slots * self.slot_bytes


@dataclass(eq=False)
class Step:
    """One chosen node as an instruction: destination, sources (P children in order) and the versions that it must find there.

    In a loop that goes on from tile to tile (`Schedule.joined`) one that is `at` FIRST or LAST is done in that trip alone.
    """

    node: Node
    region: int
    pipe: str
    cycles: int
    dst: StorageId
    srcs: tuple[StorageId, ...]
    versions: tuple[int, ...]
    lag: int = 0
    back_edge: bool = False
    scratch: int | None = None
    at: str = ""

    @property
    def core(self) -> str:
        return self.pipe.split(".")[0]


def overwritten(node: Node, srcs: Sequence[StorageId]) -> tuple[StorageId, ...]:
    """The sources whose place an instruction's result may take: of one that it also reads otherwise, as a row of a tile beside
    the tile, something would be gone before it is read."""
    term = VECTOR.get(node.op)
    leading = 0 if term is None else len(srcs) if term.in_place < 0 else term.in_place
    return tuple(s for s in srcs[:leading] if s not in srcs[leading:])


@dataclass(eq=False)
class LoopStep:
    """A loop: its body in order of issue; `skew` trips more run, with the first and last ones guarded by each step's lag.

    Loads of its body may bring the tiles of `ahead` trips, before the first of these. Each crossing between cores adds `halves`
    half trips to a lag. What the body loads has as many slots as were `given` by the author, no more and no less (0: left open).
    """

    loop: int
    trips: int
    body: list[Item]
    skew: int = 0
    ahead: int = 1
    halves: int = 0
    given: int = 0


Item = Union[Step, LoopStep]


@record(eq=False)
class Rest:
    """So many `tiles`, the first in their order, whose sums all cores do in so many parts each: `sums` are a block's, `added` is
    what vector cores make of all parts while the next tiles are computed."""

    parts: int
    tiles: int
    sums: Schedule
    added: Schedule


@dataclass(eq=False)
class Schedule:
    """An ordered and legal choice. `cost` is the search model's, in cycles; `peaks` is bytes by level, as planned.

    `crowded` grows with what had to share places, `shrunk` counts the slots that buffers gave up.
    `grid` is how the tiles of the grid go to the cores; None: a launch block for each. A ring over loop 0 turns with the tiles
    that a block goes through; where UB has room for `copies` of all that a tile needs, they take turns. What lies in the storages
    `once` is the same for all tiles: a block makes it before its first one, and nothing else has the place of what tiles read.
    A product in `parts` has a `second` phase, which begins when all cores have met; `grid` is then that of its parts. Of `tiles`
    (the first in their order, and how many) alone is done what a phase of a launch does that shares the tiles with another one.
    What is done `behind` it, once all cores have met, needs more of the product that it makes in tiles than a block has of it:
    `parted` is the move that made it so. Where that is `IN_TURN`, these are other outputs, which begin when all cores have met if
    it `meets`, else on each core that is done.
    The `rest` are tiles that would not fill a turn of all cores.
    Where no schedule has flags enough, one that is `yielding` gives up slots that its author asked for. Where it is `shuffled`,
    each core begins its sums over depth at another trip; loads of the tensors `past_l2` leave L2 out. A `steady` one has the
    trips of its skewed loops in the order in which they run once the loop is full. In a `grouped` one V does what does not need
    each other side by side; loops of an `early` one issue what a trip loads before the work of the trip before it. Loads of an
    `ahead` one run ahead of readers in later trips. Where flag ids are few, rings of a `few_ids` one have fewer than slots; in
    another one they give up slots, and `fuller` is it before that. One that is `prefetched` issues what each tile loads outside
    of loops before the work on the tile before it, into `own_places`: nothing else is there meanwhile. The one loop of a `joined`
    one goes on from tile to tile (`extract/joined.py`): all that a tile does stands in it. There are more results in
    L0C that are in `turns` than places for them. `refill` is the chip's.
    """

    graph: Graph
    nodes: list[Node]
    top: list[Item]
    storages: dict[int, Storage]
    cost: float = 0.0
    peaks: dict[Level, int] = field(default_factory=dict)
    addresses: dict[int, tuple[int, ...]] = field(default_factory=dict)
    crowded: int = 0
    shrunk: int = 0
    grid: Node | None = None
    copies: int = 1
    once: frozenset[int] = frozenset()
    parts: Node | None = None
    second: Schedule | None = None
    behind: Schedule | None = None
    parted: str = ""
    meets: bool = True
    tiles: tuple[int, int] | None = None
    rest: Rest | None = None
    yielding: bool = False
    shuffled: bool = False
    past_l2: frozenset[str] = frozenset()
    steady: bool = False
    turns: frozenset[int] = frozenset()
    prefetched: bool = False
    grouped: bool = False
    early: bool = False
    ahead: bool = False
    few_ids: bool = False
    fuller: Schedule | None = None
    own_places: bool = False
    joined: bool = False
    refill: Sequence[int] = (0,)

    @property
    def on_cores(self) -> Node | None:
        """The decision how the kernel's tiles go to the cores; None: a launch block for each."""
        return self.parts or self.grid

    @property
    def persistent(self) -> bool:
        """Whether a launch block goes through several tiles."""
        return self.grid is not None and self.grid.op == "Persistent"

    @property
    def one_phase(self) -> bool:
        """Whether all its tiles are done alike, and no cores meet."""
        return self.parts is None and self.second is None and self.rest is None and self.behind is None

    @property
    def alike(self) -> bool:
        """Whether all its tiles are done alike: in one phase, or behind copies of operands in strips."""
        return self.second is None and self.rest is None and self.behind is None and (self.parts is None or self.in_strips)

    @property
    def in_strips(self) -> bool:
        """Whether operands are loaded from copies of them in strips, in all of its tiles or in those of its second phase."""
        return self.parts is not None and self.parts.op == "Strips"

    @property
    def phases(self) -> list[Schedule]:
        """The schedules of a launch, in the order in which cores come to them."""
        rest = [self.rest.sums, self.rest.added] if self.rest else []
        return [self, *rest, *([self.second] if self.second else []), *(self.behind.phases if self.behind else [])]

    @property
    def in_turn(self) -> list[Schedule]:
        """The schedules of outputs that are made one behind the other, each without those behind it; itself if there is one."""
        first = replace(self, behind=None)
        return [first, *(self.behind.in_turn if self.behind else [])] if self.parted == IN_TURN else [self]

    @property
    def finished(self) -> bool:
        """Whether its plan has what no other plan of its choice has."""
        return self.shuffled or self.prefetched or self.joined or bool(self.past_l2)

    @property
    def loops(self) -> bool:
        """Whether a block has loops."""
        return any(isinstance(item, LoopStep) for item in self.top)

    def holding(self, decision: Node) -> Storage | None:
        """The storage about whose slots a node decides; None where it cannot have several, or more than are offered."""
        found = (s for s in self.storages.values() if decision in s.decisions)
        return next((s for s in found if s.slots == decision.payload[-1]), None)

    @cached_property
    def labels(self) -> dict[int, str]:
        """A name for each storage that no other one in its memory has: its buffer's in the source, and a number behind it."""
        names = {s.name for s in self.storages.values()}
        counts: Counter[tuple[str, Level]] = Counter()
        out = {}
        for sid, s in self.storages.items():
            label, stem = s.name, f"{s.name}_" if s.name[-1:].isdigit() else s.name
            counts[s.name, s.level] += 1
            while counts[s.name, s.level] > 1 and (label := f"{stem}{counts[s.name, s.level]}") in names:
                counts[s.name, s.level] += 1
            out[sid] = label
        return out

    def before_tiles(self, item: Item) -> bool:
        """Whether a launch block does this once, before the tiles that it goes through."""
        return isinstance(item, Step) and item.dst in self.once

    def walk(self) -> Iterator[tuple[Step, tuple[LoopStep, ...]]]:
        """Every step with the loops around it, outermost first."""
        yield from walk(self.top)


def walk(items: list[Item], around: tuple[LoopStep, ...] = ()) -> Iterator[tuple[Step, tuple[LoopStep, ...]]]:
    for item in items:
        if isinstance(item, LoopStep):
            yield from walk(item.body, (*around, item))
        else:
            yield item, around
