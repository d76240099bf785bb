"""Element loops that add to a tensor atomically, `atomic C[i0 + i, j] += x[i, j]`: what is added is a tile, and is added as one.

The equality: the iterations of an element loop know nothing of each other, so that all values may be there before any is added.
Where an index that is read picks the row, `atomic W[idx[i], j] += x[i, j]`, the rows of the tile are added one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tile_eg.frontend.scalars import COMPARE
from tile_eg.ir.index import ZERO, Expr, const, read, substitute, var, variables
from tile_eg.ir.kernel import (
    Alloc,
    Assign,
    Choose,
    For,
    If,
    Index,
    Kernel,
    Number,
    Parallel,
    Region,
    Stmt,
    Tensor,
    TileExpr,
    allocs,
    at_places,
    exchanged,
    statements,
)
from tile_eg.ops.elementwise import COMPARE as ELEMENTWISE
from tile_eg.ops.records import record
from tile_eg.ops.types import I32

BLOCK = 32
"""Bytes of the shortest piece of UB that is moved: a single element has one for itself."""
SIGNS = {op.name: op.sign for op in ELEMENTWISE.values()}
NO_MORE: Mapping[str, Alloc] = MappingProxyType({})


def with_element_sums(
    body: Sequence[Stmt], tensors: Sequence[Tensor], unique: Callable[[str], str], held: Mapping[str, Alloc] = NO_MORE
) -> tuple[Stmt, ...]:
    """The statements in which such loops fill tiles, and these are added; `unique` names buffers and variables, and `held` are
    buffers beside those that the statements allocate."""
    made = _Sums({t.name: t for t in tensors}, {**held, **{s.name: s for s in allocs(tuple(body))}}, unique)
    changed = exchanged(tuple(body), made.instead)
    return (*made.buffers, *changed)


def names_beside(kernel: Kernel) -> Callable[[str], str]:
    """Gives a wished name, with a number where the kernel has it already."""
    every = [*statements(kernel.body)]
    loops = {s.var for s in every if isinstance(s, For)}.union(*(s.vars for s in every if isinstance(s, Parallel)))
    taken = {*(t.name for t in kernel.tensors), *(s.name for s in allocs(kernel.body)), *dict(kernel.grid), *loops}

    def unique(wish: str) -> str:
        name = next(n for n in (wish, *(f"{wish}{k}" for k in range(len(taken) + 1))) if n not in taken)
        taken.add(name)
        return name

    return unique


class _Sums:
    def __init__(self, tensors: Mapping[str, Tensor], held: Mapping[str, Alloc], unique: Callable[[str], str]) -> None:
        self.tensors, self.held, self.unique = tensors, held, unique
        every: list[Tensor | Alloc] = [*tensors.values(), *held.values()]
        self.whole = {x.name for x in every if x.dtype == I32 and len(x.shape) == 1}
        self.buffers: list[Alloc] = []

    def instead(self, s: Stmt) -> list[Stmt] | None:
        if not isinstance(s, Parallel) or not any(a.atomic and a.target.name in self.tensors for a in s.body):
            return None
        return [part for a in s.body for part in (self._added(s, a) if a.atomic else [replace(s, body=(a,))])]

    def _added(self, s: Parallel, a: Assign) -> Iterator[Stmt]:
        """A tile of what is added, where it is none already, and the sums of its rows."""
        places = _Places.of(s, a.target)
        value = a.value
        conditions, a = self._guards(a, places)
        tile = self._whole(s, a, places)
        if tile is None and places.apart and places.rank > 2:
            yield self._outermost(s, replace(a, value=value), places.apart[0])
            return
        if tile is None:
            tile = self._buffer(places, a)
            spread = (*places.order, *([self.unique("e")] if places.alone else ()))
            yield Parallel(spread, tile.shape, (replace(a, target=_element(tile.name, spread), atomic=""),), s.span)
        names = {v: self.unique(v) for v in places.apart}
        row = Region(tile.name, tuple(var(names[v]) for v in places.apart) + (ZERO,) * len(places.shape),
                     (None,) * len(places.apart) + places.shape, a.span)  # fmt: skip
        added: Stmt = replace(a, target=places.window(names), value=row)
        for c in conditions:
            added = If(substitute(c, {old: var(new) for old, new in names.items()}), (added,), (), a.span)
        yield _nest([(names[v], places.extents[v]) for v in places.apart], added, s)

    def _outermost(self, s: Parallel, a: Assign, name: str) -> Stmt:
        """One value of a variable after the other, so that a tile has two axes."""
        new, extents = self.unique(name), dict(zip(s.vars, s.extents, strict=True))
        left = tuple(v for v in s.vars if v != name)
        inner = replace(s, vars=left, extents=tuple(extents[v] for v in left))
        body = tuple(self._added(inner, at_places(a, {name: var(new)})))
        return For(new, 0, extents[name], "serial", 0, body, s.span)

    def _guards(self, a: Assign, places: _Places) -> tuple[list[Expr], Assign]:
        """The conditions under which a whole row is added, innermost first, and what is added under them. Under one by position 0
        is added: a window has to lie in its tensor either way."""
        value, found = a.value, list[Expr]()
        while isinstance(value, Choose) and value.y == Number(0.0):
            c = self._condition(value)
            if c is None or not places.apart or variables(c) & {v for v in places.along if v}:
                break
            found, value = [c, *found], value.x
        return found, replace(a, value=value)

    def _condition(self, e: Choose) -> Expr | None:
        """A condition as one of indices; None where it looks at elements that are no whole numbers."""
        a, b = (self._number(x) for x in (e.a, e.b))
        return COMPARE[SIGNS[e.op]](a, b) if a is not None and b is not None and e.op in SIGNS else None

    def _number(self, e: TileExpr) -> Expr | None:
        """What is compared, as an index: a whole number, or the element of a vector of them."""
        match e:
            case Number(value) if value.is_integer():
                return const(int(value))
            case Index(value):
                return value
            case Region(name, (start,), (None,)) if name in self.whole:
                return read(name, start)
        return None

    def _whole(self, s: Parallel, a: Assign, places: _Places) -> Alloc | None:
        """The buffer whose elements, in their order, are what is added."""
        held = self.held.get(a.value.name) if isinstance(a.value, Region) else None
        if held is None or places.alone or a.value != _element(held.name, places.order):
            return None
        alike = held.shape == tuple(places.extents[v] for v in places.order)
        return held if alike and held.dtype == self.tensors[a.target.name].dtype else None

    def _buffer(self, places: _Places, a: Assign) -> Alloc:
        dtype = self.tensors[a.target.name].dtype
        alone = (BLOCK // dtype.bytes,) if places.alone else ()
        shape = (*(places.extents[v] for v in places.order), *alone)
        self.buffers.append(Alloc(self.unique(f"{a.target.name}_added"), "shared", dtype, shape, a.span))
        return self.buffers[-1]


@record
class _Places:
    """Where the iterations of a loop add: those of `along` to neighbours in a window, those of `apart` each to a window."""

    target: Region
    along: tuple[str | None, ...]
    apart: tuple[str, ...]
    extents: Mapping[str, int]

    @staticmethod
    def of(s: Parallel, target: Region) -> _Places:
        used = [variables(start) & set(s.vars) for start in target.starts]
        along = tuple(_step(s.vars, n, start, used) for n, start in enumerate(target.starts))
        apart = tuple(v for v in s.vars if v not in along)
        return _Places(target, along, apart, dict(zip(s.vars, s.extents, strict=True)))

    @property
    def alone(self) -> bool:
        """Whether each iteration adds a single element."""
        return not any(self.along)

    @property
    def order(self) -> tuple[str, ...]:
        """The variables in the order of the axes of a tile."""
        return (*self.apart, *(v for v in self.along if v))

    @property
    def rank(self) -> int:
        """How many axes a tile has."""
        return len(self.order) + self.alone

    @property
    def shape(self) -> tuple[int, ...]:
        """That of what is added at once."""
        return (1,) if self.alone else tuple(self.extents[v] for v in self.along if v)

    def window(self, names: Mapping[str, str]) -> Region:
        """What is added to at once; `names` are those of the variables that stand for `apart`."""
        env = {old: var(new) for old, new in names.items()} | {v: ZERO for v in self.along if v}
        starts = tuple(substitute(x, env) for x in self.target.starts)
        extents = tuple(None if v is None else self.extents[v] for v in self.along)
        return replace(self.target, starts=starts, extents=(*extents[:-1], 1) if self.alone else extents)


def _step(names: Sequence[str], axis: int, start: Expr, used: Sequence[frozenset[str]]) -> str | None:
    """The variable that goes from neighbour to neighbour along an axis, and occurs in no other one."""
    own = [v for v in used[axis] if not any(v in others for n, others in enumerate(used) if n != axis)]
    return max((v for v in own if v not in variables(start - var(v))), key=names.index, default=None)


def _element(name: str, at: Sequence[str]) -> Region:
    return Region(name, tuple(map(var, at)), (None,) * len(at))


def _nest(loops: Sequence[tuple[str, int]], inner: Stmt, s: Parallel) -> Stmt:
    """A statement in a nest of loops, the first one outermost."""
    for name, extent in reversed(loops):
        inner = For(name, 0, extent, "serial", 0, (inner,), s.span)
    return inner
