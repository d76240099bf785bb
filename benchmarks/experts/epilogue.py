"""Products whose results vector cores go on with, as experts write them: the cube is a tile or two ahead.

The tiles of C are those of `gemm.Gemm`, taken in turn. Each vector core of a block has half of a tile's rows, in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from benchmarks.experts.gemm import Gemm, buffers, products, tiles_in_turn, to_gm
from benchmarks.experts.parts import both_ways, buffer, expr, matrix, program, put, take, v_ops
from tile_eg.ir.index import SUB, Expr, maximum, minimum, var, variables
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Buffer, CrossSet, CrossWait, Gm, Instr, Node, Program, Tile
from tile_eg.ops.types import F16, F32, DType, Level

READY, FREE = 0, 1
SLOTS, PARTS, AHEAD = 2, 2, 8
Out = Callable[[Expr, Expr, Expr, Expr], Instr]
Part = Callable[[int, Expr, Expr, Expr, Expr], tuple[Node, ...]]


def matmul_add(g: Gemm) -> Program:
    """E = A @ B + D, halves: C goes through two slots in the workspace."""

    def out(row: Expr, col: Expr, tm: Expr, tn: Expr) -> Instr:
        return Instr("fixpipe", Tile("c_gm", var("task") % SLOTS), (Tile("c0"),), tm, tn)

    tensors = matrix("D", F16, g.m, g.n), matrix("E", F16, g.m, g.n, True)
    more = (buffer("c_gm", Level.WS, F32, *g.tile, SLOTS), _tile(g, "c"), _tile(g, "d", 1, F16), _tile(g, "e", 0, F16), _sum(g))
    return _kernel("matmul_add", g, tensors, more, out, partial(_added, g), SLOTS)


def gemm_exp(g: Gemm) -> Program:
    """C = A @ B and D = exp(C), floats: the vector cores read the tiles of C from where they were stored."""
    tensors = matrix("C", F32, g.m, g.n, True), matrix("D", F32, g.m, g.n, True)
    return _kernel(
        "gemm_exp", g, tensors, (_tile(g, "c"), _tile(g, "e")), partial(to_gm, g, "C"), partial(_exponential, g), AHEAD
    )


def by_ub(g: Gemm) -> Program:
    """C = A @ B, floats: each tile goes to UB, half of its rows to each vector core, which stores them (950).

    Parts of the last turn are halved as parts.
    """
    (down, across), (tall, wide) = g.parts, g.tile
    sizes = {"c": (tall // 2, wide)} | ({"p": (-(-tall // (2 * down)), -(-wide // across))} if down * across > 1 else {})
    held = lambda row: "c" if "task" in variables(row) else "p"  # noqa: E731

    def handed_over(row: Expr, col: Expr, tm: Expr, tn: Expr) -> tuple[Node, ...]:
        return CrossWait(FREE), Instr("fixpipe", Tile(held(row)), (Tile("c0"),), tm, tn, form="dual"), CrossSet("FIX", READY)

    def taken(row: Expr, col: Expr, tm: Expr | None = None, tn: Expr | None = None) -> tuple[Node, ...]:
        half = sizes[held(row)][0]
        tm, tn = tm or minimum(tall, g.m - row), tn or minimum(wide, g.n - col)
        first = var(SUB) * half
        rows = maximum(0, minimum(half, tm - first))
        store = Instr("ub_to_gm", Gm("C", (row + first) * g.n + col, g.n), (Tile(held(row)),), rows, tn)
        return CrossWait(READY), store, CrossSet("MTE3", FREE)

    cube, blocks = products(g, handed_over)
    b = matrix("B", F16, *((g.n, g.k) if g.b == "nk" else (g.k, g.n)))
    tensors = matrix("A", F16, g.m, g.k), b, matrix("C", F32, g.m, g.n, True)
    halves = tuple(replace(buffer(name, Level.UB, F32, *size), halved=True) for name, size in sizes.items())
    vector = (CrossSet("MTE3", FREE), tiles_in_turn(g, taken)[0])
    made = program("by_ub", "MIX_AIC_1_2", tensors, blocks, (*buffers(g), *halves), cube=(*cube, CrossWait(FREE)), vector=vector)
    return replace(made, chip="950")


def _kernel(
    name: str, g: Gemm, tensors: tuple[Tensor, ...], more: tuple[Buffer, ...], out: Out, part: Part, ahead: int
) -> Program:
    """`out` takes a tile from L0C to GM, `part` is what a vector core does with some rows; the cube is `ahead` tiles ahead."""

    def handed_over(row: Expr, col: Expr, tm: Expr, tn: Expr) -> tuple[Node, ...]:
        return CrossWait(FREE), out(row, col, tm, tn), CrossSet("FIX", READY)

    def taken(row: Expr, col: Expr) -> tuple[Node, ...]:
        return CrossWait(READY), *_parts(g, row, col, part), CrossSet("MTE2", FREE)

    cube, blocks = products(g, handed_over)
    free, left = zip(*(both_ways(*ring, range(PARTS)) for ring in (("V", "MTE2"), ("MTE3", "V"))), strict=True)
    vector = (*(n for f in free for n in f), tiles_in_turn(g, taken)[0], *(n for f in left for n in f))
    return program(
        name, "MIX_AIC_1_2", (matrix("A", F16, g.m, g.k), matrix("B", F16, g.k, g.n), *tensors), blocks, (*buffers(g), *more),
        cube=(*cube, *(CrossWait(FREE),) * ahead), vector=(*(CrossSet("MTE2", FREE),) * ahead, *vector),
    )  # fmt: skip


# ---- vector cores -----------------------------------------------------------------------------------------------------------


def _part_rows(g: Gemm) -> int:
    return g.tile[0] // 2 // PARTS


def _tile(g: Gemm, name: str, group: int = 0, dtype: DType = F32) -> Buffer:
    """A ring of two for parts of tiles."""
    return buffer(name, Level.UB, dtype, _part_rows(g), g.tile[1], PARTS, group)


def _sum(g: Gemm) -> Buffer:
    return buffer("f", Level.UB, F32, _part_rows(g), g.tile[1], 1, 1)


def _parts(g: Gemm, row: Expr, col: Expr, part: Part) -> tuple[Node, ...]:
    """The parts of this core's half of a tile: number, first row within the tile, rows of them that C has, corner of the tile."""
    rows = _part_rows(g)
    at = [var(SUB) * (g.tile[0] // 2) + i * rows for i in range(PARTS)]
    return tuple(n for i, a in enumerate(at) for n in part(i, a, maximum(0, minimum(rows, g.m - row - a)), row, col))


def _passed(i: int, loads: tuple[Node, ...], work: tuple[Node, ...], store: Node) -> tuple[Node, ...]:
    """Loads, work and a store of one slot of the rings, with their flags."""
    return (
        take("V", "MTE2", i), *loads, put("MTE2", "V", i), take("MTE2", "V", i), take("MTE3", "V", i), *work,
        put("V", "MTE2", i), put("V", "MTE3", i), take("V", "MTE3", i), store, put("MTE3", "V", i),
    )  # fmt: skip


def _added(g: Gemm, i: int, at: Expr, rows: Expr, row: Expr, col: Expr) -> tuple[Node, ...]:
    c, d, e, f = (Tile(name, expr(i if name != "f" else 0)) for name in "cdef")
    tn = minimum(g.tile[1], g.n - col)
    place = (row + at) * g.n + col
    loads = (
        Instr("gm_to_ub", c, (Tile("c_gm", var("task") % SLOTS, at),), rows, tn),
        Instr("gm_to_ub", d, (Gm("D", place, g.n),), rows, tn),
    )
    work = v_ops(
        Instr("vcast", f, (d,), rows, tn, form="rows"), Instr("vadd", c, (c, f), rows, tn, form="rows"),
        Instr("vcast", e, (c,), rows, tn, form="rows"),
    )  # fmt: skip
    return _passed(i, loads, work, Instr("ub_to_gm", Gm("E", place, g.n), (e,), rows, tn))


def _exponential(g: Gemm, i: int, at: Expr, rows: Expr, row: Expr, col: Expr) -> tuple[Node, ...]:
    c, e = Tile("c", expr(i)), Tile("e", expr(i))
    tn = minimum(g.tile[1], g.n - col)
    place = (row + at) * g.n + col
    load = Instr("gm_to_ub", c, (Gm("C", place, g.n),), rows, tn)
    work = v_ops(Instr("vexp", e, (c,), rows, tn, form="rows"))
    return _passed(i, (load,), work, Instr("ub_to_gm", Gm("D", place, g.n), (e,), rows, tn))
