"""`T.copy` from L0C to UB, and from UB to L1, in a kernel that is kept: A2 and A3 have no such path, and the cores meet in GM.

The core that has the tile stores it to a workspace of the block's own and sets a flag; the other one waits, loads it, and sets a
flag back, for which the first one waits: then the workspace is free again. Where a window begins at `vid` times its own length
each vector core has its part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert import followed
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import ExpertReader, on
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import SUB, ZERO, Expr, Interval, terms_of
from tile_eg.ir.kernel import Region
from tile_eg.ir.machine import CROSS_IDS
from tile_eg.ir.program import AIC, AIV, CrossSet, CrossWait, Node, walk
from tile_eg.ir.program.tasks import renamed
from tile_eg.ops.types import Level

THERE, BACK = "cross_there", "cross_back"
"""Numbers of flags between cores that the author does not use."""


def copy_between(r: ExpertReader, span: Span, to: Region, value: Region, options: dict[str, Any]) -> None:
    """dst = src through a workspace. TileError in a scope: it is of both kinds of core."""
    out = r.place(value, span).level is Level.L0C
    way = "L0C to UB" if out else "UB to L1"
    if r.core is not None:
        help = "write it outside of T.Scope; or copy to a workspace tensor, set a cross flag, wait for it, and copy from there"
        raise TileError(f"a copy from {way} is done by both kinds of core, and this is the scope of one", span, help=help)
    held, part = (value, to) if out else (to, value)
    whole, row, col = _of_both(held)
    cube, mine, vector = (r.place(x, span) for x in (whole, held, part))
    _check(r, mine, vector, way, span, options, out)
    name = r.unique(f"{part.name}_ws")
    r.own[name] = pr.Buffer(name, Level.WS, vector.dtype, cube.rows, cube.cols, cube.cols)
    own = pr.Tile(name, ZERO, row, col)
    if out:
        _to_vector(r, span, cube, vector, pr.Tile(name, ZERO, ZERO, ZERO), own, options)
    else:
        _to_cube(r, span, cube, vector, pr.Tile(name, ZERO, ZERO, ZERO), own, whole is held)
    followed.copied(r, *((mine, vector) if out else (vector, mine)))


def _of_both(held: Region) -> tuple[Region, Expr, Expr]:
    """The window of both vector cores, and where in it this one's part begins."""
    starts, extents, at = list(held.starts), list(held.extents), [ZERO, ZERO]
    for d, (start, extent) in enumerate(zip(held.starts, held.extents, strict=True)):
        by = terms_of(start).get(ix.var(SUB), 0)
        if by and by == extent and d >= len(starts) - 2:
            starts[d], extents[d] = start - ix.var(SUB) * by, 2 * extent
            at[d - len(starts)] = ix.var(SUB) * by
    whole = held if at == [ZERO, ZERO] else replace(held, starts=tuple(starts), extents=tuple(extents))
    if any(SUB in ix.variables(s) for s in whole.starts):
        help = "let it begin at vid times its own length"
        raise TileError("this window is not half of what both vector cores have", held.span, help=help)
    return whole, at[0], at[1]


def _check(
    r: ExpertReader, mine: Place, vector: Place, way: str, span: Span, options: dict[str, Any], out: bool
) -> None:
    if (mine.rows, mine.cols) != (vector.rows, vector.cols):
        raise TileError(f"{mine.rows} x {mine.cols} elements are not {vector.rows} x {vector.cols}", span)
    if not out and mine.dtype != vector.dtype:
        r.used_by_vectors(mine.tile().buffer)
        help = "cast in UB: T.copy from one UB buffer to another"
        raise TileError(f"a copy from UB to L1 does not turn {vector.dtype} into {mine.dtype}", span, help=help)
    for word in ("transpose", "enable_relu", "pad_value"):
        if options.get(word) and not (out and word == "enable_relu"):
            raise TileError(f"a copy from {way} takes no {word}", span)


def _to_vector(
    r: ExpertReader, span: Span, cube: Place, vector: Place, whole: pr.Tile, own: pr.Tile, options: dict[str, Any]
) -> None:
    rows, cols = ix.const(cube.rows), ix.const(cube.cols)
    relu = bool(options.get("enable_relu"))
    r.instr("fixpipe", whole, cube.operand, rows=rows, cols=cols, depth=rows, relu=relu, span=span)
    _handed(r, span, (AIC, "FIX"), (AIV, "MTE2"), pr.Instr(
        "gm_to_ub", vector.operand, (own,), rows=ix.const(vector.rows), cols=ix.const(vector.cols), span=span))  # fmt: skip


def _to_cube(r: ExpertReader, span: Span, cube: Place, vector: Place, whole: pr.Tile, own: pr.Tile, once: bool) -> None:
    """`once`: both vector cores have the same, and the first one stores it."""
    when = ix.less(ix.var(SUB), 1) if once else ix.ONE
    rows, cols = ix.const(vector.rows), ix.const(vector.cols)
    r.instr("ub_to_gm", own, vector.operand, rows=rows, cols=cols, when=when, span=span)
    there = ix.const(cube.rows), ix.const(cube.cols)
    if once and followed.is_cut(r, vector):
        there = followed.exists(r, vector)  # type: ignore[assignment]
        r.instr("l1_zero", pr.Tile(cube.tile().buffer, cube.tile().slot), span=span)
        on(r, AIC, pr.PipeBarrier("MTE2", span))
    load = pr.Instr("gm_to_l1", cube.operand, (whole,), rows=there[0], cols=there[1], span=span)
    _handed(r, span, (AIV, "MTE3"), (AIC, "MTE2"), load)


def _handed(r: ExpertReader, span: Span, giver: tuple[str, str], taker: tuple[str, str], load: pr.Instr) -> None:
    """What was stored is loaded by the other kind of core, and its workspace free again."""
    (source, stored), (target, loaded) = giver, taker
    on(r, source, CrossSet(stored, ix.var(THERE), span))
    on(r, target, CrossWait(ix.var(THERE), span))
    r.emit(load)
    on(r, target, CrossSet(loaded, ix.var(BACK), span))
    on(r, source, CrossWait(ix.var(BACK), span))


def with_free_numbers(
    streams: Sequence[tuple[Node, ...]], ranges: dict[str, Interval]
) -> tuple[tuple[Node, ...], ...]:
    """The streams with numbers for the flags of such copies. TileError where the author uses all others."""
    flags = [n for nodes in streams for n in walk(nodes) if isinstance(n, CrossSet | CrossWait)]
    own = [n for n in flags if ix.variables(ix.wrap(n.id)) & {THERE, BACK}]
    if not own:
        return tuple(streams)
    taken: set[int] = set()
    for n in flags:
        if not any(n is o for o in own):
            low, high = ix.bounds(ix.wrap(n.id), ranges)
            taken |= set(range(low, high + 1))
    free = [k for k in CROSS_IDS if k not in taken]
    if len(free) < 2:
        help = f"a copy between cores takes two of the numbers {CROSS_IDS[0]} to {CROSS_IDS[-1]}"
        raise TileError("there are no flags between cores left for this copy", own[0].span, help=help)
    numbers = {THERE: ix.const(free[0]), BACK: ix.const(free[1])}
    return tuple(renamed(nodes, numbers) for nodes in streams)
