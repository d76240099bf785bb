"""Integer expressions over the block index, the vector half and loop variables.

They say where a tile starts, how much of it is valid, and which slot of a ring is meant. They are built in a normal form, so that
most equal expressions compare equal: constants are folded, sums flattened, common factors cancelled, and what a divisor divides
stands outside its quotient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import gcd

from tile_eg.ops.records import record

BLOCK, SUB = "block", "sub"
EACH = "each"
"""The row of a window whose rows lie anywhere: its offset is that of row `each`."""
READ = "[]"
"""In what variables stand for, the function that gives the elements of tensors: (name, place) -> value."""
ANY, MOST_SIZE = (1 << 31) - 1, (1 << 31) - (1 << 16)  # a size of a call is an int32_t when it is rounded up to whole tiles, too
Interval = tuple[int, int]
Indices = tuple[tuple["Expr", int], ...]


@record(guarded=False)
class Expr:
    """`op` is const, var, add, mul, div, mod, min, max, lt or and; `args` are Exprs, or one int (const) or str (var).

    read: an element of a tensor of whole numbers. `args` are its name, its place (an Expr, from 0), the most that it can be (then
    it is not negative, as what it picks lies inside of something; `ANY`: nothing is known), and its indices as written, each with
    the size of its dimension (one dimension: none). A number that the scalar unit keeps is the element 0 of its name.
    size: a size that is known at run time; `args` are its name and a number that stands for it where one is asked for.
    """

    op: str
    args: tuple

    def __hash__(self) -> int:
        try:
            return self._hash  # type: ignore[attr-defined,no-any-return]
        except AttributeError:
            object.__setattr__(self, "_hash", hash((self.op, self.args)))
        return self._hash  # type: ignore[attr-defined,no-any-return]

    def __reduce__(self) -> tuple:
        return Expr, (self.op, self.args)  # the hash is another one in another process

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


def from_terms(terms: Mapping[Expr, int]) -> Expr:
    """The sum of atoms, each so often."""
    if any(k.op == "mod" for k in terms):
        terms = _rejoined(terms)
    parts = []
    for k in sorted((k for k, c in terms.items() if c and k != ONE), key=text):
        parts.append(k if terms[k] == 1 else Expr("mul", (k, const(terms[k]))))
    if c := terms.get(ONE, 0):
        parts.append(const(c))
    return parts[0] if len(parts) == 1 else Expr("add", tuple(parts)) if parts else ZERO


def _rejoined(terms: Mapping[Expr, int]) -> dict[Expr, int]:
    """A sum in which x // n * n + x % n is x."""
    out = dict(terms)
    for k in [k for k in terms if k.op == "mod" and terms[k]]:
        quotient, n = Expr("div", k.args), k.args[1].value
        if n and out.get(quotient) == out[k] * n:
            c = out.pop(k)
            del out[quotient]
            for x, more in terms_of(k.args[0]).items():
                out[x] = out.get(x, 0) + c * more
    return out


@lru_cache(maxsize=65536)
def add(a: Expr, b: Expr) -> Expr:
    out = dict(terms_of(a))
    for k, c in terms_of(b).items():
        out[k] = out.get(k, 0) + c
    return from_terms(out)


@lru_cache(maxsize=65536)
def mul(a: Expr, b: Expr) -> Expr:
    if a.op == "const":
        a, b = b, a
    if b.op == "const":
        return from_terms({k: c * b.args[0] for k, c in terms_of(a).items()})
    return Expr("mul", (a, b))


@lru_cache(maxsize=65536)
def div(a: Expr, b: Expr) -> Expr:
    """Floor division."""
    if b.value == 1:
        return a
    if a.value is not None and b.value:
        return const(a.value // b.value)
    if b.value is None or b.value <= 0:
        return Expr("div", (a, b))
    whole, rest = _parted(a, b.value)
    factor = gcd(b.value, *(c for k, c in rest.items() if k != ONE))
    rest, n = {k: c // factor for k, c in rest.items()}, b.value // factor
    return add(from_terms({k: c // b.value for k, c in whole.items()}), _quotient(from_terms(rest), n))


def _quotient(a: Expr, n: int) -> Expr:
    if n == 1 or a == ZERO:
        return a
    if a.value is not None:
        return const(a.value // n)
    nested = a.args[1].value if a.op == "div" else None
    return div(a.args[0], const(nested * n)) if nested and nested > 0 else Expr("div", (a, const(n)))


@lru_cache(maxsize=65536)
def mod(a: Expr, b: Expr) -> Expr:
    """The remainder of the floor division."""
    if b.value == 1:
        return ZERO
    if a.value is not None and b.value:
        return const(a.value % b.value)
    if b.value is None or b.value <= 0:
        return Expr("mod", (a, b))
    _, rest = _parted(a, b.value)
    factor = gcd(b.value, *(c for k, c in rest.items() if k != ONE))
    least = rest.get(ONE, 0) % factor
    inner, n = from_terms({k: c // factor for k, c in rest.items()}), b.value // factor
    return _remainder(inner, n) * factor + least


def _remainder(a: Expr, n: int) -> Expr:
    if a.value is not None:
        return const(a.value % n)
    nested = a.args[1].value if a.op == "mod" else None
    return mod(a.args[0], const(n)) if nested and nested > 0 and nested % n == 0 else Expr("mod", (a, const(n)))


def _parted(a: Expr, n: int) -> tuple[dict[Expr, int], dict[Expr, int]]:
    """A sum as multiples of n and the rest. All is rest where the rest could be negative alone: C++ divides towards zero."""
    terms = terms_of(a)
    rest = {k: c for k, c in terms.items() if c % n and k != ONE}
    constant = terms.get(ONE, 0)
    if rest and (constant < 0 or not all(c > 0 and _natural(k) for k, c in rest.items())):
        return {}, terms
    rest[ONE] = constant % n
    return {k: c - rest.get(k, 0) for k, c in terms.items()}, {k: c for k, c in rest.items() if c}


def _natural(e: Expr) -> bool:
    """Whether e is surely not negative. Variables count from 0."""
    if e.op == "const":
        return e.args[0] >= 0
    if e.op == "mod":
        return (e.args[1].value or 0) > 0
    if e.op == "read":
        return e.args[2] < ANY
    if e.op == "max":
        return any(map(_natural, e.args))
    return e.op in ("var", "size", "lt", "and") or all(map(_natural, e.args))


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


def read(name: str, place: Expr | int, most: int = ANY, indices: Indices = ()) -> Expr:
    """The element of a tensor at a place, which is `most` at most."""
    return Expr("read", (name, wrap(place), most, indices))


def read_at(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """An element that is read with another place, and its indices likewise."""
    name, place, most, indices = e.args
    return read(name, change(place), most, tuple((change(i), size) for i, size in indices))


def scalar(name: str, most: int = ANY) -> Expr:
    """A whole number that the scalar unit keeps under a name."""
    return read(name, ZERO, most)


def some_value(place: int, most: int) -> int:
    """A value for an element of which nothing is known: as far from its neighbours' as any other."""
    return (place * 7919 + 1) % (most + 1)


_BINARY: dict[str, Callable[[int, int], int]] = {
    "mul": lambda a, b: a * b, "div": lambda a, b: a // b, "mod": lambda a, b: a % b, "min": min, "max": max,
    "lt": lambda a, b: int(a < b), "and": lambda a, b: int(bool(a and b)),
}  # fmt: skip


def evaluate(e: Expr, env: Mapping[str, int]) -> int:
    """The value of e where `env` gives every variable's value; KeyError names a variable that it lacks.

    What is read from tensors is what `env[READ]` says, else any value; sizes may be given, too.
    """
    if e.op == "const":
        return e.args[0]
    if e.op in ("var", "size"):
        return env[e.args[0]] if e.op == "var" else env.get(*e.args)  # type: ignore[call-overload,no-any-return]
    if e.op == "add":
        return sum(evaluate(a, env) for a in e.args)
    if e.op == "read":
        name, place, most, _ = e.args
        known, at = env.get(READ), evaluate(place, env)
        return known(name, at) if known else some_value(at, most)  # type: ignore[operator]
    return _BINARY[e.op](evaluate(e.args[0], env), evaluate(e.args[1], env))


def substitute(e: Expr, env: Mapping[str, Expr]) -> Expr:
    """e with variables, and sizes of a call, replaced, in normal form again."""
    if e.op == "const":
        return e
    if e.op in ("var", "size"):
        return env.get(e.args[0], e)
    if e.op == "read":
        return read_at(e, lambda x: substitute(x, env))
    return with_operands(e, [substitute(x, env) for x in e.args])


def with_operands(e: Expr, args: list[Expr]) -> Expr:
    """The sum, product and so on that e is, of other operands."""
    if e.op == "add":
        out = ZERO
        for x in args:
            out = add(out, x)
        return out
    return _BUILD[e.op](*args)


_BUILD: dict[str, Callable[[Expr, Expr], Expr]] = {
    "mul": mul, "div": div, "mod": mod, "min": minimum, "max": maximum, "lt": less, "and": both,
}  # fmt: skip


@lru_cache(maxsize=65536)
def variables(e: Expr) -> frozenset[str]:
    if e.op == "var":
        return frozenset(e.args)
    if e.op in ("const", "size"):
        return frozenset()
    if e.op == "read":
        return variables(e.args[1])
    return frozenset().union(*(variables(a) for a in e.args))


def bounds(e: Expr, ranges: Mapping[str, Interval], known: Mapping[Expr, Interval] | None = None) -> Interval:
    """An interval (inclusive) that holds every value of e where each variable stays in its own, and what is `known` in its."""
    if known and e in known:
        return known[e]
    if e.op == "const":
        return e.args[0], e.args[0]
    if e.op in ("var", "size"):
        return ranges[e.args[0]] if e.op == "var" else ranges.get(e.args[0], (0, MOST_SIZE))
    if e.op == "read":
        return (-ANY if e.args[2] == ANY else 0), e.args[2]
    parts = [bounds(a, ranges, known) for a in e.args]
    if e.op == "add":
        return sum(p[0] for p in parts), sum(p[1] for p in parts)
    (a, b), (c, d) = parts
    if e.op == "mod" and c == d and c > 0:
        return (a % c, b % c) if a // c == b // c else (0, c - 1)
    if e.op == "mod":
        return (0, min(b, d - 1)) if a >= 0 and c > 0 else (min(0, c + 1), max(0, d - 1))
    c = 1 if e.op == "div" and c == 0 < d else c  # nothing is divided by zero: there is no block then
    if e.op in ("mul", "div"):
        corners = [_BINARY[e.op](x, y) for x in (a, b) for y in (c, d)]
        return min(corners), max(corners)
    if e.op in ("min", "max"):
        return _BINARY[e.op](a, c), _BINARY[e.op](b, d)
    return 0, 1


def simplified(e: Expr, ranges: Mapping[str, Interval]) -> Expr:
    """e without the minima, maxima and remainders that decide nothing where each variable stays in its own interval."""
    if e.op in ("const", "var", "size"):
        return e
    if e.op == "read":
        return read_at(e, lambda x: simplified(x, ranges))
    parts = [simplified(a, ranges) for a in e.args]
    if e.op == "add":
        return sum(parts[1:], parts[0])
    a, b = parts
    if e.op in ("min", "max"):
        low, high = bounds(a - b, ranges)
        return (a if e.op == "min" else b) if high <= 0 else (b if e.op == "min" else a) if low >= 0 else _BUILD[e.op](a, b)
    if e.op in ("div", "mod") and b.value and b.value > 0:
        low, high = (x // b.value for x in bounds(a, ranges))
        if low == high:
            return const(low) if e.op == "div" else a - low * b.value
    return _BUILD[e.op](a, b)


_SIGN = {"div": "/", "mod": "%", "mul": "*", "lt": "<", "and": "&&"}


@lru_cache(maxsize=65536)
def text(e: Expr) -> str:
    """e as text that reads the same in `.program` text and in C++ (operands are never negative where / or % is used)."""
    if e.op == "const":
        return str(e.args[0])
    if e.op in ("var", "size"):
        return e.args[0]
    if e.op == "read":
        return f"{e.args[0]}[{text(e.args[1])} : {e.args[2]}]"
    parts = [text(a) for a in e.args]
    if e.op == "add":
        return "(" + " + ".join(parts).replace("+ -", "- ") + ")"
    if e.op in ("min", "max"):
        return f"{e.op}({parts[0]}, {parts[1]})"
    return f"({parts[0]} {_SIGN[e.op]} {parts[1]})"
