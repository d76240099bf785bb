"""Calls on arrays that lie on an NPU: compiled by CANN once, and launched on torch's current stream, without a copy or a wait."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError, TileWarning
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Tensor, added_to
from tile_eg.jit.arrays import check_no_gradient, check_plain, fitted, is_torch, to_numpy
from tile_eg.jit.launches import launched
from tile_eg.jit.told import levels

if TYPE_CHECKING:
    from tile_eg.npu.device import Ready

MOST_SHAPES = 1000
"""Shapes of calls for which a kernel remembers what serves them."""
PLAIN_FORMATS = (-1, 0, 2)
"""The formats of torch_npu in which an element lies where its indices say: undefined, NCHW and ND."""


def on_npu(values: Iterable[Any]) -> bool:
    """Whether any of these arrays lies on an NPU."""
    return any(getattr(getattr(v, "device", None), "type", None) == "npu" for v in values)


def shape_of(value: Any, name: str) -> tuple[int, ...]:
    """The shape of an argument. TileError for what is no array."""
    return tuple(value.shape) if on_npu((value,)) else to_numpy(value, name).shape


def new_empty(like: Any, shape: Sequence[int], t: Tensor) -> Any:
    """An array of a tensor's dtype on the device of another one, of any content: from torch's allocator where that is torch's."""
    dtype = numpy_dtype(t.dtype)
    own = getattr(sys.modules["torch"], dtype.name, None) if is_torch(like) else dtype
    if own is None:
        raise TileError(f"torch has no dtype for {t.dtype}, of which {t.name} is", t.span)
    return like.new_empty(tuple(shape), dtype=own)


@dataclass(frozen=True)
class Prepared:
    """A kernel that is loaded on a device: its tensors in the order of a launch, those that it writes, and those that begin with
    zeros where the call makes them."""

    ready: Ready
    tensors: Sequence[Tensor]
    written: frozenset[str]
    zeroed: frozenset[str]
    planned: Any


class NpuCalls:
    """The calls of a kernel on NPUs; `kernel` is a `CompiledKernel`."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.prepared: dict[int, Prepared] = {}
        self.seen: dict[tuple[Any, ...], Prepared] = {}

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Launches the kernel on arrays by tensor name, and gives the tensors of `out_idx` as `CompiledKernel` does.

        TileError where they do not fit or lie on several devices, and for each step of build, load and launch that fails.
        """
        key = tuple([(name, v.shape, v.dtype, v.device) for name, v in values.items()])
        prepared = self.seen.get(key) or self.seen.setdefault(key, self._prepared(values))
        arrays = {name: _dense(v, name, name in prepared.written) for name, v in values.items()}
        like = next(iter(values.values()))
        for t in prepared.tensors:
            if t.name not in arrays:
                arrays[t.name] = new_empty(like, t.shape, t)
                if t.name in prepared.zeroed:
                    arrays[t.name].zero_()
        self._launch(prepared, arrays, like)
        outputs = [arrays[self.kernel.kernel.tensors[i].name] for i in self.kernel.out_idx]
        return outputs[0] if len(outputs) == 1 else outputs or None

    def _launch(self, prepared: Prepared, arrays: Mapping[str, Any], like: Any) -> None:
        from tile_eg.npu.device import current_stream

        ready = prepared.ready
        workspace = self._workspace(like, ready.workspace) if ready.workspace else None
        address = workspace.data_ptr() if workspace is not None else 0
        ready.launch([arrays[t.name].data_ptr() for t in prepared.tensors], address, current_stream(ready.device))
        launched(prepared.planned, ready)

    def _prepared(self, values: Mapping[str, Any]) -> Prepared:
        """The kernel on the device of these arrays. TileError where their shapes or dtypes are not those of the tensors."""
        from tile_eg.npu.device import device_of, ready

        device = device_of(values.items())
        assert device is not None
        self._check_shapes(values)
        if device not in self.prepared:
            planned, own = self.kernel.planned(), self.kernel.compiled
            zeroed = frozenset() if isinstance(own, KeptKernel) else frozenset(added_to(own))
            written = frozenset(t.name for t in self.kernel.kernel.tensors if t.output)
            self.prepared[device] = Prepared(ready(planned, device), planned.program.tensors, written, zeroed, planned)
        return self.prepared[device]

    def _check_shapes(self, values: Mapping[str, Any]) -> None:
        import numpy as np

        alike = {name: np.empty(tuple(v.shape), _numpy_dtype(v.dtype, name)) for name, v in values.items()}
        fitted(self.kernel.kernel, alike)

    def _workspace(self, like: Any, bytes: int) -> Any:
        import numpy as np

        return like.new_empty((bytes,), dtype=sys.modules["torch"].uint8 if is_torch(like) else np.dtype(np.uint8))


def _numpy_dtype(dtype: Any, name: str) -> Any:
    import ml_dtypes
    import numpy as np

    word = str(dtype).rpartition(".")[2]
    found = getattr(ml_dtypes, word, None) or getattr(np, "bool_" if word == "bool" else word, None)
    if found is None:
        raise TileError(f"argument {name} is of dtype {dtype}, which no kernel takes")
    return np.dtype(found)


def _dense(value: Any, name: str, written: bool) -> Any:
    """The array with its elements one behind the other; an input is copied where they are not, which is said.

    TileError for an output that has them otherwise, for a format of the NPU's own, and where a gradient is asked for.
    """
    if is_torch(value):
        check_no_gradient(value, name)
        check_plain(value, name)
        torch_npu = sys.modules.get("torch_npu")
        if torch_npu and torch_npu.get_npu_format(value) not in PLAIN_FORMATS:
            help = f"torch_npu.npu_format_cast({name}, 2) gives it rows and columns"
            raise TileError(f"argument {name} is in a format of the NPU's own ({torch_npu.get_npu_format(value)})", help=help)
    if value.is_contiguous():
        return value
    if written:
        help = f"pass {name}.contiguous(), and copy back"
        raise TileError(f"argument {name} is not contiguous, and the kernel writes it", help=help)
    warnings.warn(f"note: {name} is not contiguous, and is copied for the call", TileWarning, stacklevel=levels())
    return value.contiguous()
