"""`tile-eg compare-models`: how cost models order the schedules of kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.cli import options, sources
from tile_eg.cli.console import show
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel


def compare_models(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Kernels: .tile text, or .py modules with one kernel, which are executed."),
    ],
    models: Annotated[str, typer.Option(metavar="NAMES", help="Separated by commas.")] = "roofline,analytic,timeline",
    chip: Annotated[str | None, typer.Option("--chip", metavar="NAME", help="The chip; `tile-eg chips` lists them.")] = None,
    sizes: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=NUMBER", help="A size of every kernel.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, metavar="NUMBER", help="How many of the best schedules.")] = 6,
    random: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="How many random schedules besides.")] = 6,
    csv: Annotated[Path | None, typer.Option(metavar="OUT", help="Write the numbers there, as CSV.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="OUT", help="Draw every schedule there: .png, .svg or .pdf.")] = None,
) -> None:
    """Holds cost models against the timeline.

    Every model orders the same schedules of each kernel. Shown are the rank correlation with the timeline, the regret of the
    model's choice (how much slower than the best it runs), and the seconds it took.
    """
    from tile_eg.laboratory.compare import compare
    from tile_eg.laboratory.shown import as_csv, as_table
    from tile_eg.laboratory.shown import plot as draw

    given = options.sizes(sizes or [])
    rows = compare([_kernel(f, given) for f in files], models.split(","), chip or DEFAULT_CHIP, k=k, random=random)
    show(as_table(rows))
    if csv:
        with options.writing(csv):
            csv.write_text(as_csv(rows), encoding="utf-8")
    if plot:
        draw(rows, plot)


def _kernel(file: Path, sizes: dict[str, int | str]) -> Kernel:
    held = sources.read(file, sizes)
    if not isinstance(held, Kernel):
        raise TileError(f"'{file}' is a program: it has one schedule, and nothing to compare", help="give a .tile or a .py file")
    return held
