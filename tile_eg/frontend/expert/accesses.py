"""Elements of buffers and tensors in an element loop: where an access begins, and its steps along the loop's rows and columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import gcd, prod

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.places import Place, same_memory
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.python.values import nodes
from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO, Expr, Interval
from tile_eg.ir.index_elements import all_elements_in, elements_in
from tile_eg.ir.kernel import Assign, Index, Region, Select, TileExpr
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.ir.program import Tile
from tile_eg.ops.records import record
from tile_eg.ops.types import DType, Level

TRIED = 4096
"""Values of the variables outside of a loop that are looked at to tell two accesses apart."""


class Unfit(Exception):
    """Elements that vector instructions cannot take as they lie; the message says why, in the author's words."""


@record
class Axes:
    """The variables of an element loop's rows and columns (no row for a vector), and how many values each takes."""

    row: str | None
    col: str
    rows: int
    cols: int

    @property
    def names(self) -> tuple[str, ...]:
        return (self.col,) if self.row is None else (self.row, self.col)

    def extent(self, name: str) -> int:
        return self.rows if name == self.row else self.cols

    def without(self, names: set[str]) -> Axes:
        """The axes with these variables at their first value alone."""
        rows = 1 if self.row is None or self.row in names else self.rows
        return Axes(self.row, self.col, rows, 1 if self.col in names else self.cols)

    def uses(self, e: Expr) -> bool:
        """Whether an index varies with the loop."""
        return any(n in ix.variables(e) and self.extent(n) > 1 for n in self.names)


@record
class Access:
    """Elements of a buffer in UB: element (i, j) of the loop is the one at `base` + `down` i + `along` j, in elements.

    `pitch` are the elements from one row of the buffer to the next.
    """

    name: str
    dtype: DType
    base: Expr
    down: int
    along: int
    pitch: int

    @property
    def tile(self) -> Tile:
        if self.base.value is None:
            return Tile(self.name, ZERO, ZERO, self.base)
        return Tile(self.name, ZERO, ix.const(self.base.value // self.pitch), ix.const(self.base.value % self.pitch))

    @property
    def aligned(self) -> bool:
        """Whether it always begins at a multiple of 32 bytes."""
        return multiple(self.base, BLOCK_BYTES // self.dtype.bytes)


def multiple(e: Expr, n: int) -> bool:
    """Whether an index is a multiple of n, as far as its terms show."""
    return all(c % n == 0 for c in ix.terms_of(e).values())


def strides(shape: tuple[int, ...]) -> list[int]:
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def shape_of(r: ExpertReader, region: Region) -> tuple[int, ...]:
    return r.tensors[region.name].shape if region.name in r.tensors else r.held[region.name].shape


def coefficients(start: Expr, axes: Axes, region: Region) -> tuple[int, int, Expr]:
    """An index as so many times the row and the column, and the rest. Raises Unfit where it is no such sum."""
    down = along = 0
    rest = ZERO
    for atom, times in ix.terms_of(start).items():
        if atom.op == "var" and atom.args[0] == axes.row:
            down = times
        elif atom.op == "var" and atom.args[0] == axes.col:
            along = times
        elif axes.uses(atom):
            raise Unfit(f"{region.name} is indexed by {index_text(start)}")
        else:
            rest = rest + atom * times
    return (down if axes.rows > 1 else 0), (along if axes.cols > 1 else 0), rest


def access(r: ExpertReader, region: Region, axes: Axes, guarded: bool) -> Access:
    """One element for each of the loop's. Raises Unfit where these do not lie a fixed step apart, or where not all of them are
    there and a condition guards them (`guarded`). TileError where they are not there."""
    held = r.held[region.name]
    base, steps = ZERO, [0, 0]
    for start, stride, size in zip(region.starts, strides(held.shape), held.shape, strict=True):
        down, along, rest = coefficients(start, axes, region)
        _check_inside(region, (start, down, along, rest), axes, size, guarded)
        base, steps = base + rest * stride, [steps[0] + down * stride, steps[1] + along * stride]
    return Access(held.name, held.dtype, base, steps[0], steps[1], held.cols)


def _check_inside(region: Region, index: tuple[Expr, int, int, Expr], axes: Axes, size: int, guarded: bool) -> None:
    """What lies beyond a dimension, whatever the variables outside of the loop are."""
    start, down, along, rest = index
    low, high = _reach([down, along, 0, 0], axes)
    low, high = (low + rest.value, high + rest.value) if rest.value is not None else (0, high - low)
    if low >= 0 and high < size:
        return
    message = f"{index_text(start)} goes from {low} to {high}, and {region.name} has {size} elements there"
    raise Unfit(message) if guarded else TileError(message, region.span)


def window(region: Region, axes: Axes) -> Region:
    """The elements of a tensor, or of a memory of the cube core, as a window. Raises Unfit where they are none."""
    starts, extents, seen = [], [], []
    for start in region.starts:
        down, along, rest = coefficients(start, axes, region)
        if (down and along) or down not in (0, 1) or along not in (0, 1):
            raise Unfit(f"{region.name} is indexed by {index_text(start)}")
        found = axes.row if down else axes.col if along else None
        seen += [found] if found else []
        starts.append(rest)
        extents.append(axes.extent(found) if found else None)
    if len(seen) != len(set(seen)) or seen == [axes.col, axes.row]:
        raise Unfit(f"{region.name} is read across its rows")
    return Region(region.name, tuple(starts), tuple(extents), region.span)


def whole(a: Access, axes: Axes) -> bool:
    """Whether its rows lie one behind the other without gaps."""
    return axes.rows == 1 or a.down == axes.cols


def place(a: Access, rows: int, cols: int, gapless: bool, span: Span | None) -> Place:
    return Place(a.tile, rows, cols, ix.const(rows), ix.const(cols), Level.UB, a.dtype, gapless, False, span)


# What iterations have to do with one another


def accesses(e: object) -> Iterator[Region]:
    """The elements that an expression reads, those in indices left out."""
    return (n for n in nodes(e) if isinstance(n, Region))


def varies(e: TileExpr, name: str) -> bool:
    """Whether an expression is another one for other values of a variable."""
    for n in nodes(e):
        found = (*n.starts,) if isinstance(n, Region) else (n.value,) if isinstance(n, Index) else ()
        found = (*found, n.condition) if isinstance(n, Select) else found
        if any(name in ix.variables(x) for x in found):
            return True
    return False


def check_order(r: ExpertReader, body: tuple[Assign, ...], axes: Axes) -> None:
    """TileError where the result would depend on the order of the iterations: what one writes, another one reads or writes."""
    written = {s.target.name for s in body}
    _check_names(r, body, written)
    for s in body:
        _check_once(r, s, body, axes)
        indices = [i for x in (s.target, *accesses(s.value)) for i in x.starts]
        if looked_up := written & {e.args[0] for i in indices for e in all_elements_in(i)}:
            name = min(looked_up)
            raise TileError(f"{name} is written in this loop, and elements of it are indices in it", s.span, help="use two loops")
        for other in body:
            for read in (x for x in accesses(other.value) if x.name == s.target.name):
                _check_pair(r, s.target, read, axes, "and read ")
            if other is not s and other.target.name == s.target.name:
                _check_pair(r, s.target, other.target, axes, "")


def _check_names(r: ExpertReader, body: tuple[Assign, ...], written: set[str]) -> None:
    """TileError where what is written has another name, under which the loop uses it too."""
    used = written | {x.name for s in body for x in accesses(s.value)}
    for name in sorted(written):
        for other in sorted((same_memory(r.views, [name]) & used) - {name}):
            what = f"{other} is the same memory as {name}, which is written in this loop"
            raise TileError(what, body[0].span, help="use one name in a T.Parallel, or two loops")


def idle(s: Assign, axes: Axes) -> set[str]:
    """The variables with which the target of an assignment does not vary."""
    return {n for n in axes.names if axes.extent(n) > 1 and not any(n in ix.variables(x) for x in s.target.starts)}


def _check_once(r: ExpertReader, s: Assign, body: tuple[Assign, ...], axes: Axes) -> None:
    """Each element is written by one iteration, or by several that write the same."""
    written = {x.target.name for x in body}
    for name in sorted(idle(s, axes)):
        if varies(s.value, name) or any(x.name in written for x in accesses(s.value)):
            raise TileError(
                f"every iteration of `{name}` writes the same element of {s.target.name}", s.target.span or s.span,
                help="T.Parallel has no order: a sum is T.reduce_sum, and a loop in order is T.serial",
            )  # fmt: skip
    if not _injective(s.target, axes):
        raise TileError(f"several iterations write one element of {s.target.name}", s.target.span or s.span)


def _injective(region: Region, axes: Axes) -> bool:
    """Whether different iterations take different elements, as far as their indices are sums: a dimension with one variable alone
    tells its values apart, one with both where a row's steps go beyond all of a column's or the other way round."""
    try:
        steps = [coefficients(start, axes, region)[:2] for start in region.starts]
    except Unfit:
        return True
    joined = [(abs(a), abs(b)) for a, b in steps if a and b]
    alone = any(bool(a) != bool(b) for a, b in steps)
    return not joined or alone or any(a >= b * axes.cols or b >= a * axes.rows for a, b in joined)


def _linear(r: ExpertReader, region: Region, axes: Axes) -> tuple[Expr, int, int]:
    """The place of element (0, 0) in the buffer or tensor, and its steps along rows and columns."""
    base, down, along = ZERO, 0, 0
    for start, stride in zip(region.starts, strides(shape_of(r, region)), strict=True):
        a, b, rest = coefficients(start, axes, region)
        base, down, along = base + rest * stride, down + a * stride, along + b * stride
    return base, down, along


def _check_pair(r: ExpertReader, one: Region, other: Region, axes: Axes, what: str) -> None:
    """Two accesses of a buffer, one of them a write, in one iteration each or in none together."""
    if one.starts == other.starts or _apart(r, one, other, axes):
        return
    where = " and at ".join(f"[{', '.join(map(index_text, x.starts))}]" for x in (one, other))
    raise TileError(
        f"{one.name} is written {what}at {where}: iterations of T.Parallel would depend on one another",
        other.span or one.span,
        help="T.Parallel has no order: write a loop of its own for each, or keep what is read in another buffer",
    )  # fmt: skip


def _apart(r: ExpertReader, one: Region, other: Region, axes: Axes) -> bool:
    """Whether the two never take one element, as far as can be told: they differ in a dimension, or in their place."""
    try:
        starts = zip(one.starts, other.starts, strict=True)
        pairs = [(coefficients(a, axes, one), coefficients(b, axes, other)) for a, b in starts]
        a, b = _linear(r, one, axes), _linear(r, other, axes)
    except Unfit:
        return False
    pairs.append(((*a[1:], a[0]), (*b[1:], b[0])))
    return any(_differ(r, a[2] - b[2], [*a[:2], -b[0], -b[1]], axes) for a, b in pairs)


def _differ(r: ExpertReader, between: Expr, steps: list[int], axes: Axes) -> bool:
    """Whether `between` plus some of the steps is never 0."""
    low, high = _reach(steps, axes)
    common = gcd(*steps)
    first, last = ix.bounds(between, r.ranges)
    if last + high < 0 or first + low > 0:
        return True
    return all(n + high < 0 or n + low > 0 or (common and n % common) for n in values(between, r.ranges))


def _reach(steps: list[int], axes: Axes) -> Interval:
    sizes = [s * (n - 1) for s, n in zip(steps, (axes.rows, axes.cols) * 2, strict=True)]
    return sum(min(0, s) for s in sizes), sum(max(0, s) for s in sizes)


def values(e: Expr, ranges: dict[str, Interval]) -> Iterator[int]:
    """Every value of an index, and others where these are too many to tell."""
    names = sorted(ix.variables(e))
    spans = [range(ranges[n][0], ranges[n][1] + 1) for n in names]
    low, high = ix.bounds(e, ranges)
    if prod(map(len, spans)) <= TRIED and not elements_in(e):
        yield from (ix.evaluate(e, dict(zip(names, found, strict=True))) for found in product(*spans))
    elif high - low <= TRIED:
        yield from range(low, high + 1)
    else:
        yield 0
