"""Loops that write elements in turns, `y[2*j] = a[j]` and `y[2*j + 1] = b[j]`: bytes are the two of numbers of 16 bits, longer
elements are gathered from both halves beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_eg.frontend.ssa.loops import Buffers, Loop, with_loops
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.ir.operands import regions
from tile_eg.ops.records import record
from tile_eg.ops.types import F32, I16, I32, U32
from tile_eg.ops.whole_tiles import WORDS


def interleaved(kernel: kn.Kernel) -> kn.Kernel:
    """The kernel in which such a loop computes both halves by themselves and puts them together."""
    return with_loops(kernel, _instead)


def _instead(s: Loop, buffers: Buffers) -> Iterator[kn.Stmt] | None:
    found = _in_turns(s, buffers)
    return None if found is None else _together(s, found, buffers)


@record
class Nest:
    """The assignments of a loop over elements, with its variables and their extents, outermost first."""

    variables: tuple[str, ...]
    extents: tuple[int, ...]
    body: tuple[kn.Assign, ...]


def _nest(s: kn.Stmt) -> Nest | None:
    """A loop that does nothing but assign, as one nest; None where it has another start than 0, or counted trips."""
    match s:
        case kn.Parallel():
            return Nest(s.vars, s.extents, s.body)
        case kn.For(start=0, count=None, body=(kn.For() | kn.Parallel() as inner,)):
            found = _nest(inner)
            return found and Nest((s.var, *found.variables), (s.extent, *found.extents), found.body)
        case kn.For(start=0, count=None) if all(isinstance(a, kn.Assign) for a in s.body):
            return Nest((s.var,), (s.extent,), s.body)  # type: ignore[arg-type]
    return None


def _in_turns(s: Loop, buffers: Buffers) -> kn.Alloc | None:
    """The buffer that a loop fills element by element in turns, where its halves can be put together."""
    nest = elements_in_turns(s, buffers)
    if nest is None:
        return None
    buffer, cols = buffers[nest.body[0].target.name], nest.extents[-1]
    if buffer.dtype.bits != 8 and (buffer.dtype not in WORDS or cols * buffer.dtype.bytes % BLOCK_BYTES):
        return None
    return buffer


def elements_in_turns(s: Loop, buffers: Buffers) -> Nest | None:
    """A loop that fills a buffer, every trip of the innermost loop two elements next to each other, and does not read it."""
    nest = _nest(s)
    if nest is None or len(nest.body) != 2 or any(a.atomic for a in nest.body) or len(nest.variables) > 2:
        return None
    buffer = buffers.get(nest.body[0].target.name)
    *row, col = map(ix.var, nest.variables)
    if buffer is None or buffer.shape != (*nest.extents[:-1], 2 * nest.extents[-1]):
        return None
    places = [a.target.starts if a.target.name == buffer.name and not a.target.shape else None for a in nest.body]
    read = {r.name for a in nest.body for r in regions(a.value)}
    return nest if places == [(*row, col * 2), (*row, col * 2 + 1)] and buffer.name not in read else None


def _together(s: Loop, buffer: kn.Alloc, buffers: Buffers) -> Iterator[kn.Stmt]:
    nest = _nest(s)
    assert nest is not None
    halves, own, bytes_ = [], [], buffer.dtype.bits == 8
    for n, a in enumerate(nest.body):
        name = free_name(f"{buffer.name}_{n}", buffers)
        buffers[name] = half = replace(buffer, name=name, shape=nest.extents, dtype=I16 if bytes_ else buffer.dtype)
        yield half
        target = kn.Region(name, tuple(map(ix.var, nest.variables)), (None,) * len(half.shape), a.span)
        value = kn.Cast(I16, kn.Cast(buffer.dtype, a.value, a.span), a.span) if bytes_ else a.value
        own.append(replace(a, target=target, value=value))
        halves.append(all_of(half, a.span))
    yield kn.Parallel(nest.variables, nest.extents, tuple(own), s.span)
    if bytes_:
        low = kn.Binary("and", halves[0], kn.Number(255.0), s.span)
        both = kn.Binary("or", low, kn.Binary("shl", halves[1], kn.Number(8.0), s.span), s.span)
        yield kn.Assign(all_of(buffer, s.span), kn.Bytes(buffer.dtype, both, s.span), s.span)
    else:
        yield from _gathered(s, buffer, (halves[0], halves[1]), buffers)


def free_name(name: str, buffers: Buffers) -> str:
    return next(x for k in range(len(buffers) + 1) if (x := name + "_" * k) not in buffers)


def all_of(buffer: kn.Alloc, span: kn.Span | None) -> kn.Region:
    return kn.Region(buffer.name, (ix.ZERO,) * len(buffer.shape), buffer.shape, span)


def _gathered(
    s: Loop, buffer: kn.Alloc, halves: tuple[kn.Region, kn.Region], buffers: Buffers
) -> Iterator[kn.Stmt]:
    """Both halves side by side, and each element from its place there: column j from j // 2 in the half j % 2."""
    size, cols, shape = buffer.dtype.bytes, buffer.shape[-1] // 2, buffer.shape
    made = {}
    for what, dtype in (("both", buffer.dtype), ("column", F32), ("row", F32), ("half", F32)):
        name = free_name(f"{buffer.name}_{what}", buffers)
        buffers[name] = made[what] = replace(buffer, name=name, dtype=dtype)
        yield made[what]
    for n, half in enumerate(halves):
        starts = (*half.starts[:-1], ix.const(n * cols))
        yield kn.Assign(replace(half, name=made["both"].name, starts=starts), half, s.span)
    axes = tuple(f"{buffer.name}_{axis}" for axis in "ij"[-len(shape) :])
    begins = ix.var(axes[0]) * (2 * cols * size) if len(shape) > 1 else ix.ZERO
    for what, place in (("column", ix.var(axes[-1])), ("row", begins)):
        point = kn.Region(made[what].name, tuple(map(ix.var, axes)), (None,) * len(shape), s.span)
        yield kn.Parallel(axes, shape, (kn.Assign(point, kn.Index(place, s.span), s.span),), s.span)
    column, row, half = (all_of(made[what], s.span) for what in ("column", "row", "half"))
    times = lambda x, n: kn.Binary("mul", x, kn.Number(float(n)), s.span)  # noqa: E731
    plus = lambda op, x, y: kn.Binary(op, x, y, s.span)  # noqa: E731
    yield kn.Assign(half, kn.Unary("floor", times(column, 0.5), s.span), s.span)
    odd = times(plus("sub", column, times(half, 2)), cols * size)
    at = plus("add", plus("add", odd, times(half, size)), row)
    offsets = kn.Cast(U32, kn.Cast(I32, at, s.span), s.span)
    yield kn.Assign(all_of(buffer, s.span), kn.Whole("gather", (all_of(made["both"], s.span), offsets), (0, 0), s.span), s.span)
