"""Kernels as Python callables: `@tile_eg.jit` on functions, `tile_eg.load` for `.tile` files.

Calling a kernel runs the Ascend C that it became in the simulator. Lowered kernels are kept in `cache` while the process
lives (`process_cache`), by what the kernel means and the chip; the texts that a call needs also on disk (`kernel_cache`).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.errors import InOrder, TileError, searchable
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import FIRST, Build, open_kernel
from tile_eg.jit.any_size import NOTHING, AnySizeKernel, left_to_search, open_names
from tile_eg.jit.arrays import knows_torch
from tile_eg.jit.compiled import CompiledKernel
from tile_eg.jit.kept import SEARCH, check_schedule, kept_at, searched_at
from tile_eg.jit.positions import positions_of
from tile_eg.jit.switches import check_others, check_passes, check_searched, chosen_chip, two_streams
from tile_eg.jit.tensors import tensor_kernel
from tile_eg.jit.tile_file import TileKernel, load
from tile_eg.jit.told import told
from tile_eg.language.kernels import PrimFunc
from tile_eg.language.words import user_names
from tile_eg.search import search_options
from tile_eg.simulator.limits import CALL, Limits

__all__ = ["KNOWN", "CompiledKernel", "Factory", "Options", "TileKernel", "compile", "jit", "load"]


@dataclass(frozen=True)
class Options:
    """What `jit` was told and what matters of it."""

    out_idx: tuple[int, ...] = ()
    workspace_idx: tuple[int, ...] = ()
    chip: str = DEFAULT_CHIP
    search: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = CALL
    target: Any = "auto"
    passes: Mapping[Any, Any] | None = None
    as_torch: bool = False
    schedule: str | None = None

    def searched(self) -> Options:
        """The same options for a kernel that is searched, whatever its author says of its order."""
        return replace(self, schedule=SEARCH)

    def kernel(self, function: PrimFunc, build: Build) -> CompiledKernel | AnySizeKernel:
        """The kernel of a prim_func: kept as it is written where it has flags, barriers or scopes, which the switches have to
        suit; one that has its sizes from each call where the shapes of its tensors leave some open."""
        from tile_eg.frontend.expert import is_kept, searched_or_in_order
        from tile_eg.frontend.python import arguments_of, returns_tensors

        own = replace(self, as_torch=knows_torch(function.function.__globals__))
        if returns_tensors(function.function, function.names):
            check_searched(self.passes)
            given = [*self.out_idx, *self.workspace_idx]
            return tensor_kernel(function, lambda sizes: searchable(build(sizes)), given, own._placed)
        make, kept = searched_or_in_order(function, build, two_streams(self.passes)), is_kept(function)
        if kept and self.schedule == SEARCH:
            make = functools.partial(searched_at, function, self.passes)
        elif kept:
            make = functools.partial(kept_at, function, self.passes)
        else:
            check_searched(self.passes)
        arguments = arguments_of(function)
        made: CompiledKernel | AnySizeKernel
        if not open_names(arguments):
            made = own.compiled(make(NOTHING))
        else:
            name, positions = function.function.__name__, (self.out_idx, self.workspace_idx)
            made = AnySizeKernel(name, arguments, make, positions, own._placed, self.chip, self.search)
        made.searched = lambda: self.searched().kernel(function, build)  # type: ignore[method-assign]
        return made

    def _placed(self, kernel: Kernel | KeptKernel, out_idx: Sequence[int], workspace_idx: Sequence[int]) -> CompiledKernel:
        return replace(self, out_idx=tuple(out_idx), workspace_idx=tuple(workspace_idx)).compiled(kernel)

    def compiled(self, kernel: Kernel | KeptKernel) -> CompiledKernel:
        made = self.out_idx, self.workspace_idx, self.chip, self.search, self.limits, self.as_torch
        return CompiledKernel(kernel, *made)


class Factory:
    """A function that gives a prim_func; calling it with sizes gives a `CompiledKernel`, or an `AnySizeKernel` where it leaves
    sizes to each call.

    The search finds the sizes of blocks that are given as `T.auto`, or as "auto".
    """

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        self.function, self.options = function, options
        functools.update_wrapper(self, function)

    @property
    def __jit_impl__(self) -> Options:
        """What `jit` was told: `.target`, `.out_idx`."""
        return self.options

    def searched(self) -> Factory:
        """The same function, whose kernels are searched: those of `schedule="search"`."""
        return Factory(self.function, self.options.searched())

    @told
    def __call__(self, *args: Any, **kwargs: Any) -> CompiledKernel | AnySizeKernel:
        from tile_eg.frontend.python import read

        left, streams = left_to_search(self.function, args, kwargs), two_streams(self.options.passes)
        if not left:
            function = self._function(args, kwargs)
            return self.options.kernel(function, lambda sizes: read(function, sizes, streams))
        positions = dict(zip(inspect.signature(self.function).parameters, range(len(args)), strict=False))

        def at(found: Mapping[str, int]) -> PrimFunc:
            filled = list(args)
            for name in found.keys() & positions.keys():
                filled[positions[name]] = found[name]
            return self._function(filled, {**kwargs, **{n: v for n, v in found.items() if n not in positions}})

        def build(sizes: Mapping[str, Any]) -> Kernel | InOrder:
            return open_kernel(left, lambda found: read(at(found), sizes, streams))

        return self.options.kernel(at(dict.fromkeys(left, FIRST[0])), build)

    def _function(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> PrimFunc:
        made = self.function(*args, **kwargs)
        if not isinstance(made, PrimFunc):
            name = getattr(self.function, "__name__", "the function")
            raise TileError(
                f"{name} is under @tile_eg.jit and gave {type(made).__name__}, not a kernel",
                help="let it return the function under @T.prim_func",
            )
        return made


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

    `out_idx` are the positions of the tensors that a call gives back, `workspace_idx` of those that it makes for itself;
    negative ones count from the end. `chip` is where it runs (910B2); TileLang's `target` and `platform` may name it too.
    `effort` ("none", "quick", "full"), `exact_math`, `rules` (files or texts), `without` (names of rules) and `cost_model` (a
    name, or "module:Class"), `deterministic` (no sums of floats in an order that changes from run to run) and `untuned` (what
    `tile_eg.tune` found is left aside) are options of the search. `schedule="search"` reads a kernel with flags, barriers, scopes
    and addresses without them, where it has a sequential meaning; else such a kernel is kept as it is written. `seconds` of
    processor time and bytes of `memory` are what a call may take in the simulator. `pass_configs` and further options of
    TileLang's are taken where they ask for what is so here (`tile_eg.jit.switches`), and refused otherwise.

    TileError for an option that is unknown or refused.
    """
    check_passes(pass_configs)
    check_others(others, KNOWN)
    search: dict[str, Any] = {"effort": effort, "exact_math": exact_math, "rules": tuple(rules), "without": tuple(without)}
    search |= {"cost_model": cost_model, "deterministic": deterministic, "untuned": untuned}
    check_schedule(schedule)
    search_options(**search)  # what is wrong with them is told here, not at the first call
    target_chip = chosen_chip(chip, target, platform)
    positions = positions_of(out_idx, "out_idx"), positions_of(workspace_idx, "workspace_idx")
    options = Options(*positions, target_chip, search, Limits(seconds, memory), target or "auto", pass_configs, schedule=schedule)
    jitted = functools.partial(_jitted, options=options, names=user_names())
    return told(jitted) if function is None else jitted(function)


def _jitted(function: Any, options: Options, names: Mapping[str, Any]) -> CompiledKernel | AnySizeKernel | Factory:
    from tile_eg.frontend.python import read, takes_tensors

    if takes_tensors(function, names):
        function = PrimFunc(function, dict(names))
    if isinstance(function, PrimFunc):
        return options.kernel(function, lambda sizes: read(function, sizes, two_streams(options.passes)))
    if callable(function):
        return Factory(function, options)
    raise TileError(f"@tile_eg.jit stands on a function, not on {type(function).__name__}")


@told
def compile(  # noqa: A001
    func: Any = None, out_idx: Any = None, workspace_idx: Any = None, **options: Any
) -> CompiledKernel | AnySizeKernel:
    """The compiled kernel of a function under `@T.prim_func`, which takes from each call the sizes that its tensors leave open;
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
