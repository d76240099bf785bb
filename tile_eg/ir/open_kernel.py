"""A kernel whose block sizes the author left open (`auto`): the search is to find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from typing import Any

from tile_eg.errors import InOrder, TileError, attempted, searchable
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.ops.records import record

Build = Callable[[Mapping[str, Any]], Kernel | InOrder]
"""Gives a kernel at some sizes, or that the search has no form for it."""
AUTO = "auto"
FIRST = (64, 32, 128, 16)  # sizes to look at a kernel with
OTHERS = (48, 192)  # and others, to see what depends on one: operands with scales take multiples of 64


class NoBlocks(Exception):
    """The grid is empty at the sizes of a call: it does nothing, and there is nothing to compile. `tensors` are its arguments."""

    def __init__(self, tensors: Sequence[Tensor] = ()) -> None:
        super().__init__()
        self.tensors = tensors


@record
class OpenKernel(Kernel):
    """The kernel at some sizes for those in `open`; `build` gives it at any others. Its tensors are the same for all of them.

    `parts` gives kernels of some of its outputs each, which have nothing but inputs in common; none where there are no such ones.
    """

    open: tuple[str, ...] = ()
    build: Callable[[Mapping[str, int]], Kernel] = field(default=lambda _: None, compare=False, repr=False)  # type: ignore[assignment,return-value]
    parts: Callable[[], Sequence[Kernel]] = field(default=lambda: (), compare=False, repr=False)


def open_kernel(names: Sequence[str], build: Build) -> OpenKernel | InOrder:
    """The kernel with these sizes left open; or that the search has no form for it. TileError where it cannot be built, or where
    a tensor's shape depends on one."""
    sizes, kernel = _first([dict.fromkeys(names, size) for size in FIRST], build)
    for name in names:
        _, other = _first([{**sizes, name: size} for size in OTHERS], build)
        if isinstance(kernel, InOrder) or isinstance(other, InOrder):
            return kernel if isinstance(kernel, InOrder) else other  # type: ignore[return-value]
        _check_tensors(name, kernel, other)
    same = {f.name: getattr(kernel, f.name) for f in fields(Kernel)}
    return OpenKernel(**same, open=tuple(names), build=lambda at: searchable(build(at)))


def _first(choices: Sequence[dict[str, int]], build: Build) -> tuple[dict[str, int], Kernel | InOrder]:
    """The kernel at the first sizes at which there is one; else what there is at the first of all."""
    found: list[InOrder | TileError] = []
    for sizes in choices:
        kernel = attempted(lambda: build(sizes))  # noqa: B023
        if isinstance(kernel, Kernel):
            return sizes, kernel
        found.append(kernel)
    if isinstance(found[0], TileError):
        raise found[0]
    return choices[0], found[0]


def _check_tensors(name: str, one: Kernel, other: Kernel) -> None:
    for a, b in zip(one.tensors, other.tensors, strict=True):
        if a != b:
            message = f"`{name}` is {AUTO}, and the shape of `{a.name}` depends on it"
            raise TileError(message, a.span, help=f"the search finds sizes of blocks, not of tensors: give {name} a number")
