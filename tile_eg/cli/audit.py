"""`tile-eg audit`: whether the terms that the rules call equal are equal in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tile_eg.cli import options, sources
from tile_eg.cli.console import show
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel
from tile_eg.search import SearchOptions

NOT_OF_VALUES = ("effort", "untuned", "extractor", "cost_model", "model_faults", "model_seconds")
"""Options of the search that mean nothing where no schedule is chosen."""


def audit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A kernel: .tile text or a .py module with one kernel.")],
    sizes: options.Set = None,
    seed: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="The seed of random inputs.")] = 0,
    *,
    search: SearchOptions,
) -> int:
    """Checks in numbers what the rules call equal.

    Terms of one e-class have to have equal values; if two differ, the rules that joined them are named. Whether an instruction
    computes its value (rules of the law `implements`) is not checked here: `tile-eg run` does that.
    """
    from tile_eg.laboratory.audit import audit_kernel
    from tile_eg.laboratory.audit_shown import audit_text

    held = sources.read(file, options.sizes(sizes or []))
    if not isinstance(held, Kernel):
        raise TileError(f"'{file}' is a program: no rules made it", help="give a .tile or a .py file")
    done = audit_kernel(held, search, seed)
    show(audit_text(held.name, done))
    if not done.found:
        return 0
    own = {r.name for t in search.rules for r in t.rules}
    return 1 if any(own & set(d.rules) for d in done.found) else 2
