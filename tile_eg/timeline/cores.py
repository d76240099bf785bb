"""One core in time: a scalar unit that issues in program order, and in-order pipes that run ahead of each other.

Times are cycles from the start of the block. A pipe takes its next instruction when the one before has left it (`ready`); results
are there some cycles later (`done`), and it is this that flags, barriers and flags between cores wait for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from tile_eg.chips import Chip
from tile_eg.ir.index import evaluate
from tile_eg.ir.machine import CORE_PIPES, SCALAR_PIPE
from tile_eg.ir.program import CrossSet, CrossWait, Instr, Loop, Node, PipeBarrier, SetFlag, WaitFlag
from tile_eg.timeline.expand import Env, Step
from tile_eg.timeline.works import Price

Event = tuple[str, str, int]
Entry = tuple[Node, Env, float]


class StreamError(Exception):
    """A Program whose streams cannot run to their end: a wait that nothing satisfies, a pipe that its core lacks."""


class Prices(Protocol):
    """Whoever can tell what an instruction costs."""

    def price(self, instr: Instr, env: Env) -> Price: ...


@dataclass(frozen=True)
class Span:
    """When one instruction occupied its pipe; `complete` is when its result was there, `env` the loop variables at its time."""

    core: str
    pipe: str
    instr: Instr
    start: float
    end: float
    complete: float
    env: Env


@dataclass(frozen=True)
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


@dataclass
class Pipe:
    """`waiting` holds what was issued and cannot start yet: a wait at its head finds no flag. `starts` are the last starts."""

    name: str
    starts: deque[float]
    ready: float = 0.0
    done: float = 0.0
    busy: float = 0.0
    waiting: deque[Entry] = field(default_factory=deque)


class Core:
    """The cube core, or a vector core, of one block. `arrivals` are the times at which its counters are raised, by id."""

    def __init__(self, name: str, stream: Iterator[Step], pricer: Prices, chip: Chip, record: Record) -> None:
        self.name, self.stream, self.pricer, self.chip, self.record = name, stream, pricer, chip, record
        self.pipes = {p: Pipe(p, deque(maxlen=chip.limits.queue_depth)) for p in (*CORE_PIPES[name], SCALAR_PIPE)}
        self.clock = 0.0
        self.held: Step | None = None
        self.finished = False
        self.flags: dict[Event, deque[float]] = {}
        self.arrivals: dict[int, deque[tuple[float, str]]] = {}
        self.other: Core | None = None
        self.bytes: dict[str, int] = {}
        self.tensors: dict[tuple[str, bool], float] = {}

    # ---- the scalar unit --------------------------------------------------------------------------------------------------

    def advance(self) -> bool:
        """Issues until the stream ends or something blocks; whether anything was issued."""
        moved = False
        while not self.finished:
            step = self.held or next(self.stream, None)
            if step is None:
                self.finished = True
                return True
            self.held = None if self._issue(*step) else step
            if self.held:
                return moved
            moved = True
        return moved

    def _issue(self, node: Node, env: Env) -> bool:
        """Gives a node to its pipe; False when the scalar unit must stop before it."""
        sync = self.chip.sync
        if isinstance(node, Loop):
            self.clock += sync.scalar_loop
            return True
        if isinstance(node, CrossWait):
            return self._cross_wait(node)
        if isinstance(node, PipeBarrier) and node.pipe == "ALL":
            return self._barrier_all()
        pipe = self._pipe(node)
        if pipe.name == SCALAR_PIPE and isinstance(node, WaitFlag):
            return self._scalar_wait(node, env)
        if not self._queue(pipe):
            return False
        self.clock += sync.scalar_issue
        if pipe.waiting or not self._start(pipe, (node, env, self.clock)):
            pipe.waiting.append((node, env, self.clock))
        return True

    def _pipe(self, node: Node) -> Pipe:
        name = node.dst if isinstance(node, WaitFlag) else node.src if isinstance(node, SetFlag) else getattr(node, "pipe", "")
        if name not in self.pipes:
            raise StreamError(f"{self.name} has no pipe {name}: {describe(node)}")
        return self.pipes[name]

    def _queue(self, pipe: Pipe) -> bool:
        """Waits for room in a pipe's queue; False when the queue is full of what cannot start yet."""
        depth = self.chip.limits.queue_depth
        if len(pipe.waiting) >= depth:
            return False
        if len(pipe.starts) == depth:
            self.clock = max(self.clock, pipe.starts[0])
        return True

    def _cross_wait(self, node: CrossWait) -> bool:
        times = self.arrivals.get(node.id)
        if not times or self.other is None:
            return False
        there, pipe = times.popleft()
        self.clock = max(self.clock + self.chip.sync.scalar_issue, there)
        source, sent = (self.other.name, pipe), there - self.chip.sync.cross_latency
        self.record.handovers.append(Handover(node, {}, source, (self.name, SCALAR_PIPE), sent, self.clock))
        return True

    def _scalar_wait(self, node: WaitFlag, env: Env) -> bool:
        times = self.flags.get(_event(node, env))
        if not times:
            return False
        there = times.popleft()
        self.clock = max(self.clock + self.chip.sync.scalar_issue, there)
        self._taken(node, env, there, self.clock)
        return True

    def _taken(self, node: WaitFlag, env: Env, there: float, time: float) -> None:
        ends = (self.name, node.src), (self.name, node.dst)
        self.record.handovers.append(Handover(node, env, *ends, there - self.chip.sync.flag, time))

    def _barrier_all(self) -> bool:
        if any(p.waiting for p in self.pipes.values()):
            return False
        self.clock = max(self.clock, *(p.done for p in self.pipes.values()))
        return True

    # ---- the pipes --------------------------------------------------------------------------------------------------------

    def _start(self, pipe: Pipe, entry: Entry) -> bool:
        """Runs an issued node at the head of its pipe; False when it is a wait without its flag."""
        node, env, issued = entry
        if isinstance(node, Instr):
            self._run(pipe, entry, self.pricer.price(node, env))
        elif isinstance(node, WaitFlag):
            times = self.flags.get(_event(node, env))
            if not times:
                return False
            there = times.popleft()
            pipe.ready = max(pipe.ready, issued, there) + self.chip.sync.flag
            self._taken(node, env, there, pipe.ready)
        elif isinstance(node, SetFlag):
            self._set(node, env, max(pipe.done, pipe.ready, issued))
        elif isinstance(node, PipeBarrier):
            pipe.ready = max(pipe.ready, pipe.done, issued)
        elif isinstance(node, CrossSet):
            self._cross_set(node, max(pipe.done, pipe.ready, issued))
        return True

    def _run(self, pipe: Pipe, entry: Entry, price: Price) -> None:
        node, env, issued = entry
        start = max(pipe.ready, issued)
        pipe.ready = start + price.busy
        pipe.done = max(pipe.done, pipe.ready + price.fill)
        pipe.busy += price.busy
        pipe.starts.append(start)
        if price.path:
            self.bytes[price.path] = self.bytes.get(price.path, 0) + price.bytes
        if price.tensor:
            key = (price.tensor, price.writes)
            self.tensors[key] = self.tensors.get(key, 0) + price.bytes * (1 if price.writes else price.miss)
        if isinstance(node, Instr):
            self.record.spans.append(Span(self.name, pipe.name, node, start, pipe.ready, pipe.ready + price.fill, env))

    def _set(self, node: SetFlag, env: Env, time: float) -> None:
        self.flags.setdefault(_event(node, env), deque()).append(time + self.chip.sync.flag)
        waiter = self.pipes.get(node.dst)
        while waiter and waiter.waiting and self._start(waiter, waiter.waiting[0]):
            waiter.waiting.popleft()

    def _cross_set(self, node: CrossSet, time: float) -> None:
        if self.other is not None:
            self.other.arrivals.setdefault(node.id, deque()).append((time + self.chip.sync.cross_latency, node.pipe))

    @property
    def end(self) -> float:
        return max(self.clock, *(max(p.done, p.ready) for p in self.pipes.values()))

    def stuck(self) -> list[str]:
        """What the core waits for, in words; empty when it has finished."""
        out = [f"{self.name} stops at {describe(*self.held)}"] if self.held else []
        heads = ((p, p.waiting[0]) for p in self.pipes.values() if p.waiting)
        return out + [f"{self.name} {p.name} waits at {describe(node, env)}" for p, (node, env, _) in heads]


def _event(node: SetFlag | WaitFlag, env: Env) -> Event:
    return node.src, node.dst, evaluate(node.id, env)


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


def run_cores(cores: list[Core]) -> None:
    """Runs the cores of one block against each other. StreamError names every wait that nothing satisfies."""
    if len(cores) == 2:
        cores[0].other, cores[1].other = cores[1], cores[0]
    moving = True
    while moving:
        moving = max(core.advance() for core in cores)
    stuck = [text for core in cores for text in core.stuck()]
    if stuck:
        raise StreamError("deadlock: " + "; ".join(stuck))
