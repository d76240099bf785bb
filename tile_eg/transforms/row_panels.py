"""Row panels: the rows of a block's tiles in several passes, one behind the other, or each in a block of its own.

An equality of values: a store of a tile is a loop, or a grid, of stores of its panels. What a panel needs as a
whole (an operand of all rows, a reduction over them) is made whole again in every panel, unless it can be kept.
"""

from __future__ import annotations

from typing import Any

from tile_eg.ir.index import BLOCK, EACH, Expr, const, maximum, minimum, var, variables
from tile_eg.ir.machine import FRACTAL
from tile_eg.ir.program.tasks import free_names
from tile_eg.ir.values import WRITES, Term, Values, first_version, reachable
from tile_eg.transforms.any_size import row_stride
from tile_eg.transforms.axes import COLS, NONE, ROWS, Axes, CannotSplit
from tile_eg.transforms.rewriter import over_blocks

VARIABLE = "panel"
ALONE = 1  # rows of what vector cores do


def in_panels(values: Values, panels: int) -> Values | None:
    """The same kernel with the rows of its largest stored tile in `panels` passes; None where its rows cannot be told apart."""
    rows = max((t.args[3].rows for t in stores(values)), default=1)
    unit = FRACTAL if any(t.op == "matmul" for t in reachable(values)) else ALONE
    if panels < 2 or rows % (panels * unit):
        return None
    try:
        return Splitter(values, rows, panels).values_in_panels()
    except CannotSplit:
        return None


def in_blocks(values: Values, panels: int) -> Values | None:
    """The same kernel with a block for each panel of the rows of its largest stored tile: all first panels, then all second ones.

    None where its rows cannot be told apart.
    """
    rows = max((t.args[3].rows for t in stores(values)), default=1)
    if panels < 2 or rows % panels:
        return None
    try:
        return Splitter(over_blocks(values, panels), rows, panels, var(BLOCK) // values.blocks).outputs_in_panels()
    except CannotSplit:
        return None


def stores(values: Values) -> list[Term]:
    """The terms that write to tensors."""
    out, seen, stack = [], set(), list(values.outputs)
    while stack:
        t = stack.pop()
        if t in seen:
            continue
        seen.add(t)
        if t.op in WRITES:
            out.append(t)
        stack += [a for a in _terms(t.args) if isinstance(a, Term)]
    return out


def _terms(args: tuple) -> list[Any]:
    """The arguments, those of nested tuples (a loop's states) included."""
    return [x for a in args for x in (_terms(a) if isinstance(a, tuple) else [a])]


class Splitter(Axes):
    """Rebuilds a kernel's terms for one panel.

    The loops `outside` stay before the one over panels.
    """

    def __init__(self, values: Values, rows: int, panels: int, panel: Expr | None = None) -> None:
        """`panel` says which one a block has; None: a loop goes through all of them."""
        super().__init__(values, rows, rows // panels)
        self.panels = panels
        self.loop = max(values.parents, default=0) + 1 if panel is None else 0
        self.outside: set[int] = set()
        self.variable = free_names((VARIABLE,), values.variables.values())[VARIABLE]
        self.start = (panel or var(self.variable)) * self.now

    def outputs_in_panels(self) -> Values:
        """The values of a block that has one panel."""
        return self.told(outputs=self.rebuilt())

    def values_in_panels(self) -> Values:
        """The values of a block that goes through all panels."""
        v, after = self.values, self.rebuilt()
        given = [first_version(o) for o in v.outputs]
        loop = self.builder.make("loop", self.loop, self.panels, tuple(zip(given, after, strict=True)), 0)
        outputs = tuple(self.builder.make("tproj", loop, k) for k in range(len(after)))
        parents = {x: around or (0 if x in self.outside else self.loop) for x, around in v.parents.items()} | {self.loop: 0}
        trips, variables = v.trips | {self.loop: self.panels}, v.variables | {self.loop: self.variable}
        return self.told(outputs=outputs, parents=parents, trips=trips, variables=variables)

    def given(self, t: Term) -> Term:
        if t.args[0] in self.outputs and self.loop:
            return self.builder.make("targ", self.loop, self.outputs.index(t.args[0]))
        return t

    def stored_axis(self, store: Term) -> str:
        value = store.args[3]
        if value.rows == self.size:
            return ROWS
        if value.rows == 1 and value.cols == self.size:
            return COLS
        raise CannotSplit

    def window(self, t: Term, axis: str) -> Expr:
        offset: Expr = t.args[1]
        if EACH in variables(offset):
            raise CannotSplit
        return offset + self.start * {ROWS: row_stride(t, self.values), COLS: 1, NONE: 0}[axis]

    def valid(self, valid: Expr | None) -> Expr | None:
        if valid is None or valid.value == self.size:
            return const(self.now)
        return maximum(0, minimum(self.now, valid - self.start))

    def first(self, start: Expr, i: int, j: int, axis: str) -> Expr:
        return start + self.start * {ROWS: i, COLS: j, NONE: 0}[axis]
