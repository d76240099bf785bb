"""Reads a kernel that is kept: each statement becomes the instructions that it stands for, in its place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.element_loops import MOST_TRIPS
from tile_eg.frontend.expert.ends import Ends
from tile_eg.frontend.expert.nodes import Branch, Exits, Misplaced, NewVariable, On, Persistent, Pipe, ScalarUnit, Scope
from tile_eg.frontend.expert.places import Held, Place, level_for, of_buffer, of_tensor, same_memory
from tile_eg.frontend.expert.read_places import checked
from tile_eg.frontend.python.counted_loops import with_ends
from tile_eg.frontend.python.expressions import evaluate
from tile_eg.frontend.python.source import Source, one_by_one
from tile_eg.frontend.python.statements import RULES, Reader
from tile_eg.frontend.python.values import Buffer, Loop, NewBuffer, Slice, as_region, is_tile
from tile_eg.frontend.python.words import counted
from tile_eg.frontend.ranges import runs
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import Expr, Interval
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Region, Tensor, TileExpr
from tile_eg.ir.program import AIC, AIV, Node
from tile_eg.ir.program.tasks import with_indices
from tile_eg.ops.types import Level

SHARED = "any"
"""The scope of a buffer whose memory its uses decide."""


class ExpertReader(Reader):
    """`statements` holds program nodes, each with its core; `held` the buffers, `levels` where shared ones lie, `views` the
    buffer that each view is of. Of `scalars`, the numbers that the scalar unit keeps, `variables` are
    those that the author changes, `looked_up` the tensors of which it reads elements, `truths` where bools are stored. `words`
    are what the words mean in a kept kernel, `store` what an assignment to an element, `prefetched` a pipelined loop,
    `elementwise` an element loop, and a branch in one. `own` are buffers that the author did not declare, `shared` where those
    of element loops begin in the room that these share. `within` is what holds in the branches that are open. `scale` is what
    T.set_deq_scale named for casts of int32 to float16, `pipe` that of the T.rs around. `ends` says what exists of buffers,
    where what does not takes no part. `around` are short loops by their variables, `by_trips` those that are read trip by trip,
    `changing` names that become variables, with what these are called.
    """

    counts_what_is_read = True

    def __init__(
        self,
        source: Source,
        names: Mapping[str, Any],
        levels: Mapping[str, Level],
        words: Mapping[str, Callable[..., Any]],
        store: Callable[..., None],
        prefetched: Callable[..., Any],
        elementwise: tuple[Callable[..., None], Callable[..., None]],
        unit: ScalarUnit,
        sizes: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(source, names, sizes)
        self.handlers, self.store, self.prefetched, self.unit = words, store, prefetched, unit
        self.elementwise, self.branch = elementwise
        self.levels = levels
        self.tensors: dict[str, Tensor] = {}
        self.held: dict[str, Held] = {}
        self.views: dict[str, str] = {}
        self.open: set[str] = set()
        self.addresses: dict[str, int] = {}
        self.own: dict[str, pr.Buffer] = {}
        self.own_keys: dict[str, str] = {}
        self.shared: dict[str, int] = {}
        self.core: str | None = None
        self.pipe: str | None = None
        self.within: Expr = ix.ONE
        self.scale: float | None = None
        self.drains = True
        self.stored: set[str] = set()
        self.truths: set[Span | None] = set()
        self.variables: set[str] = set()
        self.looked_up: dict[str, Span | None] = {}
        self.exits: list[Exits] = []
        self.ends: Ends | None = None
        self.around: dict[str, Span] = {}
        self.by_trips: Collection[Span] = ()
        self.changing: dict[str, set[str]] = {}

    def rules(self) -> dict[type, Callable[..., None]]:
        elementwise: dict[type, Callable[..., None]] = {ast.If: self.branch} if self.in_parallel else {}
        return {**OWN_RULES, **self.unit.rules, **elementwise}

    @property
    def ranges(self) -> dict[str, Interval]:
        """What every variable in sight may be."""
        return self.grid

    # What statements become

    def emit(self, node: Node) -> None:
        """Adds an instruction, which goes to its own core, or a node of the scope that is read."""
        core = node.core if isinstance(node, pr.Instr) else self.core
        if isinstance(node, pr.Instr) and self.core not in (None, core):
            raise TileError(
                f"this statement runs on the {_name(node.core)}, and this is the scope of the {_name(self.core)}", node.span,
                help='T.Scope("C") is for the cube core, T.Scope("V") for the vector cores',
            )  # fmt: skip
        self.place_node(core, with_indices(node, lambda e: self.unit.settled(self, e, getattr(node, "span", None))))
        if isinstance(node, pr.Instr):
            written = node.dst.tensor if isinstance(node.dst, pr.Gm) else node.dst.buffer
            if self.ends is not None:
                self.ends.after(self, node)
            self.stored.add(written)
            self.wrote(written)

    def place_node(self, core: str | None, node: Node) -> None:
        """Adds a node of this core (None: of each)."""
        self.statements.append(On(core, node))  # type: ignore[arg-type]

    def run_macro(self, body: list[ast.stmt]) -> None:
        self.unit.body(self, body)

    def number(self, value: Any, span: Span) -> Any:
        return value if self.in_parallel else self.unit.number(self, value, span)

    def asserted(self, test: Any, message: Any, node: ast.AST) -> None:
        assert self.handlers is not None
        self.handlers["device_assert"](self, self.span(node), test, message or "")

    def counted_slice(self, start: Expr, extent: Expr, size: int, span: Span) -> Slice:
        """As many elements as the scalar unit finds, `size` at most."""
        if extent.value is not None:
            return super().counted_slice(start, extent, size, span)
        count = self.unit.settled(self, extent, span)
        low, high = ix.bounds(count, self.ranges)
        if high <= 0:
            return super().counted_slice(start, extent, size, span)
        return Slice(start, min(size, high), count if low >= 0 else ix.maximum(0, count))

    def wrote(self, name: str) -> None:
        names = same_memory(self.views, [name])
        self.writes += sorted(names)
        self._forget(names)

    def instr(self, op: str, dst: Any, *srcs: Any, **fields: Any) -> None:
        made = pr.Instr(op, dst, tuple(srcs), **fields)
        self._check_bytes(made)
        self.emit(made)

    def _check_bytes(self, i: pr.Instr) -> None:
        """TileError where what lies behind an odd number of bytes would be written as well."""
        held = self.held.get(i.dst.buffer) if isinstance(i.dst, pr.Tile) else None
        if i.op in ("vcopy", "vdup") and held is not None and held.dtype.bytes == 1 and (i.cols.value or 0) % 2:
            what = f"bytes are written two at a time, and {i.cols.value} of {held.name} are an odd number"
            raise TileError(what, i.span, help="write an even number of them, or cast to float16 first")

    def assign(self, target: Region, value: TileExpr, span: Span | None, atomic: str = "") -> None:
        if self.in_parallel:
            return super().assign(target, value, span, atomic)
        self.store(self, target, value, span)
        return None

    # Buffers

    def allocate(self, name: str, new: NewBuffer, span: Span | None) -> None:
        unique = self.unique(name)
        placed = new.scope in Level.__members__ and new.scope != SHARED
        self.open |= set() if placed else {unique}
        level = Level[new.scope] if placed else self.levels.get(unique, Level.L0C if new.scope == "fragment" else Level.UB)
        shape = new.shape if not new.column else (*new.shape[:-1], 1)
        self.held[unique] = Held(unique, level, new.dtype, shape, span, truth=new.truth)
        self.local[name] = Buffer(unique, new.dtype, shape, new.scope, truth=new.truth)
        self.homes |= {unique: self.statements} if self.ends is not None and level is Level.UB else {}

    def zeros(self, name: str, span: Span | None) -> list[Any]:
        with self.block(repeats=False) as made:
            (self.handlers or {})["fill"](self, span, Buffer(name, self.held[name].dtype, self.held[name].shape, SHARED), 0.0)
        return made

    def bind(self, name: str, value: Any, span: Span | None) -> None:
        """A name that is bound again in a loop or branch means its new value there, and its old one behind it, unless it is one
        of those that are `changing`."""
        if isinstance(value, NewVariable):
            return self.unit.declared(self, name, value, span)
        if (variable := self.unit.variable_of(self, self.local.get(name))) is not None:
            if self.in_parallel:
                what = f"every iteration of T.Parallel would change {name}"
                raise TileError(what, span, help="T.Parallel has no order: use T.serial, or a buffer with an element for each")
            return self.unit.assigned(self, variable, value, span)
        value = value if self.in_parallel else self.unit.bound(self, name, value, span)
        if isinstance(value, Expr | Region | int | float) and name in self.outer and not isinstance(self.outer[name], Buffer):
            self.local[name] = value
            return None
        return super().bind(name, value, span)

    def place(self, value: Any, span: Span | None, *levels: Level, cols: int | None = None) -> Place:
        """A buffer, window or region as an operand; of a tensor, in rows of so many `cols` if it can be. TileError unless it lies
        in one of the `levels`."""
        region = wanted = value if isinstance(value, Region) else as_region(value, span)
        starts = tuple(self.unit.settled(self, e, span) for e in region.starts)
        counts = tuple(e and self.unit.settled(self, e, span) for e in region.counts)
        region = replace(region, span=region.span or span, starts=starts, counts=counts)
        if region.name in self.tensors:
            found = of_tensor(self.tensors[region.name], region, self.ranges, self.within, cols)
            checked(self, self.tensors[region.name], replace(region, starts=wanted.starts), starts, found)
        else:
            held = self.held[region.name]
            if (wanted_in := level_for(held, region, levels)) is not held.level:
                self._may_lie(held, wanted_in)
            found = of_buffer(held, region)
        if levels and found.level not in levels:
            where = " or ".join(map(str, levels))
            raise TileError(f"{region.name} lies in {found.level}, and has to lie in {where} here", span)
        return found

    def misplaced(self, name: str, level: Level) -> None:
        """Reads the kernel again with a shared buffer in this memory, where that is not known yet."""
        if name not in self.levels:
            raise Misplaced(name, level)

    def _may_lie(self, held: Held, level: Level) -> None:
        """As `misplaced`. In the order of the statements a buffer of both kinds of core lies in UB (`both_cores.py`)."""
        if held.name in self.open:
            self.misplaced(held.name, level)
            if self.ends is not None and level is Level.UB is not self.levels[held.name]:
                raise Misplaced(held.name, level)

    def used_by_vectors(self, name: str) -> None:
        """A buffer of whichever memory, which the vector cores need in UB, where the kernel leaves open where it lies."""
        if name in self.held and self.held[name].level is not Level.UB:
            self._may_lie(self.held[name], Level.UB)

    def level_of(self, value: Any) -> Level:
        """Where a buffer, a window or a region lies."""
        name = value.name if isinstance(value, Buffer | Region) else value.buffer.name
        return Level.GM if name in self.tensors else self.held[name].level

    @contextmanager
    def where(self, condition: Expr) -> Iterator[None]:
        """What is read here is done where the condition holds, in which no element stands that may change meanwhile."""
        outside = self.within
        if not elements_in(condition):
            self.within = ix.both(outside, condition)
        try:
            yield
        finally:
            self.within = outside

    @contextmanager
    def variable(self, name: str, trips: int) -> Any:
        """A loop variable that takes the values 0 .. trips - 1, under a name of its own."""
        unique = self.unique(name if name not in (ix.BLOCK, ix.SUB, "_") else f"{name.strip('_')}i")
        self.grid[unique] = (0, max(0, trips - 1))
        yield unique


def _name(core: str | None) -> str:
    return "cube core" if core == AIC else "vector cores"


# Statements


def _with(r: ExpertReader, node: ast.With) -> None:
    if len(node.items) > 1:
        node = one_by_one(node)
    scopes = [evaluate(r, item.context_expr) for item in node.items]
    if len(scopes) == 1 and isinstance(scopes[0], Branch):
        return r.unit.taken(r, node, scopes[0])
    if len(scopes) == 1 and isinstance(scopes[0], Pipe):
        return scopes[0].run(r, node)
    if len(scopes) != 1 or not isinstance(scopes[0], Scope):
        raise r.error('inside a kernel, `with` stands before T.Scope("C") and T.Scope("V")', node)
    if r.core is not None:
        raise r.error("a scope inside of a scope", node, "each core has a scope of its own, one behind the other")
    r.core = scopes[0].core
    try:
        local = dict(r.local)
        r.unit.trip(r, node.body, Exits(), r.span(node))
        r.local = {n: v for n, v in r.local.items() if n in local} | {n: local[n] for n in local if n not in r.local}
    finally:
        r.core = None


def _for(r: ExpertReader, node: ast.For) -> None:
    over = evaluate(r, node.iter)
    if isinstance(over, range):
        over = counted(r, r.span(node.iter), over.start, over.stop, over.step)
    if isinstance(over, Persistent):
        return _persistent(r, node, over)
    if isinstance(over, Loop) and r.span(node) in r.by_trips:
        over = [over.starts[0] + n * over.step for n in range(over.extents[0])]
    if isinstance(over, Iterable) and not is_tile(over) and not isinstance(over, str | dict):
        with r.unit.exits(r, node.body, r.span(node)) as exits:
            for value in list(over):
                _bind_target(r, node.target, value)
                r.unit.trip(r, node.body, exits, r.span(node))
        return None
    if not isinstance(over, Loop):
        raise r.error(f"{ast.unparse(node.iter)} is not a loop", node.iter, "T.serial, T.Pipelined, T.Persistent and range are")
    if over.kind == "parallel":
        return with_ends(r, node, over, names := _targets(r, node), lambda *inside: r.elementwise(r, *inside, names))
    if r.in_parallel:
        raise r.error("a serial loop inside T.Parallel is not supported", node, "put the serial loop outside")
    return _loop(r, node, over, _targets(r, node), 0)


def _targets(r: ExpertReader, node: ast.For) -> list[str]:
    targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
    if not all(isinstance(t, ast.Name) for t in targets):
        raise r.error(f"a loop's variables are names, not {ast.unparse(node.target)}", node.target)
    return [t.id for t in targets if isinstance(t, ast.Name)]


def _bind_target(r: ExpertReader, target: ast.expr, value: Any) -> None:
    names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    values = value if len(names) > 1 else [value]
    for name, v in zip(names, values, strict=True):
        r.local[name.id] = v  # type: ignore[attr-defined]


def on(r: ExpertReader, core: str, node: pr.Node) -> None:
    """A node of one core, whatever scope is read."""
    r.statements.append(On(core, node))  # type: ignore[arg-type]


def _loop(r: ExpertReader, node: ast.For, loop: Loop, names: list[str], axis: int) -> None:
    if len(names) != len(loop.extents):
        raise r.error(f"this loop has {len(loop.extents)} variables, got {ast.unparse(node.target)}", node.target)
    trips, start = loop.extents[axis], r.unit.settled(r, ix.wrap(loop.starts[axis]), r.span(node.iter), fixed=True)
    if trips == 0:
        return
    until = None if loop.count is None else r.unit.settled(r, loop.count, r.span(node.iter), fixed=True)
    with r.unit.exits(r, node.body, r.span(node)) as exits, r.variable(names[axis], trips) as var, r.block(repeats=True) as body:
        if exits.loop and (len(names) > 1 or loop.stages > 1):
            raise r.error("this loop cannot be left", node, "T.serial and range over one variable can")
        if len(names) == 1 and until is None and trips <= MOST_TRIPS:
            r.around[var] = r.span(node)
        before = r.ends and r.ends.begun()
        r.local[names[axis]] = start + ix.var(var) * loop.step
        with r.where(runs(var, until, r.ranges)):
            if axis + 1 < len(names):
                _loop(r, node, loop, names, axis + 1)
            else:
                r.unit.trip(r, node.body, exits, r.span(node))
        if r.ends and before:
            r.ends.left(r, var, before, trips if until is None and not (exits.loop or exits.trip) else 0)
    made = pr.Loop(var, trips, tuple(body), r.span(node), until)  # type: ignore[arg-type]
    if loop.kind == "pipelined" and loop.stages > 1:
        r.statements += r.prefetched(r, made, loop.stages)  # type: ignore[arg-type]
    else:
        r.statements.append(On(None, made))  # type: ignore[arg-type]


def _persistent(r: ExpertReader, node: ast.For, over: Persistent) -> None:
    """Wave by wave, the tiles in groups of `group` along the last dimension; the last group may be narrower."""
    names = _targets(r, node)
    total = 1
    for n in over.domain:
        total *= n
    waves = -(-total // over.wave)
    if len(names) != len(over.domain):
        raise r.error(f"this domain has {len(over.domain)} dimensions, got {ast.unparse(node.target)}", node.target)
    with r.unit.exits(r, node.body, r.span(node)) as exits, r.variable("wave", waves) as var:
        if exits.loop:
            raise r.error("this loop cannot be left", node, "T.serial and range over one variable can")
        tile = ix.var(var) * over.wave + over.index
        least, most = ix.bounds(tile, r.ranges)
        before = r.ends and r.ends.begun()
        with r.block(repeats=True) as body, r.where(ix.less(tile, total)):
            for name, value in zip(names, _coordinates(tile, over, r.ranges), strict=True):
                r.local[name] = value
            r.unit.trip(r, node.body, exits, r.span(node))
        if r.ends and before:
            r.ends.left(r, var, before)
    inner = tuple(body) if most < total else (On(None, pr.When(ix.less(tile, total), tuple(body))),)  # type: ignore[arg-type]
    r.statements.append(On(None, pr.Loop(var, waves, inner, r.span(node))))  # type: ignore[arg-type]


def _coordinates(tile: Expr, over: Persistent, ranges: Mapping[str, Interval]) -> list[Expr]:
    *others, last = over.domain
    group, rest = min(over.group, last), 1
    for n in others:
        rest *= n
    band, inside = tile // (group * rest), tile % (group * rest)
    width = ix.wrap(group) if last % group == 0 else ix.minimum(group, last - band * group)
    at, rem = ix.mod(inside, width), ix.div(inside, width)
    found = [band * group + at]
    for n in reversed(others):
        found.insert(0, rem % n if n is not others[0] or len(others) > 1 else rem)
        rem = rem // n
    return [ix.simplified(e, ranges) for e in found]


OWN_RULES: dict[type, Callable[..., None]] = {**RULES, ast.With: _with, ast.For: _for}


__all__ = ["AIC", "AIV", "ExpertReader", "Misplaced", "On", "Persistent", "Scope"]
