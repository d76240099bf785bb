"""Small pieces that expert programs are made of: flags, rings, buffers at their addresses, and a Program with few words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tile_eg.ir.index import Expr, const
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Buffer, Node, Program, SetFlag, WaitFlag
from tile_eg.ir.types import DType, Level

LAYOUTS = {Level.UB: "nd", Level.WS: "nd", Level.L0A: "zz", Level.L0B: "zn"}
ALIGNMENT = 1024
BANK_GROUP = 256


def expr(n: Expr | int) -> Expr:
    return n if isinstance(n, Expr) else const(n)


def put(src: str, dst: str, flag: Expr | int = 0) -> SetFlag:
    return SetFlag(src, dst, expr(flag))


def take(src: str, dst: str, flag: Expr | int = 0) -> WaitFlag:
    return WaitFlag(src, dst, expr(flag))


def both_ways(src: str, dst: str, ids: Iterable[int]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """What frees the slots of a ring before the loop, and what takes the flags back behind it."""
    return tuple(put(src, dst, i) for i in ids), tuple(take(src, dst, i) for i in ids)


def matrix(name: str, dtype: DType, rows: int, cols: int, output: bool = False) -> Tensor:
    return Tensor(name, dtype, (rows, cols), output)


def buffer(name: str, level: Level, dtype: DType, rows: int, cols: int, slots: int = 1, group: int = 0) -> Buffer:
    """A buffer still without addresses; in UB it will start in bank group `group` (0 or 1)."""
    return Buffer(name, level, dtype, rows, cols, cols, LAYOUTS.get(level, "nz"), slots, (group * BANK_GROUP,) * slots)


def placed(buffers: Sequence[Buffer]) -> tuple[Buffer, ...]:
    """The buffers one behind the other in their memories, those of UB in the bank group that they ask for."""
    top: dict[Level, int] = {}
    out = []
    for b in buffers:
        addresses = []
        for group in b.addresses:
            at = _next(b.level, top.get(b.level, 0), group)
            addresses.append(at)
            top[b.level] = at + b.slot_bytes
        out.append(replace(b, addresses=tuple(addresses)))
    return tuple(out)


def _next(level: Level, top: int, group: int) -> int:
    """The first address at or behind `top` where a buffer may start."""
    return top + (group - top) % (2 * BANK_GROUP) if level is Level.UB else -(-top // ALIGNMENT) * ALIGNMENT


def program(
    name: str, kernel_type: str, tensors: tuple[Tensor, ...], blocks: int, buffers: tuple[Buffer, ...],
    *, cube: tuple[Node, ...] = (), vector: tuple[Node, ...] = (), halves: bool = False,
) -> Program:  # fmt: skip
    """The Program, its buffers placed one behind the other; `blocks` blocks, each with the workspace that its buffers need."""
    at = placed(buffers)
    workspace = max((a + b.slot_bytes for b in at if b.level is Level.WS for a in b.addresses), default=0)
    return Program(name, "910B1", kernel_type, tensors, blocks, halves, -(-workspace // 512) * 512, at, cube, vector)
