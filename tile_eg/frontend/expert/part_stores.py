"""Stores of an element loop in a kernel that is kept to the first rows or columns of a window, as many as it finds when it runs:
`if i < n: C[s + i, j] = c[i, j]` is a copy of a slice of that length."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.frontend.expert.accesses import Axes, Unfit, window
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.guarded_stores import first_elements
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Assign, Parallel, Region
from tile_eg.ops.types import I32, Level

OPTIONS = {"transpose": False, "enable_relu": False, "pad_value": None}


def stored_in_part(r: ExpertReader, s: Assign, axes: Axes) -> bool:
    """Whether the statement is such a store, which is then done."""
    loop = Parallel(axes.names, tuple(axes.extent(n) for n in axes.names), (s,), s.span)
    found = first_elements(loop, s, lambda n: _of_whole_numbers(r, n)) if s.target.name in r.tensors and not s.atomic else None
    if found is None:
        return False
    value, counts = found
    if not isinstance(value, Region) or value.name not in r.held or r.held[value.name].level not in (Level.UB, Level.L0C):
        return False
    try:
        source, target = window(value, axes), window(s.target, axes)
    except Unfit:
        return False
    if source.shape != target.shape:
        return False
    known = {v: _between(r, n, axes.extent(v), s) for v, n in counts.items()}
    from tile_eg.frontend.expert.moves import copy

    assert s.span is not None
    copy(r, s.span, _counted(source, value, known), _counted(target, s.target, known), None, **OPTIONS)
    return True


def _of_whole_numbers(r: ExpertReader, name: str) -> tuple[int, ...] | None:
    return r.shape_named(name) if name not in r.scalars and r.dtype_of(name) is I32 else None


def _between(r: ExpertReader, count: Expr, most: int, s: Assign) -> Expr:
    """So many elements, none where it is below 0, and as many as there are at most."""
    return ix.minimum(most, ix.maximum(0, r.unit.settled(r, count, s.span)))


def _counted(x: Region, of: Region, counts: dict[str, Expr]) -> Region:
    """A window of which no more elements are meant along the variables that these are of."""
    along = (next((v for v in counts if v in ix.variables(start)), None) for start in of.starts)
    return replace(x, counts=tuple(counts[v] if v else None for v in along))
