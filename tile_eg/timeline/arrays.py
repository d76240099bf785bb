"""Index expressions over arrays of values, for what is asked of all blocks and trips at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tile_eg.ir.index import Expr, some_value
from tile_eg.ir.sampling import spread

MOST_POINTS = 1 << 18
"""Where blocks and trips together are more points than this, some of them stand for all."""
LEAST_SAMPLE = 64


def sample(total: int, beside: int = 1) -> tuple[np.ndarray, Any]:
    """Numbers below `total`, in order, and how many numbers each stands for; `beside` is how many points the other axes have.

    All numbers, or a sample with the first and the last one, which stands for itself: a tensor ends in the last trip.
    """
    return _sample(total, max(LEAST_SAMPLE, MOST_POINTS // max(1, beside)))


@lru_cache(16)
def _sample(total: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    if total <= most:
        return np.arange(total), np.ones(total, int)
    before = spread(total - 1, most - 1)
    return np.array([*before, total - 1]), np.array([(total - 1) / len(before)] * len(before) + [1.0])


def values(e: Expr, env: Mapping[str, Any]) -> Any:
    """`ir.index.evaluate` where variables may stand for arrays, which have to fit one another as in NumPy.

    A quotient by 0 is 0: among all blocks and trips are some that the program never comes to.
    """
    return _values(e, env, {})


def _values(e: Expr, env: Mapping[str, Any], known: dict[Expr, Any]) -> Any:
    """The same; what stands in an expression several times is `known` from its first time on."""
    if e.op == "const":
        return e.args[0]
    if e.op == "var":
        return env[e.args[0]]
    if e.op == "size":
        return env.get(*e.args)  # type: ignore[call-overload]
    if e not in known:
        known[e] = _computed(e, env, known)
    return known[e]


def _computed(e: Expr, env: Mapping[str, Any], known: dict[Expr, Any]) -> Any:
    if e.op == "add":
        return sum(_values(a, env, known) for a in e.args)
    if e.op == "read":
        return some_value(_values(e.args[1], env, known), e.args[2])
    a, b = (_values(x, env, known) for x in e.args)
    return _ARRAYS[e.op](a, b)


def _by_zero_too(divide: Any) -> Any:
    def quotient(a: Any, b: Any) -> Any:
        with np.errstate(divide="ignore"):
            return divide(a, b)

    return quotient


_ARRAYS: dict[str, Any] = {
    "mul": lambda a, b: a * b, "div": _by_zero_too(np.floor_divide), "mod": _by_zero_too(np.remainder),
    "min": np.minimum, "max": np.maximum,
    "lt": lambda a, b: np.less(a, b).astype(int), "and": lambda a, b: np.logical_and(a, b).astype(int),
}  # fmt: skip
