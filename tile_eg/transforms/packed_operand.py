"""Operands of products that may be copied into strips of 32 bytes: which ones, and where an element of them lies in the copy.

The choice is a rule (`operand-in-strips`, `rules/60_grid.egg`), and so are the loads (`gm-l1-strips`); index arithmetic is
Python's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tile_eg.ir.index import BLOCK, EACH, ONE, ZERO, Expr, Interval, bounds, terms_of, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import strip
from tile_eg.ir.program.tasks import free_names
from tile_eg.ir.values import Term, Values, reachable
from tile_eg.transforms.k_tiling import loops_of_products

SEPARATOR = " and "


def copyable(values: Values, long: int, *, few: bool = False) -> list[str]:
    """Matrices of elements of up to 32 bits that are only read, by tiles that move in loops of products: of short rows, or of
    rows that begin off a burst.

    Rows of up to two bursts are short, where `long` bytes are one: ND2NZ takes a start for each. Tiles that move along their rows
    may as well be loaded for several trips at a time, so that of these only the largest of a trip is worth a copy. That is no
    way out where rows begin off a burst: ND2NZ cuts them into requests of what their starts are a multiple of. Where tiles are
    `few`, and a core has no other one to compute meanwhile, such are the only ones.
    """
    loads: dict[str, list[Term]] = {}
    for t in reachable(values):
        if t.op == "load" and t.args[0].op == "given":
            loads.setdefault(t.args[0].args[0].name, []).append(t)
    inner = {values.variables[loop] for loop in loops_of_products(values)}
    read = [t for t in values.tensors if t.name in loads and not t.output and len(t.shape) == 2 and t.dtype.bytes <= 4]
    largest = max((x.rows * x.cols for xs in loads.values() for x in xs if _steps(x, inner)), default=0)
    read = [t for t in read if not few or _off(t, long)]
    return [t.name for t in read if all(_worth_it(values, t, x, _steps(x, inner), long, largest) for x in loads[t.name])]


def _steps(load: Term, loops: set[str]) -> list[int]:
    """By how many elements a load moves on from trip to trip of each of the loops with these variables."""
    return [c for e, c in terms_of(load.args[1]).items() if e.op == "var" and e.args[0] in loops]


def _worth_it(values: Values, tensor: Tensor, load: Term, steps: list[int], long: int, largest: int) -> bool:
    """Whether the tiles of a load have short rows, or such that begin off a burst, move by whole rows or strips, and have a place
    in the copy."""
    cols, size = tensor.shape[1], tensor.dtype.bytes
    off = _off(tensor, long)
    slow = load.rows > 1 and (off or load.cols * size < 2 * long) and load.args[2] == cols
    down = any(c % cols == 0 for c in steps)
    across = (off or load.rows * load.cols == largest) and any(c % strip(tensor.dtype) == 0 for c in steps)
    return slow and (down or across) and place(values, tensor, load.args[1]) is not None


def _off(tensor: Tensor, long: int) -> bool:
    """Whether rows of a matrix begin off a burst."""
    return tensor.shape[1] * tensor.dtype.bytes % long != 0


def together(tensors: Sequence[str]) -> list[str]:
    """The sets of these tensors that are worth a copy, each as a text: all of them, and each alone."""
    return [*([SEPARATOR.join(tensors)] if len(tensors) > 1 else []), *tensors]


def with_all_strips(values: Values, tensors: Sequence[str]) -> Values:
    """The kernel with a tensor for each of these that holds it in strips."""
    for tensor in tensors:
        source = next(t for t in values.tensors if t.name == tensor)
        name = free_names((f"{tensor}_strips",), {t.name for t in values.in_gm})[f"{tensor}_strips"]
        rows, cols = source.shape
        wide = strip(source.dtype)
        strips = Tensor(name, source.dtype, (-(-cols // wide), rows * wide), True)
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


def place(values: Values, tensor: Tensor, offset: Expr) -> Expr | None:
    """Where the element at an offset of a matrix lies in its strips; None where row and column cannot be told apart."""
    if elements_in(offset) or EACH in variables(offset):
        return None
    (rows, cols), wide = tensor.shape, strip(tensor.dtype)
    row, col, at = ZERO, ZERO, ZERO
    for e, n in terms_of(offset).items():
        down, across = divmod(n, cols)
        if across % wide or (across and e != ONE and not 0 < n < cols):
            return None
        row, col = row + e * down, col + e * across
        at = at + e * (down * wide + across * rows)
    low, high = bounds(col, _ranges(values))
    return at if low >= 0 and high < cols else None


def _ranges(values: Values) -> dict[str, Interval]:
    loops = {name: (0, values.trips[loop] - 1) for loop, name in values.variables.items()}
    return loops | {BLOCK: (0, values.blocks - 1)}


def offsets(values: Values, tensor: str) -> Iterator[Expr]:
    """Where the loads of a tensor begin."""
    for t in reachable(values):
        if t.op == "load" and t.args[0].op == "given" and t.args[0].args[0].name == tensor:
            yield t.args[1]


def strides(values: Values) -> Iterator[tuple[str, str, int]]:
    """Each tensor that is there in strips, what holds them, and the elements from one strip to the next."""
    for tensor, name in values.strips.items():
        yield tensor, name, next(t.shape[1] for t in values.shared if t.name == name)


__all__ = ["copyable", "offsets", "place", "strides", "together", "with_all_strips", "with_strips", "without_strips"]
