"""The indices of a kernel that are read from its inputs: whether they lie inside, and how large they may be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from tile_eg.errors import Span, TileError
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.index_elements import all_elements_in, elements_in, indices_of, inside_of
from tile_eg.ir.operands import regions
from tile_eg.ir.reference import Block, blocks
from tile_eg.ir.reference_places import Env, evaluate, meant, outside, refuse_outside
from tile_eg.ir.seen import indexed
from tile_eg.ops.types import INDICES

Array = np.ndarray
Shape = tuple[int, ...]


def check_indices(kernel: kn.Kernel, inputs: Mapping[str, Array]) -> None:
    """TileError at the first window whose place is read from these inputs and lies outside of its tensor."""
    body = _kept(kernel.body, {s.name for s in kn.allocs(kernel.body) if s.dtype in INDICES})
    if not any(_looked_up(s) for s in kn.statements(body)):
        return
    tensors = _tensors(kernel, inputs)
    shapes = _shapes(kernel)
    for point in blocks(kernel.grid):
        _Inside(tensors, shapes).run(body, point)


def check_stored_once(kernel: kn.Kernel, inputs: Mapping[str, Array]) -> None:
    """TileError at a store whose place is read from these inputs and is one that was stored to before: there is no order."""
    tensors = _tensors(kernel, inputs)
    stored = {t.name: np.zeros(indexed(t).shape, bool) for t in kernel.tensors if t.output}
    body = _kept(kernel.body, {s.name for s in kn.allocs(kernel.body) if s.dtype in INDICES})
    shapes = _shapes(kernel)
    for point in blocks(kernel.grid):
        _Stores(tensors, shapes, stored).run(body, point)


def most_of_indices(kernel: kn.Kernel) -> dict[str, int]:
    """For each tensor that indices are read from the most that they may be."""
    shapes = {t.name: indexed(t).shape for t in kernel.tensors}
    held = _shapes(kernel) | dict.fromkeys(kernel.wholes, (1,))
    sources: dict[str, set[str]] = {}
    found: dict[str, int] = {}
    for s in kn.statements(kernel.body):
        if isinstance(s, kn.Assign) and isinstance(s.value, kn.Region):
            sources.setdefault(s.target.name, set()).add(s.value.name)
    for s in kn.statements(kernel.body):
        for r in _windows(s) if isinstance(s, kn.Assign) else ():
            for start, size in zip(r.starts, held[r.name], strict=True):
                for read in _bounded(inside_of(_let_through(start), size - 1), held):
                    for name in {read.args[0], *sources.get(read.args[0], ())} & shapes.keys():
                        found[name] = min(found.get(name, ix.ANY), read.args[2])
    return found


def _bounded(e: ix.Expr, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[ix.Expr]:
    """The elements of tensors and buffers in an index, and those in their places, each with the most that it may be."""
    for read in (r for r in elements_in(e) if r.args[0] in shapes):
        yield read
        for index, size in indices_of(read, prod(shapes[read.args[0]])):
            yield from _bounded(inside_of(index, size - 1), shapes)


def _let_through(e: ix.Expr) -> ix.Expr:
    """An index as it is where the conditions that it is multiplied by hold."""
    if e.op not in ("add", "mul"):
        return e
    if e.op == "mul" and elements_in(e.args[0]) and elements_in(e.args[1]):
        for holds, rest in (e.args, e.args[::-1]):
            if ix.bounds(holds, dict.fromkeys(ix.variables(holds), (0, ix.ANY))) == (0, 1):
                return _let_through(rest)
    return ix.with_operands(e, [_let_through(a) for a in e.args])


class _Indices(Block):
    """A block of which nothing is run but what indices come from. `shapes` are those of tensors and buffers."""

    def __init__(self, tensors: Mapping[str, Array], shapes: Mapping[str, Shape]) -> None:
        super().__init__(dict(tensors))
        self.shapes = shapes

    def statement(self, s: kn.Stmt, env: Env) -> None:
        if isinstance(s, kn.For) and s.count is not None:
            self.picked((s.count,), s.span, env)
        super().statement(s, env)

    def assign(self, s: kn.Assign, env: Env) -> None:
        for r in _windows(s):
            if not self.elements and meant(r, env).any():
                self.picked(r.starts, r.span, env)
            if r.name in self.tensors:
                self.tensor_places(r, self.tensors[r.name], env)
            else:
                self.inside_of_buffer(r, env)
        if s.target.name in self.buffers:
            super().assign(s, env)

    def inside_of_buffer(self, r: kn.Region, env: Env) -> None:
        for d, (start, size) in enumerate(zip(r.starts, self.shapes[r.name], strict=True)):
            if elements_in(start):
                refuse_outside(r, d, np.asarray(evaluate(start, env)), size)

    def picked(self, indices: Iterable[ix.Expr], span: Span | None, env: Env) -> None:
        """TileError where one of these is itself picked by one that was read, outside of its tensor or buffer."""
        for p in _picked(indices, self.shapes):
            if (found := outside(np.asarray(evaluate(p.at, env)), p.size)).size:
                what = f"an index of `{p.name}` that is read is {found.flat[0]}: dimension {p.dimension} has {p.size} elements"
                raise TileError(what, span)


class _Inside(_Indices):
    """The same, with all trips of a loop at once where it reads windows alone, and none begins outside."""

    def statement(self, s: kn.Stmt, env: Env) -> None:
        if not (isinstance(s, kn.For) and self.surely_inside(s, env)):
            super().statement(s, env)

    def surely_inside(self, s: kn.For, env: Env) -> bool:
        if not all(isinstance(a, kn.Assign) and a.target.name not in self.buffers for a in s.body):
            return False
        windows = [r for a in s.body for r in _windows(a)]  # type: ignore[arg-type]
        if any(c is not None for r in windows for c in r.counts):
            return False
        count = s.extent if s.count is None else int(evaluate(s.count, env))
        trips = {**env, s.var: np.arange(s.start, s.start + count), ix.READ: lambda name, place, _: self.read(name, place)}
        starts = [x for r in windows for x in zip(r.starts, self.shapes[r.name], strict=True) if elements_in(x[0])]
        indices = (*(x for r in windows for x in r.starts), *((s.count,) if s.count is not None else ()))
        starts += [(p.at, p.size) for p in _picked(indices, self.shapes)]
        return not any(outside(np.asarray(evaluate(at, trips)), size).size for at, size in starts)  # type: ignore[arg-type]


class _Stores(_Indices):
    """Notes which elements are stored to; the first ones that are stored to again are an error."""

    def __init__(self, tensors: Mapping[str, Array], shapes: Mapping[str, Shape], stored: Mapping[str, Array]) -> None:
        super().__init__(tensors, shapes)
        self.stored = stored

    def assign(self, s: kn.Assign, env: Env) -> None:
        super().assign(s, env)
        if s.target.name in self.stored and not s.atomic and any(map(elements_in, s.target.starts)):
            places, inside = self.tensor_places(s.target, self.tensors[s.target.name], env)
            self.once(s.target, [p[inside] for p in np.broadcast_arrays(*places, inside)[:-1]])

    def once(self, r: kn.Region, places: list[Array]) -> None:
        stored = self.stored[r.name]
        flat = np.ravel_multi_index(tuple(places), stored.shape)
        again = stored.reshape(-1)[flat]
        again[np.setdiff1d(np.arange(len(flat)), np.unique(flat, return_index=True)[1])] = True
        if again.any():
            d = next(d for d, start in enumerate(r.starts) if elements_in(start))
            row = places[d][np.argmax(again)]
            what = f"`{r.name}` is stored to twice in one place: an index that is read is {row} more than once"
            help = "rows and blocks have no order: let each index be there once, or add: " + (
                f"T.atomic_add({r.name}[...], x)" if r.span and r.span.file.endswith(".py") else f"atomic {r.name}[...] += x"
            )
            raise TileError(what, r.span, help=help)
        stored.reshape(-1)[flat] = True


def _tensors(kernel: kn.Kernel, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What the tensors hold, as statements see them."""
    held = map(indexed, kernel.tensors)
    return {t.name: inputs[t.name].reshape(t.shape) if t.name in inputs else _nothing(t) for t in held}


def _nothing(t: kn.Tensor) -> Array:
    """The shape of a tensor of which no element is looked at."""
    return np.broadcast_to(np.zeros((), numpy_dtype(t.dtype)), t.shape)


def _shapes(kernel: kn.Kernel) -> dict[str, Shape]:
    """Those of its tensors and buffers."""
    return {t.name: indexed(t).shape for t in kernel.tensors} | {b.name: b.shape for b in kn.allocs(kernel.body)}


def _kept(body: Sequence[kn.Stmt], buffers: set[str]) -> tuple[kn.Stmt, ...]:
    """The loads of buffers of indices, the loops around them, and each statement with windows whose place is read."""
    return tuple(k for s in body if (k := _kept_statement(s, buffers)) is not None)


def _kept_statement(s: kn.Stmt, buffers: set[str]) -> kn.Stmt | None:
    match s:
        case kn.Alloc():
            return s if s.name in buffers else None
        case kn.Assign():
            loads = s.target.name in buffers and isinstance(s.value, kn.Region)
            return s if loads or _windows(s) else None
        case kn.For() | kn.Parallel():
            inner = _kept(s.body, buffers)
            return replace(s, body=inner) if inner or _looked_up(s) else None  # type: ignore[arg-type]
        case kn.If():
            then, otherwise = _kept(s.then, buffers), _kept(s.otherwise, buffers)
            return replace(s, then=then, otherwise=otherwise) if then or otherwise else None


def _windows(s: kn.Assign) -> list[kn.Region]:
    """The regions of an assignment whose place is read."""
    return [r for r in (s.target, *regions(s.value)) if any(map(elements_in, r.starts))]


class _Picked(NamedTuple):
    """An index that is read, of an element that is read as one itself: in which dimension of which tensor, and its size."""

    name: str
    dimension: int
    at: ix.Expr
    size: int


def _looked_up(s: kn.Stmt) -> bool:
    """Whether an index that is read says where a statement's windows lie, or where the number of its trips is read."""
    match s:
        case kn.Assign():
            return bool(_windows(s))
        case kn.For():
            return s.count is not None and any(elements_in(read.args[1]) for read in elements_in(s.count))
    return False


def _picked(indices: Iterable[ix.Expr], shapes: Mapping[str, Shape]) -> list[_Picked]:
    """The indices that are read in the places of the elements that some indices are made of."""
    reads = sorted({read for e in indices for read in all_elements_in(e) if read.args[0] in shapes}, key=str)
    return [
        _Picked(read.args[0], d, index, size)
        for read in reads
        for d, (index, size) in enumerate(indices_of(read, prod(shapes[read.args[0]])))
        if elements_in(index)
    ]
