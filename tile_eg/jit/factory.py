"""Functions that give kernels, as callables: what `jit` was told, and which kernel a call of the function gives."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any
from weakref import WeakSet

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.errors import InOrder, TileError, searchable
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import FIRST, Build, OpenKernel, open_kernel
from tile_eg.jit.any_size import NOTHING, AnySizeKernel, left_to_search, open_names
from tile_eg.jit.arrays import knows_torch
from tile_eg.jit.in_a_row import kernels_in_a_row, refuse_open
from tile_eg.jit.kept import SEARCH, kept_at, searched_at
from tile_eg.jit.switches import check_searched, switched_by, two_streams
from tile_eg.jit.tensors import tensor_kernel
from tile_eg.jit.told import told
from tile_eg.language.kernels import PrimFunc
from tile_eg.ops.records import record
from tile_eg.simulator.limits import CALL, Limits


@record
class Options:
    """What `jit` was told and what matters of it. `makes` gives what is called, of a kernel whose sizes are known."""

    makes: Callable[..., Any]
    out_idx: tuple[int, ...] = ()
    workspace_idx: tuple[int, ...] = ()
    chip: str = DEFAULT_CHIP
    search: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = CALL
    target: Any = "auto"
    passes: Mapping[Any, Any] | None = None
    as_torch: bool = False
    schedule: str | None = None

    def of_target(self, function: PrimFunc) -> PrimFunc:
        """A prim_func as the target reads it, with parameters for the tensors that it allocates: of AscendNPU-IR, what a block
        adds in `T.Kernel(n) as (cid, _)` is added once."""
        from tile_eg.frontend.python import with_global_tensors

        function = with_global_tensors(function)
        return replace(function, once=True) if self.target == "npuir" else function

    def with_made(self, count: int) -> Options:
        """The same options for a function to which so many parameters were added, of tensors that a call makes."""
        out, workspaces = ([i - count if i < 0 else i for i in given] for given in (self.out_idx, self.workspace_idx))
        return replace(self, out_idx=tuple(out), workspace_idx=(*workspaces, *range(-count, 0)))

    def searched(self) -> Options:
        """The same options for a kernel that is searched, whatever its author says of its order."""
        return replace(self, schedule=SEARCH)

    def in_a_row(self) -> Options:
        """The same options for one of several launches, which is given all of its tensors."""
        return replace(self, out_idx=(), workspace_idx=())

    def kernel(self, function: PrimFunc, build: Build) -> Any:
        """The kernel of a prim_func: kept as it is written where it has flags, barriers or scopes, which the switches have to
        suit; one that has its sizes from each call where the shapes of its tensors leave some open."""
        from tile_eg.frontend.expert import in_order, is_kept, searched_or_in_order
        from tile_eg.frontend.python import arguments_of, launches, read, returns_tensors

        if function.made:
            return self.with_made(function.made).kernel(replace(function, made=0), build)
        own = replace(self, as_torch=knows_torch(function.function.__globals__))
        if returns_tensors(function.function, function.names):
            check_searched(self.passes)
            given = [*self.out_idx, *self.workspace_idx]
            return tensor_kernel(function, lambda sizes: searchable(build(sizes)), given, own._placed)
        streams, kept = two_streams(self.passes), is_kept(function)
        if parts := launches(function):
            each = [self.in_a_row().kernel(p, functools.partial(read, p, streams=streams)) for p in parts]
            positions = self.out_idx, self.workspace_idx
            return kernels_in_a_row(function.function.__name__, arguments_of(function), each, positions, own.as_torch)
        make = searched_or_in_order(function, build, streams)
        ordered: Any = None if kept else lambda sizes, why: in_order(function, sizes, why, streams)
        if kept and self.schedule == SEARCH:
            make = functools.partial(searched_at, function, self.passes)
        elif kept:
            make = functools.partial(kept_at, function, switched_by(self.target, self.passes))
        else:
            check_searched(self.passes)
        arguments = arguments_of(function)
        made: Any
        if not open_names(arguments):
            made = own.compiled(tree := make(NOTHING))
            if ordered and not isinstance(tree, OpenKernel):
                made.in_order = functools.partial(ordered, NOTHING)
        else:
            name, positions = function.function.__name__, (self.out_idx, self.workspace_idx)
            made = AnySizeKernel(name, arguments, make, positions, own._placed, self.chip, self.search)
            made.in_order = ordered
        made.searched = lambda: self.searched().kernel(function, build)  # type: ignore[method-assign]
        return made

    def _placed(self, kernel: Kernel | KeptKernel, out_idx: Sequence[int], workspace_idx: Sequence[int]) -> Any:
        return replace(self, out_idx=tuple(out_idx), workspace_idx=tuple(workspace_idx)).compiled(kernel)

    def compiled(self, kernel: Kernel | KeptKernel) -> Any:
        return self.makes(kernel, self.out_idx, self.workspace_idx, self.chip, self.search, self.limits, self.as_torch)


class Factory:
    """A function that gives a prim_func; calling it with sizes gives a `CompiledKernel`, or an `AnySizeKernel` where it leaves
    sizes to each call.

    The search finds the sizes of blocks that are given as `T.auto`, or as "auto". `made` are its kernels that are still used.
    """

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        self.function, self.options = function, options
        self.made = WeakSet[Any]()
        functools.update_wrapper(self, function)

    @property
    def __jit_impl__(self) -> Options:
        """What `jit` was told: `.target`, `.out_idx`."""
        return self.options

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """What is known when a kernel is compiled, by name."""
        return inspect.signature(self.function).parameters

    def decides(self, name: str, given: Mapping[str, Any]) -> bool:
        """Whether a value of this name decides, beside those that are given, which kernel it is."""
        return name in self.parameters

    def searched(self) -> Factory:
        """The same function, whose kernels are searched: those of `schedule="search"`."""
        return Factory(self.function, self.options.searched())

    @told
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = self._kernel(args, kwargs)
        self.made.add(made)
        return made

    def compile(self, *args: Any, **kwargs: Any) -> Any:
        """The kernel for these sizes: what a call gives."""
        return self(*args, **kwargs)

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        """The Ascend C text of the kernel for these sizes."""
        return str(self.compile(*args, **kwargs).get_kernel_source())

    def par_compile(self, configs: Iterable[Any], num_workers: int | None = None, ignore_error: bool = False) -> list[Any]:
        """`compile` for each of some parameters (a tuple, or a dictionary by name), one after the other; with `ignore_error`
        None in place of one that does not compile."""
        return [compiled_one(self, c, ignore_error) for c in configs]

    def _kernel(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
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

        refuse_open(first := at(dict.fromkeys(left, FIRST[0])), left)

        def build(sizes: Mapping[str, Any]) -> Kernel | InOrder:
            return open_kernel(left, lambda found: read(at(found), sizes, streams))

        return self.options.kernel(first, build)

    def _function(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> PrimFunc:
        check_arguments(self.function, args, kwargs)
        made = self.function(*args, **kwargs)
        if not isinstance(made, PrimFunc):
            name = getattr(self.function, "__name__", "the function")
            raise TileError(
                f"{name} is under @tile_eg.jit and gave {type(made).__name__}, not a kernel",
                help="let it return the function under @T.prim_func",
            )
        return self.options.of_target(made)


def compiled_one(factory: Any, config: Any, ignore: bool) -> Any:
    """The kernel for parameters by name, or in their order."""
    try:
        return factory.compile(**config) if isinstance(config, Mapping) else factory.compile(*config)
    except TileError:
        if not ignore:
            raise
        return None


def check_arguments(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """TileError where a function that gives a kernel is called with other arguments than it has."""
    from tile_eg.frontend.python.ways_out import of_arguments

    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as e:
        name = getattr(function, "__name__", "the function")
        raise TileError(f"{name}: {e}", help=of_arguments(name, signature, kwargs)) from None
