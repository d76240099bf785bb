"""What the words of `tile_eg.language` for matrix products mean, as nodes of the kernel tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.extents import counted, extents_of
from tile_eg.frontend.python.values import as_region, describe, with_rank
from tile_eg.frontend.python.words import HANDLERS, handles
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Binary, Broadcast, Cast, MatMul, Number, Reduce, Region, Scaled, Select, TileExpr
from tile_eg.language.gpu import GemmWarpPolicy
from tile_eg.ops.types import F32, FLOATS

__all__ = ["HANDLERS"]

_BY_POSITION = ("transpose_A", "transpose_B", "policy", "clear_accum")


@handles("gemm")
def _gemm(b: Builder, span: Span, A: Any, B: Any, C: Any, size: Any, *by_position: Any, **options: Any) -> None:
    if isinstance(size, bool):
        size, by_position = None, (size, *by_position)
    if len(by_position) > len(_BY_POSITION) or (by_position and size is not None):
        raise TileError(f"T.gemm takes A, B, C and {', '.join(_BY_POSITION)} by position", span, help="give them by name")
    options |= dict(zip(_BY_POSITION, by_position, strict=False))
    transpose_a = options["transpose_A"] or options["a_transpose"]
    transpose_b = options["transpose_B"] or options["b_transpose"]
    if not isinstance(options["policy"], GemmWarpPolicy):
        names = ", ".join(f"T.GemmWarpPolicy.{p.name}" for p in GemmWarpPolicy)
        raise TileError(f"a policy is one of {names}, not {describe(options['policy'])}", span, help="leave policy out")
    init = next((v for k in ("init", "initC", "clear_accum") if (v := options[k]) is not False), False)
    product(b, span, (A, B, C), size, transpose_a, transpose_b, init)


@handles("mma")
def _mma(b: Builder, span: Span, A: Any, B: Any, C: Any, init: Any) -> None:
    product(b, span, (A, B, C), None, False, False, init)


@handles("gemm_v0")
def _gemm_v0(b: Builder, span: Span, A: Any, B: Any, C: Any, transpose_a: Any, transpose_b: Any, init: Any) -> None:
    product(b, span, (A, B, C), None, transpose_a, transpose_b, init)


@handles("gemm_mx")
def _gemm_mx(
    b: Builder, span: Span, A: Any, A_scale: Any, B: Any, B_scale: Any, C: Any, transpose_a: Any, transpose_b: Any, init: Any
) -> None:
    x, x_scale, y, y_scale, c = (with_rank(as_region(v, span), 2) for v in (A, A_scale, B, B_scale, C))
    factors = Scaled(x, x_scale, span=span), Scaled(y, y_scale, span=span)
    _assign(b, span, c, MatMul(*factors, bool(transpose_a), bool(transpose_b), span), init)


def product(b: Builder, span: Span, operands: Sequence[Any], size: Any, transpose_a: bool, transpose_b: bool, init: Any) -> None:
    """c = (c where init does not hold, else 0) + a @ b."""
    regions = [as_region(v, span) for v in operands]
    if size is not None:
        m, k, n = extents_of(b, size, "an extent of T.gemm", span)
        shapes = ((k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n), (m, n))
        *factors, to = (r if r.shape == s else counted(r, s, span) for r, s in zip(regions, shapes, strict=True))
        regions = [*factors, replace(to, counts=())]
    x, y, c = (with_rank(r, 2) for r in regions)
    if [len(r.shape) for r in (x, y, c)] == [2, 1, 1] and b.dtype_of(x.name) in FLOATS and not transpose_b:
        value = _by_vector(x, y, bool(transpose_a), span)
    else:
        value = MatMul(x, y, bool(transpose_a), bool(transpose_b), span)
    _assign(b, span, c, value, init)


def _by_vector(x: Region, v: Region, transposed: bool, span: Span) -> TileExpr:
    """A tile times a column, a buffer of shape (n, 1): sums of products on the vector cores, in f32."""
    tile, vector = Cast(F32, x, span), Cast(F32, v, span)
    return Reduce("sum", Binary("mul", tile, Broadcast(vector, int(transposed), span), span), int(not transposed), span)


def _assign(b: Builder, span: Span, c: Region, value: TileExpr, init: Any) -> None:
    """c = (c where init does not hold, else 0) + value."""
    if isinstance(init, Expr):
        value = Binary("add", Select(init, Number(0.0), c, span), value, span)
    elif not init:
        value = Binary("add", c, value, span)
    b.assign(c, value, span)
