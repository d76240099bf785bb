"""TileLang's `AutoTuner`: configurations of a function that gives a kernel, without decorators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg.autotuner.tuned import NO_EFFECT, autotune
from tile_eg.errors import TileError
from tile_eg.jit import jit
from tile_eg.jit.told import told
from tile_eg.ops.records import record


@record
class AutotuneResult:
    """The fastest configuration, its kernel and milliseconds of a launch; no reference is timed."""

    latency: float
    config: dict[str, Any]
    kernel: Any
    ref_latency: float | None = None

    @property
    def libcode(self) -> str:
        """The kernel's Ascend C text."""
        return str(self.kernel.get_kernel_source())

    @property
    def func(self) -> Any:
        return self.kernel


class AutoTuner:
    """`AutoTuner.from_kernel(function, configs).set_compile_args(...).set_profile_args(...).run()`: the fastest of the
    configurations, as `autotune` finds it. `function` gives a function under `@T.prim_func`, without arguments of its own beside
    those of the configurations."""

    def __init__(self, fn: Callable[..., Any], configs: Any) -> None:
        self.fn, self.configs = fn, configs
        self.compiled: dict[str, Any] = {}
        self.profiled: dict[str, Any] = {}

    @classmethod
    def from_kernel(cls, kernel: Callable[..., Any], configs: Any) -> AutoTuner:
        return cls(kernel, configs)

    def set_compile_args(self, **options: Any) -> AutoTuner:
        """The options of `tile_eg.jit`."""
        self.compiled |= options
        return self

    def set_profile_args(self, **options: Any) -> AutoTuner:
        """The options of `tile_eg.autotune`: what draws inputs, and what results are held against."""
        self.profiled |= {n: v for n, v in options.items() if n not in NO_EFFECT}
        return self

    @told
    def run(self, warmup: int = 25, rep: int = 100, **options: Any) -> AutotuneResult:
        """The fastest configuration. TileLang's `timeout` means nothing here: what ends a compilation is a count."""
        if unknown := sorted(options.keys() - {*NO_EFFECT, "timeout"}):
            raise TileError(f"AutoTuner.run has no option {unknown[0]!r}")
        factory = self.fn if hasattr(self.fn, "__jit_impl__") else jit(**self.compiled)(self.fn)
        tuned = autotune(configs=self.configs, **{**self.profiled, "warmup": warmup, "rep": rep})(factory)
        kernel = tuned.compile()
        return AutotuneResult(kernel.latency, kernel.config, kernel)
