"""Cost models held against the timeline: each orders the same schedules, and takes the one it thinks best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TypeVar

import numpy as np

from tile_eg.chips import DEFAULT_CHIP, Chip, load_chip
from tile_eg.cost_models import ModelFault, named, predicted, roles, scored, search_model
from tile_eg.cost_models.context import context
from tile_eg.errors import PlanError, TileError
from tile_eg.extract import Schedule, extract
from tile_eg.extract.chaos import Random
from tile_eg.extract.makespan import makespan
from tile_eg.extract.pricing import Pricer
from tile_eg.ir.kernel import Kernel
from tile_eg.ops.records import record
from tile_eg.search.candidates import naming
from tile_eg.search.compiler import Planned, lower, plan_schedule

TRUTH = "timeline"
RESAMPLES = 300
"""How often a sample is drawn anew for an interval."""
Failed = Callable[[ModelFault], None]
"""Hears of a model that fails. A comparison that is given one goes on without the model; else the fault ends it."""
C = TypeVar("C")
T = TypeVar("T")


@record
class Row:
    """One model on one kernel.

    `times` are its microseconds of every schedule (of a search model cycles of its makespan, of a context model scores), `truth`
    those of the timeline.
    `seconds` is what pricing all of them took.
    """

    kernel: str
    model: str
    times: tuple[float, ...]
    truth: tuple[float, ...]
    seconds: float

    @property
    def correlation(self) -> float:
        """Spearman's: 1 where the model orders the schedules as the timeline does; NaN where one of them finds all equal."""
        a, b = ranks(self.times), ranks(self.truth)
        if np.ptp(a) == 0 or np.ptp(b) == 0:
            return float("nan")
        return float(np.corrcoef(a, b)[0, 1])

    @property
    def regret(self) -> float:
        """By how much the schedule that the model takes is slower than the best, in the timeline: 0.1 is 10 %.

        Of several that it finds equally fast, the mean: which one it would take is chance.
        """
        least = ranks(self.times).min()
        chosen = [t for t, rank in zip(self.truth, ranks(self.times), strict=True) if rank == least]
        return max(0.0, sum(chosen) / len(chosen) / min(self.truth) - 1)

    def regret_of(self, k: int) -> float:
        """The same where the best of the `k` schedules that the model likes best is taken; equal ones in their order."""
        first = sorted(range(len(self.times)), key=lambda i: round(self.times[i], 9))[:k]
        return min(self.truth[i] for i in first) / min(self.truth) - 1

    def interval(self, measure: Callable[[Row], float], level: float = 0.95) -> tuple[float, float]:
        """Between which values a measure lies at this level, by resampling the schedules (a bootstrap of `RESAMPLES`)."""
        random, count = np.random.default_rng(0), len(self.times)
        drawn = (random.integers(0, count, count) for _ in range(RESAMPLES))
        of = lambda some: replace(self, times=tuple(self.times[i] for i in some), truth=tuple(self.truth[i] for i in some))  # noqa: E731
        return _between([measure(of(some)) for some in drawn], level)


@record
class Summary:
    """One model over all cases: means of a measure over them, and their intervals, by resampling the cases."""

    model: str
    correlation: float
    correlation_between: tuple[float, float]
    regret: float
    regret_between: tuple[float, float]
    best_of: float
    best_of_between: tuple[float, float]
    seconds: float


def summaries(rows: Sequence[Row], k: int = 5, level: float = 0.95) -> list[Summary]:
    """One for each model, in their order; a case in which all schedules are equal has no correlation, and is left out of it."""
    out = []
    for name in dict.fromkeys(r.model for r in rows):
        own = [r for r in rows if r.model == name]
        each = [r.correlation for r in own], [r.regret for r in own], [r.regret_of(k) for r in own]
        means, between = [_mean(v) for v in each], [_mean_between(v, level) for v in each]
        seconds = sum(r.seconds for r in own)
        out.append(Summary(name, means[0], between[0], means[1], between[1], means[2], between[2], seconds))
    return out


def _mean(values: Sequence[float]) -> float:
    known = [v for v in values if np.isfinite(v)]
    return sum(known) / len(known) if known else float("nan")


def _mean_between(values: Sequence[float], level: float) -> tuple[float, float]:
    random, known = np.random.default_rng(0), np.array([v for v in values if np.isfinite(v)])
    if not len(known):
        return float("nan"), float("nan")
    return _between([float(known[random.integers(0, len(known), len(known))].mean()) for _ in range(RESAMPLES)], level)


def _between(values: Sequence[float], level: float) -> tuple[float, float]:
    known = [v for v in values if np.isfinite(v)]
    if not known:
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def ranks(values: Sequence[float]) -> np.ndarray:
    """Places in order, from 0; equal values share the mean of theirs."""
    _, which, counts = np.unique(np.round(np.asarray(values, float), 9), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + ends - 1) / 2)[which]


def compare(
    kernels: Iterable[Kernel], models: Sequence[str], chip: str = DEFAULT_CHIP, *, k: int = 6, random: int = 6,
    failed: Failed | None = None,
) -> list[Row]:  # fmt: skip
    """Every model on every kernel, over the `k` best schedules of the default search and up to `random` random ones.

    TileError for an unknown model, or a kernel that cannot be compiled; and for a model that fails, unless `failed` hears of it.
    """
    target = load_chip(chip)
    known = answers(models, lambda name: roles(name, target), failed)
    planned = ((kernel.name, schedules(kernel, target, k, random)) for kernel in kernels)
    cases = ((name, own, _priced(TRUTH, own, target)[0]) for name, own in planned)
    return rows_of(known, cases, lambda model, case: [_row(model, *case, target)], failed)


def rows_of(
    models: Iterable[str], cases: Iterable[C], judged: Callable[[str, C], Iterable[Row]], failed: Failed | None
) -> list[Row]:
    """What `judged` gives of every model in every case; a model that fails in one is left out of all."""
    rows: list[Row] = []
    for case in cases:
        found = answers(models, lambda name, case=case: list(judged(name, case)), failed)  # type: ignore[misc]
        models = found.keys()
        rows = [r for r in rows if r.model in found] + [r for own in found.values() for r in own]
    return rows


def answers(models: Iterable[str], ask: Callable[[str], T], failed: Failed | None) -> dict[str, T]:
    """What is asked of each model. ModelFault of the first that fails; where `failed` hears of it, the others are asked, and
    TileError is raised if there is none."""
    out = {}
    for name in models:
        try:
            out[name] = ask(name)
        except ModelFault as fault:
            if failed is None:
                fault.help = f"{fault.help}; --model-faults skip goes on without the model"
                raise
            failed(fault)
    if models and not out:
        raise TileError("no model is left to compare")
    return out


def _row(model: str, kernel: str, planned: Sequence[tuple[Schedule, Planned]], truth: tuple[float, ...], chip: Chip) -> Row:
    times, seconds = _priced(model, planned, chip)
    return Row(kernel, model, times, truth, seconds)


def schedules(kernel: Kernel, chip: Chip, k: int, random: int) -> list[tuple[Schedule, Planned]]:
    """Different schedules of a kernel that can be planned: the best ones first, then random ones."""
    graph = lower(kernel, chip.name).extraction.best.graph
    found = list(extract(graph, chip, k=k).schedules)
    pricer = Pricer(graph, chip, search_model("analytic", chip))
    for seed in range(random):
        found += Random(seed).extract(graph, chip, pricer, 1).schedules
    out: dict[str, tuple[Schedule, Planned]] = {}
    for schedule in found:
        try:
            planned = plan_schedule(schedule, chip)
        except (TileError, PlanError):  # one that cannot be planned is no schedule to compare
            continue
        out.setdefault(str(planned.program), (schedule, planned))
    return list(out.values())


def _priced(name: str, planned: Sequence[tuple[Schedule, Planned]], chip: Chip) -> tuple[tuple[float, ...], float]:
    """The times that a model gives the schedules, and the seconds that it took."""
    model = named(name, chip)
    start = perf_counter()
    if callable(getattr(model, "predict", None)):
        with naming([s for s, _ in planned]):
            times = predicted(model, [p.program for _, p in planned])
    elif callable(getattr(model, "score", None)):
        with naming([s for s, _ in planned]):
            times = scored(model, [context(p.program, chip) for _, p in planned])
    else:
        graph = planned[0][0].graph
        pricer = Pricer(graph, chip, model)
        prices = [pricer.price(n) for n in graph.nodes]
        times = [float(makespan(graph, chip, s.nodes, prices)) for s, _ in planned]
    return tuple(times), perf_counter() - start
