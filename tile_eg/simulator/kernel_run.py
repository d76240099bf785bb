"""Runs one kernel of an Ascend C file on the arguments of a spec."""

from __future__ import annotations

import re
from dataclasses import asdict
from math import isfinite
from typing import Any

import numpy as np

from tile_eg.errors import Span, TileError, did_you_mean
from tile_eg.ops.records import record
from tile_eg.simulator.asc_file import AscFile
from tile_eg.simulator.findings import Simulation
from tile_eg.simulator.image import Image
from tile_eg.simulator.launches import KernelText
from tile_eg.simulator.program import Options
from tile_eg.simulator.run import execute, parse, permissions
from tile_eg.simulator.spec import Argument, Spec
from tile_eg.simulator.unwritten import blamed

LAUNCHER = """
namespace {{
struct Given {{ uint8_t* pointer; template <class T> operator T*() const {{ return reinterpret_cast<T*>(pointer); }} }};
}}
extern "C" void tile_sim_launch(uint8_t** a) {{ {call}({passed}); }}
"""


@record
class Comparison:
    """An output against what the spec expects: the largest |a - b| / (1 + |b|), and whether it is within the tolerance."""

    name: str
    error: float
    tolerance: float

    @property
    def good(self) -> bool:
        return self.error <= self.tolerance

    @property
    def words(self) -> str:
        """The comparison in a line."""
        return f"largest error {self.error:.3g} of 1 + |expected|, tolerance {self.tolerance:.3g}"

    def data(self) -> dict[str, Any]:
        """Plain values for JSON, which has no infinity: null."""
        return {**asdict(self), "error": self.error if isfinite(self.error) else None, "good": self.good}


def run_kernel(file: AscFile, spec: Spec, options: Options) -> Simulation:
    """Compiles the file and launches the kernel that the spec names; the outputs come in the order of the arguments.

    Raises TileError for a text that does not compile and for arguments that do not fit the kernel, SimulatorError where the run
    crashes, exceeds its limits, or tries what `options.confinement` does not allow.
    """
    file = file.with_macros({**spec.defines, **options.macros})
    kernel = chosen(file, spec)
    check_arguments(file, kernel, spec)
    tensors = [a for a in spec.arguments if not a.text]
    numbers = {id(a): i for i, a in enumerate(tensors)}
    passed = ", ".join(a.text or f"Given{{a[{numbers[id(a)]}]}}" for a in spec.arguments)
    library = file.compile(LAUNCHER.format(call=spec.kernel or kernel.name, passed=passed))
    command = [*map(str, library), spec.type or kernel.type, str(spec.blocks), str(int(options.trace)), str(options.limits.bytes)]
    command += [
        *(f"{level}={size}" for level, size in options.capacities.items()),
        f"cores={options.cores}",
        f"arch={options.architecture}",
        "lenient",
    ]
    command += ["auto_sync"] if options.auto_sync and spec.auto_sync else []
    command += permissions(options.limits, options.confinement)
    with Image([_size(a) for a in tensors]) as image:
        for i, argument in enumerate(tensors):
            if argument.given and argument.array is not None:
                image.put(i, np.ascontiguousarray(argument.array))
        regions = (_region(a, begin) for a, begin in zip(tensors, image.begins, strict=True))
        output, printed, _ = execute([*command, f"image={image.fd}", "--", *regions], options.limits, image)
        arrays = {i: image.get(i, a.array) for i, a in enumerate(tensors) if a.output and a.array is not None}
    done = blamed(parse(output, printed, arrays), [tensors[i].name for i in arrays], kernel.line)
    return file.told(done)


def _size(argument: Argument) -> int:
    return argument.bytes if argument.array is None else argument.array.nbytes


def _region(argument: Argument, begin: int) -> str:
    role = "scratch" if argument.array is None else ("inout" if argument.given else "out") if argument.output else "in"
    role += "+alike" if argument.alike else ""
    return f"{argument.name.replace(':', ' ')}:{begin}:{_size(argument)}:{role}"


def chosen(file: AscFile, spec: Spec) -> KernelText:
    """The kernel that the spec names, or the only one of the file."""
    name = re.split(r"[<\s]", spec.kernel)[0]
    names = [k.name for k in file.kernels]
    if not names:
        raise TileError(f"'{file.path}' has no kernel", help="a kernel is a function under __global__")
    if not name and len(names) > 1:
        raise TileError(f"'{file.path}' has several kernels", help=f'the spec says which: kernel = "{names[0]}"')
    if name and name not in names:
        raise TileError(f"'{file.path}' has no kernel called `{name}`", help=did_you_mean(name, names))
    return file.kernels[names.index(name)] if name else file.kernels[0]


def check_arguments(file: AscFile, kernel: KernelText, spec: Spec) -> None:
    """TileError where the arguments are not as many, or not of the kind, that the kernel takes."""
    span = Span(str(file.path), kernel.line, 1, kernel.line, 2)
    takes = f"`{kernel.name}` takes {len(kernel.parameters)}: " + ", ".join(kernel.parameters)
    if len(spec.arguments) != len(kernel.parameters):
        raise _at(file, TileError(f"the spec gives {len(spec.arguments)} arguments, and {takes}", span))
    for argument, parameter in zip(spec.arguments, kernel.parameters, strict=True):
        pointer = "*" in parameter or "GM_ADDR" in parameter
        if pointer == bool(argument.text):
            what = ("a scalar" if argument.text else "a tensor"), ("a tensor" if pointer else "a value")
            raise _at(file, TileError(f"{argument.name} is {what[0]}, and `{parameter}` is {what[1]}", span))


def _at(file: AscFile, error: TileError) -> TileError:
    error.source = file.source
    return error


def compare(spec: Spec, done: Simulation) -> list[Comparison]:
    """Each output that the spec has an expectation for, against it. NaN fits NaN only."""
    wanted = [a for a in spec.arguments if a.output]
    return [
        Comparison(a.name, error_of(got, a.expect), a.tolerance)
        for a, got in zip(wanted, done.outputs, strict=True)
        if a.expect is not None
    ]


def error_of(got: np.ndarray, expected: np.ndarray) -> float:
    a, b = got.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        errors = np.where(same, 0.0, np.abs(a - b) / (1 + np.abs(b)))
    return float(np.nan_to_num(errors, nan=np.inf).max(initial=0.0))
