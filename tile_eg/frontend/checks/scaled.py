"""Products with scales: what their operands are, and that scales and scaled operands are nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.windows import scales_shape, shape_text
from tile_eg.ir import kernel as kn
from tile_eg.ir.operands import operands
from tile_eg.ops.types import E8M0, NARROW, PACKED, SCALED, SCALED_DEPTH, U8, DType

DECLARED = 'declare them as e8m0 ("float8_e8m0"); an array of bytes is x.view(ml_dtypes.float8_e8m0fnu)'
AS_BYTES = "as numbers they are bytes: of a tensor of {u8}, {power} is the scale"


def product_shape(e: kn.MatMul, of: Callable[[kn.TileExpr], Any]) -> tuple[int, int]:
    """The shape of a product with scales; `of` gives the type of an expression."""
    written = hint("scaled(a, sa) @ scaled(b, sb).T", "T.gemm_mx(a, sa, b, sb, c, transpose_B=True)", e.span)
    for side in (e.a, e.b):
        if not isinstance(side, kn.Scaled):
            help = f"{written}; a scale of 1 is the byte 127"
            raise TileError("both operands of a product have scales, or none", e.span, help=help)
    (a, of_a), (b, of_b) = (_operand(side, of) for side in (e.a, e.b))  # type: ignore[arg-type]
    if (of_a in PACKED) != (of_b in PACKED):
        help = "store both as floats of 8 bits, or both as floats of 4 bits"
        raise TileError(f"a product with scales multiplies floats of one width, not {of_a} and {of_b}", e.span, help=help)
    if e.transpose_a or not e.transpose_b:
        message = "of a product with scales the left operand lies as (M, K) and the right one as (N, K): rows have the scales"
        raise TileError(message, e.span, help=f"store them that way: {written}")
    if a[1] != b[1]:
        raise TileError(f"the inner sizes of this product differ: {a[1]} and {b[1]}", e.span)
    return a[0], b[0]


def _operand(e: kn.Scaled, of: Callable[[kn.TileExpr], Any]) -> tuple[tuple[int, ...], DType]:
    """The shape of an operand in its own elements, and what they are."""
    x, scale = of(e.x), of(e.scale)
    dtype = e.packed or x.dtype
    if dtype not in SCALED or len(x.shape) != 2:
        there = ", ".join(map(str, (*NARROW, *PACKED)))
        raise TileError(f"scales are of tiles of {there}, not of {x}", e.span, help="a product of others goes without: a @ b")
    shape = (x.shape[0], 2 * x.shape[1]) if e.packed else x.shape
    if shape[1] % SCALED_DEPTH:
        message = f"a product with scales goes along K in steps of {SCALED_DEPTH}, and this tile has {shape[1]} columns"
        raise TileError(message, e.span, help=f"give it a multiple of {SCALED_DEPTH}")
    if scale.dtype is not E8M0 or scale.shape != scales_shape(shape):
        wanted = f"{shape_text(scales_shape(shape) or ())} of e8m0"
        message = f"the scales of {shape_text(shape)} of {dtype} are {wanted}, not {scale}"
        raise TileError(message, e.scale.span or e.span, help=DECLARED if scale.dtype is U8 else "")
    return shape, dtype


def refused(e: kn.Scaled) -> TileError:
    """A scaled operand as a value of its own."""
    help = "both operands of a product have scales: scaled(a, sa) @ scaled(b, sb).T"
    return TileError("`scaled` stands for an operand of a product, and nowhere else", e.span, help=help)


def check_scales(s: kn.Assign, arrays: Mapping[str, kn.Tensor | kn.Alloc]) -> None:
    """TileError where scales are anything but loaded, copied and multiplied by."""
    array = arrays.get(s.target.name)
    held = array.dtype if array else None
    if held is E8M0 and isinstance(array, kn.Tensor):
        help = "what is stored as bytes is of " + hint("u8", '"uint8"', s.span)
        raise TileError(f"`{s.target.name}` holds scales (e8m0), which no kernel stores", s.target.span or s.span, help=help)
    found = _scales_read(s.value, arrays)
    alone = isinstance(s.value, kn.Region) and bool(found)
    if (held is E8M0) != alone or (found and not alone) or (held is E8M0 and s.atomic):
        span = found[0].span if found else s.span
        message = "scales (e8m0) are loaded, copied and multiplied by, and no numbers are computed of them"
        raise TileError(message, span, help=_bytes(span))


def _scales_read(e: kn.TileExpr, arrays: Mapping[str, kn.Tensor | kn.Alloc]) -> list[kn.Region | kn.Cast]:
    """The windows of scales in an expression, those of scaled operands aside, and what is cast to scales."""
    if isinstance(e, kn.Region):
        return [e] if e.name in arrays and arrays[e.name].dtype is E8M0 else []
    if isinstance(e, kn.Cast) and e.dtype is E8M0:
        return [e]
    if isinstance(e, kn.Scaled):
        return _scales_read(e.x, arrays)
    return [r for x in operands(e) for r in _scales_read(x, arrays)]


def _bytes(span: Span | None) -> str:
    power = hint("exp((f32(s) - 127) * 0.6931472)", 'T.exp2(T.cast(s[i], "float32") - 127)', span)
    return AS_BYTES.format(u8=hint("u8", '"uint8"', span), power=power)
