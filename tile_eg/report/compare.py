"""Are these numbers right? Arrays against the kernel's sequential meaning, each element as closely as its roundings allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tile_eg.ops.records import record

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.ir.reference_bounds import Expected

NOTHING: Mapping[str, np.ndarray] = MappingProxyType({})


@record
class Comparison:
    """One output against what it should be.

    `error`, `allowed`, `got` and `want` are of the element `where` the error is largest for what is allowed there: absolute
    numbers, in the output's own unit; an error is infinite where only one of `got` and `want` is a number, or they are different
    infinities. Of the output's `size` elements `wrong` have a larger error than is allowed, `nan` are NaN in both, `unbounded`
    are not compared: roundings that the kernel itself asks for decide over their values (1 / (a - b) of close numbers).
    `not_computed` are not compared either: the blocks that have them did not run.
    """

    name: str
    error: float
    allowed: float
    got: float
    want: float
    where: tuple[int, ...]
    size: int
    wrong: int = 0
    nan: int = 0
    unbounded: int = 0
    not_computed: int = 0

    @property
    def good(self) -> bool:
        return not self.wrong

    @property
    def notes(self) -> list[str]:
        """What the largest error does not say: elements that have no number to compare."""
        said = (
            (self.nan, "NaN, and should be"),
            (self.unbounded, "not compared: roundings alone decide over their values"),
            (self.not_computed, "not computed, and not compared"),
        )
        return [f"{self._elements(n)} {words}" for n, words in said if n]

    def _elements(self, n: int) -> str:
        return f"{n} of {self.size} elements {'is' if n == 1 else 'are'}"

    @property
    def words(self) -> str:
        """The comparison in a line."""
        place = f"{self.name}[{', '.join(map(str, self.where))}]"
        what = f"off by {self.error:.3g}" if isfinite(self.error) else f"{self.got:g}"
        worst = f"{place} is {what}, where {self.want:.6g} is meant and {self.allowed:.3g} allowed" if self.error else "no error"
        return "; ".join([worst, *([f"{self.wrong} of {self.size} elements wrong"] if self.wrong else []), *self.notes])

    def data(self) -> dict[str, Any]:
        """Plain values for JSON, which has neither infinity nor NaN: they are null."""
        numbers = {k: v if isfinite(v) else None for k, v in asdict(self).items() if isinstance(v, float)}
        return {**asdict(self), **numbers, "where": list(self.where), "good": self.good}


def compare(
    got: Mapping[str, np.ndarray],
    want: Mapping[str, Expected],
    unwritten: Mapping[str, np.ndarray] = NOTHING,
    not_computed: Mapping[str, np.ndarray] = NOTHING,
    some_tiles: bool = False,
) -> list[Comparison]:
    """Every output against what it should be; arrays by tensor name, in the tensors' shapes.

    `unwritten` are masks of elements that nothing has written: they are not counted as NaN. Those of `not_computed` belong to
    blocks that did not run, and are not compared. `some_tiles`: what is meant was computed of some tiles of the grid alone, and
    elements without a bound, which the others have, are not counted.
    """
    import numpy as np

    found = []
    for name, expected in want.items():
        c = _compare(name, got[name], expected, ~unwritten.get(name, np.False_), not_computed.get(name, np.False_))
        found.append(replace(c, unbounded=0) if some_tiles else c)
    return found


def wrong_elements(array: np.ndarray, expected: Expected) -> np.ndarray:
    """A mask of the elements that are further from what they should be than roundings allow."""
    error = absolute_error(array.astype("float64"), expected.value.astype("float64"))
    return (_excess(error, expected.allowed) > 1) & (expected.allowed < float("inf"))


def _compare(
    name: str, array: np.ndarray, expected: Expected, written: np.ndarray | np.bool_, left: np.ndarray | np.bool_
) -> Comparison:
    import numpy as np

    got, want = array.astype(np.float64), expected.value.astype(np.float64)
    bounded = np.isfinite(expected.allowed)
    error = np.where(bounded & ~left, absolute_error(got, want), 0.0)
    excess = _excess(error, expected.allowed)
    worst = np.unravel_index(int(np.argmax(excess)), excess.shape) if excess.size else ()
    off, allowed, is_, meant = (float(x[worst]) if excess.size else 0.0 for x in (error, expected.allowed, got, want))
    nan = np.isnan(got) & np.isnan(want) & written & ~left
    counts = (int(np.sum(x)) for x in (excess > 1, nan, ~bounded & ~left, left))
    where = tuple(int(i) for i in worst)
    return Comparison(name, off, allowed, is_, meant, where, excess.size, *counts)


def absolute_error(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """|got - want|; 0 where both are NaN or the same infinity, infinite where else one of them is no finite number."""
    import numpy as np

    same = (got == want) | (np.isnan(got) & np.isnan(want))
    finite = np.isfinite(got) & np.isfinite(want)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(same, 0.0, np.where(finite, np.abs(got - want), np.inf))


def _excess(error: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """An error in units of what is allowed; more than 1 is wrong."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(error == 0, 0.0, error / allowed)
