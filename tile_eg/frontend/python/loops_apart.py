"""Element loops with a serial loop in them: the serial loop goes around an element loop of its own.

An iteration that writes its own elements alone, and reads of them no others, is the same whether all iterations do a statement
before the next one or not. Where a loop in it differs from iteration to iteration, these are done one after the other.
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
    if node.orelse or not _own_elements(node, names):
        return [node]
    alike = all(_simple(s, names) for s in node.body) and _names_stay(node)
    return [*_parts(node, node.body, [])] if alike else [_one_by_one(node)]


def _one_by_one(node: ast.For) -> ast.For:
    """The same as serial loops, one in the other, if a serial loop stands in it."""
    call, loops = node.iter, [s.iter for s in ast.walk(node) if isinstance(s, ast.For) and s is not node]
    targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    if not all(map(_is_serial, loops)) or len(targets) != len(call.args) or call.keywords:
        return node
    made, body = node, node.body
    for target, extent in zip(reversed(targets), reversed(call.args), strict=True):
        serial = ast.copy_location(ast.Attribute(call.func.value, "serial", ast.Load()), call)
        made = ast.copy_location(ast.For(target, ast.copy_location(ast.Call(serial, [extent], []), call), body, []), node)
        body = [made]
    return made


def _is_serial(loop: ast.expr) -> bool:
    f = loop.func if isinstance(loop, ast.Call) else None
    return (isinstance(f, ast.Attribute) and f.attr in ("serial", "unroll")) or (isinstance(f, ast.Name) and f.id == "range")


def _is_parallel(node: ast.For) -> bool:
    return isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Attribute) and node.iter.func.attr == "Parallel"


def _simple(s: ast.stmt, names: set[str]) -> bool:
    """An assignment to an element or a name, a branch around assignments to elements, or a serial loop of such, with trips that
    are the same in all iterations."""
    if isinstance(s, ast.For):
        same = not any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(s.iter))
        return same and not s.orelse and not _is_parallel(s) and all(_simple(inner, names) for inner in s.body)
    if isinstance(s, ast.If):
        return all(_simple(b, names) and not isinstance(b, ast.For) and not _named(b) for b in (*s.body, *s.orelse))
    if _named(s):
        return True
    targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AugAssign) else []
    return bool(targets) and all(isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name) for t in targets)


def _named(s: ast.stmt) -> bool:
    """Whether a statement is a name for a value."""
    return isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)


def _names_stay(node: ast.For) -> bool:
    """Whether each name of the body is given once, before it is used, and no serial loop goes as often as one says, and no value
    of a name reads what the loop writes: then it is the same in each of the loops that the body becomes."""
    given = [s.targets[0].id for s in ast.walk(node) if isinstance(s, ast.stmt) and _named(s)]  # type: ignore[attr-defined]
    stores = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    written = {n.value.id for n in ast.walk(node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)
               and isinstance(n.value, ast.Name)}  # fmt: skip
    counts = [s.iter for s in ast.walk(node) if isinstance(s, ast.For)]
    values = [s.value for s in ast.walk(node) if isinstance(s, ast.Assign) and _named(s)]
    once = all(stores.count(name) == 1 for name in given)
    return once and not _mentioned(counts) & set(given) and not _mentioned(values) & written and _in_order(node.body, set(given))


def _mentioned(expressions: Sequence[ast.expr]) -> set[str]:
    return {n.id for e in expressions for n in ast.walk(e) if isinstance(n, ast.Name)}


def _in_order(body: Sequence[ast.stmt], later: set[str]) -> bool:
    """Whether none of the names is used before it is given."""
    left = set(later)
    for s in body:
        if isinstance(s, ast.For):
            if not _in_order(s.body, left):
                return False
            left -= {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            continue
        read = {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if read & left:
            return False
        left -= {s.targets[0].id} if _named(s) else set()  # type: ignore[attr-defined]
    return True


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


def _parts(node: ast.For, body: Sequence[ast.stmt], known: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Each run of assignments in an element loop, behind the names that are known there, each serial loop around such ones."""
    run: list[ast.stmt] = []
    known = [*known]
    for s in body:
        if isinstance(s, ast.For):
            if run:
                yield _around(node, [*known, *run])
            yield ast.copy_location(ast.For(s.target, s.iter, [*_parts(node, s.body, known)], []), s)
            run = []
        elif _named(s):
            known.append(s)
        else:
            run.append(s)
    if run:
        yield _around(node, [*known, *run])


def _around(node: ast.For, body: list[ast.stmt]) -> ast.For:
    return ast.copy_location(ast.For(node.target, node.iter, body, []), node)
