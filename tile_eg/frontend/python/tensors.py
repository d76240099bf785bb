"""Kernels in Python that return expressions of whole tensors.

Such a function is run, at the sizes of one kernel, on values that note what is done with them: Python's operators, the words of
`tile_eg.language`, and NumPy's functions of the same names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import index
from typing import Any

import numpy as np

from tile_eg.errors import Span, TileError
from tile_eg.frontend.of_calls import OfCall
from tile_eg.frontend.python.bools import is_bool
from tile_eg.frontend.python.known_arrays import FILLED, filled, value_of
from tile_eg.frontend.python.other_names import OF_UFUNCS, SAME, of_numpy
from tile_eg.frontend.python.torch_words import METHODS, NO_METHODS, OTHERWISE, OWN_WORDS, SIGNS, Count, count, of_torch
from tile_eg.frontend.python.values import as_dtype
from tile_eg.frontend.tensor import functions as fn
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.composed import converted
from tile_eg.frontend.tensor.gathers import part
from tile_eg.frontend.tensor.values import Value
from tile_eg.language.words import user_place
from tile_eg.ops.elementwise import BINARY, COMPARE

QUOTIENTS = {"floordiv": "//", "mod": "%"}
OPERATORS = tuple(b.name for b in BINARY.values() if b.sign)


PLAIN = "tensors are computed with operators and the words of T, or NumPy's of the same names: T.exp(x)"


class NoAttribute(TileError, AttributeError):
    """A tensor has not what is asked for."""


_IN_PLACE = {
    "repeat": "write T.repeat(x, n, axis=0), each element n times, or np.tile(x, (n, 1))",
    "where": "write T.where(condition, x, y)", "long": 'whole numbers have 32 bits: x.astype("int32")',
    "double": 'floats have 32 bits: x.astype("float32")',
}  # fmt: skip
"""What to write for methods of arrays in other libraries."""


def _of_attribute(name: str) -> str:
    if name in ("item", "tolist", "numpy", "cpu", "npu", "detach"):
        return "elements are not known when the kernel is read: they are what a call of it gives"
    if name in {**fn.FUNCTIONS, "arange": None}:
        return f"write T.{name}(x)"
    return _IN_PLACE.get(name) or fn.INSTEAD.get(name) or "a tensor has shape, ndim, size, dtype, T and mT"


class TensorValue:
    """A value of a whole tensor, or of an expression of some, in a function that is read."""

    __hash__ = object.__hash__

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"<{self.value}>"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return len(self.value.shape)

    @property
    def size(self) -> Count:
        return count(self.value.shape)

    @property
    def dtype(self) -> str:
        return self.value.dtype.numpy if self.value.dtype else "bool" if self.value.truth else "float32"

    @property
    def T(self) -> TensorValue:  # noqa: N802
        return TensorValue(fn.turned(self.value, "T", user_place()))

    @property
    def mT(self) -> TensorValue:  # noqa: N802
        return TensorValue(fn.turned(self.value, "mT", user_place()))

    def astype(self, dtype: Any) -> TensorValue:
        """As NumPy has it: floats become whole numbers towards zero, and a bool says whether a number is none."""
        span, x = user_place(), self.value
        if dtype is bool or is_bool(dtype):
            return TensorValue(v.truth(x, span))
        return TensorValue(converted(as_dtype(dtype, span), x, span))

    def __getitem__(self, items: Any) -> TensorValue:
        span = user_place()
        given = items if isinstance(items, tuple) else (items,)
        return TensorValue(part(self.value, [_item(i, span) for i in given], span))

    def __setitem__(self, items: Any, value: Any) -> None:
        help = "choose elements: x = T.where(condition, y, x)"
        raise told(TileError("a value of a tensor is not changed in part", help=help))

    def __len__(self) -> int:
        return self.value.shape[0]

    def __iter__(self) -> Iterator[Any]:
        help = "an operation takes whole tensors: T.sum(x, axis=0)"
        raise told(TileError(f"{self.value} is not gone through row by row", help=help))

    def __bool__(self) -> bool:
        help = "choose element by element: T.where(x > 0, x, y); conditions are joined by & and |; a loop has a number of trips"
        raise told(TileError("a branch cannot depend on the elements of a tensor", help=help))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in METHODS:
            return lambda *args, **options: _torchs(name, (self, *args), options)
        if name in (*fn.FUNCTIONS, *SIGNS) and name not in NO_METHODS:
            return partial(_method(name), self)
        raise told(NoAttribute(f"a tensor has no attribute {name}", help=_of_attribute(name)))

    def __float__(self) -> float:
        raise told(TileError("the elements of a tensor are not known when the kernel is read", help=PLAIN))

    def __int__(self) -> int:
        return int(float(self))

    def __round__(self, digits: int | None = None) -> Any:
        if digits:
            help = f"write round(x * {10.0**digits:g}) / {10.0**digits:g}"
            raise told(TileError("`round` rounds to whole numbers", help=help))
        return word("round", (self,), {})

    def __tile_word__(self, name: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        return word(name, args, options)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        if method == "__call__":
            return word(ufunc.__name__, args, options)
        if found := OF_UFUNCS.get(f"{ufunc.__name__}.{method}"):
            return word(found, args, {**({} if len(args) > 1 else {"axis": 0}), **options})
        outer = f"for x and y of one axis np.{ufunc.__name__}(x[:, None], y)"
        help = outer if method == "outer" else f"those that have one: np.{', np.'.join(OF_UFUNCS)}"
        raise told(TileError(f"np.{ufunc.__name__}.{method} has no meaning here", help=help))

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Sequence[Any] = (), options: Any = None) -> Any:
        name = function.__name__
        return _torchs(OTHERWISE.get(name, name), args, options or {})

    def __array_function__(self, function: Any, types: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        return word(of_numpy(function), args, options)


def _method(name: str) -> Any:
    return lambda *args, **options: word(name, args, options)


def _swapped(name: str) -> Any:
    return lambda x, y: word(name, (y, x), {})


def _either(name: str, numpys: str) -> Any:
    """A method that both libraries have: torch's where an option is torch's alone, else NumPy's."""

    def called(x: Any, *args: Any, **options: Any) -> Any:
        torchs = any(o in options for o in OWN_WORDS)
        return _torchs(name, (x, *args), options) if torchs else word(numpys, (x, *args), options)

    return called


def _torchs(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What a function or a method of torch's gives, of which a tensor is an argument; arrays that are there may be others."""
    span = user_place()

    def taken(a: Any) -> Any:
        return a if isinstance(a, TensorValue) or (x := value_of(a, span)) is None else TensorValue(x)

    try:
        return of_torch(name, [*map(taken, args)], {k: taken(o) for k, o in options.items()}, word)
    except TileError as e:
        e.span = e.span or span
        raise


for _op in (*OPERATORS, *QUOTIENTS, "matmul"):
    _name = {"div": "truediv", "shl": "lshift", "shr": "rshift"}.get(_op, _op)
    setattr(TensorValue, f"__{_name}__", _method(_op))
    setattr(TensorValue, f"__r{_name}__", _swapped(_op))
for _name in COMPARE:
    setattr(TensorValue, f"__{_name}__", _method(_name))
for _name, _op in (("neg", "neg"), ("abs", "abs"), ("invert", "not")):
    setattr(TensorValue, f"__{_name}__", _method(_op))
for _name in (
    "sum", "mean", "amax", "amin", "all", "any", "cumsum", "cumprod", "reshape", "swapaxes", "squeeze",
    "ravel", "flatten", "clip", "dot", "diagonal", "trace", "take", "ptp", "unsqueeze", "permute",
):  # fmt: skip
    setattr(TensorValue, _name, _method(_name))
for _name in ("var", "std"):
    setattr(TensorValue, _name, _either(_name, _name))
for _name in ("max", "min"):
    setattr(TensorValue, _name, _either(_name, f"a{_name}"))
    setattr(TensorValue, f"arg{_name}", _method(f"arg{_name}"))


def word(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """A function of values by its name in either library: a value, or of `split` several."""
    span, called = user_place(), SAME.get(name, name)
    kept = {k: o for k, o in options.items() if not (o is None and k in ("out", "dtype", "where"))}
    if called == "arange":
        return TensorValue(v.arange(_whole(args[0] if len(args) == 1 else None, "arange counts from 0: arange(S)", span), span))
    if called in FILLED:
        return TensorValue(filled(called, args, kept, span))
    if called in ("cast", "Cast") and len(args) == 2:
        x, dtype = args if isinstance(args[0], TensorValue) else reversed(args)
        return TensorValue(v.cast(as_dtype(dtype, span), value_at(x, span), span))
    if called in fn.INSTEAD:
        raise TileError(f"`{name}` is not there", span, help=fn.INSTEAD[called])
    if called in fn.OF_LISTS and args and isinstance(args[0], list | tuple):
        kept |= {"axis": args[1]} if len(args) == 2 else {}
        args = args[0]
    whole = fn.values_among(called, len(args))
    given = [_operand(called, n, a, n < whole, span) for n, a in enumerate(args)]
    kept = {k: _option(called, k, o, span) for k, o in kept.items()}
    if kept and called in (*QUOTIENTS, *OPERATORS, *COMPARE, "neg", "not"):
        raise TileError(f"`{name}` takes two values, and no `{next(iter(kept))}`", span, help="choose elements: T.where(c, x, y)")
    if called in QUOTIENTS and len(given) == 2:
        return TensorValue(v.quotient(QUOTIENTS[called], given[0], given[1], span))
    if called in OPERATORS and len(given) == 2:
        return TensorValue(v.binary(called, given[0], given[1], span))
    if called in COMPARE and len(given) == 2:
        return TensorValue(v.compare(called, given[0], given[1], span))
    if called in ("neg", "not") and len(given) == 1:
        return TensorValue(v.unary(called, given[0], span))
    found = fn.call(called, given, kept, span)
    return tuple(map(TensorValue, found)) if isinstance(found, tuple) else TensorValue(found)


def _operand(name: str, place: int, x: Any, is_value: bool, span: Span | None) -> Any:
    """An argument of a function: a value, where there may be none None, else axes, sizes, and what else it takes."""
    if is_value:
        letters = name == "einsum" and place == 0 and isinstance(x, str)
        none = x is None and place > 0 and name in ("clip", "clamp", "max", "min", *fn.OF_FILTERS)
        return x if letters or none else value_at(x, span)
    return x if name in ("pad", "norm", *fn.OF_FILTERS) and isinstance(x, str | float) else _axes(name, x, span)


def _option(name: str, option: str, x: Any, span: Span | None) -> Any:
    """An argument by its name; what no function takes is left for the one that is called to refuse."""
    if option in fn.VALUES:
        return x if x is None else value_at(x, span)
    try:
        return _axes(name, x, span)
    except TileError:
        if option in ("axis", "dim"):
            raise
        return x


def _axes(name: str, x: Any, span: Span | None) -> Any:
    """A number of axes or sizes, or several of them."""
    if isinstance(x, tuple | list):
        return tuple(_axes(name, n, span) for n in x)
    return x if x is None or isinstance(x, bool) else _whole(x, f"`{name}` takes whole numbers behind its first argument", span)


def value_at(x: Any, span: Span | None) -> Value:
    if isinstance(x, TensorValue):
        return x.value
    if isinstance(x, OfCall):
        return v.number(x.written, span)
    if (known := value_of(x, span)) is not None:
        return known
    try:
        return v.number(int(x) if isinstance(x, int | np.integer) else float(x), span)
    except (TypeError, ValueError, RuntimeError):
        kind = type(x).__name__
        help = "pass arrays as arguments: X: T.Tensor(...); the positions 0 .. n - 1 are T.arange(n)"
        raise TileError(f"a tensor is not computed with {kind}", span, help=help) from None


def _item(i: Any, span: Span | None) -> v.Item | Value:
    if isinstance(i, TensorValue):
        return i.value
    if i is None:
        return v.NEW_AXIS
    if i is Ellipsis:
        return v.REST
    if isinstance(i, list | tuple) and all(isinstance(n, int) for n in i):
        help = f"take each and stack them: T.stack([{', '.join(f'x[{n}]' for n in i[:3])}]), or pass the indices as an array"
        raise TileError("an index of a tensor is a whole number or an array, not a list", span, help=help)
    if not isinstance(i, slice):
        known = value_of(i, span)
        if known is not None and known.shape:
            return known
        return _whole(i, "an index of a tensor is a whole number, or an argument of the kernel", span)
    ends = (i.start, i.stop, i.step)
    return v.Slice(*(None if e is None else _whole(e, "an end or a step of a slice is a whole number", span) for e in ends))


def _whole(x: Any, what: str, span: Span | None) -> int:
    try:
        return index(x)
    except TypeError:
        raise TileError(what, span) from None


def told(error: TileError) -> TileError:
    """An error with the user's line."""
    error.span = user_place()
    return error
