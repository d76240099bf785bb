"""`T.mma` and `T.gemm_v0` in a kernel that is kept: one Mmad, or TileLang's steps along k with their own flags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.conditions import is_condition
from tile_eg.frontend.expert import followed
from tile_eg.frontend.expert.both_cores import in_l1, lies_in_ub, through_l0c
from tile_eg.frontend.expert.moves import handover
from tile_eg.frontend.expert.places import Held, Place
from tile_eg.frontend.expert.reader import ExpertReader, On, on
from tile_eg.frontend.expert.streams import FREE
from tile_eg.frontend.python.extents import extents_of, resized
from tile_eg.frontend.python.values import Buffer, as_region, describe, with_rank
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import ZERO, Expr
from tile_eg.ir.kernel import Region
from tile_eg.ir.program import AIC
from tile_eg.ops.types import F16, I8, I32, DType, Level

STEP = 128
"""The depth of a step of gemm_v0 (TileLang's kL0Size)."""
L0_BYTES = 65536
"""Of L0A and of L0B, on every chip (`docs/machine.md`, clause 17)."""


def _begins(value: Any, span: Span) -> Expr:
    if isinstance(value, bool | int):
        return ix.const(int(bool(value)))
    if isinstance(value, Expr) and is_condition(value):
        return value
    raise TileError(f"init is a condition on indices, not {describe(value)}", span)


def mma(r: ExpertReader, span: Span, A: Any, B: Any, C: Any, init: Any = False, *_: Any, **__: Any) -> None:  # noqa: N803
    """C = A @ B, or C += A @ B, of tiles in L0A and L0B."""
    if lies_in_ub(r, C):
        return through_l0c(r, span, C, _begins(init, span), lambda own: mma(r, span, A, B, own, True))
    a, b, c = r.place(A, span, Level.L0A), r.place(B, span, Level.L0B), r.place(C, span, Level.L0C)
    if a.cols != b.rows or (a.rows, b.cols) != (c.rows, c.cols):
        raise TileError(f"{a.rows} x {a.cols} times {b.rows} x {b.cols} does not give {c.rows} x {c.cols}", span)
    sizes = {"rows": ix.const(a.rows), "cols": ix.const(b.cols), "depth": ix.const(a.cols)}
    followed.multiplied(r, c, (a, False), (b, False), _begins(init, span))
    r.instr("mmad", c.operand, a.operand, b.operand, **sizes, init=_begins(init, span), span=span)
    return None


def gemm_v0(
    r: ExpertReader, span: Span, A: Any, B: Any, C: Any, transpose_a: Any = False, transpose_b: Any = False, init: Any = False,  # noqa: N803
    depth: Expr | None = None,
) -> None:  # fmt: skip
    """C (+)= A @ B of tiles in L1, in steps along k through two places of L0A and L0B; before it and behind it all loads,
    products and stores that it could meet are waited for, as TileLang does. Each flag is waited for before it is set again.
    `depth`: how much of the operands is multiplied, where that is known at run time."""
    if lies_in_ub(r, C):
        multiply = lambda own: gemm_v0(r, span, A, B, own, transpose_a, transpose_b, True, depth)  # noqa: E731
        return through_l0c(r, span, C, _begins(init, span), multiply)
    a, b, c = r.place(in_l1(r, span, A), span, Level.L1), r.place(in_l1(r, span, B), span, Level.L1), r.place(C, span, Level.L0C)
    left, right = (a.transposed() if transpose_a else a), (b.transposed() if transpose_b else b)
    if left.cols != right.rows or (left.rows, right.cols) != (c.rows, c.cols):
        raise TileError(f"{left.rows} x {left.cols} times {right.rows} x {right.cols} does not give {c.rows} x {c.cols}", span)
    begins, until = _begins(init, span), ix.const(left.cols) if depth is None else depth
    handover(r, AIC, "MTE2", "MTE1", span)
    handover(r, AIC, "FIX", "M", span)
    _steps(r, span, (a, b, c), (bool(transpose_a), bool(transpose_b)), begins, until)
    if depth is not None and begins.value != 0:
        _where(r, ix.both(begins, 1 - ix.less(0, until)), lambda: cleared(r, span, as_region(C, span)))
    for pipes in (("M", "MTE1"), ("MTE1", "MTE2"), ("M", "FIX")):
        handover(r, AIC, *pipes, span)
    followed.multiplied(r, c, (a, bool(transpose_a)), (b, bool(transpose_b)), begins)
    return None


def _steps(r: ExpertReader, span: Span, places: tuple[Place, ...], turned: tuple[bool, bool], begins: Expr, until: Expr) -> None:
    """The product, step by step along k, as far as it goes."""
    a, b, c = places
    left, right = (a.transposed() if turned[0] else a), (b.transposed() if turned[1] else b)
    step = _step(left, right, span)
    count = -(-left.cols // step)
    slots = min(2, count)
    l0a = _own(r, Level.L0A, a.dtype, left.rows, min(step, left.cols), slots)
    l0b = _own(r, Level.L0B, b.dtype, min(step, left.cols), right.cols, slots)
    fields = {"rows": ix.const(left.rows), "cols": ix.const(right.cols), "span": span}

    def one(k: int) -> None:
        at, flag = k * step, ix.var(FREE[k % 2])
        depth = ix.simplified(ix.minimum(min(step, left.cols - at), until - at), r.ranges)
        if k >= slots:
            on(r, AIC, pr.WaitFlag("M", "MTE1", flag, span))
        x, y = (pr.Tile(name, ix.const(k % slots)) for name in (l0a, l0b))
        r.instr("l1_to_l0a", x, _from(a, at, turned[0]), rows=fields["rows"], depth=depth, transpose=turned[0], span=span)
        r.instr("l1_to_l0b", y, _from(b, at, not turned[1]), cols=fields["cols"], depth=depth, transpose=turned[1], span=span)
        handover(r, AIC, "MTE1", "M", span, flag)
        on(r, AIC, pr.PipeBarrier("M", span))
        r.instr("mmad", c.operand, x, y, **fields, depth=depth, init=begins if k == 0 else ZERO)
        if k + slots < count:
            behind = ix.less((k + slots) * step, until)
            _where(r, behind, lambda: on(r, AIC, pr.SetFlag("M", "MTE1", flag, span)))

    for k in range(count):
        _where(r, ix.less(k * step, until), lambda: one(k))  # noqa: B023


def _where(r: ExpertReader, condition: Expr, body: Callable[[], None]) -> None:
    """What `body` does, where the condition holds."""
    low, high = ix.bounds(condition, r.ranges)
    if low == 1:
        return body()
    if high == 0:
        return None
    with r.block(repeats=False) as inner, r.where(condition):
        body()
    r.statements.append(On(None, pr.When(condition, tuple(inner))))  # type: ignore[arg-type]
    return None


def cleared(r: ExpertReader, span: Span, C: Region) -> None:  # noqa: N803
    """C = 0 in L0C, which no instruction fills: the product of tiles of zeros, 16 deep."""
    rows, cols = C.shape
    dtype = I8 if r.held[C.name].dtype is I32 else F16
    depth = 32 // dtype.bytes
    zeros = [_zeros(r, dtype, shape) for shape in ((rows, depth), (depth, cols))]
    for name in zeros:
        r.instr("l1_zero", pr.Tile(name), span=span)
    on(r, AIC, pr.PipeBarrier("MTE2", span))
    a, b = (Buffer(name, dtype, r.held[name].shape, "L1") for name in zeros)
    gemm_v0(r, span, a, b, C, init=True)


def _zeros(r: ExpertReader, dtype: DType, shape: tuple[int, int]) -> str:
    """A tile in L1 for zeros alone."""
    key = f"zeros {dtype} {shape}"
    if key not in r.own_keys:
        r.own_keys[key] = name = r.unique("zeros")
        r.held[name] = Held(name, Level.L1, dtype, shape)
    return r.own_keys[key]


def _step(left: Place, right: Place, span: Span) -> int:
    """The depth of a step: 128, or less where two steps would not fit L0A and L0B."""
    for step in (STEP, STEP // 2, STEP // 4, STEP // 8):
        slots = 1 if left.cols <= step else 2
        deep = min(step, left.cols)
        if slots * deep * max(_up(left.rows), _up(right.cols)) * left.dtype.bytes <= L0_BYTES:
            return step
    wide, name = max((left.rows, "rows"), (right.cols, "columns"))
    raise TileError(
        f"a product with {wide} {name} does not fit: one step of 16 takes {_up(wide) * 16 * left.dtype.bytes} bytes, and two "
        f"have to fit the {L0_BYTES} of {'L0A' if name == 'rows' else 'L0B'}", span, help="use a smaller block",
    )  # fmt: skip


def _up(n: int) -> int:
    return -(-n // 16) * 16


def _from(place: Place, at: int, down: bool) -> pr.Tile:
    """The window of a tile in L1 at a depth: k runs down its rows, or along its columns."""
    t = place.tile()
    return pr.Tile(t.buffer, t.slot, t.row + (at if down else 0), t.col + (0 if down else at))


def _own(r: ExpertReader, level: Level, dtype: DType, rows: int, cols: int, slots: int) -> str:
    """A buffer of L0A or L0B that gemm_v0 takes for itself; products alike share it."""
    wanted = pr.Buffer("", level, dtype, rows, cols, cols, "zz" if level is Level.L0A else "zn", slots)
    key = f"{level} {dtype} {rows} {cols} {slots}"
    if key not in r.own_keys:
        name = r.unique(f"gemm_{str(level).lower()}")
        r.own_keys[key] = name
        r.own[name] = replace(wanted, name=name)
    return r.own_keys[key]


def _gemm(r: ExpertReader, span: Span, A: Any, B: Any, C: Any, size: Any, **options: Any) -> None:  # noqa: N803
    init = next((v for k in ("init", "initC", "clear_accum") if (v := options.get(k)) is not False), False)
    transpose_a, transpose_b = (bool(options[f"transpose_{x}"] or options[f"{x.lower()}_transpose"]) for x in "AB")
    if size is None:
        return gemm_v0(r, span, A, B, C, transpose_a, transpose_b, init)
    (a, b, c), depth = _of_size(r, span, (A, B, C), size, transpose_a, transpose_b)
    return gemm_v0(r, span, a, b, c, transpose_a, transpose_b, init, depth)


def _of_size(
    r: ExpertReader, span: Span, tiles: Sequence[Any], size: Any, transpose_a: bool, transpose_b: bool
) -> tuple[list[Region], Expr | None]:
    """The first elements of the operands and of the result, as `size` says, and the depth where only the kernel knows it. Of rows
    and columns that only it knows, the most are multiplied: what is behind them is in no element that is asked for."""
    found = extents_of(r, size, "an extent of T.gemm", span)
    if len(found) != 3:
        raise TileError(f"an extent of T.gemm has rows, depth and columns, not {len(found)} numbers", span, help="size=[m, k, n]")
    axes = ((1, 0) if transpose_a else (0, 1), (2, 1) if transpose_b else (1, 2), (0, 2))
    regions = [with_rank(as_region(v, span), 2) for v in tiles]
    found = tuple(r.unit.settled(r, n, span) if isinstance(n, Expr) else n for n in found)
    most = [_most(r, n, axis, regions, axes) for axis, n in enumerate(found)]
    depth = found[1] if isinstance(found[1], Expr) else None
    if depth is not None and ix.bounds(depth, r.ranges)[1] > most[1]:
        help = f"say so: T.min(n, {most[1]})"
        raise TileError(f"this may be deeper than the {most[1]} that there is room for", span, help=help)
    return [resized(x, [most[a] for a in of], span) for x, of in zip(regions, axes, strict=True)], depth


def _most(r: ExpertReader, n: int | Expr, axis: int, regions: Sequence[Region], axes: Sequence[tuple[int, int]]) -> int:
    """How long an axis of a product is at most; where only the kernel knows it, no longer than the tiles."""
    if isinstance(n, int):
        return n
    there = (x.shape[of.index(axis)] for x, of in zip(regions, axes, strict=True) if axis in of)
    return min(max(1, ix.bounds(n, r.ranges)[1]), *there)


WORDS = {"mma": mma, "gemm_v0": gemm_v0, "gemm": _gemm}
