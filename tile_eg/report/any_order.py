"""What is told of sums whose order may change from run to run."""

from __future__ import annotations

from tile_eg.errors import Note, rendered
from tile_eg.ir.kernel import Kernel, float_sums
from tile_eg.ir.program import Program


def sums_in_any_order(program: Program, kernel: Kernel | None = None) -> list[str]:
    """A note for each output to which blocks add floats, at the line of the kernel that asks for it, where one does."""
    asked = {s.target.name: s.span or s.target.span for s in float_sums(kernel)} if kernel else {}
    source = kernel.source if kernel else ""
    return [rendered(Note(_words(name, name in asked), asked.get(name)), source) for name in program.sums_in_any_order]


def _words(name: str, asked: bool) -> str:
    what = f"blocks add to {name} in any order: the last bits of its sums may differ from run to run"
    return f"{what} (--deterministic {'refuses that' if asked else 'does without'})"
