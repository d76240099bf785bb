"""A branch whose condition is not the same everywhere, as choices: targets keep what they hold where they are not meant.

The condition is one of indices, which no statement changes, so that it may be asked at each assignment.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tile_eg.frontend.ranges import Ranges, extremes
from tile_eg.frontend.scalars import negation
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.operands import regions


def as_choices(s: kn.If, tensors: dict[str, kn.Tensor], ranges: Ranges) -> tuple[kn.Stmt, ...] | None:
    """The statements of both arms with choices; None where one stores to a tensor, or reads one where it may end."""
    body = (*_guarded(s.then, s.condition), *_guarded(s.otherwise, negation(s.condition)))
    return body if not elements_in(s.condition) and _harmless(body, tensors, ranges) else None


def _guarded(body: tuple[kn.Stmt, ...], c: Expr) -> tuple[kn.Stmt, ...]:
    return tuple(_under(s, c) for s in body)


def _under(s: kn.Stmt, c: Expr) -> kn.Stmt:
    match s:
        case kn.Assign():
            return replace(s, value=kn.Select(c, s.value, s.target, s.span, branch=True))
        case kn.For() | kn.Parallel():
            return replace(s, body=_guarded(s.body, c))  # type: ignore[arg-type]
        case kn.If():
            return replace(s, then=_guarded(s.then, c), otherwise=_guarded(s.otherwise, c))
    return s


def _harmless(body: Collection[kn.Stmt], tensors: dict[str, kn.Tensor], ranges: Ranges) -> bool:
    for s in body:
        match s:
            case kn.Assign():
                reads = [r for r in regions(s.value) if r.name in tensors]
                if s.atomic or s.target.name in tensors or not all(_inside(r, tensors[r.name], ranges) for r in reads):
                    return False
            case kn.For() | kn.Parallel():
                names = (s.var,) if isinstance(s, kn.For) else s.vars
                starts, extents = ((s.start,), (s.extent,)) if isinstance(s, kn.For) else ((0,) * len(names), s.extents)
                inner = {n: (a, a + e - 1) for n, a, e in zip(names, starts, extents, strict=True)}
                if (isinstance(s, kn.For) and s.count is not None) or not _harmless(s.body, tensors, {**ranges, **inner}):
                    return False
            case kn.If():
                if not _harmless((*s.then, *s.otherwise), tensors, ranges):
                    return False
    return True


def _inside(r: kn.Region, tensor: kn.Tensor, ranges: Ranges) -> bool:
    """Whether a window begins in its tensor wherever the condition is asked."""
    for start, size in zip(r.starts, tensor.shape, strict=True):
        if elements_in(start) or not ix.variables(start) <= ranges.keys():
            return False
        low, high = extremes(start, ranges)
        if low < 0 or high >= size:
            return False
    return True
