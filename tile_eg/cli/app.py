"""The commands of `tile-eg`. Each reads its file, asks the compiler, and prints what a report says."""

from __future__ import annotations

import json
import math
import os
import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.cli import again, numbers, options, runs, sources
from tile_eg.cli.at_sizes import times_at
from tile_eg.cli.audit import NOT_OF_VALUES, audit
from tile_eg.cli.bench import bench
from tile_eg.cli.build import build
from tile_eg.cli.calibrate import calibrate
from tile_eg.cli.codes import GOOD, INTERRUPTED, OUR_ERROR, USER_ERROR
from tile_eg.cli.compared import compared_tiles
from tile_eg.cli.console import complain, leave_unread, show, unwritten
from tile_eg.cli.dataset import dataset
from tile_eg.cli.doctor import doctor
from tile_eg.cli.emitted import emitted
from tile_eg.cli.explore import alternatives, diff, export, extract
from tile_eg.cli.in_a_row import SeveralLaunches, check_whole, each_launch, named, text_in_a_row
from tile_eg.cli.kept import NoCache, Wanted, cache
from tile_eg.cli.located import check_where, first_differences, meaning_of, subject_of
from tile_eg.cli.models import compare_models, teach
from tile_eg.cli.own_rules import blamed
from tile_eg.cli.search import searching
from tile_eg.cli.simulate import simulate_file
from tile_eg.cli.tune import tune
from tile_eg.cli.waiting import lost, shown_progress
from tile_eg.errors import InternalError, TileError, in_source, rendered
from tile_eg.ir.arrays import signature
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program import Program
from tile_eg.search import SearchOptions
from tile_eg.search.compiler import Lowered, check_kernel, lower, stage
from tile_eg.simulator.sample import check_sample

if TYPE_CHECKING:
    from tile_eg.locate import Located


class Interrupted(Exception):
    """Ctrl-C, with what it interrupted; typer would turn a KeyboardInterrupt into an exit code."""


class Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            told = Interrupted()
            told.__notes__ = getattr(interrupt, "__notes__", [])
            raise told from None
        except BrokenPipeError:  # typer would take it for the user's mistake
            leave_unread()
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    help="Compiles tile kernels to Ascend C, and runs what came out in a simulator.",
    epilog="Exit codes: 0 good, 1 a mistake in the input, 2 a fault of tile_eg. TILE_EG_DEBUG=1 shows where a fault happened.",
)
File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A kernel: .tile text, a .program, or a .py module with one kernel, which is executed."),
]


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and gives its exit code; whatever goes wrong is told on standard error, never as a traceback."""
    try:
        with stage("command line"), again.asked(arguments), named(arguments) as read:
            return _invoke(read)
    except TileError as error:
        complain(str(error))
        return USER_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except InternalError as error:
        if os.environ.get("TILE_EG_DEBUG"):
            traceback.print_exception(error)
        complain(str(error) + ("" if os.environ.get("TILE_EG_DEBUG") else "\nhelp: TILE_EG_DEBUG=1 shows where it happened"))
        return OUR_ERROR


def _invoke(arguments: list[str]) -> int:
    try:
        return options.command_of(app, arguments).main(arguments or ["--help"], "tile-eg", standalone_mode=False) or GOOD
    except options.UsageError as error:
        raise options.unreadable(error) from None
    except Interrupted as interrupted:
        complain(lost(interrupted))
        return INTERRUPTED
    except typer.Abort:
        return INTERRUPTED
    except OSError as error:
        raise unwritten(error) from None


def _version(wanted: bool) -> None:
    if wanted:
        from tile_eg.version import __version__

        show(f"tile-eg {__version__}")
        raise typer.Exit


@app.callback()
def _any(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


@app.command()
@each_launch
def check(file: File, chip: options.OnChip = None, sizes: options.Set = None) -> None:
    """Checks names, types, shapes, and room in the chip's HBM.

    Sizes that each call tells stand at an example.
    """
    held, example = sources.read_at_example(file, options.sizes(sizes or []))
    if isinstance(held, Kernel):
        for note in check_kernel(held, chip or DEFAULT_CHIP):
            complain(rendered(note, held.source))
    if isinstance(held, KeptKernel):
        sources.compile_held(held, chip)
    at = f", looked at for {', '.join(f'{n}={v}' for n, v in example.items())}" if example else ""
    show(f"{file}: good ({_described(held)}{at})")


@app.command()
@searching
def emit(
    file: File,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="OUT", callback=options.to_write, help="Write to this file.")
    ] = None,
    chip: options.OnChip = None,
    sizes: options.Set = None,
    program: Annotated[bool, typer.Option("--program", help="The instruction stream with its addresses and flags.")] = False,
    host: Annotated[bool, typer.Option("--host", help="The host part, which launches the kernel.")] = False,
    spec: Annotated[bool, typer.Option("--spec", help="The launch, as `tile-eg simulate --args` reads it.")] = False,
    schedule: options.Schedule = None,
    no_cache: NoCache = False,
    at: Annotated[
        list[str] | None, typer.Option("--at", metavar="NAME=NUMBER,...", help="One text for all sizes, priced at these.")
    ] = None,
    *,
    search: SearchOptions,
) -> None:
    """Writes the Ascend C that a kernel becomes.

    For a kernel with run-time sizes (`dyn`, `T.symbolic`) it is one text that serves all sizes. --at names sizes at which the
    cost model is asked: if they want different schedules, the text holds several.
    """
    if program + host + spec > 1:
        raise TileError("--program, --host and --spec: one of them at a time")
    kind = "program" if program else "host" if host else "spec" if spec else "source"
    at_launch = numbers.left_open(file, options.sizes(sizes or []))
    asked = partial(Wanted, file, at_launch, chip, search, options.schedule(schedule), not no_cache)
    points = options.points(at or [])
    try:
        text = emitted(asked(), kind, points, out is None)
    except SeveralLaunches as several:
        text = text_in_a_row(several, kind, lambda: emitted(asked(), kind, points, False), lambda: asked().compiled())
    if out is None:
        show(text.rstrip("\n"), "" if program or spec else "cpp")
        return
    with options.writing(out):
        out.write_text(text, encoding="utf-8")
    show(f"wrote {out} ({len(text.splitlines())} lines)")


@app.command("run")
@searching
@each_launch
def run_file(
    file: File,
    chip: options.OnChip = None,
    sizes: options.Set = None,
    seed: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="The seed of random inputs.")] = 0,
    inputs: Annotated[
        str | None, typer.Option(metavar="SET,...", help="Random inputs: uniform, wide, nan (default: uniform,wide).")
    ] = None,
    given: Annotated[
        list[str] | None, typer.Option("--input", metavar="NAME=FILE", help="An input from a .npy file. Repeatable.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="DIR", callback=options.to_fill, help="Keep inputs and outputs there, as .npy files.")
    ] = None,
    order: Annotated[int | None, typer.Option(min=0, metavar="SEED", help="Let pipes run in an unfavourable order.")] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="OUT", callback=options.to_write, help="Write the predicted timeline, which Perfetto opens."),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Run only so many blocks: the grid's corners, and some others.")
    ] = None,
    compare: Annotated[
        int | None, typer.Option(min=0, metavar="NUMBER", help="Tiles that are compared; 0: all (default: all that are quick).")
    ] = None,
    memory: options.Memory = options.MEMORY,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    schedule: options.Schedule = None,
    seconds: options.Seconds = options.SECONDS,
    unconfined: options.Unconfined = False,
    no_cache: NoCache = False,
    where: Annotated[bool, typer.Option("--where", help="Name the first value that differs, inside the kernel too.")] = False,
    against: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="As --where, against a NumPy or torch function; executed.")
    ] = None,
    *,
    search: SearchOptions,
) -> int:
    """Runs what a kernel becomes, and checks its numbers.

    The emitted Ascend C runs in the simulator; its outputs are compared with the kernel's own sequential meaning. It runs on
    each set of inputs: uniform (-1 to 1), wide (large and small rows, ties, zeros, subnormals), nan (uniform, with NaN and
    infinities in some rows). `--sample` runs some blocks of a large kernel and compares what they compute. If the meaning takes
    long to compute, only some tiles of the grid are compared, and the result says so; `--compare` sets their number.
    """
    looked_for, number = where or against is not None, options.schedule(schedule)
    cached = not (no_cache or trace or looked_for)  # these have the source's lines, which a program that was kept has not
    shapes = options.shapes(given or [])
    at, passed = (options.sizes(sizes or []), {}) if looked_for else numbers.apart(file, options.sizes(sizes or []), shapes)
    wanted = Wanted(file, at, chip, search, number, cached, shapes)
    planned, held = wanted.restored() or wanted.compiled(), wanted.held
    if looked_for:
        check_where(order, held, against)
    how: dict[str, Any] = {"order": order, "memory": options.memory_bytes(memory), "seconds": seconds, "confined": not unconfined}
    how["blocks"] = blocks = runs.sample(sample, planned, held)
    if sample is not None:
        check_whole("--sample")
    tiles = compared_tiles(0 if looked_for and compare is None else compare, held, planned.program, blocks)
    with in_source(held.source if isinstance(held, Kernel) else ""):
        check_sample(planned.program, blocks)
        sets = runs.drawn(held, inputs, seed, given or [], tiles, passed)
        with shown_progress():
            done = runs.run_on(planned, held, sets, how)
    _keep(done, save, trace)
    places = _first_differences(wanted, done, how, against) if looked_for else []
    report = done.report()
    data = report.data() | ({"where": [p.data() for p in places]} if looked_for else {})
    show(json.dumps(data, indent=2) if as_json else "\n\n".join([str(report), *map(str, places)]))
    if report.ours_good:
        return GOOD if report.good and all(p.good for p in places) else USER_ERROR
    return _whose_fault(wanted, done, how)


def _keep(done: runs.Runs, save: Path | None, trace: Path | None) -> None:
    """Writes what is to be kept of the runs. TileError for what a kernel that is done in its order does wrong."""
    from tile_eg.search.kept import PlannedKept

    if save:
        done.save(save)
    if trace:
        with options.writing(trace):
            trace.write_text(json.dumps(done.planned.trace()), encoding="utf-8")
    if isinstance(done.planned, PlannedKept) and (found := [f for run in done.runs for f in run.findings]):
        raise done.planned.mistake(found)


def _whose_fault(wanted: Wanted, done: runs.Runs, how: Mapping[str, Any]) -> int:
    """The exit code where a program does not do what its kernel means: a rule of the user's may be to blame, which is told."""
    held, planned, search = wanted.held, done.planned, wanted.search
    if not isinstance(held, Kernel):
        return OUR_ERROR

    def good(without: SearchOptions) -> bool:
        again = sources.compile_held(held, wanted.chip, without)
        return runs.run_on(again, held, done.sets, how).report().ours_good

    lowered = planned if isinstance(planned, Lowered) else lower(held, wanted.chip or DEFAULT_CHIP, search=search)
    fault = blamed(lowered, search, good)
    if not fault:
        return OUR_ERROR
    complain(fault)
    return USER_ERROR


def _first_differences(wanted: Wanted, done: runs.Runs, how: Mapping[str, Any], against: str | None) -> list[Located]:
    """What `--where` finds in the runs of a kernel."""
    held = wanted.held
    read_in_order = partial(sources.read, wanted.file, wanted.sizes, wanted.shapes, searched=True)
    meaning = meaning_of(held, read_in_order, against)
    subject = subject_of(held, done.planned, wanted.number, wanted.chip, wanted.search) if isinstance(held, Kernel) else None
    with in_source(getattr(held, "source", "")), shown_progress():
        return first_differences(done, subject, how, meaning, against)


app.command("simulate")(simulate_file)
app.command()(searching(alternatives))
app.command()(searching(diff))
app.command()(searching(export, without=("untuned",)))
app.command()(extract)
app.command()(searching(dataset, without=("untuned",)))
app.command()(calibrate)
app.command("compare-models")(compare_models)
app.command()(teach)
app.command()(searching(audit, without=NOT_OF_VALUES))
app.command("cache")(cache)
app.command("doctor")(doctor)
app.command()(searching(bench))
app.command()(searching(build))
app.command()(searching(tune, without=("untuned",), effort="full"))


@app.command()
@searching
@each_launch
def explain(
    file: File,
    chip: options.OnChip = None,
    sizes: options.Set = None,
    question: Annotated[
        str | None, typer.Option("--why-not", metavar="DECISION", help="What a decision would cost: buffers=3, rule=NAME, ...")
    ] = None,
    profile: Annotated[bool, typer.Option("--profile", help="Also what each rule costs: time, matches, growth.")] = False,
    at: Annotated[
        list[str] | None, typer.Option("--at", metavar="NAME=NUMBER,...", help="Only the times at these sizes. Repeatable.")
    ] = None,
    schedule: options.Searched = None,
    *,
    search: SearchOptions,
) -> None:
    """Shows the schedule, its decisions, and what lost.

    With --why-not: what one decision would cost, or why it cannot be. With --at: the prediction at each of several sizes, and at
    which of them the same schedule is chosen. For a kernel with run-time sizes: each kernel that its text holds.
    """
    from tile_eg.explore import explained, why_not

    given, number = numbers.left_open(file, options.sizes(sizes or [])), options.SEARCH if options.searched(schedule) else None
    wanted = Wanted(file, given, chip, search, number, False)
    if at:
        if profile or question is not None:
            what = "--at shows times alone, and --why-not and --profile are of a kernel at its sizes"
            raise TileError(what, help="--set NAME=NUMBER gives the sizes")
        show(times_at(wanted, options.several_sizes(at)))
        return
    if question is None and not profile and not wanted.known:
        one = sources.for_all_sizes(file, wanted.sizes, chip, search, {}, wanted.searched, cached=False)
        if one is not None:
            show(str(one.explanation))
            return
    from tile_eg.search.kept import PlannedKept

    planned = wanted.compiled()
    if isinstance(planned, PlannedKept):
        what = f"'{file}' is kept as it is written: nothing was chosen, so nothing can be explained"
        raise TileError(what, help="--schedule search explains what the search finds; `tile-eg diff` shows both")
    if not isinstance(planned, Lowered):
        raise TileError(f"'{file}' is a program: nothing was chosen, so nothing can be explained", help="`tile-eg run` times it")
    show(str(why_not(planned, question) if question is not None else explained(planned, profile)))


@app.command()
def rules(theory: Annotated[list[str] | None, typer.Argument(metavar="[THEORY]...", help="Only these.")] = None) -> None:
    """Lists rules and moves: name, law, line of maths, bound."""
    from tile_eg.report.inventory import rules_text
    from tile_eg.search.moves import MOVES

    show(rules_text(theory or [], [(m.name, m.law, m.line) for m in MOVES.values()]))


@app.command()
def chips() -> None:
    """Lists the chips that have tables."""
    from tile_eg.report.inventory import chips_text

    show(chips_text())


def _described(held: Kernel | Program | KeptKernel) -> str:
    blocks = math.prod(extent for _, extent in held.grid) if isinstance(held, Kernel) else held.blocks
    return f"{held.name}({signature(held.tensors)}), {blocks} block{'s' * (blocks != 1)}"
