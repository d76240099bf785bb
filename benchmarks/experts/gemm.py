"""C = A @ B in the schedules of public GEMM kernels: a partition over cores, L1 panels, L0 steps, rings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.experts.parts import both_ways, buffer, expr, matrix, program, put, take
from tile_eg.ir.index import BLOCK, Expr, div, less, minimum, mod, var
from tile_eg.ir.program import Buffer, Gm, Instr, Loop, Node, Program, Tasks, Tile, When
from tile_eg.ops.types import F16, F32, Level

Body = Callable[[Expr, Expr], tuple[Node, ...]]
Out = Callable[[Expr, Expr, Expr, Expr], tuple[Node, ...]]
DTYPES = {"f16": F16, "f32": F32}


@dataclass(frozen=True)
class Gemm:
    """`m` x `n` x `k`; a product of `tile` (m, n) in steps of `l0_k`. L1 holds `l1_slots` panels of `k_a` and of `k_b` in depth.

    Each core computes `core` (m, n) of C, tile by tile; by default one tile. It goes along the rows of its part of C, or with
    `rows_first` down the columns. `rounds` splits the rows of C: all cores work on one part at a time. With `persistent` cores
    these take the tiles of C in turn instead, in windows of `swizzle` rows of tiles that are walked column by column, there and
    back, or (`by_columns`) in windows of columns that are walked row by row. `b` is how B lies in GM: "kn", "nk" (transposed) or
    "zN" (panels that are one run of bytes). Cores that `shuffle` begin at different places of the depth, so that they do not
    read the same bytes at the same time.
    """

    m: int
    n: int
    k: int
    tile: tuple[int, int]
    k_a: int
    k_b: int
    l0_k: int = 64
    l1_slots: int = 2
    core: tuple[int, int] = (0, 0)
    b: str = "kn"
    dtype: str = "f16"
    out: str = "f16"
    rounds: int = 1
    rows_first: bool = False
    persistent: int = 0
    swizzle: int = 1
    by_columns: bool = False
    shuffle: bool = False

    @property
    def part(self) -> tuple[int, int]:
        """Rows and columns of C of one core in one round."""
        rows, cols = self.core if self.core[0] else self.tile
        return rows // self.rounds, cols

    @property
    def chunk(self) -> int:
        """What one trip of the loop over the depth covers."""
        return max(self.k_a, self.k_b)

    @property
    def trip(self) -> Expr:
        """Which part of the depth a trip of the loop over it covers."""
        if self.shuffle and self.k % self.chunk:
            raise ValueError(f"shuffled trips have no tail: depth {self.k}, {self.chunk} a trip")
        return (var("k") + var(BLOCK)) % (self.k // self.chunk) if self.shuffle else var("k")

    @property
    def tiles(self) -> tuple[int, int]:
        """Tiles of C, down and across."""
        return -(-self.m // self.tile[0]), -(-self.n // self.tile[1])

    @property
    def panels(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(depth, first flag id) of the panels of A and of B."""
        return (self.k_a, 0), (self.k_b, self.l1_slots)

    def slot(self, depth: int, at: int) -> Expr:
        """Where the panel of this depth lies that step `at` of a trip needs."""
        return (var("k") * (self.chunk // depth) + at // depth) % self.l1_slots


def expert(m: int, n: int, k: int, cores: int = 24) -> Gemm:
    """The schedule that is published as best: blocks of 128 x 256, L1 panels of 256, L0 steps of 64, persistent, window 3."""
    return Gemm(m, n, k, (128, 256), 256, 256, persistent=cores, swizzle=3)


def gemm(g: Gemm) -> Program:
    """The kernel for all cores; guards leave out tiles beyond the edge of C."""
    dtype, out = DTYPES[g.dtype], DTYPES[g.out]
    shape_b = (g.n, g.k) if g.b == "nk" else (g.k, g.n)
    tensors = matrix("A", dtype, g.m, g.k), matrix("B", dtype, *shape_b), matrix("C", out, g.m, g.n, True)
    cube, blocks = products(g, lambda row, col, tm, tn: (to_gm(g, "C", row, col, tm, tn),))
    return program("gemm", "AIC_ONLY", tensors, blocks, buffers(g), cube=cube)


def products(g: Gemm, out: Out) -> tuple[tuple[Node, ...], int]:
    """What the cube cores do, and how many blocks there are; `out` is what is done with a tile in L0C on its way out."""
    rings = [("MTE1", "MTE2", range(2 * g.l1_slots)), ("M", "MTE1", range(2)), ("FIX", "M", range(1))]
    free, left = zip(*(both_ways(*ring) for ring in rings), strict=True)
    tile = partial(_tile, g, out)
    body, blocks = tiles_in_turn(g, tile) if g.persistent else _partition(g, tile)
    return (*(n for f in free for n in f), body, *(n for f in left for n in f)), blocks


def to_gm(g: Gemm, tensor: str, row: Expr, col: Expr, tm: Expr, tn: Expr) -> Instr:
    """The tile in L0C to its place in a matrix of the shape of C."""
    return Instr("fixpipe", Gm(tensor, row * g.n + col, g.n), (Tile("c0"),), tm, tn)


def buffers(g: Gemm) -> tuple[Buffer, ...]:
    dtype, (tm, tn), slots = DTYPES[g.dtype], g.tile, g.l1_slots
    b = (tn, g.k_b) if g.b == "nk" else (g.k_b, tn)
    return (
        buffer("a", Level.L1, dtype, tm, g.k_a, slots), buffer("b", Level.L1, dtype, *b, slots),
        buffer("a0", Level.L0A, dtype, tm, g.l0_k, 2), buffer("b0", Level.L0B, dtype, g.l0_k, tn, 2),
        buffer("c0", Level.L0C, F32, tm, tn),
    )  # fmt: skip


# ---- which tiles a core computes --------------------------------------------------------------------------------------------


def _partition(g: Gemm, tile: Body) -> tuple[Node, int]:
    """A rectangle of C for each core."""
    down, across = -(-g.m // (g.part[0] * g.rounds)), -(-g.n // g.part[1])
    row = (var(BLOCK) % down) * g.part[0] + var("round") * (g.m // g.rounds) + var("i") * g.tile[0]
    col = (var(BLOCK) // down) * g.part[1] + var("j") * g.tile[1]
    nodes = tile(row, col)
    if g.n % g.part[1] or g.m % g.part[0]:
        nodes = (When(less(col, g.n), (When(less(row, g.m), nodes),)),)
    i, j = ("i", -(-g.part[0] // g.tile[0])), ("j", -(-g.part[1] // g.tile[1]))
    outer, inner = (j, i) if g.rows_first else (i, j)
    return Loop("round", g.rounds, (Loop(*outer, (Loop(*inner, nodes),)),)), down * across


def tiles_in_turn(g: Gemm, tile: Body) -> tuple[Node, int]:
    """Tile after tile for each core, as far apart as there are cores."""
    down, across = g.tiles
    total = down * across
    blocks = min(g.persistent, total)
    at = var("task") * blocks + var(BLOCK)
    row, col = swizzled(at, across, down, g.swizzle)[::-1] if g.by_columns else swizzled(at, down, across, g.swizzle)
    nodes = tile(row * g.tile[0], col * g.tile[1])
    return Tasks("task", -(-total // blocks), nodes, until=(total + blocks - 1 - var(BLOCK)) // blocks), blocks


def swizzled(at: Expr, down: int, across: int, window: int) -> tuple[Expr, Expr]:
    """Row and column of tiles: windows of `window` rows one below the other, column by column, every other window backwards."""
    group, inside = at // (window * across), at % (window * across)
    rows = minimum(window, down - group * window) if down % window else expr(window)
    there = div(inside, rows)
    back = (across - 1) - there * 2
    return group * window + mod(inside, rows), there + (group % 2) * back


# ---- one tile ---------------------------------------------------------------------------------------------------------------


def _tile(g: Gemm, out: Out, row: Expr, col: Expr) -> tuple[Node, ...]:
    tm, tn = minimum(g.tile[0], g.m - row), minimum(g.tile[1], g.n - col)
    if not g.persistent and g.part[1] % g.tile[1]:
        tn = minimum(tn, g.part[1] - var("j") * g.tile[1])
    steps = Loop("k", -(-g.k // g.chunk), _chunk(g, row, col, tm, tn))
    return (take("FIX", "M"), steps, put("M", "FIX"), take("M", "FIX"), *out(row, col, tm, tn), put("FIX", "M"))


def _chunk(g: Gemm, row: Expr, col: Expr, tm: Expr, tn: Expr) -> tuple[Node, ...]:
    """One trip: panels of A and B, each when it is due, and the L0 steps over them."""
    out: list[Node] = []
    for at in range(0, g.chunk, g.l0_k):
        for (depth, base), load in zip(g.panels, (_load_a(g, row, tm, at), _load_b(g, col, tn, at)), strict=True):
            if at % depth == 0:
                flag = g.slot(depth, at) + base
                out += [take("MTE1", "MTE2", flag), load, put("MTE2", "MTE1", flag)]
    for at in range(0, g.chunk, g.l0_k):
        out += _step(g, tm, tn, at)
    return tuple(out)


def _load_a(g: Gemm, row: Expr, tm: Expr, at: int) -> Instr:
    k = g.trip * g.chunk + at
    return Instr("gm_to_l1", Tile("a", g.slot(g.k_a, at)), (Gm("A", row * g.k + k, g.k),), tm, minimum(g.k_a, g.k - k))


def _load_b(g: Gemm, col: Expr, tn: Expr, at: int) -> Instr:
    k, to = g.trip * g.chunk + at, Tile("b", g.slot(g.k_b, at))
    depth = minimum(g.k_b, g.k - k)
    if g.b == "nk":
        return Instr("gm_to_l1", to, (Gm("B", col * g.k + k, g.k),), tn, depth)
    if g.b == "zN":
        return Instr("gm_to_l1", to, (Gm("B", col * g.k + k * g.tile[1], g.n),), expr(1), expr(g.k_b * g.tile[1]))
    return Instr("gm_to_l1", to, (Gm("B", k * g.n + col, g.n),), depth, tn)


def _step(g: Gemm, tm: Expr, tn: Expr, at: int) -> list[Node]:
    """A step in L0: wait for the panels where it is their first, free them where it is their last."""
    first = [g.slot(depth, at) + base for depth, base in g.panels if at % depth == 0]
    last = [g.slot(depth, at) + base for depth, base in g.panels if (at + g.l0_k) % depth == 0]
    move, multiply = _moves(g, tm, tn, at)
    inside = g.k - var("k") * g.chunk
    guard = (lambda nodes: [When(less(at, inside), tuple(nodes))]) if at and g.k % g.chunk else list
    free = [put("MTE1", "MTE2", flag) for flag in last]
    return [*(take("MTE2", "MTE1", flag) for flag in first), *guard(move), *free, *guard(multiply)]


def _moves(g: Gemm, tm: Expr, tn: Expr, at: int) -> tuple[list[Node], list[Node]]:
    """L1 to L0, and the product."""
    half = (var("k") * (g.chunk // g.l0_k) + at // g.l0_k) % 2
    depth = minimum(g.l0_k, g.k - var("k") * g.chunk - at)
    left = Tile("a", g.slot(g.k_a, at), col=expr(at % g.k_a))
    flip, inner, slot = g.b == "nk", expr(at % g.k_b), g.slot(g.k_b, at)
    right = Tile("b", slot, col=inner) if flip else Tile("b", slot, row=inner)
    a0, b0 = Tile("a0", half), Tile("b0", half)
    moves: list[Node] = [
        take("M", "MTE1", half), Instr("l1_to_l0a", a0, (left,), tm, depth=depth),
        Instr("l1_to_l0b", b0, (right,), expr(1), tn, depth, transpose=flip),
    ]  # fmt: skip
    init = less(var("k"), 1) if at == 0 else expr(0)
    mmad = Instr("mmad", Tile("c0"), (a0, b0), tm, tn, depth, init=init)
    return [*moves, put("MTE1", "M", half)], [take("MTE1", "M", half), mmad, put("M", "MTE1", half)]
