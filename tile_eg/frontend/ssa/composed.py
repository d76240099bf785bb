"""Operations without an instruction, as expressions of others; how far these may be apart is in the table of operations.

What is said of an operation here holds of f32: other floats are cast to it and back, which rounds once more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, get_args

from tile_eg.frontend.checks.types import Typing
from tile_eg.frontend.ssa.functions import FUNCTIONS, PI_PARTS, atan2, hypot
from tile_eg.frontend.ssa.terms import add, div, mul, number, polynomial, sub, un, where
from tile_eg.frontend.ssa.whole_numbers import (
    UNSIGNED,
    below,
    computed,
    converted,
    needs_composition,
    reduced,
    repeated,
    same_bits,
)
from tile_eg.frontend.ssa.whole_ranges import plain
from tile_eg.ir import kernel as kn
from tile_eg.ir.kernel import TileExpr
from tile_eg.ir.seen import indexed
from tile_eg.ops.elementwise import BINARY, UNARY
from tile_eg.ops.types import F32, I32, U32, WHOLE, DType

_TILES = get_args(TileExpr)
_HOLDERS = (kn.Assign, kn.For, kn.Parallel, kn.If, *_TILES)
"""What holds expressions, as a tuple of types: a union of typing's takes `isinstance` many times as long."""


def composed(kernel: kn.Kernel) -> kn.Kernel:
    """The kernel without operations that are made of others."""
    if not _has_whole_numbers(kernel) and not any(map(_needs, _expressions(kernel.body))):
        return kernel
    return replace(kernel, body=Composer(kernel).block(kernel.body))


def _has_whole_numbers(kernel: kn.Kernel) -> bool:
    """Whether there are elements of a type that few instructions take."""
    arrays: list[kn.Tensor | kn.Alloc | kn.Cast] = [*kernel.tensors, *kn.allocs(kernel.body)]
    arrays += [e for e in _expressions(kernel.body) if isinstance(e, kn.Cast)]
    return any(needs_composition(x.dtype) for x in arrays)


def _expressions(x: Any) -> Any:
    """Every expression in statements."""
    if isinstance(x, tuple):
        for part in x:
            yield from _expressions(part)
    elif isinstance(x, _HOLDERS):
        if isinstance(x, _TILES):
            yield x
        for f in fields(x):
            yield from _expressions(getattr(x, f.name))


def _needs(e: TileExpr) -> bool:
    """Whether it may be made of others; a comparison may be one of whole numbers."""
    table = {kn.Unary: UNARY, kn.Binary: BINARY}.get(type(e))
    return isinstance(e, kn.Choose) or getattr(e, "op", "") in ("abs", "relu") or (table is not None and _of_others(table[e.op]))  # type: ignore[union-attr,index]


def _of_others(op: Any) -> bool:
    return op.made_of_others or (bool(op.native) and op.types == (F32,))


class Composer:
    """Rewrites the expressions of one kernel."""

    def __init__(self, kernel: kn.Kernel) -> None:
        self.arrays: dict[str, kn.Tensor | kn.Alloc] = {t.name: indexed(t) for t in kernel.tensors}
        self.typing = Typing(self.arrays)
        self.known: dict[int, tuple[TileExpr, TileExpr]] = {}

    def block(self, body: tuple[kn.Stmt, ...]) -> tuple[kn.Stmt, ...]:
        return tuple(map(self.statement, body))

    def statement(self, s: kn.Stmt) -> kn.Stmt:
        match s:
            case kn.Alloc():
                self.arrays[s.name] = s
                return s
            case kn.Assign():
                return replace(s, value=self.in_type(self.of(s.value), self.arrays[s.target.name].dtype))
            case kn.If():
                return replace(s, then=self.block(s.then), otherwise=self.block(s.otherwise))
        return replace(s, body=self.block(s.body))  # type: ignore[arg-type]

    def dtype(self, *operands: TileExpr) -> DType | None:
        return next((d for d in (self.typing.of(x).dtype for x in operands) if d is not None), None)

    def in_type(self, value: TileExpr, dtype: DType) -> TileExpr:
        """A value that is cast where it is stored, made of what there is."""
        if self.is_of_positions(value, dtype):
            return self.of(kn.Cast(dtype, kn.Cast(F32, value)))
        of = self.dtype(value)
        made = None if of is None else converted(value, of, dtype)
        return value if made is None else self.of(made)

    def is_of_positions(self, value: TileExpr, to: DType) -> bool:
        """Whether a number without a sign is made of positions and plain numbers alone, which are numbers of f32."""
        return to in UNSIGNED and not isinstance(value, kn.Number) and self.dtype(value) is None

    def of(self, e: TileExpr) -> TileExpr:
        """The expression with its operands, and then itself, made of what there is: once for all that it is a part of."""
        if id(e) not in self.known:
            self.known[id(e)] = e, plain(self.made(e), lambda x: self.typing.of(x).dtype)
        return self.known[id(e)][1]

    def made(self, e: TileExpr) -> TileExpr:
        """The same, with every way through bytes that the operations ask for."""
        changed = {f.name: self.of(x) for f in fields(e) if isinstance(x := getattr(e, f.name), TileExpr)}  # type: ignore[misc,arg-type]
        if isinstance(e, kn.Whole):
            xs = tuple(map(self.of, e.xs))
            return e if xs == e.xs else replace(e, xs=xs)
        e = replace(e, **changed) if any(changed[n] is not getattr(e, n) for n in changed) else e  # type: ignore[arg-type]
        if isinstance(e, kn.Unary | kn.Binary) and (made := self.whole_numbers(e)) is not e:
            return self.of(made)
        match e:
            case kn.Unary() if _of_others(UNARY[e.op]):
                function = _FUNCTIONS.get(e.op, lambda x: kn.Unary(e.op, x, e.span))
                return self.in_f32(function, e, e.x)
            case kn.Cast() if self.is_of_positions(e.x, e.dtype) and not (isinstance(e.x, kn.Index) and e.dtype == U32):
                return self.of(replace(e, x=kn.Cast(F32, e.x, e.span)))
            case kn.Cast() if (of := self.dtype(e.x)) is not None:
                other = converted(e.x, of, e.dtype)
                return e if other is None else self.of(replace(other, span=e.span))
            case kn.Reduce() | kn.Broadcast():
                other = (reduced if isinstance(e, kn.Reduce) else repeated)(e, self.dtype(e.x))  # type: ignore[arg-type]
                return e if other is e else self.of(other)
            case kn.Unary(op="abs" | "relu") if self.dtype(e.x) in WHOLE:
                return kn.Binary("max", e.x, mul(e.x, -1) if e.op == "abs" else number(0), e.span)
            case kn.Binary(op="xor"):
                return _xor(e.x, e.y)
            case kn.Binary() if BINARY[e.op].made_of_others:
                return self.in_f32(_PAIRS[e.op], e, e.x, e.y)
            case kn.Choose():
                return self.choice(e)
            case kn.Select() if (chosen := self.dtype(e.x, e.y)) in UNSIGNED:
                x, y = (same_bits(z, chosen) for z in (e.x, e.y))  # type: ignore[arg-type]
                return self.of(kn.Cast(chosen, replace(e, x=x, y=y), e.span))  # type: ignore[arg-type]
        return e

    def whole_numbers(self, e: kn.Unary | kn.Binary) -> TileExpr:
        """An operation on whole numbers that no instruction takes, by others; beside floats they become floats."""
        operands = {n: getattr(e, n) for n in ("x", "y") if hasattr(e, n)}
        types = {n: self.typing.of(x).dtype for n, x in operands.items()}
        found = {d for d in types.values() if d is not None}
        places = [n for n, t in types.items() if t is None and not isinstance(operands[n], kn.Number)]
        if len(found) == 1 and not (places and found & {*UNSIGNED}):
            return computed(e, found.pop())
        if found == {U32}:
            return replace(e, **{n: kn.Cast(U32, operands[n], e.span) for n in places})  # type: ignore[arg-type]
        alone = {n: kn.Cast(F32, x, e.span) for n, x in operands.items() if needs_composition(types[n])}
        return replace(e, **alone) if (places or len(found) > 1) and alone else e  # type: ignore[arg-type]

    def in_f32(self, made: Callable[..., TileExpr], e: kn.Unary | kn.Binary, *operands: TileExpr) -> TileExpr:
        dtype = self.dtype(*operands)
        if dtype in (None, F32):
            return _at(e, made(*operands))
        wide: list[TileExpr] = [x if isinstance(x, kn.Number) else kn.Cast(F32, x, e.span) for x in operands]
        return kn.Cast(dtype, _at(e, made(*wide)), e.span)

    def choice(self, e: kn.Choose) -> TileExpr:
        """Whole numbers are compared in f32, which holds the short ones; of i32, a <= b where min(a, b) - a is 0: no other number
        becomes 0 in f32."""
        dtype, chosen = self.dtype(e.a, e.b), self.dtype(e.x, e.y)
        if chosen in UNSIGNED:
            x, y = (same_bits(z, chosen) for z in (e.x, e.y))
            return self.of(kn.Cast(chosen, replace(e, x=x, y=y), e.span))
        if dtype not in WHOLE or e.op == kn.BIT:
            return e
        if dtype in UNSIGNED and all(isinstance(x, kn.Number) or self.dtype(x) == dtype for x in (e.a, e.b)):
            return self.of(replace(e, a=below(e.a, dtype), b=below(e.b, dtype)))
        if dtype != I32:
            a, b = (x if isinstance(x, kn.Number) else self.of(kn.Cast(F32, x, e.span)) for x in (e.a, e.b))
            return replace(e, a=a, b=b)
        op, x, y = ({"ge": "le", "gt": "lt"}[e.op], e.b, e.a) if e.op in ("ge", "gt") else (e.op, e.a, e.b)
        least = x if op in ("eq", "ne") else kn.Binary("min", x, y, e.span)
        apart = kn.Cast(F32, kn.Binary("sub", least, x if op == "le" else y, e.span), e.span)
        return replace(e, op="ne" if op in ("lt", "ne") else "eq", a=apart, b=kn.Number(0.0, e.span))


def _at(e: kn.Unary | kn.Binary, made: TileExpr) -> TileExpr:
    return replace(made, span=e.span)


def _sign(x: TileExpr) -> TileExpr:
    return where(x, "gt", 0, 1, where(x, "lt", 0, -1, 0))


SINE = (-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6)
"""The series of (sin(r) / r - 1) / r^2 in r^2; its next term is below 2^-26 for |r| <= pi / 2."""


def _sine(x: TileExpr, turns: TileExpr, half: bool) -> TileExpr:
    """The sine of what is left of x after so many half turns, with the sign of their number."""
    rest = x
    for part in PI_PARTS:
        rest = sub(rest, mul(turns, part))
    whole = sub(turns, 0.5) if half else turns
    odd = sub(whole, mul(un("floor", mul(whole, 0.5)), 2))
    square = mul(rest, rest)
    value = add(rest, mul(mul(rest, square), polynomial(square, *SINE)))
    return mul(value, sub(1, mul(odd, 2)))


def _sin(x: TileExpr) -> TileExpr:
    return _sine(x, un("round", mul(x, 1 / math.pi)), False)


def _cos(x: TileExpr) -> TileExpr:
    """The sine from the nearest odd number of quarter turns on: cos(x) = -sin(x - (n + 1/2) pi) for even n."""
    turns = add(un("round", sub(mul(x, 1 / math.pi), 0.5)), 0.5)
    return mul(_sine(x, turns, True), -1)


ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0)
"""M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 7.1.26: within 1.5e-7 of erf."""


def _erf(x: TileExpr) -> TileExpr:
    size = un("abs", x)
    t = div(1, add(mul(size, 0.3275911), 1))
    value = sub(1, mul(polynomial(t, *ERF), un("exp", mul(mul(size, size), -1))))
    return where(x, "lt", 0, mul(value, -1), value)


def _gelu(x: TileExpr) -> TileExpr:
    return mul(mul(x, 0.5), add(_erf(mul(x, math.sqrt(0.5))), 1))


def _softplus(x: TileExpr) -> TileExpr:
    """max(x, 0) + ln(1 + exp(-|x|)): nothing overflows."""
    return add(kn.Binary("max", x, number(0)), un("ln", add(un("exp", mul(un("abs", x), -1)), 1)))


def _leaky_relu(x: TileExpr, y: TileExpr) -> TileExpr:
    return where(x, "ge", 0, x, mul(x, y))


def _power(x: TileExpr, y: TileExpr) -> TileExpr:
    """exp(y ln |x|), with the sign of an odd power; no number for a negative base and a broken exponent."""
    if isinstance(y, kn.Number):
        return _constant_power(x, y.value)
    size = un("abs", x)
    power = where(size, "eq", 1, 1, where(y, "eq", 0, 1, un("exp", mul(y, un("ln", size)))))
    odd = sub(y, mul(un("floor", mul(y, 0.5)), 2))
    signed = where(y, "eq", un("floor", y), where(odd, "eq", 1, mul(power, -1), power), _broken(x, size, power))
    return where(x, "lt", 0, signed, power)


def _broken(x: TileExpr, size: TileExpr, power: TileExpr) -> TileExpr:
    """A broken power of a negative number: none, but of minus infinity."""
    return where(size, "eq", math.inf, power, un("ln", x))


def _constant_power(x: TileExpr, n: float) -> TileExpr:
    """Products for small whole exponents, roots for halves."""
    if n < 0 and (-n * 2).is_integer() and -n <= 8:
        return div(1, _constant_power(x, -n))
    if n == 0.5:
        return un("sqrt", x)
    if n.is_integer() and 0 <= n <= 8:
        half = _constant_power(x, n // 2) if n > 1 else number(1)
        return number(1) if n == 0 else x if n == 1 else mul(half, half) if n % 2 == 0 else mul(mul(half, half), x)
    size = un("abs", x)
    power = un("exp", mul(un("ln", size), n))
    signed = (mul(power, -1) if n % 2 else power) if n.is_integer() else _broken(x, size, power)
    return where(x, "lt", 0, signed, power)


def _xor(x: TileExpr, y: TileExpr) -> TileExpr:
    return sub(kn.Binary("or", x, y), kn.Binary("and", x, y))


_FUNCTIONS: dict[str, Callable[[TileExpr], TileExpr]] = {
    "sign": _sign,
    "sin": _sin,
    "cos": _cos,
    "erf": _erf,
    "gelu": _gelu,
    "softplus": _softplus,
    **FUNCTIONS,
}
_PAIRS: dict[str, Callable[[TileExpr, TileExpr], TileExpr]] = {
    "pow": _power, "leaky_relu": _leaky_relu, "atan2": atan2, "hypot": hypot,
}  # fmt: skip
