"""Which instruction stored each element of the outputs, of which tile of the grid, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tile_eg.ir.index import EACH, Expr, evaluate, variables
from tile_eg.ir.program import Gm, Program
from tile_eg.locate.watches import Watched
from tile_eg.ops.records import record
from tile_eg.simulator.watch import Record

Array = np.ndarray


@record
class Stored:
    """A store of a run: the `number`th record, of a tile of the grid, in a block of the launch."""

    number: int
    watched: Watched
    record: Record

    @property
    def tile(self) -> int:
        return self.record.values[0]

    @property
    def trips(self) -> dict[str, int]:
        return self.watched.trips(self.watched.values(self.record))


@record
class Stores:
    """The stores of a run in their order; `last` has the number of the one that came last for each element, -1 for none."""

    each: Sequence[Stored]
    last: Mapping[str, Array]

    def tiles_with(self, wrong: Mapping[str, Array]) -> list[int]:
        """The tiles of the grid that stored to elements of these masks, the first one of the grid first."""
        found = {self.each[n].tile for n in self._numbers(wrong)}
        return sorted(found)

    def first_of(self, wrong: Mapping[str, Array], tile: int) -> tuple[Stored, str, int] | None:
        """The first store of a tile that has left a wrong element: the tensor, and the element's number in it."""
        numbers = [n for n in self._numbers(wrong) if self.each[n].tile == tile]
        for n in sorted(numbers)[:1]:
            for name, mask in wrong.items():
                found = np.flatnonzero(mask.reshape(-1) & (self.last[name] == n))
                if found.size:
                    return self.each[n], name, int(found[0])
        return None

    def _numbers(self, wrong: Mapping[str, Array]) -> set[int]:
        found = (np.unique(self.last[name][mask.reshape(-1)]) for name, mask in wrong.items())
        return {int(n) for part in found for n in part if n >= 0}


def stores_of(program: Program, watched: Sequence[Watched], records: Iterable[Record]) -> Stores:
    """The stores to outputs among the records of a run."""
    sizes = {t.name: int(np.prod(t.shape)) for t in program.tensors if t.output}
    last, each = {name: np.full(size, -1, np.int64) for name, size in sizes.items()}, list[Stored]()
    for seen in records:
        where = watched[seen.id]
        if isinstance(where.instr.dst, Gm) and where.instr.dst.tensor in sizes:
            places = _places(where, where.values(seen))
            name = where.instr.dst.tensor
            last[name][places[(places >= 0) & (places < sizes[name])]] = len(each)
            each.append(Stored(len(each), where, seen))
    return Stores(each, last)


def _places(watched: Watched, values: Mapping[str, int]) -> Array:
    """The elements to which a store goes, counted from the tensor's first one."""
    i = watched.instr
    assert isinstance(i.dst, Gm)
    rows, cols = evaluate(i.rows, values), evaluate(i.cols, values)
    if EACH in variables(i.dst.offset):
        begins = np.array([evaluate(i.dst.offset, {**values, EACH: n}) for n in range(rows)], np.int64)
    else:
        stride = evaluate(i.dst.stride, values) if isinstance(i.dst.stride, Expr) else i.dst.stride
        begins = evaluate(i.dst.offset, values) + stride * np.arange(rows)
    return (begins[:, None] + np.arange(cols)).reshape(-1)
