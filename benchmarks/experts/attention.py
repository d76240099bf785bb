"""Flash attention forward as the public four-stage kernels run it: the cores meet in rings in GM, products run ahead.

Q stays in L1; the running maxima are kept negated and scaled, so that a multiplication and an addition prepare the exponential.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

from benchmarks.experts.parts import both_ways, buffer, expr, matrix, program, put, take, v_ops
from tile_eg.ir.index import BLOCK, SUB, Expr, less, var
from tile_eg.ir.machine import block_steps
from tile_eg.ir.program import Buffer, CrossSet, CrossWait, Gm, Instr, Loop, Node, Program, Tile, When
from tile_eg.ops.types import F16, F32, Level

ROWS, HALF, STEP, RING = 128, 64, 128, 8
S_READY, P_READY, PV_READY = 0, 1, 2


@dataclass(frozen=True)
class Attention:
    """`heads` times `queries` x `keys`, each `head` wide. A task is 128 queries, a trip `tile` keys (a multiple of 128).

    Q @ K is `preload` trips ahead of P @ V. Of `persistent` cores each takes as many tasks in a row, so that few of them read the
    keys of one head; otherwise each task is a block.
    """

    queries: int
    keys: int
    tile: int = 256
    preload: int = 4
    head: int = 128
    heads: int = 1
    persistent: int = 0

    def __post_init__(self) -> None:
        if self.queries % ROWS or self.tile % STEP or self.keys % self.tile:
            raise ValueError(f"this schedule has no tails: {self.queries} queries, {self.keys} keys, tiles of {self.tile}")

    @property
    def trips(self) -> int:
        return self.keys // self.tile

    @property
    def ahead(self) -> int:
        return min(self.preload, self.trips)

    @property
    def steps(self) -> int:
        """Products of 128 keys in a trip; a vector core takes its scores in as many parts."""
        return self.tile // STEP

    @property
    def part(self) -> int:
        """Rows of scores that a vector core takes at once."""
        return HALF // self.steps

    @property
    def tasks(self) -> int:
        return self.heads * self.queries // ROWS

    @property
    def blocks(self) -> int:
        return min(self.persistent or self.tasks, self.tasks)

    @property
    def task(self) -> Expr:
        return var(BLOCK) if self.blocks == self.tasks else var(BLOCK) * self.turns + var("task")

    @property
    def turns(self) -> int:
        """Tasks of a block."""
        return -(-self.tasks // self.blocks)

    def over_tasks(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """What a block does for one task, done for all of its tasks."""
        if self.blocks == self.tasks:
            return nodes
        if self.turns * self.blocks > self.tasks:
            nodes = (When(less(self.task, self.tasks), nodes),)
        return (Loop("task", self.turns, nodes),)


def expert(queries: int, keys: int, head: int, heads: int, cores: int = 24) -> Attention:
    """The schedule that is published as best for 128 x 128 scores: a ring of 8, Q @ K runs ahead, persistent."""
    return Attention(queries, keys, 128, 4, head, heads, cores)


def attention(a: Attention) -> Program:
    """The kernel for all cores; O = softmax(Q @ K.T / sqrt(head)) @ V for every head."""
    sizes = {"Q": a.queries, "K": a.keys, "V": a.keys, "O": a.queries}
    tensors = tuple(matrix(name, F16, a.heads * rows, a.head, name == "O") for name, rows in sizes.items())
    cube, vector = _around(_CUBE_RINGS, a.over_tasks(_cube(a))), _around(_VECTOR_RINGS, a.over_tasks(_vector(a)))
    return program("attention", "MIX_AIC_1_2", tensors, a.blocks, _buffers(a), cube=cube, vector=vector, over={"out": "e"})


def _around(rings: list[tuple[str, str, range]], nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    free, left = zip(*(both_ways(*ring) for ring in rings), strict=True)
    return (*(n for f in free for n in f), *nodes, *(n for f in left for n in f))


def _buffers(a: Attention) -> tuple[Buffer, ...]:
    scratch = a.part * sum(left for _, left in block_steps(a.tile) if left > 1)
    return (
        buffer("q", Level.L1, F16, ROWS, a.head), buffer("k", Level.L1, F16, STEP, a.head, 2),
        buffer("v", Level.L1, F16, a.tile, a.head, 2), buffer("p", Level.L1, F16, ROWS, a.tile, 2),
        buffer("l0a", Level.L0A, F16, ROWS, STEP, 2),
        buffer("l0b", Level.L0B, F16, STEP, STEP, 2), buffer("l0c", Level.L0C, F32, ROWS, STEP, 2),
        buffer("s_gm", Level.WS, F32, ROWS, a.tile, RING), buffer("p_gm", Level.WS, F16, ROWS, a.tile, RING),
        buffer("pv_gm", Level.WS, F32, ROWS, a.head, RING), buffer("s", Level.UB, F32, a.part, a.tile, 2),
        buffer("e", Level.UB, F16, a.part, a.tile, 2), buffer("pv", Level.UB, F32, HALF, a.head, 1, 1),
        buffer("o", Level.UB, F32, HALF, a.head), buffer("fold", Level.UB, F32, 1, scratch, 1, 1),
        buffer("wide", Level.UB, F32, HALF, 8, 1, 1), buffer("m", Level.UB, F32, 1, HALF, 2),
        buffer("new", Level.UB, F32, 1, HALF, 1, 1), buffer("r", Level.UB, F32, 1, HALF, RING, 1),
        buffer("l", Level.UB, F32, 1, HALF), buffer("out", Level.UB, F16, HALF, a.head),
    )  # fmt: skip


# ---- cube core --------------------------------------------------------------------------------------------------------------

_CUBE_RINGS = [("MTE1", "MTE2", range(5)), ("M", "MTE1", range(2)), ("FIX", "M", range(2))]
K_FLAG, PV_FLAG, Q_FLAG = 0, 2, 4  # the first ids of what is loaded to L1


def _cube(a: Attention) -> tuple[Node, ...]:
    q = Instr("gm_to_l1", Tile("q"), (Gm("Q", a.task * (ROWS * a.head), a.head),), expr(ROWS), expr(a.head))
    load = (take("MTE1", "MTE2", Q_FLAG), q, put("MTE2", "MTE1", Q_FLAG), take("MTE2", "MTE1", Q_FLAG))
    first = (*(v for i in range(a.steps) for v in _scores(a, i)), CrossSet("FIX", S_READY))
    ends = When(less(var("t"), a.trips), first), When(less(expr(a.ahead - 1), var("t")), _values(a))
    return (*load, Loop("t", a.trips + a.ahead, ends), put("MTE1", "MTE2", Q_FLAG))


def _keys(a: Attention) -> Expr:
    """The first key of the head that the task belongs to."""
    return expr(0) if a.heads == 1 else a.task // (a.queries // ROWS) * a.keys


def _scores(a: Attention, i: int) -> tuple[Node, ...]:
    """128 x 128 scores: K to L1 and L0, a product, out to the ring in GM."""
    key, n = _keys(a) + var("t") * a.tile + i * STEP, expr(STEP)
    slot = (var("t") * a.steps + i) % 2
    flag = slot + K_FLAG
    moves = (
        Instr("l1_to_l0a", Tile("l0a", slot), (Tile("q"),), expr(ROWS), depth=expr(a.head)),
        Instr("l1_to_l0b", Tile("l0b", slot), (Tile("k", slot),), expr(1), n, expr(a.head), transpose=True),
    )
    return (
        take("MTE1", "MTE2", flag), Instr("gm_to_l1", Tile("k", slot), (Gm("K", key * a.head, a.head),), n, expr(a.head)),
        put("MTE2", "MTE1", flag), take("MTE2", "MTE1", flag), *_moved(slot, moves), put("MTE1", "MTE2", flag),
        take("FIX", "M", slot), *_product(slot, slot, n, expr(a.head)),
        *_out(slot, Tile("s_gm", var("t") % RING, col=expr(i * STEP)), n),
    )  # fmt: skip


def _values(a: Attention) -> tuple[Node, ...]:
    """P @ V of the trip that is `ahead` behind: P and V to L1, products into one accumulator, out to the ring."""
    t = var("t") - a.ahead
    s, wide, head = t % 2, expr(a.tile), expr(a.head)
    flag = s + PV_FLAG
    loads: tuple[Node, ...] = (
        take("MTE1", "MTE2", flag),
        Instr("gm_to_l1", Tile("v", s), (Gm("V", (_keys(a) + t * a.tile) * a.head, a.head),), wide, head),
        CrossWait(P_READY), Instr("gm_to_l1", Tile("p", s), (Tile("p_gm", t % RING),), expr(ROWS), wide),
        put("MTE2", "MTE1", flag), take("MTE2", "MTE1", flag), take("FIX", "M", s),
    )  # fmt: skip
    steps = tuple(v for i in range(a.steps) for v in _value_step(a, i, s))
    return (*loads, *steps, put("MTE1", "MTE2", flag), *_out(s, Tile("pv_gm", t % RING), head), CrossSet("FIX", PV_READY))


def _value_step(a: Attention, i: int, slot: Expr) -> tuple[Node, ...]:
    half, n, at = expr(i % 2), expr(STEP), expr(i * STEP)
    moves = (
        Instr("l1_to_l0a", Tile("l0a", half), (Tile("p", slot, col=at),), expr(ROWS), depth=n),
        Instr("l1_to_l0b", Tile("l0b", half), (Tile("v", slot, row=at),), expr(1), expr(a.head), n),
    )
    return (*_moved(half, moves), *_product(half, slot, expr(a.head), n, i == 0))


def _moved(half: Expr, moves: tuple[Node, ...]) -> tuple[Node, ...]:
    return (take("M", "MTE1", half), *moves, put("MTE1", "M", half))


def _product(half: Expr, cell: Expr, n: Expr, k: Expr, first: bool = True) -> tuple[Node, ...]:
    operands = Tile("l0a", half), Tile("l0b", half)
    mmad = Instr("mmad", Tile("l0c", cell), operands, expr(ROWS), n, k, init=expr(int(first)))
    return (take("MTE1", "M", half), mmad, put("M", "MTE1", half))


def _out(cell: Expr, to: Tile, cols: Expr) -> tuple[Node, ...]:
    store = Instr("fixpipe", to, (Tile("l0c", cell),), expr(ROWS), cols)
    return (put("M", "FIX", cell), take("M", "FIX", cell), store, put("FIX", "M", cell))


# ---- vector cores -----------------------------------------------------------------------------------------------------------

_VECTOR_RINGS = [("V", "MTE2", range(3)), ("MTE3", "V", range(2))]
PV_LOAD = 2


def _vector(a: Attention) -> tuple[Node, ...]:
    """Softmax of this trip's scores, then the result of the trip that is `ahead` behind joins the output (PTO: compute_gu)."""
    start = v_ops(
        Instr("vdup", Tile("o"), (), expr(HALF), expr(a.head)),
        Instr("vdup", Tile("m", expr(1)), (), expr(1), expr(HALF), scalar=inf),
        Instr("vdup", Tile("l"), (), expr(1), expr(HALF)),
    )
    parts = tuple(v for i in range(a.steps) for v in _softmax(a, i))
    soft = (CrossWait(S_READY), *parts, CrossSet("MTE3", P_READY))
    later = When(less(expr(a.ahead - 1), var("t")), _update(a))
    trips = Loop("t", a.trips + a.ahead, (When(less(var("t"), a.trips), soft), later))
    return (*start, trips, *_store(a))


def _softmax(a: Attention, i: int) -> tuple[Node, ...]:
    """exp(scale * s - m) of some rows, the new maxima, and how much the old ones have to be scaled."""
    rows, at, wide = expr(a.part), expr(i * a.part), expr(a.tile)
    slot, half, scale = (var("t") * a.steps + i) % 2, var(SUB) * HALF, 1 / sqrt(a.head)
    s, e, new, blocks = Tile("s", slot), Tile("e", slot), Tile("new"), Tile("wide")
    old, now = Tile("m", (var("t") + 1) % 2, col=at), Tile("m", var("t") % 2, col=at)
    r, total = Tile("r", var("t") % RING, col=at), Tile("l", col=at)
    load = Instr("gm_to_ub", s, (Tile("s_gm", var("t") % RING, half + at),), rows, wide)
    store = Instr("ub_to_gm", Tile("p_gm", var("t") % RING, half + at), (e,), rows, wide)
    maxima = v_ops(
        Instr("vrowmax", new, (s,), rows, wide, form="blocks", scratch=Tile("fold")),
        Instr("vmuls", new, (new,), expr(1), rows, scalar=-scale), Instr("vmin", now, (new, old), expr(1), rows),
        Instr("vsub", r, (now, old), expr(1), rows), Instr("vexp", r, (r,), expr(1), rows),
        Instr("vmul", total, (total, r), expr(1), rows), Instr("vbrcb", blocks, (now,), rows, expr(8)),
        Instr("vmuls", s, (s,), rows, wide, scalar=scale), Instr("vadd_rows", s, (s, blocks), rows, wide, form="rows"),
        Instr("vexp", s, (s,), rows, wide),
    )  # fmt: skip
    sums = v_ops(
        Instr("vrowsum", new, (s,), rows, wide, form="blocks", scratch=Tile("fold")),
        Instr("vadd", total, (total, new), expr(1), rows),
    )
    return (
        take("V", "MTE2", slot), load, put("MTE2", "V", slot), take("MTE2", "V", slot), *maxima,
        take("MTE3", "V", slot), Instr("vcast", e, (s,), rows, wide), put("V", "MTE3", slot), *sums,
        put("V", "MTE2", slot), take("V", "MTE3", slot), store, put("MTE3", "V", slot),
    )  # fmt: skip


def _update(a: Attention) -> tuple[Node, ...]:
    """O = O * factor + P @ V, 64 rows of each vector core."""
    rows, head, before = expr(HALF), expr(a.head), var("t") - a.ahead
    load = Instr("gm_to_ub", Tile("pv"), (Tile("pv_gm", before % RING, var(SUB) * HALF),), rows, head)
    wide = v_ops(
        Instr("vbrcb", Tile("wide"), (Tile("r", before % RING),), rows, expr(8)),
        Instr("vmul_rows", Tile("o"), (Tile("o"), Tile("wide")), rows, head, form="rows"),
    )
    return (
        *wide, CrossWait(PV_READY), take("V", "MTE2", PV_LOAD), load, put("MTE2", "V", PV_LOAD), take("MTE2", "V", PV_LOAD),
        *v_ops(Instr("vadd", Tile("o"), (Tile("o"), Tile("pv")), rows, head)), put("V", "MTE2", PV_LOAD),
    )  # fmt: skip


def _store(a: Attention) -> tuple[Node, ...]:
    """O = O / sum; the halves of O lie where those of P do."""
    rows, head = expr(HALF), expr(a.head)
    first = a.task * ROWS + var(SUB) * HALF
    divided = v_ops(
        Instr("vbrcb", Tile("wide"), (Tile("l"),), rows, expr(8)),
        Instr("vdiv_rows", Tile("o"), (Tile("o"), Tile("wide")), rows, head, form="rows"),
    )
    out = Instr("ub_to_gm", Gm("O", first * a.head, a.head), (Tile("out"),), rows, head)
    return (
        *divided, take("MTE3", "V"), *v_ops(Instr("vcast", Tile("out"), (Tile("o"),), rows, head)),
        put("V", "MTE3"), take("V", "MTE3"), out, put("MTE3", "V"),
    )  # fmt: skip
