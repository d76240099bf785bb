"""`None` for a tensor that a kernel neither reads nor writes: what a call passes for it does not matter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from tile_eg.errors import Span
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.jit.on_npu import new_empty, on_npu

if TYPE_CHECKING:
    from tile_eg.ir.kept import KeptKernel
    from tile_eg.ir.kernel import Kernel, Tensor


def with_unused(tensors: Sequence[Tensor], kernels: Iterable[Kernel | KeptKernel], values: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of a call by tensor name, with zeros where None is passed for a tensor that no kernel touches. None for any
    other stays, and is refused as no array is."""
    left = {name for name, value in values.items() if value is None}
    if not left:
        return dict(values)
    left -= {name for k in kernels for name in _names(k)}
    like = next((v for v in values.values() if on_npu((v,))), None)
    of = {t.name: t for t in tensors}
    return {name: _zeros(of[name], like) if name in left else value for name, value in values.items()}


def _names(kernel: Kernel | KeptKernel) -> Iterator[str]:
    """All names in what a kernel does; those of its tensors are no other's."""
    for f in fields(kernel):
        if f.compare and f.name not in ("name", "tensors"):
            yield from _in(getattr(kernel, f.name))


def _in(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, tuple):
        for part in tree:
            yield from _in(part)
    elif is_dataclass(tree) and not isinstance(tree, Span):
        for f in fields(tree):
            if f.compare:
                yield from _in(getattr(tree, f.name))


def _zeros(t: Tensor, like: Any) -> Any:
    import numpy as np

    if like is not None:
        return new_empty(like, t.shape, t)
    return np.zeros(t.shape, np.bool_ if t.truth else numpy_dtype(t.dtype))
