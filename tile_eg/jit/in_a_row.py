"""Functions that launch several kernels: a call runs them one behind the other, on the same arrays."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from tile_eg.errors import TileError, TileWarning, in_source
from tile_eg.ir.arrays import as_given, numpy_dtype
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel, Tensor, added_to
from tile_eg.ir.open_kernel import NoBlocks
from tile_eg.jit.any_size import NOTHING, AnySizeKernel, open_names
from tile_eg.jit.arrays import fitted, give_back, is_torch, of_call, to_numpy
from tile_eg.jit.host_side import HostSide
from tile_eg.jit.on_npu import new_empty, on_npu
from tile_eg.jit.running import check_writable
from tile_eg.jit.told import levels, told
from tile_eg.jit.unused import with_unused
from tile_eg.jit.workspaces import made_by_call
from tile_eg.language.symbols import at_sizes
from tile_eg.ops.records import record

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.frontend.python import Argument


@record
class Row:
    """What a function with several launches is, without the launches: its name, its tensors, and the text that it stands in.

    `zeroed` are tensors to which the first launch that has them adds, also where it has no block at these sizes;
    `numbers` are those of the launches that have one.
    """

    name: str
    tensors: Sequence[Tensor]
    source: str = ""
    file: str = ""
    zeroed: frozenset[str] = frozenset()
    numbers: Sequence[int] = ()


class LaunchesInARow(HostSide):
    """Kernels that one function launches one behind the other, at known sizes. `launches` are they, each of some of its tensors.

    A call takes and gives what that of a `CompiledKernel` does: tensors of `out_idx` and `workspace_idx` are made by it, may be
    written by one launch and read by a later one.
    """

    compiled = None
    in_order = None

    def __init__(self, kernel: Row, launches: Sequence[Any], positions: tuple[Sequence[int], ...], as_torch: bool) -> None:
        self.kernel, self.launches, self.as_torch = kernel, launches, as_torch
        with in_source(kernel.source, kernel.file):
            self.out_idx, self.workspace_idx = (
                [made_by_call(i, kernel, what) for i in given]  # type: ignore[arg-type]
                for given, what in zip(positions, ("out_idx", "workspace_idx"), strict=True)
            )

    def __repr__(self) -> str:
        shapes = ", ".join(f"{t.name}: {t.dtype}{list(t.shape)}" for t in self.kernel.tensors)
        return f"<{len(self.launches)} launches {self.kernel.name}({shapes})>"

    @property
    def made(self) -> list[Tensor]:
        """The tensors that a call makes."""
        return [self.kernel.tensors[i] for i in sorted({*self.out_idx, *self.workspace_idx})]

    def searched(self) -> LaunchesInARow:
        """The same launches without what their author says of their order."""
        positions = self.out_idx, self.workspace_idx
        return LaunchesInARow(self.kernel, [k.searched() for k in self.launches], positions, self.as_torch)

    @told
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with in_source(self.kernel.source, self.kernel.file):
            values = of_call(self.kernel, {*self.out_idx, *self.workspace_idx}, args, kwargs)
            values = with_unused(self.kernel.tensors, [k.kernel for k in self.launches], values)
            return self._on_npu(values) if on_npu(values.values()) else self._run(values)

    def _run(self, values: Mapping[str, Any]) -> Any:
        arrays = fitted(self.kernel, {name: to_numpy(v, name) for name, v in values.items()})  # type: ignore[arg-type]
        check_writable(self.kernel, arrays)  # type: ignore[arg-type]
        made = _Made(self)
        for number, kernel in zip(self.kernel.numbers, self.launches, strict=True):
            made.run(number, kernel, arrays)
        outputs = [made.given_back(self.kernel.tensors[i]) for i in self.out_idx]
        return give_back(outputs, any(map(is_torch, values.values())) if values else self.as_torch)

    def _on_npu(self, values: Mapping[str, Any]) -> Any:
        like, arrays, zeroed = next(iter(values.values())), dict(values), begins_with_zeros(self)
        for t in self.made:
            arrays[t.name] = new_empty(like, t.shape, t)
            if t.name in zeroed:
                arrays[t.name].zero_()
        for kernel in self.launches:
            kernel(**{t.name: arrays[t.name] for t in kernel.kernel.tensors})
        outputs = [arrays[self.kernel.tensors[i].name] for i in self.out_idx]
        return outputs[0] if len(outputs) == 1 else outputs or None

    @told
    def get_kernel_source(self) -> str:
        """The Ascend C text of all launches, as one file."""
        from tile_eg.search.in_a_row import in_one_file

        return in_one_file([str(k.planned().source) for k in self.launches])

    @told
    def get_host_source(self) -> str:
        """The C++ that launches the kernels under CANN, one behind the other. TileError where one is compiled for all sizes."""
        from tile_eg.search.in_a_row import host_in_a_row

        planned = [k.planned() for k in self.launches]
        if any(p.program.sizes for p in planned):
            message = f"the launches of {self.kernel.name} are compiled for all sizes, and have no host part in common"
            raise TileError(message, help="each has its own: kernel.launches[0].get_host_source()")
        names = [t.name for t in self.kernel.tensors]
        return host_in_a_row(self.kernel.name, [p.program for p in planned], [str(p.host) for p in planned], names)

    @property
    @told
    def predicted_ms(self) -> float:
        """Milliseconds of all launches, as the timeline predicts each of them."""
        return sum(k.predicted_ms for k in self.launches)  # type: ignore[no-any-return]

    @told
    def compile(self, *args: Any, **sizes: Any) -> NoReturn:
        """TileError: each launch is compiled for itself."""
        raise _of_one(self.kernel.name, "compile()")

    @told
    def where(self, *args: Any, **kwargs: Any) -> NoReturn:
        """TileError: a difference is looked for in one launch."""
        raise _of_one(self.kernel.name, "where(...)")

    def planned(self) -> NoReturn:
        raise _of_one(self.kernel.name, "planned()")


def _of_one(name: str, asked: str) -> TileError:
    return TileError(f"{name} has several launches, and this is of one", help=f"kernel.launches[0].{asked} is of the first one")


class _Made:
    """The tensors that a call in the simulator makes: what of them is not written yet."""

    def __init__(self, row: LaunchesInARow) -> None:
        import numpy as np

        from tile_eg.ir.arithmetic import nothing

        zeroed = begins_with_zeros(row)
        self.arrays: dict[str, np.ndarray] = {}
        self.left: dict[str, np.ndarray] = {}
        for t in row.made:
            dtype = numpy_dtype(t.dtype)
            self.arrays[t.name] = np.full(t.shape, 0 if t.name in zeroed else nothing(dtype), dtype)
            self.left[t.name] = np.full(t.shape, t.name not in zeroed)

    def run(self, number: int, kernel: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Runs a launch, on the arrays of a call and those that are made."""
        import numpy as np

        tensors = kernel.kernel.tensors
        for t in tensors:
            if t.name in self.left and (not t.output or t.given):
                self._check_written(number, t)
        new = {t.name for t in tensors if t.output and t.name in self.left and self.left[t.name].all()}
        there = {**arrays, **self.arrays}
        run = kernel.ran({t.name: there[t.name] for t in tensors if t.name not in new})
        for t in tensors:
            if t.output and t.name in self.left:
                unwritten = run.unwritten.get(t.name, np.False_)
                if t.name in new:
                    np.copyto(self.arrays[t.name], run[t.name], where=~unwritten)
                self.left[t.name] &= unwritten

    def _check_written(self, number: int, t: Tensor) -> None:
        """A warning where a launch reads a tensor of which no launch has written all: the rest is NaN. TileError for whole
        numbers."""
        if (left := self.left[t.name]).any():
            from tile_eg.simulator.unwritten import unwritten_text

            text = f"launch {number} reads {t.name}, but {unwritten_text(t.name, left)}"
            if t.dtype.whole:
                raise TileError(text, t.span, help=f"fill all of {t.name} in a launch before")
            warnings.warn(f"{text}: they are NaN, and on a chip whatever was there", TileWarning, stacklevel=levels())

    def given_back(self, t: Tensor) -> np.ndarray:
        if self.left[t.name].any():
            from tile_eg.simulator.unwritten import unwritten_text

            text = unwritten_text(t.name, self.left[t.name])
            raise TileError(text, t.span, help=f"store to all of {t.name}, or declare it no larger")
        return as_given(t, self.arrays[t.name])


def begins_with_zeros(row: LaunchesInARow) -> set[str]:
    """The tensors that a call makes and to which the first launch that has them adds."""
    return {t.name for t in row.made} & row.kernel.zeroed


def _first_added_to(kernels: Sequence[Kernel | KeptKernel], names: Iterable[str]) -> set[str]:
    """Of the tensors of these names those to which the first kernel that has them adds."""
    first = {t.name: k for k in reversed(kernels) for t in k.tensors}
    return {n for n in names if isinstance(k := first.get(n), Kernel) and n in added_to(k)}


class AnySizeLaunches(AnySizeKernel):
    """Launches in a row that take their sizes from each call. `each` are the kernels, some of which may have their sizes."""

    each: Sequence[Any] = ()

    @property
    def launches(self) -> Sequence[Any]:
        """The kernels, each of which may have its sizes from each call."""
        return self.each

    def get_kernel_source(self, **sizes: Any) -> str:
        """The Ascend C text of all launches as one file: that for all sizes, where some are not given."""
        from tile_eg.search.in_a_row import in_one_file

        if set(self.open) <= sizes.keys():
            return str(self.with_sizes(**sizes).get_kernel_source())
        self._check_names(sizes)
        own = [{n: v for n, v in sizes.items() if n in getattr(k, "open", ())} for k in self.each]
        return in_one_file([k.get_kernel_source(**s) for k, s in zip(self.each, own, strict=True)])

    def get_host_source(self, **sizes: Any) -> str:
        """The C++ that launches the kernels at these sizes. TileError where one of them is compiled for all sizes."""
        return str(self.with_sizes(**sizes).get_host_source())

    def searched(self) -> Any:
        """The same launches without what their author says of their order."""
        positions = self.outputs, self.workspaces
        return _any_size(self.name, self.arguments, [k.searched() for k in self.each], positions, self.compiled)

    def text_of(self, layouts: Any = (), passed: Any = ()) -> NoReturn:
        """TileError: each launch has a text of its own."""
        raise _of_one(self.name, "get_kernel_source()")

    def priced_at(self, **sizes: Any) -> NoReturn:
        """TileError: each launch is priced for itself."""
        raise _of_one(self.name, "priced_at(...)")


def kernels_in_a_row(
    name: str, arguments: Sequence[Argument], each: Sequence[Any], positions: tuple[Sequence[int], ...], as_torch: bool
) -> Any:
    """The launches of a function, or what makes them at the sizes of each call."""

    def compiled(row: Any, *positions: Sequence[int]) -> LaunchesInARow:
        return LaunchesInARow(row, row.launches, positions, as_torch)

    if open_names(arguments):
        return _any_size(name, arguments, each, positions, compiled)
    return compiled(_at(name, arguments, each, NOTHING), *positions)


def _any_size(name: str, arguments: Sequence[Argument], each: Sequence[Any], positions: Any, compiled: Any) -> AnySizeLaunches:
    made = AnySizeLaunches(name, arguments, lambda sizes: _at(name, arguments, each, sizes), positions, compiled)  # type: ignore[arg-type,return-value]
    made.each = each
    return made


@record
class _RowAt(Row):
    launches: Sequence[Any] = ()


def _at(name: str, arguments: Sequence[Argument], each: Sequence[Any], sizes: Mapping[str, Any]) -> _RowAt:
    """The launches at the sizes of a call, without those that have no block there. NoBlocks where none is left."""
    found = [_launch_at(kernel, sizes) for kernel in each]
    launches = [k for k in found if k is not None]
    looked = [k.kernel if k else _with_blocks(kernel) for kernel, k in zip(each, found, strict=True)]
    tensors = [_tensor(a, [k.kernel for k in launches], looked, sizes) for a in arguments if a.shape is not None]
    if not launches:
        raise NoBlocks(tensors)
    first = launches[0].kernel
    zeroed = _first_added_to(looked, [t.name for t in tensors])
    numbers = [n for n, k in enumerate(found, 1) if k is not None]
    return _RowAt(name, tensors, first.source, first.file, frozenset(zeroed), numbers, launches)


def _with_blocks(kernel: Any) -> Kernel | KeptKernel:
    """A launch that has no block at the sizes of a call, at an example of sizes: which tensors it writes is the same."""
    from tile_eg.search.at_example import at_example

    return at_example(kernel.open, kernel.build)[0]  # type: ignore[no-any-return]


def _launch_at(kernel: Any, sizes: Mapping[str, Any]) -> Any:
    """A launch at the sizes of a call; None where it has no block there."""
    if not isinstance(kernel, AnySizeKernel):
        return kernel
    try:
        return kernel._made(kernel.checked({n: sizes[n] for n in kernel.open}))
    except NoBlocks:
        return None


def _tensor(a: Argument, launches: Sequence[Any], looked: Sequence[Any], sizes: Mapping[str, Any]) -> Tensor:
    """A tensor as the launches have it, and by what all of them do with it that are looked at: given, where the first one reads
    it."""
    uses = [t for k in looked for t in k.tensors if t.name == a.name]
    own = [t for k in launches for t in k.tensors if t.name == a.name]
    found = own[0] if own else Tensor(a.name, a.dtype, at_sizes(tuple(a.shape or ()), sizes), False, a.span, truth=a.truth)
    given = bool(uses) and (uses[0].given or not uses[0].output)
    return replace(found, output=any(t.output for t in uses), given=given)


def refuse_open(function: Any, names: Sequence[str]) -> None:
    """TileError where sizes of a function with several launches are left to the search: each would have its own."""
    from tile_eg.frontend.python import launches

    if launches(function):
        message = f"{', '.join(names)} of {function.function.__name__}, which has several launches: each would find its own"
        help = "give numbers, of which tile_eg.autotune takes the best, or write a function for each launch"
        raise TileError(message, help=help)
