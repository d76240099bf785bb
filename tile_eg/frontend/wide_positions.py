"""Positions of elements that are stored as whole numbers of 32 bits, and larger than f32 holds exactly, `h[i] = i * 747796405`:
they are computed as elements of i32, whose low bits are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tile_eg.frontend.narrow_positions import Types
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Binary, Cast, Choose, Index, Number, Parallel, Select, TileExpr, Unary
from tile_eg.ops.types import EXACT, I32

HALF = 2**31


def with_wide_positions(s: Parallel, types: Types) -> Parallel:
    """The loop in which such positions are sums and products of elements."""
    extents = dict(zip(s.vars, s.extents, strict=True))
    return replace(s, body=tuple(replace(a, value=_of(a.value, types(a.target.name) == I32, extents)) for a in s.body))


def _of(e: TileExpr, whole: bool, extents: Mapping[str, int]) -> TileExpr:
    """A value of which the positions are numbers of i32 where it is `whole`."""
    match e:
        case Index():
            return _computed(e, extents) if whole else e
        case Cast():
            return replace(e, x=_of(e.x, e.dtype == I32, extents))
        case Unary():
            return replace(e, x=_of(e.x, whole, extents))
        case Binary() | Select() | Choose():
            return replace(e, x=_of(e.x, whole, extents), y=_of(e.y, whole, extents))
    return e


def _computed(e: Index, extents: Mapping[str, int]) -> TileExpr:
    terms = ix.terms_of(e.value)
    own = {atom: k for atom, k in terms.items() if ix.variables(atom) & extents.keys()}
    reach = sum(abs(k) * extents[a.args[0]] for a, k in own.items() if a.op == "var")
    if reach < EXACT or any(a.op != "var" for a in own):
        return e
    rest = ix.from_terms({atom: k for atom, k in terms.items() if atom not in own})
    made: TileExpr = Cast(I32, Index(_wrapped(rest), e.span), e.span)
    for atom, k in own.items():
        factor = Number(float((k + HALF) % (2 * HALF) - HALF), e.span)
        made = Binary("add", Binary("mul", Cast(I32, Index(atom, e.span), e.span), factor, e.span), made, e.span)
    return made


def _wrapped(e: Expr) -> Expr:
    """An index as the number of i32 that its low bits are."""
    return (e + HALF) % (2 * HALF) - HALF
