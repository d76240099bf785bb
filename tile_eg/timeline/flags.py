"""The steps of flags and barriers: within a core, and between the cores of a block."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tile_eg.ir.index import evaluate, wrap
from tile_eg.ir.machine import SCALAR_PIPE
from tile_eg.ir.program import CrossSet, CrossWait, Node, PipeBarrier, Scalar, SetFlag, WaitFlag
from tile_eg.timeline.cores import Core, Handover, Pipe, Step
from tile_eg.timeline.expressions import compiled

Times = deque[float]


def sync_step(core: Core, node: Node) -> Step:
    """The step of a flag or a barrier."""
    if isinstance(node, CrossWait):
        return _cross_wait(core, node, _alike(core, node.mode))
    if isinstance(node, PipeBarrier) and node.pipe == "ALL":
        return _barrier_all(core)
    if isinstance(node, WaitFlag):
        core.pipe(node.src, node)
        return _scalar_wait(core, node) if node.dst == SCALAR_PIPE else _queued(core, node, node.dst, _wait(core, node))
    if isinstance(node, SetFlag):
        return _queued(core, node, node.src, _set(core, node))
    if isinstance(node, PipeBarrier):
        return _queued(core, node, node.pipe, _barrier(core.pipe(node.pipe, node)))
    if isinstance(node, Scalar):
        return _computed(core)
    assert isinstance(node, CrossSet)
    return _queued(core, node, node.pipe, _cross_set(core, node, _alike(core, node.mode)))


def _alike(core: Core, mode: int) -> list[str] | None:
    """Whom a flag among cores of one kind joins; None: it joins the two kinds. What the other vector core does, and in mode 0
    other blocks, this core does as well, and as long."""
    return None if mode == 2 else [core.name]


def _computed(core: Core) -> Step:
    """The scalar unit computes a number that it keeps; what it reads for it was waited for before."""
    issue = core.chip.sync.scalar_issue

    def step() -> bool:
        core.clock += issue
        return True

    return step


def _queued(core: Core, node: Node, name: str, run: Any) -> Step:
    """Issues what `run` does with the flag's pending sets and the time of issue to a pipe's queue."""
    pipe, issue = core.pipe(name, node), core.chip.sync.scalar_issue
    depth, starts, waiting = core.chip.limits.queue_depth, pipe.starts, pipe.waiting
    pending, fixed = _pending(core, node)

    def step() -> bool:
        if len(waiting) >= depth:
            return False
        clock = core.clock
        if len(starts) == depth and starts[0] > clock:
            clock = starts[0]
        core.clock = clock = clock + issue
        times = pending() if fixed is None else fixed
        if waiting or not run(times, clock):
            waiting.append((partial(run, times, clock), node, dict(core.env)))
        return True

    return step


def _pending(core: Core, node: Node) -> tuple[Callable[[], Any], Times | None]:
    """The pending sets of a node's flag as they are found when it is issued, and once and for all where its id is constant.

    Of a flag between cores it is the id.
    """
    if isinstance(node, CrossSet):
        which = compiled(core.settle(wrap(node.id)))
        return lambda: which(core.env), None
    if not isinstance(node, SetFlag | WaitFlag):
        none: Times = deque()
        return deque, none
    flags, env, source, target = core.flags, core.env, node.src, node.dst
    number = core.settle(node.id)
    value = compiled(number)
    fixed = flags[source, target, number.args[0]] if number.op == "const" else None
    return lambda: flags[source, target, value(env)], fixed


def _set(core: Core, node: SetFlag) -> Any:
    pipe, cost, waiter = core.pipe(node.src, node), core.chip.sync.flag, core.pipes.get(node.dst)

    def run(times: Times, issued: float) -> bool:
        there = pipe.done if pipe.done > pipe.ready else pipe.ready
        times.append((there if there > issued else issued) + cost)
        if waiter is not None and waiter.waiting:
            waiter.wake()
        return True

    return run


def _wait(core: Core, node: WaitFlag) -> Any:
    pipe, cost, record = core.pipe(node.dst, node), core.chip.sync.flag, core.record

    def run(times: Times, issued: float) -> bool:
        if not times:
            return False
        there = times.popleft()
        ready = pipe.ready if pipe.ready > issued else issued
        pipe.ready = (there if there > ready else ready) + cost
        if record:
            _taken(core, node, there, pipe.ready)
        return True

    return run


def _scalar_wait(core: Core, node: WaitFlag) -> Step:
    issue, (pending, _) = core.chip.sync.scalar_issue, _pending(core, node)

    def step() -> bool:
        times = pending()
        if not times:
            return False
        there = times.popleft()
        core.clock = max(core.clock + issue, there)
        if core.record:
            _taken(core, node, there, core.clock)
        return True

    return step


def _taken(core: Core, node: WaitFlag, there: float, time: float) -> None:
    assert core.record is not None
    ends = (core.name, node.src), (core.name, node.dst)
    core.record.handovers.append(Handover(node, dict(core.env), *ends, there - core.chip.sync.flag, time))


def _barrier(pipe: Pipe) -> Any:
    def run(times: Times, issued: float) -> bool:
        pipe.ready = max(pipe.ready, pipe.done, issued)
        return True

    return run


def _barrier_all(core: Core) -> Step:
    pipes = list(core.pipes.values())

    def step() -> bool:
        if any(p.waiting for p in pipes):
            return False
        core.clock = max(core.clock, *(p.done for p in pipes))
        return True

    return step


def _cross_set(core: Core, node: CrossSet, to: Sequence[str] | None = None) -> Any:
    """Raises the counter of the cores called `to`, or of all cores of the other kind."""
    pipe, latency, name = core.pipe(node.pipe, node), core.chip.sync.cross_latency, core.name

    def run(flag: int, issued: float) -> bool:
        time = max(pipe.done, pipe.ready, issued)
        for other in core.partners if to is None else [core.peers[n] for n in to if n in core.peers]:
            other.arrivals[name, flag].append((time + latency, node.pipe))
            for waiter in other.pipes.values():
                waiter.wake()
        return True

    return run


def _cross_wait(core: Core, node: CrossWait, setters: Sequence[str] | None = None) -> Step:
    """Stops the issue of everything behind it until every setter, or every core of the other kind, has set."""
    issue = core.chip.sync.scalar_issue

    def step() -> bool:
        last = _raised(core, node, setters)
        if last is None:
            return False
        (there, pipe), sender = last
        core.clock = max(core.clock + issue, there)
        if core.record:
            _handed(core, node, sender, pipe, there, (SCALAR_PIPE, core.clock))
        return True

    return step


def _raised(core: Core, node: CrossWait, setters: Sequence[str] | None) -> tuple[tuple[float, str], str] | None:
    """Takes a set of each setter: when the last one arrived, the pipe and the core it came from. None while one is missing."""
    names = [other.name for other in core.partners] if setters is None else setters
    flag = node.id if isinstance(node.id, int) else evaluate(node.id, core.env)
    raised = [core.arrivals[name, flag] for name in names]
    if not raised or not all(raised):
        return None
    return max((times.popleft(), name) for times, name in zip(raised, names, strict=True))


def _handed(core: Core, node: CrossWait, sender: str, pipe: str, there: float, taken: tuple[str, float]) -> None:
    assert core.record is not None
    ends = (sender, pipe), (core.name, taken[0])
    core.record.handovers.append(Handover(node, {}, *ends, there - core.chip.sync.cross_latency, taken[1]))


def cross_set_step(core: Core, node: CrossSet, to: Sequence[str]) -> Step:
    """A flag for certain cores of the block."""
    return _queued(core, node, node.pipe, _cross_set(core, node, to))


def cross_wait_step(core: Core, node: CrossWait, setters: Sequence[str] | None, on: str = SCALAR_PIPE) -> Step:
    """A wait for certain cores of the block, of everything or (architecture 3510) of pipe `on` alone."""
    if on == SCALAR_PIPE:
        return _cross_wait(core, node, setters)
    pipe = core.pipe(on, node)

    def run(times: Times, issued: float) -> bool:
        last = _raised(core, node, setters)
        if last is None:
            return False
        (there, source), sender = last
        pipe.ready = max(pipe.ready, issued, there)
        if core.record:
            _handed(core, node, sender, source, there, (on, pipe.ready))
        return True

    return _queued(core, node, on, run)
