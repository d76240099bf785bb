"""Words of a kernel that is called with its arrays at once: sizes of its tensors by name, and tensors that it makes.

They stand before the launch, in the function under `@tile_eg.jit` that launches blocks itself; that part of it is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tile_eg.errors import TileError
from tile_eg.language.kernels import TensorType
from tile_eg.language.symbols import names_in, symbol
from tile_eg.language.words import number_word
from tile_eg.ops.records import record

_sizes: ContextVar[tuple[Mapping[str, int], set[str]] | None] = ContextVar("sizes", default=None)


@record(eq=False)
class Made(TensorType):
    """A tensor that a call makes, and gives back where the function returns it."""


@contextmanager
def sizes_known(sizes: Mapping[str, int]) -> Iterator[set[str]]:
    """While the part before a launch runs, `T.const` gives these sizes; a size that is not among them is known by its name. Gives
    the names that are asked for."""
    asked: set[str] = set()
    token = _sizes.set((sizes, asked))
    try:
        yield asked
    finally:
        _sizes.reset(token)


def _known(word: str) -> tuple[Mapping[str, int], set[str]]:
    found = _sizes.get()
    if found is None:
        help = "under @tile_eg.jit, in the function that launches blocks itself, and before the launch"
        raise TileError(f"T.{word} has no meaning here", help=help)
    return found


@number_word
def const(name: str, dtype: Any = "int32") -> Any:
    """Sizes of the tensors of a call, one name or several: `M, N = T.const("M, N")`. They are known when the kernel is compiled:
    a kernel is compiled for each of them."""
    (sizes, asked), names = _known("const"), names_in(name)
    asked.update(names)
    found = tuple(sizes[n] if n in sizes else symbol(n) for n in names)
    return found if len(found) > 1 else found[0]


@number_word
def empty(*shape: int | Sequence[int], dtype: Any = "float32") -> Any:
    """A tensor that the call makes, for the kernel to fill: `C = T.empty((M, N), T.float16)`; `return C` gives it back."""
    _known("empty")
    if len(shape) == 2 and isinstance(shape[0], list | tuple):
        return Made(tuple(shape[0]), shape[1])
    first = shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape
    return Made(tuple(first), dtype)
