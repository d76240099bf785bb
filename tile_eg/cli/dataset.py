"""`tile-eg dataset`: many schedules of kernels, with features and times, for research on cost models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from tile_eg.chips import DEFAULT_CHIP, load_chip
from tile_eg.cli import options, sources
from tile_eg.cli.console import complain, show
from tile_eg.cli.explore import kernel_of
from tile_eg.cli.waiting import KEPT
from tile_eg.errors import TileError
from tile_eg.search import SearchOptions

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Kernels: .tile text, or .py modules with one kernel, which are executed.")
]
Sizes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=NUMBER,...", help="A size, or several: every kernel that has it at each. Repeatable."),
]


def dataset(
    files: Files,
    out: Annotated[
        Path,
        typer.Option("-o", "--out", metavar="DIR", callback=options.to_fill, help="Where to; a dataset cut short there goes on."),
    ],
    n: Annotated[int, typer.Option("-n", min=1, metavar="NUMBER", help="How many schedules, of all kernels together.")] = 2000,
    sizes: Sizes = None,
    chip: options.OnChip = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="The same seed gives the same rows.")] = 0,
    workers: Annotated[int | None, typer.Option(min=1, metavar="NUMBER", help="Processes (default: one a core).")] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Dask cluster that does the work.")] = None,
    device: Annotated[str, typer.Option(metavar="timeline|npu", help="Who says how long a schedule takes.")] = "timeline",
    format: Annotated[str, typer.Option(metavar="parquet|jsonl", help="How the rows are written.")] = "parquet",
    *,
    search: SearchOptions,
) -> None:
    """Makes a dataset of schedules.

    Distinct legal ones of each kernel: random, spread over decisions, and near the best; each with its decisions, instructions,
    features, bytes, program and time. A card (`_card.md`) says what is in it.
    """
    from tile_eg.laboratory.dataset import Wanted, make_dataset
    from tile_eg.laboratory.stored import CARD, FORMATS, PARTS

    if device not in ("timeline", "npu"):
        raise TileError(f"--device {device}: it is timeline or npu")
    name = chip or DEFAULT_CHIP
    load_chip(name)
    wanted = Wanted(tuple(cases(files, sizes, name, search)), n, seed, device, format)
    count = 1 if device == "npu" else workers or os.cpu_count() or 1
    try:
        with bar(n) as told:
            rows = make_dataset(wanted, out, count, dask, told, complain)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"{KEPT}the pieces in {out / PARTS} that were done are kept")
        raise
    if len(rows) < n:
        complain(f"note: {n} were asked for, and no more were found that differ")
    show(f"{len(rows)} schedules in {out / FORMATS[format]}; {out / CARD} says what is in it")


def cases(files: list[Path], sizes: list[str] | None, chip: str, search: SearchOptions) -> Iterator:
    """Every kernel at every choice of its sizes. TileError for a size that no kernel has."""
    from tile_eg.laboratory.dataset import Case

    points, known = options.choices(sizes or []), set[str]()
    for file in files:
        own = {name: numbers for name, numbers in points.items() if _has(file, name)}
        known |= own.keys()
        for choice in product(*own.values()):
            given = [f"{name}={number}" for name, number in zip(own, choice, strict=True)]
            yield Case(" ".join([file.stem, *given]), kernel_of(file, given, searched=True), chip, search)
    if unknown := sorted(points.keys() - known):
        raise TileError(f"--set {unknown[0]}: no kernel has such a size")


def _has(file: Path, name: str) -> bool:
    """Whether a kernel has a size or a number of this name; one in Python says so itself."""
    from tile_eg.frontend.text import load_text

    if file.suffix != ".tile":
        return True
    template = load_text(sources.read_text(file), str(file))
    return name in template.sizes or name in template.numbers


@contextmanager
def bar(of: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error that shows how many schedules there are; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("schedules"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("", total=of)
        yield lambda have: progress.update(task, completed=have)
