"""`T.clear(n)` and `T.fill(n, x)` of a number that `T.alloc_var` gave: assignments to its name."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from tile_eg import language

Meaning = Callable[[ast.expr], Any]


def with_numbers_assigned(node: Any, meaning: Meaning) -> Any:
    """A function's definition with such assignments; `meaning` tells which word of the language an expression is."""
    named = {
        t.id for s in ast.walk(node) if isinstance(s, ast.Assign) for target in s.targets for t, value in _each(target, s.value)
        if isinstance(t, ast.Name) and _is_call(value, meaning, language.alloc_var)
    }  # fmt: skip
    if not any(_cleared(s, named, meaning) for s in ast.walk(node)):
        return node
    return _Assigned(named, meaning).visit(copy.deepcopy(node))


def _each(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """The names of an assignment, `a, b = x, y`, with what each becomes."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _is_call(e: ast.expr, meaning: Meaning, *words: Any) -> bool:
    return isinstance(e, ast.Call) and any(meaning(e.func) is word for word in words)


def _cleared(s: ast.AST, named: set[str], meaning: Meaning) -> ast.Assign | None:
    """The assignment that a statement is."""
    if not isinstance(s, ast.Expr) or not _is_call(s.value, meaning, language.clear, language.fill):
        return None
    call: Any = s.value
    target, *rest = [*call.args, *(k.value for k in call.keywords)] or [None]
    filled = meaning(call.func) is language.fill
    if not isinstance(target, ast.Name) or target.id not in named or len(rest) != filled:
        return None
    value = rest[0] if filled else ast.copy_location(ast.Constant(0), s)
    stored = ast.copy_location(ast.Name(target.id, ast.Store()), target)
    return ast.copy_location(ast.Assign([stored], value), s)


class _Assigned(ast.NodeTransformer):
    def __init__(self, named: set[str], meaning: Meaning) -> None:
        self.named, self.meaning = named, meaning

    def visit_Expr(self, node: ast.Expr) -> Any:
        return _cleared(node, self.named, self.meaning) or node
