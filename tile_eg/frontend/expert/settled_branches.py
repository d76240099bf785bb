"""A kernel's function without the branches that are settled before it runs: those by names that are known where it is written."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any


def settled(function: ast.FunctionDef, names: Mapping[str, Any]) -> list[ast.stmt]:
    """The statements with those in the place of each `if` that are taken, where `names` from outside of the function decide;
    a copy."""
    copied, given = copy.deepcopy(function.body), {n.arg for n in ast.walk(function.args) if isinstance(n, ast.arg)}
    bound = Counter(n.id for s in copied for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    found = _Taken({name: value for name, value in names.items() if name not in bound and name not in given}, bound)
    return [s for one in copied for s in found.statements(one)]


class _Taken(ast.NodeTransformer):
    def __init__(self, known: dict[str, Any], bound: Counter[str]) -> None:
        self.known, self.bound = known, bound

    def statements(self, node: ast.stmt) -> list[ast.stmt]:
        made = self.visit(node)
        return made if isinstance(made, list) else [made]

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:  # noqa: N802
        """A name that is bound once, to a number that is known, is known behind it."""
        (target, *others), value = node.targets, self._value(node.value)
        if isinstance(target, ast.Name) and not others and self.bound[target.id] == 1 and isinstance(value, int | float):
            self.known[target.id] = value
        return node

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:  # noqa: N802
        value = self._value(node.test)
        if not isinstance(value, int | float):
            self.generic_visit(node)
            return node
        taken = node.body if value else node.orelse
        return [s for one in taken for s in self.statements(one)] or [ast.Pass()]

    def _value(self, e: ast.expr) -> Any:
        """What an expression of known names is, without calls; None of any other."""
        parts = list(ast.walk(e))
        if any(isinstance(p, ast.Call | ast.NamedExpr) or (isinstance(p, ast.Name) and p.id not in self.known) for p in parts):
            return None
        try:
            return eval(compile(ast.Expression(e), "<test>", "eval"), {"__builtins__": {}}, self.known)
        except Exception:
            return None
