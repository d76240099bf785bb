"""Rows behind a product: its sums in tiles of other sizes, and a second phase that does what needs whole rows.

An equality of values: each element of a product is the same sum in whatever tile it is made. A block that reduces rows has all
columns of the product, and so it has few rows, and loads all of the right operand for them. Here the sums are made in a grid of
tiles of their own, and lie in a tensor that all blocks share; when all cores have met, the blocks of the second phase load their
rows from there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_eg.ir.index import BLOCK, EACH, ONE, ZERO, Expr, const, minimum, terms_of, var, variables
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import FRACTAL
from tile_eg.ir.program.tasks import free_names
from tile_eg.ir.values import Builder, Term, Values
from tile_eg.ops.records import record
from tile_eg.transforms.axes import COLS, NONE, ROWS
from tile_eg.transforms.rewriter import Rewriter
from tile_eg.transforms.row_panels import in_blocks
from tile_eg.transforms.split_k import loop_of_sums, outside, results

ELEMENTWISE = ("unary", "binary", "cast", "fill")


class NotTiled(Exception):
    """An operand whose rows or columns do not go on from tile to tile."""


@record
class Product:
    """A kernel's sums of products: `rows` and `cols` of elements in all blocks, in the order of the blocks."""

    values: Values
    loop: Term
    rows: int
    cols: int

    @property
    def states(self) -> int:
        """How many sums lie side by side."""
        return len(self.loop.args[2])

    @property
    def shared(self) -> tuple[Tensor, ...]:
        """What holds the sums between the phases; rows begin at whole fractals."""
        wide = -(-self.cols // FRACTAL) * FRACTAL
        names = [f"sums{k + 1 if k else ''}" for k in range(self.states)]
        free = free_names(tuple(names), {t.name for t in self.values.in_gm})
        types = [init.dtype for init, _ in self.loop.args[2]]
        return tuple(Tensor(free[n], t, (self.rows, wide), True) for n, t in zip(names, types, strict=True))


def product_of(values: Values) -> Product | None:
    """The one loop of sums of a kernel, where what follows reduces rows of it; None where there is none, or where its blocks do
    not have the rows in their order."""
    loop = loop_of_sums(values)
    if loop is None or values.sizes or values.places or not _reduces_rows(values, loop):
        return None
    if len({(init.rows, init.cols) for init, _ in loop.args[2]}) > 1:
        return None
    try:
        extents = {_extents(values, after) for _, after in loop.args[2]}
    except NotTiled:
        return None
    found = Product(values, loop, *extents.pop())
    return found if not extents and in_tiles(found, FRACTAL, FRACTAL) else None


def _reduces_rows(values: Values, loop: Term) -> bool:
    return any(t.op == "s_reduce" or (t.op == "reduce" and t.args[0] == 1) for t in outside(values, loop))


def _extents(values: Values, after: Term) -> tuple[int, int]:
    """The rows of a sum in all blocks, and its columns, which are the same in each block."""
    return _total(values, after.vrows, after.rows, values.blocks > 1), _total(values, after.vcols, after.cols, False)


def _total(values: Values, valid: Expr | None, size: int, moves: bool) -> int:
    """The valid elements of all blocks' tiles, where only the last one may be short; of a tile that all blocks have, its own."""
    if valid is None or (valid.value is None and not moves):
        raise NotTiled
    if not moves or valid.value == size:
        return valid.value * (values.blocks if moves else 1)  # type: ignore[operator]
    if valid.op != "min" or const(size) not in valid.args:
        raise NotTiled
    left = terms_of(next(a for a in valid.args if a != const(size)))
    total = left.pop(ONE, 0)
    if left != {var(BLOCK): -size} or not (values.blocks - 1) * size < total <= values.blocks * size:
        raise NotTiled
    return total


def in_tiles(product: Product, rows: int, cols: int) -> Values | None:
    """The first phase: the sums alone, a block for each tile of so many rows and columns, stored as an output is; None where an
    operand is not known along them."""
    try:
        return _Tiles(product, rows, cols).values_in_tiles()
    except NotTiled:
        return None


def behind(product: Product, panels: int = 1) -> Values | None:
    """The second phase: what a block of the kernel does with its rows of the sums; by so many panels of them, a block for each.

    None where rows cannot be told apart.
    """
    values, shared = product.values, product.shared
    again = Rewriter({})
    for k, tensor in enumerate(shared):
        for t in results(values, product.loop, k):
            wide = tensor.shape[1]
            start = var(BLOCK) * (t.rows * wide)
            again.terms[t] = again.builder.make("load", again.builder.make("given", tensor), start, wide, **_shape(t))
    outputs = tuple(map(again.term, values.outputs))
    none: dict[str, Any] = {"parents": {}, "trips": {}, "variables": {}, "deeper": {}}
    whole = again.values(values, outputs, shared=shared, **none)
    return whole if panels == 1 else in_blocks(whole, panels)


@record
class _Cut:
    """One axis of a product: `size` elements are a block's, `total` are valid in all; now `tile` of them are, and a block has the
    tile `index`. `moves`: the blocks of the kernel have one tile after the other, else each has all."""

    size: int
    total: int
    tile: int
    index: Expr
    moves: bool

    @property
    def valid(self) -> Expr:
        """How much of a tile is valid."""
        if self.total % self.tile == 0:
            return const(self.tile)
        return minimum(self.tile, self.total - self.index * self.tile)

    def start(self, offset: Expr, unit: int) -> Expr:
        """Where a tile begins whose rows, or columns, are so many elements apart."""
        step = terms_of(offset).get(var(BLOCK), 0)
        if step != (self.size * unit if self.moves else 0):
            raise NotTiled
        return _fixed(offset - var(BLOCK) * step) + self.index * (self.tile * unit)


class _Tiles:
    """Rebuilds the terms of a product for one tile of it. A term is asked for along an axis: the one of its own that is cut."""

    def __init__(self, product: Product, rows: int, cols: int) -> None:
        self.product, self.values, self.builder = product, product.values, Builder()
        init, block = product.loop.args[2][0][0], var(BLOCK)
        down, across = self.grid = -(-product.rows // rows), -(-product.cols // cols)
        row = ZERO if down == 1 else block if across == 1 else block % down
        self.rows = _Cut(init.rows, product.rows, rows, row, self.values.blocks > 1)
        self.cols = _Cut(init.cols, product.cols, cols, ZERO if across == 1 else block // down, False)
        self.done: dict[tuple[Term, str], Term] = {}

    def values_in_tiles(self) -> Values:
        v, (number, trips, states, stages) = self.values, self.product.loop.args
        pairs = tuple(self._pair(number, k, *pair) for k, pair in enumerate(states))
        loop = self.builder.make("loop", number, trips, pairs, stages)
        outputs = tuple(self._stored(loop, k, tensor) for k, tensor in enumerate(self.product.shared))
        spans = {new: v.spans[old] for (old, _), new in self.done.items() if old in v.spans}
        buffers = {new: v.buffers[old] for (old, _), new in self.done.items() if old in v.buffers}
        known: dict[str, Any] = {"spans": spans, "buffers": buffers, "tensors": (*v.tensors, *self.product.shared)}
        return replace(v, outputs=outputs, blocks=self.grid[0] * self.grid[1], grid=self.grid, **known)

    def _stored(self, loop: Term, k: int, tensor: Tensor) -> Term:
        """The store of a tile of sums."""
        one, wide = self.builder.make("proj", loop, k, **_shape(loop.args[2][k][1])), tensor.shape[1]
        start = self.rows.index * (self.rows.tile * wide) + self.cols.index * self.cols.tile
        return self.builder.make("store", self.builder.make("given", tensor), start, wide, one)

    def _pair(self, loop: int, k: int, init: Term, after: Term) -> tuple[Term, Term]:
        """A state of the loop: zero, and the sum of one more product in each trip."""
        down, across = self.rows, self.cols
        shape = _shape(init) | {"rows": down.tile, "vrows": down.valid, "cols": across.tile, "vcols": across.valid}
        state, product = sorted(after.args[1:], key=lambda x: x.op)
        a, b, ta, tb = product.args
        left, right = self.tile(a, COLS if ta else ROWS, self.rows), self.tile(b, ROWS if tb else COLS, self.cols)
        made = {
            init: self.builder.make("fill", init.args[0], **shape),
            state: self.builder.make("arg", loop, k, **shape),
            product: self.builder.make("matmul", left, right, ta, tb, **shape),
        }
        made[after] = self.builder.make("binary", "add", *(made[x] for x in after.args[1:]), **shape)
        self.done |= {(old, NONE): new for old, new in made.items()}
        return made[init], made[after]

    def tile(self, t: Term, axis: str, cut: _Cut) -> Term:
        """A term whose rows or columns (`axis`) are those of one tile of the product."""
        shape = _shape(t) | self._extent(t, axis, cut)
        if t.op == "load" and t.args[0].op == "given":
            version, offset, stride = t.args
            at = _fixed(offset) if axis == NONE else cut.start(offset, stride if axis == ROWS else 1)
            made = self.builder.make("load", self.builder.make("given", *version.args), at, stride, **shape)
        elif t.op == "bcast":
            along, v = t.args
            inner = COLS if (axis, along) in ((ROWS, 1), (COLS, 0)) else NONE
            made = self.builder.make("bcast", along, self.tile(v, inner, cut), **shape)
        elif t.op in ELEMENTWISE:
            args = (self.tile(x, axis, cut) if isinstance(x, Term) else x for x in t.args)
            made = self.builder.make(t.op, *args, **shape)
        else:
            raise NotTiled
        return self.done.setdefault((t, axis), made)

    def _extent(self, t: Term, axis: str, cut: _Cut) -> dict[str, Any]:
        """The extents of a term along the axis that is cut; those along the other one are as they were in every block."""
        if axis == NONE:
            _fixed(t.vrows), _fixed(t.vcols)
            return {}
        across, size, valid = (t.vcols, t.rows, t.vrows) if axis == ROWS else (t.vrows, t.cols, t.vcols)
        _fixed(across)
        if size != cut.size or (t.op != "fill" and _total(self.values, valid, size, cut.moves) != cut.total):
            raise NotTiled
        edges = ("rows", "vrows") if axis == ROWS else ("cols", "vcols")
        return dict(zip(edges, (cut.tile, cut.valid), strict=True))


def _fixed(e: Expr | None) -> Expr:
    """An index expression that is the same in all blocks."""
    if e is None or {BLOCK, EACH} & variables(e):
        raise NotTiled
    return e


def _shape(t: Term) -> dict[str, Any]:
    return {"rows": t.rows, "cols": t.cols, "dtype": t.dtype, "vrows": t.vrows, "vcols": t.vcols}
