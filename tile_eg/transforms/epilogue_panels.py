"""Panels of an epilogue: a product's tile is made once, and what vector cores do with it goes through panels of its rows.

An equality of values: a store of a tile is a loop of stores of its panels, each from its rows of the product. Row panels
(`transforms/row_panels.py`) take the product along, whose operands are then loaded for each of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_eg.ir.index import Expr, variables
from tile_eg.ir.values import WRITES, Term, Values, made_of
from tile_eg.ops.types import BF16, F16, F32
from tile_eg.transforms.axes import NONE, ROWS, CannotSplit
from tile_eg.transforms.k_tiling import adds_products
from tile_eg.transforms.row_panels import Splitter, stores


def epilogue_in_panels(values: Values, panels: int) -> Values | None:
    """The same kernel with what follows its products in `panels` passes over rows; None where nothing does, or where the rows
    cannot be told apart."""
    rows = max((t.args[3].rows for t in stores(values)), default=1)
    if panels < 2 or rows % panels:
        return None
    splitter = _AfterProducts(values, rows, panels)
    try:
        made = splitter.values_in_panels()
    except CannotSplit:
        return None
    return made if splitter.results else None


class _AfterProducts(Splitter):
    """Leaves products as they are, and takes a panel's rows from their results."""

    def __init__(self, values: Values, rows: int, panels: int) -> None:
        super().__init__(values, rows, panels)
        self.results: set[Term] = set()

    def rebuilt(self) -> tuple[Term, ...]:
        after, loops = super().rebuilt(), dict[int, Term]()
        for t in made_of(after):
            if t.op == "loop" and loops.setdefault(t.args[0], t) is not t:  # both before and after a product
                raise CannotSplit
        return after

    def tile(self, t: Term, axis: str) -> Term:
        if not _leaves_cube(t):
            return super().tile(t, axis)
        if (t, axis) not in self.done:
            self.done[t, axis] = self._rows_of(t, axis)
        return self.done[t, axis]

    def _rows_of(self, t: Term, axis: str) -> Term:
        """A panel of a product, or all of it."""
        self._stays_before(t)
        if axis == NONE:
            return t
        if axis != ROWS:
            raise CannotSplit
        self.results.add(t)
        return self.builder.make("panel", self.start, t, **self.shape(t, axis))

    def _stays_before(self, product: Term) -> None:
        """That nothing which a product is made of varies with a loop around it, or is stored by the kernel."""
        terms = made_of((product,))
        own = {t.args[0] for t in terms if t.op == "loop"}
        others = {name for loop, name in self.values.variables.items() if loop not in own}
        for t in terms:
            read = t.op == "given" and t.args[0] in self.outputs
            if read or t.op in WRITES or (t.op in ("arg", "targ") and t.args[0] not in own) or others & _named(t):
                raise CannotSplit
        self.outside |= own

    def told(self, **changed: Any) -> Values:
        made = super().told(**changed)
        return replace(made, spans=self.values.spans | made.spans, buffers=self.values.buffers | made.buffers)


def _leaves_cube(t: Term) -> bool:
    """Whether the cube core hands a value to the vector cores: a product, rounded or with ReLU on the way."""
    rounded = t.op == "cast" and t.dtype in (F16, BF16) and t.args[0].dtype is F32
    return _of_cube(t) or ((rounded or t.args[:1] == ("relu",)) and _of_cube(t.args[-1]))


def _of_cube(t: Term) -> bool:
    """Whether a value is a product, or a sum of products."""
    if t.op == "binary" and t.args[0] == "add":
        one, other = sorted(t.args[1:], key=lambda x: x.op == "matmul")
        return other.op == "matmul" and (one.op == "fill" or _of_cube(one))
    return t.op == "matmul" or (t.op == "proj" and adds_products(t.args[0]))


def _named(t: Term) -> set[str]:
    """The variables by which a term's place and extent are given."""
    return {v for e in (*t.args, t.vrows, t.vcols) if isinstance(e, Expr) for v in variables(e)}
