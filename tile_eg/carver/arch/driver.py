"""What a kernel asks of the machine, in the names that a GPU's driver has."""

from __future__ import annotations

from tile_eg.chips import DEFAULT_CHIP, load_chip


def get_num_sms(device_id: int = 0) -> int:
    """The number of cores that run blocks: the cube cores of the default chip."""
    return load_chip(DEFAULT_CHIP).cube_cores


def get_device_name(device_id: int = 0) -> str:
    """The name of the default chip."""
    return load_chip(DEFAULT_CHIP).name
