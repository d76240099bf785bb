"""What is written beyond a tile's rows and columns, as Ascend C: in each chunk of a row under a mask of the lanes behind it.

Rows that lie further apart than a repeat's stride can say are done one by one: a chunk under a mask, and what is behind it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tile_eg.emit.ascend_c.index import EmitError, Scope, block, call
from tile_eg.emit.ascend_c.scalar import scalar_operand
from tile_eg.emit.ascend_c.vector import STRIDE, Job, in_parts, stride_fields, tile, view
from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO, Expr, both, less
from tile_eg.ir.program import Instr
from tile_eg.ops.types import F32

LANES = 64
ALL = (1 << LANES) - 1


def beyond(s: Scope, i: Instr) -> list[str]:
    """Of floats: a chunk of the columns is one word of the mask. The rows behind are one run."""
    dst, cols, rows = tile(i, i.dst), i.cols.value, i.depth.value
    pitch = s.buffer(dst).pitch
    if s.buffer(dst).dtype is not F32 or cols is None or cols % LANES or rows is None or pitch != cols:
        raise EmitError(f"{i.op} takes whole rows of f32, of a multiple of {LANES} columns", i.span)
    value, seen = scalar_operand(s, replace(i, bound=ZERO), F32), view(s, dst, LANES)
    job = Job(i, (seen,), LANES, lambda o, n: [], lambda *_: [], i.rows, i.cols)

    def chunk(at: Expr, row: Expr, count: Expr, strides: list[str]) -> list[str]:
        mask, kept = s.fresh("mask"), s.cpp(ix.maximum(i.bound - at, 0))
        lines = [f"uint64_t {mask}[2] = {{{ALL:#x}u << ({kept}), 0}};"]
        return lines + call("Duplicate", s.at(dst, row * pitch + at), value, mask, s.cpp(count), *strides)

    def of_all_rows(at: int, strides: list[str], row: Expr, count: Expr) -> list[str]:
        condition = both(less(i.bound, at + LANES), less(0, count))
        return block(f"if ({s.cpp(condition)})", chunk(ix.const(at), row, count, strides))

    def of_a_row(row: Expr, strides: list[str]) -> list[str]:
        begun, whole = i.bound // LANES * LANES, (i.bound + (LANES - 1)) // LANES * LANES
        rest = call("Duplicate", s.at(dst, row * pitch + whole), value, s.cpp(cols - whole))
        first = block(f"if ({s.cpp(less(begun, whole))})", chunk(begun, row, ix.ONE, strides))
        return [*first, *block(f"if ({s.cpp(less(whole, cols))})", rest)]

    if seen.row_blocks <= STRIDE:
        strides = stride_fields(s, job, [seen.row_blocks])
        out = [line for at in range(0, cols, LANES) for line in in_parts(s, job, partial(of_all_rows, at, strides))]
    else:
        r = s.fresh("row")
        s.ranges[r] = (0, s.high(i.rows) - 1)
        body = of_a_row(ix.var(r), stride_fields(s, replace(job, rows=ix.ONE), [seen.row_blocks]))
        out = block(f"for (int32_t {r} = 0; {r} < {s.limit(i.rows)}; ++{r})", body)
    behind = call("Duplicate", s.at(dst, i.rows * pitch), value, s.cpp((rows - i.rows) * pitch))
    return out if i.rows.value == rows else [*out, *block(f"if ({s.cpp(less(i.rows, rows))})", behind)]
