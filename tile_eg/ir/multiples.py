"""Multiples of index expressions: whether one is a multiple of a number, and a multiple in the form of the expression itself."""

from __future__ import annotations

from math import gcd

from tile_eg.ir.index import Expr, minimum, terms_of


def is_multiple(e: Expr, n: int) -> bool:
    """Whether an index expression is a multiple of n, by its form."""
    if e.value is not None:
        return e.value % n == 0
    if e.op in ("min", "max"):
        return all(is_multiple(a, n) for a in e.args)
    terms = terms_of(e)
    return n == 1 or (e not in terms and all(is_multiple(t, n // gcd(factor, n)) for t, factor in terms.items()))


def times(e: Expr, n: int) -> Expr:
    """e * n, a minimum of products rather than a product of a minimum: what looks for the tile's size in it finds that."""
    return minimum(*(times(a, n) for a in e.args)) if e.op == "min" else e * n
