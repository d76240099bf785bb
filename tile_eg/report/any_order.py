"""What is told of sums whose order may change from run to run."""

from __future__ import annotations

from tile_eg.errors import Note, Span, rendered
from tile_eg.ir.program import AIC, AIV, Gm, Instr, Program, walk


def sums_in_any_order(program: Program, source: str) -> list[str]:
    """A note for each output to which blocks add floats, at the line that asks for it where the source does."""
    return [rendered(Note(_words(name), _place(program, name)), source) for name in program.sums_in_any_order]


def _words(name: str) -> str:
    what = f"blocks add to {name} in any order, so the last bits of its sums may differ from run to run"
    return f"{what}; --deterministic does without, or refuses it where the kernel asks for it"


def _place(program: Program, name: str) -> Span | None:
    nodes = (n for core in (AIC, AIV) for n in walk(program.core(core)) if isinstance(n, Instr) and n.atomic)
    return next((n.span for n in nodes if isinstance(n.dst, Gm) and n.dst.tensor == name and n.span), None)
