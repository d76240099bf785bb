"""Copies and additions on vector cores (and copies on cube cores) in the schedules of the vendor's best-practice samples."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.experts.parts import both_ways, buffer, expr, matrix, program, put, take, v_ops
from tile_eg.ir.index import BLOCK, less, minimum, var
from tile_eg.ir.program import Gm, Instr, Loop, Node, Program, Tile, When
from tile_eg.ops.types import DTYPES, F16, Level


def copy(
    rows: int, cols: int, tile: tuple[int, int], cores: int, to: str, again: int = 1, parts: int = 1, each: bool = False
) -> Program:
    """Reads a matrix of halves, its rows shared out among `cores` (or all of it by `each`), tile by tile to `to` (UB or L1).

    The columns are cut into `parts`, and each part is read `again` times before the next one.
    """
    (tm, tn), wide = tile, cols // parts
    col = var("part") * wide + var("j") * tn
    mine = rows if each else rows // cores
    start = (var(BLOCK) * (0 if each else mine) + var("i") * tm) * cols + col
    op, level = ("gm_to_ub", Level.UB) if to == "UB" else ("gm_to_l1", Level.L1)
    load = Instr(op, Tile("t"), (Gm("x", start, cols),), expr(tm), minimum(tn, cols - col))
    tiles = Loop("i", mine // tm, (Loop("j", -(-wide // tn), (load,)),))
    nodes: tuple[Node, ...] = (Loop("part", parts, (Loop("again", again, (tiles,)),)),)
    buffers = (buffer("t", level, F16, tm, tn),)
    tensors = (matrix("x", F16, rows, cols),)
    if to == "UB":
        return program("copy", "AIV_ONLY", tensors, cores, buffers, vector=nodes)
    return program("copy", "AIC_ONLY", tensors, cores, buffers, cube=nodes)


def add(size: int, tile: int, cores: int, slots: int = 1, conflict: bool = True, bypass: bool = False) -> Program:
    """z = x + y on halves, `tile` elements at a time with rings of `slots`; `conflict`: both operands in one bank group of UB;
    `bypass`: what is read leaves L2 out."""
    each = size // cores
    start = var(BLOCK) * each + var("i") * tile
    n = minimum(tile, each - var("i") * tile)
    s, one = var("i") % slots, expr(1)
    ins = [Instr("gm_to_ub", Tile(b, s), (Gm(b, start, tile),), one, n) for b in ("x", "y")]
    body: tuple[Node, ...] = (
        take("V", "MTE2", s), *ins, put("MTE2", "V", s), take("MTE2", "V", s), take("MTE3", "V", s),
        Instr("vadd", Tile("z", s), (Tile("x", s), Tile("y", s)), one, n), put("V", "MTE2", s), put("V", "MTE3", s),
        take("V", "MTE3", s), Instr("ub_to_gm", Gm("z", start, tile), (Tile("z", s),), one, n), put("MTE3", "V", s),
    )  # fmt: skip
    rings = [both_ways("V", "MTE2", range(slots)), both_ways("MTE3", "V", range(slots))]
    nodes = (*(v for r in rings for v in r[0]), Loop("i", -(-each // tile), body), *(v for r in rings for v in r[1]))
    buffers = tuple(buffer(b, Level.UB, F16, 1, tile, slots, 0 if conflict or b != "y" else 1) for b in "xyz")
    tensors = tuple(replace(matrix(b, F16, 1, size, b == "z"), past_l2=bypass and b != "z") for b in "xyz")
    return program("add", "AIV_ONLY", tensors, cores, buffers, vector=nodes)


def through(
    rows: int, cols: int, tile: tuple[int, int], parts: tuple[int, int], dtype: str = "f16", ops: tuple[str, ...] = ("vcopy",),
    nz: int | None = None,
) -> Program:  # fmt: skip
    """z = f(x), tile by tile through UB with two buffers of each; the vector instructions are `ops`, one behind the other.

    The matrix is cut into `parts` among the cores, by rows and columns. With `nz` the result lies in columns of 32 bytes, each of
    them in all rows; in UB with so many blocks of 32 bytes between one column and the next.
    """
    t, (tm, tn), (high, wide) = DTYPES[dtype], tile, parts
    size, strip = (-(-rows // (tm * high)) * tm, cols // wide), 32 // t.bytes
    row = (var(BLOCK) // wide) * size[0] + var("i") * tm
    col = (var(BLOCK) % wide) * size[1] + var("j") * tn
    s, n = (var("i") * (size[1] // tn) + var("j")) % 2, minimum(tm, rows - row)
    x, z = Tile("x", s), Tile("z", s)
    work = v_ops(*(Instr(op, z, (z if k else x,), n, expr(tn), form="rows") for k, op in enumerate(ops)))
    there = Gm("z", col * rows + row * strip, rows * strip) if nz is not None else Gm("z", row * cols + col, cols)
    out = (expr(tn // strip), n * strip) if nz is not None else (n, expr(tn))
    body: tuple[Node, ...] = (
        take("V", "MTE2", s), Instr("gm_to_ub", x, (Gm("x", row * cols + col, cols),), n, expr(tn)), put("MTE2", "V", s),
        take("MTE2", "V", s), take("MTE3", "V", s), *work, put("V", "MTE2", s), put("V", "MTE3", s),
        take("V", "MTE3", s), Instr("ub_to_gm", there, (z,), *out), put("MTE3", "V", s),
    )  # fmt: skip
    rings = [both_ways("V", "MTE2", range(2)), both_ways("MTE3", "V", range(2))]
    tiles = Loop("i", size[0] // tm, (Loop("j", size[1] // tn, (When(less(row, expr(rows)), body),)),))
    nodes = (*(v for r in rings for v in r[0]), tiles, *(v for r in rings for v in r[1]))
    held = buffer("z", Level.UB, t, tm, tn, 2)
    if nz is not None:
        held = replace(buffer("z", Level.UB, t, tn // strip, (tm + nz) * strip, 2), cols=tm * strip)
    buffers = buffer("x", Level.UB, t, tm, tn, 2), held
    tensors = tuple(matrix(b, t, rows, cols, b == "z") for b in "xz")
    return program("through", "AIV_ONLY", tensors, high * wide, buffers, vector=nodes)
