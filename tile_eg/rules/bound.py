"""How far the two sides of a rule that rounds may be apart: `:within` beside its law.

`:within (8 1)` are eight half steps of the element type relative to the value, and one relative to the number 1;
`:within (of "tanh")` is as far as the ways to compute that operation are apart (`ops/elementwise.py`), `:within (of "sum")` as
far as sums of the same numbers in different orders are.
"""

from __future__ import annotations

from tile_eg.errors import did_you_mean
from tile_eg.ir.accuracy import HALF_STEPS, HALF_STEPS_OF_ONE, SIDES, sum_half_steps
from tile_eg.ops.records import record
from tile_eg.rules.sexpr import Form

SUM = "sum"
OPERATIONS = (*HALF_STEPS, SUM)
HELP = ':within (8 0): half steps relative to the value, and relative to one; or the bound of an operation, :within (of "tanh")'


class BoundFault(ValueError):
    """What follows `:within` is no bound; `help` says what would be one."""

    def __init__(self, what: str, help: str = HELP) -> None:
        super().__init__(what)
        self.help = help


@record
class Bound:
    """Half steps relative to the value, and relative to the number 1; or those of the operation `of`."""

    relative: int = 0
    absolute: int = 0
    of: str = ""

    def half_steps(self, length: int = 1) -> tuple[float, float]:
        """Both numbers of half steps. Of sums of `length` numbers they are relative to the sum of the magnitudes."""
        if self.of == SUM:
            return SIDES * sum_half_steps(length), 0
        if self.of:
            return HALF_STEPS[self.of], HALF_STEPS_OF_ONE.get(self.of, 0)
        return self.relative, self.absolute

    def __str__(self) -> str:
        if self.of == SUM:
            return "what another order of a sum makes"
        relative, absolute = self.half_steps()
        parts = [_steps(relative), f"{absolute} of 1" if absolute else ""] if relative else [f"{_steps(absolute)} of 1"]
        return " and ".join(filter(None, parts))


def _steps(n: float) -> str:
    return f"{n} half step{'s' if n != 1 else ''}"


def bound_of(form: Form) -> Bound:
    """The bound that stands behind `:within`. BoundFault where there is none."""
    words = form if isinstance(form, tuple) else ()
    if len(words) == 2 and words[0] == "of":
        return _of_operation(str(words[1]).strip('"'))
    numbers = [int(w) for w in words if isinstance(w, str) and w.isdecimal()]
    if len(words) != 2 or len(numbers) != 2:
        raise BoundFault("behind `:within` stands no bound")
    if not any(numbers):
        raise BoundFault("a bound of nothing", "a rule whose sides agree bit for bit has the law equal")
    relative, absolute = numbers
    return Bound(relative, absolute)


def _of_operation(name: str) -> Bound:
    if name not in OPERATIONS:
        raise BoundFault(f'there is no bound of an operation "{name}"', did_you_mean(name, OPERATIONS))
    return Bound(of=name)
