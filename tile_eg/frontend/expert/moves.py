"""`T.copy` in a kernel that is kept: one instruction for each path of the chip, and what TileLang puts around it at an edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert import followed, unaligned
from tile_eg.frontend.expert.between_cores import copy_between
from tile_eg.frontend.expert.by_planes import each_plane, planes_of
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import ExpertReader, On, on
from tile_eg.frontend.expert.streams import FREE
from tile_eg.frontend.expert.unaligned import is_unaligned
from tile_eg.frontend.expert.vectors import cast, filled, scale_of
from tile_eg.frontend.python.values import Buffer, Window
from tile_eg.frontend.python.words import copied, with_extents
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import ZERO, Expr
from tile_eg.ir.kernel import Region, TileExpr
from tile_eg.ir.program import AIC, AIV
from tile_eg.ops.casts import is_direct
from tile_eg.ops.types import F16, I32, Level


def copy(r: ExpertReader, span: Span, src: Any, dst: Any, size: Any, **options: Any) -> None:
    """dst = src, by the path between their memories. TileError where the chip has none."""
    if not isinstance(src, Buffer | Window | Region) or not isinstance(dst, Buffer | Window | Region):
        raise TileError("T.copy moves a buffer, or a part of one, to another in a kernel that is kept", span)
    turned = bool(options.get("transpose")) and not isinstance(src, Region)
    src, dst, size = with_extents(r, src, dst, size, span)
    _copied(r, span, *copied(src, dst, size, span, turned), turned, options)


def _copied(r: ExpertReader, span: Span, to: Region, value: Any, turned: bool, options: dict[str, Any]) -> None:
    if isinstance(value, Region) and not turned and (planes := planes_of(r, to, value)):
        return each_plane(r, span, to, value, planes, lambda dst, src: _copied(r, span, dst, src, turned, options))
    written = set(r.writes)
    _decide(r, to, value)
    if isinstance(value, Region) and (r.level_of(value), r.level_of(to)) in BETWEEN_CORES:
        return copy_between(r, span, to, value, options)
    source, target = _sides(r, span, value, to)
    path = PATHS.get((source.level, target.level))
    if source.level is target.level is Level.UB and (turned or not is_direct(source.dtype, target.dtype)):
        assert r.handlers is not None
        return r.handlers["tile.transpose" if turned else "tile.cast"](r, span, to, value)
    if path is None:
        for name in (value.name, to.name):
            r.used_by_vectors(name)
        raise TileError(f"there is no path from {source.level} to {target.level}", span, help=WAYS)
    unused = [n for n in ("transpose", "enable_relu") if options.get(n) and n not in path[1]]
    pads = options.get("pad_value")
    if unused or (pads is not None and target.level is not Level.UB and (pads != 0 or target.level is not Level.L1)):
        word = unused[0] if unused else "pad_value"
        raise TileError(f"a copy from {source.level} to {target.level} takes no {word}", span)
    source, target = _fitted(r, span, source, target)
    if target.counted and target.level is Level.UB and to.name not in written:
        _begins_with_zeros(r, span, to.name)
    path[0](r, span, source, target, options)
    followed.copied(r, source, target, options.get("pad_value") is not None, turned)
    return None


def _begins_with_zeros(r: ExpertReader, span: Span, name: str) -> None:
    """What a first copy leaves of a buffer is 0: element loops that go as far compute whole rows, and choose."""
    if name in r.homes:
        ends = len(r.homes[name])
        r.homes[name][ends:ends] = r.zeros(name, span)


def sized(r: ExpertReader, span: Span, src: Any, dst: Any, size: Any) -> tuple[Region, TileExpr, bool]:
    """Target and source of so many elements, and whether only the kernel knows how many."""
    src, dst, size = with_extents(r, src, dst, size, span)
    to, read = copied(src, dst, size, span)
    return to, read, any(isinstance(x, Region) and any(x.counts) for x in (to, read))


def places(r: ExpertReader, span: Span, to: Region, read: TileExpr) -> tuple[Place, Place]:
    """Target and source as operands, in as many rows and columns as there are."""
    source, target = _fitted(r, span, *_sides(r, span, read, to))
    return target, source


def _sides(r: ExpertReader, span: Span, value: Any, to: Region) -> tuple[Place, Place]:
    """Source and target, of which that in a tensor has rows as long as the other's if it can."""
    if value.name in r.tensors:
        target = r.place(to, span)
        return r.place(value, span, cols=target.cols), target
    source = r.place(value, span)
    return source, r.place(to, span, cols=source.cols)


def _fitted(r: ExpertReader, span: Span, source: Place, target: Place) -> tuple[Place, Place]:
    """The two with the same rows and columns, where run time says how many there are, or fewer are loaded into UB."""
    if not (source.counted or target.counted):
        return _part_of(source, target), target
    room = target if source.counted else source
    for valid, n, what in ((source.valid_rows, room.rows, "rows"), (source.valid_cols, room.cols, "columns"),
                           (target.valid_rows, room.rows, "rows"), (target.valid_cols, room.cols, "columns")):  # fmt: skip
        if ix.bounds(valid, r.ranges)[1] > n:
            raise TileError(f"this may be more than the {n} {what} that there is room for", span, help=f"say so: T.min(n, {n})")
    rows, cols = (_less(r, a, b) for a, b in ((source.valid_rows, target.valid_rows), (source.valid_cols, target.valid_cols)))
    sizes: dict[str, Any] = {"rows": room.rows, "cols": room.cols, "valid_rows": rows, "valid_cols": cols}
    return replace(source, **sizes), replace(target, **sizes)


def _less(r: ExpertReader, a: Expr, b: Expr) -> Expr:
    return ix.simplified(ix.minimum(a, b), r.ranges)


def _turned(source: Place, target: Place) -> bool:
    """Whether a row of elements goes to a column of as many, which lie one behind the other all the same."""
    return source.rows == target.cols == 1 and target.whole


def _part_of(source: Place, target: Place) -> Place:
    """A window of a tensor that is loaded into a larger one of UB or L1: what it lacks is padding."""
    if _turned(source, target) and source.cols <= target.rows and source.level is Level.GM and target.level is Level.UB:
        return replace(source, cols=target.rows)
    smaller = source.rows <= target.rows and source.cols <= target.cols
    if source.level is Level.GM and target.level in (Level.UB, Level.L1) and smaller and source.count < target.count:
        return replace(source, rows=target.rows, cols=target.cols, whole=False)
    return source


def _decide(r: ExpertReader, to: Region, value: Any) -> None:
    """A shared buffer that L0A or L0B is loaded from, or L1 from, lies in L1."""
    for name in (to.name, value.name):
        if r.core == AIC and name in r.open and r.held[name].level is Level.UB:
            r.misplaced(name, Level.L1)
    for a, b in ((to, value), (value, to)):
        if a.name in r.open and b.name in r.held and r.held[b.name].level in (Level.L0A, Level.L0B):
            r.place(a, None, Level.L1)


def _same(source: Place, target: Place, span: Span) -> Place:
    """The source in the target's rows and columns. TileError where their sizes differ."""
    if (source.rows, source.cols) == (target.rows, target.cols):
        return source
    if source.count == target.count and source.whole and target.whole and not source.cut:
        return source
    if _turned(source, target) and source.cols == target.rows:
        return source
    raise TileError(f"{source.rows} x {source.cols} elements cannot be copied to {target.rows} x {target.cols}", span)


def _typed(source: Place, target: Place, span: Span) -> None:
    if source.dtype != target.dtype:
        raise TileError(f"a copy from {source.level} to {target.level} does not turn {source.dtype} into {target.dtype}", span,
                        help="cast in UB: T.copy from one UB buffer to another")  # fmt: skip


def _casts(r: ExpertReader, source: Place, target: Place) -> bool:
    """Whether a copy is to cast on its way: in the order of the statements it says what is stored, not by which instruction."""
    return r.ends is not None and source.dtype != target.dtype and is_direct(source.dtype, target.dtype)


def _to_l1(r: ExpertReader, span: Span, source: Place, target: Place, options: Any) -> None:
    if source.dtype != target.dtype and isinstance(source.operand, pr.Gm):
        r.used_by_vectors(target.tile().buffer)
    _typed(source, target, span)
    if source.cut:
        _zeroed(r, span, target)
    if (source.rows, source.cols) != (target.rows, target.cols):
        raise TileError(f"{source.rows} x {source.cols} elements cannot be copied to {target.rows} x {target.cols}", span)
    r.instr("gm_to_l1", target.operand, source.operand, rows=source.valid_rows, cols=source.valid_cols, span=span)


def _zeroed(r: ExpertReader, span: Span, target: Place) -> None:
    """Zeros in a window of L1, which is then loaded in part. In the order of the statements what stands beside it stays."""
    t, held = target.tile(), r.held[target.tile().buffer]
    whole = (target.rows, target.cols) == (held.rows, held.cols)
    if r.ends is not None and not whole:
        below = t.row.value is not None and t.row.value + target.rows == held.rows
        rows = ix.const(target.rows + (-held.rows % 16 if below else 0))
        r.instr("l1_zero", t, rows=rows, cols=ix.const(target.cols), form="window", span=span)
    elif t.row == ZERO == t.col:
        r.instr("l1_zero", pr.Tile(t.buffer, t.slot), span=span)
    else:
        return
    on(r, AIC, pr.PipeBarrier("MTE2", span))


def _to_l0a(r: ExpertReader, span: Span, source: Place, target: Place, options: Any) -> None:
    _typed(source, target, span)
    rows, depth = ix.const(target.rows), ix.const(target.cols)
    r.instr("l1_to_l0a", target.operand, source.operand, rows=rows, depth=depth, transpose=bool(options["transpose"]), span=span)


def _to_l0b(r: ExpertReader, span: Span, source: Place, target: Place, options: Any) -> None:
    _typed(source, target, span)
    depth, cols = ix.const(target.rows), ix.const(target.cols)
    r.instr("l1_to_l0b", target.operand, source.operand, depth=depth, cols=cols, transpose=bool(options["transpose"]), span=span)


def _from_l0c(r: ExpertReader, span: Span, source: Place, target: Place, options: Any, atomic: str = "") -> None:
    if (source.rows, source.cols) != (target.rows, target.cols):
        raise TileError(f"{source.rows} x {source.cols} elements cannot be copied to {target.rows} x {target.cols}", span)
    rows, cols = target.valid_rows, target.valid_cols
    relu = bool(options.get("enable_relu"))
    fields = {"rows": rows, "cols": cols, "depth": ix.const(source.rows), "relu": relu, "atomic": atomic}
    if (source.dtype, target.dtype) == (I32, F16):
        fields["scalar"] = scale_of(r, span)
    r.instr("fixpipe", target.operand, source.operand, **fields, span=span)


def _to_ub(r: ExpertReader, span: Span, source: Place, target: Place, options: Any) -> None:
    """What lies beyond the end of the tensor becomes the padding, or 0."""
    if _casts(r, source, target):
        made = unaligned.room(r, replace(target, dtype=source.dtype))
        _to_ub(r, span, source, made, options)
        return cast(r, span, target, made)
    _typed(source, target, span)
    source = source if unaligned.is_column(target, source) else _same(source, target, span)
    pad = float(options.get("pad_value") or 0.0) if source.cut else None
    if source.cut and not target.counted:
        _padded(r, span, source, _all_of(target), pad)
    rows, cols = source.valid_rows, source.valid_cols
    if run := _in_one_run(r, source, target, near=target, far=source):
        return _where_any(r, rows, lambda: r.instr("gm_to_ub", target.operand, source.operand, cols=run, pad=pad, span=span))
    if unaligned.is_column(target, source) or _between_blocks(r, target, source):
        return unaligned.loaded(r, span, _in_rows_of(source, target), target)
    r.instr("gm_to_ub", target.operand, source.operand, rows=rows, cols=cols, pad=pad, span=span)
    return None


def _all_of(t: Place) -> Place:
    return replace(t, valid_rows=ix.const(t.rows), valid_cols=ix.const(t.cols))


def _in_one_run(r: ExpertReader, source: Place, target: Place, near: Place, far: Place) -> Expr | None:
    """How many neighbouring elements a copy is: of other rows on each side, or of whole rows that begin together at 32 bytes."""
    if is_unaligned(r, replace(near, rows=1)):
        return None
    if not source.cut and not target.cut and _one_run(source, target):
        return ix.const(far.count)
    alike = (source.rows, source.cols) == (target.rows, target.cols) and source.whole and target.whole
    if alike and far.valid_cols.value == far.cols and far.rows > 1 and far.cols * far.dtype.bytes % 32:
        return far.valid_rows * far.cols
    return None


def _where_any(r: ExpertReader, rows: Expr, copied: Callable[[], None]) -> None:
    """The copy, where there is a row."""
    if ix.bounds(rows, r.ranges)[0] > 0:
        return copied()
    with r.block(repeats=False) as inner:
        copied()
    r.statements.append(On(None, pr.When(ix.less(0, rows), tuple(inner))))  # type: ignore[arg-type]
    return None


def _between_blocks(r: ExpertReader, near: Place, far: Place) -> bool:
    """Whether a copy is of rows in UB that begin between blocks of 32 bytes; one run of elements has one row."""
    return is_unaligned(r, replace(near, rows=1) if far.rows == 1 and near.whole else near)


def _in_rows_of(far: Place, near: Place) -> Place:
    """A window of a tensor in the rows and columns of the one in UB, where it has others of as many elements."""
    if (far.rows, far.cols) == (near.rows, near.cols) or unaligned.is_column(near, far):
        return far
    sizes: dict[str, Any] = {"rows": near.rows, "cols": near.cols}
    valid: dict[str, Any] = {"valid_rows": ix.const(near.rows), "valid_cols": ix.const(near.cols)}
    assert isinstance(far.operand, pr.Gm)
    return replace(far, operand=replace(far.operand, stride=near.cols), **sizes, **valid)


def _one_run(source: Place, target: Place) -> bool:
    """Whether a copy is one of neighbouring elements: of other rows on each side, or of rows that do not begin at 32 bytes."""
    apart = source.rows != target.rows or source.cols * source.dtype.bytes % 32
    return source.whole and target.whole and bool(apart)


def _padded(r: ExpertReader, span: Span, source: Place, target: Place, value: Any) -> None:
    """Fills the target before a copy that does not fill it, with the handover there and back."""
    short = ix.less(source.valid_rows + source.valid_cols, source.rows + source.cols)
    with r.block(repeats=False) as inner:
        for pipe in ("MTE2", "MTE3"):
            handover(r, AIV, pipe, "V", span)
        filled(r, span, target, value)
        for pipe in ("MTE2", "MTE3"):  # also a flag back, so that the next one may be set
            handover(r, AIV, "V", pipe, span)
    r.statements.append(On(None, pr.When(short, tuple(inner))))  # type: ignore[arg-type]


def handover(r: ExpertReader, core: str, src: str, dst: str, span: Span, number: str | Expr = FREE[0]) -> None:
    """A flag that is set and waited for at once: all that `src` has to do is done before `dst` goes on."""
    flag = ix.var(number) if isinstance(number, str) else number
    on(r, core, pr.SetFlag(src, dst, flag, span))
    on(r, core, pr.WaitFlag(src, dst, flag, span))


def from_ub(r: ExpertReader, span: Span, source: Place, target: Place, options: Any, atomic: str = "") -> None:
    if _casts(r, source, target) and not atomic:
        made = unaligned.room(r, replace(source, dtype=target.dtype))
        cast(r, span, made, source)
        return from_ub(r, span, made, target, options)
    _typed(source, target, span)
    if not unaligned.is_column(source, target):
        _same(source, target, span)
    rows, cols = target.valid_rows, target.valid_cols
    sizes: dict[str, Any] = {"atomic": atomic, "span": span}
    if run := _in_one_run(r, source, target, near=source, far=target):
        return _where_any(r, rows, lambda: r.instr("ub_to_gm", target.operand, source.operand, cols=run, **sizes))
    if unaligned.is_column(source, target) or _between_blocks(r, source, target):
        return unaligned.stored(r, span, source, _in_rows_of(target, source), atomic)
    r.instr("ub_to_gm", target.operand, source.operand, rows=rows, cols=cols, **sizes)
    return None


def _within_ub(r: ExpertReader, span: Span, source: Place, target: Place, options: Any) -> None:
    cast(r, span, target, source)


WAYS = "GM -> L1 -> L0A, L0B; L0C -> GM, L1, UB; GM -> UB -> GM, UB, L1"
BETWEEN_CORES = ((Level.L0C, Level.UB), (Level.UB, Level.L1))
"""Copies from one kind of core to the other one, through GM."""
Path = tuple[Callable[..., None], tuple[str, ...]]
PATHS: dict[tuple[Level, Level], Path] = {
    (Level.GM, Level.L1): (_to_l1, ()),
    (Level.L1, Level.L0A): (_to_l0a, ("transpose",)),
    (Level.L1, Level.L0B): (_to_l0b, ("transpose",)),
    (Level.L0C, Level.GM): (_from_l0c, ("enable_relu",)),
    (Level.L0C, Level.L1): (_from_l0c, ("enable_relu",)),
    (Level.GM, Level.UB): (_to_ub, ()),
    (Level.UB, Level.GM): (from_ub, ()),
    (Level.UB, Level.UB): (_within_ub, ()),
}
"""What a copy between two memories becomes, and the options that it takes."""


def added(r: ExpertReader, span: Span, to: Region, value: TileExpr, atomic: str = "add") -> None:
    """Adds a buffer, or a part of one, to a window of a tensor; or takes the larger or smaller numbers (max, min)."""
    source, target = r.place(value, span, Level.UB, Level.L0C), r.place(to, span, Level.GM)
    (from_ub if source.level is Level.UB else _from_l0c)(r, span, source, target, {}, atomic=atomic)


WORDS = {"copy": copy}
