"""Small pieces that the programs of this folder are made of: flags, rings, and a Program with few words."""

from __future__ import annotations

from tile_eg.ir.index import Expr, const
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Buffer, Node, Program, SetFlag, WaitFlag
from tile_eg.ir.types import DType, Level


def expr(n: Expr | int) -> Expr:
    return n if isinstance(n, Expr) else const(n)


def put(src: str, dst: str, flag: Expr | int = 0) -> SetFlag:
    return SetFlag(src, dst, expr(flag))


def take(src: str, dst: str, flag: Expr | int = 0) -> WaitFlag:
    return WaitFlag(src, dst, expr(flag))


def both_ways(src: str, dst: str, ids: range) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """What frees the slots of a ring before the loop, and what takes the flags back behind it."""
    return tuple(put(src, dst, i) for i in ids), tuple(take(src, dst, i) for i in ids)


def matrix(name: str, dtype: DType, rows: int, cols: int, output: bool = False) -> Tensor:
    return Tensor(name, dtype, (rows, cols), output)


def buffer(name: str, level: Level, dtype: DType, rows: int, cols: int, slots: int = 1, group: int = 0) -> Buffer:
    """A buffer of UB gets addresses in bank group `group` (0 or 1); the others none, as the engine does not ask for them."""
    addresses = (group * 256,) * slots if level is Level.UB else ()
    return Buffer(name, level, dtype, rows, cols, cols, "nd" if level in (Level.UB, Level.WS) else "nz", slots, addresses)


def program(
    name: str, kernel_type: str, tensors: tuple[Tensor, ...], blocks: int, buffers: tuple[Buffer, ...],
    *, cube: tuple[Node, ...] = (), vector: tuple[Node, ...] = (), halves: bool = False,
) -> Program:  # fmt: skip
    return Program(name, "910B1", kernel_type, tensors, blocks, halves, 0, buffers, cube, vector)
