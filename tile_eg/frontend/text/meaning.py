"""A kernel as `.tile` text that stands for its meaning wherever the kernel itself is not at hand."""

from __future__ import annotations

from tile_eg.errors import attempted
from tile_eg.frontend.text import load_text
from tile_eg.frontend.text.printer import print_kernel
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.known_numbers import at_numbers
from tile_eg.ir.passed import examples


def meaning_text(kernel: Kernel) -> str:
    """The text, all sizes as numbers, with an example for each number that a call passes; empty where it would not read back as
    the same kernel (names that are words of `.tile`)."""
    kernel = at_numbers(kernel, examples(kernel))
    text = print_kernel(kernel)
    again = attempted(lambda: load_text(text, "").instantiate())
    return text if isinstance(again, Kernel) and _same(again, kernel) else ""


def _same(a: Kernel, b: Kernel) -> bool:
    """Whether they mean the same; where outputs stand among the arguments is no part of that."""
    return (a.grid, a.body, frozenset(a.tensors)) == (b.grid, b.body, frozenset(b.tensors))
