"""Tensors whose elements do not lie one behind the other in GM: rows with gaps, dimensions in another order, repeated ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, TypeVar

from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ops.records import record

if TYPE_CHECKING:
    import numpy as np

K = TypeVar("K", bound=Kernel)


@record
class Layout:
    """How a tensor of any sizes lies in a larger array.

    `order` are its dimensions, the outermost one first, each with how many elements of it the array has (None: as many as the
    tensor). Those that are missing are repeated: all of their elements are the same.
    """

    order: tuple[tuple[int, int | None], ...]

    def strides(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Elements from one to the next of each dimension. TileError where the larger array is the smaller one."""
        found, step = [0] * len(shape), 1
        for dim, there in reversed(self.order):
            if there is not None and there < shape[dim]:
                raise TileError(f"{shape[dim]} elements do not lie in an array of {there}")
            found[dim] = step
            step *= shape[dim] if there is None else there
        return tuple(found)


Layouts = tuple[tuple[str, Layout], ...]
"""The layouts of some of a kernel's tensors, by name."""


def layout_of(shape: Sequence[int], strides: Sequence[int]) -> Layout | None:
    """The layout of an array by its strides, in elements; None where neither rows nor columns are runs, and for strides that no
    larger array gives."""
    count = len(shape)
    runs = [d for d in (count - 1, count - 2) if d >= 0 and (shape[d] == 1 or strides[d] == 1)]
    if not runs or 0 in shape:
        return None
    inner, step = runs[0], 1
    outer = [d for d in range(count) if d != inner and (shape[d] == 1 or strides[d] != 0)]
    order: list[tuple[int, int | None]] = []
    for d in sorted(outer, key=lambda d: (strides[d], -d)):
        there = strides[d] // step
        if shape[d] > 1 and (strides[d] % step or there < shape[inner]):
            return None
        there = max(there, shape[inner]) if strides[d] % step == 0 else shape[inner]
        order.append((inner, None if there == shape[inner] else there))
        inner, step = d, step * there
    return Layout(((inner, None), *reversed(order)))


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array whose elements lie one behind the other, in elements."""
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))


def strides_of(t: Tensor) -> tuple[int, ...]:
    """Elements from one to the next of each dimension of a tensor."""
    return t.strides or dense(t.shape)


def in_memory(t: Tensor) -> Tensor:
    """The run of GM that holds a tensor: from its first element to its last one, with what lies between them."""
    if not t.strides:
        return t
    last = sum((n - 1) * s for n, s in zip(t.shape, t.strides, strict=True))
    return replace(t, shape=(last + 1,), strides=(), seen=())


def memory_of(t: Tensor, array: np.ndarray) -> np.ndarray:
    """What `in_memory` holds for an array of a tensor; the gaps hold what nobody wrote."""
    import numpy as np

    from tile_eg.ir.arithmetic import nothing

    if not t.strides:
        return array
    held = np.full(in_memory(t).shape, nothing(array.dtype), array.dtype)
    steps = [s * array.itemsize for s in t.strides]
    np.lib.stride_tricks.as_strided(held, t.shape, steps)[...] = array
    return held


def laid_out(kernel: K, layouts: Layouts) -> K:
    """The kernel with some of its inputs lying so. TileError where one is too large for that, or is written."""
    if not layouts:
        return kernel
    wanted = dict(layouts)
    made = replace(kernel, tensors=tuple(_laid_out(t, wanted) for t in kernel.tensors))
    if isinstance(made, OpenKernel):
        build = made.build
        made = replace(made, build=lambda at: laid_out(build(at), layouts))
    return made


def _laid_out(t: Tensor, layouts: Mapping[str, Layout]) -> Tensor:
    if t.name not in layouts:
        return t
    if t.output:
        raise TileError(f"{t.name} is written, and lies in one run", t.span)
    found = layouts[t.name].strides(t.shape)
    return t if found == dense(t.shape) else replace(t, strides=found)
