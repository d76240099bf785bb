"""A saturated e-graph as flat data: physical nodes, their classes, and what every class is for. Extractors see only this."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tile_eg.errors import TileError
from tile_eg.ir.index import Expr
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.ir.passed import Passed
from tile_eg.ir.values import Place, Term, Values
from tile_eg.ops.records import record
from tile_eg.ops.types import DType, Level
from tile_eg.rules import Theory


@record
class Tile:
    """A value's shape and valid extents. `fill` is its constant where it has one, `ramp` its steps along rows and columns.

    Of a product, `matmul` tells which operands are transposed, `depth` and `factors` are its k and its operands' dtypes.
    `rules` are those that found equal values. `places` are what the author says of the buffers that hold it, by their names.
    `strips`: it holds another tile in strips of 32 bytes.
    """

    rows: int
    cols: int
    dtype: DType
    vrows: Expr
    vcols: Expr
    fill: float | Passed | None = None
    matmul: tuple[bool, bool] | None = None
    depth: int = 0
    factors: tuple[DType, ...] = ()
    term: Term | None = None
    rules: tuple[str, ...] = ()
    ramp: tuple[int, int] | None = None
    places: tuple[tuple[str, Place], ...] = ()
    strips: bool = False


@record
class Demand:
    """What a class of P is a demand for: a value, its level, the region, and the share of one vector core.

    A share of None is the whole, 0 or 1 a half along that axis. So many `tiles` lie there beside each other, one for each vector
    core.
    """

    tile: Tile
    level: Level
    share: int | None
    region: int
    tiles: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and cols that one core holds."""
        r, c = self.tile.rows, self.tile.cols
        return (r // 2, c) if self.share == 0 else (r, c // 2) if self.share == 1 else (r, c)


    @property
    def gap(self) -> int:
        """Elements between two rows: in UB a block between strips, which begin in other groups of banks by it."""
        return BLOCK_BYTES // self.tile.dtype.bytes if self.tile.strips and self.level is Level.UB else 0


@dataclass(eq=False)
class Node:
    """A physical e-node: constructor, class, child classes, payload (decoded), region, and the rules that made it."""

    index: int
    op: str
    cls: int
    children: tuple[int, ...]
    payload: tuple[Any, ...]
    region: int
    rules: tuple[str, ...]


@record(eq=False)
class Unpacked:
    """What a saturated e-graph holds for kernels with packed operands: the values with strips of all that may be packed, and all
    nodes, with the e-graph's own names of classes."""

    values: Values
    nodes: tuple[Node, ...]
    root: Any
    where: dict[Any, Demand]


@dataclass(eq=False)
class Graph:
    """A view of a saturated e-graph. `demands` tells what a class of P is for; in the tensors `met` the two vector cores would
    touch the same elements.

    `forms` are the rules behind each loop that is another form of one in the source; `theories` those that took part.
    `grids` are the ways to give the tiles of the grid to the cores; they go with every choice of nodes. `not_implementable` are
    values that no instruction computes, operands first; `misplaced` says which buffer cannot lie where its author puts it.
    `unpacked` is where operands may be packed: `view.packed` makes the graph with them.
    """

    values: Values
    nodes: list[Node]
    classes: dict[int, list[Node]]
    root: int
    demands: dict[int, Demand]
    rows: int
    met: frozenset[str] = frozenset()
    not_implementable: list[Term] = field(default_factory=list)
    grids: tuple[Node, ...] = ()
    phases: list = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    theories: tuple[Theory, ...] = ()
    forms: dict[int, tuple[str, ...]] = field(default_factory=dict)
    misplaced: TileError | None = None
    unpacked: Unpacked | None = None

    @property
    def parents(self) -> dict[int, int]:
        return self.values.parents

    @property
    def trips(self) -> dict[int, int]:
        return self.values.trips

    def ancestors(self, region: int) -> list[int]:
        """The region itself, then the loops around it, then 0."""
        out = [region]
        while region:
            region = self.parents[region]
            out.append(region)
        return out

    def total_trips(self, region: int) -> int:
        """How often an instruction of `region` runs in one block."""
        n = 1
        for r in self.ancestors(region):
            n *= self.trips.get(r, 1)
        return n
