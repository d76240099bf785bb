"""One block: its cores, run against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tile_eg.ir.index import BLOCK, ONE, SUB, Expr, Interval, bounds, variables
from tile_eg.ir.machine import cores as cores_of
from tile_eg.ir.program import AIC, AIV, Instr, Loop, Node, Program, Tasks, When, walk
from tile_eg.ir.sharing import Itself, once
from tile_eg.ops.records import record
from tile_eg.timeline.cores import Core, Handover, Record, Span, StreamError
from tile_eg.timeline.expressions import Settler
from tile_eg.timeline.last_turn import InTurn
from tile_eg.timeline.steady import Together
from tile_eg.timeline.steps import add_steps
from tile_eg.timeline.unlike import Sample, extrapolated, sampled, steps_of
from tile_eg.timeline.works import Pricer

Ranges = Mapping[str, Interval]
LOADS = "MTE2"  # the pipe of what comes from GM
EDGE = 8  # no skew leaves out more trips at either end


@record
class Block:
    """One block in cycles: its length, what each (core, pipe) was busy, and bytes by path.

    `behind_loads` is what it takes from the end of its last load on, 0 where it loads nothing.
    """

    cycles: float
    busy: dict[tuple[str, str], float]
    bytes: dict[str, float]
    extrapolated: bool = False
    spans: tuple[Span, ...] = ()
    handovers: tuple[Handover, ...] = ()
    behind_loads: float = 0.0


class Streams:
    """The cores of a program's blocks with their steps. They serve all runs at prices of the same turns, one behind the other."""

    def __init__(self, program: Program, *, exact: bool = False, record: bool = False) -> None:
        self.program, self.exact, self.record = program, exact, record
        self.made: dict[tuple[int, bool, type], list[Core]] = {}

    def cores(self, block: int, prices: Pricer | InTurn, some: Sample | None) -> list[Core]:
        """Those of a block before they run, with some of its tiles where that is asked for."""
        key = block, some is None, type(prices)
        if key in self.made:
            for core in self.made[key]:
                core.begin_again(prices)
        else:
            both = (AIC, self.program.cube), (AIV, self.program.vector)
            record = Record() if self.record else None
            empty = [(Core(name, prices.chip, {BLOCK: block, SUB: 0}, record), nodes) for name, nodes in both if nodes]
            self.made[key] = [self._with_steps(core, nodes, prices, some) for core, nodes in empty]
        return self.made[key]

    def _with_steps(self, core: Core, nodes: tuple[Node, ...], prices: Pricer | InTurn, some: Sample | None) -> Core:
        core.settle, core.tiles, core.prices = _settler(nodes, core.env[BLOCK]), some.tiles if some else (), prices
        add_steps(core, nodes, exact=self.exact)
        core.named = len(core.flags)
        return core

    def run(self, prices: Pricer | InTurn, block: int) -> Block:
        """A block, from its first instruction to its last one."""
        some = None if self.exact else once("sampled", (Itself(self.program), block), lambda: sampled(self.program, block))
        done = _run(self, prices, block, some) if some else None
        return done or _run(self, prices, block, None)  # type: ignore[return-value]

    def release(self) -> None:
        """Lets go of all cores."""
        for cores in self.made.values():
            for core in cores:
                core.release()
        self.made.clear()


def run_block(
    program: Program, pricer: Pricer | InTurn, block: int, *,
    exact: bool = False, record: bool = False, streams: Streams | None = None,
) -> Block:  # fmt: skip
    """Block number `block`. `exact` runs every trip of every loop, `record` keeps when each instruction ran. `streams` are those
    of other runs of the program that keep no record.

    Of many unlike tiles some are run, where they tell enough of the others.
    """
    if streams is not None and not record:
        return streams.run(pricer, block)
    own = Streams(program, exact=exact, record=record)
    try:
        return own.run(pricer, block)
    finally:
        own.release()


def _run(streams: Streams, pricer: Pricer | InTurn, block: int, some: Sample | None) -> Block | None:
    """The block, with some of its tiles for all; None where these do not tell enough of the others."""
    program, cores = streams.program, streams.cores(block, pricer, some)
    weight = {AIC: 1, AIV: 2 if program.halves or cores_of(program.kernel_type)[1] == 2 else 1}
    try:
        run_cores(cores, exact=streams.exact)
        done = summed(cores, weight, cores[0].record if cores else None)
        return of_all(cores, some, done, weight) if some else done
    except StreamError:
        if some is None:
            raise
        streams.release()
        return None  # flags do not let tiles be left out


def of_all(cores: Sequence[Core], some: Sample, done: Block, weight: dict[str, int]) -> Block | None:
    """The block that goes through all tiles, from the run of some; None where these do not tell enough of the others."""
    if any(len(core.marks) != len(some.tiles) for core in cores):
        return None
    steps = steps_of(cores, done.cycles)
    if not some.trusted(steps):
        return None
    busy, moved = extrapolated(cores, some, weight)
    return replace(done, cycles=some.total(steps), busy=busy, bytes=moved, extrapolated=True)


def _settler(nodes: tuple[Node, ...], block: int) -> Settler:
    """What simplifies the expressions of a block's stream: the same one for all its runs at other prices."""
    return once("settler", (Itself(nodes), block), lambda: Settler(nodes, {BLOCK: block, SUB: 0}))


Sure = Mapping[tuple[str, int, int, int, int], tuple[Instr, int]]
"""By kind of core, `id` of an instruction, and its rows, columns and depth: the instruction, and how often it runs so."""


def surely_run(program: Program) -> Sure:
    """The instructions of the first block that surely run, at their smallest sizes."""
    out: dict[tuple[str, int, int, int, int], tuple[Instr, int]] = {}
    for core, nodes in ((AIC, program.cube), (AIV, program.vector)):
        for i, times, ranges in _surely_run(nodes, 1, Settler(nodes, {BLOCK: 0, SUB: 0}).ranges):
            rows, cols, depth = (_smallest(e, ranges) for e in (i.rows, i.cols, i.depth))
            if min(rows, cols, depth) > 0:
                key = core, id(i), rows, cols, depth
                out[key] = i, out[key][1] + times if key in out else times
    return out


def least_busy(sure: Sure, pricer: Pricer) -> dict[tuple[str, str], float]:
    """Cycles by (core, pipe) of the instructions that surely run."""
    out: dict[tuple[str, str], float] = {}
    for (core, _, *sizes), (i, times) in sure.items():
        out[core, i.pipe] = out.get((core, i.pipe), 0.0) + times * pricer.price(i, *sizes).busy
    return out


def _surely_run(nodes: Sequence[Node], times: int, ranges: Ranges) -> Iterator[tuple[Instr, int, Ranges]]:
    """The instructions that no guard leaves out, how often each runs, and the variables there."""
    for n in nodes:
        if isinstance(n, Instr) and _holds(n.when, ranges):
            yield n, times, ranges
        elif isinstance(n, When) and _holds(n.condition, ranges):
            yield from _surely_run(n.body, times, ranges)
        elif isinstance(n, Loop) and (n.until is None or isinstance(n, Tasks)):
            for first, last in _pieces(n):
                yield from _surely_run(n.body, times * (last - first + 1), {**ranges, n.var: (first, last)})


def _holds(condition: Expr, ranges: Ranges) -> bool:
    if condition.op == "and":
        return all(_holds(e, ranges) for e in condition.args)
    if condition.op == "lt" and variables(condition) <= ranges.keys():
        low, high = (bounds(e, ranges) for e in condition.args)
        return low[1] < high[0]
    return condition == ONE


def _smallest(e: Expr, ranges: Ranges) -> int:
    """0 where an expression is of what is not known here."""
    if e.value is not None:
        return e.value
    return bounds(e, ranges)[0] if variables(e) <= ranges.keys() else 0


def _pieces(loop: Loop) -> list[Interval]:
    """The trips in pieces: where guards know the trip, the first and the last ones each alone, since a skew leaves out some. So
    are those of tiles whose sizes differ; of other loops the last one, which a tensor's end cuts off."""
    if any(loop.var in variables(e) for e in _guards(loop)):
        return _edges(loop.trips)
    if loop.trips > 1 and any(loop.var in variables(e) for e in _sizes(loop)):
        return _edges(loop.trips) if isinstance(loop, Tasks) else [(0, loop.trips - 2), (loop.trips - 1,) * 2]
    return [(0, loop.trips - 1)]


def _guards(loop: Loop) -> Iterator[Expr]:
    conditions = (n.condition if isinstance(n, When) else n.when for n in walk(loop.body) if isinstance(n, When | Instr))
    return (c for c in conditions if c != ONE)


def _sizes(loop: Loop) -> Iterator[Expr]:
    return (e for n in walk(loop.body) if isinstance(n, Instr) for e in (n.rows, n.cols, n.depth) if e.value is None)


def _edges(trips: int) -> list[Interval]:
    """The first and the last trips each alone, and those between them."""
    head, tail = range(min(EDGE, trips)), range(max(EDGE, trips - EDGE), trips)
    middle = [(EDGE, trips - EDGE - 1)] if trips > 2 * EDGE else []
    return [*((k, k) for k in head), *middle, *((k, k) for k in tail)]


def run_cores(cores: Sequence[Core], *, exact: bool = True) -> None:
    """Runs the cores of one block against each other. StreamError names every wait that nothing satisfies."""
    for core in cores:
        core.partners = [other for other in cores if other.kind != core.kind]
        core.peers = {other.name: other for other in cores}
    together = Together(cores) if len(cores) > 1 and not exact else None
    while max((core.advance() for core in cores), default=False):
        if together:
            together.round()
    stuck = [text for core in cores for text in core.stuck()]
    if stuck:
        raise StreamError("deadlock: " + "; ".join(stuck))


def summed(cores: Sequence[Core], weight: dict[str, int], kept: Record | None) -> Block:
    """What the cores did; `weight` says how many cores of a kind did the same."""
    moved: dict[str, float] = {}
    for core in cores:
        for path, n in core.bytes.items():
            moved[path] = moved.get(path, 0) + n * weight[core.name]
    busy = {(c.name, pipe): n for c in cores for pipe, n in c.busy.items()}
    cycles = max((c.end for c in cores), default=0.0)
    loaded = max((c.pipes[LOADS].done for c in cores), default=0.0)
    record = kept or Record()
    jumped = any(c.jumped for c in cores)
    behind = cycles - loaded if loaded else 0.0
    return Block(cycles, busy, moved, jumped, tuple(record.spans), tuple(record.handovers), behind)
