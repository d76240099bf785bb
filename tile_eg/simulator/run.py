"""Runs the Ascend C text of a kernel on NumPy arrays, in a process of its own, and reports what is wrong with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO

import numpy as np

from tile_eg.errors import TileError
from tile_eg.simulator.build import build, find_compiler, parameters_of
from tile_eg.simulator.findings import Counts, Delays, Finding, Simulation, SimulatorError, TraceRow
from tile_eg.simulator.image import Image

__all__ = ["Counts", "Delays", "Finding", "Limits", "Simulation", "SimulatorError", "TraceRow", "find_compiler", "simulate"]

KERNEL_TYPES = ("AIC_ONLY", "AIV_ONLY", "MIX_AIC_1_1", "MIX_AIC_1_2", "MIX_AIC_1_0", "MIX_AIV_1_0")
MOST_PRINTED = 1 << 20
OUT_OF_MEMORY = 4
"""The exit code of a run that needs more memory than it may use (include/runtime/shadow.cpp)."""
NO_OUTPUTS: Mapping[int, np.ndarray] = MappingProxyType({})
CAPACITIES = MappingProxyType({"L1": 524288, "UB": 196608, "L0A": 65536, "L0B": 65536, "L0C": 131072})


@dataclass(frozen=True)
class Limits:
    """What a run may use: wall seconds, and bytes of memory.

    Of tensors and workspace counts what is touched, in pieces of 8 KiB, with the simulator's notes on it: 9.5 bytes for each,
    11.5 where the order of instructions is varied. What a file's own main allocates may take as much again.
    """

    seconds: float = 60
    bytes: int = 8 << 30


def simulate(
    source: str,
    kernel: str,
    arguments: Sequence[np.ndarray],
    *,
    kernel_type: str,
    launch: int,
    workspace: int = 0,
    outputs: Sequence[int] = (),
    inout: Sequence[int] = (),
    limits: Limits = Limits(),  # noqa: B008
    capacities: Mapping[str, int] = CAPACITIES,
    trace: bool = False,
    order: int | None = None,
    mutations: Sequence[str] = (),
    architecture: int = 2201,
    cores: int = 24,
    blocks: Sequence[int] = (),
) -> Simulation:
    """Run `kernel` of the Ascend C text `source`, unchanged, as `launch` blocks of `kernel_type`.

    `arguments` are the GM tensors in the kernel's order. Those listed in `outputs` come back in that order; they start unwritten,
    and their arrays give shape and dtype only, unless `inout` lists them too: then they start with what the arrays hold. The last
    parameter of the kernel is a workspace of `workspace` bytes for each block. `launch` counts blocks as the host does: AIV_ONLY
    counts vector cores. `capacities` are bytes for each on-chip memory. `architecture` is 2201 or 3510, `cores` the
    chip's cube cores: so many blocks run at a time. `blocks` are those that run, where not all shall.

    Tensors may be far larger than the memory of this machine, as long as the kernel touches little of them and they are zero
    elsewhere (`numpy.zeros` takes no memory for it either): inputs, and outputs in `inout`.

    Data moves in program order, unless `order` is a seed: then instructions take effect in an order that flags and barriers
    allow, chosen by the seed to be unfavourable (-n: the nth instruction waits as long as it may, everything else runs at once).
    `mutations` are changes of the kernel while it runs (include/runtime/mutation.h).

    Raises TileError for a wrong call, without a C++ compiler, and where the run needs more memory than it may use;
    SimulatorError when the text does not compile, or when the run crashes or exceeds its time. What is wrong with the kernel
    itself comes back as findings; which elements of outputs it left unwritten as `unwritten`, where all blocks ran: whether it
    should have written them is the caller's to say (`unwritten.py`).
    """
    names = parameters_of(source, kernel)
    _check_call(kernel, names, arguments, kernel_type, launch, (*outputs, *inout))
    if not all(0 <= n < launch for n in blocks):
        raise TileError(f"the launch has the blocks 0 to {launch - 1}, and {', '.join(map(str, blocks))} were to run")
    arrays = [np.ascontiguousarray(a) for a in arguments]
    roles = ["inout" if i in inout else "out" if i in outputs else "in" for i in range(len(arrays))]
    sizes = [*(a.nbytes for a in arrays), workspace * launch]
    command = [*map(str, build(source, kernel, architecture)), kernel_type, str(launch), str(int(trace)), str(limits.bytes)]
    command += [*(f"{level}={size}" for level, size in {**CAPACITIES, **capacities}.items())]
    command += [f"cores={cores}"] + ([] if architecture == 2201 else [f"arch={architecture}"])
    command += [*([] if order is None else [f"order={order}"]), *(f"mutate={m}" for m in mutations)]
    command += [f"only={','.join(map(str, blocks))}"] if blocks else []
    with Image(sizes) as image:
        for i, (array, role) in enumerate(zip(arrays, roles, strict=True)):
            if role != "out":
                image.put(i, array)
        tensors = (":".join(map(str, t)) for t in zip(names, image.begins, sizes, (*roles, "scratch"), strict=True))
        output, printed, _ = execute([*command, f"image={image.fd}", "--", *tensors], limits, image)
        return parse(output, printed, {i: image.get(i, arrays[i]) for i in outputs})


def _check_call(
    kernel: str, names: Sequence[str], arguments: Sequence[np.ndarray], kernel_type: str, launch: int, outputs: Sequence[int]
) -> None:
    if kernel_type not in KERNEL_TYPES:
        raise TileError(f"unknown kernel type {kernel_type!r}", help=f"one of {', '.join(KERNEL_TYPES)}")
    if len(arguments) + 1 != len(names):
        raise TileError(f"{kernel!r} takes {len(names) - 1} tensors and a workspace, and {len(arguments)} arrays were given")
    if launch < 1:
        raise TileError(f"a launch has at least one block, and {launch} were asked for")
    for index in outputs:
        if not 0 <= index < len(arguments):
            raise TileError(f"output {index} is none of the {len(arguments)} arguments")


def execute(command: Sequence[str], limits: Limits, image: Image | None = None) -> tuple[bytes, str, int]:
    """Runs the simulator's executable: its report, what was printed (the first MiB), and the exit code of a main."""
    with tempfile.TemporaryFile() as said, subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, pass_fds=[image.fd] if image else []
    ) as process:  # fmt: skip
        try:
            output, _ = process.communicate(timeout=limits.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise SimulatorError(f"the kernel did not end within {limits.seconds:g} seconds") from None
        except BaseException:
            process.kill()
            raise
        printed = _beginning(said)
    if process.returncode == OUT_OF_MEMORY and not output:
        raise TileError(
            f"the run touches more memory than the {limits.bytes} bytes ({limits.bytes / 2**30:.3g} GiB) that it may use",
            help="smaller sizes, or more memory: --memory GIB, or run(..., memory=BYTES)",
        )
    if process.returncode < 0 or (process.returncode and not output):
        raise SimulatorError(_failure(process.returncode, printed))
    return output, printed, process.returncode


def _beginning(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    more = f"\n.. and {size - MOST_PRINTED} bytes more\n" if size > MOST_PRINTED else ""
    return file.read(MOST_PRINTED).decode(errors="replace") + more


def _failure(code: int, errors: str) -> str:
    if code == -signal.SIGXFSZ:
        return "the kernel prints, or its main writes, more than 1 GiB"
    if code < 0:
        return f"the kernel crashed ({signal.Signals(-code).name}) {errors.strip()}".rstrip()
    if "is used and not defined" in errors:
        return errors.strip()
    return f"the simulator failed (exit code {code}) {errors.strip()}".rstrip()


def parse(output: bytes, printed: str, outputs: Mapping[int, np.ndarray] = NO_OUTPUTS) -> Simulation:
    """The results in the report that the executable wrote; `outputs` are those asked for, by their places among the tensors."""
    length = int.from_bytes(output[:8], "little")
    report = json.loads(output[8 : 8 + length])
    left = {int(number): stretches for number, stretches in report["unwritten"].items()}
    return Simulation(
        outputs=tuple(outputs.values()),
        findings=tuple(Finding(**f) for f in report["findings"]),
        counts=Counts(report["instructions"], report["bytes"]),
        trace=tuple(TraceRow(*row) for row in report["trace"]),
        delays=Delays(*report["schedule"]),
        printed=printed,
        returned=report["returned"],
        unwritten=tuple(unwritten_mask(left[i], like) if i in left else None for i, like in outputs.items()),
    )


def unwritten_mask(stretches: Sequence[tuple[int, int]], like: np.ndarray) -> np.ndarray:
    """A mask of an array's shape from stretches of its bytes: an element is meant where any of its bytes is."""
    mask = np.zeros(like.size, bool)
    for begin, end in stretches:
        mask[begin // like.itemsize : -(-end // like.itemsize)] = True
    return mask.reshape(like.shape)
