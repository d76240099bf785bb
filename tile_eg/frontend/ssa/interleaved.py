"""Loops that write bytes in turns, `y[2*j] = a[j]` and `y[2*j + 1] = b[j]`: the two bytes of numbers of 16 bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_eg.frontend.liveness import regions
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import I16


def interleaved(kernel: kn.Kernel) -> kn.Kernel:
    """The kernel in which such a loop computes both halves by themselves and puts them together."""
    return replace(kernel, body=tuple(put_together(kernel.body, {})))


def put_together(body: tuple[kn.Stmt, ...], buffers: dict[str, kn.Alloc]) -> Iterator[kn.Stmt]:
    """The statements without such loops; `buffers` are those declared so far, and are added to."""
    for s in body:
        match s:
            case kn.Alloc():
                buffers[s.name] = s
                yield s
            case kn.If():
                then, otherwise = (tuple(put_together(arm, buffers)) for arm in (s.then, s.otherwise))
                yield replace(s, then=then, otherwise=otherwise)
            case kn.For() | kn.Parallel() if (found := _in_turns(s, buffers)) is not None:
                yield from _together(s, found, buffers)
            case kn.For():
                yield replace(s, body=tuple(put_together(s.body, buffers)))
            case _:
                yield s


def _in_turns(s: kn.For | kn.Parallel, buffers: dict[str, kn.Alloc]) -> kn.Alloc | None:
    """The buffer of bytes that a loop fills, every trip two of them next to each other."""
    variable, extent = (s.var, s.extent) if isinstance(s, kn.For) else (s.vars[0], s.extents[0])
    if (isinstance(s, kn.For) and (s.start or s.count is not None)) or (isinstance(s, kn.Parallel) and len(s.vars) > 1):
        return None
    found = [a for a in s.body if isinstance(a, kn.Assign) and not a.atomic]
    buffer = buffers.get(found[0].target.name) if len(found) == len(s.body) == 2 else None
    if buffer is None or buffer.dtype.bits != 8 or buffer.shape != (2 * extent,):
        return None
    places = [a.target.starts[0] if a.target.name == buffer.name and a.target.extents == (None,) else None for a in found]
    read = {r.name for a in found for r in regions(a.value)}
    return buffer if places == [ix.var(variable) * 2, ix.var(variable) * 2 + 1] and buffer.name not in read else None


def _together(s: kn.For | kn.Parallel, buffer: kn.Alloc, buffers: dict[str, kn.Alloc]) -> Iterator[kn.Stmt]:
    variable, extent = (s.var, s.extent) if isinstance(s, kn.For) else (s.vars[0], s.extents[0])
    halves, own = [], []
    for n, a in enumerate(s.body):
        assert isinstance(a, kn.Assign)
        name = next(x for k in range(len(buffers) + 1) if (x := f"{buffer.name}_{n}{'_' * k}") not in buffers)
        buffers[name] = half = replace(buffer, name=name, shape=(extent,))
        yield half
        own.append(replace(a, target=kn.Region(name, (ix.var(variable),), (None,), a.span)))
        halves.append(kn.Cast(I16, kn.Region(name, (ix.ZERO,), (extent,), a.span), a.span))
    yield kn.Parallel((variable,), (extent,), tuple(own), s.span)
    low = kn.Binary("and", halves[0], kn.Number(255.0), s.span)
    both = kn.Binary("or", low, kn.Binary("shl", halves[1], kn.Number(8.0), s.span), s.span)
    whole = kn.Region(buffer.name, (ix.ZERO,), buffer.shape, s.span)
    yield kn.Assign(whole, kn.Bytes(buffer.dtype, both, s.span), s.span)
