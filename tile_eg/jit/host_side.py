"""What TileLang's `JITKernel` has beside the call: texts, a profiler, results of tuning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError
from tile_eg.jit.profiling import Profiler, TensorSupplyType
from tile_eg.jit.told import told

if TYPE_CHECKING:
    from tile_eg.ir.kernel import Tensor
    from tile_eg.search.any_size import AtSizes
    from tile_eg.search.kernel_cache import Restored
    from tile_eg.search.result import Lowered

_NO_LIBRARY = "call the kernel: it runs in the simulator; get_kernel_source() and get_host_source() are the texts for CANN"
NOT_HERE = {
    "adapter": _NO_LIBRARY,
    "artifact": _NO_LIBRARY,
    "rt_module": _NO_LIBRARY,
    "torch_function": _NO_LIBRARY,
    "prim_func": "kernel.kernel is the kernel's tree",
    "auto_gm_idx": "the workspace that the compiled program needs is the launcher's: get_host_source() shows it",
}
"""Names of TileLang's kernels that are not here, and what does their work."""


class HostSide:
    """Texts, prediction, profiler and results of tuning of a compiled kernel."""

    latency: float | None = None
    config: dict[str, Any] | None = None
    ref_latency: float | None = None

    if TYPE_CHECKING:
        kernel: Any

        def planned(self) -> Lowered | Restored | AtSizes: ...

    @told
    def get_kernel_source(self) -> str:
        """The Ascend C text."""
        return str(self.planned().source)

    @told
    def get_host_source(self) -> str:
        """The C++ that launches the kernel under CANN."""
        return str(self.planned().host)

    @property
    def kernel_source(self) -> str:
        """The Ascend C text."""
        return self.get_kernel_source()

    @property
    def host_source(self) -> str:
        """The C++ that launches the kernel under CANN."""
        return self.get_host_source()

    @property
    def params(self) -> list[Tensor]:
        """The kernel's tensors, in order: each has a name, a dtype and a shape."""
        return list(self.kernel.tensors)

    @property
    @told
    def predicted_ms(self) -> float:
        """Milliseconds of a launch, as the timeline predicts them."""
        return self.planned().cost.microseconds / 1000

    def get_profiler(self, tensor_supply_type: TensorSupplyType = TensorSupplyType.Auto) -> Profiler:
        """A profiler whose inputs are drawn as `tensor_supply_type` says."""
        return Profiler(self, tensor_supply_type)

    def run_once(self, func: Any = None) -> Any:
        """What the kernel, or `func`, gives for inputs drawn for it."""
        return self.get_profiler().run_once(func)

    def update_tuner_result(self, latency: float, config: dict[str, Any], ref_latency: float | None) -> HostSide:
        """Keeps what tuning found; the kernel itself."""
        self.latency, self.config, self.ref_latency = latency, config, ref_latency
        return self

    def get_tuner_result(self) -> dict[str, Any]:
        """The configuration that `tile_eg.autotune` took, and its predicted milliseconds; no reference is timed.

        ValueError for a kernel that was not tuned.
        """
        if self.latency is None:
            raise ValueError("this kernel was not tuned: put @tile_eg.autotune(configs=...) above @tile_eg.jit")
        return {"latency": self.latency, "config": self.config, "ref_latency": self.ref_latency}

    def export_library(self, kernel_file: str | Path) -> None:
        """TileError: libraries are built by CANN."""
        help = "get_kernel_source() and get_host_source() are the texts that it builds"
        raise TileError(f"a library for {kernel_file} is built by CANN", help=help)

    def __getattr__(self, name: str) -> Any:
        if name in NOT_HERE:
            raise TileError(f"a kernel has no {name} here", help=NOT_HERE[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
