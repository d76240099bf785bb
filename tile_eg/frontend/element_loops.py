"""Element loops as they are read, in each of the frontends: what a loop means that stands in a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tile_eg.frontend.chosen_indices import with_chosen_indices
from tile_eg.frontend.guarded_parts import Shapes, conditions, parted, reads_outside
from tile_eg.frontend.guarded_windows import TensorShape, is_cut_off, is_guarded, with_guarded_windows
from tile_eg.frontend.narrow_positions import Ranges, Types, with_low_bits
from tile_eg.frontend.ssa.position_values import with_known_positions
from tile_eg.frontend.wide_positions import with_wide_positions
from tile_eg.ir import index as ix
from tile_eg.ir.kernel import For, Parallel, Stmt, at_places

MOST_TRIPS = 16
"""Trips of a loop that are read one by one."""


def read_as(
    s: Parallel, types: Types, shapes: Shapes, unique: Callable[[str], str], ranges: Ranges, tensor: TensorShape = lambda _: None
) -> Iterator[Parallel]:
    """The loop, or loops over its parts. `types` and `shapes` are those of buffers and tensors, `tensor` those of tensors alone,
    `ranges` those of the variables outside of it; new variables are `unique`."""
    narrow = with_wide_positions(with_low_bits(with_chosen_indices(s, shapes, types), types, ranges), types)
    whole = _without_single(narrow)
    parts = [with_guarded_windows(p, tensor, ranges) for p in parted(whole, shapes, unique)]
    columns = any(len(p.vars) < len(whole.vars) and is_guarded(p) for p in parts)  # a column of a window has no zeros around it
    if columns or len(parts) > 1 and any(is_cut_off(p, tensor, ranges) for p in parts):
        parts = [with_guarded_windows(whole, tensor, ranges)]
    yield from map(with_known_positions, parts)


def trip_by_trip(
    s: For, types: Types, shapes: Shapes, unique: Callable[[str], str], ranges: Ranges, tensor: TensorShape = lambda _: None
) -> list[Stmt]:
    """A loop over element loops whose choices leave out what is not there in some trips, as these loops one by one. It stays a
    loop where it holds anything else, or its trips would still read outside."""
    loops = [b for b in s.body if isinstance(b, Parallel)]
    own = {s.var: (s.start, s.start + s.extent - 1)}
    if s.kind != "serial" or s.count is not None or s.extent > MOST_TRIPS or len(loops) < len(s.body):
        return [s]
    if not any(_chooses_by(s.var, p) and reads_outside(p, shapes, own) for p in loops):
        return [s]
    made: list[Stmt] = []
    for n in range(s.start, s.start + s.extent):
        for p in loops:
            at = replace(p, body=tuple(at_places(a, {s.var: ix.const(n)}) for a in p.body))
            names = {v: unique(v) for v in p.vars}
            body = tuple(at_places(a, {v: ix.var(name) for v, name in names.items()}) for a in at.body)
            made += read_as(replace(at, vars=tuple(names.values()), body=body), types, shapes, unique, ranges, tensor)
    return [s] if any(isinstance(p, Parallel) and reads_outside(p, shapes) for p in made) else made


def by_trips(s: Parallel, shapes: Shapes, around: Ranges) -> str | None:
    """The variable of a loop around an element loop, in whose trips choices leave out other elements that are not there."""
    return next((v for v, values in around.items() if _chooses_by(v, s) and reads_outside(s, shapes, {v: values})), None)


def _chooses_by(v: str, s: Parallel) -> bool:
    """Whether a choice in a loop goes by a variable."""
    return any(v in ix.variables(c) for a in s.body for c in conditions(a))


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
