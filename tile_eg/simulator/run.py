"""Runs the Ascend C text of a kernel on NumPy arrays, in a process of its own, and reports what is wrong with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import IO, Any

import numpy as np

from tile_eg.errors import TileError
from tile_eg.simulator.build import build, find_compiler, parameters_of
from tile_eg.simulator.confinement import Confinement, refused
from tile_eg.simulator.findings import Counts, Delays, Finding, LimitError, Simulation, SimulatorError, TraceRow
from tile_eg.simulator.image import Image
from tile_eg.simulator.limits import Limits
from tile_eg.simulator.progress import EVERY, Meter
from tile_eg.simulator.watch import Watch

__all__ = ["Counts", "Delays", "Finding", "Limits", "Simulation", "SimulatorError", "TraceRow", "find_compiler", "simulate"]

KERNEL_TYPES = ("AIC_ONLY", "AIV_ONLY", "MIX_AIC_1_1", "MIX_AIC_1_2", "MIX_AIC_1_0", "MIX_AIV_1_0")
MOST_PRINTED = 1 << 20
OUT_OF_MEMORY, TOO_MANY_INSTRUCTIONS = 4, 6
"""The exit codes of a run that needs more memory than it may use (include/runtime/shadow.cpp): what its tensors or, in main.cpp,
what is known of its instructions."""
NO_OUTPUTS: Mapping[int, np.ndarray] = MappingProxyType({})
CAPACITIES = MappingProxyType({"L1": 524288, "UB": 196608, "L0A": 65536, "L0B": 65536, "L0C": 131072})


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
    alike: Sequence[int] = (),
    limits: Limits = Limits(),  # noqa: B008
    confinement: Confinement = Confinement(),  # noqa: B008
    capacities: Mapping[str, int] = CAPACITIES,
    trace: bool = False,
    order: int | None = None,
    mutations: Sequence[str] = (),
    architecture: int = 2201,
    cores: int = 24,
    blocks: Sequence[int] = (),
    numbers: Sequence[int | float] = (),
    lenient: bool = False,
    watch: Watch | None = None,
) -> Simulation:
    """Run `kernel` of the Ascend C text `source`, unchanged, as `launch` blocks of `kernel_type`.

    `arguments` are the GM tensors in the kernel's order. Those listed in `outputs` come back in that order; they start unwritten,
    and their arrays give shape and dtype only, unless `inout` lists them too: then they start with what the arrays hold. In
    those of `alike` blocks may store where others do, as long as the bytes stay the same. Behind the tensors the kernel takes a
    workspace of `workspace` bytes for each block, and then the `numbers`: int32_t, or float. `launch` counts
    blocks as the host does: AIV_ONLY counts vector cores. `capacities` are bytes for each on-chip memory. `architecture` is 2201
    or 3510, `cores` the chip's cube cores: so many blocks run at a time. `blocks` are those that run, where not all shall.
    `lenient` is for kernels that others wrote: a set that may come before the wait of the one before has run is no finding then
    (docs/machine.md, clause 8), nor is a load of what the same load has brought there already. `watch` gets what a watched text
    tells.

    Tensors may be far larger than the memory of this machine, as long as the kernel touches little of them and they are zero
    elsewhere (`numpy.zeros` takes no memory for it either): inputs, and outputs in `inout`.

    Data moves in program order, unless `order` is a seed: then instructions take effect in an order that flags and barriers
    allow, chosen by the seed to be unfavourable (-n: the nth instruction waits as long as it may, everything else runs at once).
    `mutations` are changes of the kernel while it runs (include/runtime/mutation.h).

    Raises TileError for a wrong call, without a C++ compiler, and where the run needs more memory than it may use;
    SimulatorError when the text does not compile or the run crashes: LimitError where it exceeds its time, Refused where it
    tries what it may not do. What is wrong with the kernel itself comes back as findings; which elements of outputs it left
    unwritten as `unwritten`: whether it should have written them is the caller's to say (`unwritten.py`).
    """
    names = parameters_of(source, kernel)
    _check_call(kernel, names[: len(names) - len(numbers)], arguments, kernel_type, launch, (*outputs, *inout))
    if not all(0 <= n < launch for n in blocks):
        raise TileError(f"the launch has the blocks 0 to {launch - 1}, and {', '.join(map(str, blocks))} were to run")
    arrays = [np.ascontiguousarray(a) for a in arguments]
    passed = [np.array([n], np.int32 if isinstance(n, int) else np.float32) for n in numbers]
    roles = [*_roles(len(arrays), outputs, inout, alike), "scratch", *("in" for _ in passed)]
    sizes = [*(a.nbytes for a in arrays), workspace * launch, *(n.nbytes for n in passed)]
    command = [*map(str, build(source, kernel, architecture)), kernel_type, str(launch), str(int(trace)), str(limits.bytes)]
    command += _machine(capacities, cores, architecture) + _manner(order, mutations, lenient, blocks)
    command += permissions(limits, confinement) + (watch.options() if watch else [])
    with Image(sizes) as image:
        for i, (array, role) in enumerate(zip(arrays, roles, strict=False)):
            if not role.startswith("out"):
                image.put(i, array)
        for i, number in enumerate(passed, len(arrays) + 1):
            image.put(i, number)
        tensors = (":".join(map(str, t)) for t in zip(names, image.begins, sizes, roles, strict=True))
        output, printed, _ = execute([*command, f"image={image.fd}", "--", *tensors], limits, image, watch)
        return parse(output, printed, {i: image.get(i, arrays[i]) for i in outputs})


def _roles(count: int, outputs: Sequence[int], inout: Sequence[int], alike: Sequence[int]) -> list[str]:
    """What each tensor is to the kernel, as the runtime is told."""
    roles = ["inout" if i in inout else "out" if i in outputs else "in" for i in range(count)]
    return [f"{role}+alike" if i in alike else role for i, role in enumerate(roles)]


def _machine(capacities: Mapping[str, int], cores: int, architecture: int) -> list[str]:
    """The runtime's words for the chip."""
    sizes = [f"{level}={size}" for level, size in {**CAPACITIES, **capacities}.items()]
    return [*sizes, f"cores={cores}", *([] if architecture == 2201 else [f"arch={architecture}"])]


def _manner(order: int | None, mutations: Sequence[str], lenient: bool, blocks: Sequence[int]) -> list[str]:
    """The runtime's words for how it runs: in which order, with which changes, how strict, and which blocks."""
    seed = [] if order is None else [f"order={order}"]
    only = [f"only={','.join(map(str, blocks))}"] if blocks else []
    return [*seed, *(f"mutate={m}" for m in mutations), *(["lenient"] if lenient else []), *only]


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


def permissions(limits: Limits, confinement: Confinement) -> list[str]:
    """What the simulator's executable is told of processor time and of confinement."""
    return [f"seconds={limits.seconds!r}", *confinement.options()]


def execute(
    command: Sequence[str], limits: Limits, image: Image | None = None, watch: Watch | None = None
) -> tuple[bytes, str, int]:
    """Runs the simulator's executable: its report, what was printed (the first MiB), and the exit code of a main."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as told:
        at = command.index("--")
        command = [*command[:at], f"parent={os.getpid()}", f"progress={told.fileno()}", *command[at:]]
        files = [told.fileno(), *([image.fd] if image else []), *([watch.fd] if watch else [])]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, process_group=0, pass_fds=files
        ) as process:
            try:
                output = _communicate(process, limits, Meter(told))
            except BaseException:
                _end(process)
                raise
        printed = _beginning(said)
    _check_end(process.returncode, output, printed, limits)
    return output, printed, process.returncode


def _check_end(code: int, output: bytes, printed: str, limits: Limits) -> None:
    """Raises what a run that ended without a report ended for."""
    if code == OUT_OF_MEMORY and not output:
        raise TileError(
            f"the run touches more memory than the {limits.bytes:,} bytes ({limits.bytes / 2**30:.3g} GiB) that it may use",
            help="smaller sizes, or more memory: --memory GIB on the command line, `memory=` in bytes in Python",
        )
    if code == TOO_MANY_INSTRUCTIONS and not output:
        raise TileError(
            f"the kernel did not end with as many instructions as a run may look at in {limits.bytes / 2**30:.3g} GiB",
            help="a `while` ends where a trip changes what its condition reads; for a long run more memory: --memory GIB on the "
            "command line, `memory=` in bytes in Python",
        )
    if code == -signal.SIGSYS:
        raise refused(printed)
    if code in (-signal.SIGPROF, -signal.SIGXCPU):
        raise LimitError(f"the kernel did not end within {limits.seconds:g} seconds of processor time")
    if code < 0 or not output:
        raise SimulatorError(_failure(code, printed))


def _communicate(process: subprocess.Popen[bytes], limits: Limits, meter: Meter) -> bytes:
    """What the process writes; those who watch are told how far it is. LimitError where it waits for too long."""
    end = time.monotonic() + limits.patience
    while time.monotonic() < end:
        try:
            return process.communicate(timeout=min(EVERY, max(0.0, end - time.monotonic())))[0]
        except subprocess.TimeoutExpired:
            meter.tell()
    raise LimitError(_waited(limits))


def _waited(limits: Limits) -> str:
    return (
        f"the kernel did not end within {limits.patience:g} seconds, in which it used less than {limits.seconds:g} of "
        "processor time: it waits for something, or the machine is too busy"
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and those that it has started, workers for its blocks among them."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


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
    if not code:
        return "the kernel ended the process (_exit?), and nothing is known of the run"
    return f"the simulator failed (exit code {code}) {errors.strip()}".rstrip()


def _row(*fields: Any) -> TraceRow:
    """A row of the report's trace, in which what is seldom so is a number at the end, or left out."""
    row, (past_l2, unit_flag, makes_nz) = TraceRow(*fields[:11]), fields[11:] or (0, 0, 0)
    return replace(row, past_l2=bool(past_l2), unit_flag=unit_flag, makes_nz=bool(makes_nz)) if fields[11:] else row


def parse(output: bytes, printed: str, outputs: Mapping[int, np.ndarray] = NO_OUTPUTS) -> Simulation:
    """The results in the report that the executable wrote; `outputs` are those asked for, by their places among the tensors."""
    length = int.from_bytes(output[:8], "little")
    try:
        report = json.loads(output[8 : 8 + length])
    except ValueError:
        raise SimulatorError("what the run reports cannot be read: the kernel wrote over it, or it ended too early") from None
    left = {int(number): stretches for number, stretches in report["unwritten"].items()}
    return Simulation(
        outputs=tuple(outputs.values()),
        findings=tuple(_finding(f) for f in report["findings"]),
        counts=Counts(report["instructions"], report["bytes"]),
        trace=tuple(_row(*row) for row in report["trace"]),
        delays=Delays(*report["schedule"]),
        printed=printed,
        returned=report["returned"],
        unwritten=tuple(unwritten_mask(left[i], like) if i in left else None for i, like in outputs.items()),
        unconfined=report["unconfined"],
    )


def unwritten_mask(stretches: Sequence[tuple[int, int]], like: np.ndarray) -> np.ndarray:
    """A mask of an array's shape from stretches of its bytes: an element is meant where any of its bytes is."""
    mask = np.zeros(like.size, bool)
    for begin, end in stretches:
        mask[begin // like.itemsize : -(-end // like.itemsize)] = True
    return mask.reshape(like.shape)


def _finding(told: Mapping[str, Any]) -> Finding:
    """A finding as the run reports it; a file that was found in the compiler's folder is named as its text includes it."""
    names = {field: told[field].removeprefix("./") for field in ("file", "other_file") if field in told}
    return Finding(**{**told, **names})
