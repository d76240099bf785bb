"""What to write in place of Python that has no meaning in a kernel: by statement, expression, function and attribute."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from tile_eg import language
from tile_eg.frontend.python.instead import INSTEAD
from tile_eg.frontend.python.refused import REFUSED
from tile_eg.language.words import developer_words

OUTSIDE = "write it outside of the kernel: names of the file, and of functions around the kernel, are known in it"
_NO_FAULTS = "nothing is raised while a kernel runs: T.device_assert(condition, message) checks there"
STATEMENTS: dict[type, tuple[str, str]] = {
    ast.Try: ("try", f"try it in the function around the kernel; {_NO_FAULTS}"),
    ast.Global: ("global", "pass the value as an argument; what a function of a kernel makes, it returns"),
    ast.Nonlocal: ("nonlocal", "pass the value as an argument; what a function of a kernel makes, it returns"),
    ast.ClassDef: ("class", OUTSIDE),
    ast.AsyncFunctionDef: ("async def", "write def"), ast.AsyncFor: ("async for", "write for"),
    ast.AsyncWith: ("async with", "write with"), ast.Match: ("match", "write if and elif"),
}  # fmt: skip
"""By kind: its keyword, and what to do instead."""
_STORES = "a kernel gives no values back: store to a tensor, T.copy(x, Y[i, j])"
EXPRESSIONS: dict[type, tuple[str, str]] = {
    ast.Yield: ("yield", _STORES), ast.YieldFrom: ("yield", _STORES), ast.Await: ("await", "leave it out"),
    ast.Starred: ("*", "write the items"), ast.Slice: (":", "slices stand in the index of a buffer: x[i : i + n, :]"),
}  # fmt: skip
FUNCTIONS: dict[Any, str] = {
    float: 'T.cast(x, "float32")', int: 'T.cast(x, "int32")', bool: "a comparison: x != 0", divmod: "x // y and x % y",
    map: "a comprehension: [f(v) for v in values]", filter: "a comprehension: [v for v in values if ...]",
    any: "T.reduce_max of ones and zeros: T.if_then_else(x[i, j] > 0, 1.0, 0.0) in T.Parallel",
    all: "T.reduce_min of ones and zeros: T.if_then_else(x[i, j] > 0, 1.0, 0.0) in T.Parallel",
    sorted: "T.tile.sort(pairs, x, n)", iter: "for i in range(n), where x[i, :] is a row", type: "x.dtype",
    isinstance: "x.dtype == \"float16\", or x.shape",
}  # fmt: skip
"""Functions of Python on tiles."""
REDUCTIONS = {"sum": "T.reduce_sum", "max": "T.reduce_max", "min": "T.reduce_min", "amax": "T.reduce_max", "amin": "T.reduce_min"}
ATTRIBUTES = {
    "mean": "T.reduce_sum(x, dim=1) / n", "reshape": "T.reshape(x, (m, n))", "view": "T.view(x, (m, n))", "transpose": "x.T",
    "t": "x.T", "mT": "x.T", "fill": "T.fill(x, value)", "fill_": "T.fill(x, value)", "zero_": "T.clear(x)",
    "copy_": "T.copy(y, x)", "copy": "T.copy(x, y)", "clone": "T.copy(x, y)", "to": 'T.cast(x, "float16")',
    "type": 'T.cast(x, "float16")', "float": 'T.cast(x, "float32")', "half": 'T.cast(x, "float16")',
    "int": 'T.cast(x, "int32")', "load": "T.copy(x[i, j], y)", "store": "T.copy(y, x[i, j])", "size": "x.shape",
    "ndim": "len(x.shape)", "dot": "T.gemm(a, b, c)", "matmul": "T.gemm(a, b, c)", "square": "x * x", "item": "x[i, j]",
    "numpy": "x itself: arrays are what a call of the kernel takes",
}  # fmt: skip
"""What arrays have and tiles have not."""
STEPS = "take the elements one by one: for i, j in T.Parallel(m, n): y[i, j] = x[i, 2 * j]"
ENDS = "a kernel ends with its last statement; what only some blocks do stands under `if`"
BOUND = "a name is bound above its first use: in the kernel, or in the file around it"
ROUNDS_DOWN = "write // for whole-number division, or T.ceildiv(n, m) to round up"


def of_attribute(x: str, name: str) -> str:
    """A help line for an attribute that arrays have and the tile `x` has not."""
    if name in REDUCTIONS:
        return f"write {REDUCTIONS[name]}({x}, dim=1)"
    if name in ATTRIBUTES:
        return "write " + re.sub(r"\bx\b", lambda m: x, ATTRIBUTES[name])
    return f"write T.{name}({x})" if name in developer_words(language) else "a buffer has shape, dtype and T"


def of_function(function: Any) -> str:
    """A help line for a function of Python's, NumPy's or another library's that is called on a tile."""
    name = getattr(function, "__name__", "")
    if name in developer_words(language):
        return f"write T.{name}(...)"
    if name in INSTEAD:
        return f"write {INSTEAD[name]}"
    known = isinstance(function, type) or inspect.isbuiltin(function)
    way = FUNCTIONS.get(function) if known else None
    return f"write {way}" if way else "tiles are computed with operators and the words of T"


def of_fault(fault: Exception) -> str:
    """A help line for what Python itself says of an expression."""
    return ROUNDS_DOWN if "'float' object cannot be interpreted as an integer" in str(fault) else ""


def shown(name: str, signature: inspect.Signature) -> str:
    """How a word is called: its parameters with their defaults, without those that can have no other value here."""
    fixed = {*REFUSED.get(name.removeprefix("T."), ()), "policy"}
    kept = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name not in fixed]
    return f"{name}{signature.replace(parameters=kept, return_annotation=signature.empty)}"


def _way(unknown: str, signature: inspect.Signature) -> str:
    """What to do in place of an argument that NumPy's or torch's words of that name have; empty where nothing is known."""
    if unknown in ("axis", "dims", "axes") and "dim" in signature.parameters:
        return f"write dim in place of {unknown}"
    return "leave it out, a vector is a column as v[:, None]" if unknown in ("keepdims", "keepdim") else ""


def of_arguments(name: str, signature: inspect.Signature, given: Iterable[str]) -> str:
    """A help line for a call whose arguments do not fit: the parameter that is nearest to an unknown one, and the whole call."""
    unknown = [k for k in given if k not in signature.parameters]
    if unknown and (way := _way(unknown[0], signature)):
        return f"{way}: {shown(name, signature)}"
    close = get_close_matches(unknown[0], list(signature.parameters), 1, 0.5) if unknown else []
    return (f"did you mean {close[0]}? " if close else "") + shown(name, signature)
