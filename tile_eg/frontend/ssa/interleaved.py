"""Loops that write bytes in turns, `y[2*j] = a[j]` and `y[2*j + 1] = b[j]`: the two bytes of numbers of 16 bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tile_eg.frontend.liveness import regions
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import I16


def interleaved(kernel: kn.Kernel) -> kn.Kernel:
    """The kernel in which such a loop computes both halves by themselves and puts them together."""
    return replace(kernel, body=tuple(_statements(kernel.body, {})))


def _statements(body: tuple[kn.Stmt, ...], buffers: dict[str, kn.Alloc]) -> Iterator[kn.Stmt]:
    for s in body:
        match s:
            case kn.Alloc():
                buffers[s.name] = s
                yield s
            case kn.If():
                then, otherwise = (tuple(_statements(arm, buffers)) for arm in (s.then, s.otherwise))
                yield replace(s, then=then, otherwise=otherwise)
            case kn.For() | kn.Parallel() if (found := _in_turns(s, buffers)) is not None:
                yield from _together(s, found, buffers)
            case kn.For():
                yield replace(s, body=tuple(_statements(s.body, buffers)))
            case _:
                yield s


@dataclass(frozen=True)
class _Nest:
    """The assignments of a loop over elements, with its variables and their extents, outermost first."""

    variables: tuple[str, ...]
    extents: tuple[int, ...]
    body: tuple[kn.Assign, ...]


def _nest(s: kn.Stmt) -> _Nest | None:
    """A loop that does nothing but assign, as one nest; None where it has another start than 0, or counted trips."""
    match s:
        case kn.Parallel():
            return _Nest(s.vars, s.extents, s.body)
        case kn.For(start=0, count=None, body=(kn.For() | kn.Parallel() as inner,)):
            found = _nest(inner)
            return found and _Nest((s.var, *found.variables), (s.extent, *found.extents), found.body)
        case kn.For(start=0, count=None) if all(isinstance(a, kn.Assign) for a in s.body):
            return _Nest((s.var,), (s.extent,), s.body)  # type: ignore[arg-type]
    return None


def _in_turns(s: kn.For | kn.Parallel, buffers: dict[str, kn.Alloc]) -> kn.Alloc | None:
    """The buffer of bytes that a loop fills, every trip of the innermost one two of them next to each other."""
    nest = _nest(s)
    if nest is None or len(nest.body) != 2 or any(a.atomic for a in nest.body) or len(nest.variables) > 2:
        return None
    buffer = buffers.get(nest.body[0].target.name)
    *rows, cols = nest.extents
    if buffer is None or buffer.dtype.bits != 8 or buffer.shape != (*rows, 2 * cols):
        return None
    *row, col = map(ix.var, nest.variables)
    places = [a.target.starts if a.target.name == buffer.name and not a.target.shape else None for a in nest.body]
    read = {r.name for a in nest.body for r in regions(a.value)}
    return buffer if places == [(*row, col * 2), (*row, col * 2 + 1)] and buffer.name not in read else None


def _together(s: kn.For | kn.Parallel, buffer: kn.Alloc, buffers: dict[str, kn.Alloc]) -> Iterator[kn.Stmt]:
    nest = _nest(s)
    assert nest is not None
    halves, own = [], []
    for n, a in enumerate(nest.body):
        name = next(x for k in range(len(buffers) + 1) if (x := f"{buffer.name}_{n}{'_' * k}") not in buffers)
        buffers[name] = half = replace(buffer, name=name, shape=nest.extents, dtype=I16)
        yield half
        target = kn.Region(name, tuple(map(ix.var, nest.variables)), (None,) * len(half.shape), a.span)
        own.append(replace(a, target=target, value=kn.Cast(I16, kn.Cast(buffer.dtype, a.value, a.span), a.span)))
        halves.append(kn.Region(name, (ix.ZERO,) * len(half.shape), half.shape, a.span))
    yield kn.Parallel(nest.variables, nest.extents, tuple(own), s.span)
    low = kn.Binary("and", halves[0], kn.Number(255.0), s.span)
    both = kn.Binary("or", low, kn.Binary("shl", halves[1], kn.Number(8.0), s.span), s.span)
    whole = kn.Region(buffer.name, (ix.ZERO,) * len(buffer.shape), buffer.shape, s.span)
    yield kn.Assign(whole, kn.Bytes(buffer.dtype, both, s.span), s.span)
