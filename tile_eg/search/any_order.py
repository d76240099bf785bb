"""Kernels that add floats where other blocks add too, which a deterministic one must not."""

from __future__ import annotations

from tile_eg.errors import Span, TileError, together
from tile_eg.ir.kernel import Kernel, float_sums
from tile_eg.ir.program import AIC, AIV, Gm, Instr, Program, walk

HELP = (
    "store each block's part in a tensor of its own, and sum the parts in one order; sums of whole numbers are the same in any "
    "order; without --deterministic (deterministic=True) it is compiled as it stands"
)


def refuse_any_order(kernel: Kernel) -> None:
    """TileError where a kernel adds floats atomically."""
    if found := float_sums(kernel):
        raise together([_refused(s.target.name, s.span or s.target.span) for s in found])


def refuse_any_order_in(program: Program, source: str = "") -> None:
    """TileError where a program that is taken as it stands adds floats atomically."""
    sums = set(program.sums_in_any_order)
    nodes = (n for core in (AIC, AIV) for n in walk(program.core(core)) if isinstance(n, Instr) and n.atomic == "add")
    found = [_refused(n.dst.tensor, n.span) for n in nodes if isinstance(n.dst, Gm) and n.dst.tensor in sums]
    if found:
        error = together(found)
        error.source = source
        raise error


def _refused(tensor: str, span: Span | None) -> TileError:
    what = f"blocks add floats to {tensor} in any order, so its last bits may differ from run to run"
    return TileError(f"{what}; a deterministic kernel must not", span, help=HELP)
