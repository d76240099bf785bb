"""Moves between memories, each as one instruction on windows of a schedule's storages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_eg.egraph import Where
from tile_eg.extract import Step
from tile_eg.ir.index import SUB, ZERO, Expr, const, maximum, minimum, var
from tile_eg.ir.program import Gm, Instr, Tile
from tile_eg.ir.types import I8, DType

if TYPE_CHECKING:
    from tile_eg.emit.lower import Lowering


def shared(where: Where, rows: Expr, cols: Expr) -> tuple[Expr, Expr]:
    """What one core has of a tile's valid rows and cols."""
    if where.share == 0:
        return half(rows, where.tile.rows), cols
    return (rows, half(cols, where.tile.cols)) if where.share == 1 else (rows, cols)


def half(valid: Expr, size: int) -> Expr:
    """What one vector core has of `valid` elements when each takes size / 2 of them."""
    h = size // 2
    return const(h) if valid.value == size else maximum(0, minimum(h, valid - var(SUB) * h))


def _offset(share: int | None, offset: Expr, rows: int, cols: int, stride: int) -> Expr:
    """Where the window of one vector core starts."""
    if share == 0:
        return offset + var(SUB) * (rows // 2 * stride)
    return offset + var(SUB) * (cols // 2) if share == 1 else offset


def _window(share: int | None, tile: Tile, rows: int, cols: int) -> Tile:
    if share == 0:
        return replace(tile, row=var(SUB) * (rows // 2))
    return replace(tile, col=var(SUB) * (cols // 2)) if share == 1 else tile


def _from_gm(op: str) -> Callable[[Lowering, Step], Instr]:
    def lower(low: Lowering, step: Step) -> Instr:
        where = low.schedule.graph.where[step.node.cls]
        tensor, offset, stride = step.node.payload[-5:-2]
        source = Gm(tensor, _offset(where.share, offset, where.tile.rows, where.tile.cols, stride), stride)
        rows, cols = low.valid(step)
        return Instr(op, low.tile(step.dst), (source,), rows, cols)

    return lower


def _ahead(low: Lowering, step: Step) -> Instr:
    made, (rows, _) = _from_gm("gm_to_l1")(low, step), low.valid(step)
    assert isinstance(made.dst, Tile)
    return replace(made, dst=replace(made.dst, col=ZERO), rows=rows, cols=step.node.payload[1])


def _from_workspace(op: str) -> Callable[[Lowering, Step], Instr]:
    def lower(low: Lowering, step: Step) -> Instr:
        where = low.schedule.graph.where[step.node.cls]
        source = _window(where.share, low.tile(step.srcs[0]), where.tile.rows, where.tile.cols)
        rows, cols = low.valid(step)
        return Instr(op, low.tile(step.dst), (source,), rows, cols)

    return lower


def _fixpipe(low: Lowering, step: Step) -> Instr:
    source = step.node.children[-1]
    rows, cols = low.valid(step, cls=source)
    relu = next(p for p in step.node.payload if isinstance(p, int)) == 1
    if step.node.op == "FixToGM":
        scale, (tensor, offset, stride, rows, cols, atomic) = step.node.payload[-2:]
        made = Instr("fixpipe", Gm(tensor, offset, stride), (low.tile(step.srcs[1]),), rows, cols, relu=relu, atomic=atomic)
        return _times(made, scale, low.dtypes[tensor])
    dual = step.node.op == "FixToUB" and low.schedule.graph.where[step.node.cls].share is not None
    form = "dual" if dual else "flat"
    made = Instr("fixpipe", low.tile(step.dst), (low.tile(step.srcs[0]),), rows, cols, relu=relu, form=form)
    return _times(made, step.node.payload[1], low.buffers[step.dst].dtype) if step.node.op == "FixToL1" else made  # type: ignore[index]


def _times(made: Instr, scale: float, dtype: DType) -> Instr:
    """A fixpipe that multiplies: by a number other than 1, and by any on the way to bytes."""
    return replace(made, scalar=scale) if scale != 1 or dtype is I8 else made


def _to_vector(low: Lowering, step: Step) -> Instr:
    where = low.schedule.graph.where[step.node.cls]
    form = "flat" if where.share is None else "dual"
    return Instr("l1_to_ub", low.tile(step.dst), (low.tile(step.srcs[0]),), where.tile.vrows, where.tile.vcols, form=form)


def _store(low: Lowering, step: Step) -> Instr:
    where = low.schedule.graph.where[step.node.children[1]]
    tensor, offset, stride, rows, cols, atomic = step.node.payload[-1]
    rows, cols = shared(where, rows, cols)
    target = Gm(tensor, _offset(where.share, offset, where.tile.rows, where.tile.cols, stride), stride)
    once = low.only_once(where.share)
    return Instr("ub_to_gm", target, (low.tile(step.srcs[1]),), rows, cols, when=once, atomic=atomic)


def _to_cube(op: str) -> Callable[[Lowering, Step], Instr]:
    """Each vector core gives its share to where the cube core finds it."""

    def lower(low: Lowering, step: Step) -> Instr:
        where = low.schedule.graph.where[step.node.children[0]]
        rows, cols = low.valid(step, cls=step.node.children[0])
        target = _window(where.share, low.tile(step.dst), where.tile.rows, where.tile.cols)
        return Instr(op, target, (low.tile(step.srcs[0]),), rows, cols, when=low.only_once(where.share))

    return lower


MOVES: dict[str, Callable[[Lowering, Step], Instr]] = {
    "GmToL1": _from_gm("gm_to_l1"),
    "GmToL1Ahead": _ahead,
    "GmToL1Strips": lambda low, step: replace(_from_gm("gm_to_l1")(low, step), form="strips"),
    "GmToUB": _from_gm("gm_to_ub"),
    "WsToL1": _from_workspace("gm_to_l1"),
    "WsToUB": _from_workspace("gm_to_ub"),
    "FixToGM": _fixpipe,
    "FixToWS": _fixpipe,
    "FixToL1": _fixpipe,
    "FixToUB": _fixpipe,
    "L1ToUB": _to_vector,
    "UBToGM": _store,
    "UBToWS": _to_cube("ub_to_gm"),
    "UBToL1": _to_cube("ub_to_l1"),
}
