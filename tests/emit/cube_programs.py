"""Matrix products as hand-built programs: one tile through L1, cut over L0 in m, n and k."""

from __future__ import annotations

from dataclasses import dataclass

from tile_eg.ir import index as ix
from tile_eg.ir.index import ONE, ZERO, Expr
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Buffer, Gm, Instr, Loop, Node, Program, Tile
from tile_eg.ops.types import F16, F32, DType, Level


@dataclass(frozen=True)
class Product:
    """C = A @ B (relu'd) of m x n x k; `cut` is the step in each dimension. `tail` more rows of C belong to a second block."""

    m: int
    n: int
    k: int
    dtype: DType = F16
    out: DType = F32
    transpose_a: bool = False
    transpose_b: bool = False
    cut: tuple[int, int, int] = (64, 64, 64)
    relu: bool = False
    tail: int = 0

    @property
    def rows(self) -> int:
        return self.m + self.tail

    def shape_a(self) -> tuple[int, int]:
        return (self.k, self.rows) if self.transpose_a else (self.rows, self.k)

    def shape_b(self) -> tuple[int, int]:
        return (self.n, self.k) if self.transpose_b else (self.k, self.n)


def _part(valid: Expr, index: Expr, step: int) -> Expr:
    return ix.maximum(0, ix.minimum(step, valid - index * step))


def _steps(p: Product, valid_m: Expr) -> tuple[Node, ...]:
    counts = [-(-size // step) for size, step in zip((p.m, p.n, p.k), p.cut, strict=True)]
    m, n, k = (ix.var(v) if c > 1 else ZERO for v, c in zip(("mi", "ni", "ki"), counts, strict=True))
    rows, cols = _part(valid_m, m, p.cut[0]), _part(ix.const(p.n), n, p.cut[1])
    depth = _part(ix.const(p.k), k, p.cut[2])
    slot = ((m * counts[1] + n) * counts[2] + k) % 2
    at_m, at_n, at_k = m * p.cut[0], n * p.cut[1], k * p.cut[2]
    a = Tile("a", ZERO, at_k, at_m) if p.transpose_a else Tile("a", ZERO, at_m, at_k)
    b = Tile("b", ZERO, at_n, at_k) if p.transpose_b else Tile("b", ZERO, at_k, at_n)
    body: tuple[Node, ...] = (
        Instr("l1_to_l0a", Tile("la", slot), (a,), rows=rows, depth=depth, transpose=p.transpose_a),
        Instr("l1_to_l0b", Tile("lb", slot), (b,), cols=cols, depth=depth, transpose=p.transpose_b),
        Instr("mmad", Tile("c", ZERO, at_m, at_n), (Tile("la", slot), Tile("lb", slot)), rows, cols, depth, init=ix.less(k, ONE)),
    )
    for var, count in (("ki", counts[2]), ("ni", counts[1]), ("mi", counts[0])):
        body = (Loop(var, count, body),) if count > 1 else body
    return body


def product_program(p: Product) -> Program:
    block = ix.var(ix.BLOCK)
    valid_m = ix.minimum(p.m, p.rows - block * p.m) if p.tail else ix.const(p.m)
    tensors = (
        Tensor("A", p.dtype, p.shape_a(), False),
        Tensor("B", p.dtype, p.shape_b(), False),
        Tensor("C", p.out, (p.rows, p.n), True),
    )
    from_a = Gm("A", block * p.m if p.transpose_a else block * (p.m * p.k), p.shape_a()[1])
    size_a = (ix.const(p.k), valid_m) if p.transpose_a else (valid_m, ix.const(p.k))
    size_b = tuple(ix.const(s) for s in p.shape_b())
    tile_a = (p.k, p.m) if p.transpose_a else (p.m, p.k)
    l1 = [
        Buffer("a", Level.L1, p.dtype, *tile_a, tile_a[1], "nz"),
        Buffer("b", Level.L1, p.dtype, *p.shape_b(), p.shape_b()[1], "nz"),
    ]
    m, n, k = p.cut
    buffers = (
        _at(l1[0], 0),
        _at(l1[1], l1[0].slot_bytes),
        _pair(Buffer("la", Level.L0A, p.dtype, m, k, k, "zz", 2)),
        _pair(Buffer("lb", Level.L0B, p.dtype, k, n, n, "zn", 2)),
        Buffer("c", Level.L0C, F32, p.m, p.n, p.n, "nz", 1, (0,)),
    )
    cube: tuple[Node, ...] = (
        Instr("gm_to_l1", Tile("a"), (from_a,), *size_a),
        Instr("gm_to_l1", Tile("b"), (Gm("B", ZERO, p.shape_b()[1]),), *size_b),
        *_steps(p, valid_m),
        Instr("fixpipe", Gm("C", block * (p.m * p.n), p.n), (Tile("c"),), valid_m, ix.const(p.n), relu=p.relu),
    )
    return Program("k", "910B2", "AIC_ONLY", tensors, 2 if p.tail else 1, False, 0, buffers, cube, ())


def _at(b: Buffer, address: int) -> Buffer:
    return Buffer(b.name, b.level, b.dtype, b.rows, b.cols, b.pitch, b.layout, 1, (address,))


def _pair(b: Buffer) -> Buffer:
    return Buffer(b.name, b.level, b.dtype, b.rows, b.cols, b.pitch, b.layout, 2, (0, 32768))
