"""`with T.If(c):` around `with T.Then():` and `with T.Else():`, as the `if` that they spell."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tile_eg.frontend.python.build import Builder
from tile_eg.language.words import Word


def as_if(b: Builder, node: ast.With, evaluate: Callable[[Any, ast.expr], Any]) -> ast.If:
    """The statement. TileError for another `with`, and where something else than its two arms stands in it."""
    if _word(b, node, evaluate) != "If":
        for item in node.items:
            evaluate(b, item.context_expr)
        raise b.error("only one `with T.Kernel(...)` around the whole body is supported", node)
    call = node.items[0].context_expr
    assert isinstance(call, ast.Call)
    arms: dict[str, list[ast.stmt]] = {}
    for s in node.body:
        name = _word(b, s, evaluate) if isinstance(s, ast.With) else ""
        if name not in ("Then", "Else") or name in arms or len(call.args) != 1:
            raise b.error("inside T.If stand `with T.Then():` and `with T.Else():`, once each", s)
        arms[name] = s.body  # type: ignore[attr-defined]
    return ast.copy_location(ast.If(call.args[0], arms.get("Then", []), arms.get("Else", [])), node)


def _word(b: Builder, node: ast.With, evaluate: Callable[[Any, ast.expr], Any]) -> str:
    """The word that a `with` calls; nothing of another one."""
    call = node.items[0].context_expr
    found = evaluate(b, call.func) if len(node.items) == 1 and isinstance(call, ast.Call) else None
    return found.name if isinstance(found, Word) else ""
