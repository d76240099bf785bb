"""Tensors as the statements of a kernel see them: their elements in another shape."""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import TypeVar

from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel, Tensor

K = TypeVar("K", bound=Kernel)


def indexed(t: Tensor) -> Tensor:
    """The tensor in the shape that statements index. TileError where its strides have no such shape."""
    if not t.seen:
        return t
    return replace(t, shape=t.seen, seen=(), strides=_strides(t) if t.strides else ())


def as_indexed(kernel: K) -> K:
    """The kernel whose tensors have the shapes that its statements index."""
    return replace(kernel, tensors=tuple(map(indexed, kernel.tensors))) if any(t.seen for t in kernel.tensors) else kernel


def _strides(t: Tensor) -> tuple[int, ...]:
    """Elements from one to the next of each dimension that is seen."""
    left = list(zip(t.shape, t.strides, strict=True))
    out: list[int] = []
    for size in reversed(t.seen):
        count, step = 1, 0
        while count < size:
            n, apart = left.pop()
            taken = gcd(n, size // count)
            if n > 1 and (taken == 1 or (step and apart != step * count)):
                raise TileError(f"the kernel sees `{t.name}` as {list(t.seen)}, and it does not lie in GM so", t.span)
            step = step or (apart if n > 1 else 0)
            count *= taken
            if taken < n:
                left.append((n // taken, apart * taken))
        out.insert(0, step or 1)
    return tuple(out)
