"""Softmax, norms and a gate in the schedules of public expert kernels for vector cores.

All vector cores take blocks of rows in turn. A block goes through its columns tile by tile, twice where a number of the row is
needed: once for the number, and once for the result, both with a ring of two. Flags are placed by `emit.sync`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from benchmarks.experts.parts import buffer, expr, matrix, program
from tile_eg.emit.sync import synchronise
from tile_eg.ir.index import BLOCK, Expr, var
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import block_steps
from tile_eg.ir.program import Buffer, Gm, Instr, Let, Loop, Node, Program, Tile
from tile_eg.ir.program.tasks import tasks
from tile_eg.ops.types import F16, F32, DType, Level

EPSILON = 1e-5


@dataclass(frozen=True)
class Rowwise:
    """`m` x `n`; a core has `rows` rows at a time, and `cols` of their columns."""

    m: int
    n: int
    rows: int = 16
    cols: int = 512
    cores: int = 48

    def __post_init__(self) -> None:
        if self.m % self.rows or self.n % self.cols:
            raise ValueError(f"this schedule has no tails: {self.m} x {self.n} in tiles of {self.rows} x {self.cols}")

    @property
    def tasks(self) -> int:
        return self.m // self.rows

    @property
    def blocks(self) -> int:
        return min(self.cores, self.tasks)

    @property
    def first(self) -> Expr:
        """The first row of the task at hand."""
        return var("tile") * self.rows

    def window(self, tensor: str, loop: str) -> Gm:
        """The tile of a trip of `loop` over the columns."""
        return Gm(tensor, self.first * self.n + var(loop) * self.cols, self.n)

    def load(self, to: str, source: Gm, loop: str) -> Instr:
        return Instr("gm_to_ub", Tile(to, var(loop) % 2), (source,), expr(self.rows), expr(self.cols))

    def store(self, to: Gm, source: str, loop: str) -> Instr:
        return Instr("ub_to_gm", to, (Tile(source, var(loop) % 2),), expr(self.rows), expr(self.cols))

    def tile(self, op: str, dst: Tile, *sources: Tile, scalar: float = 0.0) -> Instr:
        """An instruction over a tile; `op` ends in _rows or _cols where the last source is broadcast."""
        form = "rows" if op.endswith(("_rows", "_cols")) else "flat"
        return Instr(op, dst, sources, expr(self.rows), expr(self.cols), scalar=scalar, form=form)

    def row(self, op: str, dst: str, *sources: str, scalar: float = 0.0) -> Instr:
        """An instruction over one number a row."""
        return Instr(op, Tile(dst), tuple(map(Tile, sources)), expr(1), expr(self.rows), scalar=scalar)

    def reduce(self, op: str, dst: str, source: Tile) -> Instr:
        """A number a row, by blocks."""
        return Instr(op, Tile(dst), (source,), expr(self.rows), expr(self.cols), form="blocks", scratch=Tile("fold"))

    def spread(self, dst: str, source: str) -> Instr:
        """One number a row as a block of 32 bytes a row."""
        return Instr("vbrcb", Tile(dst), (Tile(source),), expr(self.rows), expr(8))

    def across(self, loop: str, *body: Node) -> Loop:
        return Loop(loop, self.n // self.cols, body)

    def kernel(self, name: str, tensors: tuple[Tensor, ...], buffers: tuple[Buffer, ...], body: tuple[Node, ...]) -> Program:
        """The program of all cores, `body` being what is done for one block of rows."""
        turn = Let("tile", var("task") * self.blocks + var(BLOCK), self.tasks - 1)
        loop = tasks(body, self.blocks, [turn], {"task": "task"})
        return synchronise(program(name, "AIV_ONLY", tensors, self.blocks, buffers, vector=(loop,)))

    def tiles(self, name: str, dtype: DType, slots: int = 1, group: int = 0) -> Buffer:
        return buffer(name, Level.UB, dtype, self.rows, self.cols, slots, group)

    def numbers(self, *names: str) -> tuple[Buffer, ...]:
        """Buffers of one number a row, of the same as blocks (`wide`), and the scratch of reductions."""
        left = self.rows * sum(left for _, left in block_steps(self.cols) if left > 1)
        wide = buffer("wide", Level.UB, F32, self.rows, 8, 1, 1)
        fold = buffer("fold", Level.UB, F32, 1, left, 1, 1)
        return (wide, fold, *(buffer(n, Level.UB, F32, 1, self.rows, 1, i % 2) for i, n in enumerate(names)))


def softmax(r: Rowwise) -> Program:
    """Y = softmax over the rows of X, floats: running maximum and sum in the first pass, the result in the second."""
    x, y = Tile("x", var("j") % 2), Tile("x", var("k") % 2)
    first = (
        r.load("x", r.window("X", "j"), "j"), r.reduce("vrowmax", "new", x), r.row("vmax", "new", "new", "m"),
        r.row("vsub", "r", "m", "new"), r.row("vexp", "r", "r"), r.row("vmul", "l", "l", "r"), r.row("vcopy", "m", "new"),
        r.spread("wide", "m"), r.tile("vsub_rows", x, x, Tile("wide")), r.tile("vexp", x, x),
        r.reduce("vrowsum", "new", x), r.row("vadd", "l", "l", "new"),
    )  # fmt: skip
    second = (
        r.load("x", r.window("X", "k"), "k"), r.tile("vsub_rows", y, y, Tile("wide")), r.tile("vexp", y, y),
        r.tile("vdiv_rows", Tile("y", var("k") % 2), y, Tile("sums")), r.store(r.window("Y", "k"), "y", "k"),
    )  # fmt: skip
    start = r.row("vdup", "m", scalar=-inf), r.row("vdup", "l")
    body = (*start, r.across("j", *first), r.spread("wide", "m"), r.spread("sums", "l"), r.across("k", *second))
    sums = buffer("sums", Level.UB, F32, r.rows, 8)
    buffers = (r.tiles("x", F32, 2), r.tiles("y", F32, 2), *r.numbers("m", "new", "l", "r"), sums)
    return r.kernel("online_softmax", _tensors(r, F32), buffers, body)


def rms_norm(r: Rowwise) -> Program:
    """Y = X / sqrt(mean of squares) * W, halves: squares are added up tile by tile and reduced once."""
    f, acc = Tile("f"), Tile("acc")
    first = (*_floats(r, "j"), r.tile("vmul", f, f, f), r.tile("vadd", acc, acc, f))
    body = (
        r.tile("vdup", acc), r.across("j", *first), r.reduce("vrowsum", "s", acc), *_deviation(r, "s"),
        r.spread("wide", "s"), r.across("k", *_floats(r, "k"), *_scaled(r)),
    )  # fmt: skip
    buffers = (*_norm_buffers(r), *r.numbers("s"))
    return r.kernel("rms_norm", (*_tensors(r, F16), _vector(r, "W")), buffers, body)


def layer_norm(r: Rowwise) -> Program:
    """Y = (X - mean) / deviation * W + B, halves: sums and sums of squares are added up tile by tile and reduced once each."""
    f, acc, square = Tile("f"), Tile("acc"), Tile("square")
    first = (*_floats(r, "j"), r.tile("vadd", acc, acc, f), r.tile("vmul", f, f, f), r.tile("vadd", square, square, f))
    numbers = (
        r.reduce("vrowsum", "s", acc), r.reduce("vrowsum", "v", square), r.row("vmuls", "s", "s", scalar=1 / r.n),
        r.row("vmul", "q", "s", "s"), r.row("vmuls", "q", "q", scalar=float(r.n)), r.row("vsub", "v", "v", "q"),
        *_deviation(r, "v"), r.spread("mean", "s"), r.spread("wide", "v"),
    )  # fmt: skip
    centred = r.tile("vsub_rows", f, f, Tile("mean"))
    second = r.across("k", *_floats(r, "k"), centred, *_scaled(r, shifted=True))
    body = (r.tile("vdup", acc), r.tile("vdup", square), r.across("j", *first), *numbers, second)
    more = buffer("mean", Level.UB, F32, r.rows, 8), *_column("b", r)
    buffers = (*_norm_buffers(r), r.tiles("square", F32, group=1), *r.numbers("s", "v", "q"), *more)
    return r.kernel("layer_norm", (*_tensors(r, F16), _vector(r, "W"), _vector(r, "B")), buffers, body)


def gelu_mul(r: Rowwise) -> Program:
    """Y = gelu(A[:, 0]) * A[:, 1], floats: gelu(x) = x / (1 + exp(-1.5957691 * (x + 0.044715 * x^3))); rings of two."""
    x, z, y, t = Tile("x", var("j") % 2), Tile("z", var("j") % 2), Tile("y", var("j") % 2), Tile("t")
    halves = (Gm("A", r.first * (2 * r.n) + half * r.n + var("j") * r.cols, 2 * r.n) for half in (0, 1))
    body = r.across(
        "j", *(r.load(name, half, "j") for name, half in zip("xz", halves, strict=True)),
        r.tile("vmul", t, x, x), r.tile("vmul", t, t, x), r.tile("vmuls", t, t, scalar=0.044715), r.tile("vadd", t, t, x),
        r.tile("vmuls", t, t, scalar=-1.5957691), r.tile("vexp", t, t), r.tile("vadds", t, t, scalar=1.0),
        r.tile("vdiv", t, x, t), r.tile("vmul", y, t, z), r.store(r.window("Y", "j"), "y", "j"),
    )  # fmt: skip
    tensors = Tensor("A", F32, (r.m, 2, r.n), False), matrix("Y", F32, r.m, r.n, True)
    buffers = (r.tiles("x", F32, 2), r.tiles("z", F32, 2), r.tiles("y", F32, 2), r.tiles("t", F32, group=1))
    return r.kernel("gelu_mul", tensors, buffers, (body,))


# ---- what norms share -------------------------------------------------------------------------------------------------------


def _tensors(r: Rowwise, dtype: DType) -> tuple[Tensor, ...]:
    return matrix("X", dtype, r.m, r.n), matrix("Y", dtype, r.m, r.n, True)


def _vector(r: Rowwise, name: str) -> Tensor:
    return Tensor(name, F16, (r.n,), False)


def _column(name: str, r: Rowwise) -> tuple[Buffer, ...]:
    """A piece of a vector over the columns, as it lies in GM and as floats."""
    return buffer(name, Level.UB, F16, 1, r.cols), buffer(f"{name}_f", Level.UB, F32, 1, r.cols, 1, 1)


def _norm_buffers(r: Rowwise) -> tuple[Buffer, ...]:
    return (r.tiles("x", F16, 2), r.tiles("y", F16, 2), r.tiles("f", F32), r.tiles("acc", F32, group=1), *_column("w", r))


def _floats(r: Rowwise, loop: str) -> tuple[Node, ...]:
    return r.load("x", r.window("X", loop), loop), r.tile("vcast", Tile("f"), Tile("x", var(loop) % 2))


def _deviation(r: Rowwise, name: str) -> tuple[Node, ...]:
    """1 / sqrt(sum / n + epsilon); the division is exact, where Rsqrt is not."""
    return (
        r.row("vmuls", name, name, scalar=1 / r.n), r.row("vadds", name, name, scalar=EPSILON), r.row("vsqrt", name, name),
    )  # fmt: skip


def _scaled(r: Rowwise, shifted: bool = False) -> tuple[Node, ...]:
    """The result of a tile: over the deviation, times W, plus B, as halves to its place."""
    f, y = Tile("f"), Tile("y", var("k") % 2)
    shift = _by_column(r, "B", "b", "vadd_cols") if shifted else ()
    out = r.tile("vcast", y, f), r.store(r.window("Y", "k"), "y", "k")
    return (r.tile("vdiv_rows", f, f, Tile("wide")), *_by_column(r, "W", "w", "vmul_cols"), *shift, *out)


def _by_column(r: Rowwise, tensor: str, name: str, op: str) -> tuple[Node, ...]:
    """The tile's piece of a vector over the columns, and the tile with it."""
    piece = Instr("gm_to_ub", Tile(name), (Gm(tensor, var("k") * r.cols, r.n),), expr(1), expr(r.cols))
    floats = Instr("vcast", Tile(f"{name}_f"), (Tile(name),), expr(1), expr(r.cols))
    return piece, floats, r.tile(op, Tile("f"), Tile("f"), Tile(f"{name}_f"))
