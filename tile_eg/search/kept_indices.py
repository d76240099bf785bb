"""Where a copy of a kept kernel leaves its tensor: the element that it begins at, and the index that is read, if one is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from tile_eg.errors import Span
from tile_eg.ir.index import terms_of
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Gm, Instr, walk


def out_of_tensor(message: str, kernel: KeptKernel, place: Span | None, given: Sequence[Tensor] = ()) -> str:
    """The index of the first byte that a finding at a line of the source names in a tensor; "" where it names none. `given` are
    the tensors of the launch: an array may end before its tensor.

    Where an index of the window is read from a buffer or a tensor, that is the one that is too large or too small.
    """
    found = re.search(r"bytes \[(-?\d+), -?\d+\) of (\w+)", message)
    tensor = next((t for t in kernel.tensors if found and t.name == found[2]), None)
    if found is None or tensor is None:
        return ""
    at, sizes = int(found[1]) // tensor.dtype.bytes, ", ".join(map(str, tensor.shape))
    axis = _axis_read(kernel, tensor, place)
    index = _index(at, tensor.shape, axis or 0)
    told = f"that begins at {tensor.name}[{', '.join(map(str, index))}], and {tensor.name} has the shape ({sizes})"
    if axis is not None and not 0 <= index[axis] < tensor.shape[axis]:
        told += f": the index {index[axis]} is read, and has to be one from 0 to {tensor.shape[axis] - 1}"
    short = next((t for t in given if t.name == tensor.name and t.shape != tensor.shape), None)
    return told + (f"; the array that was passed ends after {short.shape[0]} elements" if short else "")


def _index(at: int, shape: tuple[int, ...], axis: int) -> list[int]:
    """The index of an element, all that is too much in this axis."""
    found = [0] * len(shape)
    for k in reversed(range(axis + 1, len(shape))):
        at, found[k] = divmod(at, shape[k])
    found[axis] = at
    return found


def _axis_read(kernel: KeptKernel, tensor: Tensor, place: Span | None) -> int | None:
    """The axis whose index is read on this line, where those before it have one element."""
    steps = [prod(tensor.shape[k + 1 :]) for k in range(len(tensor.shape))]
    read = {c for o in _windows(kernel, tensor, place) for e, c in terms_of(o.offset).items() if elements_in(e)}
    return next((k for k, step in enumerate(steps) if step in read and prod(tensor.shape[:k]) == 1), None)


def _windows(kernel: KeptKernel, tensor: Tensor, place: Span | None) -> Iterator[Gm]:
    for n in walk((*kernel.cube, *kernel.vector)):
        if isinstance(n, Instr) and n.span and place and n.span.line == place.line:
            yield from (o for o in (*n.reads(), *n.writes()) if isinstance(o, Gm) and o.tensor == tensor.name)
