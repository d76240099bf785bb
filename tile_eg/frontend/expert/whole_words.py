"""Words of a kernel that is kept that work on whole tiles: masks, bits, positions, gathers, sorts and merges of sorted lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from tile_eg.errors import Note, Span, TileError
from tile_eg.frontend.checks.numbers import check_number
from tile_eg.frontend.expert.followed import check_sorted
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import ExpertReader, on
from tile_eg.frontend.expert.scalars import drained, formula, is_scalar, store
from tile_eg.frontend.expert.unaligned import loop, own_room
from tile_eg.frontend.expert.vectors import elementwise, scratch, ub
from tile_eg.frontend.python.mask_words import SELECT_MODES, comparison
from tile_eg.frontend.python.values import Buffer, Window, describe, is_index
from tile_eg.frontend.python.whole_words import pattern_of, picked_one_by_one
from tile_eg.frontend.python.words import known
from tile_eg.frontend.ssa.positions import EXACT
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import Expr
from tile_eg.ir.machine import BLOCK_BYTES, REPEAT_BYTES
from tile_eg.language.elementwise_words import BINARY
from tile_eg.ops.types import BF16, F16, F32, I8, I16, I32, SIGNED, U8, U16, U32, DType
from tile_eg.ops.whole_tiles import SORTED, TURNED, WHOLE_TILES, padded

BITWISE = ("bitwise_and", "bitwise_or")
COMPARED = (F16, F32, BF16, I8, U8, I16, I32)
SHIFTS = ("bitwise_lshift", "bitwise_rshift")


def _run(p: Place, what: str, span: Span) -> Place:
    """TileError unless the elements of a window lie one behind the other."""
    if not p.whole:
        raise TileError(f"{what} is no run of elements: its rows have gaps", span, help="use whole rows of the buffer")
    return p


def _typed(p: Place, types: tuple[DType, ...], what: str, span: Span) -> Place:
    if p.dtype not in types:
        raise TileError(f"{what} is of {', '.join(map(str, types))}, not of {p.dtype}", span)
    return _run(p, what, span)


def _holds(to: Place, count: int, span: Span) -> None:
    if to.count < count:
        raise TileError(f"the result has {count} elements, and there is room for {to.count}", span)


def _instr(r: ExpertReader, span: Span, op: str, to: Place, srcs: list[Any], count: int, steps: tuple[int, ...]) -> None:
    """One operation on whole tiles, whose result has `count` elements."""
    _holds(_run(to, "the result", span), count, span)
    worked = WHOLE_TILES[op].worked(count, (steps[0], steps[1]))
    r.instr(f"v{op}", to.operand, *srcs, cols=ix.const(worked), steps=steps, span=span)


# Gathers


def _gather(r: ExpertReader, span: Span, dst: Any, src: Any, offsets: Any, base: Any) -> None:
    to, x, at = ub(r, dst, span), ub(r, src, span), ub(r, offsets, span)
    _typed(at, (U32,), "the buffer of offsets", span)
    _typed(x, WHOLE_TILES["gather"].types, "what is gathered", span)
    count = min(to.count, at.count)
    _instr(r, span, "gather", to, [x.operand, at.operand], count, (known(base, "the base of a gather", span), 0))


def _gather_mask(r: ExpertReader, span: Span, dst: Any, src: Any, pattern: Any) -> None:
    to, x = ub(r, dst, span), _run(ub(r, src, span), "what is gathered", span)
    if isinstance(pattern, list | tuple):
        for element, of in picked_one_by_one(dst, src, pattern, span):
            store(r, element, of, span)
        return None
    if isinstance(pattern, Buffer | Window):
        return _picked(r, span, to, x, _typed(ub(r, pattern, span), (U32,), "the buffer of places", span))
    first, step = pattern_of(pattern, span)
    return _instr(r, span, "every", to, [x.operand], -(-(x.count - first) // step), (first, step))


def _picked(r: ExpertReader, span: Span, to: Place, x: Place, at: Place) -> None:
    """to[i] = x[at[i]]."""
    offsets = scratch(r, U32, 1, -(-at.count // 8) * 8)
    r.instr("vmuls", offsets, at.operand, cols=ix.const(at.count), scalar=float(x.dtype.bytes), span=span)
    on(r, pr.AIV, pr.PipeBarrier("V", span))
    _instr(r, span, "gather", to, [x.operand, offsets], at.count, (0, 0))


# Sorted lists


def _sorted(r: ExpertReader, span: Span, dst: Any, src: Any, count: int, keep: int) -> None:
    """Of float16 in float, the indices among the values too, as TileLang does."""
    to, x = _typed(ub(r, dst, span), (F16, F32), "the result", span), _typed(ub(r, src, span), (F16, F32), "what is sorted", span)
    found = WHOLE_TILES["sort"].shape(((x.count,),), (count, keep))
    if isinstance(found, str) or to.dtype != x.dtype:
        raise TileError(found if isinstance(found, str) else f"{x.dtype} is sorted into {x.dtype}, not {to.dtype}", span)
    _holds(to, found[0], span)
    check_sorted(r, x, count, span)
    half = x.dtype is F16
    into, values = to.operand, x.operand
    if half:
        into, values = scratch(r, F32, 1, 2 * padded(keep)), scratch(r, F32, 1, padded(count) + 8)
        r.instr("vcast", values, x.operand, cols=ix.const(count), span=span)
        on(r, pr.AIV, pr.PipeBarrier("V", span))
    room = scratch(r, F32, 1, WHOLE_TILES["sort"].scratch((count, keep)))
    r.instr("vsort", into, values, cols=ix.const(padded(count)), steps=(count, keep), scratch=room, span=span)
    if half:
        on(r, pr.AIV, pr.PipeBarrier("V", span))
        r.instr("vcast", to.operand, into, cols=ix.const(2 * keep), span=span)


def _sort(r: ExpertReader, span: Span, dst: Any, src: Any, count: Any) -> None:
    n = known(count, "how many elements are sorted", span)
    _sorted(r, span, dst, src, n, padded(n))


def _topk(r: ExpertReader, span: Span, dst: Any, src: Any, K: Any, count: Any) -> None:  # noqa: N803
    _sorted(r, span, dst, src, known(count, "how many elements are sorted", span), known(K, "K", span))


def _sort32(r: ExpertReader, span: Span, dst: Any, scores: Any, indices: Any) -> None:
    """Pairs of a score and the bits of its index, each 32 in order."""
    to, x = _typed(ub(r, dst, span), (F32,), "the result", span), _typed(ub(r, scores, span), (F32,), "what is sorted", span)
    at = _typed(ub(r, indices, span), (U32, I32, F32), "the indices", span)
    if x.count % SORTED or at.count < x.count or to.count < 2 * x.count:
        help = f"a multiple of {SORTED} scores, as many indices, and a result twice as long"
        raise TileError(f"{x.count} scores and {at.count} indices are not sorted into {to.count} elements", span, help=help)
    r.instr("vsort32", to.operand, x.operand, at.operand, cols=ix.const(x.count), span=span)


def of_squares(p: Place) -> bool:
    """Whether a window is what instructions transpose: elements of 16 or 32 bits, in whole squares of 16 rows of 32 bytes."""
    return p.whole and p.dtype.bytes in (2, 4) and p.rows % TURNED == 0 and p.cols * p.dtype.bytes % BLOCK_BYTES == 0


def _merge(r: ExpertReader, span: Span, dst: Any, *lists: Any) -> None:
    places = [_typed(ub(r, x, span), (F32,), "a sorted list", span) for x in lists if x is not None]
    if any(p.count % 2 for p in places):
        raise TileError("pairs of a value and an index are merged: an even number of elements", span)
    pairs = tuple(p.count // 2 for p in places)
    _instr(r, span, "merge", ub(r, dst, span), [p.operand for p in places], 2 * sum(pairs), pairs)


# Masks and bits


def _compare(r: ExpertReader, span: Span, dst: Any, a: Any, b: Any, mode: Any) -> None:
    to, x = _run(ub(r, dst, span), "the mask", span), _typed(ub(r, a, span), COMPARED, "what is compared", span)
    bits = -(-x.count // 8)
    if to.dtype.bytes != 1 or to.count < bits:
        raise TileError(f"{x.count} bits take a mask of {bits} bytes (uint8)", span)
    y = None if is_scalar(b) else _run(ub(r, b, span), "what is compared", span)
    if y is not None:
        _holds(y, x.count, span)
    if x.dtype is I32:
        return _compared_one_by_one(r, span, to, x, b if y is None else y, comparison(mode, span))
    places = [_in_rounds(r, span, p, n) for n, p in enumerate([x] if y is None else [x, y])]
    op, count = f"vcompare_{comparison(mode, span)}", places[0].count
    room = to.operand if to.count * 8 >= count else own_room(r, U8, 1, count // 8)
    field: dict[str, Any] = {}
    if y is None:
        drained(r, b, span)
        field = {"scalar": float(b)} if isinstance(b, bool | int | float) else {"value": formula(r, b, span)}
    r.instr(op, room, *(p.operand for p in places), cols=ix.const(count), span=span, **field)
    if room is not to.operand:
        on(r, pr.AIV, pr.PipeBarrier("V", span))
        r.instr("vcopy", to.operand, room, cols=ix.const(bits), span=span)
    return None


def _in_rounds(r: ExpertReader, span: Span, x: Place, number: int) -> Place:
    """What is compared as floats that fill whole rounds of the vector unit: as it is, or in room of its own."""
    kind = x.dtype if x.dtype in (F16, F32) else F16 if x.dtype.bytes == 1 else F32
    lanes = REPEAT_BYTES // kind.bytes
    count = -(-x.count // lanes) * lanes
    if (kind, count) == (x.dtype, x.count):
        return x
    made = own_room(r, kind, 1, count, number)
    if count != x.count:
        r.instr("vdup", made, cols=ix.const(count), scalar=0.0, span=span)
    op = "vcopy" if kind == x.dtype else "vcast"
    on(r, pr.AIV, pr.PipeBarrier("V", span))
    r.instr(op, made, x.operand, cols=ix.const(x.count), span=span)
    on(r, pr.AIV, pr.PipeBarrier("V", span))
    return replace(x, operand=made, rows=1, cols=count, dtype=kind)


def _compared_one_by_one(r: ExpertReader, span: Span, to: Place, x: Place, y: Any, op: str) -> None:
    """Of int32, which no instruction compares: the scalar unit makes a byte of eight bits at a time."""
    other: Any = y
    if not isinstance(y, Place):
        other = formula(r, int(y) if isinstance(y, float) and y.is_integer() else y, span)
        if not other.whole:
            raise TileError("int32 is compared with whole numbers", span, help="cast the buffer to float32 first: T.tile.cast")

    def element(p: Any, at: Expr) -> pr.Formula:
        if not isinstance(p, Place):
            return p
        tile = p.tile()
        return pr.Formula("element", (replace(tile, col=tile.col + at),), True)

    def byte(first: Expr, bits: int) -> None:
        found = pr.Formula("number", (0.0,), True)
        for n in range(bits):
            holds = pr.Formula(op, (element(x, first + n), element(other, first + n)), True)
            bit = pr.Formula("select", (holds, *(pr.Formula("number", (v,), True) for v in (float(1 << n), 0.0))), True)
            found = pr.Formula("add", (found, bit), True)
        tile = to.tile()
        r.instr("store_element", replace(tile, col=tile.col + first // 8), value=found, span=span)

    if x.count >= 8:
        loop(r, span, "byte", x.count // 8, x.count // 8, lambda n: byte(n * 8, 8))
    if x.count % 8:
        byte(ix.const(x.count // 8 * 8), x.count % 8)
    note = "int32 is compared element by element by the scalar unit: no instruction does it; cast to float32 where 24 bits do"
    r.notes.append(Note(note, span))


def _select(r: ExpertReader, span: Span, dst: Any, mask: Any, x: Any, y: Any, mode: Any) -> None:
    if mode not in SELECT_MODES:
        what = repr(mode) if isinstance(mode, str) else describe(mode)
        raise TileError(f"a selection has no mode {what}", span, help="it is one of " + ", ".join(SELECT_MODES))
    to, bits, kept = (_run(ub(r, v, span), "an operand of a selection", span) for v in (dst, mask, x))
    count = to.count
    if mode == SELECT_MODES[0] and count * to.dtype.bytes > REPEAT_BYTES:
        raise TileError(f"{mode} takes the bits of one round of {REPEAT_BYTES} bytes", span, help=f"use {SELECT_MODES[2]}")
    if bits.dtype.bytes != 1 or bits.count * 8 < count or kept.count < count:
        raise TileError(f"{count} elements take {count // 8} bytes of bits, and as many elements to choose from", span)
    if is_scalar(y):
        if not isinstance(y, bool | int | float):
            raise TileError("the other value is a number known when the kernel is compiled, or a buffer", span)
        check_number(to.dtype, y, span)
        r.instr("vbitselect", to.operand, bits.operand, kept.operand, cols=ix.const(count), other=float(y), span=span)
    else:
        other = _run(ub(r, y, span), "an operand of a selection", span)
        _holds(other, count, span)
        r.instr("vbitselect", to.operand, bits.operand, kept.operand, other.operand, cols=ix.const(count), span=span)


def _bitwise(op: str, r: ExpertReader, span: Span, dst: Any, a: Any, b: Any) -> None:
    elementwise(r, span, f"v{op}", *(ub(r, v, span) for v in (dst, a, b)))


def _shift(op: str, r: ExpertReader, span: Span, dst: Any, src: Any, bits: Any) -> None:
    far = float(known(bits, "how far bits are shifted", span))
    elementwise(r, span, f"v{op}s", ub(r, dst, span), ub(r, src, span), scalar=far)


def _bits_of(r: ExpertReader, span: Span, dst: Any, src: Any, dtype: Any) -> None:
    elementwise(r, span, "vcopy", ub(r, dst, span), ub(r, src, span))


def _positions(r: ExpertReader, span: Span, dst: Any, first: Any, step: Any = 1, count: Any = None) -> None:
    """In int32 any positions are exact, in f32 those up to 2^24: further ones are cast from int32. Others are cast from f32, and
    those without a sign are the bits of those with one."""
    to = _run(ub(r, dst, span), "a buffer of positions", span)
    first = first if is_index(first) or is_scalar(first) else known(first, "the first position", span)
    begin = formula(r, ix.wrap(first) if is_index(first) else first, span)
    by, n = known(step, "the step of a progression", span), to.count if count is None else known(count, "a count", span)
    _holds(to, n, span)
    far = begin.whole and not (is_index(first) and _up_to(EXACT, r, ix.wrap(first), by * (n - 1)))
    signed = SIGNED.get(to.dtype, to.dtype)
    if far and signed not in (I32, F32):
        what = f"positions are exact up to {EXACT}, and nothing says that these are no larger"
        raise TileError(what, span, help="use a buffer of int32; or say how large the first is: T.max(T.min(n, 65536), 0)")
    if not begin.whole and to.dtype is not F32:
        raise TileError(f"a buffer of {to.dtype} begins with a whole number", span, help="cast it: T.cast(x, 'int32')")
    if to.dtype is U16 and not _up_to(2**15 - 1, r, ix.wrap(first), by * (n - 1)):
        what = "positions of uint16 surely have to be below 32768 here"
        raise TileError(what, span, help="use a buffer of int32, or T.Parallel")
    types = [*dict.fromkeys((I32 if far or signed is I32 else F32, signed, to.dtype))]
    into = [scratch(r, t, 1, -(-n // 8) * 8) for t in types[:-1]] + [to.operand]
    given = {"bound": begin.args[0]} if begin.op == "index" else {"value": begin}
    r.instr("vramp", into[0], cols=ix.const(n), steps=(0, by), span=span, **given)
    for x, y, t in zip(into, into[1:], types[1:], strict=False):
        on(r, pr.AIV, pr.PipeBarrier("V", span))
        r.instr("vcopy" if t in SIGNED else "vcast", y, x, cols=ix.const(n), span=span)


def _up_to(most: int, r: ExpertReader, begin: ix.Expr, last: int) -> bool:
    """Whether all positions from here to `last` behind it are surely no further than `most` from 0."""
    return max(abs(e + k) for e in ix.bounds(begin, r.ranges) for k in (0, last)) <= most


WORDS: dict[str, Callable[..., Any]] = {
    "tile.gather": _gather, "tile.gather_mask": _gather_mask, "tile.sort": _sort, "tile.topk": _topk, "tile.merge_sort": _merge,
    "tile.sort32": _sort32,
    "tile.compare": _compare, "tile.select": _select, "reinterpretcast": _bits_of, "tile.createvecindex": _positions,
    "tile.arith_progression": _positions,
    **{f"tile.{word}": partial(_bitwise, BINARY[word]) for word in BITWISE},
    **{f"tile.{word}": partial(_shift, BINARY[word]) for word in SHIFTS},
}  # fmt: skip
