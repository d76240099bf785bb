"""Element loops with a serial loop in them: the serial loop goes around an element loop of its own.

An iteration that writes its own elements alone, and reads of them no others, is the same whether all iterations do a statement
before the next one or not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence


def apart(node: ast.stmt) -> Sequence[ast.stmt]:
    """The statements that an element loop is, where serial loops stand in it and its iterations keep to their own elements; any
    other statement alone."""
    if not isinstance(node, ast.For) or not _is_parallel(node) or not any(isinstance(s, ast.For) for s in node.body):
        return [node]
    names = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    if node.orelse or not all(_simple(s, names) for s in node.body) or not _own_elements(node, names):
        return [node]
    return [*_parts(node, node.body)]


def _is_parallel(node: ast.For) -> bool:
    return isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Attribute) and node.iter.func.attr == "Parallel"


def _simple(s: ast.stmt, names: set[str]) -> bool:
    """An assignment to an element, or a serial loop of such, with trips that are the same in all iterations."""
    if isinstance(s, ast.For):
        same = not any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(s.iter))
        return same and not s.orelse and not _is_parallel(s) and all(_simple(inner, names) for inner in s.body)
    targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AugAssign) else []
    return bool(targets) and all(isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name) for t in targets)


def _own_elements(node: ast.For, names: set[str]) -> bool:
    """Whether what is written is read and written at one place, which is the iteration's own."""
    elements = [n for n in ast.walk(node) if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)]
    written = {n.value.id for n in elements if isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name)}
    plain = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in written]
    mine = [n for n in elements if isinstance(n.value, ast.Name) and n.value.id in written]
    if len(plain) != len(mine):
        return False
    places = {(ast.unparse(n.value), ast.unparse(n.slice)) for n in mine}
    own = all(names <= _plain_indices(n.slice) for n in mine)
    return own and len(places) == len(written)


def _plain_indices(place: ast.expr) -> set[str]:
    """The variables that are an index by themselves: different ones mean different elements."""
    return {n.id for n in (place.elts if isinstance(place, ast.Tuple) else [place]) if isinstance(n, ast.Name)}


def _parts(node: ast.For, body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Each run of assignments in an element loop, each serial loop around such ones."""
    run: list[ast.stmt] = []
    for s in body:
        if not isinstance(s, ast.For):
            run.append(s)
            continue
        if run:
            yield _around(node, run)
        yield ast.copy_location(ast.For(s.target, s.iter, [*_parts(node, s.body)], []), s)
        run = []
    if run:
        yield _around(node, run)


def _around(node: ast.For, body: list[ast.stmt]) -> ast.For:
    return ast.copy_location(ast.For(node.target, node.iter, body, []), node)
