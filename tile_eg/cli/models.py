"""`tile-eg compare-models`: how cost models order the schedules of kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.cli import options, sources
from tile_eg.cli.console import complain, show
from tile_eg.cli.search import MODEL_SECONDS, ModelSeconds
from tile_eg.errors import TileError
from tile_eg.ir.kernel import Kernel

if TYPE_CHECKING:
    from tile_eg.cost_models import ModelFault


def compare_models(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Kernels: .tile text, or .py modules with one kernel, which are executed."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A dataset of schedules, in place of kernels: models are taught by folds.")
    ] = None,
    models: Annotated[str, typer.Option(metavar="NAMES", help="Separated by commas.")] = "roofline,analytic,timeline",
    folds: Annotated[
        str, typer.Option(metavar="kernel|case|none", help="With --data: what a model is not taught before it is judged on it.")
    ] = "kernel",
    judge: Annotated[
        str | None, typer.Option(metavar="KERNELS", help="With --data: judge on these, separated by commas; teach on all others.")
    ] = None,
    best_of: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="With --data: of how many the best is taken.")] = 5,
    chip: options.OnChip = None,
    sizes: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=NUMBER", help="A size of every kernel. Repeatable.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, metavar="NUMBER", help="How many of the best schedules.")] = 6,
    random: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="How many random schedules besides.")] = 6,
    csv: Annotated[
        Path | None, typer.Option(metavar="OUT", callback=options.to_write, help="Write the numbers there, as CSV.")
    ] = None,
    schedules: Annotated[
        Path | None, typer.Option(metavar="OUT", callback=options.to_write, help="Write every schedule's numbers there, as CSV.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="OUT", callback=options.to_write, help="Draw every schedule there: .png, .svg or .pdf.")
    ] = None,
    model_faults: Annotated[
        str, typer.Option(metavar="stop|skip", help="If a model fails: stop, or go on with the others.")
    ] = "stop",
    model_seconds: ModelSeconds = MODEL_SECONDS,
) -> None:
    """Compares cost models with the timeline.

    With --data, with the times of a dataset. Every model orders the same schedules of each kernel. The output is the rank
    correlation with the truth, the regret of the model's choice (how much slower than the best it runs), and the seconds it took.
    For a dataset there are 95 % intervals, and models that learn are taught on the other kernels first.
    """
    from tile_eg.cost_models import patience
    from tile_eg.laboratory.compare import compare
    from tile_eg.laboratory.data import load_dataset
    from tile_eg.laboratory.folds import cross_validated
    from tile_eg.laboratory.shown import as_csv, as_table, check_plot, schedules_csv, with_intervals
    from tile_eg.laboratory.shown import plot as draw

    if bool(files) == bool(data):
        raise TileError("either kernels or a dataset (--data DIR)", help="`tile-eg dataset FILE... -o DIR` makes one")
    _check_given(context, bool(data))
    if plot:
        check_plot(plot)
    names, failed = models.split(","), _left_out(model_faults)
    with patience(model_seconds):
        if data:
            rows = cross_validated(load_dataset(data), names, folds, judge.split(",") if judge else (), failed)
        else:
            given = options.sizes(sizes or [])
            held = [_kernel(f, given) for f in files or ()]
            rows = compare(held, names, chip or DEFAULT_CHIP, k=k, random=random, failed=failed)
    show(with_intervals(rows, best_of) if data else as_table(rows))
    for path, text in ((csv, lambda: as_csv(rows, best_of if data else 0)), (schedules, lambda: schedules_csv(rows))):
        if path:
            with options.writing(path):
                path.write_text(text(), encoding="utf-8")
    if plot:
        draw(rows, plot)


def _left_out(faults: str) -> Callable[[ModelFault], None] | None:
    """Who hears of a model that fails; None where that ends the comparison."""
    if faults not in ("stop", "skip"):
        raise TileError(f"--model-faults {faults}: it is stop or skip")
    return (lambda fault: complain(f"note: {fault.message}; it is left out")) if faults == "skip" else None


OF_DATA = {"folds": "--folds", "judge": "--judge", "best_of": "--best-of"}
OF_KERNELS = {"chip": "--chip", "sizes": "--set", "k": "-k", "random": "--random"}
"""Options of `compare-models` that mean something with a dataset alone, and with kernels alone."""


def _check_given(context: typer.Context, data: bool) -> None:
    """TileError for an option that would have no effect."""
    for name, option in (OF_KERNELS if data else OF_DATA).items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            why = "a dataset has its chip, sizes and schedules" if data else "it takes a dataset (--data DIR)"
            raise TileError(f"{option} is for {'kernels' if data else 'a dataset'}: {why}")


def teach(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name, or module:Class, which is executed.")],
    data: Annotated[Path, typer.Option(metavar="DIR", help="A dataset of schedules.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", callback=options.to_write, help="Where the model saves what it learnt.")
    ],
    without: Annotated[str | None, typer.Option(metavar="KERNELS", help="Leave these out, separated by commas.")] = None,
    model_seconds: ModelSeconds = MODEL_SECONDS,
) -> None:
    """Teaches a cost model the schedules of a dataset.

    `--cost-model MODEL@FILE` then compiles with it.
    """
    from tile_eg.cost_models import named, patience
    from tile_eg.laboratory import folds
    from tile_eg.laboratory.data import load_dataset

    found = load_dataset(data)
    left_out = folds.of_kernels(found, without.split(",")) if without else set()
    own = named(model, folds.chip_of(found))
    if not callable(getattr(own, "update", None)) or not callable(getattr(own, "save", None)):
        help = "a model that learns has update(measurements), save(path) and load(path); others are compared as they are"
        raise TileError(f"'{model}' does not learn: it has no update, or no save", help=help)
    rows = found.where(lambda r: r.case not in left_out)
    with patience(model_seconds):
        folds.teach(own, rows)
    with options.writing(out):
        own.save(out)
    show(f"{model} learnt {len(rows)} schedules: --cost-model {model}@{out}")


def _kernel(file: Path, sizes: dict[str, int | str]) -> Kernel:
    held = sources.read(file, sizes)
    if not isinstance(held, Kernel):
        raise TileError(f"'{file}' is a program: it has one schedule, and nothing to compare", help="give a .tile or a .py file")
    return held
