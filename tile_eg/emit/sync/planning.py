"""Synchronisation: directed flags, barriers and cross-core counters for a Program that has none.

Dependences come from a trace of each core (`trace`), become candidate edges (`edges`, `cross`), and every edge
that the others imply is dropped by a happens-before argument (`order`), so that what is left is needed. Barriers come last,
where a dependence within one pipe is still open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tile_eg.emit.sync.counters import share_counters
from tile_eg.emit.sync.counts import checked, usual
from tile_eg.emit.sync.cross import CrossEdge
from tile_eg.emit.sync.edges import Edge, Flag, Stream, along, join, join_outside, reverse
from tile_eg.emit.sync.ids import allocate
from tile_eg.emit.sync.needed import Pair, Pairs
from tile_eg.emit.sync.order import Op, Order, Spared, Verdict, spared_of
from tile_eg.emit.sync.placed import Placed, decided_by, outlined, with_flags
from tile_eg.emit.sync.plan import Case, Key, Owner, Plan, order_of, ordered_by_hardware, plan_of, same_order, share, site_ops
from tile_eg.emit.sync.tasks import lengths
from tile_eg.emit.sync.trace import FlagsRunOut, Instance, Site, SyncError
from tile_eg.emit.sync.walk import Walks
from tile_eg.errors import PlanError, plannable
from tile_eg.ir.program import CrossSet, CrossWait, Node, PipeBarrier, Program, SetFlag, WaitFlag
from tile_eg.ir.sharing import kept

__all__ = ["SyncError", "synchronise"]
MOST_CASES = 6  # numbers of trips that are analysed together


def synchronise(program: Program, fewer: bool = False) -> Program:
    """The program with its flags and barriers. Its streams must have none, and its buffers their slots (and addresses).

    `fewer`: where ids are few, rings may have fewer of them than slots; their first loads wait for the work before the loop.
    Raises SyncError where ids run out or no order of the two cores exists.
    """
    outline = outlined(program)
    decided, walks, wrong = decided_by(outline), Walks(outline), ""
    for tiles, others in lengths(outline):
        found = kept("flags", (decided, tiles, others, fewer), partial(_found_or_why, walks, tiles, others, fewer))
        if isinstance(found, PlanError):
            raise _in_its_line(found, program)
        if not isinstance(found, str):
            return with_flags(program, found)
        wrong = found
    raise SyncError(wrong)


def _in_its_line(why: PlanError, program: Program) -> PlanError:
    """The same error, of this program's source: programs of several sources may need the same flags."""
    place = why.place if isinstance(why, FlagsRunOut) else None
    told = type(why)(why.message, getattr(along(program.core(place[0]), place[1])[-1], "span", None) if place else why.span)
    if isinstance(why, FlagsRunOut) and isinstance(told, FlagsRunOut):
        told.at, told.place = why.at, why.place
    return told


def _found_or_why(walks: Walks, tiles: int, others: Sequence[int], fewer: bool) -> Placed | str | PlanError:
    """As `_found`; where there is no synchronisation, the error, which takes as long to find."""
    return plannable(partial(_found, walks, tiles, others, fewer))


def _found(walks: Walks, tiles: int, others: Sequence[int], fewer: bool) -> Placed | str:
    """What stands where in the program, found at so many tiles of a block, or why it does not serve `others`.

    A loop over tiles, and one whose trips the block decides, is analysed at a few trips; what is found must serve more and fewer
    of them too, since blocks differ in how many they have. Numbers of trips that it does not serve are analysed together with the
    others.
    """
    counts = usual(walks.program)
    cases = [(tiles, counts)]
    again = [*((n, counts) for n in others), *checked(walks.program)]
    looked_at = _Others(walks)
    for _ in range(MOST_CASES):
        plans = _plans(walks, cases)
        _drop_implied(plans)
        ids = _allocate(plans, fewer)
        _barriers(plans)
        case, wrong = next(((c, text) for c in again if (text := _fault(looked_at, plans[0], c))), (None, ""))
        if case is None:
            return _placed(plans[0], ids)
        if case[1] is counts or case in cases:  # looked at already: the same would be found again
            break
        cases.append(case)
    return wrong


class _Others:
    """A program with other numbers of tiles and trips: what it has to keep in order there does not depend on its flags."""

    def __init__(self, walks: Walks) -> None:
        self.walks = walks
        self.known: dict[int, tuple[Case, Plan, Pairs]] = {}

    def at(self, case: Case) -> tuple[Plan, Pairs]:
        if id(case) not in self.known:
            plan = plan_of(self.walks, case, [])
            self.known[id(case)] = case, plan, Pairs(plan.traces, plan.crossing)
        return self.known[id(case)][1:]


def _plans(walks: Walks, cases: list[Case]) -> list[Plan]:
    """Plans of a program with several numbers of tiles and trips, with edges that serve all of them. They share what is kept."""
    plans = first, *others = [plan_of(walks, case) for case in cases]
    _repair(first)
    for plan in others:
        share(first, plan)
        _join_open(plan)
        if doubled := {number for number, _ in same_order(plan).replay().doubled}:
            _mend_doubled(plans, [first.edges[n] for n in sorted(doubled)])
    return [first, *others]


def _mend_doubled(plans: Sequence[Plan], doubled: list[Edge]) -> None:
    """Does without edges whose flags may be set again too early where the others order everything; else each gets its reverse."""
    first, every = plans[0], plans[0].edges
    backs = [reverse(first.streams[e.core], e) for e in doubled]
    for edges in ([e for e in every if e not in doubled], [*every, *(e for e in backs if e and e not in every)]):
        first.edges = edges
        for plan in plans:
            share(first, plan)
        if all(map(_in_order, plans)):
            return


def _join_open(plan: Plan) -> list[Pair]:
    """Joins what is not in order yet, on either core; gives all that was not, between the two cores as well."""
    order = same_order(plan)
    unordered = plan.between.open(order, order.replay())
    for a, b in unordered:
        if a[0] == b[0]:
            _join(plan, plan.streams[a[0]], plan.instance(a), plan.instance(b))
    return unordered


def _fault(others: _Others, plan: Plan, case: Case) -> str:
    """What is wrong where a plan's flags and barriers stand in the same program with other numbers of tiles and trips, or ""."""
    other, pairs = others.at(case)
    share(plan, other)
    order = order_of(other)
    verdict = order.replay()
    unordered = [p for p in pairs.open(order, verdict) if not ordered_by_hardware(other, *map(other.instance, p))]
    return _complaint(other, unordered, verdict) if unordered or verdict.faults else ""


def _repair(plan: Plan) -> None:
    """Mends the candidates: without the tight ones, where the others will do."""
    every, loose = plan.edges, [e for e in plan.edges if not e.tight]
    if len(loose) < len(every):
        plan.edges = loose
        if not isinstance(plannable(lambda: _mend(plan)), PlanError):
            return
        plan.edges = every
    _mend(plan)


def _mend(plan: Plan) -> None:
    """Adds joins and reverse edges until the candidates order everything and no flag can be set twice."""
    for _ in range(6):
        verdict, before = same_order(plan).replay(), len(plan.edges)
        unordered = _join_open(plan)
        if not unordered and not verdict.faults:
            return
        if verdict.faults and not unordered:
            if _prefetches(plan) and _without_doubled(plan, verdict):
                return
            for e in _doubled(plan, verdict) if _prefetches(plan) else list(plan.edges):
                _add(plan, reverse(plan.streams[e.core], e))
        if len(plan.edges) == before:
            raise SyncError(_complaint(plan, unordered, verdict))
    raise SyncError("no synchronisation was found")


def _prefetches(plan: Plan) -> bool:
    """Whether instructions of a tile work for the next one. Then only flags that may be set again too early get a reverse: every
    further one would make tiles wait for each other."""
    return any(s.early for s in plan.streams.values())


def _doubled(plan: Plan, verdict: Verdict) -> list[Edge]:
    """The edges whose flags may be set again too early."""
    return [plan.edges[n] for n in sorted({number for number, _ in verdict.doubled})]


def _without_doubled(plan: Plan, verdict: Verdict) -> bool:
    """Does without the edges whose flags may be set again too early, if the others order everything."""
    every, doubled = plan.edges, _doubled(plan, verdict)
    plan.edges = [e for e in every if e not in doubled]
    if not _in_order(plan):
        plan.edges = every
    return plan.edges is not every


def _join(plan: Plan, s: Stream, before: Instance, after: Instance) -> None:
    joined = join(s, before, after)
    _add(plan, join_outside(s, before, after) if joined in plan.edges else joined)


def _add(plan: Plan, e: Edge | None) -> None:
    if e is not None and e not in plan.edges:
        plan.edges.append(e)


def _complaint(plan: Plan, unordered: list[Pair], verdict: Verdict) -> str:
    if not unordered:
        return verdict.faults[0]
    a, b = unordered[0]
    return f"{plan.instance(a).instr.op} of {a[0]} cannot be ordered before {plan.instance(b).instr.op} of {b[0]}"


def _drop_implied(plans: list[Plan]) -> None:
    """Leaves out every edge that the others imply, cross-core waits and rings first."""
    first, owners = plans[0], plans[0].owners
    orders = [same_order(p) for p in plans]
    asked = sorted(owners, key=lambda k: _price(owners[k]))
    dropped = spared_of([Spared(order, p.between.needed(order), asked) for p, order in zip(plans, orders, strict=True)], asked)
    first.edges = [e for n, e in enumerate(first.edges) if ("edge", n) not in dropped]
    first.cross = [e for n, e in enumerate(first.cross) if ("cross", n) not in dropped]
    for plan, order in zip(plans, orders, strict=True):
        share(first, plan)
        order.drop(dropped)
        plan.built = plan.state, order


def _price(e: Owner) -> tuple[int, bool, int]:
    """What to try to do without first: cross-core waits, then fallbacks, then deep rings."""
    return (0, not e.free, 0) if isinstance(e, CrossEdge) else (1, not e.outer and not e.joined, -len(e.before))


def _allocate(plans: list[Plan], fewer: bool) -> dict[Key, int]:
    """First id of each edge, and a counter for each edge between cores. `fewer` as in `synchronise`."""
    plan = plans[0]

    def replayed() -> tuple[Order, Verdict]:
        order = order_of(plan)
        return order, order.replay()

    def sound() -> bool:
        return all(map(_in_order, plans))

    for other in plans:
        share(plan, other)
    plan.edges, bases = allocate(plan.streams, plan.edges, replayed, sound if fewer else None)
    if any(e.turns for e in plan.edges):  # these order more than they did alone
        _drop_implied(plans)
        plan.edges, bases = allocate(plan.streams, plan.edges, replayed, sound if fewer else None)
    for other in plans:
        share(plan, other)
    order = same_order(plan)
    verdict = order.replay()
    unordered = plan.between.open(order, verdict)
    if unordered or verdict.faults:
        raise SyncError(_complaint(plan, unordered, verdict))
    counters = share_counters(plan.cross, lambda: all(_in_order(p) for p in plans))
    out: dict[Key, int] = {("edge", n): base for n, base in enumerate(bases)}
    return out | {("cross", n): counter for n, counter in enumerate(counters)}


def _in_order(plan: Plan) -> bool:
    """Whether its flags order everything, and are set and waited for in turn."""
    order = same_order(plan)
    verdict = order.replay()
    return not verdict.faults and not plan.between.open(order, verdict)


def _barriers(plans: list[Plan]) -> None:
    """Barriers before instructions whose dependence on their own pipe is still open; then those that others made needless go."""
    for plan in plans:
        while plan.within and (unordered := plan.within.open(order := same_order(plan), order.replay())):
            _mark(plan, order, unordered)
    barriers = plans[0].barriers
    asked = [("barrier", c, path) for c in barriers for path in sorted(barriers[c])]
    spared = [Spared(same_order(p), p.within.needed(same_order(p)), asked, faultless=False) for p in plans]
    for _, core, path in spared_of(spared, asked):
        barriers[core].discard(path)


def _mark(plan: Plan, order: Order, unordered: list[Pair]) -> None:
    """Marks the consumers that need a barrier, earliest first; a barrier just marked serves what follows it."""
    fence: dict[tuple[str, str], int] = {}
    for a, b in sorted(unordered, key=lambda p: (p[0][0], p[1][1])):
        after = plan.instance(b)
        if fence.get((b[0], after.pipe), -1) <= a[1]:
            plan.barriers[b[0]].add(after.path)
            fence[b[0], after.pipe] = b[1]


def _placed(plan: Plan, ids: Mapping[Key, int]) -> Placed:
    return {core: _nodes_at(plan, core, ids) for core in plan.streams}


def _nodes_at(plan: Plan, core: str, ids: Mapping[Key, int]) -> dict[Site, list[Node]]:
    return {site: [_node(op, ids) for _, op in ops] for site, ops in site_ops(plan, core).items()}


def _node(op: Flag | Op, ids: Mapping[Key, int]) -> Node:
    if isinstance(op, Flag):
        kind = SetFlag if op.kind == "set" else WaitFlag
        return kind(op.edge.src, op.edge.dst, op.id + ids["edge", op.number])
    if op.kind == "barrier":
        return PipeBarrier(op.pipe)
    assert isinstance(op.owner, tuple)
    number = ids[op.owner]
    return CrossSet(op.pipe, number) if op.kind == "cross_set" else CrossWait(number)
