"""A compiled kernel on one NPU: built, loaded, and launched on the addresses of a call."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tile_eg.chips import Chip, known_chips, load_chip
from tile_eg.errors import TileError
from tile_eg.npu.build import device_object
from tile_eg.npu.entry import Kernel, kernels_of, passes_sync
from tile_eg.npu.launcher import Launcher, the_launcher
from tile_eg.ops.records import record

if TYPE_CHECKING:
    from tile_eg.ir.program import Program


class Planned(Protocol):
    """What is launched: a program with its text, the chip that it was compiled for, and the numbers that a launch passes."""

    @property
    def program(self) -> Program: ...
    @property
    def source(self) -> str: ...
    @property
    def chip(self) -> Chip: ...
    @property
    def numbers(self) -> Sequence[int]: ...


@record
class Ready:
    """A kernel that is loaded on a device. `workspace` are the bytes that a launch needs beside its tensors."""

    launcher: Launcher
    name: str
    device: int
    function: int
    blocks: int
    workspace: int
    before: tuple[int, ...]
    behind: tuple[int, ...]
    packed: struct.Struct

    def launch(self, addresses: Sequence[int], workspace: int, stream: int, floats: Sequence[float] = ()) -> None:
        """Starts the kernel and returns; `addresses` are those of its tensors in their order, `floats` the numbers that this
        launch passes."""
        args = self.packed.pack(*self.before, *addresses, workspace, *self.behind, *floats)
        code = self.launcher.calls["launch"](self.device, self.function, self.blocks, stream, args, len(args))
        if code:
            raise self.launcher.refused(f"launch {self.name} with {self.blocks} blocks on device {self.device}", code)


def ready(planned: Planned, device: int) -> Ready:
    """The kernel, built and loaded. TileError that names the step that fails: without CANN, on a chip that it was not compiled
    for, and where the build or ACL refuses it."""
    from tile_eg.emit.host import launch_blocks, workspace_bytes
    from tile_eg.emit.names import kernel_symbol

    program, source, launcher = planned.program, str(planned.source), the_launcher()
    name, blocks = kernel_symbol(program), launch_blocks(program)
    own = next(k for k in kernels_of(source) if k.name == name)
    check_chip(planned.chip, launcher.soc(device), own, blocks)
    file = device_object(source, planned.chip.architecture, launcher.cann)
    function = launcher.function(file, name, own.type, device)
    sync = (launcher.sync_address(device),) if passes_sync(own, planned.chip.architecture) else ()
    pointers = len(own.parameters) - own.numbers
    kinds = "".join("f" if p.startswith("float") else "i" for p in own.parameters[pointers:])
    packed = struct.Struct(f"<{len(sync) + pointers}Q{kinds}{4 * (own.numbers % 2)}x")
    numbers = tuple(planned.numbers)
    return Ready(launcher, name, device, function, blocks, workspace_bytes(program), sync, numbers, packed)


def chip_named(soc: str) -> Chip | None:
    """The table of a chip by its name in ACL; None where there is none."""
    names = (soc, soc.removeprefix("Ascend"), soc.removeprefix("Ascend").split("_")[0])
    for name in names:
        try:
            return load_chip(name)
        except TileError:
            continue
    return None


def architecture_of(soc: str) -> str:
    """The architecture of a chip by its name in ACL; empty where it is none that kernels are compiled for."""
    if soc.startswith(("Ascend910B", "Ascend910_93", "Ascend910C")):
        return "dav-2201"
    return "dav-3510" if soc.startswith("Ascend950") else ""


def check_chip(compiled: Chip, soc: str, kernel: Kernel, blocks: int) -> None:
    """TileError where the kernel was compiled for another architecture than the device's, or needs more cores than it has.

    Cube and vector cores that work together take a core each for every block of a launch (CANN's guide, `<<<numBlocks, ..>>>`).
    """
    there, architecture = chip_named(soc), architecture_of(soc)
    if compiled.architecture != architecture:
        fit = (there.name if there else "") or ", ".join(known_chips(architecture)) if architecture else ""
        help = f'compile it for that chip: chip="{fit}"' if fit else "kernels are compiled for the chips of `tile-eg chips`"
        what = f"{soc} ({architecture or 'an unknown architecture'})"
        own = f"{compiled.name} ({compiled.architecture})"
        raise TileError(f"{kernel.name} was compiled for {own}, and the device is {what}", help=help)
    cores = (there or compiled).cube_cores
    if kernel.mixed and blocks > cores:
        message = f"{kernel.name} uses cube and vector cores together: launched with {blocks} blocks, and {soc} has {cores} cores"
        how = "larger blocks, or a loop over tiles in each block"
        fit = f'chip="{there.name}" compiles it for this chip; else ' if there and there.name != compiled.name else ""
        raise TileError(message, help=f"{fit}{how}")


def device_of(values: Iterable[tuple[str, Any]]) -> int | None:
    """The number of the NPU on which all of these (name, array) lie; None where none lies on one.

    TileError where they lie in several places.
    """
    places = {name: place_of(value) for name, value in values}
    on_npu = {p for p in places.values() if p.startswith("npu")}
    if not on_npu:
        return None
    if len(set(places.values())) > 1:
        listed = ", ".join(f"{name} on {place}" for name, place in places.items())
        message = f"the arrays of a call lie on one device, and these on several: {listed}"
        raise TileError(message, help=".npu(), or .cpu(), moves one")
    return int(next(iter(on_npu)).partition(":")[2] or 0)


def place_of(value: Any) -> str:
    """"npu:0" and the like; "cpu" for arrays without a device of their own."""
    device = getattr(value, "device", None)
    kind = getattr(device, "type", None)
    if kind is None:
        return "cpu"
    return f"npu:{device.index or 0}" if kind == "npu" else str(kind)  # type: ignore[union-attr]


def current_stream(device: int) -> int:
    """The stream on which torch puts its next operation on a device, once all before it are in it; without torch the default."""
    raw = _raw_stream()
    return raw(device) if raw else 0


def _raw_stream() -> Callable[[int], int] | None:
    torch_npu = sys.modules.get("torch_npu")
    return getattr(torch_npu._C, "_npu_getCurrentRawStream", None) if torch_npu else None
