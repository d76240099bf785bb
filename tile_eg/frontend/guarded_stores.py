"""Stores of an element loop to the first rows or columns of a window, `if i < n: C[s + i, j] = c[i, j]`: a store of a part. With
`and i > 2` the loop begins at a number.

The equality: a choice between a value and what the target holds, by the positions below a number, stores the value where they
are. It holds of tensors that nothing else in the kernel reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from tile_eg.ir import index as ix
from tile_eg.ir.index import ONE, Expr, terms_of
from tile_eg.ir.index_elements import element
from tile_eg.ir.kernel import (
    Alloc,
    Assign,
    Binary,
    Cast,
    Choose,
    Index,
    Kernel,
    Number,
    Parallel,
    Region,
    Select,
    Stmt,
    Tensor,
    TileExpr,
    allocs,
    assigns,
    at_places,
    exchanged,
)
from tile_eg.ir.operands import regions
from tile_eg.ops.types import I32

Counts = dict[str, Expr]
Shape = Callable[[str], tuple[int, ...] | None]
INDEX: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "min": ix.minimum, "max": ix.maximum,
}  # fmt: skip
"""What is computed of numbers that are read, as of indices."""


def with_counted_stores(kernel: Kernel) -> Kernel:
    """The kernel in which such choices are stores of windows whose length is known at run time."""
    tensors = {t.name: t for t in kernel.tensors}
    stores = [s for s in assigns(kernel.body) if s.target.name in tensors and _kept(s)]
    read = {r.name for s in assigns(kernel.body) for r in _read(s)}
    names = {s.target.name for s in stores} - read
    if not names:
        return kernel
    return replace(kernel, body=_Stores(kernel, {n: tensors[n] for n in names}).body(kernel.body))


def with_fewer_elements(s: Parallel, tensors: Collection[str]) -> tuple[Parallel, ...]:
    """The loop, whose statements are done one after the other, each for all elements, as loops over what is stored to tensors
    where a condition takes the first elements alone, as many as a number says."""
    found: list[Parallel] = []
    for a in s.body:
        short = _shorter(s, a) if a.target.name in tensors else None
        if short is None and found and found[-1].extents == s.extents:
            found[-1] = replace(found[-1], body=(*found[-1].body, a))
        else:
            found.append(short or replace(s, body=(a,)))
    return tuple(found)


def _shorter(s: Parallel, a: Assign) -> Parallel | None:
    value, counts = first_elements(s, a) or (a.value, {})
    if not counts or any(n.value is None for n in counts.values()):
        return None
    extents = tuple(min(n, max(0, int(counts.get(v, ix.const(n)).value or 0))) for v, n in zip(s.vars, s.extents, strict=True))
    return replace(s, extents=extents, body=(replace(a, value=value),)) if all(extents) else None


def first_elements(s: Parallel, a: Assign, shape: Shape = lambda _: None) -> tuple[TileExpr, Counts] | None:
    """What an assignment stores to the first elements of its loop along some variables, and to how many, while the others stay as
    they are; None for any other. `shape` gives that of what holds numbers of i32 which may be read."""
    value, counts = a.value, Counts()
    while isinstance(value, Select | Choose) and _keeps(value, a.target):
        condition = _condition(value, shape)
        own = _counts(condition, s) if condition is not None else None
        if own is None:
            return None
        counts, value = _both(counts, own), value.x
    return (value, counts) if counts else None


def _condition(value: Select | Choose, shape: Shape) -> Expr | None:
    """What a choice asks of positions; None where it compares elements of tiles."""
    if isinstance(value, Select):
        return value.condition
    a, b = _index(value.a, shape), _index(value.b, shape)
    if a is None or b is None:
        return None
    asked = {"lt": (a, b), "le": (a, b + 1), "gt": (b, a), "ge": (b, a + 1)}
    return ix.less(*asked[value.op]) if value.op in asked else None


def _index(e: TileExpr, shape: Shape) -> Expr | None:
    """A side of a comparison as an index: a position, a number, or one that is read."""
    match e:
        case Index():
            return e.value
        case Cast(dtype, Index(value)) if dtype is I32:
            return value
        case Number() if float(e.value).is_integer():
            return ix.const(int(e.value))
        case Region() if not any(e.extents) and (found := shape(e.name)) is not None:
            return element(e.name, found, e.starts)
        case Binary() if e.op in INDEX and (x := _index(e.x, shape)) is not None and (y := _index(e.y, shape)) is not None:
            return INDEX[e.op](x, y)
    return None


def _kept(s: Assign) -> bool:
    """Whether an assignment keeps what its target holds where a condition does not hold."""
    return _keeps(s.value, s.target) and not s.atomic


def _keeps(value: TileExpr, target: Region) -> bool:
    return isinstance(value, Select | Choose) and value.y == target


def _read(s: Assign) -> Iterator[Region]:
    """What an assignment reads, but for what it keeps of its target."""
    value = s.value
    while _keeps(value, s.target):
        assert isinstance(value, Select | Choose)
        yield from regions(value.a) if isinstance(value, Choose) else ()
        yield from regions(value.b) if isinstance(value, Choose) else ()
        value = value.x
    yield from regions(value)


class _Stores:
    """Takes the stores to these tensors out of element loops."""

    def __init__(self, kernel: Kernel, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = tensors
        self.arrays: dict[str, Tensor | Alloc] = {t.name: t for t in kernel.tensors}
        self.allocs = {s.name: s for s in allocs(kernel.body)}
        self.arrays |= self.allocs
        self.taken = set(self.arrays)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return exchanged(body, lambda s: self.loop(s) if isinstance(s, Parallel) else None)

    def loop(self, s: Parallel) -> Iterator[Stmt]:
        inside: list[Assign] = []
        behind: list[Stmt] = []
        for n, a in enumerate(s.body):
            found = self.window(a, s) if isinstance(a, Assign) else None
            if not isinstance(a, Assign) or (found is None and not (later := self.later(a, s))):
                inside.append(a)
                continue
            if found is None:
                if inside:
                    yield replace(s, body=tuple(inside))
                yield from (*behind, *later)
                inside, behind = [], []
                continue
            window, value = found
            written = {after.target.name for after in s.body[n + 1 :] if isinstance(after, Assign)}
            whole = self.whole(value, s)
            if whole is None or whole.name in written:
                whole = self.new(a, s)
                yield self.allocs[whole.name]
                inside.append(replace(a, target=_element(whole, s), value=value))
            behind.append(Assign(window, whole, a.span))
        if inside:
            yield replace(s, body=tuple(inside))
        yield from behind

    def later(self, a: Assign, loop: Parallel) -> tuple[Stmt, ...]:
        """A store to elements from a number on, as one of a shorter loop that begins there; empty where it is no such store."""
        if a.target.name not in self.tensors or not _kept(a):
            return ()
        first: dict[str, int] = {}
        value = _from_on(a.value, a.target, loop, self.shape, first)
        extents = tuple(n - first.get(v, 0) for v, n in zip(loop.vars, loop.extents, strict=True))
        if not first or min(extents) < 1:
            return ()
        moved = at_places(replace(a, value=value), {v: ix.var(v) + n for v, n in first.items()})
        shorter = replace(loop, extents=extents, body=(moved,))
        return tuple(self.loop(shorter)) if self.window(moved, shorter) else ()

    def window(self, a: Assign, loop: Parallel) -> tuple[Region, TileExpr] | None:
        """The window that a loop stores to and the value of each element; None where it is no such store."""
        if a.target.name not in self.tensors or not _kept(a):
            return None
        if (found_first := first_elements(loop, a, self.shape)) is None:
            return None
        value, counts = found_first
        inside = [[v for v in loop.vars if v in ix.variables(start)] for start in a.target.starts]
        if [v for found in inside for v in found] != list(loop.vars) or any(a.target.extents):
            return None
        found = [vs[0] if vs else None for vs in inside]
        if any(v and terms_of(start).get(ix.var(v)) != 1 for v, start in zip(found, a.target.starts, strict=True)):
            return None
        extents = dict(zip(loop.vars, loop.extents, strict=True))
        starts = tuple(ix.substitute(x, dict.fromkeys(loop.vars, ix.ZERO)) for x in a.target.starts)
        where = tuple(counts.get(v) if v else None for v in found)
        return replace(a.target, starts=starts, extents=tuple(extents[v] if v else None for v in found), counts=where), value

    def shape(self, name: str) -> tuple[int, ...] | None:
        return self.arrays[name].shape if self.arrays[name].dtype is I32 else None

    def whole(self, value: TileExpr, loop: Parallel) -> Region | None:
        """The buffer of which a loop stores every element as it is."""
        if not isinstance(value, Region) or value.name not in self.allocs:
            return None
        alloc = self.allocs[value.name]
        own = value.starts == tuple(map(ix.var, loop.vars)) and alloc.shape == loop.extents and not value.counts
        return replace(value, starts=(ix.ZERO,) * len(alloc.shape), extents=alloc.shape) if own else None

    def new(self, a: Assign, loop: Parallel) -> Region:
        """A buffer for what a loop stores."""
        tensor, wish = self.tensors[a.target.name], f"{a.target.name}_part"
        name = next(n for n in (wish, *(f"{wish}{k}" for k in range(len(self.taken) + 1))) if n not in self.taken)
        self.taken.add(name)
        self.allocs[name] = Alloc(name, "shared", tensor.dtype, loop.extents, a.span)
        return Region(name, (ix.ZERO,) * len(loop.extents), loop.extents, a.span)


def _from_on(value: TileExpr, target: Region, loop: Parallel, shape: Shape, first: dict[str, int]) -> TileExpr:
    """A choice without its conditions `i > 2` on variables of the loop, whose first values are noted."""
    if not isinstance(value, Select | Choose) or not _keeps(value, target):
        return value
    inner = _from_on(value.x, target, loop, shape, first)
    rest = ONE
    for part in _parts(condition) if (condition := _condition(value, shape)) is not None else ():
        least = _least(part, loop)
        if least is None:
            rest = ix.both(rest, part)
        else:
            first[least[0]] = max(0, least[1], first.get(least[0], 0))
    if condition is None or rest == condition:
        return replace(value, x=inner)
    return inner if rest == ONE else Select(rest, inner, value.y, value.span)


def _parts(condition: Expr) -> Iterator[Expr]:
    if condition.op != "and":
        yield condition
        return
    for x in condition.args:
        yield from _parts(x)


def _least(condition: Expr, loop: Parallel) -> tuple[str, int] | None:
    """The variable of which a comparison asks that it is at least a number, and that number."""
    if condition.op != "lt":
        return None
    low, high = condition.args
    found = {v for v in loop.vars if terms_of(high - low).get(ix.var(v)) == 1}
    name = next(iter(found), "")
    least = ix.ONE - (high - low - ix.var(name)) if len(found) == 1 else ix.var("")
    return (name, least.value) if least.value is not None else None


def _element(r: Region, loop: Parallel) -> Region:
    return replace(r, starts=tuple(map(ix.var, loop.vars)), extents=(None,) * len(loop.vars))


def _both(first: Counts, second: Counts) -> Counts:
    return first | {v: ix.minimum(first[v], n) if v in first else n for v, n in second.items()}


def _counts(condition: Expr, loop: Parallel) -> Counts | None:
    """How many of a loop's variables a condition holds for, from 0 on; None where it holds for others."""
    if condition.op == "and":
        first, second = (_counts(x, loop) for x in condition.args)
        return None if first is None or second is None else _both(first, second)
    if condition.op != "lt":
        return None
    low, high = condition.args
    left = high - low
    found = [v for v in loop.vars if terms_of(left).get(ix.var(v))]
    if len(found) != 1 or terms_of(left)[ix.var(found[0])] != -1:
        return None
    count = left + ix.var(found[0])
    return None if ix.variables(count) & set(loop.vars) else {found[0]: count}
