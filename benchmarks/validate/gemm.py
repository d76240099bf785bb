"""C = A @ B in the schedules of public GEMM kernels: a partition over cores, L1 panels, L0 steps, rings."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.validate.parts import both_ways, buffer, expr, matrix, program, put, take
from tile_eg.ir.index import BLOCK, Expr, less, minimum, var
from tile_eg.ir.program import Gm, Instr, Loop, Node, Program, Tile, When
from tile_eg.ir.types import F16, F32, Level

DTYPES = {"f16": F16, "f32": F32}


@dataclass(frozen=True)
class Gemm:
    """`m` x `n` x `k`; a product of `tile` (m, n) in steps of `l0_k`. L1 holds `l1_slots` panels of `k_a` and of `k_b` in depth.

    Each core computes `core` (m, n) of C, tile by tile; by default one tile. `b` is how B lies in GM: "kn", "nk" (transposed) or
    "zN" (panels that are one run of bytes). `rounds` splits the rows of C: all cores work on one part at a time.
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

    @property
    def part(self) -> tuple[int, int]:
        """Rows and columns of C of one core in one round."""
        rows, cols = self.core if self.core[0] else self.tile
        return rows // self.rounds, cols

    @property
    def chunk(self) -> int:
        """What one trip of the loop over the depth covers."""
        return max(self.k_a, self.k_b)


def gemm(g: Gemm) -> Program:
    """The kernel for all cores; guards leave out tiles beyond the edge of C."""
    dtype, out = DTYPES[g.dtype], DTYPES[g.out]
    tensors = matrix("A", dtype, g.m, g.k), matrix("B", dtype, g.k, g.n), matrix("C", out, g.m, g.n, True)
    (tm, tn), slots = g.tile, g.l1_slots
    buffers = (
        buffer("a", Level.L1, dtype, tm, g.k_a, slots), buffer("b", Level.L1, dtype, g.k_b, tn, slots),
        buffer("a0", Level.L0A, dtype, tm, g.l0_k, 2), buffer("b0", Level.L0B, dtype, g.l0_k, tn, 2),
        buffer("c0", Level.L0C, F32, tm, tn),
    )  # fmt: skip
    rings = [
        ("MTE1", "MTE2", range(slots)),
        ("MTE1", "MTE2", range(2, 2 + slots)),
        ("M", "MTE1", range(2)),
        ("FIX", "M", range(1)),
    ]
    free, left = zip(*(both_ways(*ring) for ring in rings), strict=True)
    body = Loop("round", g.rounds, (Loop("i", -(-g.part[0] // tm), (Loop("j", -(-g.part[1] // tn), _tile(g)),)),))
    cube = (*(n for f in free for n in f), body, *(n for f in left for n in f))
    return program("gemm", "AIC_ONLY", tensors, _cores(g)[0] * _cores(g)[1], buffers, cube=cube)


def _cores(g: Gemm) -> tuple[int, int]:
    rows, cols = g.part
    return -(-g.m // (rows * g.rounds)), -(-g.n // cols)


def _corner(g: Gemm) -> tuple[Expr, Expr]:
    """First row and column of C of the tile at hand."""
    across = _cores(g)[0]
    row = (var(BLOCK) % across) * g.part[0] + var("round") * (g.m // g.rounds) + var("i") * g.tile[0]
    return row, (var(BLOCK) // across) * g.part[1] + var("j") * g.tile[1]


def _tile(g: Gemm) -> tuple[Node, ...]:
    row, col = _corner(g)
    tm, tn = minimum(g.tile[0], g.m - row), minimum(g.tile[1], g.n - col)
    if g.part[1] % g.tile[1]:
        tn = minimum(tn, g.part[1] - var("j") * g.tile[1])
    store = Instr("fixpipe", Gm("C", row * g.n + col, g.n), (Tile("c0"),), tm, tn)
    steps = Loop("k", -(-g.k // g.chunk), _chunk(g, row, col, tm, tn))
    nodes: tuple[Node, ...] = (take("FIX", "M"), steps, put("M", "FIX"), take("M", "FIX"), store, put("FIX", "M"))
    whole = g.n % g.part[1] == 0 and g.m % g.part[0] == 0
    return nodes if whole else (When(less(col, g.n), (When(less(row, g.m), nodes),)),)


def _chunk(g: Gemm, row: Expr, col: Expr, tm: Expr, tn: Expr) -> tuple[Node, ...]:
    """One trip: panels of A and B, each when it is due, and the L0 steps over them."""
    out: list[Node] = []
    for at in range(0, g.chunk, g.l0_k):
        for name, depth, base in (("a", g.k_a, 0), ("b", g.k_b, 2)):
            if at % depth == 0:
                slot = (var("k") * (g.chunk // depth) + at // depth) % g.l1_slots
                load = _load_a(g, row, tm, at, slot) if name == "a" else _load_b(g, col, tn, at, slot)
                out += [take("MTE1", "MTE2", slot + base), load, put("MTE2", "MTE1", slot + base)]
    for at in range(0, g.chunk, g.l0_k):
        out += _step(g, tm, tn, at)
    return tuple(out)


def _load_a(g: Gemm, row: Expr, tm: Expr, at: int, slot: Expr) -> Instr:
    k = var("k") * g.chunk + at
    return Instr("gm_to_l1", Tile("a", slot), (Gm("A", row * g.k + k, g.k),), tm, minimum(g.k_a, g.k - k))


def _load_b(g: Gemm, col: Expr, tn: Expr, at: int, slot: Expr) -> Instr:
    k = var("k") * g.chunk + at
    depth = minimum(g.k_b, g.k - k)
    if g.b == "nk":
        return Instr("gm_to_l1", Tile("b", slot), (Gm("B", col * g.k + k, g.k),), tn, depth)
    if g.b == "zN":
        return Instr("gm_to_l1", Tile("b", slot), (Gm("B", col * g.k + k * g.tile[1], g.n),), expr(1), expr(g.k_b * g.tile[1]))
    return Instr("gm_to_l1", Tile("b", slot), (Gm("B", k * g.n + col, g.n),), depth, tn)


def _step(g: Gemm, tm: Expr, tn: Expr, at: int) -> list[Node]:
    """A step in L0: wait for the panels where it is their first, free them where it is their last."""
    k = var("k")
    half = (k * (g.chunk // g.l0_k) + at // g.l0_k) % 2
    out: list[Node] = []
    slots = {base: (k * (g.chunk // d) + at // d) % g.l1_slots + base for d, base in ((g.k_a, 0), (g.k_b, 2))}
    first = [base for d, base in ((g.k_a, 0), (g.k_b, 2)) if at % d == 0]
    last = [base for d, base in ((g.k_a, 0), (g.k_b, 2)) if (at + g.l0_k) % d == 0]
    out += [take("MTE2", "MTE1", slots[base]) for base in first]
    depth = minimum(g.l0_k, g.k - k * g.chunk - at)
    out += [
        take("M", "MTE1", half), Instr("l1_to_l0a", Tile("a0", half), (Tile("a"),), tm, depth=depth),
        Instr("l1_to_l0b", Tile("b0", half), (Tile("b"),), expr(1), tn, depth),
    ]  # fmt: skip
    out += [put("MTE1", "MTE2", slots[base]) for base in last]
    init = less(k, 1) if at == 0 else expr(0)
    mmad = Instr("mmad", Tile("c0"), (Tile("a0", half), Tile("b0", half)), tm, tn, depth, init=init)
    return [*out, put("MTE1", "M", half), take("MTE1", "M", half), mmad, put("M", "MTE1", half)]
