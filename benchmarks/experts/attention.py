"""Flash attention forward as the public four-stage kernel runs it: the cores meet in rings in GM, products run ahead."""

from __future__ import annotations

from benchmarks.experts.parts import both_ways, buffer, expr, matrix, program, put, take
from tile_eg.ir.index import BLOCK, SUB, less, var
from tile_eg.ir.program import Buffer, CrossSet, CrossWait, Gm, Instr, Loop, Node, PipeBarrier, Program, Tile, When
from tile_eg.ir.types import F16, F32, Level

ROWS, HEAD, STEP = 128, 128, 128
BARRIER = PipeBarrier("V")
S_READY, P_READY, PV_READY = 0, 1, 2


def attention(queries: int, keys: int, tile: int = 256, preload: int = 4) -> Program:
    """`queries` x `keys` with a head of 128: a block takes 128 queries, a trip `tile` keys; Q @ K is `preload` trips ahead."""
    trips = keys // tile
    ahead = min(preload, trips)
    tensors = tuple(
        matrix(n, F16, rows, HEAD, n == "O") for n, rows in (("Q", queries), ("K", keys), ("V", keys), ("O", queries))
    )
    cube = (*_cube_head(), Loop("t", trips + ahead, _cube_trip(trips, ahead, tile)), *_cube_tail())
    vector = (*_vector_head(), Loop("t", trips + 1, _vector_trip(trips, tile)), *_vector_tail())
    return program("attention", "MIX_AIC_1_2", tensors, queries // ROWS, _buffers(tile), cube=cube, vector=vector, halves=True)


def _buffers(tile: int) -> tuple[Buffer, ...]:
    part = 8192 // tile
    return (
        buffer("q", Level.L1, F16, ROWS, HEAD), buffer("k", Level.L1, F16, STEP, HEAD, 2),
        buffer("v", Level.L1, F16, tile, HEAD, 2), buffer("p", Level.L1, F16, ROWS, tile, 2),
        buffer("l0a", Level.L0A, F16, ROWS, STEP, 2),
        buffer("l0b", Level.L0B, F16, STEP, HEAD, 2), buffer("l0c", Level.L0C, F32, ROWS, STEP, 2),
        buffer("s_gm", Level.WS, F32, ROWS, tile, 8), buffer("p_gm", Level.WS, F16, ROWS, tile, 8),
        buffer("pv_gm", Level.WS, F32, ROWS, HEAD, 8), buffer("s", Level.UB, F32, part, tile, 2),
        buffer("e", Level.UB, F16, part, tile, 2), buffer("pv", Level.UB, F32, ROWS // 2, HEAD, 1, 1),
        buffer("o", Level.UB, F32, ROWS // 2, HEAD), buffer("fold", Level.UB, F32, part, tile // 2, 1, 1),
        buffer("row", Level.UB, F32, 1, ROWS // 2), buffer("wide", Level.UB, F32, ROWS // 2, 8, 1, 1),
    )  # fmt: skip


# ---- cube core --------------------------------------------------------------------------------------------------------------

_RINGS = [("MTE1", "MTE2", range(6)), ("M", "MTE1", range(2)), ("FIX", "M", range(2))]


def _cube_head() -> tuple[Node, ...]:
    q = Instr("gm_to_l1", Tile("q"), (Gm("Q", var(BLOCK) * (ROWS * HEAD), HEAD),), expr(ROWS), expr(HEAD))
    return (q, put("MTE2", "MTE1", 6), take("MTE2", "MTE1", 6), *(v for ring in _RINGS for v in both_ways(*ring)[0]))


def _cube_tail() -> tuple[Node, ...]:
    return tuple(v for ring in _RINGS for v in both_ways(*ring)[1])


def _cube_trip(trips: int, ahead: int, tile: int) -> tuple[Node, ...]:
    first = tuple(v for i in range(tile // STEP) for v in _scores(i, tile))
    second = _values(ahead, tile)
    return (When(less(var("t"), trips), (*first, CrossSet("FIX", S_READY))), When(less(expr(ahead - 1), var("t")), second))


def _scores(i: int, tile: int) -> tuple[Node, ...]:
    """128 x 128 scores: K to L1 and L0, a product, out to the ring in GM."""
    key = (var("t") * tile + i * STEP) * HEAD
    slot = i % 2
    n = expr(STEP)
    return (
        take("MTE1", "MTE2", slot), Instr("gm_to_l1", Tile("k", expr(slot)), (Gm("K", key, HEAD),), n, n),
        put("MTE2", "MTE1", slot), take("MTE2", "MTE1", slot), *_product(slot, "q", "k", slot),
        put("MTE1", "MTE2", slot), *_multiply(slot, slot),
        *_out(slot, Tile("s_gm", var("t") % 8, col=expr(i * STEP))),
    )  # fmt: skip


def _values(ahead: int, tile: int) -> tuple[Node, ...]:
    """P @ V of the trip that is `ahead` behind: P and V to L1, products into one accumulator, out to the ring."""
    t = var("t") - ahead
    s, n, wide = t % 2, expr(STEP), expr(tile)
    loads: tuple[Node, ...] = (
        take("MTE1", "MTE2", s + 2), Instr("gm_to_l1", Tile("v", s), (Gm("V", t * (tile * HEAD), HEAD),), wide, n),
        CrossWait(P_READY), Instr("gm_to_l1", Tile("p", s), (Tile("p_gm", t % 8),), expr(ROWS), wide),
        put("MTE2", "MTE1", s + 2), take("MTE2", "MTE1", s + 2),
    )  # fmt: skip
    steps = tuple(v for i in range(tile // STEP) for v in (*_product(i % 2, "p", "v", s), *_multiply(i % 2, 0, i == 0)))
    return (*loads, *steps, put("MTE1", "MTE2", s + 2), *_out(0, Tile("pv_gm", t % 8)), CrossSet("FIX", PV_READY))


def _product(half: int, left: str, right: str, slot: object) -> tuple[Node, ...]:
    n = expr(STEP)
    a = Instr("l1_to_l0a", Tile("l0a", expr(half)), (Tile(left),), expr(ROWS), depth=n)
    b = Instr("l1_to_l0b", Tile("l0b", expr(half)), (Tile(right),), expr(1), n, n)
    return (take("M", "MTE1", half), a, b, put("MTE1", "M", half))


def _multiply(half: int, cell: int, first: bool = True) -> tuple[Node, ...]:
    n = expr(STEP)
    mmad = Instr("mmad", Tile("l0c", expr(cell)), (Tile("l0a", expr(half)), Tile("l0b", expr(half))), expr(ROWS), n, n)
    free = (take("FIX", "M", cell),) if first else ()
    return (take("MTE1", "M", half), *free, mmad, put("M", "MTE1", half))


def _out(cell: int, to: Tile) -> tuple[Node, ...]:
    store = Instr("fixpipe", to, (Tile("l0c", expr(cell)),), expr(ROWS), expr(STEP))
    return (put("M", "FIX", cell), take("M", "FIX", cell), store, put("FIX", "M", cell))


# ---- vector cores -----------------------------------------------------------------------------------------------------------

_FREE = [("V", "MTE2", range(3)), ("MTE3", "V", range(2))]


def _vector_head() -> tuple[Node, ...]:
    return tuple(v for ring in _FREE for v in both_ways(*ring)[0])


def _vector_tail() -> tuple[Node, ...]:
    out = Instr(
        "ub_to_gm", Gm("O", var(BLOCK) * (ROWS * HEAD) + var(SUB) * (ROWS * HEAD // 2), HEAD), (Tile("o"),), expr(64), expr(HEAD)
    )
    return (put("V", "MTE3", 2), take("V", "MTE3", 2), out, *(v for ring in _FREE for v in both_ways(*ring)[1]))


def _vector_trip(trips: int, tile: int) -> tuple[Node, ...]:
    """Softmax of this trip's scores, then the result of the trip before joins the output."""
    parts = tuple(v for i in range(64 * tile // 8192) for v in _softmax(i, tile))
    soft = (CrossWait(S_READY), *parts, CrossSet("MTE3", P_READY))
    return (When(less(var("t"), trips), soft), When(less(expr(0), var("t")), _update()))


def _op(op: str, dst: str, srcs: tuple[str, ...], rows: int, cols: int, form: str = "flat") -> tuple[Node, ...]:
    return (Instr(op, Tile(dst), tuple(Tile(s) for s in srcs), expr(rows), expr(cols), form=form), BARRIER)


def _fold(op: str, rows: int, cols: int) -> tuple[Node, ...]:
    """A reduction of rows: halves of columns folded down to 64, then blocks of 8, then what is left of each row."""
    out: list[Node] = []
    while cols > 64:
        cols //= 2
        out += _op(f"v{op}", "fold", ("s", "fold"), rows, cols, "rows")
    name = "vblocksum" if op == "add" else "vblockmax"
    return (*out, *_op(name, "fold", ("fold",), rows, 64), *_op(name, "row", ("fold",), 1, rows * 8))


def _softmax(i: int, tile: int) -> tuple[Node, ...]:
    rows, slot = 8192 // tile, i % 2
    here = Tile("s", expr(slot))
    load = Instr("gm_to_ub", here, (Tile("s_gm", var("t") % 8, expr(i * rows)),), expr(rows), expr(tile))
    store = Instr("ub_to_gm", Tile("p_gm", var("t") % 8, expr(i * rows)), (Tile("e", expr(slot)),), expr(rows), expr(tile))
    row = tuple(
        v
        for op in ("vmax", "vsub", "vexp", "vmul", "vadd")
        for v in _op(op, "row", ("row", "row")[: 1 if op == "vexp" else 2], 1, rows)
    )
    return (
        take("V", "MTE2", slot), load, put("MTE2", "V", slot), take("MTE2", "V", slot), *_fold("max", rows, tile), *row,
        *_op("vbrcb", "wide", ("row",), rows, 8), *_op("vsub_rows", "s", ("s", "wide"), rows, tile),
        *_op("vexp", "s", ("s",), rows, tile), take("MTE3", "V", slot), *_op("vcast", "e", ("s",), rows, tile),
        put("V", "MTE3", slot),
        *_fold("add", rows, tile),
        put("V", "MTE2", slot), take("V", "MTE3", slot), store, put("MTE3", "V", slot),
    )  # fmt: skip


def _update() -> tuple[Node, ...]:
    """O = O * factor + P @ V, 64 rows of each vector core."""
    rows = ROWS // 2
    load = Instr("gm_to_ub", Tile("pv"), (Tile("pv_gm", var("t") % 8),), expr(rows), expr(HEAD))
    return (
        CrossWait(PV_READY), take("V", "MTE2", 2), load, put("MTE2", "V", 2), take("MTE2", "V", 2),
        *_op("vbrcb", "wide", ("row",), rows, 8), *_op("vmul_rows", "o", ("o", "wide"), rows, HEAD),
        *_op("vadd", "o", ("o", "pv"), rows, HEAD),
        put("V", "MTE2", 2),
    )  # fmt: skip
