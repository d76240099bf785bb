"""How often a loop can run whose variable is an index: `table[b, t]` in each trip, with t below the size of that dimension."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from tile_eg.frontend.python.values import Buffer

_LEAVING = ast.Break, ast.Continue, ast.Return
_CHOICES = ("if_then_else", "Select", "where")


def most_trips(names: Mapping[str, Any], loop: ast.For) -> int | None:
    """What the end of a loop is at most, as each trip reads a tensor or a buffer where its variable says. None: nothing says
    so, or a trip may end early."""
    if any(isinstance(n, _LEAVING) or getattr(n, "attr", "") == "loop_break" for n in ast.walk(loop)):
        return None
    variable = loop.target.id if isinstance(loop.target, ast.Name) else None
    found = (size for s in loop.body if _is_done(s) for size in _sizes(names, s, variable))
    return min(found, default=None)


def _is_done(s: ast.stmt) -> bool:
    """Whether a statement is done in each trip, with all that it reads."""
    chosen = (isinstance(n, ast.IfExp | ast.BoolOp) or getattr(n, "attr", "") in _CHOICES for n in ast.walk(s))
    return isinstance(s, ast.Expr | ast.Assign) and not any(chosen)


def _sizes(names: Mapping[str, Any], s: ast.stmt, variable: str | None) -> Iterator[int]:
    for n in ast.walk(s):
        if not isinstance(n, ast.Subscript) or not isinstance(n.value, ast.Name):
            continue
        array, items = names.get(n.value.id), n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice]
        if isinstance(array, Buffer) and len(items) == len(array.shape):
            found = zip(items, array.shape, strict=True)
            yield from (size for item, size in found if isinstance(item, ast.Name) and item.id == variable)
