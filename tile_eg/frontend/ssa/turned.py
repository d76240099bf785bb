"""Element loops that read a buffer in another order than they write, `y[i, j] = x[j, i]`, `x[i, 2*j]`, `x[i, j // 8]`: gathers.

The place of each element, in bytes, is a tile of its own; the loop then reads what was gathered, in its own order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from math import prod
from typing import Any

from tile_eg.frontend.liveness import assigned
from tile_eg.frontend.ssa.loops import Buffers, Loop, with_loops
from tile_eg.frontend.ssa.pieces import blocks
from tile_eg.frontend.ssa.position_values import are_computed, with_known_positions
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import place_in
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.ir.operands import regions
from tile_eg.ops.types import BF16, F16, F32, I8, I32, U8, U16, U32, DType
from tile_eg.ops.whole_tiles import IN_BLOCKS, WORDS

BYTES = (U8, I8)
WIDE = {BF16: F32, **dict.fromkeys(BYTES, F16)}
"""Element types that are not gathered, and those that hold their numbers and are."""
NOT_SUMMED = (I32, U32, U16)
"""Element types of which a column is gathered, as no sum with zeros gives its elements."""
EVERY = (2, 4)
"""Steps for which there is an instruction that takes elements so far apart."""


def turned(kernel: kn.Kernel) -> kn.Kernel:
    """The kernel with such loops in terms of gathers."""
    return with_loops(kernel, _instead)


def _instead(s: Loop, buffers: Buffers) -> Iterator[kn.Stmt] | None:
    return _loop(s, buffers) if isinstance(s, kn.Parallel) else None


def _loop(s: kn.Parallel, buffers: Buffers) -> Iterator[kn.Stmt]:
    """What is gathered before the loop, and the loop that reads it."""
    written, places = assigned(s.body), dict[kn.Region, kn.TileExpr]()
    for a in s.body:
        for r in regions(a.value):
            if r.name in buffers and r.name not in written and r not in places and _is_turned(r, s, buffers[r.name]):
                yield from _gathered(r, s, buffers)
                name = list(buffers)[-1]
                found = kn.Region(name, tuple(map(ix.var, s.vars)), (None,) * len(s.vars), r.span)
                places[r] = found if buffers[r.name].dtype not in BYTES else kn.Cast(buffers[r.name].dtype, found, r.span)
    yield replace(s, body=tuple(replace(a, value=_replaced(a.value, places)) for a in s.body)) if places else s


def _is_turned(r: kn.Region, s: kn.Parallel, of: kn.Alloc) -> bool:
    """Whether an element is read across the loop's order: another axis' variable, or a step that is not 1 along a row."""
    if any(e is not None for e in r.extents) or len(s.vars) > 2 or of.dtype not in (*WORDS, *WIDE):
        return False
    steps = [{v: k for v in s.vars if (k := step_of(start, v)) != 0} for start in r.starts]
    if None in [k for of_axis in steps for k in of_axis.values()]:
        return are_computed(place_in(of.shape, r.starts), s)
    if len(s.vars) == len(steps) == 2 and (s.vars[1] in steps[0] or (s.vars[0] in steps[1] and steps[0])):
        return True
    column = len(s.vars) == 1 and len(steps) > 1 and bool(steps[-2]) and not steps[-1]
    return any(k != 1 for k in steps[-1].values()) or (column and of.dtype in NOT_SUMMED)


def step_of(e: Expr, variable: str) -> int | None:
    """By how much an index grows with a variable; None where it is not linear in it."""
    found = 0
    for atom, k in ix.terms_of(e).items():
        if atom == ix.var(variable):
            found = k
        elif variable in ix.variables(atom):
            return None
    return found


def _gathered(r: kn.Region, s: kn.Parallel, buffers: Buffers) -> Iterator[kn.Stmt]:
    """Statements that put the elements that a region reads into a buffer of the loop's shape, the last one of `buffers`."""
    of, variables = buffers[r.name], tuple(map(ix.var, s.vars))
    source = kn.Region(of.name, (ix.ZERO,) * len(of.shape), of.shape, r.span)
    if of.dtype in WIDE:
        dtype = WIDE[of.dtype]
        wide = _new(f"{of.name}_{dtype}", of, of.shape, dtype, buffers)
        yield wide
        of, source = wide, kn.Region(wide.name, source.starts, source.extents, r.span)
        yield kn.Assign(source, kn.Cast(dtype, kn.Region(r.name, source.starts, source.extents, r.span), r.span), s.span)
    if not _has_gaps(of.shape, of.dtype) and (step := _every(r, s, of.shape)) is not None:
        found = _new(f"{r.name}_turned", of, s.extents, of.dtype, buffers)
        yield found
        whole = kn.Region(found.name, (ix.ZERO,) * len(s.extents), s.extents, s.span)
        yield kn.Assign(whole, kn.Whole("every", (source,), step, r.span), s.span)
        return
    if len(s.vars) == 2 and r.starts == variables[::-1] and of.shape == s.extents[::-1]:
        found = _new(f"{r.name}_turned", of, s.extents, of.dtype, buffers)
        yield found
        whole = kn.Region(found.name, (ix.ZERO,) * 2, s.extents, s.span)
        yield kn.Assign(whole, kn.Whole("transpose", (source,), (0, 0), r.span), s.span)
        return
    offsets = _new(f"{r.name}_offsets", of, s.extents, F32, buffers)
    found = _new(f"{r.name}_turned", of, s.extents, of.dtype, buffers)
    yield from (offsets, found)
    point = kn.Region(offsets.name, variables, (None,) * len(variables), s.span)
    gaps = _has_gaps(of.shape, of.dtype)
    shape = (*of.shape[:-1], blocks(of.shape[-1], of.dtype)) if gaps else of.shape
    bytes_of = kn.Index(place_in(shape, r.starts) * of.dtype.bytes, s.span)
    yield with_known_positions(kn.Parallel(s.vars, s.extents, (kn.Assign(point, bytes_of, s.span),), s.span))
    zeros = (ix.ZERO,) * len(s.extents)
    at = kn.Cast(U32, kn.Cast(I32, kn.Region(offsets.name, zeros, s.extents, s.span), s.span), s.span)
    in_blocks = gaps or _has_gaps(s.extents, U32)
    taken = kn.Whole("gather", (source, at), (IN_BLOCKS if in_blocks else 0, 0), r.span, _along(r, s))
    yield kn.Assign(kn.Region(found.name, zeros, s.extents, s.span), taken, s.span)


def _has_gaps(shape: tuple[int, ...], dtype: DType) -> bool:
    """Whether the rows of a tile are no whole blocks."""
    return prod(shape[:-1]) > 1 and shape[-1] * dtype.bytes % BLOCK_BYTES != 0


def _along(r: kn.Region, s: kn.Parallel) -> tuple[tuple[int, int, int], ...]:
    """Which element of the buffer each one of the loop takes, axis by axis (`kn.Whole.along`)."""
    if len(r.starts) != len(s.vars):
        return ()
    return tuple(_of_axis(e, v) for e, v in zip(r.starts, s.vars, strict=True))


def _of_axis(e: Expr, variable: str) -> tuple[int, int, int]:
    e, per = (e.args[0], e.args[1].value) if e.op == "div" else (e, 1)
    step = step_of(e, variable)
    first = None if step is None else (e - ix.var(variable) * step).value
    return (step, first, per) if step and step > 0 and first is not None and first >= 0 and per else (0, 0, 0)


def _every(r: kn.Region, s: kn.Parallel, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """The first element of each row and the step, where a region reads every second or fourth element of all rows of a buffer."""
    *rows, col = map(ix.var, s.vars)
    step = step_of(r.starts[-1], s.vars[-1])
    first = None if step is None else (r.starts[-1] - col * step).value
    if step not in EVERY or first is None or not 0 <= first < step:
        return None
    return (first, step) if (*rows,) == r.starts[:-1] and shape == (*s.extents[:-1], s.extents[-1] * step) else None


def _new(name: str, like: kn.Alloc, shape: tuple[int, ...], dtype: DType, buffers: Buffers) -> kn.Alloc:
    """A buffer of a name that is free."""
    name = next(n for k in range(len(buffers) + 1) if (n := name + "_" * k) not in buffers)
    buffers[name] = made = replace(like, name=name, shape=shape, dtype=dtype)
    return made


def _replaced(e: Any, places: dict[kn.Region, kn.TileExpr]) -> Any:
    """An expression with other regions in it."""
    if isinstance(e, tuple):
        return tuple(_replaced(x, places) for x in e)
    if isinstance(e, kn.Region):
        return places.get(e, e)
    if is_dataclass(e) and not isinstance(e, (Expr, kn.Span, type)) and hasattr(e, "span"):
        return replace(e, **{f.name: _replaced(getattr(e, f.name), places) for f in fields(e)})  # type: ignore[type-var]
    return e
