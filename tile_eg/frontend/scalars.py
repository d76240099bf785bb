"""Arithmetic that is done while a kernel is read: sizes, constants, and index expressions over grid and loop variables."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.index_bits import bits
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.of_calls import MOST_FACTORS, OfCall
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ops.elementwise import UNARY

Scalar = int | float | Expr | OfCall


def equal(a: Expr, b: Expr) -> Expr:
    """1 where a == b, else 0. A variable is never negative, so that `k == 0` is `k < 1`."""
    if b == ix.ZERO and a.op == "var":
        return ix.less(a, 1)
    return ix.both(ix.less(a, b + 1), ix.less(b, a + 1))


def unequal(a: Expr, b: Expr) -> Expr:
    return ix.less(0, a) if b == ix.ZERO and a.op == "var" else negation(equal(a, b))


def negation(condition: Expr) -> Expr:
    """1 where the condition is 0, else 0."""
    return ix.less(condition, 1)


COMPARE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "<": ix.less,
    ">": lambda a, b: ix.less(b, a),
    "<=": lambda a, b: ix.less(a, b + 1),
    ">=": lambda a, b: ix.less(b, a + 1),
    "==": equal,
    "!=": unequal,
}


def ceildiv(a: Scalar, b: Scalar) -> Scalar:
    return arithmetic("//", arithmetic("-", arithmetic("+", a, b), 1), b)




FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    word: (1, partial(op.meaning, math)) for op in UNARY.values() if op.of_numbers for word in op.tile
} | {"ceildiv": (2, ceildiv), "min": (2, min), "max": (2, max)}
CONSTANTS = {"inf": math.inf, "pi": math.pi}

_NUMBERS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b,
}  # fmt: skip
_INDICES: dict[str, Callable[[Expr, Expr], Expr]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "//": ix.div, "%": ix.mod,
    "min": ix.minimum, "max": ix.maximum,
}  # fmt: skip
_BITS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "<<": ("shl", operator.lshift), ">>": ("shr", operator.rshift),
    "&": ("and", operator.and_), "|": ("or", operator.or_), "^": ("xor", operator.xor),
}  # fmt: skip


OF_INDICES = ("+", "-", "*", "//", "%")


def is_scalar(x: object) -> bool:
    return isinstance(x, int | float | Expr | OfCall)


def arithmetic(op: str, a: Scalar, b: Scalar, span: Span | None = None) -> Scalar:
    """a op b, for numbers and for index expressions; `/` of two numbers is true division."""
    if op in _BITS:
        return _of_bits(op, as_index(a, span), as_index(b, span), span)
    if op == "**":
        return _power(a, b, span)
    if isinstance(a, Expr) or isinstance(b, Expr):
        return _index_arithmetic(op, a, b, span)
    if op in ("/", "//", "%") and not isinstance(b, OfCall) and b == 0:
        raise TileError("division by zero", span)
    return _NUMBERS[op](a, b)  # type: ignore[arg-type]


def _power(a: Any, b: Any, span: Span | None) -> Any:
    """a ** b of numbers; of what is not known while the kernel is read a product, where b is a small whole number."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        found = _power_of(a, b)
        if found is None:
            raise TileError(f"{a} ** {b} is no number", span)
        return found
    if isinstance(a, OfCall) or isinstance(b, OfCall):
        return a**b
    if isinstance(b, int) and 1 <= b <= MOST_FACTORS:
        return reduce(lambda x, y: arithmetic("*", x, y, span), [a] * b)
    raise TileError(f"an index has powers from 1 to {MOST_FACTORS}", span, help="compute it in an element loop, as a float")


def _power_of(a: float, b: float) -> int | float | None:
    """a ** b; None where it is no number, or beyond all floats."""
    try:
        found = float(a) ** b
    except (ZeroDivisionError, OverflowError):
        return None
    return a**b if not isinstance(found, complex) and math.isfinite(found) else None


def _of_bits(op: str, a: Expr, b: Expr, span: Span | None) -> Scalar:
    word, of_numbers = _BITS[op]
    shifts = op in ("<<", ">>")
    if shifts and b.value is not None and not 0 <= b.value < 32:
        raise TileError(f"a shift of an index or a size is by 0 to 31 bits, not {b.value}", span)
    if a.value is not None and b.value is not None:
        return of_numbers(a.value, b.value)
    if (found := bits(word, a, b)) is not None:
        return fold(found)
    if shifts:
        help = "write one statement for each shift, with its number"
        raise TileError(f"the right side of `{op}` has to be a constant in an index", span, help=help)
    raise TileError(f"one side of `{op}` has to be a constant, 0 or more, in an index", span, help="use //, % and * instead")


def leaves_integers(op: str, a: Scalar, b: Scalar) -> bool:
    """Whether an index is divided or a power, or meets a number that is not whole: no index any more, but a number."""
    kinds = (type(a), type(b))
    return Expr in kinds and (op in ("/", "**") or float in kinds or OfCall in kinds)


def _index_arithmetic(op: str, a: Scalar, b: Scalar, span: Span | None) -> Scalar:
    if op == "/":
        raise TileError("`/` does not give an integer here", span, help="write // for whole-number division of indices")
    left, right = as_index(a, span), as_index(b, span)
    if op in ("//", "%") and (right.value is None or right.value <= 0):
        raise TileError(f"the right side of `{op}` has to be a positive constant in an index", span)
    return fold(_INDICES[op](left, right))


def fold(e: Expr) -> Scalar:
    """A constant index expression as an int."""
    return e if e.value is None else e.value


def call(name: str, args: list[Scalar], span: Span | None = None) -> Scalar:
    """A scalar function of scalar arguments, e.g. ceildiv(M, BM), min(k, 3), sqrt(D)."""
    count, f = FUNCTIONS[name]
    if len(args) != count:
        raise TileError(f"`{name}` takes {count} argument{'s' * (count > 1)}, not {len(args)}", span)
    if any(isinstance(a, Expr) for a in args):
        if name in ("min", "max"):
            return _index_arithmetic(name, args[0], args[1], span)
        if name != "ceildiv":
            raise TileError(f"`{name}` of a grid or loop variable is not supported", span)
    try:
        return f(*args)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise TileError(f"`{name}` is not defined for {', '.join(map(str, args))}", span) from None


def as_index(x: object, span: Span | None) -> Expr:
    """x as an index expression; TileError where it is not a whole number."""
    if isinstance(x, Expr):
        return x
    if isinstance(x, int):
        return ix.const(x)
    if isinstance(x, float):
        then = f"and {int(x)} for {x}" if x == x // 1 else "or ceildiv(n, m) to round up"
        help = f"write // for whole-number division, {then}"
        raise TileError(f"an index or a size is a whole number, not {x}", span, help=help)
    raise TileError("an index or a size has to be a number, not a tile", span)


def as_size(x: object, what: str, span: Span | None) -> int:
    """x as a positive constant; `what` names it in the error."""
    e = as_index(x, span)
    if e.value is None:
        raise TileError(f"{what} has to be a constant, not {index_text(e)}", span)
    if e.value < 1:
        raise TileError(f"{what} has to be at least 1, not {e.value}", span)
    return e.value
