"""Synchronisation: directed flags, barriers and cross-core counters for a Program that has none.

Dependences come from a trace of each core (`trace`), become candidate edges (`edges`, `cross`), and every edge
that the others imply is dropped by a happens-before argument (`order`), so that what is left is needed. Barriers come last,
where a dependence within one pipe is still open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from tile_eg.emit.sync.counters import share_counters
from tile_eg.emit.sync.counts import checked, usual
from tile_eg.emit.sync.cross import CrossEdge, cross_edges
from tile_eg.emit.sync.edges import Edge, Flag, Stream, candidates, join, join_outside, placed, reverse
from tile_eg.emit.sync.ids import allocate
from tile_eg.emit.sync.needed import Pair, Pairs, number
from tile_eg.emit.sync.order import Op, Order, Spared, Verdict, spared_of
from tile_eg.emit.sync.placed import Placed, decided_by, outlined, with_flags
from tile_eg.emit.sync.tasks import lengths, with_tiles
from tile_eg.emit.sync.trace import Counts, Dependence, Env, Instance, Layout, Path, Site, SyncError, Trace
from tile_eg.emit.sync.walk import Walks
from tile_eg.errors import PlanError, plannable
from tile_eg.ir.machine import needs_barrier
from tile_eg.ir.program import AIC, AIV, CrossSet, CrossWait, Instr, Node, PipeBarrier, Program, SetFlag, WaitFlag
from tile_eg.ir.sharing import once
from tile_eg.timeline.expressions import compiled

__all__ = ["SyncError", "synchronise"]
Owner = Edge | CrossEdge
Key = tuple[str, int] | tuple[str, str, Path]
Case = tuple[int, Counts]  # tiles of a block, and trips that it decides
MOST_CASES = 6  # numbers of trips that are analysed together


@dataclass
class _Plan:
    """The streams of a program, its candidate edges, what they must order, and which edges are kept.

    `crossing` are the pairs of instances of the two cores that are to be in order. `built` is the last order that was made, and
    of which edges and barriers.
    """

    layout: Layout
    streams: dict[str, Stream]
    edges: list[Edge]
    cross: list[CrossEdge]
    crossing: list[Pair]
    barriers: dict[str, set[Path]] = field(default_factory=lambda: {AIC: set(), AIV: set()})
    built: tuple[tuple, Order] | None = None

    @cached_property
    def between(self) -> Pairs:
        """What has to be in order on two pipes."""
        return Pairs(self.traces, self.crossing, lambda core, d: not self.on_one_pipe(core, d))

    @cached_property
    def within(self) -> Pairs:
        """What has to be on one pipe, which only barriers and flags that come back see to."""
        return Pairs(self.traces, (), lambda core, d: self.on_one_pipe(core, d) and not self.guarded(core, d))

    @property
    def traces(self) -> dict[str, Trace]:
        return {core: s.trace for core, s in self.streams.items()}

    @cached_property
    def runs(self) -> dict[str, list[Op]]:
        """Each instance as a step of its core."""
        return {
            core: [Op("run", core, i.pipe, instance=number((core, n)), stepped=i.stepped) for n, i in enumerate(t.instances)]
            for core, t in self.traces.items()
        }

    def on_one_pipe(self, core: str, d: Dependence) -> bool:
        instances = self.streams[core].trace.instances
        return instances[d.before].pipe == instances[d.after].pipe

    def guarded(self, core: str, d: Dependence) -> bool:
        instances = self.streams[core].trace.instances
        return _guarded(self, instances[d.before], instances[d.after])

    @property
    def state(self) -> tuple:
        """Of what an order is made: as it is now."""
        return list(self.edges), list(self.cross), {core: set(paths) for core, paths in self.barriers.items()}

    @property
    def owners(self) -> dict[Key, Owner]:
        """Every candidate by a key that is cheap to compare."""
        out: dict[Key, Owner] = {("edge", n): e for n, e in enumerate(self.edges)}
        return out | {("cross", n): c for n, c in enumerate(self.cross)}

    def instance(self, at: tuple[str, int]) -> Instance:
        return self.streams[at[0]].trace.instances[at[1]]


def synchronise(program: Program) -> Program:
    """The program with its flags and barriers. Its streams must have none, and its buffers their slots (and addresses).

    Raises SyncError where ids run out or no order of the two cores exists.
    """
    outline = outlined(program)
    decided, walks, wrong = decided_by(outline), Walks(outline), ""
    for tiles, others in lengths(outline):
        found = once("flags", (decided, tiles, others), partial(_found, walks, tiles, others))
        if not isinstance(found, str):
            return with_flags(program, found)
        wrong = found
    raise SyncError(wrong)


def _found(walks: Walks, tiles: int, others: Sequence[int]) -> Placed | str:
    """What stands where in the program, found at so many tiles of a block, or why it does not serve `others`.

    A loop over tiles, and one whose trips the block decides, is analysed at a few trips; what is found must serve more and fewer
    of them too, since blocks differ in how many they have. Numbers of trips that it does not serve are analysed together with the
    others.
    """
    counts = usual(walks.program)
    cases = [(tiles, counts)]
    again = [*((n, counts) for n in others), *checked(walks.program)]
    for _ in range(MOST_CASES):
        plans = _plans(walks, cases)
        _drop_implied(plans)
        ids = _allocate(plans)
        _barriers(plans)
        case, wrong = next(((c, text) for c in again if (text := _fault(walks, plans[0], c))), (None, ""))
        if case is None:
            return _placed(plans[0], ids)
        if case[1] is counts or case in cases:  # looked at already: the same would be found again
            break
        cases.append(case)
    return wrong


def _plans(walks: Walks, cases: list[Case]) -> list[_Plan]:
    """Plans of a program with several numbers of tiles and trips, with edges that serve all of them. They share what is kept."""
    first, *others = [_plan(walks, case) for case in cases]
    _repair(first)
    for plan in others:
        _share(first, plan)
        order = _same_order(plan)
        for a, b in plan.between.open(order, order.replay()):
            if a[0] == b[0]:
                _join(plan, plan.streams[a[0]], plan.instance(a), plan.instance(b))
    return [first, *others]


def _share(first: _Plan, plan: _Plan) -> None:
    plan.edges, plan.cross, plan.barriers = first.edges, first.cross, first.barriers


def _fault(walks: Walks, plan: _Plan, case: Case) -> str:
    """What is wrong where a plan's flags and barriers stand in the same program with other numbers of tiles and trips, or ""."""
    other = _plan(walks, case, plan.edges)
    _share(plan, other)
    order = _order(other)
    verdict = order.replay()
    found = Pairs(other.traces, other.crossing).open(order, verdict)
    unordered = [p for p in found if not _guarded(other, *map(other.instance, p))]
    return _complaint(other, unordered, verdict) if unordered or verdict.faults else ""


def _plan(walks: Walks, case: Case, edges: list[Edge] | None = None, whole: bool = False) -> _Plan:
    """A program's traces and what they have to keep in order; `edges` (None: all candidates) are those that do.

    Loops are walked `whole` where they cannot be shortened.
    """
    (tiles, counts), program = case, walks.program
    layout = Layout(with_tiles(program, tiles), counts)
    streams = {c: Stream(layout, c, walks.trace(c, tiles, counts, whole)) for c in (AIC, AIV) if program.core(c)}
    crossing = plannable(lambda: cross_edges(streams))
    if isinstance(crossing, PlanError):
        if whole or not any(walks.skips.values()):
            raise crossing
        return _plan(walks, case, edges, whole=True)
    if edges is None:
        edges = [e for s in streams.values() for e in candidates(s)]
    return _Plan(layout, streams, edges, *crossing)


def _site_ops(plan: _Plan, core: str) -> dict[Site, list[tuple[int, Flag | Op]]]:
    """What stands at each site of a core, ranked."""
    s = plan.streams[core]
    out: dict[Site, list[tuple[int, Flag | Op]]] = {}
    for f in placed(s, {n: e for n, e in enumerate(plan.edges) if e.core == core}):
        out.setdefault(f.site, []).append((f.rank, f))
    for n, c in enumerate(plan.cross):
        for site, rank, op in _cross_places(plan, n, c, core):
            out.setdefault(site, []).append((rank, op))
    for path in plan.barriers[core]:
        at = s.along(path)[-1]
        assert isinstance(at, Instr)
        out.setdefault(("pre", path), []).append((6, Op("barrier", core, at.pipe, path, ("barrier", core, path))))
    return {site: sorted(ops, key=lambda o: o[0]) for site, ops in out.items()}


def _cross_places(plan: _Plan, n: int, c: CrossEdge, core: str) -> list[tuple[Site, int, Op]]:
    key, flag = ("cross", n), ("cross", n if c.counter is None else c.counter)
    put, take = Op("cross_set", core, c.pipe, flag, key), Op("cross_wait", core, "", flag, key)
    if core == c.src:
        return [(plan.streams[core].start, 0, put)] * c.ahead + [(c.set_at, 2, put)]
    return [(c.wait_at, 3, take)] + [(plan.streams[core].end, 5, take)] * c.ahead


def _order(plan: _Plan) -> Order:
    return Order({core: _ops(plan, core) for core in plan.streams})


def _same_order(plan: _Plan) -> Order:
    """As `_order`; the last one where nothing changed since. Its edges may have other numbers than now."""
    if plan.built is None or plan.built[0] != plan.state:
        plan.built = plan.state, _order(plan)
    return plan.built[1]


def _ops(plan: _Plan, core: str) -> list[Op]:
    """The core's trace with every flag of every candidate in it."""
    stream = plan.streams[core]
    sites = {site: [_op_at(op) for _, op in ops] for site, ops in _site_ops(plan, core).items()}
    out, runs = list[Op](), plan.runs[core]
    for site, env, n in stream.trace.steps:
        if n >= 0:
            out.append(runs[n])
        elif site in sites:
            out += [op if isinstance(op, Op) else op(env) for op in sites[site]]
        elif site[0] in ("enter", "leave"):
            out.append(Op(site[0], core))
    return out


def _op_at(op: Flag | Op) -> Op | Callable[[Env], Op]:
    """What stands at a site, or what makes it of the loop variables: of a flag whose id they decide."""
    if isinstance(op, Op):
        return op
    value, known, flag = compiled(op.id), dict[int, Op](), op
    if op.id.op == "const":
        return _flag_op(flag, op.id.args[0])

    def made(env: Env) -> Op:
        k = value(env)
        return known.get(k) or known.setdefault(k, _flag_op(flag, k))

    return made


def _flag_op(flag: Flag, k: int) -> Op:
    pipe = flag.edge.src if flag.kind == "set" else flag.edge.dst
    return Op(flag.kind, flag.edge.core, pipe, (flag.number, k), ("edge", flag.number))


def _repair(plan: _Plan) -> None:
    """Mends the candidates: without the tight ones, where the others will do."""
    every, loose = plan.edges, [e for e in plan.edges if not e.tight]
    if len(loose) < len(every):
        plan.edges = loose
        if not isinstance(plannable(lambda: _mend(plan)), PlanError):
            return
        plan.edges = every
    _mend(plan)


def _mend(plan: _Plan) -> None:
    """Adds joins and reverse edges until the candidates order everything and no flag can be set twice."""
    for _ in range(6):
        order = _same_order(plan)
        verdict = order.replay()
        unordered = plan.between.open(order, verdict)
        if not unordered and not verdict.faults:
            return
        before = len(plan.edges)
        for a, b in unordered:
            if a[0] == b[0]:
                _join(plan, plan.streams[a[0]], plan.instance(a), plan.instance(b))
        if verdict.faults and not unordered:
            for e in list(plan.edges):
                _add(plan, reverse(plan.streams[e.core], e))
        if len(plan.edges) == before:
            raise SyncError(_complaint(plan, unordered, verdict))
    raise SyncError("no synchronisation was found")


def _join(plan: _Plan, s: Stream, before: Instance, after: Instance) -> None:
    joined = join(s, before, after)
    _add(plan, join_outside(s, before, after) if joined in plan.edges else joined)


def _add(plan: _Plan, e: Edge | None) -> None:
    if e is not None and e not in plan.edges:
        plan.edges.append(e)


def _complaint(plan: _Plan, unordered: list[Pair], verdict: Verdict) -> str:
    if not unordered:
        return verdict.faults[0]
    a, b = unordered[0]
    return f"{plan.instance(a).instr.op} of {a[0]} cannot be ordered before {plan.instance(b).instr.op} of {b[0]}"


def _drop_implied(plans: list[_Plan]) -> None:
    """Leaves out every edge that the others imply, cross-core waits and rings first."""
    first, owners = plans[0], plans[0].owners
    orders = [_same_order(p) for p in plans]
    asked = sorted(owners, key=lambda k: _price(owners[k]))
    dropped = spared_of([Spared(order, p.between.needed(order), asked) for p, order in zip(plans, orders, strict=True)], asked)
    first.edges = [e for n, e in enumerate(first.edges) if ("edge", n) not in dropped]
    first.cross = [e for n, e in enumerate(first.cross) if ("cross", n) not in dropped]
    for plan, order in zip(plans, orders, strict=True):
        _share(first, plan)
        order.drop(dropped)
        plan.built = plan.state, order


def _price(e: Owner) -> tuple[int, bool, int]:
    """What to try to do without first: cross-core waits, then fallbacks, then deep rings."""
    return (0, not e.free, 0) if isinstance(e, CrossEdge) else (1, not e.outer and not e.joined, -len(e.before))


def _allocate(plans: list[_Plan]) -> dict[Key, int]:
    """First id of each edge, and a counter for each edge between cores."""
    plan = plans[0]

    def replayed() -> tuple[Order, Verdict]:
        order = _order(plan)
        return order, order.replay()

    plan.edges, bases = allocate(plan.streams, plan.edges, replayed)
    if any(e.turns for e in plan.edges):  # these order more than they did alone
        _drop_implied(plans)
        plan.edges, bases = allocate(plan.streams, plan.edges, replayed)
    for other in plans:
        _share(plan, other)
    order = _same_order(plan)
    verdict = order.replay()
    unordered = plan.between.open(order, verdict)
    if unordered or verdict.faults:
        raise SyncError(_complaint(plan, unordered, verdict))
    counters = share_counters(plan.cross, lambda: all(_in_order(p) for p in plans))
    out: dict[Key, int] = {("edge", n): base for n, base in enumerate(bases)}
    return out | {("cross", n): counter for n, counter in enumerate(counters)}


def _in_order(plan: _Plan) -> bool:
    """Whether its flags order everything, and are set and waited for in turn."""
    order = _same_order(plan)
    verdict = order.replay()
    return not verdict.faults and not plan.between.open(order, verdict)


def _guarded(plan: _Plan, a: Instance, b: Instance) -> bool:
    """True where the hardware itself orders two mmads on one accumulator (contract, clause 2)."""
    if a.instr.op != "mmad" or b.instr.op != "mmad":
        return False
    return not any(needs_barrier("M", *plan.layout.fewest(x.instr)) for x in (a, b))


def _barriers(plans: list[_Plan]) -> None:
    """Barriers before instructions whose dependence on their own pipe is still open; then those that others made needless go."""
    for plan in plans:
        while plan.within and (unordered := plan.within.open(order := _same_order(plan), order.replay())):
            _mark(plan, order, unordered)
    barriers = plans[0].barriers
    asked = [("barrier", c, path) for c in barriers for path in sorted(barriers[c])]
    spared = [Spared(_same_order(p), p.within.needed(_same_order(p)), asked, faultless=False) for p in plans]
    for _, core, path in spared_of(spared, asked):
        barriers[core].discard(path)


def _mark(plan: _Plan, order: Order, unordered: list[Pair]) -> None:
    """Marks the consumers that need a barrier, earliest first; a barrier just marked serves what follows it."""
    fence: dict[tuple[str, str], int] = {}
    for a, b in sorted(unordered, key=lambda p: (p[0][0], p[1][1])):
        after = plan.instance(b)
        if fence.get((b[0], after.pipe), -1) <= a[1]:
            plan.barriers[b[0]].add(after.path)
            fence[b[0], after.pipe] = b[1]


def _placed(plan: _Plan, ids: Mapping[Key, int]) -> Placed:
    return {core: _nodes_at(plan, core, ids) for core in plan.streams}


def _nodes_at(plan: _Plan, core: str, ids: Mapping[Key, int]) -> dict[Site, list[Node]]:
    return {site: [_node(op, ids) for _, op in ops] for site, ops in _site_ops(plan, core).items()}


def _node(op: Flag | Op, ids: Mapping[Key, int]) -> Node:
    if isinstance(op, Flag):
        kind = SetFlag if op.kind == "set" else WaitFlag
        return kind(op.edge.src, op.edge.dst, op.id + ids["edge", op.number])
    if op.kind == "barrier":
        return PipeBarrier(op.pipe)
    assert isinstance(op.owner, tuple)
    number = ids[op.owner]
    return CrossSet(op.pipe, number) if op.kind == "cross_set" else CrossWait(number)
