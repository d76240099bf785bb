"""NumPy arrays as a kernel's arguments: the element types' NumPy forms, and whether arrays fit the tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from tile_eg.errors import TileError
from tile_eg.ir.kernel import Tensor
from tile_eg.ops.types import HALVES, DType

if TYPE_CHECKING:
    import numpy as np


def numpy_dtype(dtype: DType) -> np.dtype:
    """The NumPy type of an element type; those of bf16 and of floats of 8 bits are `ml_dtypes`'. Scaled operands are computed in
    f64, in which their numbers are exact."""
    import numpy as np

    if is_numpys(dtype):
        return np.dtype(dtype.numpy)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, dtype.numpy))


def is_numpys(dtype: DType) -> bool:
    """Whether NumPy has the element type itself."""
    return dtype.whole or dtype.numpy in ("float16", "float32", "float64")


def of_elements(shape: tuple[int, ...], dtype: DType | None) -> tuple[int, ...]:
    """The shape of a tensor whose array has this one: two numbers of 4 bits lie in each byte of a row."""
    return (*shape[:-1], 2 * shape[-1]) if dtype in HALVES and shape else shape


def check_arguments(
    tensors: Sequence[Tensor], arrays: Mapping[str, np.ndarray], added_to: Collection[str] = (), numbers: Collection[str] = ()
) -> None:
    """TileError unless there is exactly one array for every input tensor, of its shape and element type.

    There may be one for an output that is added to: what it holds when the kernel begins, else zeros. `numbers` are passed as
    well, by their names.
    """
    if missing := [n for n in numbers if n not in arrays]:
        raise TileError(f"no number for {', '.join(missing)}, which each launch passes")
    inputs = {t.name: t for t in tensors if not t.output}
    for t in tensors:
        if t.name in arrays and t.name in added_to:
            check_argument(t, arrays[t.name])
    for name in (n for n in arrays if n not in numbers):
        if name not in inputs and name not in added_to:
            raise TileError(f"the kernel has no input '{name}'", help="its inputs: " + signature(inputs.values()))
    for name, tensor in inputs.items():
        if name not in arrays:
            raise TileError(f"no array for input '{name}'", tensor.span, help="the inputs: " + signature(inputs.values()))
        check_argument(tensor, arrays[name])


def begun(t: Tensor, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """What a tensor holds when the kernel begins: an output what it was given, or zeros to add to."""
    import numpy as np

    return arrays[t.name] if t.name in arrays else np.zeros(t.shape, numpy_dtype(t.dtype))


def ending_at(tensor: Tensor, count: int) -> Tensor:
    """The tensor as an array has it of which the caller gives the first `count` elements alone."""
    return replace(tensor, shape=(count,)) if 0 < count < prod(tensor.shape) else tensor


def as_bytes(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """The array of a tensor of bools as the bytes that it is; any other as it is. TileError where it holds something else."""
    if not tensor.truth:
        return array
    if array.dtype != "bool":
        message = f"input '{tensor.name}' has elements of type {array.dtype}, not bool"
        raise TileError(message, tensor.span, help=f"compare it: {tensor.name} != 0")
    return array.view("uint8")


def as_given(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """What a kernel left in a tensor as its caller has it: bools, and no dimensions, where these are declared."""
    held = array.view("bool") if tensor.truth else array
    return held.reshape(()) if tensor.alone else held


def check_argument(tensor: Tensor, array: np.ndarray) -> None:
    """TileError unless the array has the tensor's shape and element type."""
    shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
    if shape is None or dtype is None:
        raise TileError(f"input '{tensor.name}' is no array but of type {type(array).__name__}", tensor.span)
    if tuple(shape) != tensor.shape:
        raise TileError(f"input '{tensor.name}' has shape {_shape(shape)}, not {_shape(tensor.shape)}", tensor.span)
    if dtype != numpy_dtype(tensor.dtype):
        to = f"'{tensor.dtype.numpy}'" if is_numpys(tensor.dtype) else f"ml_dtypes.{tensor.dtype.numpy}"
        message = f"input '{tensor.name}' has elements of type {dtype}, not {tensor.dtype.numpy}"
        bits = str(dtype) == "uint8" and tensor.dtype.bits == 8 and not tensor.dtype.whole
        way = f"bytes that are its bits: {tensor.name}.view({to})" if bits else f"convert it: {tensor.name}.astype({to})"
        raise TileError(message, tensor.span, help=way)


def signature(tensors: Iterable[Tensor]) -> str:
    """Tensors as the kernel's author writes them: A: f16[128, 64], B: f16[64, 32]."""
    return ", ".join(f"{t.name}: {t.dtype}[{', '.join(map(str, t.shape))}]" for t in tensors)


def _shape(shape: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"
