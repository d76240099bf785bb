"""A judge of synchronised programs: unrolls both cores in full and looks for what no flag orders.

It knows nothing of how flags were found: it replays the text of the streams under the machine contract (`order`) and
compares every access with those before it. The two vector cores of a block run one stream; that they work on different halves is
taken for granted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_eg.emit.sync.order import Op, Order, Verdict
from tile_eg.emit.sync.steps import parted, steps
from tile_eg.emit.sync.trace import Access, Counts, Env, Layout
from tile_eg.errors import PlanError, plannable
from tile_eg.ir import index as ix
from tile_eg.ir.machine import CROSS_IDS, USABLE_EVENT_IDS, needs_barrier
from tile_eg.ir.program import (
    AIC,
    AIV,
    CrossSet,
    CrossWait,
    Instr,
    Loop,
    Node,
    PipeBarrier,
    Program,
    SetFlag,
    Tasks,
    WaitFlag,
    When,
)
from tile_eg.ir.program.tasks import counted_by
from tile_eg.ops.types import Level

EVENT_IDS, CROSS_COUNT = len(USABLE_EVENT_IDS), len(CROSS_IDS)


@dataclass
class _Run:
    core: str
    instr: Instr
    env: Env
    number: int
    accesses: tuple[Access, ...]
    guarded: bool

    def __str__(self) -> str:
        place = f" ({self.instr.span.file}:{self.instr.span.line})" if self.instr.span else ""
        at = ", ".join(f"{v}={x}" for v, x in self.env.items())
        return f"{self.core} {self.instr.op}{place}" + (f" at {at}" if at else "")


class _Unrolled:
    """Every step of both cores, loops written out.

    Guards that only the block index decides are entered, but nothing is learnt from them: they may not hold.
    """

    def __init__(self, program: Program, counts: Counts) -> None:
        self.layout = Layout(program, counts)
        self.runs: list[_Run] = []
        self.faults: list[str] = []
        self.counts: dict[tuple[str, str], int] = {}
        self.guards = 0
        self.streams = {c: list(self.steps(program.core(c), c, self.layout.named())) for c in (AIC, AIV) if program.core(c)}

    def steps(self, nodes: tuple[Node, ...], core: str, env: Env) -> Iterator[Op]:
        for n in nodes:
            if isinstance(n, Tasks):
                for k in range(n.trips):
                    yield from self.steps(n.body, core, env | {n.var: k} | self.layout.named(k))
            elif isinstance(n, Loop):
                for k in range(n.trips if n.until is None else ix.evaluate(n.until, env)):
                    yield from self.steps(n.body, core, env | {n.var: k})
            elif isinstance(n, When) and not ix.variables(n.condition) <= env.keys():
                self.guards += 1
                yield Op("enter", core)
                yield from self.steps(n.body, core, env)
                yield Op("leave", core)
                self.guards -= 1
            elif isinstance(n, When):
                if ix.evaluate(n.condition, env):
                    yield from self.steps(n.body, core, env)
            elif isinstance(n, Instr):
                yield self.run(n, core, env)
            else:
                yield self.flag(n, core, env)

    def run(self, i: Instr, core: str, env: Env) -> Op:
        pipe = (core, i.pipe)
        self.counts[pipe] = self.counts.get(pipe, 0) + 1
        self.runs.append(_Run(core, i, env, self.counts[pipe], tuple(self.layout.accesses(i, env)), self.guards > 0))
        return Op("run", core, i.pipe, instance=len(self.runs) - 1, stepped=steps(i, self.layout.buffers) is not None)

    def flag(self, n: Node, core: str, env: Env) -> Op:
        match n:
            case PipeBarrier():
                return Op("barrier", core, n.pipe)
            case SetFlag() | WaitFlag():
                k = self.within(ix.evaluate(n.id, env), EVENT_IDS, f"{core} {n.src}_{n.dst}")
                flag, kind = (core, n.src, n.dst, k), "set" if isinstance(n, SetFlag) else "wait"
                return Op(kind, core, n.src if kind == "set" else n.dst, flag)
            case CrossSet():
                k = self.within(ix.evaluate(ix.wrap(n.id), env), CROSS_COUNT, f"{core} cross-core")
                return Op("cross_set", core, n.pipe, (core, k))
            case CrossWait():
                return Op("cross_wait", core, "", (AIV if core == AIC else AIC, ix.evaluate(ix.wrap(n.id), env)))
        raise TypeError(n)

    def within(self, k: int, limit: int, what: str) -> int:
        if not 0 <= k < limit:
            self.faults.append(f"{what} flag id {k} is not in 0 .. {limit - 1}")
        return k


def races(program: Program, counts: Counts | None = None) -> list[str]:
    """What is wrong with a synchronised program; empty where it is sound. `counts` are trips that the block decides, by name; as
    many as there can be where nothing is said.

    Conflicting accesses that nothing orders, reads of workspace that nobody filled, flags that are doubled, unmatched or left
    over, ids out of range, deadlocks.
    """
    u = plannable(lambda: _Unrolled(program, counts or {let.name: (let.most,) for let in counted_by(program)}))
    if isinstance(u, PlanError):
        return [str(u)]
    order = Order(u.streams)
    verdict = order.replay()
    return list(dict.fromkeys([*u.faults, *verdict.faults, *_unordered(u, order, verdict)]))


def _unordered(u: _Unrolled, order: Order, verdict: Verdict) -> Iterator[str]:
    """Walks the runs in an order that the machine may choose; what no flag orders might as well come the other way round."""
    live: dict[tuple, list[tuple[int, Access]]] = {}
    for me in verdict.starts:
        for a in u.runs[me].accesses:
            seen = live.setdefault(a.cell, [])
            for other, b in seen:
                if other != me and _conflict(u, other, b, me, a) and not _ordered(u, order, verdict, other, me):
                    yield f"nothing orders {u.runs[other]} before {u.runs[me]}: both use {a.buffer or a.cell[1]}"
            if not a.write and not seen and u.layout.buffers.get(a.buffer) and u.layout.buffers[a.buffer].level is Level.WS:
                yield f"{u.runs[me]} reads {a.buffer} before anything is in it"
        for a in u.runs[me].accesses:
            kept = [(o, b) for o, b in live[a.cell] if o == me or u.runs[me].guarded or not (a.write and a.whole)]
            live[a.cell] = [*kept, (me, a)]


def _conflict(u: _Unrolled, other: int, b: Access, me: int, a: Access) -> bool:
    if not (a.write or b.write) or not a.window.overlaps(b.window):  # type: ignore[arg-type]
        return False
    pair = u.runs[other].instr, u.runs[me].instr
    if pair[0].pipe == pair[1].pipe and parted(b.steps, a.steps):
        return False
    return not pair[0].hands_over(pair[1]) and not all(i.op == "mmad" and not needs_barrier("M", *_least(u, i)) for i in pair)


def _least(u: _Unrolled, i: Instr) -> tuple[int, int]:
    """The fewest rows and cols that an mmad covers."""
    loops = {v: (0, 10**6) for e in (i.rows, i.cols) for v in ix.variables(e)}
    rows, cols = (max(1, ix.bounds(e, loops | u.layout.ranges)[0]) for e in (i.rows, i.cols))
    return rows, cols


def _ordered(u: _Unrolled, order: Order, verdict: Verdict, before: int, after: int) -> bool:
    run = u.runs[before]
    return order.knows(verdict.starts[after], (run.core, run.instr.pipe), run.number)
