"""Calls on arrays that lie on an NPU: compiled by CANN once, and launched on torch's current stream, without a copy or a wait.

An input that does not lie in one run, as a slice of columns or a transposed view, is read where it is, by a text of its own;
where there is none it is copied.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_eg.errors import InternalError, TileError, TileWarning, attempted
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel, Tensor, added_to
from tile_eg.ir.strided import Layout, Layouts, laid_out, layout_of
from tile_eg.jit.arrays import check_no_gradient, check_plain, fitted, is_torch, to_numpy
from tile_eg.jit.launches import launched
from tile_eg.jit.told import levels
from tile_eg.ops.records import record

if TYPE_CHECKING:
    from tile_eg.ir.values import Values
    from tile_eg.npu.device import Ready

MOST_SHAPES = 1000
"""Shapes of calls for which a kernel remembers what serves them."""
MOST_LAYOUTS = 8
"""Layouts of inputs for which a kernel has texts of their own; in others they are copied."""
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
    import numpy as np

    dtype = np.dtype(np.bool_) if t.truth else numpy_dtype(t.dtype)
    own = getattr(sys.modules["torch"], dtype.name, None) if is_torch(like) else dtype
    if own is None:
        raise TileError(f"torch has no dtype for {t.dtype}, of which {t.name} is", t.span)
    return like.new_empty(() if t.alone else tuple(shape), dtype=own)


@record
class Prepared:
    """A kernel that is loaded on a device: its tensors in the order of a launch, those that it writes, those that begin with
    zeros where the call makes them, and those that it reads where they lie, in rows with gaps."""

    ready: Ready
    tensors: Sequence[Tensor]
    written: frozenset[str]
    zeroed: frozenset[str]
    planned: Any
    laid_out: frozenset[str] = frozenset()


class NpuCalls:
    """The calls of a kernel on NPUs; `kernel` is a `CompiledKernel`."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.prepared: dict[int, Prepared] = {}
        self.seen: dict[tuple[Any, ...], Prepared] = {}
        self.others: dict[Layouts, Any] = {}

    def __call__(self, values: Mapping[str, Any], numbers: Sequence[float] = ()) -> Any:
        """Launches the kernel on arrays by tensor name, and on the numbers that it does not know, and gives the tensors of
        `out_idx` as `CompiledKernel` does.

        TileError where they do not fit or lie on several devices, and for each step of build, load and launch that fails.
        """
        key = _key(values)
        prepared = self.seen.get(key) or self.seen.setdefault(key, self._prepared_for(values))
        arrays = {name: _as_taken(v, name, prepared) for name, v in values.items()}
        like = next(iter(values.values()))
        for t in prepared.tensors:
            if t.name not in arrays:
                arrays[t.name] = new_empty(like, t.shape, t)
                if t.name in prepared.zeroed:
                    arrays[t.name].zero_()
        self._launch(prepared, arrays, like, numbers)
        outputs = [arrays[self.kernel.kernel.tensors[i].name] for i in self.kernel.out_idx]
        return outputs[0] if len(outputs) == 1 else outputs or None

    def _launch(self, prepared: Prepared, arrays: Mapping[str, Any], like: Any, numbers: Sequence[float]) -> None:
        from tile_eg.npu.device import current_stream

        ready = prepared.ready
        workspace = self._workspace(like, ready.workspace) if ready.workspace else None
        address = workspace.data_ptr() if workspace is not None else 0
        addresses = [arrays[t.name].data_ptr() for t in prepared.tensors]
        ready.launch(addresses, address, current_stream(ready.device), numbers)
        launched(prepared.planned, ready)

    def _prepared_for(self, values: Mapping[str, Any]) -> Prepared:
        """The kernel on the device of these arrays, for the layouts that they have. TileError where their shapes or dtypes are
        not those of the tensors."""
        from tile_eg.npu.device import device_of

        device = device_of(values.items())
        assert device is not None
        _check_plain(values)
        self._check_shapes(values)
        layouts = tuple(one for one in _layouts(self.kernel.kernel.tensors, values) if self._readable(one))
        other = self._other(layouts) if layouts else None
        if other is None:
            return self._prepared(device)
        return replace(other.npu._prepared(device), laid_out=frozenset(name for name, _ in layouts))

    def _other(self, layouts: Layouts) -> Any:
        """The `CompiledKernel` that reads inputs in these layouts; None where there is none."""
        if layouts not in self.others and len(self.others) < MOST_LAYOUTS:
            self.others[layouts] = self._made(layouts)
        return self.others.get(layouts)

    def _made(self, layouts: Layouts) -> Any:
        """The same, compiled now. A fault of tile_eg is told."""
        from tile_eg.search.one_text import FAULTS_VARIABLE

        try:
            found = attempted(lambda: self._compiled(layouts))
        except InternalError as fault:
            if os.environ.get(FAULTS_VARIABLE):
                raise
            text = f"note: {self.kernel.kernel.name} has no text for these strides: {str(fault).splitlines()[0]}"
            warnings.warn(text, TileWarning, stacklevel=levels())
            return None
        return None if isinstance(found, TileError) else found

    def _readable(self, layout: tuple[str, Layout]) -> bool:
        """Whether the kernel can read an input in a layout."""
        kernel = self.kernel.compiled
        return isinstance(kernel, Kernel) and not isinstance(attempted(lambda: _values(laid_out(kernel, (layout,)))), TileError)

    def _compiled(self, layouts: Layouts) -> Any:
        made = self.kernel.laid_out(layouts)
        made.planned()
        return made

    def _prepared(self, device: int) -> Prepared:
        """The kernel on a device."""
        from tile_eg.npu.device import ready

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


def _key(values: Mapping[str, Any]) -> tuple[Any, ...]:
    """What calls have in common that one text serves. TileError where arrays lie on several devices, or are not dense."""
    from tile_eg.npu.device import device_of

    try:
        return tuple([(name, v.shape, v.dtype, v.device, v.is_contiguous() or v.stride()) for name, v in values.items()])
    except (AttributeError, RuntimeError):
        device_of(values.items())
        _check_plain(values)
        raise


def _check_plain(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if is_torch(value):
            check_plain(value, name)


def _values(kernel: Kernel) -> Values:
    from tile_eg.frontend.checks import check
    from tile_eg.frontend.ssa import to_values

    check(kernel)
    return to_values(kernel)


def _layouts(tensors: Iterable[Tensor], values: Mapping[str, Any]) -> Layouts:
    """The layouts of the inputs that do not lie in one run, as far as they have one."""
    found = []
    for t in tensors:
        value = None if t.output else values.get(t.name)
        if value is not None and not value.is_contiguous() and tuple(value.shape) == t.shape:
            layout = layout_of(t.shape, tuple(value.stride()))
            found += [(t.name, layout)] if layout is not None else []
    return tuple(found)


def _as_taken(value: Any, name: str, prepared: Prepared) -> Any:
    """The array as the kernel takes it: an input that it does not read where it lies is copied into one run, which is said.

    TileError for an output with gaps, for a format of the NPU's own, and where a gradient is asked for.
    """
    if is_torch(value):
        _check_torch(value, name)
    if value.is_contiguous() or name in prepared.laid_out:
        return value
    if name in prepared.written:
        help = f"pass {name}.contiguous(), and copy back"
        raise TileError(f"argument {name} is not contiguous, and the kernel writes it", help=help)
    text = f"note: {name} is not contiguous, and is copied for the call: its strides are {tuple(value.stride())}"
    warnings.warn(text, TileWarning, stacklevel=levels())
    return value.contiguous()


def _check_torch(value: Any, name: str) -> None:
    check_no_gradient(value, name)
    check_plain(value, name)
    torch_npu = sys.modules.get("torch_npu")
    if torch_npu and torch_npu.get_npu_format(value) not in PLAIN_FORMATS:
        help = f"torch_npu.npu_format_cast({name}, 2) gives it rows and columns"
        raise TileError(f"argument {name} is in a format of the NPU's own ({torch_npu.get_npu_format(value)})", help=help)
