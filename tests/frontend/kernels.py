"""Random kernels that are well-formed: every buffer is written before it is read, and all windows begin inside.

A kernel loads tiles of two tensors whose sizes need not be multiples of the tile, does random arithmetic on whole tiles, in
element loops, in row loops and in a loop over column tiles, and stores a tile and a vector.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import BF16, F16, F32

Draw = Callable
TILES, VECTORS = ("t0", "t1", "t2"), ("v0", "v1")
UNARY = ("abs", "relu", "tanh", "sigmoid", "neg")
BINARY = ("add", "sub", "mul", "max", "min")
NUMBERS = (0.0, 1.0, -0.5, 0.25, 2.0)


def whole(name: str, shape: tuple[int, ...]) -> kn.Region:
    return kn.Region(name, (ix.ZERO,) * len(shape), shape)


class Maker:
    """Draws the parts of one kernel. `rows` x `cols` is the tile, `m` x `n` the tensors."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.rows, self.cols = draw(st.sampled_from([4, 8])), draw(st.sampled_from([4, 16]))
        self.m, self.n = draw(st.integers(1, 20)), draw(st.integers(1, 40))
        self.dtypes = {name: draw(st.sampled_from([F32, F32, F16, BF16])) for name in (*TILES, *VECTORS, "X", "Y", "O", "S")}
        self.written: set[str] = set()
        self.loops = 0

    def pick(self, options):  # noqa: ANN001, ANN201
        return self.draw(st.sampled_from(sorted(options)))

    def shape(self, name: str) -> tuple[int, ...]:
        return (self.rows, self.cols) if name in TILES else (self.rows,)

    def kernel(self) -> kn.Kernel:
        grid = (("bx", -(-self.m // self.rows)), ("by", -(-self.n // self.cols)))
        tensors = tuple(kn.Tensor(t, self.dtypes[t], (self.m, self.n), t == "O") for t in ("X", "Y", "O"))
        vector = kn.Tensor("S", self.dtypes["S"], (grid[1][1], self.m), True)
        body = [kn.Alloc(b, "shared", self.dtypes[b], self.shape(b)) for b in (*TILES, *VECTORS)]
        body += [self.load("t0", "X"), self.reduction("v0")]
        body += [s for _ in range(self.draw(st.integers(1, 5))) for s in self.statement()]
        body += self.stores()
        return kn.Kernel("random", (*tensors, vector), grid, tuple(body))

    def window(self, tensor: str) -> kn.Region:
        return kn.Region(tensor, (ix.var("bx") * self.rows, ix.var("by") * self.cols), (self.rows, self.cols))

    def load(self, buffer: str, tensor: str) -> kn.Assign:
        self.written.add(buffer)
        return kn.Assign(whole(buffer, self.shape(buffer)), self.window(tensor))

    def stores(self) -> list[kn.Assign]:
        tile, vector = self.pick(self.written & set(TILES)), self.pick(self.written & set(VECTORS))
        place = kn.Region("S", (ix.var("by"), ix.var("bx") * self.rows), (None, self.rows))
        return [kn.Assign(self.window("O"), whole(tile, self.shape(tile))), kn.Assign(place, whole(vector, self.shape(vector)))]

    def statement(self) -> list[kn.Stmt]:
        whole_tiles = [self.load_y, self.tile_arithmetic, self.vector_arithmetic, self.reduce, self.product]
        return self.draw(st.sampled_from([*whole_tiles, self.element_loop, self.row_loop, self.fold]))()

    def load_y(self) -> list[kn.Stmt]:
        return [self.load(self.pick(TILES), "Y")]

    def reduction(self, vector: str) -> kn.Assign:
        value = kn.Reduce(self.pick(["max", "min", "sum"]), self.tile(1), 1)
        self.written.add(vector)
        return kn.Assign(whole(vector, (self.rows,)), value)

    def reduce(self) -> list[kn.Stmt]:
        return [self.reduction(self.pick(VECTORS))]

    def product(self) -> list[kn.Stmt]:
        """A product of tiles, x @ y.T, reduced to a vector."""
        x, y = (kn.Cast(self.dtypes["X"], self.tile(0)) for _ in range(2))
        target = self.pick(VECTORS)
        self.written.add(target)
        return [kn.Assign(whole(target, (self.rows,)), kn.Reduce("max", kn.MatMul(x, y, False, True), 1))]

    def tile_arithmetic(self) -> list[kn.Stmt]:
        value, target = self.tile(2), self.pick(TILES)
        self.written.add(target)
        return [kn.Assign(whole(target, self.shape(target)), value)]

    def vector_arithmetic(self) -> list[kn.Stmt]:
        value, target = self.vector(2), self.pick(VECTORS)
        self.written.add(target)
        return [kn.Assign(whole(target, self.shape(target)), value)]

    # whole-tile expressions

    def tile(self, depth: int) -> kn.TileExpr:
        leaf = lambda: whole(self.pick(self.written & set(TILES)), (self.rows, self.cols))  # noqa: E731
        return self.expression(depth, leaf, self.row_vector)

    def vector(self, depth: int) -> kn.TileExpr:
        leaf = lambda: whole(self.pick(self.written & set(VECTORS)), (self.rows,))  # noqa: E731
        return self.expression(depth, leaf, leaf)

    def row_vector(self) -> kn.TileExpr:
        return kn.Broadcast(self.vector(0), 1) if self.written & set(VECTORS) else kn.Number(1.0)

    def expression(self, depth: int, leaf: Callable, second: Callable) -> kn.TileExpr:
        """Arithmetic of this depth; `second` makes right operands beside the usual ones and numbers."""
        if depth == 0:
            return leaf()
        kind = self.pick(["unary", "binary", "number", "second", "cast"])
        x = self.expression(depth - 1, leaf, second)
        if kind == "unary":
            return kn.Unary(self.pick(UNARY), x)
        if kind == "cast":
            return kn.Cast(F32, x)
        y = {"number": self.number, "second": second}.get(kind, lambda: self.expression(depth - 1, leaf, second))()
        return kn.Binary(self.pick(BINARY), kn.Cast(F32, x), kn.Cast(F32, y) if not isinstance(y, kn.Number) else y)

    def number(self) -> kn.Number:
        return kn.Number(self.draw(st.sampled_from(NUMBERS)))

    # loops

    def variable(self, wish: str) -> str:
        self.loops += 1
        return f"{wish}{self.loops}"

    def element_loop(self) -> list[kn.Stmt]:
        i, j = self.variable("i"), self.variable("j")
        at = lambda name: kn.Region(name, (ix.var(i), ix.var(j)), (None, None))  # noqa: E731
        row = lambda name: kn.Region(name, (ix.var(i),), (None,))  # noqa: E731
        tiles, vectors = self.written & set(TILES), self.written & set(VECTORS)
        value = self.expression(2, lambda: at(self.pick(tiles)), lambda: row(self.pick(vectors)))
        target = self.pick(TILES)
        self.written.add(target)
        return [kn.Parallel((i, j), (self.rows, self.cols), (kn.Assign(at(target), value),))]

    def row_loop(self) -> list[kn.Stmt]:
        i = ix.var(self.variable("i"))
        row = lambda name: kn.Region(name, (i, ix.ZERO), (None, self.cols))  # noqa: E731
        one = lambda name: kn.Region(name, (i,), (None,))  # noqa: E731
        body = []
        for _ in range(self.draw(st.integers(1, 3))):
            tiles, vectors = self.written & set(TILES), self.written & set(VECTORS)
            x = self.expression(1, lambda t=tiles: row(self.pick(t)), lambda v=vectors: one(self.pick(v)))
            if self.draw(st.booleans()):
                target = self.pick(VECTORS)
                least = kn.Binary("max", kn.Cast(F32, one(self.pick(vectors))), kn.Cast(F32, kn.Reduce("max", x, 1)))
                body.append(kn.Assign(one(target), least))
            else:
                target = self.pick(TILES)
                body.append(kn.Assign(row(target), x))
            self.written.add(target)
        return [kn.For(i.args[0], 0, self.rows, "serial", 0, tuple(body))]

    def fold(self) -> list[kn.Stmt]:
        """A loop of a few trips that combines a tile or a vector with itself, perhaps beginning with `if k == 0`."""
        k = self.variable("k")
        target = self.pick(self.written & set(TILES))
        self_region = whole(target, self.shape(target))
        step = kn.Assign(self_region, kn.Binary("add", kn.Cast(F32, self_region), kn.Cast(F32, self.tile(1))))
        reset = kn.If(ix.less(ix.var(k), 1), (kn.Assign(self_region, kn.Number(0.0)),), ())
        begin = (reset,) if self.draw(st.booleans()) else ()
        trips = self.draw(st.integers(1, 3))
        return [kn.For(k, 0, trips, self.pick(["serial", "pipelined"]), 0, (*begin, step))]


@st.composite
def kernels(draw: Draw) -> kn.Kernel:
    """A random kernel that passes `check` and has values, mixed element types and tails included."""
    return Maker(draw).kernel()


