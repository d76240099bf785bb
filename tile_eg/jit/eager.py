"""Functions that launch blocks themselves: a call takes arrays and numbers at once, compiles the kernel for them, and runs it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_eg.errors import InternalError, TileError, did_you_mean
from tile_eg.frontend.of_calls import OfCall
from tile_eg.frontend.python import Eager, read
from tile_eg.ir.passed import passed
from tile_eg.jit.any_size import NOTHING
from tile_eg.jit.factory import Factory, Options, check_arguments
from tile_eg.jit.on_npu import shape_of
from tile_eg.jit.switches import two_streams
from tile_eg.jit.told import told
from tile_eg.language.symbols import Size

if TYPE_CHECKING:
    from tile_eg.language.kernels import TensorType

Values = dict[str, Any]


class EagerKernel(Factory):
    """A function that launches blocks itself. Its parameters are tensors, which it declares in its body, and numbers.

    A call takes all of them and gives the tensors of `T.empty` that it returns: one array, or a list. `compile` takes the
    numbers, and the sizes of `T.const` by name or the arrays that tell them; it gives the `CompiledKernel`, or the
    `AnySizeKernel` where shapes have sizes of `T.dynamic`, or sizes are left out.
    """

    def __init__(self, eager: Eager, options: Options) -> None:
        if options.out_idx:
            help = "C = T.empty((M, N), T.float16) before the launch, and return C behind it"
            raise TileError(f"{eager.function.__name__} launches blocks itself, and has no out_idx", help=help)
        super().__init__(eager.function, options)
        self.eager = eager
        self.kernels: dict[Any, Any] = {}
        self.of_any: dict[Any, Any] = {}

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        return {n: p for n, p in self.eager.signature.parameters.items() if n not in self.eager.tensors}

    def decides(self, name: str, given: Mapping[str, Any]) -> bool:
        defaults = {n: p.default for n, p in self.parameters.items()}
        numbers = {**defaults, **{n: v for n, v in given.items() if n in self.parameters}}
        return name in self.parameters or name in self.eager.declared(numbers)[1]

    def searched(self) -> EagerKernel:
        """The same function, whose kernels are searched: those of `schedule="search"`."""
        return EagerKernel(self.eager, self.options.searched())

    @told
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kernel, numbers = self._of_any(args, kwargs)
        return self.called(kernel or self.kernel(args, kwargs), args, kwargs, numbers)

    @told
    def compile(self, *args: Any, **kwargs: Any) -> Any:
        """The kernel for these numbers and sizes."""
        return self.kernel(args, kwargs)

    def arrays(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arrays of a call, in the order of the kernel's tensors. TileError for one that is missing."""
        given, _ = self._bound_in_part(args, kwargs)
        if missing := [n for n in self.eager.tensors if n not in given]:
            message = f"{self.function.__name__} is called without {', '.join(missing)}"
            raise TileError(message, help="a call takes all arrays; compile(...) takes the sizes alone, by name")
        return [given[n] for n in self.eager.tensors]

    def called(self, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any], numbers: Mapping[str, float] = NOTHING) -> Any:
        """What a kernel gives for the arrays of a call, and for the numbers that it does not know."""
        return kernel(*self.arrays(args, kwargs), **numbers)

    def _of_any(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Mapping[str, float]]:
        """What serves a call whatever its floats are, with these; None where the floats decide something."""
        given, sizes = self._bound(args, kwargs)
        arrays = {n: v for n, v in given.items() if n in self.eager.tensors}
        numbers = {n: v for n, v in given.items() if n not in self.eager.tensors}
        floats = {n: v for n, v in numbers.items() if isinstance(v, float)}
        if not floats or not all(map(_is_array, arrays.values())):
            return None, NOTHING
        shapes = {n: shape_of(v, n) for n, v in arrays.items()}
        key = _frozen(({n: v for n, v in numbers.items() if n not in floats}, sorted(floats), sizes, shapes))
        if key not in self.of_any:
            self.of_any[key] = self._opened(numbers, floats, self._sizes(numbers, sizes, arrays), list(arrays.values()))
        return self.of_any[key], floats if self.of_any[key] else NOTHING

    def _opened(self, numbers: Values, floats: Mapping[str, float], sizes: Values, arrays: Sequence[Any]) -> Any:
        """The kernel, if it needs to know none of these floats. What the function's own Python cannot do without them is told by
        the call at their values."""
        from tile_eg.jit.any_size import AnySizeKernel

        try:
            kernel = self._made(numbers | {n: OfCall(passed(n)) for n in floats}, sizes)
            if not isinstance(kernel, AnySizeKernel):
                return None
            _, known = kernel.arrays_and_sizes(arrays, floats)
            _, served = kernel.of_any.of_call(kernel.checked(known))
        except InternalError:
            raise
        except Exception:  # whatever the author's own Python raises for what is no number
            return None
        return kernel if served.keys() == floats.keys() else None

    def asked(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """What of a call decides which kernel it comes to, as a key."""
        given, sizes = self._bound_in_part(args, kwargs)
        arrays = {n: shape_of(v, n) for n, v in given.items() if n in self.eager.tensors and _is_array(v)}
        return _frozen(({n: v for n, v in given.items() if n not in arrays}, sizes, arrays))

    def kernel(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The kernel of a call."""
        given, sizes = self._bound(args, kwargs)
        arrays = {n: v for n, v in given.items() if n in self.eager.tensors}
        numbers = {n: v for n, v in given.items() if n not in self.eager.tensors}
        key = self.asked(args, kwargs)
        if key not in self.kernels:
            known = self._sizes(numbers, sizes, arrays)
            at = _frozen((numbers, known))
            self.kernels[key] = self.kernels[at] = self.kernels.get(at) or self._made(numbers, known)
            self.made.add(self.kernels[key])
        return self.kernels[key]

    def _made(self, numbers: Values, sizes: Values) -> Any:
        found = self.eager.at(numbers, sizes)
        options = replace(self.options, out_idx=found.out_idx, workspace_idx=found.workspace_idx)
        return options.kernel(found.function, lambda at_call: read(found.function, at_call, two_streams(options.passes)))

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Values, Values]:
        """The parameters of a call by name, and what it gives beside them: sizes. TileError for a number that is missing."""
        needed = [n for n, p in self.parameters.items() if p.default is p.empty]
        bound, sizes = self._bound_in_part(args, kwargs)
        if any(n not in bound for n in needed):
            own = {n: v for n, v in kwargs.items() if n not in sizes}
            check_arguments(self.function, args, {**dict.fromkeys(self._left(args)), **own})
        return bound, sizes

    def _bound_in_part(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Values, Values]:
        signature = self.eager.signature
        own = {n: v for n, v in kwargs.items() if n in signature.parameters}
        try:
            bound = signature.bind_partial(*args, **own)
        except TypeError:
            check_arguments(self.function, args, own)
            raise
        bound.apply_defaults()
        return dict(bound.arguments), {n: v for n, v in kwargs.items() if n not in own}

    def _left(self, args: Sequence[Any]) -> list[str]:
        """The tensors that are not given by position."""
        return [n for n in self.eager.tensors if n not in list(self.eager.signature.parameters)[: len(args)]]

    def _sizes(self, numbers: Values, given: Values, arrays: Values) -> Values:
        """The sizes of `T.const` that are given by name, or that the shapes of arrays tell; the others are left to each call of
        the kernel. TileError for a name that nobody asks for."""
        declared, asked = self.eager.declared(numbers)
        for name in given.keys() - asked:
            known = [*self.eager.signature.parameters, *sorted(asked)]
            raise TileError(f"{self.function.__name__} has no parameter or size {name!r}", help=did_you_mean(name, known))
        found = {n: shape_of(arrays[n], n) for n in declared if _is_array(arrays.get(n))}
        told = _told({n: _dims(declared[n]) for n in found}, found)
        return {n: v for n, v in {**told, **given}.items() if n in asked}


def _told(declared: Mapping[str, Sequence[Any]], shapes: Mapping[str, Sequence[int]]) -> Values:
    """The sizes that shapes tell. TileError where two arrays disagree."""
    told: dict[str, tuple[int, str]] = {}
    for name, dims in declared.items():
        for d, extent in zip(dims, shapes[name], strict=False):
            for size, value in d.solved(extent).items() if isinstance(d, Size) else ():
                if told.setdefault(size, (value, name))[0] != value and len(dims) == len(shapes[name]):
                    raise TileError(f"{size} is {told[size][0]} in {told[size][1]} and {value} in {name}")
    return {size: value for size, (value, _) in told.items()}


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape")


def _dims(type_: TensorType) -> tuple[Any, ...]:
    shape = getattr(type_, "shape", ())
    return tuple(shape) if isinstance(shape, list | tuple) else (shape,)


def _frozen(value: Any) -> Any:
    """A value that a dictionary can be asked for."""
    if isinstance(value, Mapping):
        return tuple((n, _frozen(v)) for n, v in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return type(value), value


