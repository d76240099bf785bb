"""Macros of a kernel that is done in order: their plain numbers change as those of the kernel do, and are theirs alone."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tile_eg.frontend.expert import leaving
from tile_eg.frontend.expert.changing import bound_in, changing
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.expert.variables import bound, keep, variable_of
from tile_eg.ir.program import Formula


def body(r: ExpertReader, statements: Sequence[ast.stmt]) -> None:
    """What a macro has in it. A number that it is given is another one inside once it is bound again; a T.alloc_var is not."""
    if r.ends is None:
        return leaving.run(r, statements)
    outside, own = r.changing, {v for made in r.changing.values() for v in made}
    r.changing = {f"{name} outside": made for name, made in outside.items()} | {name: set() for name in changing(statements)}
    try:
        for name in sorted(bound_in(statements) & r.local.keys()):
            _given(r, name, own)
        leaving.run(r, statements)
    finally:
        r.changing = outside
    return None


def _given(r: ExpertReader, name: str, own: set[str]) -> None:
    """A parameter that the macro binds again: the value that it has now."""
    value = r.local[name]
    variable = variable_of(r, value)
    if variable is not None and variable not in own:
        return
    if variable is not None:
        value = keep(r, name, Formula("scalar", (variable,), r.scalars[variable]), None)
    r.local[name] = bound(r, name, value, None)
