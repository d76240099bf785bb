"""TileLang's `language.dtypes`: dtypes as objects."""

from __future__ import annotations

from typing import Any

from tile_eg.language.kernels import ElementType as dtype
from tile_eg.ops.types import DTYPES

__all__ = ["dtype"]


def __getattr__(name: str) -> Any:
    """The names of torch's dtypes, by these, where torch is there."""
    if name != "_TORCH_DTYPE_TO_STR":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch

    known = ("bool", *(d.numpy for d in DTYPES.values()))
    return {found: n for n in known if isinstance(found := getattr(torch, n, None), torch.dtype)}
