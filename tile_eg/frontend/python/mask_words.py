"""Masks as TileLang's authors keep them: a comparison writes a bit an element into a buffer of bytes, a selection reads them.

Here each such buffer has a tile of ones and zeros beside it, which the rules do without where a selection can compare by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tile_eg.errors import Span, TileError, did_you_mean
from tile_eg.frontend.conditions import Compared
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.tile_words import HANDLERS, handles
from tile_eg.frontend.python.values import Buffer, Slice, Window, as_region, as_tile, describe, region, value_buffer, whole
from tile_eg.frontend.windows import known_shape
from tile_eg.ir.index import ZERO
from tile_eg.ir.kernel import BIT, Alloc, Binary, Choose, Number, Region, TileExpr
from tile_eg.ops.elementwise import COMPARE
from tile_eg.ops.types import F16, F32, I8, U8, DType

__all__ = ["HANDLERS"]

MODES = {name.upper(): name for name in COMPARE}
SELECT_MODES = ("VSEL_CMPMASK_SPR", "VSEL_TENSOR_SCALAR_MODE", "VSEL_TENSOR_TENSOR_MODE")
LOGIC: dict[str, Callable[[TileExpr, TileExpr], TileExpr]] = {
    "and": lambda x, y: Binary("min", x, y),
    "or": lambda x, y: Binary("max", x, y),
    "xor": lambda x, y: Choose("ne", x, y, Number(1.0), Number(0.0)),
}


@handles("tile.compare")
def _compare(b: Builder, span: Span, dst: Any, a: Any, c: Any, mode: Any) -> None:
    x, y = as_tile(a, span), as_tile(c, span)
    to = _written(b, dst, _shape(x, y, span), _dtype(a), span)
    b.assign(to, Choose(comparison(mode, span), x, y, Number(1.0, span), Number(0.0, span), span), span)


@handles("vcmp")
def _vcmp(b: Builder, span: Span, a: Any, c: Any, dst: Any, mode: Any) -> None:
    _compare(b, span, dst, a, c, mode)


@handles("tile.select")
def _select(b: Builder, span: Span, dst: Any, mask: Any, x: Any, y: Any, mode: Any) -> None:
    if mode not in SELECT_MODES:
        what = repr(mode) if isinstance(mode, str) else describe(mode)
        raise TileError(f"a selection has no mode {what}", span, help="it is one of " + ", ".join(SELECT_MODES))
    op, bits = ("ne", _read(b, mask, span)) if not _of_bytes(b, mask) else (BIT, as_region(mask, span))
    b.assign(as_region(dst, span), Choose(op, bits, Number(0.0, span), as_tile(x, span), as_tile(y, span), span), span)


def _of_bytes(b: Builder, mask: Any) -> bool:
    """Whether a mask is of bytes that were loaded or computed."""
    is_buffer = isinstance(mask, (Buffer, Window)) and value_buffer(mask).dtype in (U8, I8)
    return is_buffer and value_buffer(mask).name not in b.bits


@handles("vselect")
def _vselect(b: Builder, span: Span, mask: Any, x: Any, y: Any, dst: Any) -> None:
    _select(b, span, dst, mask, x, y, SELECT_MODES[-1])


@handles("isnan")
def _isnan(b: Builder, span: Span, x: Any) -> Compared:
    return Compared("ne", as_tile(x, span), as_tile(x, span), span)


def comparison(mode: Any, span: Span) -> str:
    """The comparison that a mode such as "GT" names."""
    name = MODES.get(mode.upper()) if isinstance(mode, str) else None
    if name is None:
        what = repr(mode) if isinstance(mode, str) else describe(mode)
        help = did_you_mean(mode, MODES) if isinstance(mode, str) else ""
        raise TileError(f"there is no comparison {what}", span, help=help or "there are " + ", ".join(MODES))
    return name


def _shape(x: TileExpr, y: TileExpr, span: Span) -> tuple[int, ...]:
    shape = max((s for s in map(known_shape, (x, y)) if s), key=len, default=())
    if not shape:
        raise TileError("a comparison into a mask takes a tile", span)
    return shape


def _dtype(value: Any) -> DType:
    """That of the ones and zeros: as wide as what is compared."""
    return F16 if isinstance(value, (Buffer, Window)) and value_buffer(value).dtype == F16 else F32


def _buffer(mask: Any, span: Span) -> Buffer:
    if isinstance(mask, (Buffer, Window)) and value_buffer(mask).scope != "tensor":
        return value_buffer(mask)
    what = f"a mask is kept in a buffer of uint8, not in {describe(mask)}"
    raise TileError(what, span, help='T.alloc_shared([n // 8], "uint8")')


def _written(b: Builder, mask: Any, shape: tuple[int, ...], dtype: DType, span: Span) -> Region:
    """The place of the ones and zeros that stand for a mask, of the shape of what is compared."""
    buffer = _buffer(mask, span)
    full = shape if isinstance(mask, Buffer) else (*buffer.shape[:-1], shape[-1])
    if buffer.name not in b.masks:
        name = b.unique(f"{buffer.name}_mask")
        b.masks[buffer.name] = Buffer(name, dtype, full, buffer.scope)
        home = b.homes[buffer.name]
        at = next(n for n, s in enumerate(home) if isinstance(s, Alloc) and s.name == buffer.name)
        home.insert(at + 1, Alloc(name, buffer.scope, dtype, full, span))
    b.written(buffer.name)
    b.bits.add(buffer.name)
    kept = b.masks[buffer.name]
    if kept.shape != full:
        help = "use a buffer for each"
        raise TileError(f"{buffer.name} is the mask of tiles of {kept.shape} and of {full}", span, help=help)
    return _place(kept, mask, span)


def _read(b: Builder, mask: Any, span: Span) -> Region:
    buffer = _buffer(mask, span)
    if buffer.name not in b.bits:
        raise TileError(
            f"{buffer.name} holds no mask", span,
            help='it is written by T.tile.compare(mask, x, y, "GT"), or holds bytes (uint8) that were loaded',
        )  # fmt: skip
    return _place(b.masks[buffer.name], mask, span)


def _place(kept: Buffer, mask: Any, span: Span) -> Region:
    if isinstance(mask, Buffer):
        return whole(kept, span)
    r = region(mask)
    last = mask.items[-1]
    if not (isinstance(last, Slice) and last.start == ZERO):
        raise TileError("a part of a mask begins at the first bit of a row", span)
    return Region(kept.name, r.starts, (*r.extents[:-1], kept.shape[-1]), span)


def _joined(op: str, plain: Callable[..., None], b: Builder, span: Span, dst: Any, x: Any, y: Any) -> None:
    """Masks joined bit by bit; anything else as it is."""
    if not all(_is_mask(b, v) for v in (x, y)):
        return plain(b, span, dst, x, y)
    one, other = _read(b, x, span), _read(b, y, span)
    to = _written(b, dst, one.shape, b.masks[value_buffer(x).name].dtype, span)
    b.assign(to, LOGIC[op](one, other), span)
    return None


def _inverted(plain: Callable[..., None], b: Builder, span: Span, dst: Any, x: Any) -> None:
    if not _is_mask(b, x):
        return plain(b, span, dst, x)
    bits = _read(b, x, span)
    to = _written(b, dst, bits.shape, b.masks[value_buffer(x).name].dtype, span)
    b.assign(to, Binary("sub", Number(1.0), bits, span), span)
    return None


def _is_mask(b: Builder, v: Any) -> bool:
    return isinstance(v, (Buffer, Window)) and value_buffer(v).name in b.bits


for _op in LOGIC:
    HANDLERS[f"tile.bitwise_{_op}"] = partial(_joined, _op, HANDLERS[f"tile.bitwise_{_op}"])
HANDLERS["tile.bitwise_not"] = partial(_inverted, HANDLERS["tile.bitwise_not"])
