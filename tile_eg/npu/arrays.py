"""Arrays in the memory of an NPU, without torch: what a call of a kernel takes and gives, and `tile-eg bench` measures on."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tile_eg.ir.strided import dense
from tile_eg.ops.records import record

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.npu.launcher import Launcher


@record
class Device:
    """Where an array lies."""

    type: str
    index: int

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"


class NpuArray:
    """An array on an NPU, one row behind the other, as torch's tensors have it: `shape`, `dtype` (NumPy's), `device`, `data_ptr`.

    What it took is free again once the object is gone and somebody has waited for the device's default stream, as kernels may
    still use it. `numpy()` waits for nothing but the copy: call `synchronize()` before it where kernels run.
    """

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], device: int, launcher: Launcher) -> None:
        self.shape, self.dtype, self.device = tuple(shape), dtype, Device("npu", device)
        self.launcher, self.nbytes = launcher, prod(shape) * dtype.itemsize
        self.address = launcher.malloc(device, self.nbytes)

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)} on {self.device}>"

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self.launcher.leave(self.device.index, self.address, self.nbytes)

    def data_ptr(self) -> int:
        return self.address

    def is_contiguous(self) -> bool:
        return True

    def stride(self) -> tuple[int, ...]:
        """Elements from one to the next of each dimension."""
        return dense(self.shape)

    def numel(self) -> int:
        return prod(self.shape)

    def new_empty(self, shape: Sequence[int], dtype: Any = None) -> NpuArray:
        """An array of any content on the same device."""
        return NpuArray(shape, self.dtype if dtype is None else _dtype(dtype), self.device.index, self.launcher)

    def zero_(self) -> NpuArray:
        """Fills it with zeros, on the default stream."""
        self.launcher.step("fill", "fill with zeros", self.device.index, self.address, 0, self.nbytes, None)
        return self

    def copy_from(self, array: np.ndarray) -> NpuArray:
        """Takes the elements of an array of the same shape and dtype."""
        import numpy as np

        given = np.ascontiguousarray(array)
        assert given.shape == self.shape and given.dtype == self.dtype
        self.launcher.step("upload", "copy to the device", self.device.index, self.address, given.ctypes.data, self.nbytes)
        return self

    def numpy(self) -> np.ndarray:
        """The elements, on the host."""
        import numpy as np

        found = np.empty(self.shape, self.dtype)
        self.launcher.step("download", "copy from the device", self.device.index, found.ctypes.data, self.address, self.nbytes)
        return found

    def synchronize(self) -> NpuArray:
        """Waits for the default stream of the device. TileError where a kernel failed on it."""
        self.launcher.wait(self.device.index)
        return self


def _dtype(name: Any) -> np.dtype[Any]:
    import numpy as np

    return np.dtype(name)


def array(values: Any, device: int = 0) -> NpuArray:
    """A NumPy array, or what makes one, in the memory of an NPU. TileError where there is no CANN, or no room."""
    import numpy as np

    from tile_eg.npu.launcher import the_launcher

    given = np.ascontiguousarray(values)
    return NpuArray(given.shape, given.dtype, device, the_launcher()).copy_from(given)
