"""TileLang's `utils.tensor`: comparisons of torch tensors, and inputs that are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg.jit.arrays import to_torch
from tile_eg.jit.profiling import TensorSupplyType, supplied
from tile_eg.testing import torch_assert_close

__all__ = ["TensorSupplyType", "get_tensor_supply", "torch_assert_close"]


def get_tensor_supply(supply_type: TensorSupplyType = TensorSupplyType.Integer) -> Callable[[Any], Any]:
    """What draws a torch tensor for one of a kernel's tensors (`kernel.params`)."""
    return lambda tensor: to_torch(supplied(tensor, supply_type))
