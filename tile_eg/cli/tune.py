"""`tile-eg tune`: the fastest of the search's own candidates, each checked and then timed, is used from then on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.cli import numbers, options, sources
from tile_eg.cli.console import complain, show
from tile_eg.search import SearchOptions


def tune(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A kernel, as `tile-eg run` takes it.")],
    budget: Annotated[int, typer.Option(metavar="NUMBER", help="Candidates that are tried.")] = 200,
    sizes: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=NUMBER", help="A size; NAME=auto leaves it open. Repeatable.")
    ] = None,
    chip: options.OnChip = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="npu|timeline", help="Measure on an NPU, or predict (default: an NPU where there is one)."),
    ] = None,
    workers: Annotated[int, typer.Option(metavar="NUMBER", help="Processes of this machine that compile and check.")] = 1,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://host:8786: its workers do the work.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a run before this one ended.")] = False,
    sample: Annotated[int, typer.Option(metavar="NUMBER", help="Tiles of the grid that are compared; 0: all.")] = 8,
    launches: Annotated[int, typer.Option(metavar="NUMBER", help="Launches that are timed on an NPU.")] = 100,
    warmup: Annotated[int, typer.Option(metavar="NUMBER", help="Launches before them.")] = 10,
    schedule: options.Searched = None,
    *,
    search: SearchOptions,
) -> int:
    """Finds the fastest schedule, and keeps it beside FILE.

    The search's own candidates are tried, at several numbers for sizes that are `auto`. Each is run in the simulator and compared
    with the kernel's meaning, and then timed: on an NPU as `tile-eg bench` does, else by the timeline. The fastest goes to
    FILE.tuned.json, which commands and calls from Python use from then on for this kernel, chip and sizes, with any numbers of
    a call (`lr: f32`) that it need not know. Ctrl-C keeps the best so far, and --resume goes on after it.
    """
    from tile_eg.tuning import Asked, Watch
    from tile_eg.tuning import tune as tuned
    from tile_eg.tuning.progress import progress

    asked = Asked(budget, device, workers, dask, resume, sample, 0, launches, warmup)
    asked.check()
    given = numbers.left_open(file, options.sizes(sizes or []), given=True)
    held = sources.read(file, given, searched=options.searched(schedule))
    with progress(budget, complain) as (seen, tell):
        found = tuned(held, chip or DEFAULT_CHIP, search, asked, Watch(tell, seen))
    show(str(found))
    if found.interrupted:
        return 130
    return 0 if found.best else 2
