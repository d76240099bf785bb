"""`tile-eg simulate`: runs any Ascend C file in the simulator, ours or hand-written, and says what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tile_eg.chips.loader import load_chip
from tile_eg.cli import options, sources
from tile_eg.cli.console import complain, show
from tile_eg.cli.spec_runs import simulated, spec_runs
from tile_eg.cli.waiting import shown_progress
from tile_eg.errors import TileError

if TYPE_CHECKING:
    from tile_eg.chips import Chip
    from tile_eg.simulator.asc_file import AscFile
    from tile_eg.simulator.findings import Simulation
    from tile_eg.simulator.program import Options
    from tile_eg.simulator.spec import Spec
    from tile_eg.timeline.replay.launches import RanLaunch

ASCEND_C = (".asc", ".cpp", ".cce", ".h")
FOLDER: dict[str, Any] = {"exists": True, "file_okay": False, "metavar": "DIR"}
Reads = Annotated[list[Path] | None, typer.Option(**FOLDER, help="A folder that it may read. Repeatable.")]
Writes = Annotated[list[Path] | None, typer.Option(**FOLDER, help="A folder that it may write in. Repeatable.")]
Include = Annotated[
    list[Path] | None, typer.Option("-I", "--include", **FOLDER, help="A folder of headers that it includes. Repeatable.")
]
Define = Annotated[list[str] | None, typer.Option("-D", "--define", metavar="NAME=VALUE", help="A macro. Repeatable.")]


def simulate_file(
    file: Annotated[
        Path, typer.Argument(metavar="KERNEL.asc", help="Ascend C: a kernel, or a file with a main that launches some.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENT]...", help="Arguments of the file's main, after --.")
    ] = None,
    args: Annotated[
        Path | None, typer.Option(metavar="SPEC", help="The arguments (TOML); a file with a main needs none.")
    ] = None,
    chip: options.OnChip = None,
    inputs: Annotated[str | None, typer.Option(metavar="SET,...", help="Random inputs, instead of those of the spec.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="NUMBER", help="The seed of random inputs.")] = None,
    define: Define = None,
    include: Include = None,
    devkit: Annotated[
        Path | None, typer.Option(**FOLDER, help="A checkout of asc-devkit: its high-level API is what the file calls.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="OUT", callback=options.to_write, help="Write the timeline as a Chrome trace.")
    ] = None,
    time: Annotated[bool, typer.Option(help="Say how long it would take (needs memory for every instruction).")] = True,
    seconds: options.Seconds = options.SECONDS,
    memory: options.Memory = options.MEMORY,
    reads: Reads = None,
    writes: Writes = None,
    unconfined: options.Unconfined = False,
    auto_sync: Annotated[
        bool, typer.Option(help="Take V and S of vector cores as ordered by the compiler (--cce-auto-sync).")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Runs any Ascend C file, and says what is wrong with it.

    Races, deadlocks, misused flags and queues, memory outside of tensors: each with the line of the file. And how long each
    launch would take on the chip.

    The file is native code, and runs confined where the machine's kernel can (Linux: Landlock and seccomp): no network, no new
    programs, no reads but of the current folder and its own, no writes but in `./output`.
    """
    from tile_eg.npu.directory import SIMULATED
    from tile_eg.report.simulated import SimulatedReport
    from tile_eg.simulator.asc_file import AscFile
    from tile_eg.simulator.confinement import Confinement
    from tile_eg.simulator.devkit import Devkit
    from tile_eg.simulator.spec import read_spec

    if (file / SIMULATED).is_file():
        help = f"cd {file}; tile-eg simulate {SIMULATED} --no-auto-sync"
        raise TileError(f"'{file}' is a folder that `tile-eg build` wrote: what is simulated is its {SIMULATED}", help=help)
    text = AscFile(file, sources.read_text(file, ASCEND_C), tuple(include or ()), Devkit(devkit) if devkit else None)
    confinement = Confinement(not unconfined, reads or (), writes or ())
    how = replace(_options(chip, seconds, memory, time or trace is not None), defines=_defines(define or []), auto_sync=auto_sync)
    how = replace(how, confinement=confinement)
    spec = read_spec(args) if args else None
    if spec is None and not text.has_main:
        help = f"`tile-eg run {file}` runs a kernel" if file.suffix in sources.KINDS else "docs/simulator.md shows a spec"
        raise TileError(f"'{file}' has no main: --args says what to launch it with", help=help)
    if spec and arguments:
        raise TileError("a kernel's arguments are in its spec (--args); those on the command line are a main's")
    how = replace(how, arguments=tuple(arguments or ()))
    if spec and args:
        runs = spec_runs(spec, args, inputs, seed)
        done, compared = simulated(runs, lambda spec, first: _run(text, spec, how if first else replace(how, trace=False)))
    elif inputs is not None or seed is not None:
        raise TileError("--inputs and --seed draw for a spec (--args); a file with a main makes its own inputs")
    else:
        done, compared = _run(text, None, how), {}
    launches, untimed = _timed(text, spec, how, done, chip)
    report = SimulatedReport(str(file), text.source, done, _names(spec), compared, launches, untimed)
    if spec:
        _save(spec, done.outputs)
    if trace:
        with options.writing(trace):
            trace.write_text(json.dumps(report.trace()), encoding="utf-8")
    show(json.dumps(report.data(), indent=2) if as_json else str(report))
    return 0 if report.good else 1


def _run(text: AscFile, spec: Spec | None, how: Options) -> Simulation:
    """The run; a file that crashes, loops for ever, eats memory or is refused something is the user's error."""
    from tile_eg.simulator.build import runtime
    from tile_eg.simulator.confinement import cannot_confine
    from tile_eg.simulator.findings import SimulatorError
    from tile_eg.simulator.kernel_run import run_kernel
    from tile_eg.simulator.program import run_program

    if how.confinement.confined and (reason := cannot_confine(runtime())):
        complain(f"note: the run is not confined: {reason}")
    try:
        with shown_progress():
            return run_kernel(text, spec, how) if spec else run_program(text, how)
    except SimulatorError as error:
        raise TileError(str(error), help=getattr(error, "help", "")) from None


def _timed(text: AscFile, spec: Spec | None, how: Options, done: Simulation, chip: str | None) -> tuple[list[RanLaunch], str]:
    """When everything happened; or why that is not known."""
    from tile_eg.simulator.findings import MOST_ROWS
    from tile_eg.simulator.kernel_run import chosen
    from tile_eg.timeline.cores import StreamError
    from tile_eg.timeline.replay.launches import timed_launches

    if not how.trace:
        return [], ""
    if len(done.trace) >= MOST_ROWS:
        return [], f"more than {MOST_ROWS} instructions ran; smaller sizes would do"
    kernel = chosen(text.with_macros({**spec.defines, **how.macros}), spec) if spec else None
    names = {"kernel": kernel.name, "kernel_type": spec.type or kernel.type} if spec and kernel else {}
    try:
        return timed_launches(done.trace, _chip(chip), auto_sync=how.auto_sync and (not spec or spec.auto_sync), **names), ""
    except StreamError as error:
        return [], str(error)


def _chip(name: str | None) -> Chip:
    return load_chip(name) if name else load_chip()


def _options(chip: str | None, seconds: float, memory: float, trace: bool) -> Options:
    from tile_eg.ops.types import Level
    from tile_eg.simulator.program import Options
    from tile_eg.simulator.run import CAPACITIES, Limits

    tables = _chip(chip)
    sizes = {name: tables.memories[Level(name)].bytes for name in CAPACITIES}
    limits = Limits(seconds, options.memory_bytes(memory))
    return Options(cores=tables.cube_cores, capacities=sizes, limits=limits, trace=trace, architecture=tables.npu_arch)


def _defines(given: Sequence[str]) -> dict[str, str]:
    parts = (text.partition("=") for text in given)
    return {name: value if sign else "1" for name, sign, value in parts}


def _names(spec: Spec | None) -> list[str]:
    return [a.name for a in spec.arguments if a.output] if spec else []


def _save(spec: Spec, outputs: Sequence[Any]) -> None:
    import numpy as np

    for argument, array in zip([a for a in spec.arguments if a.output], outputs, strict=True):
        if argument.save:
            with options.writing(argument.save):
                np.save(argument.save, array)
