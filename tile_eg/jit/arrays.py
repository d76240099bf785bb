"""Arrays at a kernel's door: NumPy arrays and torch CPU tensors in, the same kind out."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError, TileWarning
from tile_eg.ir.arrays import as_bytes, check_argument, ending_at, numpy_dtype, signature
from tile_eg.ir.kept import KeptKernel
from tile_eg.jit.told import levels
from tile_eg.ops.types import BF16, E2M1, E8M0, I4, NARROW, DType, dtype_of

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.ir.kernel import Kernel, Tensor


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
        return _two_in_a_byte(value) if value.dtype.name in (I4.numpy, E2M1.numpy) else value
    if not is_torch(value):
        help = "NumPy arrays and torch tensors on the CPU are taken"
        raise TileError(f"argument {name} is no array but of type {type(value).__name__}", help=help)
    if value.device.type != "cpu":
        raise TileError(f"argument {name} is on {value.device}, and the simulator takes CPU tensors", help="call .cpu() on it")
    torch = sys.modules["torch"]
    check_no_gradient(value, name)
    check_plain(value, name)
    if (of := _by_bits(value.dtype)) is not None:
        bits = value.detach().view(torch.int8 if of.bytes == 1 else torch.int16).numpy()
        return bits.view(np.uint8 if of is E2M1 else numpy_dtype(of))
    return value.detach().numpy()


def check_plain(value: Any, name: str) -> None:
    """TileError for a torch tensor whose memory does not hold its elements one by one, as they are."""
    if value.is_nested:
        raise TileError(f"argument {name} is nested, and a kernel takes dense tensors", help="call .to_padded_tensor(0) on it")
    if value.layout is not sys.modules["torch"].strided:
        raise TileError(f"argument {name} is {value.layout}, and a kernel takes dense tensors", help="call .to_dense() on it")
    if value.is_quantized:
        help = "call .int_repr() on it for its whole numbers, .dequantize() for what they mean"
        raise TileError(f"argument {name} is quantised by torch, and a kernel knows nothing of its scale", help=help)
    if value.is_neg():
        raise TileError(f"argument {name} is a view that torch negates where it reads it", help="call .resolve_neg() on it")


def check_no_gradient(value: Any, name: str) -> None:
    """TileError for a torch tensor of which a gradient would be asked."""
    if value.requires_grad and sys.modules["torch"].is_grad_enabled():
        message = f"argument {name} requires a gradient, and a kernel has none: what comes out would not depend on it"
        raise TileError(message, help=f"pass {name}.detach(), or call the kernel under torch.no_grad()")


def _two_in_a_byte(x: np.ndarray) -> np.ndarray:
    """Numbers of 4 bits as a kernel has them, the even one in the lower half of its byte. `ml_dtypes` gives each its own byte."""
    import numpy as np

    if x.shape[-1:] == () or x.shape[-1] % 2:
        return x
    bits = x.astype(np.int8) if x.dtype.name == I4.numpy else x.view(np.uint8)
    return (bits[..., ::2] & 15) | (bits[..., 1::2] << 4)


def _by_bits(dtype: Any) -> DType | None:
    """The element type of torch's that NumPy has not, by its name there; None for any other."""
    name = str(dtype).removeprefix("torch.")
    if name == "float4_e2m1fn_x2":  # two in a byte, as a kernel has them
        return E2M1
    of = dtype_of(name)
    return of if of in (BF16, *NARROW, E8M0) else None


def as_declared(array: np.ndarray, shape: Sequence[int], may_end_early: bool = False) -> np.ndarray:
    """The elements of an array as a tensor of this shape has them, one behind the other; else the array as it is.

    It is one row, or has rows of the declared length, each of which may be parted into dimensions otherwise. Of an array with
    more elements the first ones are the tensor's, where they are whole rows of it; one with fewer is given flat, where it
    `may_end_early`.
    """
    count = prod(shape)
    if array.shape == tuple(shape) or not array.flags.c_contiguous or not _same_rows(array.shape, shape):
        return array
    if array.size < count:
        return array.reshape(-1) if may_end_early and array.size else array
    if _flat(shape) and array.size > count and not _flat(array.shape) and array.shape[-1] != count:
        return array  # its first numbers are parts of rows, which is nothing that the declaration says
    return array.reshape(-1)[:count].reshape(shape)


def _same_rows(given: Sequence[int], declared: Sequence[int]) -> bool:
    """Whether both are rows of one length, or one of them a single row. Dimensions of a row may be joined, not exchanged; an
    array's first ones may be several where its tensor has one."""
    if _flat(given) or _flat(declared) or _without_ones(given) == _without_ones(declared):
        return True
    if joined_rows(given, len(declared)) == tuple(declared):
        return True
    inner, row = given[1:], declared[1:]
    return prod(inner) == prod(row) and (_flat(inner) or _flat(row) or _without_ones(inner) == _without_ones(row))


def joined_rows(shape: Sequence[int], dims: int) -> tuple[int, ...] | None:
    """A shape with its first dimensions joined, so that `dims` are left. None where it has no more than these."""
    first = len(shape) - dims + 1
    return (prod(shape[:first]), *shape[first:]) if first > 1 else None


def _flat(shape: Sequence[int]) -> bool:
    return len(_without_ones(shape)) < 2


def _without_ones(shape: Sequence[int]) -> list[int]:
    return [n for n in shape if n != 1]


def fitted(kernel: Kernel | KeptKernel, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a call as the tensors are declared, with a note of those that have other numbers of elements.

    Those of a kernel that is kept may end early. TileError where one has another shape or type.
    """
    kept = isinstance(kernel, KeptKernel)
    tensors = [t for t in kernel.tensors if t.name in given]
    arrays = {t.name: as_bytes(t, as_declared(given[t.name], t.shape, kept)) for t in tensors}
    for t in tensors:
        check_argument(ending_at(t, arrays[t.name].size) if kept else t, arrays[t.name])
        if note := _note(t, given[t.name].size, prod(t.shape)):
            warnings.warn(f"note: {note}", TileWarning, stacklevel=levels())
    return arrays


def _note(t: Tensor, there: int, declared: int) -> str:
    """What the author of a call should know of an array with more elements than its tensor, or fewer."""
    if there == declared:
        return ""
    if there < declared:
        return f"{t.name} has {there} elements, and the kernel may touch those alone of {signature([t])}"
    return f"{t.name} has {there} elements, and the kernel takes the first {declared}: {signature([t])}"


def to_torch(array: np.ndarray) -> Any:
    """A NumPy array as a torch tensor over the same memory."""
    import numpy as np

    torch = sys.modules["torch"]
    for of in (BF16, *NARROW):
        if array.dtype == numpy_dtype(of):
            return torch.from_numpy(array.view(np.int8 if of.bytes == 1 else np.int16)).view(getattr(torch, of.numpy))
    return torch.from_numpy(array)


def by_name(names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any], made: Sequence[str] = ()) -> dict[str, Any]:
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


def of_call(kernel: Any, made: set[int], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call of a kernel by tensor name; `made` are the places of the tensors that the call makes itself."""
    names = [t.name for i, t in enumerate(kernel.tensors) if i not in made]
    return by_name(names, args, kwargs, made_last(kernel.tensors, made))


def made_last(tensors: Sequence[Any], made: set[int]) -> list[str]:
    """The tensors that a call makes, by their places, where they all stand behind those that it takes."""
    found = sorted(made)
    behind = list(range(len(tensors) - len(found), len(tensors)))
    return [tensors[i].name for i in found] if found == behind else []


def give_back(arrays: Sequence[np.ndarray], as_torch: bool) -> Any:
    """One output as it is, several as a list, none as None; torch tensors where tensors came in."""
    outputs = [to_torch(a) if as_torch else a for a in arrays]
    return outputs[0] if len(outputs) == 1 else outputs or None
