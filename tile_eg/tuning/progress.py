"""How far tuning is, in a line on a terminal; nothing where standard error is none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tile_eg.report.text import duration
from tile_eg.tuning.result import Tuning


@contextmanager
def progress(budget: int, tell: Callable[[str], None]) -> Iterator[tuple[Callable[[Tuning], None], Callable[[str], None]]]:
    """What to call after each candidate, and for a line to people, while the block goes on."""
    if not sys.stderr.isatty():
        yield lambda tuning: None, tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = TextColumn("tuning"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("the search's own choice first", total=budget)

        def seen(tuning: Tuning) -> None:
            best = tuning.best
            best_time = f"best {duration((best.microseconds or 0) * 1e-6)}" if best else "none is right yet"
            shown.update(task, completed=tuning.tried, description=best_time)

        yield seen, lambda text: console.print(text, highlight=False, markup=False)
