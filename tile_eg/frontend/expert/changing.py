"""Which names of a kernel's function hold another number from trip to trip, or behind a branch: those are variables."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

BRANCHES = ("Then", "Else")
"""The words of TileLang that stand before the bodies of a branch."""
VARIABLES = ("alloc_var",)
"""The words that give a variable, which keeps its value from trip to trip."""
Names = frozenset[str]
NONE: Names = frozenset()


def changing(body: Sequence[ast.stmt]) -> Names:
    """The names that a loop or a branch gives another value which is read in a later trip, or behind it."""
    found: set[str] = set()
    _before(body, NONE, found)
    return frozenset(found)


def begun_again(body: Sequence[ast.stmt]) -> dict[str, ast.AST]:
    """The names that a trip reads before it binds them, each with the place where it is bound; not those declared as variables.

    In a kernel that is kept these begin each trip with their value before the loop, as where TileLang reads a loop's body once.
    """
    nodes = [n for s in body for n in ast.walk(s)]
    kept = bound_in(t for n in nodes if isinstance(n, ast.Assign) and _declares(n.value) for t in n.targets)
    found: dict[str, ast.AST] = {}
    for loop in (n for n in nodes if isinstance(n, ast.For | ast.While)):
        own = bound_in([loop.target]) if isinstance(loop, ast.For) else NONE
        names = bound_in(loop.body) & _before(loop.body, NONE, set()) - own - kept
        places = (m for n in loop.body for m in ast.walk(n) if isinstance(m, ast.Name) and isinstance(m.ctx, ast.Store))
        found |= {m.id: m for m in places if m.id in names and m.id not in found}
    return found


def _declares(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in VARIABLES


def _before(body: Sequence[ast.stmt], after: Names, found: set[str]) -> Names:
    """The names that are read from the beginning of the statements on before they are bound, where `after` are those behind."""
    for node in reversed(body):
        after = _before_one(node, after, found)
    return after


def _before_one(node: ast.stmt, after: Names, found: set[str]) -> Names:
    if isinstance(node, ast.For | ast.While):
        return _before_loop(node, after, found)
    if isinstance(node, ast.If):
        found |= bound_in(node.body + node.orelse) & after
        return _before(node.body, after, found) | _before(node.orelse, after, found) | _read([node.test])
    if isinstance(node, ast.With):
        inside, words = _before(node.body, after, found), _read(item.context_expr for item in node.items)
        if not any(_is_branch(item.context_expr) for item in node.items):
            return inside | words
        found |= bound_in(node.body) & after
        return inside | words | after
    if isinstance(node, ast.FunctionDef):
        return after | _read([node])
    if isinstance(node, ast.AugAssign):
        return after | _read([node.value, node.target]) | bound_in([node])
    return (after - bound_in([node])) | _read([node])


def _before_loop(node: ast.For | ast.While, after: Names, found: set[str]) -> Names:
    """A name that is read behind the loop, or at the beginning of its next trip, is carried there."""
    own = bound_in([node.target]) if isinstance(node, ast.For) else NONE
    head = _read([node.iter] if isinstance(node, ast.For) else [node.test])
    again = after if isinstance(node, ast.For) else after | head
    again |= _before(node.body, again, set()) - own
    inside = _before(node.body, again, found) - own
    found |= (bound_in(node.body) - own) & (inside | again)
    return after | inside | head


def _is_branch(e: ast.expr) -> bool:
    return isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in BRANCHES


def _names(nodes: Iterable[ast.AST], kind: type[ast.expr_context]) -> Names:
    return frozenset(m.id for n in nodes for m in ast.walk(n) if isinstance(m, ast.Name) and isinstance(m.ctx, kind))


def bound_in(nodes: Iterable[ast.AST]) -> Names:
    """The names that are bound anywhere in these."""
    return _names(nodes, ast.Store)


def _read(nodes: Iterable[ast.AST]) -> Names:
    return _names(nodes, ast.Load)
