"""Windows that begin before their tensor: the offset of a load says how many columns of zeros stand before what it loads.

They are the factor of a variable of their own in it, so that whatever moves or compares loads by their offsets keeps them.
"""

from __future__ import annotations

from tile_eg.ir.index import ONE, ZERO, Expr, substitute, var, variables

LEFT = "left"
"""The variable, whose factor is the number of columns."""


def padded_on_the_left(offset: Expr, columns: Expr) -> Expr:
    """The offset of the first element that is loaded, with the columns of zeros before it."""
    return offset if columns == ZERO else offset + columns * var(LEFT)


def without_padding(offset: Expr) -> tuple[Expr, Expr]:
    """The offset of the first element that is loaded, and the columns of zeros before it."""
    if LEFT not in variables(offset):
        return offset, ZERO
    plain = substitute(offset, {LEFT: ZERO})
    return plain, substitute(offset, {LEFT: ONE}) - plain
