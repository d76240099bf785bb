"""Numbers that each call of a compiled kernel passes, and what the kernel computes of them: their values are not known.

They are floats of 32 bits, and so is all that is computed of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tile_eg.errors import TileError

EXAMPLE = 0.5
"""What is passed where a text is shown with an example."""
_OPERATORS: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": ("+", operator.add), "sub": ("-", operator.sub), "mul": ("*", operator.mul), "div": ("/", operator.truediv),
}  # fmt: skip


class NeedsNumber(TileError):
    """That something cannot be decided without the value of a number that each call passes."""


@dataclass(frozen=True, eq=False)
class Passed:
    """op: `of` (the name of a number that is passed), `number` (a float), `neg`, `add`, `sub`, `mul`, `div` (of others).

    Two are equal if they are computed alike; nothing else is known of them, and whoever asks gets a NeedsNumber.
    """

    op: str
    args: tuple[Any, ...]

    @property
    def names(self) -> frozenset[str]:
        """The numbers that it is computed of."""
        if self.op == "of":
            return frozenset(self.args)
        return frozenset().union(*(a.names for a in self.args if isinstance(a, Passed)))

    def at(self, values: Mapping[str, Any]) -> float:
        """Its value where these are passed."""
        import numpy as np

        if self.op in ("of", "number"):
            return float(np.float32(values[self.args[0]] if self.op == "of" else self.args[0]))
        xs = [np.float32(a.at(values)) for a in self.args]
        with np.errstate(all="ignore"):
            return float(-xs[0] if self.op == "neg" else _OPERATORS[self.op][1](*xs))

    def __str__(self) -> str:
        if self.op in ("of", "number"):
            return str(self.args[0])
        parts = list(map(str, self.args))
        return f"(-{parts[0]})" if self.op == "neg" else f"({parts[0]} {_OPERATORS[self.op][0]} {parts[1]})"

    def __neg__(self) -> Passed:
        return self.args[0] if self.op == "neg" else Passed("neg", (self,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Passed) and (self.op, self.args) == (other.op, other.args)

    def __hash__(self) -> int:
        return hash((self.op, self.args))

    def _unknown(self, *_: object) -> NoReturn:
        raise NeedsNumber(f"this follows from the value of {', '.join(sorted(self.names))}, which each call tells")

    __float__ = __int__ = __index__ = __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __abs__ = __round__ = is_integer = _unknown
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


def computed(op: str, *xs: Passed | float) -> Passed:
    """What is computed of such numbers, and of others."""
    return Passed(op, tuple(x if isinstance(x, Passed) else Passed("number", (float(x),)) for x in xs))


def said(x: Any) -> Any:
    """What a `Number` of a kernel holds: a constant as a float, what is computed of numbers of calls as it is."""
    return x if isinstance(x, Passed) else float(x)


def as_number(x: Any) -> Any:
    """A constant as a float; what is computed of numbers of calls as values have it."""
    return Passed(x.op, x.args) if isinstance(x, Passed) else float(x)
