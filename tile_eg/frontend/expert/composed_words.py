"""Functions without a vector instruction of their own, as the few instructions that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import ExpertReader, on
from tile_eg.frontend.expert.vectors import BLOCK, elementwise, scratch, ub
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr


def _step(r: ExpertReader, span: Span, op: str, to: Place, *srcs: Place, **fields: float) -> None:
    elementwise(r, span, op, to, *srcs, **fields)
    on(r, pr.AIV, pr.PipeBarrier("V", span))


def _beside(r: ExpertReader, x: Place) -> Place:
    """Room for as many elements as a window has."""
    cols = -(-x.cols * x.dtype.bytes // BLOCK) * BLOCK // x.dtype.bytes
    tile = scratch(r, x.dtype, x.rows, cols)
    return replace(x, operand=tile, whole=cols == x.cols, valid_rows=ix.const(x.rows), valid_cols=ix.const(x.cols))


def _above_one(r: ExpertReader, span: Span, x: Place, factor: float) -> Place:
    """1 + exp(factor * x)."""
    made = _beside(r, x)
    _step(r, span, "vmuls", made, x, scalar=factor)
    _step(r, span, "vexp", made, made)
    _step(r, span, "vadds", made, made, scalar=1.0)
    return made


def _silu(r: ExpertReader, span: Span, to: Place, x: Place) -> None:
    """x / (1 + exp(-x))."""
    elementwise(r, span, "vdiv", to, x, _above_one(r, span, x, -1.0))


def _sigmoid(r: ExpertReader, span: Span, to: Place, x: Place) -> None:
    """1 / (1 + exp(-x))."""
    below = _above_one(r, span, x, -1.0)
    _step(r, span, "vdup", to, scalar=1.0)
    elementwise(r, span, "vdiv", to, to, below)


def _tanh(r: ExpertReader, span: Span, to: Place, x: Place) -> None:
    """1 - 2 / (1 + exp(2 x))."""
    below = _above_one(r, span, x, 2.0)
    _step(r, span, "vdup", to, scalar=-2.0)
    _step(r, span, "vdiv", to, to, below)
    elementwise(r, span, "vadds", to, to, scalar=1.0)


def _by_rows(op: str) -> Callable[..., None]:
    def word(r: ExpertReader, span: Span, dst: Any, src: Any, rows: Any, tmp: Any = None) -> None:
        """Each row with its own element: dst[i, j] = src[i, j] op rows[i]."""
        to, x, v = ub(r, dst, span), ub(r, src, span), ub(r, rows, span)
        if (to.rows, to.cols) != (x.rows, x.cols) or v.count != x.rows:
            raise TileError(f"{x.rows} x {x.cols} elements have {x.rows} rows, and there are {v.count} numbers", span)
        each = scratch(r, v.dtype, -(-x.rows // 8) * 8, BLOCK // v.dtype.bytes)
        r.instr("vbrcb", each, v.operand, rows=ix.const(x.rows), span=span)
        on(r, pr.AIV, pr.PipeBarrier("V", span))
        sizes = {"rows": ix.const(x.rows), "cols": ix.const(x.cols)}
        r.instr(f"v{op}_rows", to.operand, x.operand, each, form="rows", span=span, **sizes)

    return word


def _word(made: Callable[..., None]) -> Callable[..., None]:
    def word(r: ExpertReader, span: Span, dst: Any, src: Any) -> None:
        made(r, span, ub(r, dst, span), ub(r, src, span))

    return word


WORDS: dict[str, Callable[..., None]] = {
    "tile.silu": _word(_silu), "tile.sigmoid": _word(_sigmoid), "tile.tanh": _word(_tanh), "tile.row_expand_mul": _by_rows("mul"),
    **{f"tile.row_expand_{op}_experiment": _by_rows(op) for op in ("mul", "sub", "div")},
}  # fmt: skip
