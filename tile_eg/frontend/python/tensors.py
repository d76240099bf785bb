"""Kernels in Python that return expressions of whole tensors.

Such a function is run, at the sizes of one kernel, on values that note what is done with them: Python's operators, the words of
`tile_eg.language`, and NumPy's functions of the same names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from operator import index
from traceback import walk_tb
from types import CellType, FrameType, FunctionType
from typing import Any, get_args

import numpy as np

from tile_eg import language
from tile_eg.errors import InternalError, Span, TileError, did_you_mean
from tile_eg.frontend.of_calls import OfCall, of_calls, refuse_wholes
from tile_eg.frontend.python.bools import is_bool
from tile_eg.frontend.python.other_names import SAME, of_numpy
from tile_eg.frontend.python.returned import evaluated, output_names
from tile_eg.frontend.python.source import FunctionSource, read_function
from tile_eg.frontend.python.values import as_dtype
from tile_eg.frontend.tensor import TensorKernel
from tile_eg.frontend.tensor import functions as fn
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.composed import converted
from tile_eg.frontend.tensor.gathers import part
from tile_eg.frontend.tensor.values import Value
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.language.kernels import PrimFunc, TensorType
from tile_eg.language.symbols import at_sizes
from tile_eg.language.words import PACKAGE, place_of, tensors_read, user_place
from tile_eg.ops.elementwise import BINARY, COMPARE
from tile_eg.ops.types import F32, U8, DType

QUOTIENTS = {"floordiv": "//", "mod": "%"}
OPERATORS = tuple(b.name for b in BINARY.values() if b.sign)


_PLAIN = "tensors are computed with operators and the words of T, or NumPy's of the same names: T.exp(x)"


class NoAttribute(TileError, AttributeError):
    """A tensor has not what is asked for."""


_IN_PLACE = {
    "view": "write x.reshape(4, -1)", "repeat": "write T.repeat(x, n, axis=0), each element n times, or np.tile(x, (n, 1))",
    "expand": "write T.broadcast_to(x, 4, S, D)",
    **dict.fromkeys(("to", "type", "half", "float", "bfloat16"), 'write x.astype("float16")'),
    **dict.fromkeys(("copy", "clone", "contiguous"), "take it as it is: no value is changed"),
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
    def size(self) -> int:
        return prod(self.value.shape)

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
        raise told(NoAttribute(f"a tensor has no attribute {name}", help=_of_attribute(name)))

    def __float__(self) -> float:
        raise told(TileError("the elements of a tensor are not known when the kernel is read", help=_PLAIN))

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
        if method != "__call__":
            raise told(TileError(f"np.{ufunc.__name__}.{method} has no meaning here"))
        return word(ufunc.__name__, args, options)

    def __array_function__(self, function: Any, types: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        return word(of_numpy(function), args, options)


def _method(name: str) -> Any:
    return lambda *args, **options: word(name, args, options)


def _swapped(name: str) -> Any:
    return lambda x, y: word(name, (y, x), {})


for _op in (*OPERATORS, *QUOTIENTS, "matmul"):
    _name = {"div": "truediv", "shl": "lshift", "shr": "rshift"}.get(_op, _op)
    setattr(TensorValue, f"__{_name}__", _method(_op))
    setattr(TensorValue, f"__r{_name}__", _swapped(_op))
for _name in COMPARE:
    setattr(TensorValue, f"__{_name}__", _method(_name))
for _name, _op in (("neg", "neg"), ("abs", "abs"), ("invert", "not")):
    setattr(TensorValue, f"__{_name}__", _method(_op))
for _name in (
    "sum", "mean", "var", "std", "amax", "amin", "all", "any", "cumsum", "cumprod", "reshape", "transpose", "swapaxes", "squeeze",
    "ravel", "flatten", "clip", "dot", "diagonal", "trace", "take", "ptp", "unsqueeze", "permute",
):  # fmt: skip
    setattr(TensorValue, _name, _method(_name))
for _name in ("max", "min"):
    setattr(TensorValue, _name, _method(f"a{_name}"))
    setattr(TensorValue, f"arg{_name}", _method(f"arg{_name}"))


def word(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """A function of values by its name in either library: a value, or of `split` several."""
    span, called = user_place(), SAME.get(name, name)
    kept = {k: o for k, o in options.items() if not (o is None and k in ("out", "dtype", "where"))}
    if called == "arange":
        return TensorValue(v.arange(_whole(args[0] if len(args) == 1 else None, "arange counts from 0: arange(S)", span), span))
    if called in ("cast", "Cast") and len(args) == 2:
        x, dtype = args if isinstance(args[0], TensorValue) else reversed(args)
        return TensorValue(v.cast(as_dtype(dtype, span), _value(x, span), span))
    if called in fn.INSTEAD:
        raise TileError(f"`{name}` is not there", span, help=fn.INSTEAD[called])
    if called in fn.OF_LISTS and args and isinstance(args[0], list | tuple):
        kept |= {"axis": args[1]} if len(args) == 2 else {}
        args = args[0]
    whole = 1 if called in fn.OF_AXES else 2 if called in fn.OF_INDICES else len(args)
    given = [_operand(called, n, a, n < whole, span) for n, a in enumerate(args)]
    kept = {k: _option(called, k, o, span) for k, o in kept.items()}
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
        none = x is None and place > 0 and name in ("clip", "clamp", "max", "min")
        return x if letters or none else _value(x, span)
    return x if name in ("pad", "norm") and isinstance(x, str | float) else _axes(name, x, span)


def _option(name: str, option: str, x: Any, span: Span | None) -> Any:
    """An argument by its name; what no function takes is left for the one that is called to refuse."""
    if option in fn.VALUES:
        return x if x is None else _value(x, span)
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


def _value(x: Any, span: Span | None) -> Value:
    if isinstance(x, TensorValue):
        return x.value
    if isinstance(x, OfCall):
        return v.number(x.written, span)
    try:
        return v.number(int(x) if isinstance(x, int | np.integer) else float(x), span)
    except (TypeError, ValueError):
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
        return _whole(i, "an index of a tensor is a whole number", span)
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


# ---- functions ----


def kernel_of_tensors(
    function: PrimFunc, tensors: Sequence[Tensor], numbers: Mapping[str, Any], sizes: Mapping[str, Any]
) -> Kernel:
    """The kernel of a function at the shapes of its tensors. TileError at the user's line."""
    refuse_wholes(sizes)
    found = read_function(function.function, function.names)
    values = {t.name: TensorValue(v.argument(t)) for t in tensors}
    run = _at_sizes(function.function, sizes)
    with tensors_read(word), _at_their_line():
        result = run(**values, **numbers)
    results = tuple(result) if isinstance(result, tuple | list) else (result,)
    names = output_names(function)
    if len(results) != len(names):
        message = f"{found.node.name} returns {len(results)} values where its last line has {len(names)}"
        raise TileError(message, found.source.span(found.node.body[-1]), help="return x, y")
    last = found.source.span(found.node.body[-1])
    declared = _declared(function, found, len(names), sizes)
    outputs = {n: _value(r, last) for n, r in zip(names, results, strict=True)}
    returned = [_output(n, x, d, last) for (n, x), d in zip(outputs.items(), declared, strict=True)]
    made = TensorKernel(found.node.name, (*tensors, *returned), outputs, found.source.text, found.source.file, of_calls(sizes))
    return made.kernel({})


@contextmanager
def _at_their_line() -> Iterator[None]:
    """What Python says of an expression that it cannot compute, as a TileError at the author's line; of what went wrong in
    tile_eg itself, as a fault of it."""
    try:
        yield
    except (TileError, InternalError):
        raise
    except Exception as e:
        frames = _frames(e)
        place = next((place_of(f) for f in frames if not f.f_code.co_filename.startswith(PACKAGE)), None)
        if frames[0].f_code.co_filename.startswith(PACKAGE) and getattr(e, "obj", None) is not language:
            at = f", at {place.file}:{place.line}" if place else ""
            raise InternalError("expression", f"{type(e).__name__}: {e}{at}") from e
        if not isinstance(e, TypeError | AttributeError | NameError):
            raise
        if isinstance(e, NameError):
            help = "a name is bound above its first use: in the function, or in the file around it"
            raise TileError(f"unknown name `{e.name}`", place, help=help) from e
        if isinstance(e, AttributeError) and e.obj is language:
            words = [w for w in fn.FUNCTIONS if hasattr(language, w)]
            raise TileError(f"T has no word {e.name}", place, help=did_you_mean(str(e.name), words)) from e
        said = str(e).replace("'TensorValue' object", "a tensor").replace("TensorValue", "a tensor")
        raise TileError(f"this cannot be computed: {said}", place, help=_PLAIN) from e


def _frames(fault: Exception) -> list[FrameType]:
    """Where a fault arose, innermost first."""
    return [frame for frame, _ in walk_tb(fault.__traceback__)][::-1]


def _output(name: str, x: Value, declared: TensorType | None, span: Span) -> Tensor:
    dtype: DType = U8 if x.truth else x.dtype or F32
    if declared is None:
        return Tensor(name, dtype, x.shape or (1,), True, x.span or span, truth=x.truth, alone=not x.shape)
    shape = declared.shape if isinstance(declared.shape, list | tuple) else (declared.shape,)
    truth = is_bool(declared.dtype)
    to = U8 if truth else as_dtype(declared.dtype, span)
    return Tensor(name, to, tuple(map(index, shape)) or (1,), True, x.span or span, truth=truth, alone=not shape)


def _declared(function: PrimFunc, found: FunctionSource, count: int, sizes: Mapping[str, Any]) -> list[TensorType | None]:
    """What the function says that it returns."""
    given = evaluated(function.function.__annotations__.get("return"), found.names)
    given = get_args(given) or given  # of tuple[A, B]
    each = list(given) if isinstance(given, list | tuple) else [given]
    if not any(isinstance(t, TensorType) for t in each):
        return [None] * count
    if len(each) != count or not all(isinstance(t, TensorType) for t in each):
        span = found.source.span(found.node.returns or found.node)
        message = f"{found.node.name} returns {count} values; its annotation says otherwise"
        raise TileError(message, span, help='-> T.Tensor((M, N), "float16")')
    return [TensorType(at_sizes(t.shape, sizes), t.dtype) for t in each]


def _at_sizes(function: FunctionType, sizes: Mapping[str, Any]) -> FunctionType:
    """The function with the sizes of a call for the symbols that it sees."""
    if not sizes:
        return function
    swapped = {n: _swapped_in(x, sizes) for n, x in function.__globals__.items()}
    cells = tuple(map(partial(_cell, sizes=sizes), function.__closure__ or ()))
    return FunctionType(function.__code__, swapped, function.__name__, function.__defaults__, cells)


def _cell(cell: CellType, sizes: Mapping[str, Any]) -> CellType:
    try:
        return CellType(_swapped_in(cell.cell_contents, sizes))
    except ValueError:  # not bound yet
        return cell


def _swapped_in(x: Any, sizes: Mapping[str, Any]) -> Any:
    try:
        return at_sizes(x, sizes)
    except KeyError:
        return x
