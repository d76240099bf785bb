"""One core in time: a scalar unit that issues in program order, and in-order pipes that run ahead of each other.

Times are cycles from the start of the block. A pipe takes its next instruction when the one before has left it (`ready`); results
are there some cycles later (`done`), and it is this that flags, barriers and flags between cores wait for. What a core does is a
list of steps, which `timeline.steps` makes of a stream.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from tile_eg.chips import Chip
from tile_eg.ir.index import Expr, evaluate
from tile_eg.ir.machine import CORE_PIPES, SCALAR_PIPE
from tile_eg.ir.program import AIC, AIV, CrossSet, CrossWait, Instr, Node, SetFlag, WaitFlag
from tile_eg.ops.records import record
from tile_eg.timeline.expressions import unsettled
from tile_eg.timeline.rings import Ring
from tile_eg.timeline.shapes import Shapes
from tile_eg.timeline.works import Price

Env = dict[str, int]
Step = Callable[[], bool]
Begin = Callable[[], "bool | float"]
"""What starts something that waits; False where it cannot start yet."""
Key = TypeVar("Key", bound=Hashable)


class StreamError(Exception):
    """A Program whose streams cannot run to their end: a wait that nothing satisfies, a pipe that its core lacks."""


@record
class Span:
    """When one instruction occupied its pipe; `complete` is when its result was there, `env` the loop variables at its time."""

    core: str
    pipe: str
    instr: Instr
    start: float
    end: float
    complete: float
    env: Env


@record
class Handover:
    """A flag from the time it was set to the time its wait was over, by (core, pipe)."""

    wait: WaitFlag | CrossWait
    env: Env
    source: tuple[str, str]
    target: tuple[str, str]
    set: float
    taken: float

    @property
    def name(self) -> str:
        return describe(self.wait, self.env)


@dataclass
class Record:
    """What happened, where somebody wants to look at it."""

    spans: list[Span] = field(default_factory=list)
    handovers: list[Handover] = field(default_factory=list)


Sized = tuple[Instr, int, int, int, int]
"""What has one price: an instruction, its rows, columns and depth, and the turn that it is in."""


class Prices(Protocol):
    """Whoever can tell what an instruction costs, with its sizes and in the `turn` that it is in."""

    def turn(self, instr: Instr) -> Expr: ...
    def price(self, instr: Instr, rows: int, cols: int, depth: int, turn: int = 0) -> Price: ...


class Use:
    """How often a core ran an instruction of one price."""

    __slots__ = ("of", "pipe", "price", "times")

    def __init__(self, of: Sized, price: Price, pipe: str) -> None:
        self.of, self.price, self.pipe, self.times = of, price, pipe, 0


class Pipe:
    """`waiting` holds what was issued and cannot start yet: a wait at its head finds no flag. `starts` are the last starts.

    `room` is when the last place of an instruction that takes several was free.
    """

    __slots__ = ("done", "name", "ready", "room", "starts", "waiting")

    def __init__(self, name: str, depth: int) -> None:
        self.name, self.ready, self.done, self.room = name, 0.0, 0.0, 0.0
        self.starts: deque[float] = deque(maxlen=depth)
        self.waiting: deque[tuple[Begin, Node, Env]] = deque()

    def run(self, price: Price, issued: float) -> float:
        """An instruction that nothing holds; when it started."""
        start = self.ready if self.ready > issued else issued
        self.ready = end = start + price.busy
        if end + price.fill > self.done:
            self.done = end + price.fill
        if price.places == 1:
            self.starts.append(start)
        else:
            self._spread(start, price)
        return start

    def _spread(self, start: float, price: Price) -> None:
        """Of an instruction that is written as many: their starts, and when the last one found room in the queue."""
        n, depth, before = price.places, self.starts.maxlen or 1, len(self.starts)
        first = max(0, n - depth - 1)
        added = [start + price.busy * i / n for i in range(first, n)]
        held = [*self.starts, *added]
        self.room = held[-depth - 1] if before + len(added) > depth else 0.0
        self.starts.extend(added)

    def run_along(self, price: Price, issued: float, other: tuple[float, float]) -> tuple[float, float]:
        """An instruction that follows another pipe's block by block: it starts and ends no earlier; when it did."""
        start = max(self.ready, issued, other[0])
        self.ready = end = max(start + price.busy, other[1])
        self.done = max(self.done, end + price.fill)
        self.starts.append(start)
        return start, end

    def wake(self) -> None:
        """Starts what waited, up to the next wait without a flag."""
        while self.waiting and self.waiting[0][0]() is not False:
            self.waiting.popleft()


class Mark(NamedTuple):
    """Where a core was when it began a tile: when all before it will be done, what its pipes were busy by then, and the bytes by
    path."""

    done: float
    busy: dict[str, float]
    bytes: dict[str, float]


@dataclass
class Unit:
    """Blocks of L0C under unit flags: when the last mmad filled them (None: nothing is there), and the fixpipe drained them."""

    filled: tuple[float, float] | None = None
    drained: tuple[float, float] = (0.0, 0.0)


@dataclass(eq=False)
class Place:
    """A loop of a core: its variable and trips, the expressions on which the work of a trip depends, and the rings that go round.

    `some`: not all of its trips are run, so that none can be skipped. `nested`: a trip is long, it holds other loops.
    `turn` counts the trips that the core has begun, in all its runs. `turned` keeps what becomes of the core's names, by trips
    and how many names there are, and `paces` the cycles of each period of trips that was met.
    """

    var: str
    trips: int
    shapes: Shapes = field(default_factory=Shapes)
    rings: Sequence[Ring] = ()
    some: bool = False
    nested: bool = False
    turn: int = 0
    turned: dict[tuple[int, int], Sequence[int] | None] = field(default_factory=dict)
    paces: dict[int, float] = field(default_factory=dict)


class Core:
    """The cube core, or a vector core, of one block. `kind` is AIC or AIV, `name` says which of the two vector cores it is.

    `arrivals` are the times at which its counters are raised and the pipe that raised them, by (sender, id); `arrived` those at
    which it came to a meeting (True: of its kind alone), `meetings` those at which all cores of its block had. `code` are its
    steps, `nodes` what they stand for, `env` the values of the loop variables now; `settle` simplifies an index expression.
    """

    def __init__(self, name: str, chip: Chip, env: Env, record: Record | None = None) -> None:
        self.name, self.kind, self.chip, self.env, self.record = name, AIC if name == AIC else AIV, chip, env, record
        depth = chip.limits.queue_depth
        self.pipes = {p: Pipe(p, depth) for p in (*CORE_PIPES[self.kind], SCALAR_PIPE)}
        self.clock = 0.0
        self.at = 0
        self.code: list[Step] = []
        self.nodes: list[Node] = []
        self.loops: list[Place] = []
        self.places: list[Place] = []
        self.flags: defaultdict[tuple[str, str, int], deque[float]] = defaultdict(deque)
        self.arrivals: defaultdict[tuple[str, int], deque[tuple[float, str]]] = defaultdict(deque)
        self.units: defaultdict[tuple[str, int, int, int], Unit] = defaultdict(Unit)
        self.partners: list[Core] = []
        self.peers: dict[str, Core] = {}
        self.uses: list[Use] = []
        self.arrived: defaultdict[bool, list[float]] = defaultdict(list)
        self.meetings: list[float] = []
        self.jumped = False
        self.tiles: Sequence[int] = ()
        self.marks: list[Mark] = []
        self.settle: Callable[[Expr], Expr] = unsettled
        self.prices: Prices
        self.named = 0

    def advance(self) -> bool:
        """Issues until the steps end or something blocks; whether anything was issued."""
        code, end, at, moved = self.code, len(self.code), self.at, False
        while at < end:
            self.at = at + 1
            if not code[at]():
                self.at = at
                return moved
            at, moved = self.at, True
        return moved

    def release(self) -> None:
        """Lets go of all that it holds. Its steps know their core, so that only Python's collector would free them."""
        vars(self).clear()

    def pipe(self, name: str, node: Node) -> Pipe:
        if name not in self.pipes:
            raise StreamError(f"{self.name} has no pipe {name}: {describe(node)}")
        return self.pipes[name]

    def use(self, of: Sized, pipe: str) -> Use:
        self.uses.append(Use(of, self.prices.price(*of), pipe))
        return self.uses[-1]

    def begin_again(self, prices: Prices) -> None:
        """As it was before it ran, with prices of the same turns."""
        self.prices, self.clock, self.at, self.jumped, self.marks = prices, 0.0, 0, False, []
        for use in self.uses:
            use.price, use.times = prices.price(*use.of), 0
        for pipe in self.pipes.values():
            pipe.ready = pipe.done = pipe.room = 0.0
            pipe.starts.clear()
        for times in self.flags.values():
            times.clear()
        for name in [*self.flags][self.named :]:
            del self.flags[name]
        for place in self.places:
            place.turned.clear()
            place.paces.clear()
        for seen in (self.arrivals, self.units, self.arrived, self.meetings):
            seen.clear()

    @property
    def end(self) -> float:
        return max(self.clock, *(max(p.done, p.ready) for p in self.pipes.values()))

    @property
    def busy(self) -> dict[str, float]:
        """Cycles by pipe, of those that did something."""
        return _sums((u.pipe, u.price.busy * u.times) for u in self.uses)

    @property
    def bytes(self) -> dict[str, float]:
        """Bytes by path."""
        return _sums((u.price.path, u.price.bytes * u.times) for u in self.uses if u.price.path)

    def stuck(self) -> list[str]:
        """What the core waits for, in words; empty when it has finished."""
        at = self.at
        out = [f"{self.name} stops at {describe(self.nodes[at], self.env)}"] if at < len(self.code) else []
        heads = ((p, p.waiting[0]) for p in self.pipes.values() if p.waiting)
        return out + [f"{self.name} {p.name} waits at {describe(node, env)}" for p, (_, node, env) in heads]


def _sums(items: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    out: dict[Key, float] = {}
    for key, n in items:
        if n:
            out[key] = out.get(key, 0) + n
    return out


def describe(node: Node, env: Env | None = None) -> str:
    """A node in few words, its flag id evaluated, with the trip of the loop that it stands in."""
    where = ", ".join(f"{k}={v}" for k, v in (env or {}).items() if k not in ("block", "sub"))
    where = f" ({where})" if where else ""
    if isinstance(node, SetFlag | WaitFlag):
        flag = evaluate(node.id, env) if env is not None else node.id
        return f"{type(node).__name__}<{node.src}_{node.dst}>({flag}){where}"
    if isinstance(node, CrossSet | CrossWait):
        return f"{type(node).__name__}({node.id}){where}"
    if isinstance(node, Instr):
        return f"{node.op}{where}"
    return f"{type(node).__name__}{where}"
