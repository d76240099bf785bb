"""A program's streams with what they have to keep in order, the edges that are to do so, and the order that these make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from tile_eg.emit.sync.cross import CrossEdge, cross_edges
from tile_eg.emit.sync.edges import Edge, Flag, Stream, candidates, placed
from tile_eg.emit.sync.needed import Pair, Pairs, number
from tile_eg.emit.sync.order import Op, Order
from tile_eg.emit.sync.tasks import with_tiles
from tile_eg.emit.sync.trace import Counts, Dependence, Env, Instance, Layout, Path, Site, Trace
from tile_eg.emit.sync.walk import Walks
from tile_eg.errors import PlanError, plannable
from tile_eg.ir.machine import needs_barrier
from tile_eg.ir.program import AIC, AIV, Instr
from tile_eg.timeline.expressions import compiled

Owner = Edge | CrossEdge
Key = tuple[str, int] | tuple[str, str, Path]
Case = tuple[int, Counts]  # tiles of a block, and trips that it decides


@dataclass
class Plan:
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
        return ordered_by_hardware(self, instances[d.before], instances[d.after])

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


def share(first: Plan, plan: Plan) -> None:
    """Lets a plan have the edges and barriers of the first one."""
    plan.edges, plan.cross, plan.barriers = first.edges, first.cross, first.barriers


def plan_of(walks: Walks, case: Case, edges: list[Edge] | None = None, whole: bool = False) -> Plan:
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
        return plan_of(walks, case, edges, whole=True)
    if edges is None:
        edges = [e for s in streams.values() for e in candidates(s)]
    return Plan(layout, streams, edges, *crossing)


def site_ops(plan: Plan, core: str) -> dict[Site, list[tuple[int, Flag | Op]]]:
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


def _cross_places(plan: Plan, n: int, c: CrossEdge, core: str) -> list[tuple[Site, int, Op]]:
    key, flag = ("cross", n), ("cross", n if c.counter is None else c.counter)
    put, take = Op("cross_set", core, c.pipe, flag, key), Op("cross_wait", core, "", flag, key)
    if core == c.src:
        return [(plan.streams[core].start, 0, put)] * c.ahead + [(c.set_at, 2, put)]
    return [(c.wait_at, 3, take)] + [(plan.streams[core].end, 5, take)] * c.ahead


def order_of(plan: Plan) -> Order:
    """The order that its edges and barriers make."""
    return Order({core: _ops(plan, core) for core in plan.streams})


def same_order(plan: Plan) -> Order:
    """As `order_of`; the last one where nothing changed since. Its edges may have other numbers than now."""
    if plan.built is None or plan.built[0] != plan.state:
        plan.built = plan.state, order_of(plan)
    return plan.built[1]


def _ops(plan: Plan, core: str) -> list[Op]:
    """The core's trace with every flag of every candidate in it."""
    stream = plan.streams[core]
    sites = {site: [_op_at(op) for _, op in ops] for site, ops in site_ops(plan, core).items()}
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


def ordered_by_hardware(plan: Plan, a: Instance, b: Instance) -> bool:
    """True where the hardware itself orders two mmads on one accumulator (contract, clause 2)."""
    if a.instr.op != "mmad" or b.instr.op != "mmad":
        return False
    return not any(needs_barrier("M", *plan.layout.fewest(x.instr)) for x in (a, b))
