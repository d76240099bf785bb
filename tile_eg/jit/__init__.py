"""Kernels as Python callables: `@tile_eg.jit` on functions, `tile_eg.load` for `.tile` files.

Calling a kernel runs the Ascend C that it became in the simulator. Lowered kernels are kept in `cache` while the process
lives (`process_cache`), by what the kernel means and the chip; the texts that a call needs also on disk (`kernel_cache`).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.errors import WITH_OR_WITHOUT_MARK, NotSearched, TileError, attempted, in_source, why_unread
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import AUTO, NoBlocks
from tile_eg.ir.strided import Layouts, laid_out
from tile_eg.jit.any_size import NOTHING, AnySizeKernel, TemplateTexts, nothing_done, told_by_call
from tile_eg.jit.arrays import fitted, give_back, is_torch, of_call, to_numpy
from tile_eg.jit.factory import Factory, Options
from tile_eg.jit.host_side import HostSide
from tile_eg.jit.kept import check_schedule
from tile_eg.jit.located import Locating, LocatingAtSizes
from tile_eg.jit.on_npu import MOST_SHAPES, NpuCalls, on_npu
from tile_eg.jit.passed import OfAnyNumber
from tile_eg.jit.positions import positions_of
from tile_eg.jit.process_cache import asked, cache
from tile_eg.jit.running import check_writable, run_lowered, updated
from tile_eg.jit.switches import asks_exact, check_others, check_passes, chosen_chip, two_streams
from tile_eg.jit.told import told
from tile_eg.jit.unused import with_unused
from tile_eg.jit.workspaces import given_back, made_by_call, without_stores
from tile_eg.language.kernels import PrimFunc
from tile_eg.language.words import user_names
from tile_eg.search import check_names, search_options
from tile_eg.simulator.limits import CALL, Limits

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.frontend.text import Template
    from tile_eg.search.any_size import AnySize, AtSizes
    from tile_eg.search.compiler import Lowered, Run
    from tile_eg.search.kernel_cache import Restored

__all__ = ["KNOWN", "CompiledKernel", "Factory", "Options", "TileKernel", "compile", "jit", "load"]


class CompiledKernel(Locating, HostSide):
    """A kernel whose sizes are known.

    A call takes the arrays of all tensors except those in `out_idx` and `workspace_idx`, in order or by name, and returns the
    tensors of `out_idx`, in that order: one array, or a list. Output tensors that are passed in are filled in place, as far as
    the kernel writes them; a returned one has to be written as a whole, else TileError.
    Arrays are NumPy's or torch's, of the declared dtypes; shapes may differ from the declared ones by dimensions of 1 and by what
    `jit.arrays.as_declared` takes, else TileError; None stands for a tensor that the kernel does not touch. What is returned is
    of the kind that was passed in (torch or NumPy); where nothing was passed in, torch's if `as_torch`.
    """

    def __init__(
        self,
        kernel: Kernel | KeptKernel,
        out_idx: Sequence[int] = (),
        workspace_idx: Sequence[int] = (),
        chip: str = DEFAULT_CHIP,
        search: Mapping[str, Any] = NOTHING,
        limits: Limits = CALL,
        as_torch: bool = False,
    ) -> None:
        self.kernel, self.chip, self.search, self.limits, self.as_torch = kernel, chip, search, limits, as_torch
        with in_source(kernel.source, kernel.file):
            self.out_idx = [made_by_call(i, kernel, "out_idx") for i in out_idx]
            self.workspace_idx = [made_by_call(i, kernel, "workspace_idx") for i in workspace_idx]
        self.for_all_sizes: Callable[[Layouts], AtSizes | None] = lambda layouts: None
        self.in_order: Callable[[TileError], KeptKernel] | None = None
        self.layouts: Layouts = ()
        self.npu = NpuCalls(self)
        unseen = [kernel.tensors[i].name for i in self.workspace_idx]
        self.compiled = kernel if isinstance(kernel, KeptKernel) else without_stores(kernel, unseen)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{t.name}: {t.dtype}{list(t.shape)}" for t in self.kernel.tensors)
        return f"<kernel {self.kernel.name}({shapes})>"

    def searched(self) -> CompiledKernel | AnySizeKernel:
        """The same kernel without its flags, barriers, scopes and addresses, which the search then finds: that of
        `schedule="search"`. TileError where it has no sequential meaning."""
        return self

    @told
    def compile(self, chip: str | None = None, **sizes: int) -> Lowered:
        """The lowered kernel: `.source .schedule .program .cost .memory`. `chip` is a name like "910B2"."""
        if sizes:
            raise TileError(f"{', '.join(sizes)}: the sizes of {self.kernel.name} are fixed by the arguments of its function")
        with in_source(self.kernel.source, self.kernel.file):
            return self._searched_or_in_order(lambda: cache.lowered(*asked(self.compiled, chip or self.chip, self.search)))

    def _searched_or_in_order(self, way: Callable[[], Any]) -> Any:
        """What a search gives; where it has no form for the kernel, the same of the kernel in the order of its statements."""
        found = attempted(way)
        if isinstance(found, NotSearched) and self.in_order is not None and not self.search.get("without"):
            self.kernel = self.compiled = self.in_order(found)
            return way()
        if isinstance(found, TileError):
            raise found
        return found

    def planned(self) -> Lowered | Restored | AtSizes:
        """The program with its texts and its predicted time, from the caches where it is there; of a kernel of any size the text
        that serves all."""
        with in_source(self.kernel.source, self.kernel.file):
            return self._searched_or_in_order(self._planned)

    def _planned(self) -> Lowered | Restored | AtSizes:
        wanted = asked(self.compiled, self.chip, self.search)
        return (None if wanted[2].tuned else self.for_all_sizes(self.layouts)) or cache.planned(*wanted)

    def laid_out(self, layouts: Layouts) -> CompiledKernel:
        """The same kernel for inputs that lie so in larger arrays. TileError where one cannot be read so."""
        if isinstance(self.kernel, KeptKernel):
            raise TileError(f"{self.kernel.name} is kept as it is written, for tensors without gaps")
        assert isinstance(self.compiled, Kernel)
        made = copy(self)
        made.kernel, made.compiled = laid_out(self.kernel, layouts), laid_out(self.compiled, layouts)
        made.layouts, made.npu, made.in_order = layouts, NpuCalls(made), None
        return made

    @told
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with in_source(self.kernel.source, self.kernel.file):
            numbers = {n: kwargs.pop(n) for n in getattr(self.kernel, "numbers", ())}
            values = of_call(self.kernel, {*self.out_idx, *self.workspace_idx}, args, kwargs)
            values = with_unused(self.kernel.tensors, [self.kernel], values)
            return self.npu(values, tuple(numbers.values())) if on_npu(values.values()) else self._run(values, numbers)

    def _run(self, values: Mapping[str, Any], numbers: Mapping[str, float]) -> Any:
        """Runs on arrays by tensor name, and on the numbers that the kernel does not know."""
        arrays = fitted(self.kernel, {name: to_numpy(v, name) for name, v in values.items()})
        run = self.ran({**arrays, **numbers})  # type: ignore[dict-item]
        outputs = [given_back(self.kernel.tensors[i], run, self.kernel) for i in self.out_idx]
        return give_back(outputs, any(map(is_torch, values.values())) if values else self.as_torch)

    def ran(self, arrays: Mapping[str, np.ndarray]) -> Run:
        """A run in the simulator on arrays that fit; those of tensors that the kernel writes are filled."""
        check_writable(self.kernel, arrays)
        run = run_lowered(self.planned(), arrays, self.limits)
        updated(self.kernel, arrays, run)
        return run


class TileKernel(LocatingAtSizes):
    """A `.tile` kernel whose sizes are open: each call takes them from the shapes of its arrays.

    A call takes the arrays and numbers before the `->`, in order or by name, and by name sizes that are to differ from the
    defaults of the text: `gemm(a, b, BM=64)`. It returns the tensors after the `->`.
    """

    def __init__(
        self, template: Template, chip: str = DEFAULT_CHIP, search: Mapping[str, Any] = NOTHING, limits: Limits = CALL
    ) -> None:
        self.template, self.chip, self.search, self.limits = template, chip, search, limits
        self.texts = TemplateTexts(template, chip, search)
        self.numbers = template.numbers
        self.of_any = OfAnyNumber(self.numbers, template.instantiate, lambda sizes: self.with_sizes(**sizes))
        self.made: dict[Hashable, CompiledKernel] = {}

    def __repr__(self) -> str:
        shown = {n: AUTO if n in self.template.searched else v for n, v in self.template.sizes.items()}
        sizes = ", ".join(n if v is None else f"{n}={v}" for n, v in shown.items())
        return f"<kernel {self.template.name}[{sizes}]>"

    @told
    def with_sizes(self, **sizes: int | str) -> CompiledKernel:
        """The kernel with these sizes ("auto": the search finds it), and the text's defaults for the rest."""
        sizes = self.template.with_numbers(sizes)
        kernel = self.template.instantiate(sizes)
        outputs = [i for i, t in enumerate(kernel.tensors) if t.output]
        made = CompiledKernel(kernel, outputs, (), self.chip, self.search, self.limits)
        made.for_all_sizes = lambda layouts: self.texts.of(sizes, layouts).at(sizes, laid_out(kernel, layouts))
        return made

    def for_all_sizes(self, **sizes: int | str) -> AnySize:
        """The kernel compiled once for all sizes that have no default, but those that are given. TileError with why not."""
        return self.texts.compiled(self.template.with_numbers(sizes))

    @told
    def compile(self, chip: str | None = None, **sizes: int | str) -> Lowered:
        """The lowered kernel: `.source .schedule .program .cost .memory`. `chip` is a name like "910B2"."""
        return self.with_sizes(**sizes).compile(chip)

    @told
    def get_kernel_source(self, **sizes: int | str) -> str:
        """The Ascend C text; floats that are not given are its arguments, where nothing needs to know them."""
        return self.with_sizes(**self.of_any.left_open(sizes, ())).get_kernel_source()

    def arrays_and_sizes(self, args: Any, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arrays of a call by name, and the sizes that they, or the call, tell."""
        return told_by_call(self.template, args, kwargs)

    @told
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        by_shapes = not kwargs and not self.numbers
        key: Hashable = tuple([getattr(a, "shape", None) for a in args]) if by_shapes else None
        if key in self.made:
            return self.made[key](*args)
        arrays, sizes = self.arrays_and_sizes(args, kwargs)
        try:
            kernel, numbers = self.of_any.of_call(sizes)
        except NoBlocks as empty_grid:
            outputs = [i for i, t in enumerate(empty_grid.tensors) if t.output]
            return nothing_done(empty_grid.tensors, outputs, arrays)
        self.made |= {key: kernel} if by_shapes and len(self.made) < MOST_SHAPES else {}
        return kernel(**arrays, **numbers)


@told
def load(
    path: str | Path,
    chip: str = DEFAULT_CHIP,
    *,
    seconds: float = CALL.seconds,
    memory: int = CALL.bytes,
    **search: Any,
) -> TileKernel:
    """The kernel of a `.tile` file; nothing in the file is executed. TileError if it cannot be read or is not a kernel.

    A call of the kernel may take `seconds` of processor time and `memory` bytes in the simulator.

    `search` are options as `tile_eg.search.search_options` takes them: `effort="full"`, `exact_math=True`, `rules`, `without`.
    """
    from tile_eg.frontend.text import load_text

    if Path(path).suffix == ".py":
        raise TileError(f"{path} is Python, and load reads .tile text", help="import the function under @tile_eg.jit from it")
    try:
        text = Path(path).read_text(encoding=WITH_OR_WITHOUT_MARK)
    except (OSError, UnicodeDecodeError) as e:
        raise TileError(f"cannot read {path}: {why_unread(e)}") from e
    check_names(search)
    search_options(**search)
    return TileKernel(load_text(text, str(Path(path).absolute())), chip, search, Limits(seconds, memory))


@told
def jit(
    function: Any = None,
    *,
    out_idx: int | Sequence[int] | None = None,
    workspace_idx: int | Sequence[int] | None = None,
    target: Any = None,
    platform: Any = None,
    pass_configs: Mapping[Any, Any] | None = None,
    chip: str | None = None,
    effort: str = "quick",
    exact_math: bool = False,
    rules: Iterable[str | Path] = (),
    without: Iterable[str] = (),
    cost_model: str | None = None,
    deterministic: bool = False,
    untuned: bool = False,
    schedule: str | None = None,
    seconds: float = CALL.seconds,
    memory: int = CALL.bytes,
    **others: Any,
) -> Any:
    """Makes a kernel of a prim_func, of a function that returns expressions of its T.Tensor arguments, or of what a function
    of sizes returns; with or without parentheses.

    `out_idx` are the positions of the tensors that a call returns, `workspace_idx` those of the tensors that it allocates
    itself; negative ones count from the end. `chip` is where the kernel runs (910B2); TileLang's `target` and `platform` may
    name it too.

    Options of the search: `effort` ("none", "quick", "full"); `exact_math`; `rules` (files or texts); `without` (names of rules
    and moves); `cost_model` (a name, or "module:Class"); `deterministic` (no sums of floats in an order that changes from run
    to run); `untuned` (what `tile_eg.tune` found is not used).

    A kernel with flags, barriers, scopes or addresses is kept as it is written; `schedule="search"` searches it without them,
    if it has a sequential meaning. A call may take `seconds` of processor time and `memory` bytes in the simulator.
    `pass_configs` and further options of TileLang's are taken if they ask for what is done anyway (`tile_eg.jit.switches`),
    and refused otherwise.

    TileError for an option that is unknown or refused.
    """
    check_passes(pass_configs)
    check_others(others, KNOWN)
    exact_math = exact_math or asks_exact(pass_configs)
    search: dict[str, Any] = {"effort": effort, "exact_math": exact_math, "rules": tuple(rules), "without": tuple(without)}
    search |= {"cost_model": cost_model, "deterministic": deterministic, "untuned": untuned}
    check_schedule(schedule)
    search_options(**search)  # what is wrong with them is told here, not at the first call
    target_chip = chosen_chip(chip, target, platform)
    positions = positions_of(out_idx, "out_idx"), positions_of(workspace_idx, "workspace_idx")
    limits = Limits(seconds, memory)
    options = Options(CompiledKernel, *positions, target_chip, search, limits, target or "auto", pass_configs, schedule=schedule)
    jitted = functools.partial(_jitted, options=options, names=user_names())
    return told(jitted) if function is None else jitted(function)


def _jitted(function: Any, options: Options, names: Mapping[str, Any]) -> Any:
    from tile_eg.frontend.python import eager, read, takes_tensors
    from tile_eg.jit.eager import EagerKernel

    if takes_tensors(function, names):
        function = PrimFunc(function, dict(names))
    if isinstance(function, PrimFunc):
        function = options.of_target(function)
        return options.kernel(function, lambda sizes: read(function, sizes, two_streams(options.passes)))
    if callable(function):
        launches = eager(function, names)
        return EagerKernel(launches, options) if launches else Factory(function, options)
    raise TileError(f"@tile_eg.jit stands on a function, not on {type(function).__name__}")


@told
def compile(  # noqa: A001
    func: Any = None, out_idx: Any = None, workspace_idx: Any = None, **options: Any
) -> CompiledKernel | AnySizeKernel:
    """The compiled kernel of a function under `@T.prim_func`. Sizes that its tensors leave open are taken from each call;
    `options` are those of `jit`. TileError for anything else."""
    if not isinstance(func, PrimFunc):
        help = "a function of sizes gets @tile_eg.jit, and compiles when it is called"
        raise TileError(f"compile takes a function under @T.prim_func, not a {type(func).__name__}", help=help)
    made: CompiledKernel | AnySizeKernel = jit(func, out_idx=out_idx, workspace_idx=workspace_idx, **options)
    return made


KNOWN = tuple(inspect.signature(jit).parameters)[1:-1]
"""The options of `jit` by name."""


class _CallableModule(ModuleType):
    """Once this module is imported, `tile_eg.jit` is the module: it has to stay the decorator."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return jit(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
