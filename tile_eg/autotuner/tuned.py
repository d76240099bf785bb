"""`tune` and `autotune`: the fastest of the search's own candidates; or the best of an author's configurations."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError, did_you_mean
from tile_eg.jit import CompiledKernel, Factory, TileKernel
from tile_eg.jit.any_size import AnySizeKernel
from tile_eg.jit.eager import EagerKernel
from tile_eg.jit.in_a_row import LaunchesInARow
from tile_eg.jit.on_npu import NpuCalls
from tile_eg.jit.process_cache import asked
from tile_eg.jit.profiling import Profiler, TensorSupplyType, as_array, supplied
from tile_eg.jit.told import told
from tile_eg.ops.records import record

if TYPE_CHECKING:
    from tile_eg.ir.kernel import Tensor
    from tile_eg.tuning import Tuning

Config = Mapping[str, Any]
_inputs: ContextVar[tuple[Any, ...] | None] = ContextVar("inputs", default=None)


@contextmanager
def set_autotune_inputs(*inputs: Any) -> Iterator[None]:
    """Within it, configurations are compared on these arrays, several or one list of them: timed on an NPU, and held against the
    reference. A predicted time does not depend on them."""
    given = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], list | tuple) else inputs
    token = _inputs.set(tuple(given))
    try:
        yield
    finally:
        _inputs.reset(token)


@record
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

    def inputs(self, tensors: Sequence[Tensor]) -> list[Any]:
        """What a kernel with these inputs is called with. TileError for more arrays than it has inputs, or fewer."""
        found = _inputs.get()
        if found is None and self.supply_prog is None:
            return [supplied(t, self.supply_type) for t in tensors]
        given = list(found if found is not None else self.supply_prog(tensors))  # type: ignore[misc]
        if len(given) != len(tensors):
            names = ", ".join(t.name for t in tensors)
            raise TileError(f"autotune: {len(given)} arrays are given for {len(tensors)} inputs", help=f"it takes {names}")
        return given

    def run(self, kernel: Any) -> None:
        """AssertionError where the kernel's result is not the reference's."""
        if self.skip or self.ref_prog is None:
            return None
        profiler = Profiler(kernel, self.supply_type)
        chosen = self.supply_prog is not None or _inputs.get() is not None
        given = self.inputs(profiler.tensors) if chosen else None
        if self.manual is not None:
            return profiler.manual_assert_close(self.ref_prog, given, self.manual)
        return profiler.assert_allclose(self.ref_prog, given, self.atol, self.rtol, self.max_mismatched_ratio)


@dataclass
class Tuned:
    """A function of sizes with configurations: a call that leaves them open takes the fastest one. Without configurations the
    kernel of each call is tuned (`tune`), unless that was done before; `options` are those of `tune`. On an NPU a configuration
    has so many `launches` to warm up, and to be timed."""

    factory: Any
    configs: Any
    check: Check
    launches: tuple[int, int] = (25, 100)
    options: Mapping[str, Any] = field(default_factory=dict)
    chosen: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def __jit_impl__(self) -> Any:
        return self.factory.__jit_impl__

    @told
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kernel = self.compile(*args, **kwargs)
        return self.factory.called(kernel, args, kwargs) if isinstance(self.factory, EagerKernel) else kernel

    @told
    def compile(self, *args: Any, **kwargs: Any) -> Any:
        """The kernel with the fastest configuration; what a call gives, or, of a function that launches blocks itself, runs."""
        if self.configs is None:
            return self._tuned(args, kwargs)
        configs = self._configs(args, kwargs)
        if self._given(configs[0], args, kwargs):
            return self.factory.compile(*args, **kwargs)
        asked = self._asked(args, kwargs)
        if asked not in self.chosen:
            self.chosen[asked] = self._best(configs, args, kwargs)
        return self.chosen[asked]

    def _asked(self, args: Sequence[Any], kwargs: Config) -> Any:
        """A call, as a key; of arrays their shapes."""
        return self.factory.asked(args, kwargs) if isinstance(self.factory, EagerKernel) else repr((args, sorted(kwargs.items())))

    def _tuned(self, args: Sequence[Any], kwargs: Config) -> Any:
        """The kernel with the schedule that tuning found for it, now or before."""
        key = self._asked(args, kwargs)
        if key in self.chosen:
            return self.chosen[key]
        kernel = self.factory.compile(*args, **kwargs)
        if isinstance(kernel, AnySizeKernel):
            sizes = ", ".join(f"{n}=..." for n in kernel.open)
            raise TileError(f"{kernel.name} has its sizes from each call, and is tuned at some", help=f"tile_eg.tune(k, {sizes})")
        found: Any = asked(kernel.compiled, kernel.chip, kernel.search)[2].tuned or tune(kernel, **self.options).best
        if found is None:
            raise TileError(f"tuning found no candidate of {kernel.kernel.name} that is right and was timed")
        kernel.update_tuner_result(found.microseconds / 1000, dict(found.sizes), None)
        self.check.run(kernel)
        self.chosen[key] = kernel
        return kernel

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
        """The fastest kernel, the first of equals; TileError where none of them compiles."""
        best: tuple[float, Any, Config] | None = None
        first: TileError | None = None
        for config in configs:
            try:
                kernel = self.factory.compile(*args, **kwargs, **config)
                time = _milliseconds(kernel, self.check, *self.launches)
            except TileError as error:
                first = first or error
                continue
            if best is None or time < best[0]:
                best = time, kernel, config
        if best is None:
            assert first is not None
            note = f"none of the {len(configs)} configurations compiles and can be timed; this is why the first is left out"
            first.notes = (*first.notes, (note, None))
            raise first
        time, kernel, config = best
        kernel.update_tuner_result(time, dict(config), None)
        self.check.run(kernel)
        return kernel


def _milliseconds(kernel: Any, check: Check, warmup: int, launches: int) -> float:
    """The time of a launch: measured on a machine with CANN, as `tile-eg bench` does, else predicted."""
    from tile_eg.npu.cann import installed

    if not installed():
        return float(kernel.predicted_ms)
    from tile_eg.ir.arrays import begun
    from tile_eg.npu.bench import OnNpu

    tensors, total = Profiler(kernel).tensors, 0.0
    given = {t.name: as_array(x) for t, x in zip(tensors, check.inputs(tensors), strict=True)}
    for one in kernel.launches if isinstance(kernel, LaunchesInARow) else [kernel]:
        planned = one.planned()
        between = [t for t in planned.program.tensors if not t.output and t.name not in given]
        begin = given | {t.name: supplied(t, check.supply_type) for t in between}
        on_npu = OnNpu(planned, {t.name: begun(t, begin) for t in planned.program.tensors})
        total += on_npu.measure(launches, warmup).median / 1000
    return total


def autotune(
    func: Any = None,
    *,
    configs: Any = None,
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
    **options: Any,
) -> Any:
    """Over `@tile_eg.jit`: a call that leaves the parameters in `configs` open compiles the kernel for each of them, and
    gives the one of the least time; those that do not compile are left out. `get_tuner_result()` of it has the time in ms.
    Where `configs` is a function, it gets the call's arguments: a tuple, and a tuple of (name, value) pairs.

    Without `configs` the search's own candidates are tried, as `tune` does it: for sizes that are `T.auto` at several numbers.
    `options` are those of `tune` (`budget`, `device`, `dask`, ...). What was found is used by the calls after it, and by the
    next process.

    On a machine with CANN `rep` launches of each configuration are timed after `warmup` others, on the inputs of `supply_prog`,
    or on inputs as `supply_type` says; elsewhere the time is predicted. `timeout` (in seconds) has no effect, as no launch is
    cut off, nor have TileLang's `backend`, `early_stop` and the like (`NO_EFFECT`). With a `ref_prog`, the chosen kernel runs
    once in the simulator on these inputs, and is compared with it.
    TileError for configurations that are no dictionaries, and where none of them compiles.
    """
    options = {n: v for n, v in options.items() if configs is None or n not in NO_EFFECT}
    if known := [n for n in options if n not in OPTIONS or configs is not None]:
        help = did_you_mean(known[0], OPTIONS) if configs is None else "it goes without configs, which are all tried"
        raise TileError(f"autotune has no option {known[0]!r} here", help=help)
    check = Check(ref_prog, supply_prog, supply_type, rtol, atol, max_mismatched_ratio, skip_check, manual_check_prog)

    def decorated(factory: Any) -> Tuned:
        if not hasattr(factory, "__jit_impl__"):
            raise TileError("@tile_eg.autotune stands above @tile_eg.jit, on a function that returns a kernel")
        return Tuned(factory, configs, check, (warmup, rep), options)

    return decorated if func is None else decorated(func)


@told
def tune(
    kernel: Any,
    *,
    budget: int = 200,
    chip: str | None = None,
    device: str | None = None,
    workers: int = 1,
    dask: str | None = None,
    resume: bool = False,
    sample: int = 8,
    launches: int = 100,
    warmup: int = 10,
    effort: str = "full",
    **sizes: Any,
) -> Tuning:
    """Tries the search's own candidates of a kernel, at several numbers for sizes that are left open, and keeps the fastest in
    `FILE.tuned.json` beside the kernel's file, whence calls take it from then on, on this chip at these sizes.

    `kernel` is what `load` or `jit` gave, `sizes` are those that it leaves to each call, or parameters of its function. What is
    found serves all numbers of a call that the kernel need not know, given or not. `budget`
    is in candidates; `device` "npu" or "timeline" (default: an NPU where there is one); `workers` are processes of this machine,
    `dask` is the address of a cluster's scheduler. `sample` tiles of the grid are compared (0: all), `launches` are timed.
    Ctrl-C ends it with the best so far, which its result says (`interrupted`); `resume` goes on from there.

    TileError for a kernel in which nothing can be chosen, and for options that do not fit.
    """
    from tile_eg.search import search_options
    from tile_eg.tuning import Asked, Watch
    from tile_eg.tuning import tune as tuned
    from tile_eg.tuning.progress import progress

    one = _at(kernel, sizes)
    asked_for = Asked(budget, device, workers, dask, resume, sample, 0, launches, warmup)
    search = search_options(**{**one.search, "effort": effort})
    with progress(budget, lambda text: print(text, file=sys.stderr)) as (seen, tell):
        found = tuned(one.compiled, chip or one.chip, search, asked_for, Watch(tell, seen))
    for each in (kernel, one):
        _forget(each)
    return found


NO_EFFECT = (
    "use_pipeline", "enable_grouped_compile", "group_compile_size", "benchmark_devices", "benchmark_multi_gpu", "early_stop",
    "early_stop_factor", "backend",
)  # fmt: skip
"""Options of TileLang's that say how a GPU's launches are timed and compiled side by side; they change no choice here."""
OPTIONS = ("budget", "chip", "device", "workers", "dask", "resume", "sample", "launches", "warmup", "effort")
"""The options of `tune`."""


def _at(kernel: Any, sizes: Mapping[str, Any]) -> CompiledKernel:
    """A kernel at these sizes. TileError for what is none, and for sizes that it has not."""
    if isinstance(kernel, Tuned):
        kernel = kernel.factory
    if isinstance(kernel, Factory):
        kernel, sizes = kernel.compile(**sizes), {}
    if isinstance(kernel, TileKernel | AnySizeKernel):
        open_ = kernel.sizes if isinstance(kernel, AnySizeKernel) else ()
        made: CompiledKernel = kernel.with_sizes(**kernel.of_any.of_each_call(sizes, open_))
        return made
    if not isinstance(kernel, CompiledKernel):
        help = "what tile_eg.load gives, or a function under @tile_eg.jit"
        raise TileError(f"tune takes a kernel, not a {type(kernel).__name__}", help=help)
    if sizes:
        raise TileError(f"{kernel.kernel.name} has no sizes left: {', '.join(sizes)}")
    return kernel


def _forget(kernel: Any) -> None:
    """Lets the next call of a kernel look for what was tuned."""
    if isinstance(kernel, TileKernel):
        kernel.made.clear()
    if isinstance(kernel, AnySizeKernel):
        kernel.made.clear()
        kernel.by_shapes.clear()
    if isinstance(kernel, CompiledKernel):
        kernel.npu = NpuCalls(kernel)
