"""Small pieces that expert programs are made of: flags, rings, buffers at their addresses, and a Program with few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tile_eg.ir.index import Expr, const
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Buffer, Instr, Node, PipeBarrier, Program, SetFlag, WaitFlag
from tile_eg.ops.types import DType, Level

LAYOUTS = {Level.UB: "nd", Level.WS: "nd", Level.L0A: "zz", Level.L0B: "zn"}
ALIGNMENT = 1024
BANK_GROUP = 256


def expr(n: Expr | int) -> Expr:
    return n if isinstance(n, Expr) else const(n)


def put(src: str, dst: str, flag: Expr | int = 0) -> SetFlag:
    return SetFlag(src, dst, expr(flag))


def take(src: str, dst: str, flag: Expr | int = 0) -> WaitFlag:
    return WaitFlag(src, dst, expr(flag))


def v_ops(*instructions: Instr) -> tuple[Node, ...]:
    """Vector instructions that depend on one another: a barrier behind each."""
    return tuple(n for i in instructions for n in (i, PipeBarrier("V")))


def both_ways(src: str, dst: str, ids: Iterable[int]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """What frees the slots of a ring before the loop, and what takes the flags back behind it."""
    return tuple(put(src, dst, i) for i in ids), tuple(take(src, dst, i) for i in ids)


def matrix(name: str, dtype: DType, rows: int, cols: int, output: bool = False) -> Tensor:
    return Tensor(name, dtype, (rows, cols), output)


def buffer(name: str, level: Level, dtype: DType, rows: int, cols: int, slots: int = 1, group: int = 0) -> Buffer:
    """A buffer still without addresses; in UB it will start in bank group `group` (0 or 1)."""
    return Buffer(name, level, dtype, rows, cols, cols, LAYOUTS.get(level, "nz"), slots, (group * BANK_GROUP,) * slots)


def placed(buffers: Sequence[Buffer], over: Mapping[str, str]) -> tuple[Buffer, ...]:
    """The buffers one behind the other in their memories, in UB in the bank group that they ask for.

    `over` names buffers that lie where another one does.
    """
    top: dict[Level, int] = {}
    out: dict[str, Buffer] = {}
    for b in buffers:
        addresses = []
        for group in b.addresses if b.name not in over else ():
            at = _next(b.level, top.get(b.level, 0), group)
            addresses.append(at)
            top[b.level] = at + b.slot_bytes
        out[b.name] = replace(b, addresses=tuple(addresses))
    for name, other in over.items():
        out[name] = replace(out[name], addresses=out[other].addresses[: out[name].slots])
    return tuple(out.values())


def _next(level: Level, top: int, group: int) -> int:
    """The first address at or behind `top` where a buffer may start."""
    return top + (group - top) % (2 * BANK_GROUP) if level is Level.UB else -(-top // ALIGNMENT) * ALIGNMENT


def program(
    name: str, kernel_type: str, tensors: tuple[Tensor, ...], blocks: int, buffers: tuple[Buffer, ...],
    *, cube: tuple[Node, ...] = (), vector: tuple[Node, ...] = (), over: Mapping[str, str] | None = None,
) -> Program:  # fmt: skip
    """The Program, its buffers placed; `blocks` blocks, each with the workspace that its buffers need.

    In a mixed kernel each vector core has its own half of the buffers in UB.
    """
    mixed = bool(cube and vector)
    at = tuple(replace(b, halved=mixed and b.level is Level.UB) for b in placed(buffers, over or {}))
    workspace = max((a + b.slot_bytes for b in at if b.level is Level.WS for a in b.addresses), default=0)
    return Program(name, "910B1", kernel_type, tensors, blocks, mixed, -(-workspace // 512) * 512, at, cube, vector)
