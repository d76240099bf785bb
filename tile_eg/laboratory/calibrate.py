"""Constants of a chip fitted to measured programs, and which of them the measurements determine.

Each constant is varied by a factor, within bounds; what is made small is the logarithm of predicted over measured time, by
bounded least squares. A constant is determined where its standard error is small: from the derivatives at the fit and the
scatter of the rows, or `NOISE` where that is larger. The others keep their values.
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
    "path.l0c_to_gm.shared", "rows.same_line", "sync.flag", "sync.cross_latency", "sync.scalar_issue", "sync.scalar_loop",
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
DETERMINED = 0.1
"""A constant is determined where its standard error is at most this part of it."""
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
        return tuple(c for c in self.constants if c.determined)


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
    values = dict.fromkeys(names, 0.0)
    errors = dict.fromkeys(names, float("inf"))
    while free:
        found = solve(
            lambda x, free=free: residuals(free, x), [values[n] for n in free], bounds=(-np.log(FACTOR), np.log(FACTOR)),
            diff_step=STEP, x_scale=1.0, xtol=1e-6, ftol=1e-9, max_nfev=30, jac=lambda x, free=free: residuals.jacobian(free, x),
        )  # fmt: skip
        own = _errors(residuals.jacobian(free, found.x), residuals(free, found.x))
        values |= dict(zip(free, map(float, found.x), strict=True))
        errors |= dict(zip(free, own, strict=True))
        if max(own) <= DETERMINED:
            break
        worst = free[int(np.argmax(own))]
        values[worst] = 0.0
        free = [n for n in free if n != worst]
    end = residuals(free, np.array([values[n] for n in free]))
    constants = tuple(Constant(n, before[n], before[n] * float(np.exp(values[n])), errors[n]) for n in names)
    changed = residuals.tables(free, np.array([values[n] for n in free]))
    return Fit(base, len(rows), constants, _size(start), _size(end), changed)


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


def _errors(jacobian: np.ndarray, left: np.ndarray) -> list[float]:
    """Standard errors of the logarithms; infinite where the rows do not tell constants apart."""
    free = max(1, len(left) - jacobian.shape[1])
    noise = max(NOISE, float(np.sqrt((left**2).sum() / free)))
    _, sizes, ways = np.linalg.svd(jacobian, full_matrices=True)
    sizes = np.concatenate([sizes, np.zeros(len(ways) - len(sizes))])
    return [float(noise * np.sqrt(sum((w / max(s, 1e-9)) ** 2 for w, s in zip(column, sizes, strict=True)))) for column in ways.T]


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
