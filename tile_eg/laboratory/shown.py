"""A comparison of cost models as a table, as CSV, and as a plot."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from math import isnan
from pathlib import Path

from tile_eg.errors import TileError
from tile_eg.laboratory.compare import Row
from tile_eg.report.text import duration, table

FIELDS = ("kernel", "model", "schedules", "rank_correlation", "regret", "seconds")


def as_table(rows: Sequence[Row]) -> str:
    """One line for each kernel and model."""
    lines = [(r.kernel, r.model, len(r.times), _correlation(r), f"{r.regret:.1%}", duration(r.seconds)) for r in rows]
    return table(lines, ("kernel", "model", "schedules", "rank correlation", "regret", "seconds"), right=(2, 3, 4, 5))


def _correlation(row: Row) -> str:
    """Where all schedules take the same time, by the model or by the timeline, there is no order to correlate."""
    return "all equal" if isnan(row.correlation) else f"{row.correlation:.2f}"


def as_csv(rows: Sequence[Row]) -> str:
    """The same numbers, unrounded; `regret` is a ratio, `seconds` are seconds."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    for r in rows:
        writer.writerow((r.kernel, r.model, len(r.times), r.correlation, r.regret, r.seconds))
    return out.getvalue()


def plot(rows: Sequence[Row], path: Path) -> None:
    """Every schedule as a point, one panel a model: the timeline's time across, the model's up, both over the kernel's best.

    The file's ending says what it becomes (.png, .svg, .pdf). TileError where matplotlib is missing or cannot write it.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise TileError("a plot needs matplotlib", help="pip install 'tile_eg[plot]'") from None
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
