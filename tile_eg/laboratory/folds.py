"""Cost models taught on some kernels and judged on others: each fold leaves out one kernel, or one kernel at one size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from tile_eg.chips import Chip, load_chip
from tile_eg.cost_models import named, node_cost, predicted, roles, scored, taught
from tile_eg.cost_models.context import context
from tile_eg.cost_models.counted import issued, waves
from tile_eg.errors import TileError, did_you_mean
from tile_eg.ir.program import Program
from tile_eg.laboratory.compare import Failed, Row, answers, rows_of
from tile_eg.laboratory.data import Dataset

FOLDS = ("kernel", "case", "none")
"""What is left out of what a model is taught: all sizes of a kernel, one case; "none": nothing is taught."""


def cross_validated(
    data: Dataset, models: Sequence[str], folds: str = "kernel", judged: Sequence[str] = (), failed: Failed | None = None
) -> list[Row]:
    """Every model on every case, taught on the rows of the other folds by its `update`, where it has one. Where kernels are to be
    `judged`, they are one fold, and no other is.

    `seconds` of a row are those of pricing its schedules; teaching is not in them. TileError for an unknown model, rows of
    several chips, and where one fold alone is there to learn from; and for a model that fails, unless `failed` hears of it.
    """
    if folds not in FOLDS:
        raise TileError(f"--folds {folds}: what is left out is {', '.join(FOLDS)}")
    chip = chip_of(data)
    known = answers(models, lambda name: roles(name, chip), failed)
    left_outs = [of_kernels(data, judged)] if judged else _folds(data, folds)
    rows = rows_of(known, left_outs, lambda name, left_out: _judged(name, data, left_out, chip, folds), failed)
    places = {case: n for n, case in enumerate(dict.fromkeys(r.case for r in data.rows))}
    return sorted(rows, key=lambda r: places[r.kernel])


def chip_of(data: Dataset) -> Chip:
    """The chip of all rows. TileError where there are several, and where it is unknown."""
    names = sorted({r.chip for r in data.rows})
    if len(names) != 1:
        raise TileError(f"the rows are of {len(names)} chips ({', '.join(names)}): models are compared on one")
    return load_chip(names[0])


def _folds(data: Dataset, folds: str) -> list[set[str]]:
    """The cases that are left out together."""
    if folds != "kernel":
        return [{case} for case in dict.fromkeys(r.case for r in data.rows)]
    kernels = dict.fromkeys(r.kernel for r in data.rows)
    return [{r.case for r in data.rows if r.kernel == kernel} for kernel in kernels]


def of_kernels(data: Dataset, names: Sequence[str]) -> set[str]:
    """The cases of these kernels. TileError for a kernel that has none."""
    known = dict.fromkeys(r.kernel for r in data.rows)
    for name in names:
        if name not in known:
            raise TileError(f"the dataset has no kernel '{name}'", help=did_you_mean(name, known))
    return {r.case for r in data.rows if r.kernel in names}


def _judged(name: str, data: Dataset, left_out: set[str], chip: Chip, folds: str) -> Iterator[Row]:
    model = named(name, chip)
    if folds != "none":
        teach(model, data.where(lambda r: r.case not in left_out))
    for case in sorted(left_out):
        own = data.where(lambda r, case=case: r.case == case)  # type: ignore[misc]
        start = perf_counter()
        times = priced(model, own.programs, chip)
        yield Row(case, name, tuple(times), tuple(map(float, own.labels)), perf_counter() - start)


def teach(model: Any, data: Dataset) -> None:
    """Gives a model the programs of a dataset and their times; nothing where it cannot learn. TileError where there are none."""
    if getattr(model, "update", None) is None:
        return
    if not len(data):
        what = f"'{getattr(model, 'name', type(model).__name__)}' has nothing to learn from: one fold holds all rows"
        raise TileError(what, help="more kernels, or --folds case or none")
    taught(model, list(zip(data.programs, map(float, data.labels), strict=True)))


def priced(model: Any, programs: Sequence[Program], chip: Chip) -> list[float]:
    """What a model says of programs: microseconds of a rank model, scores of a context model; of a search model the cycles of its
    loads, where those of one loop overlap."""
    if callable(getattr(model, "predict", None)):
        return predicted(model, programs)
    if callable(getattr(model, "score", None)):
        return scored(model, [context(p, chip) for p in programs])
    return [_overlapped(model, p, chip) for p in programs]


def _overlapped(model: Any, program: Program, chip: Chip) -> float:
    busy: dict[tuple[str, ...], dict[str, float]] = {}
    for one in issued(program, chip):
        pipes = busy.setdefault(one.loops, {})
        for pipe, cycles in node_cost(model, one.work).items():
            pipes[pipe] = pipes.get(pipe, 0.0) + one.times * cycles
    return waves(program, chip) * sum(max(pipes.values(), default=0.0) for pipes in busy.values())
