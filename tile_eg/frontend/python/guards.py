"""Branches that a block takes, or does not, by what it reads: loops of one trip, or of none.

What stands in such a branch may store, and may have loops, as that in a loop may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_eg.frontend.scalars import negation
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import For, If, Kernel, Stmt, exchanged


def with_guards_as_loops(kernel: Kernel, unique: Callable[[str], str]) -> Kernel:
    """The kernel without the branches whose condition is known when a block starts; `unique` names the loops' variables."""
    grid = {name for name, _ in kernel.grid}

    def instead(s: Stmt) -> list[Stmt] | None:
        if not isinstance(s, If) or ix.variables(s.condition) - grid:
            return None
        arms = ((s.condition, s.then), (negation(s.condition), s.otherwise))
        return [_loop(holds, exchanged(arm, instead), s) for holds, arm in arms if arm]

    def _loop(holds: Expr, body: tuple[Stmt, ...], s: If) -> For:
        return For(unique("taken"), 0, 1, "serial", 0, body, s.span, holds)

    return replace(kernel, body=exchanged(kernel.body, instead))
