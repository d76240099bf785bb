"""Tensors and buffers of bools in a kernel that is not searched: they are read, and copied into UB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.places import same_memory
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.nibbles import KEPT, whole_bytes
from tile_eg.frontend.python.bools import is_bool
from tile_eg.frontend.python.values import NewBuffer, as_dtype
from tile_eg.frontend.python.words import sizes
from tile_eg.ir.program import Gm, Instr, Node, Tile, walk
from tile_eg.ops.types import U8


def allocated(level: str, shape: Any, dtype: Any, span: Span, anywhere: bool) -> NewBuffer:
    """A new buffer. One of bools lies in UB, or where its uses say (`anywhere`)."""
    truth = is_bool(dtype) and (level == "UB" or anywhere)
    held = U8 if truth else whole_bytes(as_dtype(dtype, span), KEPT, span)
    return NewBuffer(level, held, sizes(shape, "the size of a buffer", span), truth=truth)


def check_bools(r: ExpertReader, nodes: tuple[Node, ...]) -> None:
    """TileError where bools would be written otherwise than by a copy of a tensor of bools, or taken for bits."""
    given = {t.name for t in r.tensors.values() if t.truth}
    kept = same_memory(r.views, (h.name for h in r.held.values() if h.truth))
    for n in walk(nodes):
        if isinstance(n, Instr) and n.op == "vbitselect" and _names(n.srcs[:1]) & kept:
            help = "T.if_then_else(m[i, j], x[i, j], y[i, j]) in T.Parallel"
            raise TileError("a selection takes bits, eight in a byte, and this buffer holds bools", n.span, help=help)
        if isinstance(n, Instr) and (written := _names(n.writes()) & (given | kept)) and not _copied(n, given):
            what = f"`{min(written)}` holds bools: a kernel that is not searched only copies them, from tensors of bools"
            raise TileError(what, n.span, help='declare "int8", and store 1 or 0: T.if_then_else(condition, 1, 0)')


def _copied(n: Instr, given: set[str]) -> bool:
    """Whether an instruction copies bools of a tensor into UB."""
    return n.op == "gm_to_ub" and {*_names(n.reads())} <= given and n.pad in (None, 0, 1)


def _names(operands: tuple[Any, ...]) -> set[str]:
    return {*_each(operands)}


def _each(operands: tuple[Any, ...]) -> Iterator[str]:
    for o in operands:
        if isinstance(o, Gm):
            yield o.tensor
        if isinstance(o, Tile):
            yield o.buffer
