"""`tile-eg bench`: how long kernels take on an NPU, beside what is predicted; as a table, and as rows of a CSV."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import join
from typing import Annotated, Any

import typer

from tile_eg.cli import options, runs, sources
from tile_eg.cli.console import complain, show
from tile_eg.errors import TileError
from tile_eg.ir.arrays import begun
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.ops.records import record
from tile_eg.report.cost import between
from tile_eg.report.text import duration, table
from tile_eg.search import SearchOptions
from tile_eg.search.compiler import Lowered, Planned

COLUMNS = ("kernel", "shape", "dtype", "chip", "metric", "value", "unit", "schedule", "source")
_DTYPES = {"f16": "fp16", "f32": "fp32", "i8": "int8", "i32": "int32"}


@record
class Row:
    """One kernel at some sizes. `microseconds` are measured, and None where they are only predicted."""

    planned: Planned
    sizes: Mapping[str, int | str]
    command: str
    predicted: float
    interval: tuple[float, float] | None = None
    microseconds: float | None = None
    least: float | None = None
    kept: str = ""

    def csv(self) -> tuple[str, ...]:
        """The row of a CSV; `source` begins with the command that gives it again."""
        from tile_eg.version import __version__

        p, chip, measured = self.planned.program, self.planned.chip, self.microseconds is not None
        value = self.microseconds if self.microseconds is not None else self.predicted
        said = f"{self.kept} launches" if measured else "predicted by the timeline, not measured"
        where = f"{chip.name} {chip.cube_cores} AIC {chip.clock_mhz / 1000:g}GHz"
        metric = "task_time" if measured else "predicted_time"
        source = f"{self.command}; tile_eg {__version__}, {said}"
        return p.name, self.shape, _dtypes(p.tensors), where, metric, f"{value:.6g}", "us", _schedule(self.planned), source

    @property
    def shape(self) -> str:
        if self.sizes:
            return " ".join(f"{n}{v}" for n, v in self.sizes.items())
        return " ".join(f"{t.name}[{'x'.join(map(str, t.shape))}]" for t in self.planned.program.tensors)

    def shown(self) -> tuple[str, ...]:
        """The row of the table."""
        own = (self.planned.program.name, self.shape, between(self.predicted, self.interval))
        if self.microseconds is None or self.least is None:
            return own
        error = self.predicted / self.microseconds - 1
        return (*own, duration(self.microseconds * 1e-6), duration(self.least * 1e-6), f"{error:+.1%}", self.kept)


def bench(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A kernel, as `tile-eg run` takes it.")],
    device: Annotated[
        str | None, typer.Option(metavar="npu|simulator", help="Measure on an NPU, or predict (default: an NPU where CANN is).")
    ] = None,
    shapes: Annotated[
        list[str] | None, typer.Option(metavar="NAME=NUMBER,...", help="The sizes of a row. Repeatable: a row for each.")
    ] = None,
    given: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=NUMBER", help="A size or a number of every row. Repeatable.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--csv", metavar="OUT", callback=options.to_write, help="Write the rows there, too.")
    ] = None,
    chip: options.OnChip = None,
    launches: Annotated[int, typer.Option(min=3, metavar="NUMBER", help="Launches that are timed.")] = 100,
    warmup: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Launches before them.")] = 10,
    check: Annotated[bool, typer.Option("--check", help="Compare the outputs of the NPU with the kernel's meaning.")] = False,
    *,
    search: SearchOptions,
) -> int:
    """Says how long a kernel takes.

    On an NPU each launch is timed by events of the device, after a write that fills all of L2. Outliers are left out; median and
    minimum are shown beside the prediction. In the simulator there is only the prediction.
    """
    where = _where(device)
    if check and where == "simulator":
        raise TileError("--check compares what an NPU computed: --device npu", help="`tile-eg run` compares in the simulator")
    rows, good = [], True
    for text in shapes or [""]:
        sizes = options.sizes(given or []) | (options.sizes(text.split(","), "--shapes") if text else {})
        held = sources.read(file, sizes)
        planned = sources.compile_held(held, chip, search)
        row = Row(planned, sizes, _command(context, file, text), planned.cost.microseconds, planned.cost.interval)
        if where == "npu":
            row, fine = _measured(row, held, launches, warmup, check)
            good = good and fine
        rows.append(row)
    measured = where == "npu"
    header = ("kernel", "shape", "predicted", *(("median", "least", "predicted by", "kept") if measured else ()))
    show(table([r.shown() for r in rows], header, right=range(2, len(header))))
    if not measured:
        complain("note: predicted by the timeline, not measured: there is no NPU in this run")
    if out:
        write_csv(out, rows)
    return 0 if good else 2


def _where(device: str | None) -> str:
    if device is None:
        from tile_eg.npu.cann import installed

        return "npu" if installed() else "simulator"
    if device not in ("npu", "simulator"):
        raise TileError(f"--device {device}: it is npu or simulator")
    return device


NOT_OF_A_ROW = {"file", "shapes", "out", "check"}
"""Parameters of `bench` that other rows have too, or that change no time."""


def _command(context: typer.Context, file: Path, shapes: str) -> str:
    """The command that gives one row again, with every option that was given for it."""
    given = [*(["--shapes", shapes] if shapes else [])]
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name not in NOT_OF_A_ROW and source is not None and source.name == "COMMANDLINE":
            given += _as_given(parameter.opts[0], context.params[name])
    return join(["tile-eg", "bench", str(file), *given])


def _as_given(option: str, value: Any) -> list[str]:
    """An option as it stood on the command line, each time with one of its values; a flag has none."""
    values = value if isinstance(value, list | tuple) else [value]
    return [word for v in values for word in ([option] if v is True else [option, str(v)])]


def _measured(row: Row, held: Any, launches: int, warmup: int, check: bool) -> tuple[Row, bool]:
    """The row with its times; and whether the numbers are those of the kernel's meaning, where that is asked."""
    from tile_eg.npu.bench import OnNpu

    program = row.planned.program
    drawn = runs.drawn(held, "uniform", 0, [])[0] if check else None
    arrays = {t.name: begun(t, drawn.arrays if drawn else _drawn(held)) for t in program.tensors}
    on_npu = OnNpu(row.planned, arrays)
    good = True
    if drawn and drawn.meant is None:
        complain(f"note: --check has nothing to compare with: no meaning is known of {program.name} beside its own order")
    if drawn and drawn.meant is not None:
        from tile_eg.report.compare import compare

        on_npu.launch()
        compared = compare(on_npu.outputs(), drawn.meant)
        good = all(c.good for c in compared)
        for c in compared:
            show(f"{program.name} {row.shape} on the NPU: {c.name} {'good' if c.good else 'BAD'}, {c.words}")
    times = on_npu.measure(launches, warmup)
    kept = f"{len(times.times)} of {launches}"
    return replace(row, microseconds=times.median, least=times.least, kept=kept), good


def _drawn(held: Any) -> dict[str, Any]:
    from tile_eg.inputs import draw

    return draw([t for t in held.tensors if not t.output], "uniform", 0)


def write_csv(out: Path, rows: Sequence[Row]) -> None:
    """Writes the rows with the columns of published measurements."""
    with options.writing(out), out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *(r.csv() for r in rows)])
    show(f"wrote {out} ({len(rows)} row{'s' * (len(rows) != 1)})")


def _dtypes(tensors: Sequence[Tensor]) -> str:
    """What goes in, and what comes out: "fp16->fp32"."""
    own = [list(dict.fromkeys(_DTYPES.get(str(t.dtype), str(t.dtype)) for t in tensors if t.output is o)) for o in (False, True)]
    return "->".join("/".join(names) for names in own if names)


def _schedule(planned: Planned) -> str:
    from tile_eg.report.decisions import summary

    if isinstance(planned, Lowered) and isinstance(planned.kernel, Kernel):
        return f"tile_eg: {summary(planned.candidates[0].schedule)}"
    return f"as it is written, {planned.program.blocks} blocks"
