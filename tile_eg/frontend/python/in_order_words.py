"""Words that have no form in a search: a kernel with one of them is done in the order of its statements."""

from __future__ import annotations

from functools import partial
from typing import Any

from tile_eg.errors import NotSearched, Span
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.whole_words import HANDLERS
from tile_eg.ops.repeats import REPEATED

__all__ = ["HANDLERS"]

PRINTING = ("printf", "print", "dump_tensor", "device_assert")
"""There is no moment to print at where the order is found."""
BITS = ("vbitcast",)
"""Bits that are taken for another type."""
LIMITS = tuple(f"{prefix}atomic_{op}" for op in ("max", "min") for prefix in ("", "tile."))
"""Stores that keep the larger or smaller numbers."""
OF_THE_MACHINE = (
    "set_deq_scale", "tile.sort32", "tile.reduce_sum_experiment", "tile.sum_experiment", *(f"tile.{word}" for word in REPEATED),
)  # fmt: skip
"""Words of single instructions, with their masks, repeats, strides and registers."""


def _in_order(word: str, b: Builder, span: Span, *_: Any, **__: Any) -> None:
    why = NotSearched(f"the search has no form for T.{word}", span, help=_HELP.get(word, ""))
    why.asked = True
    raise why


_HELP = {
    "tile.sort32": "T.tile.sort(dst, src, n) sorts all of them, with their places as indices",
    "set_deq_scale": "multiply: T.copy(x, f) into a float32 buffer, T.tile.mul(f, f, scale), T.copy(f, y)",
}
HANDLERS.update({word: partial(_in_order, word) for word in (*PRINTING, *LIMITS, *BITS, *OF_THE_MACHINE)})
