"""What the models of this folder are given of a program: ratios that mean the same for small and large kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import numpy as np

from tile_eg.cost_models.context import LEVELS, PIPES, Context


def guess(c: Context) -> float:
    """Microseconds without a model: the launch, and the loads of all pipes where those of one loop overlap."""
    return c.features["launch"] + c.features["overlapped"]


def inputs(c: Context) -> list[float]:
    """Shares of the guess by pipe; instructions a microsecond; buffers; how much of the work overlaps."""
    f, us = c.features, guess(c)
    shares = [f[f"us.{p}"] / us for p in PIPES]
    often = [log(1 + f[f"issued.{p}"] / us) for p in PIPES]
    buffers = [f[f"{what}.{lv}"] for what in ("slots", "filled") for lv in LEVELS]
    return [*shares, *often, *buffers, f["serial"] / us, f["busiest"] / us, f["launch"] / us, log(f["waves"]), log(f["blocks"])]


def matrix(contexts: Sequence[Context]) -> np.ndarray:
    """float64[N, inputs]."""
    return np.array([inputs(c) for c in contexts])


def target(c: Context, microseconds: float) -> float:
    """What is learnt: the logarithm of the time over the guess."""
    return log(microseconds / guess(c))


def times(contexts: Sequence[Context], learnt: Sequence[float]) -> list[float]:
    """Microseconds of what a model says of each."""
    return [guess(c) * exp(min(5.0, max(-5.0, float(y)))) for c, y in zip(contexts, learnt, strict=True)]
