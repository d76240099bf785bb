"""Tensors and buffers of bools in a kernel that is not searched: bytes that are 0 or 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.bools import check_stored
from tile_eg.frontend.expert.places import same_memory
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.nibbles import KEPT, whole_bytes
from tile_eg.frontend.python.bools import is_bool
from tile_eg.frontend.python.values import NewBuffer, as_dtype
from tile_eg.frontend.python.words import sizes
from tile_eg.ir.kernel import Region, TileExpr
from tile_eg.ir.program import Gm, Instr, Node, Tile, walk
from tile_eg.ops.types import U8


def allocated(level: str, shape: Any, dtype: Any, span: Span, anywhere: bool) -> NewBuffer:
    """A new buffer. One of bools lies in UB, or where its uses say (`anywhere`)."""
    truth = is_bool(dtype) and (level == "UB" or anywhere)
    held = U8 if truth else whole_bytes(as_dtype(dtype, span), KEPT, span)
    return NewBuffer(level, held, sizes(shape, "the size of a buffer", span), truth=truth)


def noted(r: ExpertReader, target: Region, value: TileExpr, span: Span | None) -> None:
    """Notes what stores in a place of bools. TileError where that may be another number than 0 or 1."""
    names = _of_bools(r)
    if target.name in names:
        check_stored(target, value, "", names, span)
        r.truths.add(span)


def check_bools(r: ExpertReader, nodes: tuple[Node, ...]) -> None:
    """TileError where bools would be written by what may give other numbers, or taken for bits."""
    names = _of_bools(r)
    for n in walk(nodes):
        if isinstance(n, Instr) and n.op == "vbitselect" and _names(n.srcs[:1]) & names:
            help = "T.if_then_else(m[i, j], x[i, j], y[i, j]) in T.Parallel"
            raise TileError("a selection takes bits, eight in a byte, and this buffer holds bools", n.span, help=help)
        if isinstance(n, Instr) and (written := _names(n.writes()) & names) and n.span not in r.truths and not _stays(n, names):
            what = f"`{min(written)}` holds bools, and this may be another number than 0 or 1"
            raise TileError(what, n.span, help="m[i, j] = a condition, in T.Parallel; or a buffer of int8 for numbers")


def _of_bools(r: ExpertReader) -> set[str]:
    given = {t.name for t in r.tensors.values() if t.truth}
    return given | same_memory(r.views, (h.name for h in r.held.values() if h.truth))


def _stays(n: Instr, names: set[str]) -> bool:
    """Whether an instruction copies bools, or writes one of the two numbers that they are."""
    if n.op == "vdup":
        return n.value is None and n.scalar in (0, 1)
    return n.op in ("gm_to_ub", "ub_to_gm", "vcopy") and not n.atomic and {*_names(n.reads())} <= names and n.pad in (None, 0, 1)


def _names(operands: tuple[Any, ...]) -> set[str]:
    return {*_each(operands)}


def _each(operands: tuple[Any, ...]) -> Iterator[str]:
    for o in operands:
        if isinstance(o, Gm):
            yield o.tensor
        if isinstance(o, Tile):
            yield o.buffer
