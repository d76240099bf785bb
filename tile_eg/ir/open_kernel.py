"""A kernel whose block sizes the author left open (`auto`): the search is to find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel, Tensor

AUTO = "auto"
FIRST = (64, 32, 128, 16)  # sizes to look at a kernel with
OTHER = 48


class NoBlocks(Exception):
    """The grid is empty at the sizes of a call: it does nothing, and there is nothing to compile. `tensors` are its arguments."""

    def __init__(self, tensors: Sequence[Tensor] = ()) -> None:
        super().__init__()
        self.tensors = tensors


@dataclass(frozen=True)
class OpenKernel(Kernel):
    """The kernel at some sizes for those in `open`; `build` gives it at any others. Its tensors are the same for all of them."""

    open: tuple[str, ...] = ()
    build: Callable[[Mapping[str, int]], Kernel] = field(default=lambda _: None, compare=False, repr=False)  # type: ignore[assignment,return-value]


def open_kernel(names: Sequence[str], build: Callable[[Mapping[str, int]], Kernel]) -> OpenKernel:
    """The kernel with these sizes left open. TileError where it cannot be built, or where a tensor's shape depends on one."""
    sizes, kernel = _first(names, build)
    for name in names:
        _check_tensors(name, kernel, build({**sizes, name: OTHER}))
    same = {f.name: getattr(kernel, f.name) for f in fields(Kernel)}
    return OpenKernel(**same, open=tuple(names), build=build)


def _first(names: Sequence[str], build: Callable[[Mapping[str, int]], Kernel]) -> tuple[dict[str, int], Kernel]:
    """The kernel at the first sizes at which there is one."""
    fault: TileError | None = None
    for size in FIRST:
        sizes = dict.fromkeys(names, size)
        try:
            return sizes, build(sizes)
        except TileError as error:
            fault = fault or error
    assert fault is not None
    raise fault


def _check_tensors(name: str, one: Kernel, other: Kernel) -> None:
    for a, b in zip(one.tensors, other.tensors, strict=True):
        if a != b:
            message = f"`{name}` is {AUTO}, and the shape of `{a.name}` depends on it"
            raise TileError(message, a.span, help=f"the search finds sizes of blocks, not of tensors: give {name} a number")
