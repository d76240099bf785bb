"""What the words of AscendNPU-IR's dialect mean that the rest of the language does not have, as nodes of the kernel tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.instead import instead
from tile_eg.frontend.python.placement_words import HANDLERS
from tile_eg.frontend.python.values import Buffer, Window, as_region, as_tile, describe, is_index, value_buffer
from tile_eg.frontend.python.words import handles, known, sizes
from tile_eg.ir import index
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import element as element_of
from tile_eg.ir.kernel import Assign, Index, Parallel, Region, TileExpr
from tile_eg.ops.types import INDICES

__all__ = ["HANDLERS"]

LN2 = math.log(2.0)


def _run(word: str, b: Builder, span: Span, *operands: Any, **options: Any) -> Any:
    """Another word, in this kernel's meaning of it."""
    return (b.handlers or HANDLERS)[word](b, span, *operands, **options)


def _apart(word: str, read: Sequence[Any], dst: Any, span: Span) -> None:
    """TileError where a word that writes its destination in steps would read in a later one what an earlier one wrote."""
    to = value_buffer(dst) if isinstance(dst, Buffer | Window) else None
    if any(isinstance(v, Buffer | Window) and value_buffer(v) is to for v in read):
        message = f"T.{word} writes {describe(dst)} before it has read all of it"
        raise TileError(message, span, help="give it a destination of its own")


@handles("vexp2")
def _exp2(b: Builder, span: Span, src: Any, dst: Any, tmp: Any) -> None:
    """2 ** src, as exp(src * ln 2); `tmp` holds the product."""
    room = dst if tmp is None else tmp
    _run("vmul", b, span, src, LN2, room)
    _run("vexp", b, span, room, dst)


@handles("vlog2")
def _log2(b: Builder, span: Span, src: Any, dst: Any, tmp: Any) -> None:
    """The logarithm to base 2, as ln(src) / ln 2; `tmp` holds the natural one."""
    room = dst if tmp is None else tmp
    _run("vln", b, span, src, room)
    _run("vmul", b, span, room, 1.0 / LN2, dst)


@handles("vclamp")
def _clamp(b: Builder, span: Span, src: Any, dst: Any, low: Any, high: Any) -> None:
    _apart("vclamp", (high,), dst, span)
    _run("vmax", b, span, src, low, dst)
    _run("vmin", b, span, dst, high, dst)


@handles("vrec")
def _reciprocal(b: Builder, span: Span, src: Any, dst: Any) -> None:
    _run("vreciprocal", b, span, src, dst)


@handles("vshl")
def _left(b: Builder, span: Span, x: Any, by: Any, dst: Any) -> None:
    _run("tile.bitwise_lshift", b, span, dst, x, by)


@handles("vshr")
def _right(b: Builder, span: Span, x: Any, by: Any, dst: Any, rounded: Any) -> None:
    """Towards minus infinity, as every shift of bits; the dialect's own `round` is True and rounds nothing."""
    _run("tile.bitwise_rshift", b, span, dst, x, by)


# Moves


@handles("load_nd2nz", "store_nz2nd")
def _moved(b: Builder, span: Span, src: Any, dst: Any, size: Any, relu: bool = False) -> None:
    _run("copy", b, span, src, dst, size, enable_relu=relu, transpose=False, pad_value=None)


@handles("store_fixpipe")
def _from_l0c(b: Builder, span: Span, src: Any, dst: Any, size: Any, nd: Any, split: Any, relu: Any) -> None:
    if not nd and isinstance(dst, Buffer | Window) and value_buffer(dst).scope == "tensor":
        what = "a product is stored in rows here, not in the order of L0C"
        raise TileError(what, span, help="enable_nz2nd=True")
    if split or relu not in ("", "relu"):
        what = "channel_split" if split else f"pre_relu_mode={relu!r}"
        raise TileError(f"T.store_fixpipe does not take {what} here", span, help='pre_relu_mode is "" or "relu"')
    _moved(b, span, src, dst, size, relu == "relu")


@handles("atomic_addx4")
def _added(b: Builder, span: Span, dst: Any, src: Any, size: Any) -> None:
    points = any(isinstance(v, Window) and v.is_point for v in (dst, src))
    if size is None and (points or b.in_parallel):
        raise instead(TileError("T.atomic_addx4 adds as many elements as its size says here", span), "atomic_addx4")
    _run("atomic_add", b, span, dst, src, size)


_AS_A_VALUE = HANDLERS["reshape"]


@handles("reshape", "view")
def _reshaped(b: Builder, span: Span, src: Any, shape: Any = None, dtype: Any = None) -> Any:
    """T.reshape(src, dst) of two buffers fills the second one, and of one leaves it; with a shape it is a value."""
    if not isinstance(shape, Buffer | Window):
        return _AS_A_VALUE(b, span, src, shape, dtype)
    if shape is src:
        return None
    to, of = as_region(shape, span), as_region(src, span)
    if math.prod(to.shape) != math.prod(of.shape):
        raise TileError(f"{of.shape} of {of.name} do not become {to.shape} of {to.name}: other numbers of elements", span)
    value = as_tile(src, span) if to.shape == of.shape else _AS_A_VALUE(b, span, src, to.shape, dtype)
    b.assign(to, value, span)
    return None


# Parts of buffers, one behind the other


def _part(r: Region, starts: Sequence[int], shape: Sequence[int]) -> Region:
    """A window of a window: from these of its elements on, so many of them."""
    each = iter(zip(starts, shape, strict=True))
    found = [(s, None) if e is None else (s + (at := next(each))[0], at[1]) for s, e in zip(r.starts, r.extents, strict=True)]
    return Region(r.name, tuple(s for s, _ in found), tuple(e for _, e in found), r.span)


def _all_of(word: str, v: Any, size: Any, span: Span) -> Region:
    """An operand as a window, of so many elements where the word is told."""
    if not isinstance(v, Buffer | Window):
        raise TileError(f"T.{word} takes buffers, not {describe(v)}", span)
    if isinstance(v, Window) and v.is_open:
        raise TileError(f"T.{word} takes slices of buffers, not a point of one", span, help="x[0:n, :]")
    r = as_region(v, span)
    return r if size is None else _part(r, (0,) * len(r.shape), sizes(size, "an extent", span))


@handles("concat")
def _concat(b: Builder, span: Span, *operands: Any, size: Any) -> None:
    *sources, dst, dim = operands
    _apart("concat", sources[1:], dst, span)
    found, to = [_all_of("concat", x, size, span) for x in sources], _all_of("concat", dst, None, span)
    axis, rank = known(dim, "the axis of T.concat", span), len(to.shape)
    if not -rank <= axis < rank or any(len(x.shape) != rank for x in found):
        raise TileError(f"T.concat takes tiles of {rank} dimensions and one of their axes, not {axis}", span)
    at = 0
    for x in found:
        starts = [at if n == axis % rank else 0 for n in range(rank)]
        if any(start + m > n for start, m, n in zip(starts, x.shape, to.shape, strict=True)):
            raise TileError(f"{x.shape} of {x.name} have no room in {to.shape} of {to.name}, from {tuple(starts)} on", span)
        _moved(b, span, x, _part(to, starts, x.shape), None)
        at += x.shape[axis]


@handles("pad")
def _pad(b: Builder, span: Span, src: Any, dst: Any, value: Any, low: Any, high: Any, size: Any) -> None:
    _apart("pad", (src,), dst, span)
    x, to = _all_of("pad", src, size, span), _all_of("pad", dst, None, span)
    before, behind = (_counts(v, len(x.shape), span) for v in (low, high))
    wanted = tuple(i + n + k for i, n, k in zip(before, x.shape, behind, strict=True))
    fits = len(to.shape) == len(wanted) and min(*before, *behind) >= 0
    if not fits or any(m > n for m, n in zip(wanted, to.shape, strict=True)):
        raise TileError(f"{x.shape} with {before} before and {behind} behind do not become {to.shape} of {to.name}", span)
    _run("fill", b, span, _part(to, (0,) * len(wanted), wanted), value)
    _moved(b, span, x, _part(to, before, x.shape), None)


def _counts(given: Any, rank: int, span: Span) -> tuple[int, ...]:
    """Numbers of elements, one for each axis; 16.0 is one too."""
    numbers = given if isinstance(given, list | tuple) else (given,)
    if len(numbers) != rank:
        raise TileError(f"T.pad takes {rank} numbers of elements, one for each axis, not {len(numbers)}", span)
    whole = (int(n) if isinstance(n, float) and n.is_integer() else n for n in numbers)
    return tuple(known(n, "how many elements are put there", span) for n in whole)


# Element by element

At = Sequence[Expr]
Loop = tuple[Sequence[int], Callable[[At], tuple[Region, TileExpr]]]
"""A shape, and what is assigned at each index into it."""


def _element(r: Region, at: Sequence[Expr]) -> Region:
    """One element of a window."""
    each = iter(at)
    starts = tuple(s if e is None else s + next(each) for s, e in zip(r.starts, r.extents, strict=True))
    return Region(r.name, starts, (None,) * len(starts), r.span)


def _arange(span: Span, dst: Any, strides: Any, offset: Any = 0) -> list[Loop]:
    if not isinstance(dst, Buffer | Window) or strides is None:
        what = "T.arange fills a buffer with positions here: T.arange(dst, [rows apart, columns apart], first)"
        help = "positions as values: for i, j in T.Parallel(m, n); T.arange(n), a value, is a word of functions of whole tensors"
        raise TileError(what, span, help=help)
    to, steps = as_region(dst, span), strides if isinstance(strides, list | tuple) else [strides]
    if len(steps) != len(to.shape) or not all(map(is_index, (*steps, offset))):
        raise TileError(f"T.arange takes {len(to.shape)} strides, one for each axis of {to.name}, and a first position", span)

    def made(at: At) -> tuple[Region, TileExpr]:
        parts = [i * index.wrap(step) for i, step in zip(at, steps, strict=True)]
        return _element(to, at), Index(sum(parts, index.wrap(offset)), span)

    return [(to.shape, made)]


def _interleave(span: Span, *operands: Any, channel_nums: Any, size: Any) -> list[Loop]:
    *sources, dst = operands
    found, to = [_all_of("interleave", x, size, span) for x in sources], _all_of("interleave", dst, None, span)
    if len(found) != 2 or channel_nums != 2:
        raise TileError(f"T.interleave takes two sources, not {len(found)}", span)
    if found[0].shape != found[1].shape or to.shape != (*found[0].shape[:-1], 2 * found[0].shape[-1]):
        shapes = " and ".join(str(x.shape) for x in found)
        raise TileError(f"the columns of {shapes} do not fill {to.shape} of {to.name}", span)
    return [(x.shape, partial(_into_every_other, to, x, n)) for n, x in enumerate(found)]


def _into_every_other(to: Region, x: Region, first: int, at: At) -> tuple[Region, TileExpr]:
    return _element(to, (*at[:-1], at[-1] * 2 + first)), _element(x, at)


CHANNELS = {"CHANNEL_0": (0,), "CHANNEL_1": (1,), "ALL_CHANNELS": (0, 1)}


def _deinterleave(span: Span, src: Any, *targets: Any, channel_nums: Any, index_mode: Any, size: Any) -> list[Loop]:
    x, found = _all_of("deinterleave", src, size, span), [_all_of("deinterleave", v, None, span) for v in targets]
    channels = CHANNELS.get(index_mode) if isinstance(index_mode, str) else None
    if channels is None or channel_nums != 2 or len(channels) != len(found):
        help = f"index_mode is one of {', '.join(CHANNELS)}, and there is a destination for each channel"
        raise TileError(f"T.deinterleave does not take {len(found)} destinations in mode {index_mode}", span, help=help)
    shape = (*x.shape[:-1], x.shape[-1] // 2)
    if x.shape[-1] % 2 or any(to.shape != shape for to in found):
        raise TileError(f"every other column of {x.shape} of {x.name} does not fill {found[0].shape}", span)
    return [(shape, partial(_of_every_other, to, x, n)) for n, to in zip(channels, found, strict=True)]


def _of_every_other(to: Region, x: Region, first: int, at: At) -> tuple[Region, TileExpr]:
    return _element(to, at), _element(x, (*at[:-1], at[-1] * 2 + first))


def _flip(span: Span, src: Any, dst: Any, axis: Any, size: Any) -> list[Loop]:
    x, to = _all_of("flip", src, size, span), _all_of("flip", dst, size, span)
    n, rank = known(axis, "the axis of T.flip", span), len(x.shape)
    if to.shape != x.shape or not -rank <= n < rank:
        raise TileError(f"T.flip of {x.shape} along {n} does not become {to.shape}", span)

    def made(at: At) -> tuple[Region, TileExpr]:
        return _element(to, at), _element(x, [x.shape[k] - 1 - i if k == n % rank else i for k, i in enumerate(at)])

    return [(x.shape, made)]


def turns_rows(permutation: Any, size: Any) -> bool:
    """Whether a transposition is that of all rows and columns of a tile, for which there is a word of its own."""
    return permutation is None or (permutation in ([1, 0], (1, 0)) and size is None)


def transposed_loops(span: Span, src: Any, dst: Any, permutation: Any, size: Any) -> list[Loop]:
    x, to = _all_of("transpose", src, size, span), _all_of("transpose", dst, None, span)
    order = list(permutation) if isinstance(permutation, list | tuple) else []
    if sorted(order) != list(range(len(x.shape))):
        raise TileError(f"a permutation of {len(x.shape)} axes is wanted, not {describe(permutation)}", span, help="[1, 0]")
    shape = tuple(x.shape[axis] for axis in order)
    if to.shape != shape:
        raise TileError(f"{x.shape} of {x.name} become {shape}, not {to.shape} of {to.name}", span)
    return [(shape, lambda at: (_element(to, at), _element(x, [at[order.index(k)] for k in range(len(order))])))]


def _gather(span: Span, src: Any, dst: Any, indices: Any, size: Any) -> list[Loop]:
    x, to, at_ = (_all_of("gather", v, size, span) for v in (src, dst, indices))
    if to.shape != at_.shape or x.shape[:-1] != to.shape[:-1]:
        raise TileError(f"{to.shape} of {to.name} are not gathered from rows of {x.shape} by indices of {at_.shape}", span)
    if value_buffer(indices).dtype not in INDICES:
        raise TileError(f"indices are whole numbers, and {at_.name} holds {value_buffer(indices).dtype}", span)
    shape = value_buffer(indices).shape

    def made(at: At) -> tuple[Region, TileExpr]:
        place = element_of(at_.name, shape, list(_element(at_, at).starts))
        return _element(to, at), _element(x, (*at[:-1], place))

    return [(to.shape, made)]


ELEMENTWISE: dict[str, Callable[..., list[Loop]]] = {
    "arange": _arange, "interleave": _interleave, "deinterleave": _deinterleave, "flip": _flip, "gather": _gather,
}  # fmt: skip
"""Words that say for each element what it becomes."""


def in_loops(b: Builder, loops: Sequence[Loop], span: Span, one: Callable[..., None]) -> None:
    """`one` does each loop: an assignment for all values of the variables, with their names and sizes."""
    for shape, made in loops:
        if len(shape) > 3:
            raise TileError(f"a tile of {len(shape)} dimensions is not supported here", span, help="take it plane by plane")
        names = [b.unique(name) for name in "hij"[-len(shape) :]]
        target, value = made([index.var(n) for n in names])
        one(b, Assign(target, value, span), names, list(shape))


def _searched(b: Builder, s: Assign, names: list[str], sizes_: list[int]) -> None:
    b.statements.append(Parallel(tuple(names), tuple(sizes_), (s,), s.span))
    b.written(s.target.name)


def _by_elements(loops: Callable[..., list[Loop]], b: Builder, span: Span, *operands: Any, **options: Any) -> None:
    in_loops(b, loops(span, *operands, **options), span, _searched)


HANDLERS.update({word: partial(_by_elements, loops) for word, loops in ELEMENTWISE.items()})


@handles("transpose")
def _transpose(b: Builder, span: Span, src: Any, dst: Any, permutation: Any, size: Any) -> None:
    if turns_rows(permutation, size):
        return _run("tile.transpose", b, span, dst, src)
    return in_loops(b, transposed_loops(span, src, dst, permutation, size), span, _searched)
