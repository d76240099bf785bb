"""Index expressions as functions of the variables' values: what is evaluated in every trip is taken apart once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter

from tile_eg.ir.index import Expr

Value = Callable[[Mapping[str, int]], int]


@lru_cache(maxsize=4096)
def compiled(e: Expr) -> Value:
    """`e` as a function of the variables' values: `ir.index.evaluate` of `e`."""
    if e.op == "const":
        value = e.args[0]
        return lambda env: value
    if e.op == "var":
        return itemgetter(e.args[0])
    if e.op == "add":
        return _sum([compiled(a) for a in e.args])
    left, right = compiled(e.args[0]), compiled(e.args[1])
    by = e.args[1].args[0] if e.args[1].op == "const" else None
    return _OF_CONSTANT[e.op](left, by) if by is not None and e.op in _OF_CONSTANT else _BINARY[e.op](left, right)


def _sum(parts: list[Value]) -> Value:
    if len(parts) == 2:
        first, second = parts
        return lambda env: first(env) + second(env)
    if len(parts) == 3:
        first, second, third = parts
        return lambda env: first(env) + second(env) + third(env)
    return lambda env: sum([part(env) for part in parts])


_OF_CONSTANT: dict[str, Callable[[Value, int], Value]] = {
    "mul": lambda a, n: lambda env: a(env) * n,
    "div": lambda a, n: lambda env: a(env) // n,
    "mod": lambda a, n: lambda env: a(env) % n,
    "lt": lambda a, n: lambda env: int(a(env) < n),
}
_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "mul": lambda a, b: lambda env: a(env) * b(env),
    "div": lambda a, b: lambda env: a(env) // b(env),
    "mod": lambda a, b: lambda env: a(env) % b(env),
    "min": lambda a, b: lambda env: min(a(env), b(env)),
    "max": lambda a, b: lambda env: max(a(env), b(env)),
    "lt": lambda a, b: lambda env: int(a(env) < b(env)),
    "and": lambda a, b: lambda env: int(bool(a(env) and b(env))),
}
