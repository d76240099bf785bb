"""Constants of a chip fitted to measured programs, and which of them the measurements determine.

Each constant is varied by a factor: an assumed one within its range in the chip's file, any other within `FACTOR`. What is made
small is the logarithm of predicted over measured time, over the scatter of the rows, and the logarithms of the factors, over
`PRIOR`: a constant moves where rows say so (bounded least squares with a prior). Standard errors are those of all constants
together. The one of which the rows tell the least is kept at its value, and the fit repeated, until they tell something of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tile_eg.chips import Chip, chip_of, tables_of
from tile_eg.chips.loader import chip_marks
from tile_eg.chips.marks import Mark, open_constants
from tile_eg.errors import TileError, did_you_mean
from tile_eg.ir.program import Program
from tile_eg.ops.records import record

FACTOR = 10.0
"""A constant without a range may become so many times as large, or as small."""
STEP = 0.01
"""The step of a derivative, as a logarithm: the timeline counts trips, and has small jumps."""
NOISE = 0.01
"""The scatter of measurements that is assumed at the least."""
PRIOR = float(np.log(2))
"""How far a constant is from its value before any rows, as the standard deviation of its logarithm: a factor of two."""
DETERMINED, NARROWED = 0.1, 0.35
"""A constant is determined where its standard error is at most the first part of it; narrowed down where it is at most the
second, half of what it was before. Both are written; any other is kept."""
TOUCHED = 1e-6
"""A constant that changes no time by more than this, for a factor of e, takes no part."""
INSIDE = 0.05
"""A search begins no nearer to a bound than this part of the range: from the bound itself it takes no step."""
END = 0.005
"""A constant is at the end of its range where it is within this part of it."""


@record
class Constant:
    """What became of one: `error` is its standard error as a part of it; infinite where the rows do not tell it from others.
    `low` and `high` are the bounds that it was kept in; `at_end`: the rows would have it at one of them, or beyond."""

    name: str
    before: float
    value: float
    error: float
    low: float
    high: float
    at_end: bool = False

    @property
    def determined(self) -> bool:
        return self.error <= DETERMINED

    @property
    def narrowed(self) -> bool:
        """Whether the rows tell something of it, and its value is taken."""
        return self.error <= NARROWED


@record
class Fit:
    """`constants` in their order; errors are the root mean squares of log(predicted / measured), before and after."""

    base: str
    rows: int
    constants: tuple[Constant, ...]
    before: float
    after: float
    tables: Mapping[str, Any]

    @property
    def changed(self) -> tuple[Constant, ...]:
        return tuple(c for c in self.constants if c.narrowed)


def calibrate(
    rows: Sequence[tuple[Program, float]], base: str, names: Sequence[str] | None = None,
    told: Callable[[str], None] = lambda text: None,
) -> Fit:  # fmt: skip
    """Fits the constants called `names` of the chip `base` to (program, measured microseconds) rows; without names, all that its
    file marks as fitted or assumed.

    TileError for a constant that there is none of, no rows, a time that is none, and where scipy is missing.
    """
    solve = _least_squares()
    before = values_of(base, names)
    if not rows:
        raise TileError("there are no rows to fit to")
    names, bounds = list(before), _bounds(before, chip_marks(base))
    residuals = _Residuals(rows, tables_of(base), before, bounds, told)
    start = residuals(list(names), np.zeros(len(names)))
    free = _touched(residuals, list(names))
    values, errors, ends = dict.fromkeys(names, 0.0), dict.fromkeys(names, float("inf")), dict.fromkeys(names, False)
    while free:
        x, own = _fitted(solve, residuals, free, np.array([values[n] for n in free]))
        values |= dict(zip(free, map(float, x), strict=True))
        errors |= dict(zip(free, own, strict=True))
        ends |= dict(zip(free, residuals.at_end(free, x), strict=True))
        if max(own) <= NARROWED:
            break
        worst = free[int(np.argmax(own))]
        values[worst] = 0.0
        free = [n for n in free if n != worst]
    factors = np.array([values[n] for n in free])
    found = {n: was * float(np.exp(values[n])) for n, was in before.items()}
    constants = tuple(Constant(n, before[n], found[n], errors[n], *bounds[n], ends[n]) for n in names)
    return Fit(base, len(rows), constants, _size(start), _size(residuals(free, factors)), residuals.tables(free, factors))


def values_of(base: str, names: Sequence[str] | None) -> dict[str, float]:
    """The constants that are fitted, and their values before. TileError for a name that is none."""
    known = open_constants(chip_marks(base))
    if names is None:
        return {name: float(m.value) for name, m in known.items()}
    tables = tables_of(base)
    return {name: _get(tables, name, list(known)) for name in names}


def _bounds(values: Mapping[str, float], marked: Sequence[Mark]) -> dict[str, tuple[float, float]]:
    """Between what each constant is looked for."""
    ranges = {m.name: (m.low, m.high) for m in marked if m.kind == "assumed"}
    out = {}
    for name, value in values.items():
        low, high = ranges.get(name, (0, value * FACTOR))
        out[name] = (float(low) or value / FACTOR, float(high))
    return out


def _fitted(solve: Any, residuals: _Residuals, free: list[str], x: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """The logarithms of the factors, and their standard errors; the second time with the scatter that the first left."""
    noise, errors = NOISE, [float("inf")] * len(free)
    prior = np.eye(len(free)) / PRIOR
    low, high = residuals.limits(free)
    inside = INSIDE * (high - low)
    for _ in range(2):
        found = solve(
            lambda x, n=noise: np.concatenate([residuals(free, x) / n, x / PRIOR]),
            np.clip(x, low + inside, high - inside),
            jac=lambda x, n=noise: np.vstack([residuals.jacobian(free, x) / n, prior]),
            bounds=(low, high), xtol=1e-5, ftol=1e-7, max_nfev=20,
        )  # fmt: skip
        x = found.x
        errors = [float(e) for e in np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))]
        left = residuals(free, x)
        scatter = float(np.sqrt((left**2).sum() / max(1, len(left) - len(free))))
        if scatter <= noise:
            break
        noise = scatter
    return x, errors


def _least_squares() -> Any:
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise TileError("fitting needs scipy", help="pip install 'tile_eg[fit]'") from None
    return least_squares


class _Residuals:
    """log(predicted / measured) of each row by the logarithms of constants' factors."""

    def __init__(
        self, rows: Sequence[tuple[Program, float]], tables: Mapping[str, Any], before: Mapping[str, float],
        bounds: Mapping[str, tuple[float, float]], told: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.rows, self.base, self.before, self.bounds, self.told, self.asked = rows, tables, before, bounds, told, 0
        if wrong := [us for _, us in rows if not np.isfinite(us) or us <= 0]:
            raise TileError(f"a measured time is above 0, and one is {wrong[0]:g}")

    def limits(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest logarithm of each factor."""
        low, high = np.log([np.divide(self.bounds[n], self.before[n]) for n in names]).T
        return low, high

    def at_end(self, names: Sequence[str], x: np.ndarray) -> list[bool]:
        """Of each constant, whether it came to an end of its bounds."""
        low, high = self.limits(names)
        return [bool(one) for one in (x - low < END) | (high - x < END)]

    def tables(self, names: Sequence[str], x: np.ndarray) -> dict[str, Any]:
        out = dict(self.base)
        for name, factor in zip(names, np.exp(x), strict=True):
            out = _with(out, name.split("."), self.before[name] * float(factor))
        return out

    def __call__(self, names: Sequence[str], x: np.ndarray) -> np.ndarray:
        from tile_eg.timeline import engine

        chip: Chip = chip_of(self.tables(names, x))
        self.asked += 1
        self.told(f"fitting: {len(names)} constants, the rows were timed {self.asked} times")
        return np.array([np.log(engine.run(p, chip, record=False).microseconds / us) for p, us in self.rows])

    def jacobian(self, names: Sequence[str], x: np.ndarray) -> np.ndarray:
        """Derivatives by central differences, inside the bounds."""
        columns = []
        least, most = self.limits(names)
        for i in range(len(names)):
            high, low = x.copy(), x.copy()
            high[i] = min(x[i] + STEP, most[i])
            low[i] = max(x[i] - STEP, least[i])
            columns.append((self(names, high) - self(names, low)) / (high[i] - low[i]))
        return np.array(columns).T


def _touched(residuals: _Residuals, names: list[str]) -> list[str]:
    """The constants that the rows know of."""
    found = residuals.jacobian(names, np.zeros(len(names)))
    return [n for n, column in zip(names, found.T, strict=True) if np.abs(column).max() > TOUCHED]


def _size(left: np.ndarray) -> float:
    return float(np.sqrt((left**2).mean()))


def _get(tables: Mapping[str, Any], name: str, known: Sequence[str]) -> float:
    """The number called `table.key`. TileError where there is none, or where it is no number to vary."""
    found: Any = tables
    for key in name.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    if isinstance(found, bool) or not isinstance(found, int | float):
        help = did_you_mean(name, known) or "constants are named as in tile_eg/chips, such as launch.prologue_us"
        raise TileError(f"there is no constant '{name}'", help=help)
    if found <= 0:
        raise TileError(f"the constant '{name}' is {found:g}: it is fitted by a factor, and has to be above 0")
    return float(found)


def _with(tables: Mapping[str, Any], keys: Sequence[str], value: float) -> dict[str, Any]:
    """A copy of the tables with one number changed."""
    first, *rest = keys
    return {**tables, first: _with(tables[first], rest, value) if rest else value}
