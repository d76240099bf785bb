"""Loops whose trips are read one by one: those that end early, change numbers, or differ in what they do.

In each trip the variable is a number, so that what follows from it is known: conditions, shifts, ranges of loops inside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from tile_eg.frontend.python.values import Loop
from tile_eg.ir import index
from tile_eg.ir.index import Expr

MOST = 256
"""Trips that are read one by one."""
LOOPS = (ast.For, ast.While)
CHANGING = (
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add",
    "discard",
)  # fmt: skip
"""Methods that change a list, a dict or a set of Python."""


def has_own_trips(node: ast.For, loop: Loop, bound: Mapping[str, Any]) -> bool:
    """Whether the trips of a loop have to be read one by one, and may be; `bound` are the names that stand before it."""
    if loop.count is not None or loop.kind != "serial" or prod(loop.extents) > MOST:
        return False
    following = _following(node)
    return any(
        _leaves(n)
        or _changes(n, bound, following)
        or isinstance(bound.get(_changed_list(n)), list | dict | set)
        or _powers(n, following)
        or (isinstance(n, ast.For) and _mentions(n.iter, following) and not _word(n.iter, "Persistent"))
        or (isinstance(n, ast.While) and _mentions(n.test, following))
        or (isinstance(n, ast.For) and any(_leaves(m) for m in _own(n.body)) and _mentions(n, following))
        for n in _own(node.body)
        if not isinstance(n, ast.Break | ast.Continue) or n in _of_this_loop(node.body)
    )


def trips_of(loop: Loop) -> Iterator[tuple[int | Expr, ...]]:
    """The values of the loop's variables, trip by trip."""
    for trip in product(*map(range, loop.extents)):
        values = [start + i * loop.step for start, i in zip(loop.starts, trip, strict=True)]
        yield tuple(v if isinstance(v, int) or index.wrap(v).value is None else int(v.value or 0) for v in values)


def _own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """What stands in statements, functions that they define aside."""
    todo: list[ast.AST] = [*body]
    while todo:
        node = todo.pop()
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            yield node
            todo += ast.iter_child_nodes(node)


def _of_this_loop(body: list[ast.stmt]) -> list[ast.AST]:
    """The `break` and `continue` that are of the loop with this body."""
    found: list[ast.AST] = []
    todo: list[ast.AST] = [*body]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Break | ast.Continue):
            found.append(node)
        elif not isinstance(node, (*LOOPS, ast.FunctionDef)):
            todo += ast.iter_child_nodes(node)
    return found


def _leaves(n: ast.AST) -> bool:
    return isinstance(n, ast.Break | ast.Continue) or _word(n, "loop_break")


def _word(n: ast.AST, name: str) -> bool:
    return isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == name


def _changes(n: ast.AST, bound: Mapping[str, Any], following: frozenset[str]) -> bool:
    """Whether a statement gives another number to a name that stands before the loop."""
    targets: list[ast.expr]
    if isinstance(n, ast.AugAssign):
        targets, again = [n.target], True
    elif isinstance(n, ast.Assign):
        targets = n.targets
        names = frozenset(t.id for t in targets if isinstance(t, ast.Name))
        again = _mentions(n.value, names | following)
    else:
        return False
    names = frozenset(t.id for t in targets if isinstance(t, ast.Name))
    return again and any(isinstance(bound.get(name), int | float | Expr) for name in names)


def _changed_list(n: ast.AST) -> str:
    """The name that `d.append(x)`, `d[i] = x`, `del d[i]` and `d += [x]` change; "" of others."""
    match n:
        case ast.Call(func=ast.Attribute(value=ast.Name(name), attr=method)) if method in CHANGING:
            return name
        case ast.Subscript(value=ast.Name(name), ctx=ast.Store() | ast.Del()) | ast.AugAssign(target=ast.Name(name)):
            return name
    return ""


def _powers(n: ast.AST, following: frozenset[str]) -> bool:
    """Whether an expression shifts by what follows from the loop's variable, or is a power of a number by it."""
    shifts = isinstance(n, ast.BinOp) and isinstance(n.op, ast.LShift | ast.RShift | ast.Pow)
    return shifts and _mentions(n.right, following)  # type: ignore[attr-defined]


def _following(node: ast.For) -> frozenset[str]:
    """The loop's variables, and the names whose values follow from them."""
    names = frozenset(n.id for n in ast.walk(node.target) if isinstance(n, ast.Name))
    while True:
        more = set(names)
        for n in _own(node.body):
            if isinstance(n, ast.Assign) and _mentions(n.value, names):
                more |= {t.id for target in n.targets for t in ast.walk(target) if isinstance(t, ast.Name) and _stored(t)}
        if more == names:
            return names
        names = frozenset(more)


def _stored(n: ast.Name) -> bool:
    return isinstance(n.ctx, ast.Store)


def _mentions(n: ast.AST, names: frozenset[str]) -> bool:
    return any(isinstance(m, ast.Name) and m.id in names for m in ast.walk(n))


