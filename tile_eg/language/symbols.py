"""Sizes that are known at each call: `M = T.symbolic("M")`, and what is computed from them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from tile_eg.errors import TileError
from tile_eg.ops.records import record


class Size:
    """A whole number that follows from the sizes of a call.

    It has Python's arithmetic and comparisons, which give a `Size` again; outside of a kernel it is not known yet, so that a
    branch by it is a TileError.
    """

    __hash__ = object.__hash__

    def symbols(self) -> set[str]:
        """The names of the symbols in it."""
        raise NotImplementedError

    def at(self, sizes: Mapping[str, int]) -> Any:
        """Its number at these sizes. KeyError for a symbol that they lack."""
        raise NotImplementedError

    def solved(self, value: int) -> dict[str, int]:
        """The symbol that has to have a value so that this is `value`, where its form tells it; else nothing."""
        return {}

    def __neg__(self) -> Size:
        return Computed("-", operator.neg, (self,))

    def _unknown(self) -> TileError:
        names = ", ".join(sorted(self.symbols()))
        return TileError(
            f"{names}: a size known at each call has no value yet where the kernel is made",
            help="give an argument a shape with it, which calls tell it by; decide by it inside the function under @T.prim_func",
        )

    def __bool__(self) -> bool:
        raise self._unknown()

    def __index__(self) -> int:
        raise self._unknown()


@record(eq=False)
class Symbol(Size):
    """A size that the shapes of a call's arrays tell."""

    name: str

    def __repr__(self) -> str:
        return self.name

    def symbols(self) -> set[str]:
        return {self.name}

    def at(self, sizes: Mapping[str, int]) -> int:
        return sizes[self.name]

    def solved(self, value: int) -> dict[str, int]:
        return {self.name: value}


@record(eq=False)
class Computed(Size):
    """`function` of values some of which are sizes; `sign` is how it is written."""

    sign: str
    function: Callable[..., Any]
    operands: tuple[Any, ...]

    def __repr__(self) -> str:
        shown = [repr(x) for x in self.operands]
        if self.sign.isidentifier() or len(shown) != 2:
            return f"{self.sign}({', '.join(shown)})"
        return f"({shown[0]} {self.sign} {shown[1]})"

    def symbols(self) -> set[str]:
        return set().union(*(x.symbols() for x in self.operands if isinstance(x, Size)))

    def at(self, sizes: Mapping[str, int]) -> Any:
        return self.function(*(x.at(sizes) if isinstance(x, Size) else x for x in self.operands))

    def solved(self, value: int) -> dict[str, int]:
        """Of a sum, a difference or a product of a size and a number."""
        if len(self.operands) != 2:
            return {}
        x, y = self.operands
        if self.sign in "+*" and isinstance(y, Size):
            x, y = y, x
        if not isinstance(x, Size) or isinstance(y, Size):
            return {}
        if self.sign in ("+", "-"):
            return x.solved(value - y if self.sign == "+" else value + y)
        return x.solved(value // y) if self.sign == "*" and y and value % y == 0 else {}


class Dyn:
    """`T.dyn`: alone, a size of its own that an array's shape tells; `T.dyn["M"]` and `T.dyn("M")` are `T.symbolic("M")`."""

    def __getitem__(self, name: str) -> Symbol | tuple[Symbol, ...]:
        return symbols(name)

    def __call__(self, name: str, dtype: Any = "int32") -> Symbol | tuple[Symbol, ...]:
        return symbols(name)

    def __repr__(self) -> str:
        return "T.dyn"


def symbol(name: Any) -> Symbol:
    if not (isinstance(name, str) and name.isidentifier()):
        what = repr(name) if isinstance(name, str | int | float) else "what stands here"
        raise TileError(f"a size known at each call has a name, not {what}", help='M = T.symbolic("M")')
    return Symbol(name)


def names_in(text: str) -> list[str]:
    """The names in "M, N" or "M N"."""
    return re.split(r"[,\s]+", text.strip())


def symbols(name: Any) -> Symbol | tuple[Symbol, ...]:
    """The symbol of a name, or those of several: "M, N" or "M N"."""
    found = tuple(symbol(n) for n in names_in(name)) if isinstance(name, str) else (symbol(name),)
    return found if len(found) > 1 else found[0]


def of_sizes(sign: str, function: Callable[..., Any], *operands: Any) -> Any:
    """function(*operands), computed at each call where one of them is a size of it."""
    if any(isinstance(x, Size) for x in operands):
        return Computed(sign, function, operands)
    return function(*operands)


def at_sizes(value: Any, sizes: Mapping[str, int]) -> Any:
    """A value, or what a list, tuple or dict holds, with the sizes in it as numbers; itself where it holds none."""
    if isinstance(value, Size):
        return value.at(sizes)
    if type(value) in (list, tuple):
        each = [at_sizes(v, sizes) for v in value]
        return value if all(map(operator.is_, each, value)) else type(value)(each)
    if type(value) is dict:
        known = {k: at_sizes(v, sizes) for k, v in value.items()}
        return value if all(known[k] is v for k, v in value.items()) else known
    return value


def names_of_sizes(value: Any) -> set[str]:
    """The sizes of a call that a value, or what a list or tuple holds, depends on."""
    if isinstance(value, list | tuple):
        return {n for v in value for n in names_of_sizes(v)}
    return value.symbols() if isinstance(value, Size) else set()


ARITHMETIC = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%", operator.truediv: "/",
    operator.pow: "**", operator.lshift: "<<", operator.rshift: ">>", operator.and_: "&", operator.or_: "|", operator.xor: "^",
}  # fmt: skip
COMPARISONS = {
    operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!=",
}  # fmt: skip


def _define(function: Callable[..., Any], sign: str) -> None:
    """The special methods of Python's operator, so that sizes compute with numbers on either side."""
    name = function.__name__.rstrip("_")
    setattr(Size, f"__{name}__", lambda x, y: Computed(sign, function, (x, y)))
    if function in ARITHMETIC:
        setattr(Size, f"__r{name}__", lambda x, y: Computed(sign, function, (y, x)))


for _function, _sign in (ARITHMETIC | COMPARISONS).items():
    _define(_function, _sign)
