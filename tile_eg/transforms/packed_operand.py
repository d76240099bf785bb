"""Operands of products that may be copied into strips of 32 bytes: which ones, and where an element of them lies in the copy.

The choice is a rule (`operand-in-strips`, `rules/60_grid.egg`), and so are the loads (`gm-l1-strips`); index arithmetic is
Python's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import gcd, prod
from typing import Union

from tile_eg.ir.index import BLOCK, EACH, ONE, ZERO, Expr, Interval, bounds, const, mul, substitute, terms_of, variables, wrap
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import strip
from tile_eg.ir.program.tasks import free_names
from tile_eg.ir.seen import indexed
from tile_eg.ir.sizes import sizes_in, usual
from tile_eg.ir.values import Term, Values, reachable
from tile_eg.ops.records import record
from tile_eg.ops.types import DType
from tile_eg.transforms.k_tiling import adds_products

SEPARATOR = " and "
Extent = Union[int, Expr]
"""Elements: a number, or an expression of sizes that are known at run time."""


@record
class Matrices:
    """A tensor as `count` matrices of `rows` and `cols` elements, one behind the other.

    Sizes known at run time may decide how many rows and columns there are; of several matrices, how many rows.
    """

    count: int
    rows: Extent
    cols: Extent

    @classmethod
    def of(cls, shape: Sequence[Extent], stride: Extent) -> Matrices | None:
        """Those whose rows begin so many elements apart; None where no dimensions are that long, or are not known."""
        shape = [n for n in shape if n != 1]
        at = next((i for i in range(1, len(shape)) if _number(prod(shape[i:], start=ONE)) == stride), None)
        if at is None:
            return None
        count = _number(prod(shape[: at - 1], start=ONE))
        known = isinstance(count, int) and (count == 1 or isinstance(stride, int))
        return cls(count, shape[at - 1], stride) if known else None  # type: ignore[arg-type]

    def strips(self, dtype: DType) -> tuple[Extent, ...]:
        """The shape of what holds them in strips: of each matrix its strips, of each strip its rows."""
        wide = strip(dtype)
        shape = (self.cols + (wide - 1)) // wide, self.rows * wide
        return shape if self.count == 1 else (self.count, *shape)

    def part(self, e: Expr, n: int) -> tuple[Expr, int, int, int]:
        """What n times e elements are: an atom, and how many matrices, rows and columns they are times that."""
        if isinstance(self.cols, Expr):
            rows = _quotient(e, self.cols)
            return (e, 0, 0, n) if rows is None else (rows, 0, n, 0)
        if self.count == 1:
            return e, 0, *divmod(n, self.cols)
        if isinstance(self.rows, Expr):
            matrices = _quotient(e, self.rows) if n % self.cols == 0 else None
            return (e, 0, *divmod(n, self.cols)) if matrices is None else (matrices, n // self.cols, 0, 0)
        before, left = divmod(n, self.rows * self.cols)
        return e, before, *divmod(left, self.cols)


def _number(e: Extent) -> Extent:
    """A number where it is one."""
    return e if isinstance(e, int) or e.value is None else e.value


def _quotient(e: Expr, by: Expr) -> Expr | None:
    """x where e is x times `by`."""
    if e == by:
        return ONE
    return e.args[0] if e.op == "mul" and e.args[1] == by else None


def matrices_of(values: Values, load: Term) -> Matrices | None:
    """The matrices that the rows of a load are of; None as in `Matrices.of`."""
    tensor, stride = load.args[0].args[0], load.args[2]
    if values.sizes is None:
        return Matrices.of(indexed(tensor).shape, stride)
    shape = next(shape for t, shape in zip(values.tensors, values.sizes.shapes, strict=True) if t.name == tensor.name)
    return Matrices.of([*map(_number, shape)], _number(values.sizes.stride(tensor.name, stride)))


@record
class RowCuts:
    """What ND2NZ does with rows: `long` bytes are a burst, and a row is cut into requests of what its start is a multiple of, up
    to `request` bytes (0: it is not cut)."""

    long: int
    request: int

    def cut(self, values: Values, load: Term, along: bool) -> bool:
        """Whether rows of a load are cut for where they begin; those of several trips at a time, if it moves `along` them."""
        size = _type(load).bytes
        sure = gcd(_multiple(values, load) * size, self.request)
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
    inner = {values.variables[t.args[0]] for t in reachable(values) if t.op == "loop" and _adds_up(values, t)}
    loads = [t for t in reachable(values) if t.op == "load" and t.args[0].op == "given"]
    largest = max((x.rows * x.cols for x in loads if _steps(x, inner)), default=0)
    out = []
    for t in (t for t in values.tensors if not t.output and t.dtype.bytes <= 4):
        mine = [x for x in loads if x.args[0].args[0].name == t.name]
        found = {matrices_of(values, x) for x in mine}
        m = found.pop() if len(found) == 1 else None
        if m and all(_worth_it(values, m, x, how, 0 if few or m.count > 1 or not _steps(x, inner) else largest) for x in mine):
            out.append(t.name)
    return out


def _adds_up(values: Values, loop: Term) -> bool:
    """Whether a loop is a sum of products, of as many trips in each block."""
    count = values.counts.get(loop.args[0])
    alike = count is None or bool(sizes_in(count) and not variables(count))
    return alike and loop.args[1] > 1 and adds_products(loop)


def _type(load: Term) -> DType:
    """The type of what is loaded."""
    tensor: Tensor = load.args[0].args[0]
    return tensor.dtype


def _steps(load: Term, loops: set[str]) -> list[tuple[Expr, int]]:
    """How a load moves on from trip to trip of each of the loops with these variables: the terms of its offset that do."""
    return [(e, n) for e, n in terms_of(load.args[1]).items() if _variable(e) in loops]


def _variable(e: Expr) -> str:
    """The variable that an expression is, or is a multiple of by a size."""
    e = e.args[0] if e.op == "mul" else e
    return e.args[0] if e.op == "var" else ""


def _multiple(values: Values, load: Term) -> int:
    """What the elements from a row to the next are sure to be a multiple of."""
    if values.sizes is None:
        return load.args[2]  # type: ignore[no-any-return]
    known = dict(values.sizes.multiples)
    stride = wrap(values.sizes.stride(load.args[0].args[0].name, load.args[2]))
    return gcd(*(n * (known.get(e.args[0], 1) if e.op == "size" else 1) for e, n in terms_of(stride).items()))


def _worth_it(values: Values, m: Matrices, load: Term, how: RowCuts, largest: int) -> bool:
    """Whether the tiles of a load have rows that are worth a copy, move by whole rows or strips, and have a place in the copy.
    Where no tile is the `largest`, rows that are cut are the only ones."""
    steps = _steps(load, set(values.variables.values()))
    down = any(not m.part(e, n)[3] for e, n in steps)
    along = not down and any(n % strip(_type(load)) == 0 for _, n in steps)
    short = bool(largest) and how.short(load) and (down or load.rows * load.cols == largest)
    worth = load.rows > 1 and (down or along) and (short or how.cut(values, load, along))
    return worth and place(values, m, _type(load), load.args[1]) is not None


def together(tensors: Sequence[str]) -> list[str]:
    """The sets of these tensors that are worth a copy, each as a text: all of them, and each alone."""
    return [*([SEPARATOR.join(tensors)] if len(tensors) > 1 else []), *tensors]


def with_all_strips(values: Values, tensors: Sequence[str]) -> Values:
    """The kernel with a tensor for each of these that holds it in strips."""
    for tensor in tensors:
        source = next(t for t in values.tensors if t.name == tensor)
        name = free_names((f"{tensor}_strips",), {t.name for t in values.in_gm})[f"{tensor}_strips"]
        found = matrices_of(values, next(loads_of(values, tensor)))
        assert found is not None
        shape = found.strips(source.dtype)
        strips = Tensor(name, source.dtype, tuple(map(usual, shape)), True)
        sizes = values.sizes and values.sizes.with_shared(name, tuple(map(wrap, shape)))
        values = replace(values, shared=(*values.shared, strips), strips=values.strips | {tensor: name}, sizes=sizes)
    return values


def without_strips(values: Values) -> Values:
    """The kernel that reads all its operands as they are."""
    return _with_shared(values, values, {})


def with_strips(values: Values, every: Values, tensors: str) -> Values:
    """The kernel with the strips of a set of tensors, of `every` one that may be packed."""
    return _with_shared(values, every, {tensor: every.strips[tensor] for tensor in tensors.split(SEPARATOR)})


def _with_shared(values: Values, every: Values, strips: dict[str, str]) -> Values:
    """The kernel with these strips alone, of `every` one that may be packed."""
    left_out = {*every.strips.values()} - {*strips.values()}
    own = (t for t in values.shared if t.name not in every.strips.values())
    shared = (*own, *(t for t in every.shared if t.name in strips.values()))
    return replace(values, shared=shared, strips=strips, sizes=every.sizes and every.sizes.without_shared(left_out))


def place(values: Values, m: Matrices, dtype: DType, offset: Expr) -> Expr | None:
    """Where the element at an offset of a tensor lies in the strips of its matrices; None where matrix, row and column cannot be
    told apart.

    Sizes known at run time are taken at their usual numbers for this: at any others windows begin inside of their tensor, too.
    """
    if elements_in(offset) or EACH in variables(offset):
        return None
    wide, size = strip(dtype), prod(m.strips(dtype)[-2:])
    row, col, at = ZERO, ZERO, ZERO
    for e, n in terms_of(offset).items():
        atom, before, down, across = m.part(e, n)
        if across % wide or (across and atom != ONE and not 0 < across == n):
            return None
        row, col = row + atom * down, col + atom * across
        at = at + times(atom, size * before + down * wide + m.rows * across)
    ranges = _ranges(values)
    (first, last), (low, high) = (bounds(_at_usual(values, e), ranges) for e in (row, col))
    inside = m.count == 1 or (first >= 0 and last < usual(m.rows))
    return at if inside and low >= 0 and high < usual(m.cols) else None


def times(atom: Expr, by: Extent) -> Expr:
    """So many times an atom, with numbers outermost in products."""
    parts = (e * n if atom == ONE else atom * n if e == ONE else mul(atom, e) * n for e, n in terms_of(wrap(by)).items())
    return sum(parts, ZERO)


def _at_usual(values: Values, e: Expr) -> Expr:
    """An index at the usual sizes."""
    return substitute(e, {name: const(n) for name, n in values.sizes.usual}) if values.sizes else e


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
    "Extent",
    "Matrices",
    "RowCuts",
    "copyable",
    "loads_of",
    "matrices_of",
    "place",
    "strides",
    "times",
    "together",
    "with_all_strips",
    "with_strips",
    "without_strips",
]
