"""Outputs as expressions of whole tensors -> the kernel tree, with the sizes of its tiles left to the search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from itertools import pairwise
from math import prod

from tile_eg.errors import TileError
from tile_eg.frontend.tensor.algebra import Algebra
from tile_eg.frontend.tensor.axes import Axes, CannotCut, one, size_of, unify
from tile_eg.frontend.tensor.build import Build
from tile_eg.frontend.tensor.indices import Affine
from tile_eg.frontend.tensor.joins import Joins, Part, parts_of
from tile_eg.frontend.tensor.neighbours import Joined
from tile_eg.frontend.tensor.points import Point, Points, Puller
from tile_eg.frontend.tensor.roles import Output, Roles
from tile_eg.frontend.tensor.shapes import joined_shape
from tile_eg.frontend.tensor.values import Value, ones, reshape, stored, tensor, truth
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.ir.open_kernel import FIRST, NoBlocks, OpenKernel
from tile_eg.ir.seen import indexed
from tile_eg.ops.types import F32


class TensorKernel:
    """A kernel whose outputs are values; `open` are the names of the sizes of tiles that the search finds."""

    def __init__(
        self, name: str, tensors: Sequence[Tensor], outputs: Mapping[str, Value], source: str, file: str,
        numbers: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """`numbers` are those of each call."""
        self.name, self.tensors, self.source, self.file, self.numbers = name, tuple(tensors), source, file, numbers
        self.given, self.outputs = self.tensors, outputs
        if any(prod(t.shape) == 0 for t in tensors if t.output):
            raise NoBlocks(self.tensors)
        for v in in_order(outputs.values()):
            if v.op == "nothing":
                raise TileError(f"there is no `{v.args[0]}` of no elements", v.span)
        self.taken = {t.name for t in tensors}
        self.roles, self.algebra = self._read([t for t in tensors if t.output], outputs)
        self.open = {axis: fresh(name, self.taken) for axis, name in self.roles.open.items()}
        self.roles.__dict__["open"] = self.open

    def _read(self, tensors: Sequence[Tensor], outputs: Mapping[str, Value]) -> tuple[Roles, Algebra]:
        for t in tensors:
            check_output(indexed(t), outputs[t.name])
        joins = Joins()
        parts = [(t, p) for t in tensors for p in parts_of(_whole(t, outputs[t.name]), joins)]
        axes = Axes(in_order(p.value for _, p in parts))
        _side_by_side(axes, parts)
        points = Points()
        puller, algebra = Puller(axes, points), Algebra(points)
        found = []
        for t, p in parts:
            at = puller.indices(p.value, set())
            place = tuple(Affine(offset=start).plus(d, step) for d, start, step in zip(at, p.at, p.steps, strict=True))
            found.append(Output(t, place, algebra.simplified(puller.at(p.value, at))))
        joined = Joined(found, points_of([o.value for o in found]), points, {t.name: t.shape for t in self.tensors})
        self.tensors = tuple(_seen(t, joined.seen[t.name]) for t in self.tensors)
        return Roles(joined.outputs, points_of([o.value for o in joined.outputs]), joined.seen), algebra

    def at(self, sizes: Mapping[str, int]) -> Kernel:
        """The kernel with tiles of these sizes; of the next smaller ones where an axis has to be parted without a rest."""
        build = Build(self.roles, self.algebra, sizes, self.taken)
        body = build.statements()
        texts, statements = (self.source, self.file), (*build.allocs.values(), *body)
        return Kernel(self.name, self.tensors, build.grid, statements, *texts, numbers=self.numbers)

    def kernel(self, given: Mapping[str, int]) -> Kernel:
        """The kernel; the search finds the sizes of tiles that are not given."""
        left = tuple(n for n in self.open.values() if n not in given)
        if not left:
            return self.at(given)
        first = self.at({**dict.fromkeys(left, FIRST[0]), **given})
        same = {f.name: getattr(first, f.name) for f in fields(Kernel)}
        return OpenKernel(**same, open=left, build=lambda found: self.at({**given, **found}), parts=lambda: self._parts(given))

    def _parts(self, given: Mapping[str, int]) -> list[Kernel]:
        """Kernels of independent outputs, where no tiles are given; behind one of an operand that all of them need, if there is
        such a one, which lies in a tensor of its own."""
        if given:
            return []
        if len(groups := independent(self.outputs)) > 1:
            return [self._part(g, ()) for g in groups]
        if (operand := shared_operand(self.outputs)) is None or operand.dtype is None:
            return []
        name = fresh("operand", {*self.taken, *self.numbers})
        held = Tensor(name, operand.dtype, operand.shape, False)
        instead = tensor(name, operand.shape, operand.dtype, operand.span)
        first = self._part({name: operand}, (replace(held, output=True),))
        return [first, *(self._part(g, (held,)) for g in independent(with_value(self.outputs, operand, instead)))]

    def _part(self, outputs: Mapping[str, Value], more: tuple[Tensor, ...]) -> Kernel:
        tensors = (*(replace(t, output=t.output and t.name in outputs) for t in self.given), *more)
        return TensorKernel(self.name, tensors, outputs, self.source, self.file, self.numbers).kernel({})


def independent(outputs: Mapping[str, Value]) -> list[dict[str, Value]]:
    """The outputs in groups that have no sum, product or scan in common; no groups where there are no products."""
    made = {name: {v for v in in_order([x]) if v.op in TOGETHER} for name, x in outputs.items()}
    if not any(v.op == "matmul" for of in made.values() for v in of):
        return []
    groups: list[tuple[list[str], set[Value]]] = []
    for name, of in made.items():
        shared = [g for g in groups if g[1] & of]
        names, values = [n for g in shared for n in g[0]], set[Value]().union(*(g[1] for g in shared))
        groups = [*(g for g in groups if g not in shared), ([*names, name], values | of)]
    return [{name: outputs[name] for name in names} for names, _ in groups]


def shared_operand(outputs: Mapping[str, Value]) -> Value | None:
    """An operand of products that is computed by a sum, product or scan, and without which the outputs are independent; None if
    there is no such one. Only products take it: what is done to it otherwise is not rounded first."""
    values = list(in_order(outputs.values()))
    for v in dict.fromkeys(x for m in values if m.op == "matmul" for x in m.of):
        taken = all(m.op == "matmul" for m in values if v in m.of) and v not in outputs.values()
        computed = any(x.op in TOGETHER for x in in_order([v]))
        if taken and computed and len(independent(with_value(outputs, v, tensor("", v.shape, v.dtype or F32)))) > 1:
            return v
    return None


def with_value(outputs: Mapping[str, Value], old: Value, new: Value) -> dict[str, Value]:
    """The outputs with another value in the place of one."""
    made = {old: new}
    for v in in_order(outputs.values()):
        if v not in made:
            of = tuple(made[x] for x in v.of)
            made[v] = v if of == v.of else replace(v, of=of)
    return {name: made[v] for name, v in outputs.items()}


TOGETHER = ("reduce", "matmul", "scan")
"""What takes a loop, or meets all elements of an axis."""


def _seen(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    return replace(t, seen=() if shape == t.shape else shape)


def _whole(t: Tensor, x: Value) -> Value:
    """What an output holds, in the shape of its array."""
    return reshape(stored(_held(t, x), indexed(t).shape, t.dtype), t.shape)


def _held(t: Tensor, x: Value) -> Value:
    """The numbers that an output has of a value: of a condition, or where it holds bools, 1 for what is true, else 0."""
    x = truth(x, x.span) if t.truth else x
    return ones(x, None, x.span) if x.truth else x


def _side_by_side(axes: Axes, parts: Sequence[tuple[Tensor, Part]]) -> None:
    """Outputs of one shape are made by one grid, and so is what parts of one output have in common."""
    for (t, a), (u, b) in pairwise(parts):
        alike = a.value.shape == b.value.shape
        for p, q in zip(axes.of[a.value], axes.of[b.value], strict=True) if alike else ():
            one(p, q, b.value)
        if t is u and not alike:
            for p, q in zip(axes.of[a.value], axes.of[b.value], strict=True):
                with suppress(CannotCut):
                    unify(p, q) if size_of(p) == size_of(q) else None


def fresh(name: str, taken: set[str]) -> str:
    found, n = name, 0
    while found in taken:
        n += 1
        found = f"{name}_{n}"
    taken.add(found)
    return found


def check_output(t: Tensor, value: Value) -> None:
    if joined_shape(value.shape, t.shape) != t.shape or len(value.shape) > len(t.shape):
        raise TileError(f"`{t.name}` is {t.dtype}{list(t.shape)}, the value is {value}", value.span or t.span)


def in_order(values: Iterable[Value]) -> Iterator[Value]:
    """Every value behind its operands."""
    seen: set[Value] = set()
    stack = [(v, False) for v in reversed(list(values))]
    while stack:
        v, ready = stack.pop()
        if ready:
            yield v
        elif v not in seen:
            seen.add(v)
            stack.append((v, True))
            stack += [(x, False) for x in reversed(v.of)]


def points_of(roots: Iterable[Point]) -> list[Point]:
    """Every point below some, before those that it is made of."""
    out, seen, stack = [], set[Point](), list(reversed(list(roots)))
    while stack:
        p = stack.pop()
        if p not in seen:
            seen.add(p)
            out.append(p)
            stack += reversed(p.of)
    return out
