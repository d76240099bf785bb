"""Moves between memories, each as one instruction on windows of a schedule's storages."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.emit.lower.storages import Storages, shared
from tile_eg.extract import Step
from tile_eg.ir.index import EACH, SUB, ZERO, Expr, substitute, var, variables
from tile_eg.ir.left_padding import without_padding
from tile_eg.ir.program import Gm, Instr, Tile
from tile_eg.ops.physical import Move
from tile_eg.ops.types import I8, DType


def _offset(share: int | None, offset: Expr, rows: int, cols: int, stride: int | Expr) -> Expr:
    """Where the window of one vector core starts."""
    if share == 0 and EACH in variables(offset):
        return substitute(offset, {EACH: var(EACH) + var(SUB) * (rows // 2)})
    if share == 0:
        return offset + var(SUB) * (stride * (rows // 2))
    return offset + var(SUB) * (cols // 2) if share == 1 else offset


def _window(share: int | None, tile: Tile, rows: int, cols: int) -> Tile:
    if share == 0:
        return replace(tile, row=tile.row + var(SUB) * (rows // 2))
    return replace(tile, col=tile.col + var(SUB) * (cols // 2)) if share == 1 else tile


def moved(storages: Storages, step: Step, term: Move) -> Instr:
    """A move between two memories, on the core that does it."""
    if term.source == "GM":
        return _from_gm(storages, step, term)
    if term.source == "WS":
        return _from_workspace(storages, step, term)
    if term.source == "L0C":
        return _fixpipe(storages, step, term)
    if term.source == "L1":
        return _to_vector(storages, step, term)
    return _store(storages, step, term) if term.target == "GM" else _to_cube(storages, step, term)


def _from_gm(storages: Storages, step: Step, term: Move) -> Instr:
    where = storages.schedule.graph.demands[step.node.cls]
    tensor, offset, stride = step.node.payload[-5:-2]
    stride = storages.stride(tensor, stride)
    offset, left = without_padding(offset)
    source = Gm(tensor, _offset(where.share, offset, where.tile.rows, where.tile.cols, stride), stride)
    rows, cols = storages.valid(step)
    if term.several_trips:
        return Instr(term.instruction, replace(storages.tile(step.dst), col=ZERO), (source,), rows, step.node.payload[1])
    if term.padded:
        first, there = step.node.payload[:2]
        return Instr(term.instruction, storages.tile(step.dst), (source,), rows, cols, there, bound=first, form="padded")
    made = Instr(term.instruction, storages.tile(step.dst), (source,), rows, cols, bound=left)
    return replace(made, form="strips") if term.strips else made


def _from_workspace(storages: Storages, step: Step, term: Move) -> Instr:
    where = storages.schedule.graph.demands[step.node.cls]
    source = _window(where.share, storages.source(step, 0), where.tile.rows, where.tile.cols)
    form = "strips" if term.strips else "flat"
    return Instr(term.instruction, storages.tile(step.dst), (source,), *storages.valid(step), form=form)


def _fixpipe(storages: Storages, step: Step, term: Move) -> Instr:
    source = step.node.children[term.operand]
    rows, cols = storages.valid(step, cls=source)
    relu = next(p for p in step.node.payload if isinstance(p, int)) == 1
    if term.target == "GM":
        scale, (tensor, offset, stride, rows, cols, atomic) = step.node.payload[-2:]
        target = Gm(tensor, offset, storages.stride(tensor, stride))
        made = Instr(term.instruction, target, (storages.tile(step.srcs[1]),), rows, cols, relu=relu, atomic=atomic)
        return _times(made, scale, storages.dtypes[tensor])
    dual = term.target == "UB" and storages.schedule.graph.demands[step.node.cls].share is not None
    form = "dual" if dual else "flat"
    made = Instr(term.instruction, storages.tile(step.dst), (storages.tile(step.srcs[0]),), rows, cols, relu=relu, form=form)
    return _times(made, step.node.payload[1], storages.buffers[step.dst].dtype) if term.target == "L1" else made  # type: ignore[index]


def _times(made: Instr, scale: float, dtype: DType) -> Instr:
    """A fixpipe that multiplies: by a number other than 1, and by any on the way to bytes."""
    return replace(made, scalar=scale) if scale != 1 or dtype is I8 else made


def _to_vector(storages: Storages, step: Step, term: Move) -> Instr:
    where = storages.schedule.graph.demands[step.node.cls]
    form = "flat" if where.share is None else "dual"
    return Instr(
        term.instruction, storages.tile(step.dst), (storages.source(step, 0),), where.tile.vrows, where.tile.vcols, form=form
    )


def _store(storages: Storages, step: Step, term: Move) -> Instr:
    where = storages.schedule.graph.demands[step.node.children[1]]
    tensor, offset, stride, rows, cols, atomic = step.node.payload[-1]
    rows, cols = shared(where, rows, cols)
    stride = storages.stride(tensor, stride)
    target = Gm(tensor, _offset(where.share, offset, where.tile.rows, where.tile.cols, stride), stride)
    once = storages.only_once(where.share)
    return Instr(term.instruction, target, (storages.source(step, 1),), rows, cols, when=once, atomic=atomic)


def _to_cube(storages: Storages, step: Step, term: Move) -> Instr:
    """Each vector core gives its share to where the cube core finds it."""
    where = storages.schedule.graph.demands[step.node.children[0]]
    rows, cols = storages.valid(step, cls=step.node.children[0])
    target = _window(where.share, storages.tile(step.dst), where.tile.rows, where.tile.cols)
    return Instr(term.instruction, target, (storages.source(step, 0),), rows, cols, when=storages.only_once(where.share))
