"""Parts of buffers outside of loops over rows and elements, as element loops: `y[:] = x[0:n] * s[0]`, `y[0] = 2`.

An assignment of values that are computed element by element is the loop over the elements of its target. One to a part of a
buffer is the loop over all of it in which the other elements keep their values; they are 0 where nothing was written before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tile_eg.errors import Span
from tile_eg.frontend.python.values import nodes, regions_in
from tile_eg.frontend.ranges import extremes
from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO, Expr, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import (
    Alloc,
    Assign,
    Binary,
    Broadcast,
    Cast,
    Choose,
    For,
    If,
    Index,
    Number,
    Parallel,
    Reduce,
    Region,
    Select,
    Stmt,
    TileExpr,
    Unary,
    Whole,
)
from tile_eg.ops.types import WHOLE


def with_parts(
    body: Sequence[Stmt], unique: Callable[[str], str], blocks: Mapping[str, ix.Interval] = MappingProxyType({})
) -> tuple[Stmt, ...]:
    """The statements with such assignments as element loops; `unique` names their variables. Others stay as they are, and so do
    those to parts that lie outside of their buffer in some of the `blocks`, as the ranges of the grid's variables tell."""
    shapes = {s.name: s for s in nodes(tuple(body)) if isinstance(s, Alloc)}
    outside = {
        id(a) for a in nodes(tuple(body))
        if isinstance(a, Assign) and a.target.name in shapes and _lies_outside(a.target, shapes[a.target.name].shape, blocks)
    }  # fmt: skip
    return _outside(body, shapes, unique, set(), outside)


def _outside(
    body: Sequence[Stmt], shapes: Mapping[str, Alloc], unique: Callable[[str], str], written: set[str], kept: Collection[int]
) -> tuple[Stmt, ...]:
    """The statements outside of loops; `written` are the buffers that may have been written before, `kept` the ids of statements
    that stay as they are."""
    made: list[Stmt] = []
    for s in body:
        if isinstance(s, If):
            then, otherwise = (_outside(arm, shapes, unique, set(written), kept) for arm in (s.then, s.otherwise))
            made.append(replace(s, then=then, otherwise=otherwise))
        else:
            found = [s] if id(s) in kept else _block((s,), shapes, frozenset(), unique)
            made += (_begun(x, written) for x in found) if isinstance(s, Assign) else found
        written |= {a.target.name for a in nodes(s) if isinstance(a, Assign)}
    return tuple(made)


def _lies_outside(r: Region, shape: Sequence[int], ranges: Mapping[str, ix.Interval]) -> bool:
    known = [(start, extent or 1, n) for start, extent, n in zip(r.starts, r.extents, shape, strict=True)
             if variables(start) <= ranges.keys() and not elements_in(start)]  # fmt: skip
    bounds = [(*extremes(start, ranges), extent, n) for start, extent, n in known]
    return any(low < 0 or high + extent > n for low, high, extent, n in bounds)


def _begun(s: Stmt, written: Collection[str]) -> Stmt:
    """The first write to a buffer, where it is one to a part of it: the other elements are 0."""
    if isinstance(s, Parallel) and len(s.body) == 1 and isinstance(s.body[0], Assign):
        a = s.body[0]
        if isinstance(a.value, Select) and a.value.y == a.target and a.target.name not in written:
            return replace(s, body=(replace(a, value=replace(a.value, y=Number(0.0))),))
    return s


def _block(
    body: Sequence[Stmt], shapes: Mapping[str, Alloc], loops: frozenset[str], unique: Callable[[str], str]
) -> Iterator[Stmt]:
    for s in body:
        match s:
            case Assign():
                made, taken_out = _elements_taken_out(s, shapes, loops, unique)
                yield from taken_out
                yield _assignment(made, shapes, loops, unique)
            case Parallel():
                yield from _elements_of_loop(s, shapes, loops, unique)
            case For():
                yield replace(s, body=tuple(_block(s.body, shapes, loops | {s.var}, unique)))
            case If():
                arms = (tuple(_block(arm, shapes, loops, unique)) for arm in (s.then, s.otherwise))
                yield replace(s, then=next(arms), otherwise=next(arms))
            case _:
                yield s


def _elements_taken_out(
    s: Assign, shapes: Mapping[str, Alloc], loops: frozenset[str], unique: Callable[[str], str]
) -> tuple[Assign, list[Stmt]]:
    """The assignment with a buffer of one element for each element of a vector of whole numbers that it reads, `v[3]`, and what
    fills those. One of floats is taken out where the value is made."""
    before: list[Stmt] = []
    target = shapes.get(s.target.name)
    if not s.target.shape or (target is not None and not _whole(s.target, target.shape)):
        return s, before
    for r in dict.fromkeys(regions_in(s.value)):
        alloc = shapes.get(r.name)
        if alloc is None or r.shape or len(alloc.shape) != 1 or alloc.shape == (1,) or variables(r.starts[0]) & loops:
            continue
        if alloc.dtype not in WHOLE:
            continue
        spread = Region(unique(f"{r.name}_spread"), (ZERO,), s.target.shape[-1:], r.span)
        before += _taken_out(r, alloc, spread, unique, s.span)
        s = replace(s, value=exchanged_part(s.value, r, Broadcast(spread, 0, r.span) if len(s.target.shape) == 2 else spread))
    return s, before


def _elements_of_loop(
    s: Parallel, shapes: Mapping[str, Alloc], loops: frozenset[str], unique: Callable[[str], str]
) -> Iterator[Stmt]:
    """An element loop that reads a fixed element of a vector of whole numbers, after what spreads that along its last axis."""
    inside, written = loops | set(s.vars), {a.target.name for a in s.body}
    for r in dict.fromkeys(regions_in(tuple(a.value for a in s.body))):
        alloc = shapes.get(r.name)
        if alloc is None or len(alloc.shape) != 1 or alloc.shape == (1,) or r.name in written or variables(r.starts[0]) & inside:
            continue
        if alloc.dtype not in WHOLE:
            continue
        spread = Region(unique(f"{r.name}_spread"), (ZERO,), s.extents[-1:], r.span)
        yield from _taken_out(r, alloc, spread, unique, s.span)
        element = replace(spread, starts=(ix.var(s.vars[-1]),), extents=(None,))
        s = replace(s, body=tuple(replace(a, value=exchanged_part(a.value, r, element)) for a in s.body))
    yield s


def _taken_out(r: Region, alloc: Alloc, spread: Region, unique: Callable[[str], str], span: Span | None) -> list[Stmt]:
    """spread = v[n]: the sum of the vector that has v[n] in its place and 0 elsewhere, in each element."""
    alone, one = (replace(r, name=unique(f"{r.name}_{what}"), starts=(ZERO,)) for what in ("alone", "element"))
    i, j = (unique(f"{r.name}_{axis}") for axis in "ij")
    at, to = (replace(r, name=name, starts=(ix.var(v),)) for name, v in ((alone.name, i), (spread.name, j)))
    chosen = Select(_inside(r, at.starts), replace(at, name=r.name), Number(0.0), span)
    return [
        *(
            replace(alloc, name=name, shape=shape, span=None)
            for name, shape in ((alone.name, alloc.shape), (one.name, (1,)), (spread.name, spread.shape))
        ),
        Parallel((i,), alloc.shape, (Assign(at, chosen, span),), span),
        Assign(one, Reduce("sum", replace(alone, extents=alloc.shape), 1, span), span),
        Parallel((j,), spread.shape, (Assign(to, one, span),), span),
    ]


def exchanged_part(e: TileExpr, old: Region, new: TileExpr) -> TileExpr:
    """An expression with another one in the place of a window."""
    if e == old:
        return new
    if isinstance(e, Whole):
        return replace(e, xs=tuple(exchanged_part(x, old, new) for x in e.xs))
    parts = {f: exchanged_part(getattr(e, f), old, new) for f in ("a", "b", "x", "y") if hasattr(e, f)}
    return replace(e, **parts) if parts else e  # type: ignore[arg-type]


def _assignment(
    s: Assign, allocs: Mapping[str, Alloc], loops: frozenset[str], unique: Callable[[str], str], spread: bool = False
) -> Stmt:
    """The assignment as an element loop where it needs one, as for the one element that it spreads."""
    shapes = {name: a.shape for name, a in allocs.items()}
    parts = [r for r in regions_in((s.target, s.value)) if r.name in shapes and not _whole(r, shapes[r.name])]
    if not (parts or spread) or s.atomic or any(variables(x) & loops for r in parts for x in r.starts):
        return s
    if any(r.counts for r in regions_in((s.target, s.value))):
        return s
    if any(r.name == s.target.name and r != s.target for r in regions_in(s.value)):
        return s  # an element of what is written, which is read before
    whole = s.target not in parts
    extents = s.target.shape if whole else tuple(shapes[s.target.name])
    if not 1 <= len(extents) <= 2 or not (whole or _same_everywhere(s.value)):
        return s
    names = tuple(unique(f"{s.target.name}_{axis}") for axis in "ij"[: len(extents)])
    at = tuple(map(ix.var, names))
    value = _element(s.value, at)
    if value is None:
        return s
    target = _at(s.target, at) if whole else replace(s.target, starts=at, extents=(None,) * len(at))
    if target is None:
        return s
    if not whole:
        value = Select(_inside(s.target, at), exchanged_part(value, s.target, target), target, s.span)
    return Parallel(names, extents, (replace(s, target=target, value=value),), s.span)


def _whole(r: Region, shape: tuple[int, ...]) -> bool:
    """Whether a window is all of a buffer; an index stands for all of a dimension of one element, but for the only column."""
    same = all(e == n or (e is None and n == 1) for e, n in zip(r.extents, shape, strict=True))
    column = len(r.shape) == 1 and r.extents[-1] is None and r.shape != (1,)
    return same and not column and all(start == ZERO for start in r.starts)


def _same_everywhere(value: TileExpr) -> bool:
    """Whether a value is one number for all elements."""
    return all(not r.shape for r in regions_in(value)) and all(isinstance(n, _ELEMENTWISE) for n in nodes(value))


_ELEMENTWISE = (Region, Number, Index, Unary, Binary, Cast, Select, Choose)


def _element(e: TileExpr, at: tuple[Expr, ...]) -> TileExpr | None:
    """An expression at one element; None where it is not computed element by element."""
    match e:
        case Number() | Index():
            return e
        case Region():
            return _at(e, at)
        case Broadcast() if len(at) == 2:
            return _element(e.x, (at[1 - e.axis],))
        case Unary() | Cast() | Binary() | Select() | Choose():
            parts = {f: _element(getattr(e, f), at) for f in ("a", "b", "x", "y") if hasattr(e, f)}
            return None if None in parts.values() else replace(e, **parts)  # type: ignore[arg-type]
    return None


def _at(r: Region, at: tuple[Expr, ...]) -> Region | None:
    """One element of a window; None where its dimensions are not those that are counted."""
    if r.step != 1 or (r.shape and len(r.shape) != len(at)):
        return None
    rest = iter(at)
    starts = tuple(start if e is None else start + next(rest) for start, e in zip(r.starts, r.extents, strict=True))
    return replace(r, starts=starts, extents=(None,) * len(starts))


def _inside(r: Region, at: tuple[Expr, ...]) -> Expr:
    """The condition under which an element is one of the window."""
    found = ix.ONE
    for start, extent, i in zip(r.starts, r.extents, at, strict=True):
        found = ix.both(found, ix.both(ix.less(start - 1, i), ix.less(i, start + (extent or 1))))
    return found
