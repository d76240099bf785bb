"""Small hand-built programs for the timing tests."""

from __future__ import annotations

from tile_eg.ir.index import BLOCK, Expr, const, less, var
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import (
    Buffer,
    CrossSet,
    CrossWait,
    Gm,
    Instr,
    Loop,
    Node,
    PipeBarrier,
    Program,
    SetFlag,
    Tile,
    WaitFlag,
    When,
)
from tile_eg.ops.types import F16, F32, Level

K = var("k")


TILE = (const(64), const(64))


def expr(n: Expr | int) -> Expr:
    return n if isinstance(n, Expr) else const(n)


def set_(src: str, dst: str, flag: Expr | int = 0) -> SetFlag:
    return SetFlag(src, dst, expr(flag))


def wait(src: str, dst: str, flag: Expr | int = 0) -> WaitFlag:
    return WaitFlag(src, dst, expr(flag))


def vector_program(*nodes: Node, blocks: int = 1, halves: bool = False, size: int = 1 << 20) -> Program:
    """A vector-only kernel on tensors x, y (f32) with UB buffers a, b, c of 64 x 64."""
    tensors = (Tensor("x", F32, (size,), False), Tensor("y", F32, (size,), True))
    at = {name: i << 15 for i, name in enumerate("abc")}
    buffers = tuple(Buffer(name, Level.UB, F32, 64, 64, 64, "nd", 2, (a, a + (1 << 14))) for name, a in at.items())
    return Program("p", "910B2", "AIV_ONLY", tensors, blocks, halves, 0, buffers, (), nodes)


def load(buffer: str = "a", slot: Expr | int = 0, at: Expr | int = 0) -> Instr:
    return Instr("gm_to_ub", Tile(buffer, expr(slot)), (Gm("x", expr(at), 64),), *TILE)


def vexp(dst: str = "b", src: str = "a", slot: Expr | int = 0) -> Instr:
    return Instr("vexp", Tile(dst, expr(slot)), (Tile(src, expr(slot)),), *TILE)


def store(buffer: str = "b", slot: Expr | int = 0) -> Instr:
    return Instr("ub_to_gm", Gm("y", const(0), 64), (Tile(buffer, expr(slot)),), *TILE)


def stream_loop(trips: int, slots: int) -> tuple[Node, ...]:
    """load, exp, store over `trips` tiles with a ring of `slots` slots and one flag id for each."""
    s = K % slots
    at = (var(BLOCK) * trips + K) * 4096
    body: tuple[Node, ...] = (
        wait("V", "MTE2", s), load(slot=s, at=at), set_("MTE2", "V", s),
        wait("MTE2", "V", s), wait("MTE3", "V", s), vexp(slot=s), set_("V", "MTE2", s), set_("V", "MTE3", s),
        wait("V", "MTE3", s), store(slot=s), set_("MTE3", "V", s),
    )  # fmt: skip
    free = [set_(a, b, i) for i in range(slots) for a, b in (("V", "MTE2"), ("MTE3", "V"))]
    left = [wait(a, b, i) for i in range(slots) for a, b in (("V", "MTE2"), ("MTE3", "V"))]
    return (*free, Loop("k", trips, body), *left)


def gemm_program(trips: int, slots: int, blocks: int = 1, size: int = 4096) -> Program:
    """128 x 256 of C, `trips` steps of 64 in K, rings of `slots` in L1 and 2 in L0."""
    tensors = (Tensor("A", F16, (size, size), False), Tensor("B", F16, (size, size), False), Tensor("C", F16, (size, size), True))
    buffers = (
        Buffer("a", Level.L1, F16, 128, 64, 64, "nz", slots), Buffer("b", Level.L1, F16, 64, 256, 256, "nz", slots),
        Buffer("a0", Level.L0A, F16, 128, 64, 64, "zz", 2), Buffer("b0", Level.L0B, F16, 64, 256, 256, "zn", 2),
        Buffer("c0", Level.L0C, F32, 128, 256, 256, "nz"),
    )  # fmt: skip
    s, t = K % slots, K % 2
    m, n, d = const(128), const(256), const(64)
    body: tuple[Node, ...] = (
        wait("MTE1", "MTE2", s), Instr("gm_to_l1", Tile("a", s), (Gm("A", K * 64, size),), m, d),
        Instr("gm_to_l1", Tile("b", s), (Gm("B", K * (64 * size), size),), d, n), set_("MTE2", "MTE1", s),
        wait("MTE2", "MTE1", s), wait("M", "MTE1", t), Instr("l1_to_l0a", Tile("a0", t), (Tile("a", s),), m, depth=d),
        Instr("l1_to_l0b", Tile("b0", t), (Tile("b", s),), const(1), n, d), set_("MTE1", "MTE2", s), set_("MTE1", "M", t),
        wait("MTE1", "M", t), Instr("mmad", Tile("c0"), (Tile("a0", t), Tile("b0", t)), m, n, d, init=less(K, 1)),
        set_("M", "MTE1", t),
    )  # fmt: skip
    cube = (
        *(set_("MTE1", "MTE2", i) for i in range(slots)), set_("M", "MTE1", 0), set_("M", "MTE1", 1), Loop("k", trips, body),
        set_("M", "FIX"), wait("M", "FIX"), Instr("fixpipe", Gm("C", const(0), size), (Tile("c0"),), m, n),
        *(wait("MTE1", "MTE2", i) for i in range(slots)), wait("M", "MTE1", 0), wait("M", "MTE1", 1),
    )  # fmt: skip
    return Program("gemm", "910B2", "AIC_ONLY", tensors, blocks, False, 0, buffers, cube, ())


def fused_program(trips: int, skewed: bool, tile: int = 128) -> Program:
    """A cube core that hands a product to the vector cores in each trip, and takes one back for a second product.

    Not skewed: product, wait for the vector cores, second product. Skewed: the product of the next trip comes before the wait.
    """
    n = const(tile)
    half = const(tile // 2)
    buffers = (
        Buffer("a0", Level.L0A, F16, tile, tile, tile, "zz"), Buffer("b0", Level.L0B, F16, tile, tile, tile, "zn"),
        Buffer("c0", Level.L0C, F32, tile, tile, tile, "nz"), Buffer("ws", Level.WS, F32, tile, tile, tile, "nd", 2),
        Buffer("u", Level.UB, F32, tile // 2, tile, tile, "nd", 1, (0,), True),
    )  # fmt: skip
    product: tuple[Node, ...] = (
        Instr("mmad", Tile("c0"), (Tile("a0"), Tile("b0")), n, n, n), set_("M", "FIX"), wait("M", "FIX"),
        Instr("fixpipe", Tile("ws", K % 2), (Tile("c0"),), n, n), set_("FIX", "M"), wait("FIX", "M"), CrossSet("FIX", 0),
    )  # fmt: skip
    second: tuple[Node, ...] = (CrossWait(1), *(Instr("mmad", Tile("c0"), (Tile("a0"), Tile("b0")), n, n, n) for _ in range(4)))
    late = tuple(second)
    cube: tuple[Node, ...]
    if skewed:
        cube = (Loop("k", trips + 1, (When(less(K, trips), product), When(less(const(0), K), late))),)
    else:
        cube = (Loop("k", trips, (*product, *second)),)
    vector: tuple[Node, ...] = (
        Loop("k", trips, (
            CrossWait(0), Instr("gm_to_ub", Tile("u"), (Tile("ws", K % 2),), half, n), set_("MTE2", "V"), wait("MTE2", "V"),
            Instr("vexp", Tile("u"), (Tile("u"),), half, n), set_("V", "MTE3"), wait("V", "MTE3"),
            Instr("ub_to_gm", Tile("ws", K % 2), (Tile("u"),), half, n), CrossSet("MTE3", 1),
            set_("MTE3", "MTE2"), wait("MTE3", "MTE2"),
        )),
    )  # fmt: skip
    return Program("fused", "910B2", "MIX_AIC_1_2", (), 1, True, 1 << 20, buffers, cube, vector)


__all__ = [
    "BLOCK", "K", "PipeBarrier", "fused_program", "gemm_program", "load", "set_", "store", "stream_loop", "vector_program",
    "vexp", "wait",
]  # fmt: skip
