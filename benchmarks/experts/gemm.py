"""C = A @ B in the schedules of public GEMM kernels: a partition over cores, L1 panels, L0 steps, rings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod

from benchmarks.experts.parts import both_ways, buffer, expr, matrix, program, put, take
from tile_eg.ir.index import BLOCK, Expr, both, div, less, minimum, mod, mul, var
from tile_eg.ir.program import Buffer, Gm, Instr, Loop, Node, Program, Tasks, Tile, When
from tile_eg.ops.types import F32, VALUE_TYPES, Level

Body = Callable[..., tuple[Node, ...]]
Out = Callable[[Expr, Expr, Expr, Expr], tuple[Node, ...]]


@dataclass(frozen=True)
class Gemm:
    """`m` x `n` x `k`; a product of `tile` (m, n) in steps of `l0_k`. L1 holds `l1_slots` panels of `k_a` and of `k_b` in
    depth, L0 `l0_slots` steps.

    Each core computes `core` (m, n) of C, tile by tile; by default one tile. It goes along the rows of its part of C, or with
    `rows_first` down the columns. `rounds` splits the rows of C: all cores work on one part at a time. With `persistent`
    cores these take the tiles of C in turn instead, in windows of `swizzle` rows of tiles that are walked column by column,
    there and back, or (`by_columns`) in windows of columns that are walked row by row. With `split_last` the tiles that are
    left for the last turn are cut into parts, so that as many cores as possible have one. `b` is how B lies in GM: "kn", "nk"
    (transposed) or "zN" (panels that are one run of bytes). The loads of an operand's scales are left out. Cores that
    `shuffle` begin at different places of the depth, so that they do not read the same bytes at the same time.
    """

    m: int
    n: int
    k: int
    tile: tuple[int, int]
    k_a: int
    k_b: int
    l0_k: int = 64
    l1_slots: int = 2
    l0_slots: int = 2
    core: tuple[int, int] = (0, 0)
    b: str = "kn"
    dtype: str = "f16"
    out: str = "f16"
    rounds: int = 1
    rows_first: bool = False
    persistent: int = 0
    swizzle: int = 1
    by_columns: bool = False
    split_last: bool = False
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
    def parts(self) -> tuple[int, int]:
        """Parts of each tile of the last turn, down and across: no more than there are cores for, and none without a row."""
        left = prod(self.tiles) % self.persistent
        edge = [size % t or t for size, t in zip((self.m, self.n), self.tile, strict=True)]
        if not self.split_last or not left:
            return 1, 1
        down, across = (min(e, self.persistent // left) for e in edge)
        while down * across > self.persistent // left:
            down, across = (down - 1, across) if down >= across else (down, across - 1)
        return -(-edge[0] // -(-edge[0] // down)), -(-edge[1] // -(-edge[1] // across))

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
    dtype, out = VALUE_TYPES[g.dtype], VALUE_TYPES[g.out]
    shape_b = (g.n, g.k) if g.b == "nk" else (g.k, g.n)
    tensors = matrix("A", dtype, g.m, g.k), matrix("B", dtype, *shape_b), matrix("C", out, g.m, g.n, True)
    cube, blocks = products(g, lambda row, col, tm, tn: (to_gm(g, "C", row, col, tm, tn),))
    return program("gemm", "AIC_ONLY", tensors, blocks, buffers(g), cube=cube)


def products(g: Gemm, out: Out) -> tuple[tuple[Node, ...], int]:
    """What the cube cores do, and how many blocks there are; `out` is what is done with a tile in L0C on its way out."""
    rings = [("MTE1", "MTE2", range(2 * g.l1_slots)), ("M", "MTE1", range(g.l0_slots)), ("FIX", "M", range(1))]
    free, left = zip(*(both_ways(*ring) for ring in rings), strict=True)
    tile = partial(_tile, g, out)
    body, blocks = tiles_in_turn(g, tile) if g.persistent else _partition(g, tile)
    return (*(n for f in free for n in f), body, *(n for f in left for n in f)), blocks


def to_gm(g: Gemm, tensor: str, row: Expr, col: Expr, tm: Expr, tn: Expr) -> Instr:
    """The tile in L0C to its place in a matrix of the shape of C."""
    return Instr("fixpipe", Gm(tensor, row * g.n + col, g.n), (Tile("c0"),), tm, tn)


def buffers(g: Gemm) -> tuple[Buffer, ...]:
    dtype, (tm, tn), slots = VALUE_TYPES[g.dtype], g.tile, g.l1_slots
    b = (tn, g.k_b) if g.b == "nk" else (g.k_b, tn)
    return (
        buffer("a", Level.L1, dtype, tm, g.k_a, slots), buffer("b", Level.L1, dtype, *b, slots),
        buffer("a0", Level.L0A, dtype, tm, g.l0_k, g.l0_slots), buffer("b0", Level.L0B, dtype, g.l0_k, tn, g.l0_slots),
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
    total = prod(g.tiles)
    if prod(g.parts) > 1:
        return _last_in_parts(g, tile)
    blocks = min(g.persistent, total)
    nodes = tile(*_corner(g, var("task") * blocks + var(BLOCK)))
    return Tasks("task", -(-total // blocks), nodes, until=(total + blocks - 1 - var(BLOCK)) // blocks), blocks


def _corner(g: Gemm, at: Expr) -> tuple[Expr, Expr]:
    """Row and column of C at which the tile that is `at` in the order of tiles begins."""
    down, across = g.tiles
    row, col = swizzled(at, across, down, g.swizzle)[::-1] if g.by_columns else swizzled(at, down, across, g.swizzle)
    return row * g.tile[0], col * g.tile[1]


def _last_in_parts(g: Gemm, tile: Body) -> tuple[Node, int]:
    """Whole turns of tiles, and one of parts of those that are left."""
    turns, left = divmod(prod(g.tiles), g.persistent)
    down, across = g.parts
    blocks = min(g.persistent, left * down * across) if not turns else g.persistent
    part = var(BLOCK) % (down * across)
    row, col = _corner(g, var(BLOCK) // (down * across) + turns * g.persistent)
    tall, wide = (minimum(t, size - e) for t, size, e in zip(g.tile, (g.m, g.n), (row, col), strict=True))
    high, long = (_part(t, size - e, n) for t, size, e, n in zip(g.tile, (g.m, g.n), (row, col), (down, across), strict=True))
    top, left_of = mul(part % down, high), mul(part // down, long)
    inside = both(both(less(top, tall), less(left_of, wide)), less(var(BLOCK), left * down * across))
    last = When(inside, tile(row + top, col + left_of, minimum(high, tall - top), minimum(long, wide - left_of)))
    whole = tile(*_corner(g, var("task") * blocks + var(BLOCK)))
    return Loop("all", 1, (Loop("task", turns, whole), last)), blocks


def swizzled(at: Expr, down: int, across: int, window: int) -> tuple[Expr, Expr]:
    """Row and column of tiles: windows of `window` rows one below the other, column by column, every other window backwards."""
    group, inside = at // (window * across), at % (window * across)
    rows = minimum(window, down - group * window) if down % window else expr(window)
    there = div(inside, rows)
    back = (across - 1) - there * 2
    return group * window + mod(inside, rows), there + (group % 2) * back


# ---- one tile ---------------------------------------------------------------------------------------------------------------


def _part(tile: int, left: Expr, parts: int) -> Expr:
    """The size of each part but the last one of a tile, of which C has so many rows or columns left."""
    return minimum(-(-tile // parts), (left + parts - 1) // parts)


def _tile(g: Gemm, out: Out, row: Expr, col: Expr, tm: Expr | None = None, tn: Expr | None = None) -> tuple[Node, ...]:
    tm, tn = tm or minimum(g.tile[0], g.m - row), tn or minimum(g.tile[1], g.n - col)
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
    half = (var("k") * (g.chunk // g.l0_k) + at // g.l0_k) % g.l0_slots
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
