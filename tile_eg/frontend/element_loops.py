"""Element loops as they are read, in each of the frontends: what a loop means that stands in a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tile_eg.frontend.guarded_parts import Shapes, parted
from tile_eg.frontend.narrow_positions import Ranges, Types, with_low_bits
from tile_eg.frontend.ssa.position_values import with_known_positions
from tile_eg.ir import index as ix
from tile_eg.ir.kernel import Parallel, at_places


def read_as(s: Parallel, types: Types, shapes: Shapes, unique: Callable[[str], str], ranges: Ranges) -> Iterator[Parallel]:
    """The loop, or loops over its parts. `types` and `shapes` are those of buffers and tensors, `ranges` those of the variables
    outside of it; new variables are `unique`."""
    for part in parted(_without_single(with_low_bits(s, types, ranges)), shapes, unique):
        yield with_known_positions(part)


def _without_single(s: Parallel) -> Parallel:
    """The loop without variables of one iteration that do not say which element is written."""
    known = [(v, n) for v, n in zip(s.vars, s.extents, strict=True) if n != 1 or all(_is_in(v, a.target.starts) for a in s.body)]
    if not known or len(known) == len(s.vars):
        return s
    gone = dict.fromkeys({*s.vars} - {v for v, _ in known}, ix.ZERO)
    names, extents = zip(*known, strict=True)
    return replace(s, vars=names, extents=extents, body=tuple(at_places(a, gone) for a in s.body))


def _is_in(v: str, starts: tuple[ix.Expr, ...]) -> bool:
    return any(v in ix.variables(e) for e in starts)
