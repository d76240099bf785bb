"""Arrays at a kernel's door: NumPy arrays and torch CPU tensors in, the same kind out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ops.types import BF16

if TYPE_CHECKING:
    import numpy as np


def is_torch(value: Any) -> bool:
    """Whether this is a torch tensor; torch is never imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def knows_torch(names: Mapping[str, Any]) -> bool:
    """Whether torch is among what a module calls by a name."""
    torch = sys.modules.get("torch")
    return torch is not None and any(value is torch for value in names.values())


def to_numpy(value: Any, name: str) -> np.ndarray:
    """An array or a CPU tensor as a NumPy array over the same memory. TileError for anything else; `name` says what it is."""
    import numpy as np

    if isinstance(value, np.ma.MaskedArray):
        raise TileError(f"argument {name} is a masked array, and a kernel reads what is masked too", help="fill it: a.filled(0)")
    if isinstance(value, np.ndarray):
        return value
    if not is_torch(value):
        help = "NumPy arrays and torch tensors on the CPU are taken"
        raise TileError(f"argument {name} is no array but of type {type(value).__name__}", help=help)
    if value.device.type != "cpu":
        raise TileError(f"argument {name} is on {value.device}, and the simulator takes CPU tensors", help="call .cpu() on it")
    torch = sys.modules["torch"]
    if value.requires_grad and torch.is_grad_enabled():
        message = f"argument {name} requires a gradient, and a kernel has none: what comes out would not depend on it"
        raise TileError(message, help=f"pass {name}.detach(), or call the kernel under torch.no_grad()")
    if value.layout is not torch.strided:
        raise TileError(f"argument {name} is {value.layout}, and a kernel takes dense tensors", help="call .to_dense() on it")
    if value.dtype == torch.bfloat16:
        return value.detach().view(torch.int16).numpy().view(numpy_dtype(BF16))
    return value.detach().numpy()


def as_declared(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The same elements in the declared shape, where the two differ in dimensions of 1 alone, or one of them is flat; else the
    array as it is."""
    flat = 1 in (array.ndim, len(shape)) and array.size == prod(shape)
    same = flat or [n for n in array.shape if n != 1] == [n for n in shape if n != 1]
    return array.reshape(shape) if same and array.shape != tuple(shape) and array.flags.c_contiguous else array


def to_torch(array: np.ndarray) -> Any:
    """A NumPy array as a torch tensor over the same memory."""
    import numpy as np

    torch = sys.modules["torch"]
    if array.dtype == numpy_dtype(BF16):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def by_name(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any], made: Sequence[str] = ()
) -> dict[str, Any]:
    """The arguments of a call by tensor name. TileError for a missing, doubled or unknown one, or one too many.

    `made` are those behind `names` that the call makes itself: arrays may be given for all of them, and are left as they are, as
    TileLang leaves them.
    """
    listed = f"{len(names)} array{'s' * (len(names) != 1)} ({', '.join(names)})"
    if made and len(args) == len(names) + len(made):
        args = args[: len(names)]
    if len(args) > len(names):
        help = "a tensor in out_idx or workspace_idx is made by the call, and not passed"
        raise TileError(f"expected {listed}, got {len(args)}", help=help)
    found = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise TileError(f"there is no argument {name}: expected {listed}")
        if name in found:
            raise TileError(f"argument {name} is given twice")
        found[name] = value
    if missing := [n for n in names if n not in found]:
        raise TileError(f"expected {listed}, got {len(found)}: {', '.join(missing)} missing")
    return found


def made_last(tensors: Sequence[Any], made: set[int]) -> list[str]:
    """The tensors that a call makes, by their places, where they all stand behind those that it takes."""
    found = sorted(made)
    behind = list(range(len(tensors) - len(found), len(tensors)))
    return [tensors[i].name for i in found] if found == behind else []


def give_back(arrays: Sequence[np.ndarray], as_torch: bool) -> Any:
    """One output as it is, several as a list, none as None; torch tensors where tensors came in."""
    outputs = [to_torch(a) if as_torch else a for a in arrays]
    return outputs[0] if len(outputs) == 1 else outputs or None
