"""`x = T.alloc_global(shape, dtype)` before the launches of a prim_func: a tensor that a call makes, and that launches share."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from tile_eg import language
from tile_eg.errors import TileError, attempted
from tile_eg.frontend.python.source import FunctionSource, Written, read_function
from tile_eg.language.kernels import PrimFunc

WORD = "alloc_global"


def with_global_tensors(function: PrimFunc) -> PrimFunc:
    """The function with a parameter, behind its own, for each tensor that it allocates before its launches."""
    found = attempted(lambda: read_function(function.function, function.names))
    if isinstance(found, TileError) or not isinstance(found.node, ast.FunctionDef):
        return function
    made = {n: s for n, s in enumerate(found.node.body) if _allocates(s, found)}
    if not made:
        return function
    arguments = [_argument(s) for s in made.values()]
    args = ast.arguments([], [*found.node.args.args, *arguments], None, [], [], None, [])
    body = [s for n, s in enumerate(found.node.body) if n not in made]
    node = ast.copy_location(ast.FunctionDef(found.node.name, args, body, [], None), found.node)
    names = {**found.names, "<tensor>": language.Tensor}
    written: Any = Written(replace(found, node=node, names=names))
    return replace(function, function=written, made=len(made))


def _allocates(s: ast.stmt, found: FunctionSource) -> bool:
    one = isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
    call = s.value.func if one and isinstance(s.value, ast.Call) else None  # type: ignore[attr-defined]
    word = isinstance(call, ast.Attribute) and call.attr == WORD and isinstance(call.value, ast.Name)
    return word and found.names.get(call.value.id) is language  # type: ignore[union-attr]


def _argument(s: Any) -> ast.arg:
    """`x: T.Tensor(shape, dtype)` of `x = T.alloc_global(shape, dtype)`."""
    function = ast.copy_location(ast.Name("<tensor>", ast.Load()), s.value.func)
    type_ = ast.copy_location(ast.Call(function, s.value.args, [k for k in s.value.keywords if k.arg != "scope"]), s.value)
    return ast.copy_location(ast.arg(s.targets[0].id, type_), s.targets[0])
