"""Example kernels for what looks at alternatives, each compiled once."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.search.compiler import Lowered, lower

EXAMPLES = Path(__file__).parents[2] / "examples"


def kernel(name: str, **sizes: int) -> Kernel:
    return load_text((EXAMPLES / f"{name}.tile").read_text(), f"{name}.tile").instantiate(sizes)


@lru_cache(maxsize=8)
def lowered(name: str, **sizes: int) -> Lowered:
    return lower(kernel(name, **sizes))
