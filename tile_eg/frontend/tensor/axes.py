"""Which dimensions of the values of an expression are one axis, and into which axes a reshape cuts them.

Every dimension is a product of atoms, the last one varying fastest. What an operation takes element by element has its atoms in
common; a reshape regroups atoms, and cuts one in two where a dimension ends inside of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from tile_eg.errors import TileError
from tile_eg.frontend.tensor.shapes import Shape
from tile_eg.frontend.tensor.values import Value

Dims = list[list["Atom"]]


@dataclass(eq=False)
class Atom:
    """`same` or `parts` say what it became: another atom, or several of whose extents its own is the product."""

    extent: int
    same: Atom | None = None
    parts: list[Atom] = field(default_factory=list)

    def now(self) -> list[Atom]:
        """The atoms that it is by now."""
        if self.same is not None:
            return self.same.now()
        return [a for p in self.parts for a in p.now()] or [self]

    def cut(self, inner: int) -> None:
        self.parts = [Atom(self.extent // inner), Atom(inner)]


class CannotCut(Exception):
    """Two groupings of one run of elements end nowhere at the same place."""


class Axes:
    """The atoms of every value of a graph, outputs last."""

    def __init__(self, order: Iterable[Value]) -> None:
        self.of: dict[Value, Dims] = {}
        for v in order:
            self.of[v] = self._dims(v)
            assert [prod(a.extent for a in d) for d in self.of[v]] == list(v.shape), v

    def dims(self, v: Value) -> Dims:
        """The atoms of each dimension; none where its size is 1."""
        return [now(d) for d in self.of[v]]

    def _dims(self, v: Value) -> Dims:
        x = [self.dims(o) for o in v.of]
        match v.op:
            case "tensor" | "number" | "arange":
                return fresh(v.shape)
            case "permute":
                return [x[0][a] for a in v.args]
            case "reduce":
                return [d for a, d in enumerate(x[0]) if a not in v.args[1]]
            case "reshape":
                return self._regrouped(v, x[0])
            case "window":
                return _windowed(v, x[0])
            case "slide":
                return _slid(v, x[0])
            case "matmul":
                return _product(v, *x)
            case "gather":
                return _gathered(v, *x)
            case "scan":
                return x[0]
            case "stored":
                own: Dims = [[] for _ in v.shape[len(x[0]) :]] + x[0]
                return [dim or new for dim, new in zip(own, fresh(v.shape), strict=True)]
        return _together(x, v)

    def _regrouped(self, v: Value, dims: Dims) -> Dims:
        try:
            return regrouped([a for d in dims for a in d], v.shape)
        except CannotCut:
            before, after = (" x ".join(map(str, s)) for s in (v.of[0].shape, v.shape))
            help = "axes are cut in parts, or become one; reshape the array before the call where neither is so"
            raise TileError(f"a reshape of {before} to {after} tears its rows", v.span, help=help) from None


def fresh(shape: Shape) -> Dims:
    return [[Atom(n)] if n != 1 else [] for n in shape]


def size_of(dim: Iterable[Atom]) -> int:
    return prod(a.extent for a in dim)


def now(dim: Iterable[Atom]) -> list[Atom]:
    return [a for d in dim for a in d.now()]


def _windowed(v: Value, x: Dims) -> Dims:
    """Where all of an axis is taken, it is the same axis."""
    out: Dims = []
    left = iter(zip(x, v.of[0].shape, strict=True))
    for item in v.args:
        if item is None:
            out.append([])
            continue
        dim, size = next(left)
        if item[1] is not None:
            out += [dim] if item == (0, size, 1) else fresh((item[1],))
    return out


def _slid(v: Value, x: Dims) -> Dims:
    """Along a window's axis lie its places, and behind all axes its elements."""
    moved = {s.axis for s in v.args}
    own = [fresh((n,))[0] if a in moved else d for a, (d, n) in enumerate(zip(x, v.shape, strict=False))]
    return [*own, *fresh(v.shape[len(x) :])]


def _gathered(v: Value, x: Dims, *indices: Dims) -> Dims:
    axes, place, _ = v.args
    rest = [d for n, d in enumerate(x) if n not in axes]
    return [*rest[:place], *_together(list(indices), v), *rest[place:]]


def _product(v: Value, a: Dims, b: Dims) -> Dims:
    one(a[-1], b[-2] if len(b) > 1 else b[0], v)
    rows, cols = a[-2:-1], b[-1:] if len(b) > 1 else []
    lead = _together([a[:-2], b[:-2]], v)
    return [*lead, *rows, *cols]


def _together(operands: list[Dims], v: Value) -> Dims:
    """The dimensions of what is computed element by element; those of size 1 are repeated."""
    rank = max((len(d) for d in operands), default=0)
    out: Dims = [[] for _ in range(rank)]
    for dims in operands:
        for n, dim in enumerate(reversed(dims), 1):
            if dim and out[-n]:
                one(out[-n], dim, v)
            out[-n] = now(dim) or out[-n]
    return out


def one(a: list[Atom], b: list[Atom], v: Value) -> None:
    """Makes one axis of two dimensions."""
    try:
        unify(a, b)
    except CannotCut:
        help = "reshape both in the same way"
        raise TileError("two reshapes cut this axis at different places", v.span, help=help) from None


def unify(a: list[Atom], b: list[Atom]) -> None:
    """Makes the atoms of two dimensions of one size the same."""
    left, right = now(a), now(b)
    while left and right:
        x, y = left[-1], right[-1]
        if x is y or x.extent == y.extent:
            if x is not y:
                x.same = y
            left.pop(), right.pop()
        elif x.extent % y.extent == 0:
            x.cut(y.extent)
        elif y.extent % x.extent == 0:
            y.cut(x.extent)
        else:
            raise CannotCut
        left, right = now(left), now(right)


def regrouped(atoms: list[Atom], shape: Shape) -> Dims:
    """The atoms in dimensions of these sizes, cut where a dimension ends inside of one."""
    out: Dims = []
    left = list(atoms)
    for size in reversed(shape):
        dim: list[Atom] = []
        while (so_far := prod(a.extent for a in dim)) < size:
            rest, a = size // so_far, left[-1]
            if size % so_far:
                raise CannotCut
            if a.extent > rest:
                if a.extent % rest:
                    raise CannotCut
                a.cut(rest)
                left, dim = now(left), now(dim)
                a = left[-1]
            if rest % a.extent:
                raise CannotCut
            dim.insert(0, left.pop())
        out.insert(0, dim)
    return out
