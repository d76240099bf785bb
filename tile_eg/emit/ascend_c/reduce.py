"""Reductions as Ascend C: op -> the lines of its text.

Over the rows of a tile there are two forms. `rows` folds the chunks of 256 bytes of each row into one and reduces that with one
whole reduction a row. `blocks` reduces by blocks of eight elements until one is left of each row, all rows in one call; rows
that a block holds are one step, under a mask of their elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tile_eg.emit.ascend_c.index import EmitError, Scope, block, call, counted, number
from tile_eg.emit.ascend_c.vector import (
    BARRIER,
    STRIDE,
    Job,
    View,
    aligned,
    binary_job,
    by_chunks,
    checked,
    in_parts,
    lanes_of,
    stride_fields,
    tile,
    view,
    written,
)
from tile_eg.ir import index as ix
from tile_eg.ir.index import ONE, ZERO, Expr
from tile_eg.ir.machine import BLOCK_ELEMENTS as BLOCK
from tile_eg.ir.machine import DOT_PARTS, MAX_REPEAT, block_steps, halves
from tile_eg.ir.machine import REPEAT_ELEMENTS as LANES
from tile_eg.ir.program import REDUCE, Instr, Tile
from tile_eg.ops.types import F32

FOLDS = {"max": "Max", "min": "Min", "sum": "Add"}
BLOCKS = {"max": "BlockReduceMax", "min": "BlockReduceMin", "sum": "BlockReduceSum"}
WHOLE = {"max": "WholeReduceMax", "min": "WholeReduceMin", "sum": "WholeReduceSum"}


def row_reduce(s: Scope, i: Instr) -> list[str]:
    """Column chunks are folded into `scratch`, then each row of one chunk is reduced, under what is valid."""
    op, dst, src = i.op.removeprefix("vrow"), tile(i, i.dst), tile(i, i.srcs[0])
    checked(s, i, [dst, src])
    if i.form == "blocks":
        return by_blocks(s, i, op, dst, src)
    if i.form == "halves":
        return _by_halves_of_chunks(s, i, op, dst, src)
    lanes = lanes_of(s, [src])
    if s.high(i.cols) <= lanes:
        return _whole(s, i, op, dst, view(s, src, lanes), i.cols)
    if i.scratch is None:
        raise EmitError(f"{i.op} over more than {lanes} columns needs scratch", i.span)
    partial = View(i.scratch, 8, 8, 1, lanes, lanes)
    return [*_fold(s, i, op, partial, view(s, src, lanes), lanes), BARRIER,
            *_whole(s, i, op, dst, partial, ix.minimum(ix.const(lanes), i.cols))]  # fmt: skip


def _fold(s: Scope, i: Instr, op: str, partial: View, src: View, lanes: int) -> list[str]:
    """scratch = the first two chunks folded (or the first alone, where the second is not full), then op= each further chunk."""
    if s.low(i.cols) >= 2 * lanes:
        pair = binary_job(s, i, FOLDS[op], (partial, src, src), lanes)
        return [*_row_calls(s, pair, (ZERO, ZERO, ix.const(lanes)), str(lanes)), *_fold_from(s, i, op, partial, src, 2 * lanes)]
    zero = number(0.0, s.buffer(src.tile).dtype)

    def copied(o: list[str], mask: str, repeat: str, strides: list[str]) -> list[str]:
        return call("Adds", *o, zero, mask, repeat, f"AscendC::UnaryRepeatParams({', '.join(strides)})")

    first = Job(i, (partial, src), lanes, lambda o, n: call("Adds", *o, zero, n), copied, i.rows, i.cols)
    start = _row_calls(s, first, (ZERO, ZERO), s.cpp(ix.minimum(ix.const(lanes), i.cols)))
    return [*start, *_fold_from(s, i, op, partial, src, lanes)]


def _fold_from(s: Scope, i: Instr, op: str, partial: View, src: View, start: int) -> list[str]:
    """scratch op= each chunk from column `start` on, a barrier before each."""
    step = binary_job(s, i, FOLDS[op], (partial, partial, src), src.chunk)

    def fold(at: Expr, mask: Expr) -> list[str]:
        return [BARRIER, *_row_calls(s, step, (ZERO, ZERO, at), s.cpp(mask))]

    return by_chunks(s, i.cols, src.chunk, ix.const(start), fold)


def _row_calls(s: Scope, j: Job, columns: tuple[Expr, ...], mask: str) -> list[str]:
    """The job's calls for one chunk of columns over all rows; row by row where the rows lie too far apart for the repeat."""
    far = max(v.row_blocks for v in j.views) > STRIDE and j.rows != ONE

    def one(row: Expr, rows: Expr) -> list[str]:
        operands = [s.at(v.tile, row * v.row + c) for v, c in zip(j.views, columns, strict=True)]
        repeats = [0 if far else v.row_blocks for v in j.views]
        return j.masked(operands, mask, s.cpp(rows), stride_fields(s, j, repeats))

    if not far:
        return in_parts(s, j, one)
    r = s.counter("row", j.rows)
    return counted(r, s.limit(j.rows), one(ix.var(r), ONE))


def _by_halves_of_chunks(s: Scope, i: Instr, op: str, dst: Tile, src: Tile) -> list[str]:
    """Half of the chunks of each row upon the other half, until one is left. A chunk that is over, and elements that fill none,
    join the first."""
    cols, lanes, of, out = i.cols.value or 0, lanes_of(s, [src]), src, list[str]()
    into, (chunks, rest) = i.scratch, divmod(cols, lanes)
    if chunks < 2 or into is None:
        raise EmitError(f"{i.op}: halves are of two chunks or more of {lanes} columns, and need scratch", i.span)
    for left, over in halves(chunks):
        parts = [(left, left * lanes)] + ([(2 * left, lanes)] if over else []) + ([(chunks, rest)] if rest and of is src else [])
        for n, (chunk, count) in enumerate(parts):
            views = [view(s, t, lanes) for t in (into, into if n else of, _further(of, chunk * lanes))]
            job = binary_job(s, replace(i, cols=ix.const(count)), FOLDS[op], (views[0], views[1], views[2]), lanes)
            out += [*written(s, job), BARRIER]
        of = into
    return out + _whole(s, i, op, dst, view(s, into, lanes), ix.const(lanes))


def _whole(s: Scope, i: Instr, op: str, dst: Tile, src: View, mask: Expr) -> list[str]:
    """One value for each row: the repeat walks down the rows, the mask keeps out what lies beyond the columns."""
    order = [] if op == "sum" else ["AscendC::ReduceOrder::ORDER_ONLY_VALUE"]
    job = Job(i, (src,), 0, lambda o, n: [], lambda *_: [], i.rows, i.cols)

    def one(row: Expr, rows: Expr) -> list[str]:
        fields = (s.cpp(mask), s.cpp(rows), "1", "1", str(src.row_blocks))
        return call(WHOLE[op], s.at(dst, row), s.at(src.tile, row * src.row), *fields, *order)

    aligned(s, job)
    return in_parts(s, job, one)


def col_reduce(s: Scope, i: Instr) -> list[str]:
    """The first row, then each further row folded in: one barrier a row. By halves: one barrier a step."""
    op, dst, src = i.op.removeprefix("vcol"), tile(i, i.dst), tile(i, i.srcs[0])
    checked(s, i, [dst, src])
    if i.form == "halves":
        return _by_halves(s, i, op, dst, src)
    if i.form == "folded":
        return _by_halves_in_rows(s, i, op, dst, src)
    zero, cols, pitch = number(0.0, s.buffer(dst).dtype), s.cpp(i.cols), s.buffer(src).pitch
    first = call("Adds", s.at(dst), s.at(src), zero, cols)
    if i.rows == ONE:
        return first
    r = s.fresh("row")
    s.ranges[r] = (1, max(1, s.high(i.rows) - 1))
    step = [BARRIER, *call(FOLDS[op], s.at(dst), s.at(dst), s.at(src, ix.var(r) * pitch), cols)]
    return [*first, *block(f"for (int32_t {r} = 1; {r} < {s.limit(i.rows)}; ++{r})", step)]


def _by_halves(s: Scope, i: Instr, op: str, dst: Tile, src: Tile) -> list[str]:
    """Half of the rows upon the other half, until one is left; one that is over joins the first. Whole rows without gaps."""
    rows, cols = i.rows.value, i.cols.value
    if not rows or not cols or s.buffer(src).pitch != cols or i.scratch is None:
        raise EmitError(f"{i.op}: halves are of whole rows that lie side by side", i.span)
    out: list[str] = []
    for left, over in halves(rows):
        into = i.scratch if left > 1 else dst
        parts = [(src, left * cols, left)] + ([(src, 2 * left * cols, 1)] if over else [])
        for n, (of, at, count) in enumerate(parts):
            first = s.at(into if n else of)
            out += [*call(FOLDS[op], s.at(into), first, s.at(_further(of, at)), str(count * cols)), BARRIER]
        src = into
    return out[:-1]


def _by_halves_in_rows(s: Scope, i: Instr, op: str, dst: Tile, src: Tile) -> list[str]:
    """As `_by_halves`, row by row under a mask of the columns, which may be any number."""
    rows, lanes, out = i.rows.value, lanes_of(s, [src]), list[str]()
    if not rows or i.scratch is None:
        raise EmitError(f"{i.op}: halves are of rows whose number is known, and need scratch", i.span)
    for left, over in halves(rows):
        into = i.scratch if left > 1 else dst
        pitch = s.buffer(src).pitch
        parts = [(src, left * pitch, left)] + ([(src, 2 * left * pitch, 1)] if over else [])
        for n, (of, at, count) in enumerate(parts):
            step = replace(i, rows=ix.const(count), form="rows" if count > 1 else "flat")
            views = [view(s, t, lanes) for t in (into, into if n else of, _further(of, at))]
            out += [*written(s, binary_job(s, step, FOLDS[op], (views[0], views[1], views[2]), lanes)), BARRIER]
        src = into
    return out[:-1]


def by_blocks(s: Scope, i: Instr, op: str, dst: Tile, src: Tile) -> list[str]:
    """The steps of `block_steps`, each for all rows at once; the scratch holds what each leaves, one after the other.

    f32, whole rows; the columns are a multiple of 64, or 8 at most.
    """
    rows, cols, b = i.rows.value, i.cols.value, s.buffer(src)
    if rows and cols and cols <= BLOCK and b.dtype is F32 and b.pitch == BLOCK:
        return _in_blocks(s, op, dst, src, rows, cols)
    if b.dtype is not F32 or not rows or not cols or cols % LANES or (rows > 1 and b.pitch != cols) or i.scratch is None:
        raise EmitError(f"{i.op}: blocks take whole rows of f32, of a multiple of {LANES} columns", i.span)
    return _stepped(s, i, op, block_steps(cols, rows), (dst, src, i.scratch), cols)


def _in_blocks(s: Scope, op: str, dst: Tile, src: Tile, rows: int, cols: int) -> list[str]:
    """Rows of `cols` elements, each at the start of a block of its own, eight a repeat; a last repeat has the rows over."""
    full, over = divmod(rows, BLOCK)
    parts = [(at, min(MAX_REPEAT, full - at), BLOCK) for at in range(0, full, MAX_REPEAT)] + ([(full, 1, over)] if over else [])
    out: list[str] = []
    for at, repeats, blocks in parts:
        mask = s.fresh("mask")
        bits = sum(((1 << cols) - 1) << BLOCK * n for n in range(blocks))
        out.append(f"uint64_t {mask}[2] = {{{bits:#x}, 0}};")
        places = s.at(dst, ix.const(at * BLOCK)), s.at(src, ix.const(at * LANES))
        out += call(BLOCKS[op], *places, str(repeats), mask, "1", "1", "8")
    return ["{", *(f"    {line}" for line in out), "}"]


def _stepped(
    s: Scope, i: Instr, op: str, steps: Sequence[tuple[str, int]], places: tuple[Tile, Tile, Tile], cols: int
) -> list[str]:
    """Steps from rows of `cols` elements down to one of each; `places` are the result, the rows, and room between."""
    dst, at, free = places
    out: list[str] = []
    for step, left in steps:
        into = free if left > 1 else dst
        out += _step(s, i, op, step, (into, at), cols, left)
        out += [BARRIER] if left > 1 else []
        at, free, cols = into, _further(free, i.rows.value * left), left  # type: ignore[operator]
    return out


def _step(s: Scope, i: Instr, op: str, step: str, places: tuple[Tile, Tile], cols: int, left: int) -> list[str]:
    """Rows of `cols` elements, of which `left` remain."""
    if step == "fold":
        return _folded(s, i, op, *places, cols)
    if step == "whole":
        return _whole(s, i, op, places[0], View(places[1], cols // BLOCK, 8, 1, cols, LANES), ix.const(cols))
    return _blocks(s, i, op, *places, i.rows.value * left)  # type: ignore[operator]


def row_dot(s: Scope, i: Instr) -> list[str]:
    """Sums of products: those of a part of the rows, then the first step for them; the other steps for all rows, in the room of
    the products."""
    rows, cols, dst, sources = i.rows.value, i.cols.value, tile(i, i.dst), [tile(i, x) for x in i.srcs]
    whole = all(s.buffer(x).dtype is F32 and s.buffer(x).pitch == cols for x in sources)
    if not whole or not rows or not cols or cols % LANES or rows % DOT_PARTS or i.scratch is None:
        raise EmitError(f"{i.op}: takes whole rows of f32 in {DOT_PARTS} parts, of a multiple of {LANES} columns", i.span)
    (step, left), *rest = block_steps(cols)
    part = replace(i, rows=ix.const(rows // DOT_PARTS))
    products, first = i.scratch, _further(i.scratch, rows // DOT_PARTS * cols)
    out: list[str] = []
    for n in range(DOT_PARTS):
        at = n * rows // DOT_PARTS
        operands = [s.at(x, ix.const(at * cols)) for x in sources]
        out += [*call("Mul", s.at(products), *operands, str(rows // DOT_PARTS * cols)), BARRIER]
        out += [*_step(s, part, "sum", step, (_further(first, at * left), products), cols, left), BARRIER]
    return out + _stepped(s, i, "sum", rest, (dst, first, products), left)


def _folded(s: Scope, i: Instr, op: str, dst: Tile, src: Tile, cols: int) -> list[str]:
    folding = replace(i, cols=ix.const(cols))
    return _fold(s, folding, op, View(dst, 8, 8, 1, LANES, LANES), View(src, cols // BLOCK, 8, 1, cols, LANES), LANES)


def _further(scratch: Tile, elements: int) -> Tile:
    return replace(scratch, col=scratch.col + elements)


def _blocks(s: Scope, i: Instr, op: str, dst: Tile, src: Tile, left: int) -> list[str]:
    """`left` elements remain of eight times as many: one repeat makes eight of them, a last one under a mask those over."""
    full, over = divmod(left, BLOCK)
    parts = [(at, min(MAX_REPEAT, full - at), LANES) for at in range(0, full, MAX_REPEAT)]
    parts += [(full, 1, over * BLOCK)] if over else []
    out: list[str] = []
    for at, repeats, mask in parts:
        places = s.at(dst, ix.const(at * BLOCK)), s.at(src, ix.const(at * LANES))
        out += call(BLOCKS[op], *places, str(repeats), str(mask), "1", "1", "8")
    return out


REDUCTIONS: dict[str, Callable[[Scope, Instr], list[str]]] = {
    "vrowdot": row_dot,
    **{f"vrow{r}": row_reduce for r in REDUCE},
    **{f"vcol{r}": col_reduce for r in REDUCE},
}
