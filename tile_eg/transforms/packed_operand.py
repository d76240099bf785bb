"""Operands of products that may be copied into strips of 32 bytes: which ones, and where an element of them lies in the copy.

The choice is a rule (`operand-in-strips`, `rules/60_grid.egg`), and so are the loads (`gm-l1-strips`); index arithmetic is
Python's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from tile_eg.ir.index import BLOCK, EACH, ONE, ZERO, Expr, Interval, bounds, terms_of, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import strip
from tile_eg.ir.program.tasks import free_names
from tile_eg.ir.values import Term, Values, reachable
from tile_eg.ops.types import DType
from tile_eg.transforms.k_tiling import loops_of_products

SEPARATOR = " and "


@dataclass(frozen=True)
class Matrices:
    """A tensor as `count` matrices of `rows` and `cols` elements, one behind the other."""

    count: int
    rows: int
    cols: int

    @classmethod
    def of(cls, tensor: Tensor, stride: int) -> Matrices | None:
        """Those whose rows begin so many elements apart; None where no dimensions are that long."""
        shape = [n for n in tensor.shape if n != 1]
        at = next((i for i in range(1, len(shape)) if prod(shape[i:]) == stride), None)
        return None if at is None else cls(prod(shape[: at - 1]), shape[at - 1], stride)

    @classmethod
    def held(cls, tensor: Tensor, strips: Tensor) -> Matrices:
        """Those of a tensor that these strips hold."""
        count, rows = prod(strips.shape[:-2]), strips.shape[-1] // strip(tensor.dtype)
        return cls(count, rows, prod(tensor.shape) // (count * rows))

    def strips(self, dtype: DType) -> tuple[int, ...]:
        """The shape of what holds them in strips: of each matrix its strips, of each strip its rows."""
        wide = strip(dtype)
        shape = -(-self.cols // wide), self.rows * wide
        return shape if self.count == 1 else (self.count, *shape)


@dataclass(frozen=True)
class RowCuts:
    """What ND2NZ does with rows: `long` bytes are a burst, and a row is cut into requests of what its start is a multiple of, up
    to `request` bytes (0: it is not cut)."""

    long: int
    request: int

    def cut(self, load: Term, along: bool) -> bool:
        """Whether rows of a load are cut for where they begin; those of several trips at a time, if it moves `along` them."""
        size = _type(load).bytes
        sure = gcd(load.args[2] * size, self.request)
        return 0 < sure < (self.request if along else min(load.cols * size, self.request))

    def short(self, load: Term) -> bool:
        """Whether rows have up to two bursts: ND2NZ takes a start for each."""
        return load.cols * _type(load).bytes < 2 * self.long


def copyable(values: Values, how: RowCuts, *, few: bool = False) -> list[str]:
    """Tensors of elements of up to 32 bits that are only read, by tiles that move in loops: of short rows of a matrix in a loop
    of a sum of products, and in any loop of rows that are cut for where they begin.

    Tiles that move along their rows may as well be loaded for several trips at a time, so that of these only the largest of a
    trip is worth a copy; but rows that are cut are no longer by that. Where tiles are `few`, and a core has no other one to
    compute meanwhile, and where there are several matrices, rows that are cut are the only ones.
    """
    inner = {values.variables[loop] for loop in loops_of_products(values)}
    loads = [t for t in reachable(values) if t.op == "load" and t.args[0].op == "given"]
    largest = max((x.rows * x.cols for x in loads if _steps(x, inner)), default=0)
    out = []
    for t in (t for t in values.tensors if not t.output and t.dtype.bytes <= 4):
        mine = [x for x in loads if x.args[0].args[0].name == t.name]
        found = {Matrices.of(t, x.args[2]) for x in mine}
        m = found.pop() if len(found) == 1 else None
        if m and all(_worth_it(values, m, x, how, 0 if few or m.count > 1 or not _steps(x, inner) else largest) for x in mine):
            out.append(t.name)
    return out


def _type(load: Term) -> DType:
    """The type of what is loaded."""
    tensor: Tensor = load.args[0].args[0]
    return tensor.dtype


def _steps(load: Term, loops: set[str]) -> list[int]:
    """By how many elements a load moves on from trip to trip of each of the loops with these variables."""
    return [c for e, c in terms_of(load.args[1]).items() if e.op == "var" and e.args[0] in loops]


def _worth_it(values: Values, m: Matrices, load: Term, how: RowCuts, largest: int) -> bool:
    """Whether the tiles of a load have rows that are worth a copy, move by whole rows or strips, and have a place in the copy.
    Where no tile is the `largest`, rows that are cut are the only ones."""
    steps = _steps(load, set(values.variables.values()))
    down = any(c % m.cols == 0 for c in steps)
    along = not down and any(c % strip(_type(load)) == 0 for c in steps)
    short = bool(largest) and how.short(load) and (down or load.rows * load.cols == largest)
    worth = load.rows > 1 and (down or along) and (short or how.cut(load, along))
    return worth and place(values, m, _type(load), load.args[1]) is not None


def together(tensors: Sequence[str]) -> list[str]:
    """The sets of these tensors that are worth a copy, each as a text: all of them, and each alone."""
    return [*([SEPARATOR.join(tensors)] if len(tensors) > 1 else []), *tensors]


def with_all_strips(values: Values, tensors: Sequence[str]) -> Values:
    """The kernel with a tensor for each of these that holds it in strips."""
    for tensor in tensors:
        source = next(t for t in values.tensors if t.name == tensor)
        name = free_names((f"{tensor}_strips",), {t.name for t in values.in_gm})[f"{tensor}_strips"]
        found = Matrices.of(source, next(loads_of(values, tensor)).args[2])
        assert found is not None
        strips = Tensor(name, source.dtype, found.strips(source.dtype), True)
        values = replace(values, shared=(*values.shared, strips), strips=values.strips | {tensor: name})
    return values


def without_strips(values: Values) -> Values:
    """The kernel that reads all its operands as they are."""
    return replace(values, shared=tuple(t for t in values.shared if t.name not in values.strips.values()), strips={})


def with_strips(values: Values, every: Values, tensors: str) -> Values:
    """The kernel with the strips of a set of tensors, of `every` one that may be packed."""
    strips = {tensor: every.strips[tensor] for tensor in tensors.split(SEPARATOR)}
    held = (t for t in every.shared if t.name in strips.values())
    return replace(values, shared=(*values.shared, *held), strips=strips)


def place(values: Values, m: Matrices, dtype: DType, offset: Expr) -> Expr | None:
    """Where the element at an offset of a tensor lies in the strips of its matrices; None where matrix, row and column cannot be
    told apart."""
    if elements_in(offset) or EACH in variables(offset):
        return None
    wide, size = strip(dtype), prod(m.strips(dtype)[-2:])
    row, col, at = ZERO, ZERO, ZERO
    for e, n in terms_of(offset).items():
        before, left = divmod(n, m.rows * m.cols) if m.count > 1 else (0, n)
        down, across = divmod(left, m.cols)
        if across % wide or (across and e != ONE and not 0 < n < m.cols):
            return None
        row, col = row + e * down, col + e * across
        at = at + e * (before * size + down * wide + across * m.rows)
    ranges = _ranges(values)
    (first, last), (low, high) = bounds(row, ranges), bounds(col, ranges)
    inside = m.count == 1 or (first >= 0 and last < m.rows)
    return at if inside and low >= 0 and high < m.cols else None


def _ranges(values: Values) -> dict[str, Interval]:
    loops = {name: (0, values.trips[loop] - 1) for loop, name in values.variables.items()}
    return loops | {BLOCK: (0, values.blocks - 1)}


def loads_of(values: Values, tensor: str) -> Iterator[Term]:
    """The loads of a tensor."""
    for t in reachable(values):
        if t.op == "load" and t.args[0].op == "given" and t.args[0].args[0].name == tensor:
            yield t


def strides(values: Values) -> Iterator[tuple[str, str, int]]:
    """Each tensor that is there in strips, what holds them, and the elements from one strip to the next."""
    for tensor, name in values.strips.items():
        yield tensor, name, next(t.shape[-1] for t in values.shared if t.name == name)


__all__ = [
    "Matrices",
    "RowCuts",
    "copyable",
    "loads_of",
    "place",
    "strides",
    "together",
    "with_all_strips",
    "with_strips",
    "without_strips",
]
