"""Kernels in Python whose sizes are those of each call: `T.symbolic`, `T.dyn`, and numbers that a call passes.

One text serves all sizes that decide neither what a tile is nor what is computed (`search/any_size.py`). At sizes that it does
not serve a kernel is compiled for itself, and kept like any other.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tile_eg.chips import DEFAULT_CHIP
from tile_eg.errors import TileError, TileWarning, did_you_mean, in_source
from tile_eg.frontend.of_calls import of_calls
from tile_eg.ir.arrays import as_bytes, as_given, check_argument, numpy_dtype, of_elements
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.ir.open_kernel import AUTO, NoBlocks
from tile_eg.ir.strided import Layouts, laid_out
from tile_eg.jit.arrays import by_name, give_back, is_torch, joined_rows, to_numpy
from tile_eg.jit.located import LocatingAtSizes
from tile_eg.jit.on_npu import MOST_SHAPES, new_empty, on_npu, shape_of
from tile_eg.jit.passed import OfAnyNumber, number_of, size_of, whole
from tile_eg.jit.told import told
from tile_eg.language.symbols import Size
from tile_eg.search import search_options

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.frontend.python import Argument
    from tile_eg.frontend.text import Template
    from tile_eg.search.any_size import AnySize
    from tile_eg.search.compiler import Lowered
    from tile_eg.search.one_text import OneText

Build = Callable[[Mapping[str, Any]], Kernel | KeptKernel]
NOTHING: Mapping[str, Any] = MappingProxyType({})
EXAMPLE = 128
"""An example of a size."""


def open_names(arguments: Sequence[Argument]) -> list[str]:
    """The sizes and numbers of a kernel that are known at each call, in the order of its parameters; none: it has its sizes."""
    found: list[str] = []
    for a in arguments:
        dims = a.shape or ()
        found += [a.name] if a.shape is None else [n for d in dims if isinstance(d, Size) for n in sorted(d.symbols())]
    return list(dict.fromkeys(found))


def left_to_search(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """The parameters of a call whose value, or default, is `auto`."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):  # the call itself says what is wrong
        return []
    bound.apply_defaults()
    return [name for name, value in bound.arguments.items() if isinstance(value, str) and value == AUTO]


class AnySizeKernel(LocatingAtSizes):
    """A kernel that takes its sizes from the shapes of each call's arrays.

    `build` gives the kernel at some sizes, `compiled` a `CompiledKernel` of it; `positions` are those of the tensors that a call
    gives back, and that it makes for itself. `chip` and `search` are those of the text for all sizes.

    Calling it takes what a `CompiledKernel` does, and sizes by name (`k(a, b, M=128)`) where no array that is passed has them.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[Argument],
        build: Build,
        positions: tuple[Sequence[int], Sequence[int]],
        compiled: Callable[[Kernel | KeptKernel, Sequence[int], Sequence[int]], Any],
        chip: str = DEFAULT_CHIP,
        search: Mapping[str, Any] = NOTHING,
    ) -> None:
        self.name, self.arguments, self.build = name, arguments, build
        self.outputs, self.workspaces = (
            [_position(i, arguments, what) for i in given]
            for given, what in zip(positions, ("out_idx", "workspace_idx"), strict=True)
        )
        tensors = [i for i, a in enumerate(arguments) if a.shape is not None]
        self.places = [tensors.index(i) for i in self.outputs], [tensors.index(i) for i in self.workspaces]
        self.compiled = compiled
        self.open = open_names(arguments)
        self.defaults = {a.name: a.default for a in arguments if a.default is not None}
        self.made: dict[tuple[Any, ...], Any] = {}
        self.by_shapes: dict[tuple[Any, ...], Any] = {}
        self.all_tensors = len(tensors) == len(arguments)
        sizes = tuple(n for n in self.open if n not in {a.name for a in arguments if a.shape is None and not whole(a)})
        self.sizes, self.chip, self.search = sizes, chip, search
        self.of_any = self._of_any()
        self.points: Mapping[str, Sequence[int]] = {}
        self.in_order: Callable[[Mapping[str, Any], TileError], KeptKernel] | None = None
        self.texts: dict[tuple[Layouts, tuple[str, ...]], OneText] = {}

    def _of_any(self) -> OfAnyNumber:
        """Which of its numbers it need not know."""
        numbers = {a.name: a.dtype for a in self.arguments if a.shape is None}
        return OfAnyNumber(numbers, self.build, self._made)

    @property
    def numbers(self) -> list[str]:
        """The parameters that are numbers."""
        return [a.name for a in self.arguments if a.shape is None]

    def text_of(self, layouts: Layouts = (), passed: Collection[str] = ()) -> OneText:
        """What compiles the kernel for all of its sizes, for inputs that lie so in larger arrays; `passed` are whole numbers that
        are arguments of its kernels, and none of their sizes."""
        from tile_eg.jit.one_text_cache import CachedOneText

        names = tuple(n for n in self.sizes if n not in passed)
        if (layouts, names) not in self.texts:
            tree = lambda sizes: laid_out(self.tree(sizes), layouts)  # noqa: E731
            self.texts[layouts, names] = CachedOneText(tree, names, self.chip, search_options(**self.search), self.points)
        return self.texts[layouts, names]

    def priced_at(self, **sizes: int | Sequence[int]) -> AnySizeKernel:
        """The kernel, whose cost model is asked at these sizes: `priced_at(M=(1, 128, 4096))`.

        Where they want different schedules its text holds a few, and the sizes of a launch decide. TileError for a size that it
        has not.
        """
        self._check_names(sizes)
        points = {n: (v,) if isinstance(v, int) else tuple(v) for n, v in sizes.items()}
        made = copy(self)
        made.by_shapes, made.texts, made.of_any = {}, {}, made._of_any()
        made.made, made.points = {}, {n: tuple(size_of(n, v) for v in numbers) for n, numbers in points.items()}
        return made

    def tree(self, sizes: Mapping[str, Any]) -> Kernel:
        """What is compiled at these sizes: the kernel without what nobody sees of it."""
        return self.compiled(self.build(sizes), *self.places).compiled  # type: ignore[no-any-return]

    def searched(self) -> Any:
        """The same kernel without its flags, barriers, scopes and addresses, which the search then finds."""
        return self

    def __repr__(self) -> str:
        return f"<kernel {self.name}[{', '.join(self.open)}]>"

    @told
    def with_sizes(self, **sizes: Any) -> Any:
        """The `CompiledKernel` at these sizes. TileError for one that is missing, unknown, or leaves no block to run."""
        try:
            return self._made(self.checked(sizes))
        except NoBlocks:
            shown = ", ".join(f"{n}={v}" for n, v in sizes.items())
            raise TileError(f"{self.name} has no blocks at {shown}: there is nothing to compile") from None

    @told
    def compile(self, chip: str | None = None, **sizes: Any) -> Lowered:
        """The lowered kernel at these sizes: `.source .schedule .program .cost .memory`. `chip` is a name like "910B2"."""
        return self.with_sizes(**sizes).compile(chip)

    @told
    def get_kernel_source(self, **sizes: Any) -> str:
        """The Ascend C text that serves these sizes: without any, that for all. TileError where that needs some of them.

        A kernel that is kept as it is written has a text for the sizes of each call: without them it is the one at examples of
        sizes, and says so.
        """
        if example := self._example(sizes):
            shown = ", ".join(f"{n}={v}" for n, v in example.items())
            text = f"{self.name} is kept as it is written, and compiled for the sizes of each call: this is its text at {shown}"
            warnings.warn(text, TileWarning, stacklevel=3)
            return f"// {text}.\n{self._planned(example).source}"
        return str(self._planned(sizes).source)

    def _example(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The sizes that are given, and examples of those that are not, where the kernel is kept; else none."""
        self._check_names(given)
        missing = [n for n in self.open if n not in given]
        if not missing or not set(missing) <= set(self.sizes):
            return {}
        sizes = self.checked({**given, **dict.fromkeys(missing, EXAMPLE)})
        try:
            return sizes if isinstance(self.build(sizes), KeptKernel) else {}
        except (TileError, NoBlocks):
            return {}

    def get_host_source(self, **sizes: Any) -> str:
        """The C++ that launches the text of `get_kernel_source`."""
        return str(self._planned(sizes).host)

    def _planned(self, sizes: Mapping[str, Any]) -> Any:
        """What serves these sizes; the others are open."""
        given = self.of_any.left_open(sizes, self.sizes)
        return self.with_sizes(**given).planned() if set(self.open) <= given.keys() else self.for_all_sizes(**sizes)

    def for_all_sizes(self, **given: Any) -> AnySize:
        """The kernel compiled once for all sizes, but those that are given. TileError where it has to know others, with why."""
        self._check_names(given)
        needed = set(self.open) - set(self.sizes)
        given = self.of_any.left_open(given, self.sizes)
        if missing := sorted(needed - given.keys()):
            raise missing_sizes(self.name, missing)
        return text_for_all(self.name, self.text_of(passed=of_calls(given)), given)

    def arrays_and_sizes(self, args: Any, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arrays of a call by name, and the sizes and numbers that they, or the call, tell."""
        numbers = {a.name for a in self.arguments if a.shape is None}
        names = [a.name for i, a in enumerate(self.arguments) if i not in (*self.outputs, *self.workspaces)]
        kwargs = {n: v for n, v in self.defaults.items() if n in names[len(args) :]} | {**kwargs}
        given = {n: v for n, v in kwargs.items() if n in self.open and n not in numbers}
        values = by_name(names, args, {n: v for n, v in kwargs.items() if n not in given})
        arrays = {n: v for n, v in values.items() if n not in numbers}
        told = self._sizes_of({n: v for n, v in arrays.items() if v is not None})
        told |= {**{n: values[n] for n in values if n in numbers}, **given}
        return arrays, told if set(self.open) <= told.keys() else {**self._sizes_of(arrays), **told}

    @told
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        by_shapes = not kwargs and self.all_tensors
        shapes = tuple([getattr(a, "shape", None) for a in args]) if by_shapes else (None,)
        if shapes in self.by_shapes:
            return self.by_shapes[shapes](*args)
        arrays, sizes = self.arrays_and_sizes(args, kwargs)
        try:
            kernel, numbers = self.of_any.of_call(self.checked(sizes))
        except NoBlocks as empty_grid:
            return nothing_done(empty_grid.tensors, self.places[0], arrays)
        if all(0 in t.shape for t in kernel.kernel.tensors if t.output):
            return nothing_done(kernel.kernel.tensors, self.places[0], arrays)
        if None not in shapes and len(self.by_shapes) < MOST_SHAPES:
            self.by_shapes[shapes] = kernel
        return kernel(**arrays, **numbers)

    def _check_names(self, sizes: Iterable[str]) -> None:
        for name in sizes:
            if name not in self.open:
                raise TileError(f"{self.name} has no size called {name}", help=did_you_mean(name, self.open))

    def checked(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """The sizes in their order, as Python's numbers."""
        self._check_names(sizes)
        sizes = {**self.defaults, **sizes}
        if missing := [n for n in self.open if n not in sizes]:
            raise missing_sizes(self.name, missing)
        numbers = {a.name: a for a in self.arguments if a.shape is None}
        return {n: number_of(numbers[n], sizes[n]) if n in numbers else size_of(n, sizes[n]) for n in self.open}

    def _made(self, sizes: Mapping[str, Any]) -> Any:
        found = self.made.get(key := tuple(sizes.values()))
        if found is None:
            found = self.made[key] = self.compiled(self.build(sizes), *self.places)
            if isinstance(found.compiled, Kernel):
                texts = partial(self.text_of, passed=of_calls(sizes))
                found.for_all_sizes = lambda layouts: texts(layouts).at(sizes, laid_out(found.compiled, layouts))
                found.in_order = partial(self.in_order, sizes) if self.in_order else None
        return found

    def _sizes_of(self, arrays: Mapping[str, Any]) -> dict[str, int]:
        """The sizes that the shapes of arrays tell, those with dimensions of 1 too many last. TileError where a rank is wrong or
        two arrays disagree."""
        shapes = {n: shape_of(v, n) for n, v in arrays.items()}
        known: dict[str, tuple[int, str]] = {}
        given = [a for a in self.arguments if a.shape is not None and a.name in arrays]
        for a in sorted(given, key=lambda a: len(shapes[a.name]) != len(a.shape or ())):
            for name, size in _solved(a, of_elements(shapes[a.name], a.dtype), known).items():
                if known.setdefault(name, (size, a.name))[0] != size:
                    raise TileError(f"{name} is {known[name][0]} in {known[name][1]} and {size} in {a.name}", a.span)
        return {name: size for name, (size, _) in known.items()}


def _solved(a: Argument, given: tuple[int, ...], known: Mapping[str, tuple[int, str]]) -> dict[str, int]:
    """The sizes in the shape of an argument by an array's: (1, M, 1) may stand for (M,), and for (1, M) where 1 is known.
    Other dimensions are those that count the rows: (2, M, 8) stands for (2 * M, 8)."""
    dims = a.shape or ()
    if not any(isinstance(d, Size) for d in dims):
        return {}
    found: list[dict[str, int]] = []
    for axes in combinations(range(len(given)), len(dims)):
        if all(given[k] == 1 for k in range(len(given)) if k not in axes):
            found.append(_of(dims, [given[k] for k in axes]))
    if not found and (joined := joined_rows(given, len(dims))):
        found.append(_of(dims, joined))
    if not found:
        raise TileError(f"{a.name} has {len(dims)} dimensions, the array has {len(given)}: {tuple(given)}", a.span)
    return min(found, key=lambda sizes: sum(known.get(n, (size, ""))[0] != size for n, size in sizes.items()))


def _of(dims: Sequence[Any], shape: Sequence[int]) -> dict[str, int]:
    return {name: size for d, n in zip(dims, shape, strict=True) if isinstance(d, Size) for name, size in d.solved(n).items()}


def told_by_call(template: Template, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of a call of a `.tile` kernel by name, and the sizes that their shapes and the call tell."""
    sizes = {n: v for n, v in kwargs.items() if n in template.sizes}
    with in_source(template.source):
        given = {n: v for n, v in kwargs.items() if n not in template.sizes or n in template.numbers}
        values = by_name(template.parameters, args, given)
        sizes |= {n: values[n] for n in template.numbers}
        arrays = {n: v for n, v in values.items() if n not in template.numbers}
        shapes = {name: shape_of(v, name) for name, v in arrays.items() if v is not None}
        return arrays, {**template.sizes_of(shapes), **sizes}


class TemplateTexts:
    """The texts of a `.tile` kernel for all sizes that have no default, by what the others are."""

    def __init__(
        self, template: Template, chip: str, search: Mapping[str, Any], points: Mapping[str, Sequence[int]] = NOTHING
    ) -> None:
        """`points` are sizes at which the kernel is priced, by name."""
        self.template, self.chip, self.search, self.points = template, chip, search, points
        self.names = template.of_texts
        self.made: dict[tuple[Any, ...], OneText] = {}

    def of(self, sizes: Mapping[str, Any], layouts: Layouts = ()) -> OneText:
        """What compiles the kernel with these sizes for those that have a default, for inputs that lie so in larger arrays."""
        from tile_eg.jit.one_text_cache import CachedOneText

        names = tuple(n for n in self.names if n not in of_calls(sizes))
        others = {n: v for n, v in sizes.items() if n not in names}
        key = *sorted(others.items()), layouts
        if key not in self.made:
            build = lambda at: laid_out(self.template.instantiate({**others, **at}), layouts)  # noqa: E731
            options, text = search_options(**self.search), (self.template.exact, key)
            self.made[key] = CachedOneText(build, names, self.chip, options, self.points, text)
        return self.made[key]

    def compiled(self, sizes: Mapping[str, Any]) -> AnySize:
        """The kernel for all sizes but these. TileError where it has to know others, with why."""
        template = self.template
        sizes = OfAnyNumber(template.numbers, template.instantiate, template.instantiate).left_open(sizes, self.names)
        template.check_numbers(sizes)
        return text_for_all(self.template.name, self.of(sizes), sizes)


def text_for_all(name: str, texts: OneText, given: Mapping[str, Any]) -> AnySize:
    """The kernel compiled once for all sizes but those that are given. TileError where it has to know others, with why;
    InternalError where that is a fault of tile_eg."""
    open_, why = texts.open(given)
    unknown = [n for n in texts.names if n not in given]
    if missing := [n for n in unknown if n not in open_]:
        from tile_eg.search.alike import checked
        from tile_eg.search.at_example import at_example

        at_example(unknown, lambda at: checked(texts.build, {**given, **at}))  # a fault at all sizes is not one of sizes
        raise missing_sizes(name, missing, why)
    found = texts.text(given)
    if isinstance(found, str):
        if found.fault:
            raise found.fault
        help = f"give them: {_example(texts.names)}" if texts.names else ""
        raise TileError(f"{name} has no text for all sizes: {found}", help=help)
    return found


def missing_sizes(name: str, names: Sequence[str], why: Mapping[str, str] = NOTHING) -> TileError:
    """The error where sizes have to be given, with the reason why one text does not serve all of them."""
    notes = tuple((f"{n} is none that one text serves: {why[n]}", None) for n in names if n in why)
    message = f"{name} takes its sizes from each call: give {', '.join(names)}"
    return TileError(message, help=f"by name: {_example(names)}", notes=notes)


def _example(names: Iterable[str]) -> str:
    return ", ".join(f"{n}={EXAMPLE}" for n in names)


def nothing_done(tensors: Sequence[Tensor], outputs: Iterable[int], arrays: Mapping[str, Any]) -> Any:
    """What a call without blocks gives: arrays that are passed in stay as they are, those given back have to be empty."""
    arrays = {name: v for name, v in arrays.items() if v is not None}
    if on_npu(arrays.values()):
        like, made = next(iter(arrays.values())), [tensors[i] for i in outputs]
        found = [new_empty(like, empty(t).shape, t) for t in made]
        return found[0] if len(found) == 1 else found or None
    for t in tensors:
        if t.name in arrays:
            check_argument(t, as_bytes(t, to_numpy(arrays[t.name], t.name)))
    return give_back([empty(tensors[i]) for i in outputs], any(map(is_torch, arrays.values())))


def empty(t: Tensor) -> np.ndarray:
    """A tensor that a call without blocks gives back. TileError where it has elements, which none wrote."""
    import numpy as np

    if 0 not in t.shape:
        raise TileError(f"no block runs at these sizes, and none writes {t.name}", t.span, help=f"pass {t.name} in")
    return as_given(t, np.zeros(t.shape, numpy_dtype(t.dtype)))


def _position(i: int, arguments: Sequence[Argument], what: str) -> int:
    """The position of a tensor, counted from the front. TileError where it is that of none."""
    count = len(arguments)
    if isinstance(i, bool) or not isinstance(i, int) or not -count <= i < count or arguments[i].shape is None:
        raise TileError(f"{what}: {i!r} is not the position of a tensor among the {count} arguments")
    return i % count
