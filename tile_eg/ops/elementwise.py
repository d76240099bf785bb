"""The operations on elements: names, spellings in both languages, meaning, and the vector instruction that computes them.

Everything else that names an operation takes it from these tables: both frontends, the reference meaning, the rules' facts about
what is native, the program's vector instructions and their text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tile_eg.ops.records import record
from tile_eg.ops.types import F16, F32, I8, I16, I32, SIGNED, U8, U16, U32, WHOLE, DType

Meaning = Callable[..., Any]
"""Takes the module that computes, NumPy for arrays or `math` for a number, and then the operands."""
Types = tuple[DType, ...]
NUMBERS: Types = (F16, F32)
SIGNED_TOO: Types = (F16, F32, I16, I32)
ALL: Types = (F16, F32, I16, I32, U16, U32)
BITS: Types = (I16, U16, I32, U32)
"""Element types of 16 and 32 bits: those of instructions on floats, on these and signed whole numbers, on all, on bits."""
ANY: Types = (F16, F32, *WHOLE)
BYTES_TOO: Types = (*BITS, I8, U8)
"""Element types that have a meaning: `frontend/ssa/composed.py` makes what no instruction takes of what one does."""


@record
class Unary:
    """An operation of one tile.

    `tile` and `python` are its names as a function in `.tile` text and in Python (T.exp, T.tile.exp, T.vexp). `native` is the
    Ascend C function of its vector instruction, empty where rules compute it from others, `mode` one more argument of it, and
    `types` the element types that it takes; `exact` says that this is good to a few units in the last place, so that the rules
    may use it. `made_of_others`: `frontend/ssa/composed.py` says of which, before there are rules. `takes` are the element types
    of its operand beside bf16, which is computed in f32. `of_numbers`: also of a number known when the kernel is compiled.
    `apart`: how far the ways to compute it may be apart, in half steps (`ir/accuracy.py`) of the result's type relative to the
    result, and relative to the number 1.
    """

    name: str
    meaning: Meaning
    tile: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    native: str = ""
    mode: str = ""
    types: Types = NUMBERS
    takes: Types = NUMBERS
    exact: bool = True
    made_of_others: bool = False
    of_numbers: bool = False
    apart: tuple[int, int] = (1, 0)


@record
class Binary:
    """An operation of two tiles of one element type.

    `sign` is how both languages write it between its operands, else it is a function; `python` are its other names in Python.
    `native` is its Ascend C function, and `with_scalar` that of the form whose second operand is a number, empty where there is
    none; `types` are the element types that these take. `takes`, `made_of_others`, `apart`: as in `Unary`. `low_bits`: the low
    bits of a result follow from the low bits of whole operands.
    """

    name: str
    meaning: Meaning
    sign: str = ""
    native: str = ""
    with_scalar: str = ""
    apart: tuple[int, int] = (1, 0)
    types: Types = NUMBERS
    takes: Types = NUMBERS
    python: tuple[str, ...] = ()
    made_of_others: bool = False
    low_bits: bool = False


@record
class Comparison:
    """A comparison of two elements, exact; `sign` is how both languages write it, `otherwise` the one that holds of whole numbers
    where it does not, and `turned` the one that says the same of the operands in the other order, where that is another one."""

    name: str
    meaning: Meaning
    sign: str
    otherwise: str
    turned: str = ""


@record
class Reduction:
    """A reduction over one axis; `neutral` is what takes no part in it, `joins` the operation that makes one of two results."""

    name: str
    meaning: Meaning
    neutral: float
    joins: str


def _own(name: str, meaning: Meaning, **fields: Any) -> Unary:
    """An operation that both languages call by its name."""
    return Unary(name, meaning, tile=(name,), python=(name,), **fields)


_MODE = "AscendC::RoundMode::CAST_"


def _whole(name: str, meaning: Meaning, mode: str) -> Unary:
    """The whole number near x, in x's element type: a Cast of float to float."""
    return _own(name, meaning, native="Cast", mode=_MODE + mode, types=(F32,), of_numbers=True)


def _made(name: str, meaning: Meaning, apart: tuple[int, int] = (1, 0), **fields: Any) -> Unary:
    return _own(name, meaning, made_of_others=True, apart=apart, **fields)


def _erf(m: Any, x: Any) -> Any:
    return math.erf(x) if m is math else m.frompyfunc(math.erf, 1, 1)(x).astype(x.dtype)


def _softplus(m: Any, x: Any) -> Any:
    return m.maximum(x, 0) + m.log1p(m.exp(-abs(x)))


def _angle(m: Any, y: Any, x: Any) -> Any:
    """The angle of the point (x, y). The sign of a zero does not count."""
    return (m.atan2 if m is math else m.arctan2)(y + 0.0, x + 0.0)


def _function(name: str, apart: tuple[int, int], numpy: str = "") -> Unary:
    """A function that `math` has by this name, and NumPy, with a name of its own or not, which is a spelling as well."""
    words = (name, numpy) if numpy else (name,)
    return Unary(name, lambda m, x: getattr(m, name if m is math else words[-1])(x), words, words, made_of_others=True,
                 of_numbers=True, apart=apart)  # fmt: skip


def _shift(left: bool) -> Meaning:
    """Bits that are shifted out are lost; a number with a sign keeps it to the right."""
    return lambda m, x, y: m.left_shift(x, y) if left else m.right_shift(x, y)


UNARY: dict[str, Unary] = {
    u.name: u
    for u in (
        _own("exp", lambda m, x: m.exp(x), native="Exp", of_numbers=True),
        Unary("ln", lambda m, x: m.log(x), ("ln", "log"), ("log", "ln"), native="Ln", of_numbers=True),
        _own("sqrt", lambda m, x: m.sqrt(x), native="Sqrt", of_numbers=True),
        _own("rsqrt", lambda m, x: 1 / m.sqrt(x), native="Rsqrt", exact=False, of_numbers=True, apart=(4, 0)),
        _own("reciprocal", lambda m, x: 1 / x, native="Reciprocal", exact=False, apart=(8, 0)),
        _own("abs", lambda m, x: abs(x), native="Abs", takes=ANY, of_numbers=True),
        _own("relu", lambda m, x: m.maximum(x, 0), native="Relu", takes=ANY),
        _own("sigmoid", lambda m, x: 1 / (1 + m.exp(-x)), apart=(8, 1)),  # as 1 / (1 + e)
        _own("tanh", lambda m, x: m.tanh(x), of_numbers=True, apart=(8, 4)),  # as 1 - 2 / (1 + e)
        Unary("neg", lambda m, x: -x, takes=ANY),
        _whole("floor", lambda m, x: m.floor(x), "FLOOR"),
        _whole("ceil", lambda m, x: m.ceil(x), "CEIL"),
        _whole("trunc", lambda m, x: m.trunc(x), "TRUNC"),
        Unary("round", lambda m, x: round(x) if m is math else m.rint(x), ("round", "rint"), ("round", "rint", "nearbyint"),
              "Cast", f"{_MODE}RINT", (F32,), of_numbers=True),
        Unary("round_away", lambda m, x: m.trunc(x + m.copysign(0.5, x)), ("round_away",), (), "Cast", f"{_MODE}ROUND", (F32,)),
        _made("sign", lambda m, x: (x > 0) * 1.0 - (x < 0) * 1.0),
        _made("sin", lambda m, x: m.sin(x), (4, 4), of_numbers=True),
        _made("cos", lambda m, x: m.cos(x), (4, 4), of_numbers=True),
        _made("erf", _erf, (8, 8), of_numbers=True),
        _made("gelu", lambda m, x: x * 0.5 * (1 + _erf(m, x * math.sqrt(0.5))), (16, 32)),
        _made("softplus", _softplus, (8, 4)),
        _function("tan", (16, 4)),
        _function("asin", (8, 0), "arcsin"),
        _function("acos", (8, 0), "arccos"),
        _function("atan", (8, 0), "arctan"),
        _function("sinh", (16, 0)),
        _function("cosh", (16, 0)),
        _function("asinh", (24, 0), "arcsinh"),
        _function("acosh", (24, 0), "arccosh"),
        _function("atanh", (24, 0), "arctanh"),
        _function("log10", (16, 0)),
        _function("log1p", (16, 0)),
        _function("expm1", (24, 0)),
        Unary("not", lambda m, x: ~x, ("bitwise_not",), ("bitwise_not",), "Not", types=BITS, takes=BYTES_TOO),
    )
}
BINARY: dict[str, Binary] = {
    b.name: b
    for b in (
        Binary("add", lambda m, x, y: x + y, "+", "Add", "Adds", types=ALL, takes=ANY, low_bits=True),
        Binary("sub", lambda m, x, y: x - y, "-", "Sub", types=ALL, takes=ANY, low_bits=True),
        Binary("mul", lambda m, x, y: x * y, "*", "Mul", "Muls", types=ALL, takes=ANY, low_bits=True),
        Binary("div", lambda m, x, y: x / y, "/", "Div", apart=(8, 0)),
        Binary("max", lambda m, x, y: m.maximum(x, y), "", "Max", "Maxs", types=SIGNED_TOO, takes=ANY),
        Binary("min", lambda m, x, y: m.minimum(x, y), "", "Min", "Mins", types=SIGNED_TOO, takes=ANY),
        Binary("and", lambda m, x, y: x & y, "&", "And", types=BITS, takes=BYTES_TOO, python=("bitwise_and",), low_bits=True),
        Binary("or", lambda m, x, y: x | y, "|", "Or", types=BITS, takes=BYTES_TOO, python=("bitwise_or",), low_bits=True),
        Binary("xor", lambda m, x, y: x ^ y, "^", takes=BYTES_TOO, python=("bitwise_xor",), made_of_others=True, low_bits=True),
        Binary("shl", _shift(True), "<<", "", "ShiftLeft", types=BITS, takes=BYTES_TOO, python=("bitwise_lshift",)),
        Binary("shr", _shift(False), ">>", "", "ShiftRight", types=BITS, takes=BYTES_TOO, python=("bitwise_rshift",)),
        Binary("pow", lambda m, x, y: x**y, "**", apart=(300, 0), python=("pow",), made_of_others=True),
        Binary("atan2", _angle, apart=(16, 8), python=("atan2",), made_of_others=True),
        Binary("hypot", lambda m, x, y: m.hypot(x, y), apart=(16, 0), python=("hypot",), made_of_others=True),
        Binary("leaky_relu", lambda m, x, y: m.where(x >= 0, x, x * y), python=("leaky_relu",), made_of_others=True),
    )
}
OF_TWO_FLOATS = tuple(b.name for b in BINARY.values() if b.made_of_others and F32 in b.takes)
"""Functions of two numbers that are made of others."""
COMPARE: dict[str, Comparison] = {
    c.name: c
    for c in (
        Comparison("lt", lambda m, x, y: x < y, "<", "ge", "gt"),
        Comparison("le", lambda m, x, y: x <= y, "<=", "gt", "ge"),
        Comparison("gt", lambda m, x, y: x > y, ">", "le", "lt"),
        Comparison("ge", lambda m, x, y: x >= y, ">=", "lt", "le"),
        Comparison("eq", lambda m, x, y: x == y, "==", "ne"),
        Comparison("ne", lambda m, x, y: x != y, "!=", "eq"),
    )
}
SCALAR_UNARY = ("neg", "sqrt", "abs")
BITS_OF_SCALARS = {"and": "bitand", "or": "bitor", "xor": "bitxor", "shl": "shl", "shr": "shr"}
"""What operations on bits are called where the scalar unit does them: `and` and `or` are of conditions there."""
ON_SCALARS = (
    *SCALAR_UNARY, "add", "sub", "mul", "div", "max", "min", "select", *COMPARE, "and", "or", "not", *BITS_OF_SCALARS.values(),
    "floordiv", "floormod",
)  # fmt: skip
"""Operations that the scalar unit has, too, on single elements and on what it has compared."""
REDUCE: dict[str, Reduction] = {
    r.name: r
    for r in (
        Reduction("max", lambda m, x, axis: m.max(x, axis=axis), float("-inf"), "max"),
        Reduction("min", lambda m, x, axis: m.min(x, axis=axis), float("inf"), "min"),
        Reduction("sum", lambda m, x, axis: m.sum(x, axis=axis), 0.0, "add"),
    )
}


def neutral(op: str, dtype: DType) -> float:
    """What takes no part in a reduction."""
    if not dtype.whole:
        return REDUCE[op].neutral
    high = 2 ** (dtype.bits - (0 if dtype in SIGNED else 1)) - 1
    low = 0 if dtype in SIGNED else -high - 1
    return max(float(low), min(float(high), REDUCE[op].neutral))
