"""`tile-eg calibrate`: the constants of a chip fitted to measured rows."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from tile_eg.chips import DEFAULT_CHIP, OWN, load_chip
from tile_eg.cli import options, sources
from tile_eg.cli.benched import Benched, benched
from tile_eg.cli.console import ProgressLine, show
from tile_eg.errors import TileError
from tile_eg.ir.program import Program
from tile_eg.search import search_options

UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
"""Microseconds of each unit of time."""
COLUMNS = "file, value, unit, and where they are wanted: shape (M=512,N=512), chip, schedule (a number)"


def calibrate(
    rows: Annotated[
        Path, typer.Argument(metavar="ROWS.csv", help="Measured rows, as of `tile-eg bench --csv`; or a dataset's folder.")
    ],
    chip: Annotated[str, typer.Option("--chip", metavar="NAME", help="The chip to begin with.")] = DEFAULT_CHIP,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="CHIP.toml", callback=options.to_write, help="Write the fitted chip there."),
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="What it is called (default: BASE-fitted).")] = None,
    constants: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Fit these, as path.gm_to_ub.issue (default: what CHIP marks as fitted or assumed)."),
    ] = None,
) -> None:
    """Fits constants of a chip to measured rows.

    Each row is a program and its time. The output says which constants the rows determine. --out writes these, with their
    origin, into a chip file that --chip takes.
    """
    from tile_eg.laboratory import calibrate as fitting
    from tile_eg.laboratory.fit_shown import chip_text, fit_text

    if out is not None and out.suffix != OWN:
        raise TileError(f"-o {out}: a chip file ends in {OWN}")
    own = name or f"{load_chip(chip).name}-fitted"
    names = [c.strip() for c in constants.split(",")] if constants else None
    fitting.values_of(chip, names)  # a name that is none is told before the kernels are compiled
    measured = list(_of_dataset(rows, chip) if rows.is_dir() else _of_csv(rows, chip))
    with ProgressLine() as line:
        start = perf_counter()
        fit = fitting.calibrate(measured, chip, names, lambda text: line.tell(text, perf_counter() - start))
    show(fit_text(fit))
    if out is not None:
        with options.writing(out):
            out.write_text(chip_text(fit, own, _provenance(rows, fit.rows, fit.after)), encoding="utf-8")
        show(f"wrote {out}: --chip {out} takes it")


def _provenance(rows: Path, count: int, left: float) -> str:
    from tile_eg.version import __version__

    files = sorted(f for f in rows.glob("rows.*")) if rows.is_dir() else [rows]
    digest = hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]
    return f"fitted by tile-eg calibrate {__version__} on {count} rows of {rows.name} (sha256 {digest}), to within {left:.2%}"


def _of_dataset(folder: Path, chip: str) -> list[tuple[Program, float]]:
    from tile_eg.laboratory import load_dataset

    data = load_dataset(folder)
    for r in data.rows:
        if r.timed_by == "timeline":
            raise TileError(f"'{folder}' was timed by the timeline: there is nothing measured in it to fit to")
        if load_chip(r.chip) is not load_chip(chip):
            raise TileError(f"'{folder}' has rows of {r.chip}", help=f"--chip {r.chip}")
    return list(zip(data.programs, map(float, data.labels), strict=True))


def _of_csv(file: Path, chip: str) -> Iterator[tuple[Program, float]]:
    """The programs and times of a CSV's rows. TileError names the line of what is wrong."""
    text = sources.read_text(file, (".csv",))
    lines = csv.DictReader(text.splitlines())
    if "value" not in (lines.fieldnames or ()) or not {"file", "source"} & set(lines.fieldnames or ()):
        raise TileError(f"'{file}' has no columns of measured rows", help=f"the columns are {COLUMNS}")
    for n, row in enumerate(lines, 2):
        try:
            if None in row or None in row.values():
                raise TileError(f"it has {'more' if None in row else 'fewer'} values than there are columns")
            yield _program(row, file.parent, chip), _microseconds(row)
        except TileError as error:
            error.message = f"line {n} of '{file}': {error.message}"
            raise


def _microseconds(row: Mapping[str, str]) -> float:
    unit = (row.get("unit") or "").strip()
    if unit not in UNITS:
        told = f"'{unit}' is not a unit of time" if unit else "its time has no unit"
        raise TileError(told, help=f"times are in {', '.join(UNITS)}")
    if (metric := row.get("metric") or "task_time") != "task_time":
        raise TileError(f"'{metric}' is not measured", help="a measured row has the metric task_time")
    try:
        value = float(row["value"])
    except (TypeError, ValueError):
        raise TileError(f"'{row['value']}' is not a number") from None
    if not 0 < value < float("inf"):
        raise TileError(f"a measured time is above 0, not {value:g}")
    return value * UNITS[unit]


def _program(row: Mapping[str, str], folder: Path, chip: str) -> Program:
    """What was measured: a kernel's file at its shape, compiled for the chip, or an instruction stream."""
    named = (row.get("chip") or "").split()
    if named and load_chip(named[0]) is not load_chip(chip):
        raise TileError(f"it was measured on {named[0]}, and {load_chip(chip).name} is to be fitted", help=f"--chip {named[0]}")
    what = _what(row)
    path = next((p for p in (folder / what.file, what.file) if p.exists()), folder / what.file)
    number = options.schedule(row.get("schedule") or None) if "file" in row else None
    return sources.compile_held(sources.read(path, what.sizes), chip, what.search, number).program  # type: ignore[arg-type]


def _what(row: Mapping[str, str]) -> Benched:
    """What a row was measured of: its columns, or the command with which `tile-eg bench` made it."""
    if row.get("file"):
        shape = (row.get("shape") or "").replace(",", " ").split()
        return Benched(Path(row["file"]), options.sizes(shape, "shape"), None, search_options())
    if not (row.get("source") or "").startswith("tile-eg bench "):
        raise TileError("it does not say which kernel was measured", help=f"the columns are {COLUMNS}")
    return benched(row["source"])
