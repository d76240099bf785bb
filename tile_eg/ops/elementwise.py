"""The operations on elements: names, spellings in both languages, meaning, and the vector instruction that computes them.

Everything else that names an operation takes it from these tables: both frontends, the reference meaning, the rules' facts about
what is native, the program's vector instructions and their text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Meaning = Callable[..., Any]
"""Takes the module that computes, NumPy for arrays or `math` for a number, and then the operands."""


@dataclass(frozen=True)
class Unary:
    """An operation of one tile.

    `tile` and `python` are its names as a function in `.tile` text and in Python (T.exp, T.tile.exp, T.vexp). `native` is the
    Ascend C function of its vector instruction, empty where rules compute it from others; `exact` says that this is good to a few
    units in the last place, so that the rules may use it. `of_numbers`: also of a number known when the kernel is compiled.
    `apart`: how far the ways to compute it may be apart, in half steps (`ir/accuracy.py`) of the result's type relative to the
    result, and relative to the number 1.
    """

    name: str
    meaning: Meaning
    tile: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    native: str = ""
    exact: bool = True
    of_numbers: bool = False
    apart: tuple[int, int] = (1, 0)


@dataclass(frozen=True)
class Binary:
    """An operation of two tiles of one element type.

    `sign` is how both languages write it between its operands, else it is a function. `native` is its Ascend C function, and
    `with_scalar` that of the form whose second operand is a number, empty where there is none. `apart`: as in `Unary`.
    """

    name: str
    meaning: Meaning
    sign: str = ""
    native: str = ""
    with_scalar: str = ""
    apart: tuple[int, int] = (1, 0)


@dataclass(frozen=True)
class Comparison:
    """A comparison of two elements, exact; `sign` is how both languages write it."""

    name: str
    meaning: Meaning
    sign: str


@dataclass(frozen=True)
class Reduction:
    """A reduction over one axis; `neutral` is what takes no part in it."""

    name: str
    meaning: Meaning
    neutral: float


def _own(name: str, meaning: Meaning, **fields: Any) -> Unary:
    """An operation that both languages call by its name."""
    return Unary(name, meaning, tile=(name,), python=(name,), **fields)


UNARY: dict[str, Unary] = {
    u.name: u
    for u in (
        _own("exp", lambda m, x: m.exp(x), native="Exp", of_numbers=True),
        Unary("ln", lambda m, x: m.log(x), ("ln", "log"), ("log", "ln"), native="Ln", of_numbers=True),
        _own("sqrt", lambda m, x: m.sqrt(x), native="Sqrt", of_numbers=True),
        _own("rsqrt", lambda m, x: 1 / m.sqrt(x), native="Rsqrt", exact=False, of_numbers=True, apart=(4, 0)),
        _own("reciprocal", lambda m, x: 1 / x, native="Reciprocal", exact=False, apart=(8, 0)),
        _own("abs", lambda m, x: abs(x), native="Abs", of_numbers=True),
        _own("relu", lambda m, x: m.maximum(x, 0), native="Relu"),
        _own("sigmoid", lambda m, x: 1 / (1 + m.exp(-x)), apart=(8, 1)),  # as 1 / (1 + e)
        _own("tanh", lambda m, x: m.tanh(x), of_numbers=True, apart=(8, 4)),  # as 1 - 2 / (1 + e)
        Unary("neg", lambda m, x: -x),
    )
}
BINARY: dict[str, Binary] = {
    b.name: b
    for b in (
        Binary("add", lambda m, x, y: x + y, "+", "Add", "Adds"),
        Binary("sub", lambda m, x, y: x - y, "-", "Sub"),
        Binary("mul", lambda m, x, y: x * y, "*", "Mul", "Muls"),
        Binary("div", lambda m, x, y: x / y, "/", "Div", apart=(8, 0)),
        Binary("max", lambda m, x, y: m.maximum(x, y), "", "Max", "Maxs"),
        Binary("min", lambda m, x, y: m.minimum(x, y), "", "Min", "Mins"),
    )
}
COMPARE: dict[str, Comparison] = {
    c.name: c
    for c in (
        Comparison("lt", lambda m, x, y: x < y, "<"),
        Comparison("le", lambda m, x, y: x <= y, "<="),
        Comparison("gt", lambda m, x, y: x > y, ">"),
        Comparison("ge", lambda m, x, y: x >= y, ">="),
        Comparison("eq", lambda m, x, y: x == y, "=="),
        Comparison("ne", lambda m, x, y: x != y, "!="),
    )
}
REDUCE: dict[str, Reduction] = {
    r.name: r
    for r in (
        Reduction("max", lambda m, x, axis: m.max(x, axis=axis), float("-inf")),
        Reduction("min", lambda m, x, axis: m.min(x, axis=axis), float("inf")),
        Reduction("sum", lambda m, x, axis: m.sum(x, axis=axis), 0.0),
    )
}
