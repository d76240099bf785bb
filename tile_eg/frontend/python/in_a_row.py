"""A function with several launches: each as a function of its own, of the tensors and numbers that it uses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

from tile_eg.errors import TileError, attempted
from tile_eg.frontend.python.function import Argument, arguments_of
from tile_eg.frontend.python.source import FunctionSource, Written, is_launch, read_function
from tile_eg.language.kernels import PrimFunc
from tile_eg.language.symbols import names_of_sizes


def launches(function: PrimFunc) -> list[PrimFunc]:
    """The launches of a prim_func that has several, in their order, as prim_funcs of their own: `k_1`, `k_2`. None of any other.

    Each has the statements that stand before it, and those of the arguments that it uses.
    """
    parts = _parts(function)
    if len(parts) < 2:
        return []
    arguments = arguments_of(function)
    name = function.function.__name__
    for n, part in enumerate(parts):
        _check_left(part, [p.node.body[-1] for p in parts[:n]])
    found = (_function(part, f"{name}_{n}", arguments) for n, part in enumerate(parts, 1))
    return [replace(function, function=made) for made in found]  # type: ignore[arg-type]


def _parts(function: PrimFunc) -> Sequence[FunctionSource]:
    """For each launch what is read of it, with all arguments."""
    own = function.function
    if isinstance(own, Written) and own.parts:
        return own.parts
    found = attempted(lambda: read_function(own, function.names))
    if isinstance(found, TileError) or not isinstance(found.node, ast.FunctionDef):
        return ()
    body: list[ast.stmt] = found.node.body
    at = [n for n, s in enumerate(body) if is_launch(s, found.names)]
    return [_part(found, [*_plain(body[:n], found.names), *body[n : None if n == at[-1] else n + 1]]) for n in at]


def _check_left(part: FunctionSource, before: Sequence[ast.stmt]) -> None:
    """TileError where a launch uses what an earlier one made: nothing of it is left."""
    own = {*part.names, *(a.arg for a in part.node.args.args), *(n for s in part.node.body for n in _bound(s))}
    made = {n for s in before for n in _bound(s)} - own
    for s in part.node.body:
        for node in ast.walk(s):
            if isinstance(node, ast.Name) and node.id in made:
                message = f"`{node.id}` is of an earlier launch, of which nothing is left but what it stored"
                help = "store it to a tensor there, and load that here"
                error = TileError(message, part.source.span(node), help=help)
                error.source = part.source.text
                raise error


def _bound(s: ast.stmt) -> Iterator[str]:
    """The names that a statement gives a value."""
    for n in ast.walk(s):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            yield n.id
        elif isinstance(n, ast.FunctionDef | ast.arg):
            yield n.name if isinstance(n, ast.FunctionDef) else n.arg


def _plain(body: Iterable[ast.stmt], names: Mapping[str, Any]) -> list[ast.stmt]:
    return [s for s in body if not is_launch(s, names)]


def _part(found: FunctionSource, body: list[ast.stmt]) -> FunctionSource:
    node = ast.copy_location(ast.FunctionDef(found.node.name, found.node.args, body, [], None), found.node)
    return replace(found, node=node)


def _function(part: FunctionSource, name: str, arguments: Sequence[Argument]) -> FunctionType | Written:
    used = _used(part.node.body)
    sizes = {s for n in used if n not in {a.name for a in arguments} for s in names_of_sizes(part.names.get(n))}
    kept = [a for a in arguments if a.name in used]
    for a in arguments:  # what tells a size that is used
        if a not in kept and _sizes(a) & (sizes - {s for k in kept for s in _sizes(k)}):
            kept.append(a)
    names = {a.name for a in kept}
    args = ast.arguments([], [a for a in part.node.args.args if a.arg in names], None, [], [], None, [])
    node = ast.copy_location(ast.FunctionDef(name, args, part.node.body, [], None), part.node)
    return Written(replace(part, node=node))


def _sizes(a: Argument) -> set[str]:
    return names_of_sizes(a.shape or ())


def _used(body: Sequence[ast.stmt]) -> set[str]:
    """The names that stand in a launch, and in functions before it that it calls, but for their parameters."""
    own = {s.name: s for s in body if isinstance(s, ast.FunctionDef)}
    found = {n for s in body if not isinstance(s, ast.FunctionDef) for n in _names(s)}
    left = [n for n in own if n in found]
    while left:
        inner = own.pop(left.pop())
        found |= {n for s in inner.body for n in _names(s)} - {a.arg for a in inner.args.args}
        left = [n for n in own if n in found]
    return found


def _names(s: ast.AST) -> Iterator[str]:
    return (n.id for n in ast.walk(s) if isinstance(n, ast.Name))
