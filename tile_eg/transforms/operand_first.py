"""A product that is an operand of another one: made first by all cores, and read by the blocks of a second phase.

An equality of values: each element of the operand is the same whoever makes it. A block that multiplies tiles of an operand which
is a product itself makes these tiles for its own columns of the result, and blocks beside it make them again. Here each tile is
made once, by a block of its own, and lies in a tensor that all blocks share, in the operand's type; when all cores have met, the
second phase loads it from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from math import prod
from typing import Any

from tile_eg.ir.index import BLOCK, ZERO, Expr, const, simplified, substitute, var, variables
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program.tasks import free_names
from tile_eg.ir.values import Term, Values, loops_in, made_of, reachable
from tile_eg.ops.records import record
from tile_eg.transforms.rewriter import Rewriter


@record
class Operand:
    """An operand of products that is made of products: its tiles by the indices of the grid that it knows, `known`, and by the
    trips of a `loop` at the top, if there is one. Where it is `turned`, its rows are what the other product sums over."""

    values: Values
    tile: Term
    known: tuple[int, ...]
    loop: Term | None
    turned: bool

    @property
    def of_products(self) -> bool:
        return _of_products(self.tile)

    @property
    def trips(self) -> int:
        return self.loop.args[1] if self.loop else 1

    @property
    def down(self) -> int:
        """How many tiles lie along what the product keeps: one for each of the known indices."""
        return prod(self.values.grid[d] for d in self.known)

    @cached_property
    def tensor(self) -> Tensor:
        """What holds the tiles between the phases."""
        name = free_names(("operand",), {t.name for t in self.values.in_gm})["operand"]
        down, along = (self.trips, self.down) if self.turned else (self.down, self.trips)
        assert self.tile.dtype is not None
        return Tensor(name, self.tile.dtype, (down * self.tile.rows, along * self.tile.cols), True)

    def offset(self, place: Expr, trip: Expr) -> Expr:
        """Where a tile begins: that of some known indices, which are one number, in a trip."""
        row, col = (trip, place) if self.turned else (place, trip)
        return row * (self.tile.rows * self.tensor.shape[1]) + col * self.tile.cols

    def block_of(self, place: Expr) -> Expr:
        """The first block with these known indices, which are one number."""
        grid = [self.values.grid[d] for d in self.known]
        strides = [prod(self.values.grid[:d]) for d in self.known]
        return sum((i * s for i, s in zip(_indices(place, tuple(grid)), strides, strict=True)), ZERO)

    @property
    def place(self) -> Expr:
        """The known indices of a block, as one number."""
        strides = [prod(self.values.grid[e] for e in self.known[:n]) for n in range(len(self.known))]
        indices = _indices(var(BLOCK), self.values.grid)
        return sum((indices[d] * s for d, s in zip(self.known, strides, strict=True)), ZERO)


def operand_of(values: Values) -> Operand | None:
    """The one such operand of a kernel, where several of its blocks make the same tile; None where there is none."""
    return operand_among(values, {x: turned for x, turned in operands(values) if _of_products(x)})


def operand_among(values: Values, found: Mapping[Term, bool]) -> Operand | None:
    """The one operand that was found, with whether it is turned; None where there are others, or each block makes its own."""
    if len(found) != 1 or values.sizes or values.places or values.shared:
        return None
    (tile, turned), *_ = found.items()
    loops = [t for t in made_of(tile) if t.op == "loop"]
    if _goes_by_states(tile, loops) or any(t.args[0] in values.counts for t in loops):
        return None
    free = frozenset[str]().union(*map(variables, _indices_in(tile))) - {values.variables[t.args[0]] for t in loops} - {BLOCK}
    around = [t for t in reachable(values) if t.op == "loop" and values.variables[t.args[0]] in free and t not in loops]
    if len(around) != len(free) or len(around) > 1 or any(not _at_the_top(values, t) for t in around):
        return None
    known = _known(values, tile)
    operand = Operand(values, tile, known, around[0] if around else None, turned)
    return operand if operand.down < values.blocks else None


def operands(values: Values) -> Iterator[tuple[Term, bool]]:
    """The operands of products, and whether their rows are summed over."""
    for t in reachable(values):
        if t.op == "matmul":
            a, b, ta, tb = t.args
            yield from ((a, ta), (b, not tb))


def _of_products(tile: Term) -> bool:
    return any(t.op == "matmul" for t in made_of(tile))


def _goes_by_states(tile: Term, loops: list[Term]) -> bool:
    """Whether a value goes by a state of a loop around it, or by what the kernel stored."""
    own, below = {t.args[0] for t in loops}, made_of(tile)
    return any((t.op in ("arg", "targ") and t.args[0] not in own) or (t.op == "load" and t.args[0].op != "given") for t in below)


def _indices_in(tile: Term) -> list[Expr]:
    return [e for t in made_of(tile) for e in (*t.args, t.vrows, t.vcols) if isinstance(e, Expr)]


def _at_the_top(values: Values, loop: Term) -> bool:
    return values.parents[loop.args[0]] == 0 and loop.args[0] not in values.counts


def _indices(block: Expr, grid: tuple[int, ...]) -> list[Expr]:
    """The indices of the grid of a block by its number, the first one fastest."""
    return [(block // prod(grid[:d])) % n for d, n in enumerate(grid)]


def _known(values: Values, tile: Term) -> tuple[int, ...]:
    """The dimensions of the grid by which a value is another one."""
    names = [f"#{d}" for d in range(len(values.grid))]
    block = sum((var(name) * prod(values.grid[:d]) for d, name in enumerate(names)), ZERO)
    ranges = {name: (0, n - 1) for name, n in zip(names, values.grid, strict=True)}
    ranges |= {values.variables[loop]: (0, trips - 1) for loop, trips in values.trips.items()}
    left = [variables(simplified(substitute(e, {BLOCK: block}), ranges)) for e in _indices_in(tile)]
    return tuple(d for d, name in enumerate(names) if any(name in found for found in left))


def made(operand: Operand) -> Values:
    """The first phase: a block for each tile of the operand, the first trip's first."""
    values, tensor = operand.values, operand.tensor
    number, trip = var(BLOCK) % operand.down, var(BLOCK) // operand.down
    grid = [values.grid[d] for d in operand.known]
    variable = {values.variables[operand.loop.args[0]]: trip} if operand.loop else {}
    again = Rewriter({BLOCK: operand.block_of(number), **variable})
    tile, given = again.term(operand.tile), again.builder.make("given", tensor)
    store = again.builder.make("store", given, operand.offset(number, trip), tensor.shape[1], tile)
    known = known_loops(values, (operand.tile,))
    return again.values(
        values, (store,), shared=(tensor,), blocks=operand.down * operand.trips, grid=(*grid, operand.trips), **known
    )


def behind(operand: Operand) -> Values:
    """The second phase: the kernel with the operand's tiles loaded."""
    values, tensor, tile = operand.values, operand.tensor, operand.tile
    again = Rewriter({})
    trip = var(values.variables[operand.loop.args[0]]) if operand.loop else const(0)
    shape = {"rows": tile.rows, "cols": tile.cols, "dtype": tile.dtype, "vrows": tile.vrows, "vcols": tile.vcols}
    start, given = operand.offset(operand.place, trip), again.builder.make("given", tensor)
    again.terms[tile] = again.builder.make("load", given, start, tensor.shape[1], **shape)
    outputs = tuple(map(again.term, values.outputs))
    return again.values(values, outputs, shared=(tensor,), **known_loops(values, outputs))


def known_loops(values: Values, roots: tuple[Term, ...]) -> dict[str, Any]:
    """What is known of the loops that some values are made with; those around them are gone."""
    left = loops_in(roots)
    parents = {n: around if around in left else 0 for n, around in values.parents.items() if n in left}
    names = {n: x for n, x in values.variables.items() if n in left}
    return {"parents": parents, "trips": {n: x for n, x in values.trips.items() if n in left}, "variables": names, "deeper": {}}
