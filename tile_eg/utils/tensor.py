"""TileLang's `utils.tensor`: comparisons of torch tensors, and inputs that are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg.jit.arrays import to_torch
from tile_eg.jit.profiling import TensorSupplyType, supplied

__all__ = ["TensorSupplyType", "get_tensor_supply", "torch_assert_close"]


def torch_assert_close(
    tensor_a: Any,
    tensor_b: Any,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 0.001,
    verbose: bool = False,
    equal_nan: bool = True,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    base_name: str = "LHS",
    ref_name: str = "RHS",
) -> bool:
    """True where at most a part `max_mismatched_ratio` of the elements differs by more than `atol + rtol * |tensor_b|`.

    AssertionError with the first of them otherwise, and where shapes, or what `check_...` names, are not the same.
    """
    import torch

    wanted = {"shape": True, "device": check_device, "dtype": check_dtype, "layout": check_layout, "stride": check_stride}
    for name in (n for n, asked in wanted.items() if asked):
        x, y = (v() if callable(v) else v for v in (getattr(tensor_a, name), getattr(tensor_b, name)))
        assert x == y, f"the {name} of {base_name} is {x}, that of {ref_name} {y}"
    dtype = torch.promote_types(tensor_a.dtype, tensor_b.dtype)
    x, y = tensor_a.to(dtype), tensor_b.to(dtype)
    far = ~torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)
    count, most = int(far.sum()), int(far.numel() * max_mismatched_ratio)
    if verbose:
        print(f"{count} of {far.numel()} elements differ ({most} may)")
    if count > most:
        at = tuple(far.nonzero()[0].tolist())
        what = f"{count} of {far.numel()} elements differ, {most} may; the first is {list(at)}"
        raise AssertionError(f"{what}: {base_name} {x[at].item():.6g}, {ref_name} {y[at].item():.6g}")
    return True


def get_tensor_supply(supply_type: TensorSupplyType = TensorSupplyType.Integer) -> Callable[[Any], Any]:
    """What draws a torch tensor for one of a kernel's tensors (`kernel.params`)."""
    return lambda tensor: to_torch(supplied(tensor, supply_type))
