"""Constants of a chip fitted to measured programs, and which of them the measurements determine.

Each constant is varied by a factor, within bounds. What is made small is the logarithm of predicted over measured time, over the
scatter of the rows, and the logarithms of the factors, over `PRIOR`: a constant moves where rows say so (bounded least squares
with a prior). Standard errors are those of all constants together. The one of which the rows tell the least is kept at its
value, and the fit repeated, until they tell something of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_eg.chips import Chip, chip_of, tables_of
from tile_eg.errors import TileError, did_you_mean
from tile_eg.ir.program import Program

FITTED = (
    "path.gm_to_l1.issue", "path.gm_to_l1.miss_peak", "path.gm_to_l1_nd2nz.issue", "path.gm_to_l1_nd2nz.row",
    "path.gm_to_l1_nd2nz.row_least", "path.gm_to_l1_nd2nz.miss_peak", "path.gm_to_ub.issue", "path.gm_to_ub.miss_peak",
    "path.l0c_to_gm.shared", "path.gm_to_l1_nd2nz.same_rate", "path.gm_to_ub.same_rate",
    "sync.flag", "sync.cross_latency", "sync.scalar_issue", "sync.scalar_loop",
    "launch.base_us", "launch.core_us", "launch.mix_us", "launch.prologue_us", "shared.hbm_read", "shared.hbm_mixed",
    "shared.l2_kept",
)  # fmt: skip
"""The constants that were themselves fitted or assumed (the sources of `tile_eg/chips` say which), by table and key."""
FACTOR = 10.0
"""A constant may become so many times as large, or as small."""
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


@dataclass(frozen=True)
class Constant:
    """What became of one: `error` is its standard error as a part of it; infinite where the rows do not tell it from others."""

    name: str
    before: float
    value: float
    error: float

    @property
    def determined(self) -> bool:
        return self.error <= DETERMINED

    @property
    def narrowed(self) -> bool:
        """Whether the rows tell something of it, and its value is taken."""
        return self.error <= NARROWED


@dataclass(frozen=True)
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
    rows: Sequence[tuple[Program, float]], base: str, names: Sequence[str] = FITTED,
    told: Callable[[str], None] = lambda text: None,
) -> Fit:  # fmt: skip
    """Fits the constants called `names` of the chip `base` to (program, measured microseconds) rows.

    TileError for a constant that there is none of, no rows, a time that is none, and where scipy is missing.
    """
    solve = _least_squares()
    tables = tables_of(base)
    before = {name: _get(tables, name) for name in names}
    if not rows:
        raise TileError("there are no rows to fit to")
    residuals = _Residuals(rows, tables, before, told)
    start = residuals(list(names), np.zeros(len(names)))
    free = _touched(residuals, list(names))
    values, errors = dict.fromkeys(names, 0.0), dict.fromkeys(names, float("inf"))
    while free:
        x, own = _fitted(solve, residuals, free, np.array([values[n] for n in free]))
        values |= dict(zip(free, map(float, x), strict=True))
        errors |= dict(zip(free, own, strict=True))
        if max(own) <= NARROWED:
            break
        worst = free[int(np.argmax(own))]
        values[worst] = 0.0
        free = [n for n in free if n != worst]
    factors = np.array([values[n] for n in free])
    constants = tuple(Constant(n, before[n], before[n] * float(np.exp(values[n])), errors[n]) for n in names)
    return Fit(base, len(rows), constants, _size(start), _size(residuals(free, factors)), residuals.tables(free, factors))


def _fitted(solve: Any, residuals: _Residuals, free: list[str], x: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """The logarithms of the factors, and their standard errors; the second time with the scatter that the first left."""
    noise, errors = NOISE, [float("inf")] * len(free)
    prior = np.eye(len(free)) / PRIOR
    for _ in range(2):
        found = solve(
            lambda x, n=noise: np.concatenate([residuals(free, x) / n, x / PRIOR]), x,
            jac=lambda x, n=noise: np.vstack([residuals.jacobian(free, x) / n, prior]),
            bounds=(-np.log(FACTOR), np.log(FACTOR)), xtol=1e-5, ftol=1e-7, max_nfev=20,
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
        told: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.rows, self.base, self.before, self.told, self.asked = rows, tables, before, told, 0
        if wrong := [us for _, us in rows if not np.isfinite(us) or us <= 0]:
            raise TileError(f"a measured time is above 0, and one is {wrong[0]:g}")

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
        for i in range(len(names)):
            high, low = x.copy(), x.copy()
            high[i] = min(x[i] + STEP, np.log(FACTOR))
            low[i] = max(x[i] - STEP, -np.log(FACTOR))
            columns.append((self(names, high) - self(names, low)) / (high[i] - low[i]))
        return np.array(columns).T


def _touched(residuals: _Residuals, names: list[str]) -> list[str]:
    """The constants that the rows know of."""
    found = residuals.jacobian(names, np.zeros(len(names)))
    return [n for n, column in zip(names, found.T, strict=True) if np.abs(column).max() > TOUCHED]


def _size(left: np.ndarray) -> float:
    return float(np.sqrt((left**2).mean()))


def _get(tables: Mapping[str, Any], name: str) -> float:
    """The number called `table.key`. TileError where there is none, or where it is no number to vary."""
    found: Any = tables
    for key in name.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise TileError(f"there is no constant '{name}'", help=did_you_mean(name, FITTED))
    if found <= 0:
        raise TileError(f"the constant '{name}' is {found:g}: it is fitted by a factor, and has to be above 0")
    return float(found)


def _with(tables: Mapping[str, Any], keys: Sequence[str], value: float) -> dict[str, Any]:
    """A copy of the tables with one number changed."""
    first, *rest = keys
    return {**tables, first: _with(tables[first], rest, value) if rest else value}
