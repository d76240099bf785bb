"""Powers of whole numbers, `x[i] ** n[i]`: products of x, x^2, x^4 and so on, each where that bit of the exponent is 1.

What does not fit keeps its low bits, as of every product. Exponents are 0 to 31: an element's low five bits count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_eg.errors import TileError
from tile_eg.ir.kernel import Binary, Cast, Choose, Number, TileExpr
from tile_eg.ops.types import DType

BITS = 5


def with_products(e: TileExpr, type_of: Callable[[TileExpr], DType | None]) -> TileExpr:
    """A power of whole numbers as products; any other expression as it is. TileError for an exponent that has none."""
    of = type_of(e.x) if isinstance(e, Binary) and e.op == "pow" else None
    if of is None or not of.whole:
        return e
    assert isinstance(e, Binary)
    if isinstance(e.y, Number):
        return _by_number(e, e.y)
    if (found := type_of(e.y)) is None or not found.whole:
        return e
    return _by_elements(e, e.y if found == of else Cast(of, e.y, e.span))


def _by_number(e: Binary, n: Number) -> TileExpr:
    if not (n.value.is_integer() and 0 <= n.value < 1 << BITS):
        help = "cast the base to a float for other powers"
        raise TileError(f"a power of whole numbers is 0 to {(1 << BITS) - 1} here, not {n.value:g}", n.span or e.span, help=help)
    left, square, found = int(n.value), e.x, None
    while left:
        if left & 1:
            found = square if found is None else Binary("mul", found, square, e.span)
        left >>= 1
        square = Binary("mul", square, square, e.span) if left else square
    return _one(e) if found is None else found


def _by_elements(e: Binary, exponent: TileExpr) -> TileExpr:
    found, square = _one(e), e.x
    for k in range(BITS):
        by = Binary("shr", exponent, Number(float(k), e.span), e.span) if k else exponent
        bit = Binary("and", by, Number(1.0, e.span), e.span)
        found = Choose("ne", bit, Number(0.0, e.span), Binary("mul", found, square, e.span), found, e.span)
        square = replace(e, op="mul", x=square, y=square)
    return found


def _one(e: Binary) -> TileExpr:
    """1, of the type of the base."""
    return Binary("or", Binary("and", e.x, Number(0.0, e.span), e.span), Number(1.0, e.span), e.span)
