"""What a kernel asks of the machine before it is built, in AscendNPU-IR's names."""

from __future__ import annotations

from functools import cached_property

from tile_eg.chips import DEFAULT_CHIP, Chip, load_chip


class NPUUtils:
    """The default chip, as nothing here asks a device. `NPUUtils.get()` and `NPUUtils()` mean the same."""

    @classmethod
    def get(cls) -> NPUUtils:
        return cls()

    @cached_property
    def _chip(self) -> Chip:
        return load_chip(DEFAULT_CHIP)

    def get_arch(self) -> str:
        """The chip's name as a device tells it: Ascend910B2."""
        return f"Ascend{self._chip.name}"

    def get_aicore_num(self) -> int:
        """The number of cube cores, each of which has two vector cores: blocks that run at a time."""
        return self._chip.cube_cores

    get_aicube_core_num = get_aicore_num

    def get_aivector_core_num(self) -> int:
        return self._chip.vector_cores
