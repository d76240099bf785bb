"""`autotune`: the best of an author's configurations by predicted time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_eg.errors import TileError
from tile_eg.jit.profiling import Profiler, TensorSupplyType

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """How the chosen kernel is held against a reference."""

    ref_prog: Callable[..., Any] | None
    supply_prog: Callable[..., Any] | None
    supply_type: TensorSupplyType
    rtol: float
    atol: float
    max_mismatched_ratio: float
    skip: bool
    manual: Callable[..., Any] | None

    def run(self, kernel: Any) -> None:
        """AssertionError where the kernel's result is not the reference's."""
        if self.skip or self.ref_prog is None:
            return None
        profiler = Profiler(kernel, self.supply_type)
        given = None if self.supply_prog is None else list(self.supply_prog(profiler.tensors))
        if self.manual is not None:
            return profiler.manual_assert_close(self.ref_prog, given, self.manual)
        return profiler.assert_allclose(self.ref_prog, given, self.atol, self.rtol, self.max_mismatched_ratio)


@dataclass
class Tuned:
    """A function of sizes with configurations: a call that leaves them open takes the one that is predicted fastest."""

    factory: Any
    configs: Any
    check: Check
    chosen: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def __jit_impl__(self) -> Any:
        return self.factory.__jit_impl__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        configs = self._configs(args, kwargs)
        if self._given(configs[0], args, kwargs):
            return self.factory(*args, **kwargs)
        asked = repr((args, sorted(kwargs.items())))
        if asked not in self.chosen:
            self.chosen[asked] = self._best(configs, args, kwargs)
        return self.chosen[asked]

    def _configs(self, args: Sequence[Any], kwargs: Config) -> list[Config]:
        found = self.configs(tuple(args), tuple(sorted(kwargs.items()))) if callable(self.configs) else self.configs
        listed = [found] if isinstance(found, Mapping) else list(found)
        if not listed or not all(isinstance(c, Mapping) and c for c in listed):
            raise TileError("autotune: configs are dictionaries of values for parameters", help="[{'block_M': 64}, ...]")
        known = inspect.signature(self.factory.function).parameters
        for name in (n for c in listed for n in c):
            if name not in known:
                raise TileError(f"autotune: {self.factory.__name__} has no parameter {name!r}", help=f"it has {', '.join(known)}")
        return listed

    def _given(self, config: Config, args: Sequence[Any], kwargs: Config) -> bool:
        """Whether the call itself gives a value that the configurations are for."""
        positional = list(inspect.signature(self.factory.function).parameters)[: len(args)]
        return any(name in kwargs or name in positional for name in config)

    def _best(self, configs: Sequence[Config], args: Sequence[Any], kwargs: Config) -> Any:
        """The kernel that is predicted fastest, the first of equals; TileError where none of them compiles."""
        best: tuple[float, Any, Config] | None = None
        first: TileError | None = None
        for config in configs:
            try:
                kernel = self.factory(*args, **kwargs, **config)
                time = kernel.predicted_ms
            except TileError as error:
                first = first or error
                continue
            if best is None or time < best[0]:
                best = time, kernel, config
        if best is None:
            assert first is not None
            note = f"none of the {len(configs)} configurations compiles; this is why the first does not"
            first.notes = (*first.notes, (note, None))
            raise first
        time, kernel, config = best
        kernel.update_tuner_result(time, dict(config), None)
        self.check.run(kernel)
        return kernel


def autotune(
    func: Any = None,
    *,
    configs: Any,
    warmup: int = 25,
    rep: int = 100,
    timeout: int = 100,
    supply_type: TensorSupplyType = TensorSupplyType.Auto,
    ref_prog: Callable[..., Any] | None = None,
    supply_prog: Callable[..., Any] | None = None,
    rtol: float = 1e-2,
    atol: float = 1e-2,
    max_mismatched_ratio: float = 0.01,
    skip_check: bool = False,
    manual_check_prog: Callable[..., Any] | None = None,
    cache_input_tensors: bool = False,
) -> Any:
    """Over `@tile_eg.jit`: a call that leaves the parameters in `configs` open compiles the kernel for each of them, and
    gives the one of the least predicted time; those that do not compile are left out. `get_tuner_result()` of it has the time
    in ms. Where `configs` is a function, it gets the call's arguments: a tuple, and a tuple of (name, value) pairs.

    Nothing is measured, so that `warmup`, `rep` and `timeout` (in seconds) have nothing to do. Where there is a `ref_prog`, the
    chosen kernel runs once in the simulator on `supply_prog`'s inputs, or on such as `supply_type` says, and is compared.
    To let the search find sizes by itself, pass `T.auto` instead.

    TileError for configurations that are no dictionaries, and where none of them compiles.
    """
    check = Check(ref_prog, supply_prog, supply_type, rtol, atol, max_mismatched_ratio, skip_check, manual_check_prog)

    def decorated(factory: Any) -> Tuned:
        if not hasattr(factory, "__jit_impl__"):
            raise TileError("@tile_eg.autotune stands above @tile_eg.jit, on a function that returns a kernel")
        return Tuned(factory, configs, check)

    return decorated if func is None else decorated(func)
