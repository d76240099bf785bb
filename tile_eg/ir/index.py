"""Integer expressions over the block index, the vector half and loop variables.

They say where a tile starts, how much of it is valid, and which slot of a ring is meant. They are built in a normal form
(constants folded, sums flattened), so that two equal expressions written alike compare equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

BLOCK = "block"
SUB = "sub"
Interval = tuple[int, int]


@dataclass(frozen=True)
class Expr:
    """`op` is const, var, add, mul, div, mod, min, max, lt or and; `args` are Exprs, or one int (const) or str (var)."""

    op: str
    args: tuple

    def __add__(self, other: Expr | int) -> Expr:
        return add(self, wrap(other))

    __radd__ = __add__

    def __sub__(self, other: Expr | int) -> Expr:
        return add(self, mul(wrap(other), const(-1)))

    def __rsub__(self, other: int) -> Expr:
        return wrap(other) - self

    def __mul__(self, other: Expr | int) -> Expr:
        return mul(self, wrap(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> Expr:
        return div(self, wrap(other))

    def __mod__(self, other: int) -> Expr:
        return mod(self, wrap(other))

    @property
    def value(self) -> int | None:
        """The constant's value, or None when it varies."""
        return self.args[0] if self.op == "const" else None

    def __str__(self) -> str:
        return text(self)


def const(n: int) -> Expr:
    return Expr("const", (int(n),))


def var(name: str) -> Expr:
    return Expr("var", (name,))


def wrap(x: Expr | int) -> Expr:
    return x if isinstance(x, Expr) else const(x)


ZERO, ONE = const(0), const(1)


def terms_of(e: Expr) -> dict[Expr, int]:
    """e as a sum: atom -> coefficient; the constant part stands under ONE."""
    if e.op == "const":
        return {ONE: e.args[0]}
    if e.op == "add":
        out: dict[Expr, int] = {}
        for a in e.args:
            for k, c in terms_of(a).items():
                out[k] = out.get(k, 0) + c
        return out
    if e.op == "mul" and e.args[1].op == "const":
        return {k: c * e.args[1].args[0] for k, c in terms_of(e.args[0]).items()}
    return {e: 1}


def _from_terms(terms: Mapping[Expr, int]) -> Expr:
    parts = []
    for k in sorted((k for k, c in terms.items() if c and k != ONE), key=text):
        parts.append(k if terms[k] == 1 else Expr("mul", (k, const(terms[k]))))
    if c := terms.get(ONE, 0):
        parts.append(const(c))
    return parts[0] if len(parts) == 1 else Expr("add", tuple(parts)) if parts else ZERO


def add(a: Expr, b: Expr) -> Expr:
    out = dict(terms_of(a))
    for k, c in terms_of(b).items():
        out[k] = out.get(k, 0) + c
    return _from_terms(out)


def mul(a: Expr, b: Expr) -> Expr:
    if a.op == "const":
        a, b = b, a
    if b.op == "const":
        return _from_terms({k: c * b.args[0] for k, c in terms_of(a).items()})
    return Expr("mul", (a, b))


def div(a: Expr, b: Expr) -> Expr:
    """Floor division."""
    if b.value == 1:
        return a
    if a.value is not None and b.value:
        return const(a.value // b.value)
    if b.value and all(c % b.value == 0 for c in terms_of(a).values()):
        return _from_terms({k: c // b.value for k, c in terms_of(a).items()})
    return Expr("div", (a, b))


def mod(a: Expr, b: Expr) -> Expr:
    if b.value == 1:
        return ZERO
    if a.value is not None and b.value:
        return const(a.value % b.value)
    if b.value and all(c % b.value == 0 for c in terms_of(a).values()):
        return ZERO
    return Expr("mod", (a, b))


def minimum(a: Expr | int, b: Expr | int) -> Expr:
    a, b = wrap(a), wrap(b)
    if a.value is not None and b.value is not None:
        return const(min(a.value, b.value))
    return a if a == b else Expr("min", tuple(sorted((a, b), key=text)))


def maximum(a: Expr | int, b: Expr | int) -> Expr:
    a, b = wrap(a), wrap(b)
    if a.value is not None and b.value is not None:
        return const(max(a.value, b.value))
    return a if a == b else Expr("max", tuple(sorted((a, b), key=text)))


def less(a: Expr | int, b: Expr | int) -> Expr:
    """1 where a < b, else 0."""
    a, b = wrap(a), wrap(b)
    if a.value is not None and b.value is not None:
        return const(int(a.value < b.value))
    return Expr("lt", (a, b))


def both(a: Expr, b: Expr) -> Expr:
    """1 where both conditions hold."""
    if a == ONE:
        return b
    return a if b == ONE else Expr("and", (a, b))


_BINARY: dict[str, Callable[[int, int], int]] = {
    "mul": lambda a, b: a * b, "div": lambda a, b: a // b, "mod": lambda a, b: a % b, "min": min, "max": max,
    "lt": lambda a, b: int(a < b), "and": lambda a, b: int(bool(a and b)),
}  # fmt: skip


def evaluate(e: Expr, env: Mapping[str, int]) -> int:
    """The value of e where `env` gives every variable's value; KeyError names a variable that it lacks."""
    if e.op == "const":
        return e.args[0]
    if e.op == "var":
        return env[e.args[0]]
    if e.op == "add":
        return sum(evaluate(a, env) for a in e.args)
    return _BINARY[e.op](evaluate(e.args[0], env), evaluate(e.args[1], env))


def substitute(e: Expr, env: Mapping[str, Expr]) -> Expr:
    """e with variables replaced, in normal form again."""
    if e.op == "const":
        return e
    if e.op == "var":
        return env.get(e.args[0], e)
    a = [substitute(x, env) for x in e.args]
    if e.op == "add":
        out = ZERO
        for x in a:
            out = add(out, x)
        return out
    return {"mul": mul, "div": div, "mod": mod, "min": minimum, "max": maximum, "lt": less, "and": both}[e.op](*a)


@lru_cache(maxsize=65536)
def variables(e: Expr) -> frozenset[str]:
    if e.op == "var":
        return frozenset(e.args)
    if e.op == "const":
        return frozenset()
    return frozenset().union(*(variables(a) for a in e.args))


def bounds(e: Expr, ranges: Mapping[str, Interval]) -> Interval:
    """An interval (inclusive) that holds every value of e where each variable stays in its own interval."""
    if e.op == "const":
        return e.args[0], e.args[0]
    if e.op == "var":
        return ranges[e.args[0]]
    parts = [bounds(a, ranges) for a in e.args]
    if e.op == "add":
        return sum(p[0] for p in parts), sum(p[1] for p in parts)
    (a, b), (c, d) = parts
    if e.op == "mod" and c == d and c > 0:
        return (a % c, b % c) if a // c == b // c else (0, c - 1)
    if e.op == "mod":
        return (0, min(b, d - 1)) if a >= 0 and c > 0 else (min(0, c + 1), max(0, d - 1))
    if e.op in ("mul", "div"):
        corners = [_BINARY[e.op](x, y) for x in (a, b) for y in (c, d)]
        return min(corners), max(corners)
    if e.op in ("min", "max"):
        f = _BINARY[e.op]
        return f(a, c), f(b, d)
    return 0, 1


_SIGN = {"div": "/", "mod": "%", "mul": "*", "lt": "<", "and": "&&"}


def text(e: Expr) -> str:
    """e as text that reads the same in `.program` text and in C++ (operands are never negative where / or % is used)."""
    if e.op == "const":
        return str(e.args[0])
    if e.op == "var":
        return e.args[0]
    parts = [text(a) for a in e.args]
    if e.op == "add":
        return "(" + " + ".join(parts).replace("+ -", "- ") + ")"
    if e.op in ("min", "max"):
        return f"{e.op}({parts[0]}, {parts[1]})"
    return f"({parts[0]} {_SIGN[e.op]} {parts[1]})"
