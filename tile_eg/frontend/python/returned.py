"""Functions that return expressions of whole tensors: which ones those are, and what their results are called."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

from tile_eg.errors import TileError, attempted
from tile_eg.frontend.python.source import read_function
from tile_eg.language.kernels import PrimFunc, TensorType


def read_definition(function: FunctionType, names: Mapping[str, Any] | None = None) -> Any:
    """What `read_function` finds; a lambda as the function that returns its value."""
    found = read_function(function, names)
    node = found.node
    if not isinstance(node, ast.Lambda):
        return found
    body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
    return replace(found, node=ast.copy_location(ast.FunctionDef("of_lambda", node.args, body, [], None), node))


def returns_tensors(function: FunctionType, names: Mapping[str, Any] | None = None) -> bool:
    """Whether a function returns values, and launches nothing."""
    found = attempted(lambda: read_definition(function, names))
    if isinstance(found, TileError):
        return False
    body = found.node.body
    returns = any(isinstance(s, ast.Return) and s.value is not None for s in body)
    return returns and not any(isinstance(s, ast.With) for s in body)


def takes_tensors(function: Any, names: Mapping[str, Any]) -> bool:
    """Whether a function has T.Tensor arguments and returns what it computes of them."""
    if not isinstance(function, FunctionType):
        return False
    given = [a for n, a in function.__annotations__.items() if n != "return"]
    known = {**function.__globals__, **names}
    if not any(isinstance(evaluated(a, known), TensorType) for a in given):
        return False
    _check_result(function, names)
    return returns_tensors(function, names)


def _check_result(function: FunctionType, names: Mapping[str, Any]) -> None:
    """TileError for a function of tensors that launches blocks, and is no kernel yet; and for one that neither does nor returns
    a value: what it computes is lost."""
    found = attempted(lambda: read_definition(function, names))
    if isinstance(found, TileError):
        return
    launches = next((s for s in found.node.body if isinstance(s, ast.With)), None)
    if launches is not None:
        what = f"{function.__name__} launches blocks, and does not stand under @T.prim_func"
        place, help = found.source.span(launches.items[0].context_expr), "write @T.prim_func below @tile_eg.jit"
    elif not any(isinstance(n, ast.Return | ast.Yield) for n in ast.walk(found.node)):
        what = f"{function.__name__} returns nothing: what it computes of its tensors is lost"
        place, help = found.source.span(found.node.body[-1]), "return the result: return y"
    else:
        return
    error = TileError(what, place, help=help)
    error.source = found.source.text
    raise error


def evaluated(annotation: Any, names: Mapping[str, Any]) -> Any:
    """What an annotation stands for; itself where its names are not known yet."""
    try:
        return eval(annotation, dict(names)) if isinstance(annotation, str) else annotation  # noqa: S307  # as Python would
    except Exception:  # the annotation of another kind of function, and its author's affair
        return annotation


def output_names(function: PrimFunc) -> list[str]:
    """The names of what a function returns: those of its variables, else `out`."""
    found = read_definition(function.function, function.names)
    value = next(s.value for s in reversed(found.node.body) if isinstance(s, ast.Return) and s.value is not None)
    values = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    taken = {a.arg for a in found.node.args.args}
    out: list[str] = []
    for x in values:
        base = x.id if isinstance(x, ast.Name) and x.id not in taken else "out"
        name = base if base not in taken else f"{base}_{sum(n.startswith(base) for n in taken)}"
        taken.add(name)
        out.append(name)
    return out
