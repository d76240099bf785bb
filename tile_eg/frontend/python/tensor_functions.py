"""Kernels of functions in Python that return expressions of whole tensors: each is run at the sizes of one kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import index
from traceback import walk_tb
from types import CellType, FrameType, FunctionType
from typing import Any, get_args

from tile_eg import language
from tile_eg.errors import InternalError, Span, TileError, did_you_mean
from tile_eg.frontend.of_calls import of_calls, refuse_wholes
from tile_eg.frontend.python.bools import is_bool
from tile_eg.frontend.python.returned import evaluated, output_names, read_definition
from tile_eg.frontend.python.source import FunctionSource
from tile_eg.frontend.python.tensors import PLAIN, TensorValue, value_at, word
from tile_eg.frontend.python.values import as_dtype
from tile_eg.frontend.tensor import TensorKernel
from tile_eg.frontend.tensor import functions as fn
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.values import Value
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.language.kernels import PrimFunc, TensorType
from tile_eg.language.symbols import at_sizes
from tile_eg.language.words import PACKAGE, place_of, tensors_read
from tile_eg.ops.types import F32, U8, DType


def kernel_of_tensors(
    function: PrimFunc, tensors: Sequence[Tensor], numbers: Mapping[str, Any], sizes: Mapping[str, Any]
) -> Kernel:
    """The kernel of a function at the shapes of its tensors. TileError at the user's line."""
    refuse_wholes(sizes)
    found = read_definition(function.function, function.names)
    values = {t.name: TensorValue(v.argument(t)) for t in tensors}
    run = _at_sizes(function.function, sizes)
    with tensors_read(word), _at_their_line():
        result = run(**values, **numbers)
    results = tuple(result) if isinstance(result, tuple | list) else (result,)
    names = output_names(function)
    if len(results) > len(names) == 1 and not sizes:  # of a call that gives several
        names = [f"{names[0]}_{n}" for n in range(len(results))]
    if len(results) != len(names):
        message = f"{found.node.name} returns {len(results)} values where its last line has {len(names)}"
        raise TileError(message, found.source.span(found.node.body[-1]), help="x, y = f(X) before it, and return x, y")
    last = found.source.span(found.node.body[-1])
    declared = _declared(function, found, len(names), sizes)
    outputs = {n: value_at(r, last) for n, r in zip(names, results, strict=True)}
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
        raise TileError(f"this cannot be computed: {said}", place, help=PLAIN) from e


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
