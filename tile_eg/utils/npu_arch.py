"""A chip as AscendNPU-IR's host code asks for it: its cores and the bytes of its memories."""

from __future__ import annotations

from tile_eg.chips import DEFAULT_CHIP, Chip, load_chip
from tile_eg.errors import TileError
from tile_eg.ops.types import Level


class AscendArch:
    """A chip by a device's name (`Ascend910B2`, `Ascend950`); the default one where there is no name or no such chip.

    `ub_cap`, `l1_cap`, `l0a_cap`, `l0b_cap` and `l0c_cap` are the bytes that a kernel may plan with.
    """

    platform = "ascend"
    cube_spec = (16, 16, 16)

    def __init__(self, chip_name: str | None = None) -> None:
        self.chip: Chip = _chip_of(chip_name or get_ascend_device_name())
        self.name = self.chip_name = chip_name or get_ascend_device_name()
        self.aicube_core_num = self.compute_max_core = self.chip.cube_cores
        self.aivector_core_num = self.chip.vector_cores
        self.mem_cap = {str(level): self.chip.level_bytes(level) for level in _LEVELS} | {"L2": self.chip.l2_bytes}
        self.ub_cap, self.l1_cap, self.l0a_cap, self.l0b_cap, self.l0c_cap, self.l2_cache_size_bytes = self.mem_cap.values()
        self.smem_cap = self.max_smem_usage = self.ub_cap

    @property
    def cube_dim(self) -> int:
        return self.cube_spec[-1]

    @property
    def cube_shape(self) -> list[int]:
        return list(self.cube_spec)

    @property
    def fractal_shape(self) -> tuple[int, int]:
        return self.cube_spec[:2]


_LEVELS = (Level.UB, Level.L1, Level.L0A, Level.L0B, Level.L0C)


def _chip_of(device: str) -> Chip:
    try:
        return load_chip(device)
    except TileError:
        return load_chip(DEFAULT_CHIP)


def get_ascend_device_name() -> str:
    """The default chip's name as a device tells it."""
    return f"Ascend{DEFAULT_CHIP}"


def get_arch_obj(device_name: str | None = None) -> AscendArch:
    return AscendArch(device_name)


def get_arch(target: object = None) -> AscendArch:
    """The default chip, whatever the target is."""
    return AscendArch()


def is_ascend_arch(arch: object) -> bool:
    return isinstance(arch, AscendArch)
