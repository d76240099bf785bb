"""An operand that vector cores compute: whole rows of it first, which the blocks of a second phase load.

An equality of values, as that of an operand which is a product. Here a block has some rows of the operand, with the columns of
all trips: what they need of the whole row, as a norm does, is there once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tile_eg.ir.index import BLOCK, ZERO, Expr, const, simplified, substitute, var, variables
from tile_eg.ir.values import Term, Values
from tile_eg.transforms.axes import COLS, Axes, CannotSplit
from tile_eg.transforms.operand_first import Operand, known_loops, operand_among, operands
from tile_eg.transforms.rewriter import Rewriter
from tile_eg.transforms.row_panels import in_blocks


def computed_operand(values: Values) -> Operand | None:
    """The one such operand of a kernel, where several of its blocks compute the same rows; None where there is none."""
    found = {x: turned for x, turned in operands(values) if x.op not in ("load", "matmul", "arg", "proj")}
    return None if any(found.values()) else operand_among(values, found)


def rows_made(operand: Operand, panels: Iterable[int]) -> Iterator[Values]:
    """The first phase, with the rows of a tile in so many blocks; none where its columns cannot be told apart."""
    try:
        whole = _Wide(operand).whole_rows()
    except CannotSplit:
        return
    yield from (v for n in panels if (v := whole if n == 1 else in_blocks(whole, n)) is not None)


class _Wide(Axes):
    """Rebuilds the tiles of an operand with the columns of all trips."""

    def __init__(self, operand: Operand) -> None:
        self.operand, self.trips = operand, operand.trips
        self.trip = operand.values.variables[operand.loop.args[0]] if operand.loop else ""
        tile = operand.tile
        super().__init__(self._stored(), tile.cols, tile.cols * self.trips)

    def _stored(self) -> Values:
        """The operand's tiles of one trip, a block for each of its known indices."""
        o = self.operand
        again = Rewriter({BLOCK: o.block_of(var(BLOCK))})
        given = again.builder.make("given", o.tensor)
        store = again.builder.make("store", given, o.offset(var(BLOCK), self._trip), o.tensor.shape[1], again.term(o.tile))
        grid = tuple(o.values.grid[d] for d in o.known)
        known = known_loops(o.values, (o.tile,))
        return again.values(o.values, (store,), shared=(o.tensor,), blocks=o.down, grid=grid or (1,), **known)

    @property
    def _trip(self) -> Expr:
        return var(self.trip) if self.trip else ZERO

    def whole_rows(self) -> Values:
        return self.told(outputs=self.rebuilt())

    def stored_axis(self, store: Term) -> str:
        return COLS

    def window(self, t: Term, axis: str) -> Expr:
        return self._from_the_first(t.args[1], 1, axis)

    def first(self, start: Expr, i: int, j: int, axis: str) -> Expr:
        return self._from_the_first(start, j, axis)

    def _from_the_first(self, place: Expr, step: int, axis: str) -> Expr:
        """A place in the first trip, where those of the others follow it by the columns of a tile, `step` apart."""
        if axis != COLS:
            self.kept(place)
            return place
        ahead = simplified(substitute(place, {self.trip: self._trip + 1}) - place, self._ranges())
        if self.trip and ahead != const(self.size * step):
            raise CannotSplit
        return substitute(place, {self.trip: ZERO})

    def _ranges(self) -> dict[str, tuple[int, int]]:
        own = {self.values.variables[loop]: (0, trips - 1) for loop, trips in self.values.trips.items()}
        return own | {BLOCK: (0, self.values.blocks - 1), self.trip: (0, self.trips - 1)}

    def valid(self, valid: Expr | None) -> Expr | None:
        """How many columns of all trips are valid: all but those of the last trip are."""
        if valid is None or not self.trip:
            return valid
        each = [simplified(substitute(valid, {self.trip: const(n)}), {}) for n in range(self.trips)]
        if any(e.value != self.size for e in each[:-1]):
            raise CannotSplit
        return each[-1] + self.size * (self.trips - 1)

    def kept(self, x: object) -> object:
        if isinstance(x, Expr) and self.trip in variables(x):
            raise CannotSplit
        return x
