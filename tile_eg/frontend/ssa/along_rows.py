"""Elements of a tensor that say where the rows of a window lie: how many of them there are, so many rows exist."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr


class Along(NamedTuple):
    """Neighbours in one dimension of a tensor, one for each row of a window: the `first` one's place there, and the `size` of the
    dimension."""

    first: Expr
    size: int


def rows_along(place: Expr, shape: tuple[int, ...]) -> Along | None:
    """Where the element at `place` of a tensor of this shape goes with the row `EACH` along one dimension; None for others."""
    step = ix.terms_of(place).get(ix.var(ix.EACH), 0)
    first = place - ix.var(ix.EACH) * step
    if step < 1 or ix.EACH in ix.variables(first):
        return None
    strides = [prod(shape[a + 1 :]) for a in range(len(shape))]
    axes = [a for a, stride in enumerate(strides) if stride == step and (shape[a] > 1 or len(shape) == 1)]
    if not axes:
        return None
    at = first // step
    return Along(at if axes[-1] == 0 else ix.mod(at, ix.const(shape[axes[-1]])), shape[axes[-1]])
