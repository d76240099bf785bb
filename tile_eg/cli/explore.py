"""`alternatives`, `diff`, `export`, `extract`: the schedules that were not chosen, and graphs of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.cli import numbers, options, sources
from tile_eg.cli.console import show
from tile_eg.cli.two_runs import TwoRuns
from tile_eg.cli.waiting import shown_progress
from tile_eg.errors import TileError
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program import Program
from tile_eg.search import SearchOptions
from tile_eg.search.compiler import Lowered, lower

if TYPE_CHECKING:
    from tile_eg.search.kept import PlannedKept

File = Annotated[Path, typer.Argument(metavar="FILE", help="A kernel: .tile text, or a .py module with one kernel.")]


def alternatives(
    file: File,
    k: Annotated[int, typer.Option("-k", min=1, metavar="NUMBER", help="How many.")] = 8,
    pareto: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Only those that none beats in these: time, ub, l1, l0c, workspace, gm, instructions."),
    ] = None,
    chip: options.OnChip = None,
    sizes: options.Set = None,
    schedule: options.Searched = None,
    *,
    search: SearchOptions,
) -> None:
    """Lists schedules that differ in decisions.

    Their numbers stay: emit, run and diff take them. 1 is what emit writes.
    """
    from tile_eg.explore import alternatives

    measures = [m.strip() for m in pareto.split(",")] if pareto is not None else []
    kernel = kernel_of(file, sizes, options.searched(schedule))
    search = sources.tuned_before(kernel, chip, search)
    show(str(alternatives(kernel, chip or DEFAULT_CHIP, search=search, k=k, pareto=measures)))


def diff(
    file: File,
    left: Annotated[int | None, typer.Argument(metavar="NUMBER", help="A schedule, by its number in alternatives.")] = None,
    right: Annotated[int | None, typer.Argument(metavar="NUMBER", help="Another one.")] = None,
    chip: options.OnChip = None,
    sizes: options.Set = None,
    columns: Annotated[bool, typer.Option("--columns", help="The texts in two columns, not as a unified diff.")] = False,
    text: Annotated[bool, typer.Option("--text", help="Without numbers: also what differs in the Ascend C.")] = False,
    where: Annotated[
        bool, typer.Option("--where", help="Run both, and name the first value in which one differs from the other.")
    ] = False,
    *,
    search: SearchOptions,
) -> int:
    """Shows two schedules side by side.

    With two numbers: decisions, time by pipe, instructions, memory, Ascend C. Without: a kernel with flags, barriers or scopes as
    its author wrote it, and as the search finds it without them. With --where: whether their runs agree, and where they do not.
    """
    from tile_eg.cli.two_runs import author_and_search, two_schedules
    from tile_eg.explore import AuthorAndSearch, SideBySide, schedules_numbered

    _check_wanted(left, right, columns, text, where)
    if left is None:
        written, found = both_of(file, sizes, chip or DEFAULT_CHIP, search)
        if where:
            with shown_progress():
                return _told(author_and_search(written, found))
        show(str(AuthorAndSearch(written, found, text)))
        return 0
    assert right is not None
    kernel = kernel_of(file, sizes, searched=True)
    search = sources.tuned_before(kernel, chip, search)
    a, b = schedules_numbered([left, right], kernel, chip or DEFAULT_CHIP, search)
    if where:
        with shown_progress():
            return _told(two_schedules(a, b, kernel))
    show(str(SideBySide(a, b, columns)))
    return 0


def _check_wanted(left: int | None, right: int | None, columns: bool, text: bool, where: bool) -> None:
    """TileError for a half of two schedules, and for an option that would have no effect."""
    if left is not None and right is None:
        raise TileError(f"{left} and which other schedule?", help="tile-eg alternatives FILE numbers them")
    if left is not None and left == right:
        raise TileError(f"{left} and {right} are one schedule", help="tile-eg alternatives FILE numbers them")
    if where and (columns or text):
        raise TileError("--where runs both and shows no texts: --columns and --text mean nothing beside it")
    if columns and left is None:
        raise TileError("--columns shows two schedules by their numbers", help="--text shows how the Ascend C differs")
    if text and left is not None:
        raise TileError("--text is for a kernel beside what its author wrote: two schedules are always shown with their texts")


def _told(found: TwoRuns) -> int:
    """Shows what two runs are like; the exit code."""
    show(str(found))
    return 0 if found.good else 1


def both_of(file: Path, sizes: list[str] | None, chip: str, search: SearchOptions) -> tuple[PlannedKept, Lowered]:
    """A kernel as its author wrote it and as the search finds it. TileError for one of which its author decided nothing."""
    from tile_eg.search.kept import planned_kept

    given = options.sizes(sizes or [])
    held = sources.read(file, given)
    if not isinstance(held, KeptKernel):
        help = "two numbers compare two of its schedules: tile-eg alternatives FILE numbers them"
        raise TileError(f"'{file}' has no flags, barriers or scopes: all of it is found", help=help)
    kernel = sources.read(file, given, searched=True)
    assert isinstance(kernel, Kernel)
    found = lower(kernel, chip, search=sources.tuned_before(kernel, chip, search))
    return planned_kept(held, chip), found


def kernel_of(file: Path, sizes: list[str] | None, searched: bool = False) -> Kernel:
    """The kernel in a file, also one of an author's who decided its order if it is to be `searched`. TileError for a program:
    nothing is chosen in one."""
    held = sources.read(file, numbers.left_open(file, options.sizes(sizes or [])), searched=searched)
    if isinstance(held, Program):
        raise TileError(f"'{file}' is a program: nothing is chosen in it", help="give a .tile or a .py file")
    if not isinstance(held, Kernel):
        help = "--schedule search: without its flags, barriers and scopes all of it is found"
        raise TileError(f"'{file}' is kept as it is written: nothing is chosen in it", help=help)
    return held


def export(
    file: File,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="GRAPH.json", callback=options.to_write, help="Where to.")],
    chip: options.OnChip = None,
    sizes: options.Set = None,
    whole: Annotated[bool, typer.Option("--whole", help="Keep all choices, also those that depend on one another.")] = False,
    schedule: options.Searched = None,
    *,
    search: SearchOptions,
) -> None:
    """Writes the graph of the schedules, for other extractors.

    In the JSON of extraction-gym; `--extractor choices=FILE` compiles what another extractor chose in it.
    """
    from tile_eg.explore.gym import exported

    text = exported(lower(kernel_of(file, sizes, options.searched(schedule)), chip or DEFAULT_CHIP, search=search), whole)
    with options.writing(out):
        out.write_text(text, encoding="utf-8")
    show(f"wrote {out} ({len(text.encode()):,} bytes)")


def extract(
    graph: Annotated[Path, typer.Argument(metavar="GRAPH.json", help="A graph in the JSON of extraction-gym.")],
    extractor: Annotated[
        str, typer.Option(metavar="NAME", help="exact, beam, greedy, random, worst or module:Class, which is executed.")
    ] = "exact",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="OUT", callback=options.to_write, help="Write the choice to this file.")
    ] = None,
) -> None:
    """Runs an extractor on a graph of any origin.

    It chooses one node for each class that is used, at the least cost.
    """
    from tile_eg.explore.gym import extracted

    found = extracted(sources.read_text(graph), str(graph), extractor)
    if out is not None:
        with options.writing(out):
            out.write_text(found.choices(), encoding="utf-8")
    show(str(found))
