"""A comparison of cost models as a table, as CSV (of models, of every schedule), and as a plot."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from math import isnan
from pathlib import Path

from tile_eg.errors import TileError
from tile_eg.laboratory.compare import Row, ranks, summaries
from tile_eg.report.text import duration, table

FIELDS = ("kernel", "model", "schedules", "rank_correlation", "regret", "seconds")


def as_table(rows: Sequence[Row]) -> str:
    """One line for each kernel and model."""
    lines = [(r.kernel, r.model, len(r.times), _correlation(r), f"{r.regret:.1%}", duration(r.seconds)) for r in rows]
    return table(lines, ("kernel", "model", "schedules", "rank correlation", "regret", "takes"), right=(2, 3, 4, 5))


def with_intervals(rows: Sequence[Row], k: int) -> str:
    """One line for each case and model with 95 % intervals over the schedules, then one for each model over the cases."""
    lines = [
        (r.kernel, r.model, len(r.times), _number(r.correlation, r.interval(lambda s: s.correlation)),
         _percent(r.regret, r.interval(lambda s: s.regret)), _percent(r.regret_of(k), r.interval(lambda s: s.regret_of(k))),
         duration(r.seconds))
        for r in rows
    ]  # fmt: skip
    columns = ("schedules", "rank correlation", "regret", f"of the best of {k}", "takes")
    over = [
        (s.model, _number(s.correlation, s.correlation_between), _percent(s.regret, s.regret_between),
         _percent(s.best_of, s.best_of_between), duration(s.seconds))
        for s in summaries(rows, k)
    ]  # fmt: skip
    each = table(lines, ("case", "model", *columns), right=range(2, 7))
    return f"{each}\n\nmeans over the cases\n{table(over, ('model', *columns[1:]), right=range(1, 5))}"


def _number(value: float, between: tuple[float, float]) -> str:
    return "all equal" if isnan(value) else f"{value:.2f} ({between[0]:.2f} to {between[1]:.2f})"


def _percent(value: float, between: tuple[float, float]) -> str:
    return f"{value:.1%} ({between[0]:.1%} to {between[1]:.1%})"


def schedules_csv(rows: Sequence[Row]) -> str:
    """Every schedule of every case and model: its time and the model's, both with their places among those of the case."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("case", "model", "schedule", "microseconds", "place", "said", "place_said"))
    for r in rows:
        for n, line in enumerate(zip(r.truth, ranks(r.truth), r.times, ranks(r.times), strict=True), 1):
            writer.writerow((r.kernel, r.model, n, *map(float, line)))
    return out.getvalue()


def _correlation(row: Row) -> str:
    """Where all schedules take the same time, by the model or by the timeline, there is no order to correlate."""
    return "all equal" if isnan(row.correlation) else f"{row.correlation:.2f}"


def as_csv(rows: Sequence[Row], k: int = 0) -> str:
    """The same numbers, unrounded; `regret` is a ratio, `seconds` are seconds. With `k` also what the best of k is worth, and
    the ends of all intervals."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    ends = [f"{name}_{end}" for name in ("rank_correlation", "regret", "regret_of_best") for end in ("low", "high")]
    writer.writerow((*FIELDS, *(("best_of", "regret_of_best", *ends) if k else ())))
    for r in rows:
        writer.writerow((r.kernel, r.model, len(r.times), r.correlation, r.regret, r.seconds, *(_between(r, k) if k else ())))
    return out.getvalue()


def _between(r: Row, k: int) -> tuple[float, ...]:
    asked: tuple[Callable[[Row], float], ...] = (lambda s: s.correlation, lambda s: s.regret, lambda s: s.regret_of(k))
    return k, r.regret_of(k), *(end for each in asked for end in r.interval(each))


def check_plot(path: Path) -> None:
    """TileError where no plot can be drawn there: matplotlib is missing, or does not write files of this ending."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise TileError("a plot needs matplotlib", help="pip install 'tile_eg[plot]'") from None
    kinds = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        help = f"it ends in .{', .'.join(sorted(kinds))}"
        raise TileError(f"cannot write the plot '{path}': a picture does not end in '{path.suffix}'", help=help)


def plot(rows: Sequence[Row], path: Path) -> None:
    """Every schedule as a point, one panel a model: the timeline's time across, the model's up, both over the kernel's best.

    The file's ending says what it becomes (.png, .svg, .pdf). TileError where matplotlib is missing or cannot write it.
    """
    check_plot(path)
    from matplotlib.figure import Figure

    models = list(dict.fromkeys(r.model for r in rows))
    figure = Figure(figsize=(4 * len(models), 4), layout="constrained")
    panels = figure.subplots(1, len(models), squeeze=False)[0]
    for panel, model in zip(panels, models, strict=True):
        for r in (r for r in rows if r.model == model):
            least = min(r.times) or 1.0
            panel.plot([t / min(r.truth) for t in r.truth], [t / least for t in r.times], "o", ms=4, label=r.kernel)
        panel.set(title=model, xlabel="timeline, over the best", ylabel=f"{model}, over its best", xscale="log", yscale="log")
        panel.legend(fontsize=7)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise TileError(f"cannot write the plot '{path}': {error}") from error
