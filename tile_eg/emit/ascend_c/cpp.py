"""Index expressions as C++: in 32 bits where bounds prove them enough, in 64 where they do not.

A sum or product whose value may lie outside int32_t begins with a cast, so that it is computed in int64_t from there on; the text
of everything else is the plain expression. Whole numbers beyond int32_t are 64 bits wide in C++ by themselves.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, Interval
from tile_eg.ops.records import record

INT32 = 2**31 - 1
"""The largest int32_t. Its counterpart below zero is taken to be -INT32, as the C++ literal of the smallest one is wider."""
_BINDS = {"and": 0, "lt": 10, "add": 20, "div": 30, "mod": 31, "mul": 32}
BESIDE_COMPARISONS, BESIDE_SUMS = _BINDS["lt"] + 1, _BINDS["add"] + 1
_SIGNS = {"mul": "*", "div": "/", "mod": "%", "lt": "<", "and": "&&"}
ROUNDED = {"div": "FloorDiv", "mod": "FloorMod"}
_CASTS = {True: "static_cast<int64_t>(", False: "static_cast<int32_t>("}


def fits(values: Interval) -> bool:
    """Whether int32_t holds all of an interval."""
    return values[0] >= -INT32 and values[1] <= INT32


def integer(values: Interval) -> str:
    """The type of a variable that takes these values."""
    return "int32_t" if fits(values) else "int64_t"


@record
class Typed:
    """A piece of C++ and whether its type is int64_t (int32_t otherwise)."""

    text: str
    wide: bool

    def in_64(self) -> str:
        """As an operand that is int64_t and nothing else, which overloads are chosen by."""
        return f"{_CASTS[True]}{self.text})"


@record
class Part:
    """Text within a sum that is no expression, and the values that it takes."""

    text: str
    values: Interval


@dataclass
class Cpp:
    """Prints expressions as C++; those in `named` (hoisted sizes, spelled variables) by their name.

    `ranges` gives the values of every variable: KeyError names one that it lacks; `known` those of expressions of which more is
    known than follows from that. `tensors` are the names of GlobalTensors, of which the scalar unit reads elements, `scalars`
    those of the numbers that it keeps.
    """

    ranges: MutableMapping[str, Interval]
    named: dict[Expr, str] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    known: dict[Expr, Interval] = field(default_factory=dict)
    scalars: dict[str, str] = field(default_factory=dict)

    def __call__(self, e: Expr | int, outer: int = 0) -> str:
        """e as C++, in brackets where an operator that binds as tightly as `outer` stands beside it."""
        return self.typed(ix.wrap(e), outer).text

    def declared(self, name: str, e: Expr, values: Interval) -> str:
        """The declaration of a constant that is e, and takes these values."""
        found = self.typed(e)
        text = f"{_CASTS[False]}{found.text})" if found.wide and fits(values) else found.text
        return f"const {integer(values)} {name} = {text};"

    def bounds(self, e: Expr) -> Interval:
        return ix.bounds(e, self.ranges, self.known)

    @contextmanager
    def where(self, condition: Expr) -> Iterator[None]:
        """Prints what stands under a condition: variables take only the values at which it holds."""
        before, self.ranges = self.ranges, ChainMap(_narrowed(condition, self.ranges), self.ranges)
        try:
            yield
        finally:
            self.ranges = before

    @contextmanager
    def without(self, names: Collection[Expr]) -> Iterator[None]:
        """Prints what stands above the declarations of these."""
        before, self.named = self.named, {e: name for e, name in self.named.items() if e not in names}
        try:
            yield
        finally:
            self.named = before

    def summed(self, parts: Sequence[Expr | Part]) -> str:
        """The sum of these, e.g. of where a buffer's slot starts and where an element lies within it."""
        low = sum(self._spread(p)[0] for p in parts)
        high = sum(self._spread(p)[1] for p in parts)
        texts = [self._part(p, n == 0 and not fits((low, high))) for n, p in enumerate(parts)]
        return " + ".join(texts)

    def _part(self, p: Expr | Part, wide: bool) -> str:
        if isinstance(p, Part):
            return Typed(p.text, False).in_64() if wide else p.text
        return self.typed(p, 0, wide).text

    def _spread(self, p: Expr | Part) -> Interval:
        """What a running sum over p, in any order of its terms, may change by."""
        if isinstance(p, Expr) and p.op == "add":
            spreads = [self._spread(a) for a in p.args]
            return sum(s[0] for s in spreads), sum(s[1] for s in spreads)
        low, high = p.values if isinstance(p, Part) else self.bounds(p)
        return min(0, low), max(0, high)

    def typed(self, e: Expr, outer: int = 0, wide: bool = False) -> Typed:
        """e as C++ with its type; int64_t where `wide` asks for it."""
        if e in self.named or e.op in ("const", "var", "size"):
            return self._atom(e, wide)
        if e.op in ("min", "max"):
            return self._least_or_most(e, wide)
        if e.op == "read":
            name = e.args[0]
            text = self.scalars[name] if name in self.scalars else f"{self.tensors[name]}.GetValue({self(e.args[1])})"
            read = Typed(text, False)
            return Typed(read.in_64(), True) if wide else read
        if e.op in ROUNDED and self.bounds(e.args[0])[0] < 0:
            return self._rounded_down(e, wide)
        found = self._add(e, wide) if e.op == "add" else self._pair(e, wide)
        if wide and not found.wide:
            return Typed(found.in_64(), True)
        return Typed(f"({found.text})", found.wide) if _BINDS[e.op] < outer else found

    def _atom(self, e: Expr, wide: bool) -> Typed:
        """A number, or a name: variables and hoisted sizes are declared as wide as their values ask for."""
        text = self.named.get(e, str(e.args[0]))
        found = Typed(text, not fits(self.bounds(e)))
        return Typed(found.in_64(), True) if wide and not found.wide else found

    def _least_or_most(self, e: Expr, wide: bool) -> Typed:
        """Both overloads take operands of one type."""
        parts = [self.typed(a) for a in e.args]
        wide = wide or any(p.wide for p in parts)
        return Typed(f"{e.op.capitalize()}({', '.join(p.in_64() if wide else p.text for p in parts)})", wide)

    def _rounded_down(self, e: Expr, wide: bool) -> Typed:
        """A quotient or a remainder of what may be negative, which C++ itself rounds towards zero."""
        parts = [self.typed(a) for a in e.args]
        wide = wide or any(p.wide for p in parts)
        return Typed(f"{ROUNDED[e.op]}({', '.join(p.in_64() if wide else p.text for p in parts)})", wide)

    def _add(self, e: Expr, wide: bool) -> Typed:
        wide = wide or not fits(self._spread(e))
        if not wide and (known := self._known_part(e)):
            return Typed(known, False)
        out = ""
        for a in sorted(e.args, key=lambda a: _coefficient(a) < 0):
            below = _coefficient(a) < 0
            term = self.typed(_negated(a) if below else a, 30 if below else 20, wide and not out)
            wide = wide or term.wide
            out += (" - " if below else " + ") + term.text
        return Typed(out[3:] if out.startswith(" + ") else "-" + out[3:], wide)

    def _known_part(self, e: Expr) -> str:
        """`named + rest` where a hoisted sum is a part of this one."""
        for n, name in self.named.items():
            if n.op == "add" and (rest := e - n).op == "const":
                return name + (f" + {rest.value}" if rest.value >= 0 else f" - {-rest.value}")  # type: ignore[operator]
        return ""

    def _pair(self, e: Expr, wide: bool) -> Typed:
        """Products are widened before they are made, all else after (`typed`)."""
        binds, (a, b) = _BINDS[e.op], e.args
        right = self.typed(b, 33 if binds >= 30 else binds + 1)
        left = self.typed(a, binds, e.op == "mul" and (wide or not (right.wide or fits(self.bounds(e)))))
        return Typed(f"{left.text} {_SIGNS[e.op]} {right.text}", binds >= 30 and (left.wide or right.wide))


def _coefficient(e: Expr) -> int:
    return e.args[0] if e.op == "const" else e.args[1].args[0] if e.op == "mul" and e.args[1].op == "const" else 1


def _negated(e: Expr) -> Expr:
    return e * -1


def _narrowed(condition: Expr, ranges: MutableMapping[str, Interval]) -> dict[str, Interval]:
    """The ranges of variables that a condition compares, where it holds; of those that int32_t holds."""
    if condition.op == "and":
        first = _narrowed(condition.args[0], ranges)
        return first | _narrowed(condition.args[1], ChainMap(first, ranges))
    out: dict[str, Interval] = {}
    if condition.op != "lt":
        return out
    left, right = condition.args
    for one, other, side in ((left, right, 1), (right, left, 0)):
        if one.op == "var" and fits(ranges[one.args[0]]):
            low, high = ranges[one.args[0]]
            limit = ix.bounds(other, ranges)[side]
            found = (low, min(high, limit - 1)) if side else (max(low, limit + 1), high)
            out |= {one.args[0]: found} if found[0] <= found[1] else {}
    return out
