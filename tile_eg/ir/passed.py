"""Numbers that each call of a compiled kernel passes, and what the kernel computes of them: their values are not known.

Those of a `Passed` are floats of 32 bits, and so is all that is computed of them. A whole number is a leaf of index expressions:
the element 0 of its name, as a number that the scalar unit keeps is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tile_eg.errors import TileError
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ops.records import record

EXAMPLE, WHOLE_EXAMPLE = 0.5, 1
"""What is passed where a text is shown with an example: a float, and a whole number."""
MOST_WHOLE = (1 << 23) - 1
"""The whole numbers that are passed are from 0 to this one: sums with positions are exact in f32 then. Others are compiled in."""
_OPERATORS: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": ("+", operator.add), "sub": ("-", operator.sub), "mul": ("*", operator.mul), "div": ("/", operator.truediv),
}  # fmt: skip


def examples(kernel: object) -> dict[str, float]:
    """An example of each number that a kernel, or a program, has from each call."""
    wholes = getattr(kernel, "wholes", ())
    return {n: WHOLE_EXAMPLE if n in wholes else EXAMPLE for n in getattr(kernel, "numbers", ())}


class NeedsNumber(TileError):
    """That something cannot be decided without the value of a number that each call passes."""


@record(eq=False)
class Passed:
    """op: `of` (the name of a float that is passed), `whole` (the name of a whole number), `index` (an
    index expression of whole numbers), `number` (a float), `neg`, `add`, `sub`, `mul`, `div` (of others).

    Two are equal if they are computed alike; nothing else is known of them, and whoever asks gets a NeedsNumber.
    """

    op: str
    args: tuple[Any, ...]

    @property
    def names(self) -> frozenset[str]:
        """The numbers that it is computed of."""
        if self.op in ("of", "whole"):
            return frozenset(self.args)
        if self.op == "index":
            return frozenset(r.args[0] for r in all_elements_in(self.args[0]))
        return frozenset().union(*(a.names for a in self.args if isinstance(a, Passed)))

    def at(self, values: Mapping[str, Any]) -> float:
        """Its value where these are passed."""
        import numpy as np

        if self.op == "index":
            return float(ix.evaluate(self.args[0], {ix.READ: lambda name, _: int(values[name])}))  # type: ignore[dict-item]
        if self.op in ("of", "number"):
            return float(np.float32(values[self.args[0]] if self.op == "of" else self.args[0]))
        xs = [np.float32(a.at(values)) for a in self.args]
        with np.errstate(all="ignore"):
            return float(-xs[0] if self.op == "neg" else _OPERATORS[self.op][1](*xs))

    def __str__(self) -> str:
        if self.op in ("of", "whole", "index", "number"):
            return str(self.args[0])
        parts = list(map(str, self.args))
        return f"(-{parts[0]})" if self.op == "neg" else f"({parts[0]} {_OPERATORS[self.op][0]} {parts[1]})"

    def __neg__(self) -> Passed:
        if self.op == "index":
            return type(self)("index", (self.args[0] * -1,))
        return self.args[0] if self.op == "neg" else Passed("neg", (self,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Passed) and (self.op, self.args) == (other.op, other.args)

    def __hash__(self) -> int:
        return hash((self.op, self.args))

    def _unknown(self, *_: object) -> NoReturn:
        raise NeedsNumber(f"this follows from the value of {', '.join(sorted(self.names))}, which each call tells")

    def is_within(self, low: int, high: int) -> bool:
        """Whether it is a whole number from `low` to below `high`, whatever is passed. NeedsNumber where that depends on it."""
        least, most = ix.bounds(self.args[0], {}) if self.op == "index" else (low - 1, high)
        return low <= least and most < high or self._unknown()

    def is_integer(self) -> bool:
        return self.op == "index" or self._unknown()

    __float__ = __int__ = __index__ = __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __abs__ = __round__ = _unknown
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __radd__ = __rsub__ = __rmul__ = _unknown
    __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __trunc__ = __floor__ = __ceil__ = _unknown


class Asked(Passed):
    """The same as a kernel has it as its author wrote it: whether it is some number (`value == 0.0`) asks for its value, too."""

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) if isinstance(other, Passed) else self._unknown()

    __hash__ = Passed.__hash__


def passed(name: str) -> Passed:
    """The number that each call passes under a name."""
    return Passed("of", (name,))


def passed_whole(name: str) -> Passed:
    """The whole number that each call passes under a name."""
    return Passed("whole", (name,))


def as_index(x: Passed) -> Expr:
    """A whole number as index expressions have it."""
    return ix.scalar(x.args[0], MOST_WHOLE)


def wholes_in(e: Expr) -> frozenset[str]:
    """The whole numbers that each call passes of which an index is made."""
    return frozenset(r.args[0] for r in all_elements_in(e) if _is_whole(r))


def _is_whole(read: Expr) -> bool:
    return read == ix.scalar(read.args[0], MOST_WHOLE)


def of_index(e: Expr) -> Passed | None:
    """An index as a number, where it is made of whole numbers that each call passes and of constants alone."""
    read = all_elements_in(e)
    if not read or ix.variables(e) or not all(map(_is_whole, read)):
        return None
    return Passed("index", (e,))


def computed(op: str, *xs: Passed | float) -> Passed:
    """What is computed of such numbers, and of others."""
    return Passed(op, tuple(x if isinstance(x, Passed) else Passed("number", (float(x),)) for x in xs))


def said(x: Any) -> Any:
    """What a `Number` of a kernel holds: a constant as a float, what is computed of numbers of calls as it is."""
    return x if isinstance(x, Passed) else float(x)


def as_number(x: Any) -> Any:
    """A constant as a float; what is computed of numbers of calls as values have it."""
    return Passed(x.op, x.args) if isinstance(x, Passed) else float(x)
