"""Runs an Ascend C file that carries a main of its own: its launches go to the simulated device, all else runs as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from tile_eg.ops.records import record
from tile_eg.simulator.asc_file import AscFile
from tile_eg.simulator.confinement import Confinement
from tile_eg.simulator.findings import Simulation
from tile_eg.simulator.run import CAPACITIES, Limits, execute, parse, permissions


@record
class Options:
    """How a file is compiled and run: macros, whether the compiler orders V and S (`--cce-auto-sync`), cube cores, capacities.

    `architecture` is 2201 or 3510, and what __NPU_ARCH__ is for the file.
    """

    defines: Mapping[str, str] = field(default_factory=dict)
    arguments: Sequence[str] = ()
    auto_sync: bool = True
    cores: int = 24
    capacities: Mapping[str, int] = field(default_factory=lambda: CAPACITIES)
    limits: Limits = Limits()
    confinement: Confinement = Confinement()
    trace: bool = False
    architecture: int = 2201

    @property
    def macros(self) -> dict[str, str]:
        """Every macro that the file is compiled with; one that is given wins."""
        return {"__NPU_ARCH__": str(self.architecture), "__CCE__": "1", **self.defines}


def run_program(file: AscFile, options: Options) -> Simulation:
    """Compiles and runs a file with a main, in the current folder: it reads there, and writes in `./output`.

    `returned` of the result is what main returned.

    Raises TileError for a text that does not compile, SimulatorError when it crashes, exceeds its limits, or tries what
    `options.confinement` does not allow.
    """
    file = file.with_macros(options.macros)
    library = file.compile("")
    command = [*map(str, library), "HOST", "1", str(int(options.trace)), str(options.limits.bytes)]
    command += [
        *(f"{level}={size}" for level, size in options.capacities.items()),
        f"cores={options.cores}",
        f"arch={options.architecture}",
        "lenient",
    ]
    command += permissions(options.limits, options.confinement.of_program(file.path))
    command += [*(["auto_sync"] if options.auto_sync else []), "--", *options.arguments]
    output, printed, code = execute(command, options.limits)
    done = parse(output, printed)
    return file.told(replace(done, returned=done.returned or code))
