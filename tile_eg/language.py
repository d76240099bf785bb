"""The Python surface: TileLang's words, `import tile_eg.language as T`.

A function under `@T.prim_func` is not run: its source is read (`frontend.python`), and the words below get their meaning
there. What stands here is their names, their parameters and their documentation. Conventions: sizes and indices are in
elements, dtypes are names such as "float16", and a `tile` is a buffer, a slice `a[i:j, :]` of one, or an expression of them.
Every word raises `TileError` where it is called outside of a kernel, unless it computes with plain numbers.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.ir.open_kernel import AUTO
from tile_eg.ops import elementwise
from tile_eg.ops.types import dtype_of


@dataclass(frozen=True, eq=False)
class Word:
    """A word of the language. `level` is developer, expert or later; only the first has a meaning yet.

    `number` computes the word on plain Python numbers, inside and outside of a kernel, where it can.
    """

    name: str
    signature: inspect.Signature
    level: str = "developer"
    number: Callable[..., Any] | None = field(default=None, repr=False)
    __doc__: str | None = field(default=None, repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.number is not None:
            return self.number(*args, **kwargs)
        error = TileError(f"T.{self.name} has a meaning only inside a function under @T.prim_func")
        raise at_frame(error if self.level == "developer" else missing(self, None), sys._getframe(1))


def missing(word: Word, span: Span | None) -> TileError:
    """The error for a word that exists in TileLang and not here."""
    if word.level == "expert":
        return TileError(
            f"T.{word.name} is Expert level, not supported yet",
            span,
            help="write it at Developer level: T.alloc_shared and T.alloc_fragment, no scopes, no flags; the rest is found",
        )
    return TileError(f"T.{word.name} is not supported yet", span)


def developer_words(words: Any) -> list[str]:
    """The names in the language, or in `tile`, that have a meaning."""
    found = ((name, getattr(words, name)) for name in dir(words) if not name.startswith("_"))
    return [name for name, word in found if isinstance(word, Word) and word.level == "developer"]


def at_frame(error: TileError, frame: FrameType) -> TileError:
    """The error with the place in the user's source that a frame is executing."""
    code = frame.f_code
    line, end_line, column, end_column = list(code.co_positions())[frame.f_lasti // 2]
    line = line or frame.f_lineno
    error.span = Span(code.co_filename, line, (column or 0) + 1, end_line or line, (end_column or 0) + 1)
    error.source = "".join(linecache.getlines(code.co_filename, frame.f_globals))
    return error


def word(function: Callable[..., Any]) -> Any:
    return Word(function.__name__, inspect.signature(function), __doc__=function.__doc__)


def number_word(function: Callable[..., Any]) -> Any:
    """A word whose body computes it on plain numbers."""
    return Word(function.__name__, inspect.signature(function), number=function, __doc__=function.__doc__)


# Kernels and their arguments


@dataclass(frozen=True, eq=False)
class TensorType:
    """The annotation of a GM tensor argument: `A: T.Tensor((M, K), "float16")`."""

    shape: Any
    dtype: Any = "float32"


Tensor = Buffer = TensorType


@dataclass(frozen=True)
class ElementType:
    """A dtype as an object (`T.float16`); calling it makes a constant: `T.float32(0.5)`."""

    name: str

    def __call__(self, value: Any = 0) -> Any:
        return int(value) if self.name.startswith("int") else float(value)

    def __str__(self) -> str:
        return self.name


auto = AUTO
"""The size of a block that the search is to find: `gemm(1024, 1024, 1024, block_M=T.auto, block_N=T.auto)`."""


@dataclass(frozen=True, eq=False)
class PrimFunc:
    """A kernel's function with the names that were visible where it was defined."""

    function: FunctionType
    names: dict[str, Any] = field(repr=False)

    def __call__(self, *args: Any) -> Any:
        message = f"{self.function.__name__} is a kernel and has to be compiled first"
        help = "put @tile_eg.jit on it, or on the function that returns it"
        raise at_frame(TileError(message, help=help), sys._getframe(1))


@dataclass(frozen=True, eq=False)
class Macro:
    """A function that is written out where it is called in a kernel."""

    function: FunctionType

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        message = f"the macro {self.function.__name__} has a meaning only inside a function under @T.prim_func"
        raise at_frame(TileError(message), sys._getframe(1))


def prim_func(function: FunctionType) -> PrimFunc:
    """Marks a function as a kernel; its parameters are GM tensors, its body is one `with T.Kernel(...)`."""
    return PrimFunc(function, dict(sys._getframe(1).f_locals))


def macro(function: FunctionType) -> Macro:
    """Marks a function that is written out where a kernel calls it."""
    return Macro(function)


@word
def Kernel(*extents: int, threads: Any = None, is_npu: bool = False, pipeline: Any = None, prelude: Any = None) -> Any:
    """The launch: `with T.Kernel(n, is_npu=True) as (cid, vid)` or `with T.Kernel(x, y) as (bx, by)`; x varies fastest.

    With a second name for one extent, also `_`, the body runs on both vector cores of a block, with vid 0 and with vid 1: what
    comes out the same is done once, what they add atomically is added twice. With one name the body runs once.

    `threads` and `pipeline` say how other hardware runs it and mean nothing here.
    """


@word
def func_attr(attrs: dict[str, Any]) -> None:
    """Attributes of the function; synchronisation is always automatic, so that they change nothing."""


@word
def use_swizzle(panel_size: Any = None, *window: Any, order: str = "row", enable: bool = True) -> None:
    """The order in which blocks run, as a hint: it changes nothing here. The form that gives an index back is Expert level."""


# Buffers


@word
def alloc_shared(shape: Sequence[int], dtype: Any, scope: str = "shared.dyn") -> Any:
    """A tile that all units of a core share: L1 or UB, whichever its uses ask for."""


@word
def alloc_fragment(shape: Sequence[int], dtype: Any, scope: str = "local.fragment") -> Any:
    """A tile next to a compute unit: L0A, L0B, L0C or UB, whichever its uses ask for."""


# Loops


@word
def serial(start: int, stop: int | None = None, step: int = 1, *, annotations: Any = None) -> Any:
    """A loop in order: `for k in T.serial(n)`."""


@word
def unroll(start: int, stop: int | None = None, step: int = 1, *, explicit: Any = None, annotations: Any = None) -> Any:
    """A loop in order; whether it is written out is decided by the compiler."""


@word
def Pipelined(
    start: int,
    stop: int | None = None,
    num_stages: int = 0,
    order: Any = None,
    stage: Any = None,
    sync: Any = None,
    group: Any = None,
    cross_interval: int = 1,
) -> Any:
    """A loop whose trips may overlap: what it loads has `num_stages` buffers; 1: nothing overlaps, 0: as many as are best."""


@word
def Parallel(*extents: int, coalesced_width: Any = None) -> Any:
    """An element loop nest: `for i, j in T.Parallel(M, N)`; its iterations are independent."""


@word
def grid(*extents: int) -> Any:
    """A nest of serial loops."""


# Moves and products


@word
def copy(
    src: Any,
    dst: Any,
    size: Sequence[int] | None = None,
    *,
    enable_relu: bool = False,
    transpose: bool = False,
    pad_value: Any = None,
    coalesced_width: Any = None,
    disable_tma: Any = None,
) -> None:
    """dst = src. Either side is a buffer, a slice, or a start point `A[i, j]`, whose extent is `size` or the other side's."""


@word
def gemm(
    A: Any,
    B: Any,
    C: Any,
    size: Sequence[int] | None = None,
    *,
    transpose_A: bool = False,
    transpose_B: bool = False,
    a_transpose: bool = False,
    b_transpose: bool = False,
    init: Any = False,
    initC: Any = False,
    clear_accum: Any = False,
    policy: Any = None,
    k_pack: Any = None,
) -> None:
    """C += A @ B, or C = A @ B where `init` (also `initC`, `clear_accum`) holds; `size` is [m, k, n]."""


@word
def gemm_v0(A: Any, B: Any, C: Any, transpose_A: bool = False, transpose_B: bool = False, init: Any = False) -> None:
    """C += A @ B, or C = A @ B where `init` holds."""


@word
def fill(buffer: Any, value: float) -> None:
    """Every element of the buffer becomes `value`."""


@word
def clear(buffer: Any) -> None:
    """Every element of the buffer becomes 0."""


@word
def vbrc(src: Any, dst: Any) -> None:
    """dst = src, where src is a number, a row or a column."""


@word
def vcast(src: Any, dst: Any, round_mode: str = "rint", size: Any = None) -> None:
    """dst = src in dst's dtype, rounded to nearest even."""


@word
def cast(x: Any, dtype: Any) -> Any:
    """x in another dtype, as an expression."""


# Numbers


@number_word
def ceildiv(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


@number_word
def floordiv(a: int, b: int) -> int:
    """a / b rounded down."""
    return a // b


@number_word
def infinity(dtype: Any = "float32") -> float:
    """The largest value of a dtype: infinity."""
    return float("inf")


@word
def symbolic(name: str, dtype: Any = "int32") -> Any:
    """A size known only at run time."""


def _reduce_word(name: str) -> Word:
    def reduce(buffer: Any, out: Any = None, dim: int = -1, clear: bool = True, real_shape: Any = None) -> Any: ...

    doc = f"out = {name[7:]} of the buffer over `dim`; with clear=False, what out holds takes part. Without out, an expression."
    return Word(name, inspect.signature(reduce), __doc__=doc)


@word
def atomic_add(dst: Any, src: Any) -> None:
    """dst += src, where dst is a window of a tensor to which other blocks may add as well, in any order. The tensor begins with
    what it is given, or with zeros."""


reduce_max, reduce_min, reduce_sum = (_reduce_word(f"reduce_{op}") for op in elementwise.REDUCE)

# Elementwise words. Three spellings: destination first (T.tile.exp(dst, src)), destination last (T.vexp(src, dst) and
# T.exp(src, dst)), and expressions (T.exp(x)).

UNARY = {word: op.name for op in elementwise.UNARY.values() for word in op.python} | {"exp2": "exp2", "silu": "silu"}
BINARY = tuple(elementwise.BINARY)


def _like(function: Callable[..., None], names: Sequence[str], prefix: str, doc: str) -> dict[str, Word]:
    signature = inspect.signature(function)
    return {n: Word(prefix + n, signature, __doc__=doc.format(n)) for n in names}


def _tile_unary(dst: Any, src: Any) -> None: ...
def _tile_binary(dst: Any, a: Any, b: Any) -> None: ...
def _tile_fill(buffer: Any, value: float) -> None: ...
def _tile_clear(buffer: Any) -> None: ...
def _tile_cast(dst: Any, src: Any, mode: str = "CAST_RINT", count: Any = None) -> None: ...
def _tile_broadcast(dst: Any, src: Any, axis: int | None = None) -> None: ...
def _tile_multiply_add(dst: Any, a: Any, b: Any) -> None: ...
def _tile_atomic(dst: Any, src: Any) -> None: ...
def _tile_bound(out: Any, buffer: Any, bound: Any, count: Any = None) -> None: ...
def _tile_clamp(out: Any, buffer: Any, low: Any, high: Any, count: Any = None) -> None: ...
def _unary(x: Any, dst: Any = None) -> Any: ...
def _vector_unary(src: Any, dst: Any) -> None: ...
def _vector_binary(a: Any, b: Any, dst: Any) -> None: ...


def _missing(prefix: str, level: str, names: str) -> dict[str, Word]:
    def anything(*args: Any, **kwargs: Any) -> Any: ...

    return {n: Word(prefix + n, inspect.signature(anything), level) for n in names.split()}


_TILE_LATER = """pow leaky_relu bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_lshift bitwise_rshift sin cos round
    transpose createvecindex arith_progression compare select gather gatherb gather_mask sort sort32 merge_sort topk
    init_sort_buf wholereducemax wholereducemin wholereducesum block_reduce_max block_reduce_min block_reduce_sum
    bilinear_interpolation brcb brcb_experiment row_expand_mul row_expand_mul_experiment row_expand_sub_experiment
    row_expand_div_experiment sub_experiment abs_experiment mins_experiment reduce_sum_experiment fill_experiment
    gathermask_experiment sum_experiment reduce_sum_mask_experiment datacachecleanandinvalid_experiment"""
_LATER = """alloc_var If Then Else Select Persistent view reshape reinterpretcast reinterpret printf
    print dump_tensor dynamic dyn loop_break while_loop set_deq_scale verf vpow vand vor vnot vxor vcmp vselect vcumsum
    erf pow sin cos floor ceil round bitwise_and bitwise_or cumsum any_of all_of call_extern contiguous shmem_put_nbi
    shmem_get_nbi shmem_ub_put_nbi shmem_ub_get_nbi c2d_im2col Then alloc_local wait_wgmma"""
_EXPERT = """Scope alloc_ub alloc_L1 alloc_L0A alloc_L0B alloc_L0C mma set_flag wait_flag barrier_all pipe_barrier sync_all
    set_cross_flag wait_cross_flag init_flag clear_flag annotate_address annotate_layout sync_threads"""

tile = SimpleNamespace(
    **_missing("tile.", "later", _TILE_LATER),
    **_like(_tile_unary, list(UNARY), "tile.", "dst = {}(src)"),
    **_like(_tile_binary, BINARY, "tile.", "dst = {} of a and b, which is a tile, a number or an element m[i]"),
    **_like(_tile_fill, ["fill"], "tile.", "every element becomes `value`"),
    **_like(_tile_clear, ["clear"], "tile.", "every element becomes 0"),
    **_like(_tile_cast, ["cast"], "tile.", "dst = src in dst's dtype"),
    **_like(_tile_broadcast, ["broadcast"], "tile.", "dst = src along each row (axis 0) or each column (axis 1)"),
    **_like(_tile_multiply_add, ["axpy", "mul_add_dst"], "tile.", "dst = dst + a * b"),
    **_like(_tile_atomic, ["atomic_add"], "tile.", "dst += src, where other blocks may add to dst as well"),
    **_like(_tile_bound, ["clamp_min", "clamp_max"], "tile.", "out = the buffer, not beyond the bound"),
    **_like(_tile_clamp, ["clamp"], "tile.", "out = the buffer within low .. high"),
)
_WORDS: dict[str, Word] = {
    **_missing("", "later", _LATER),
    **_missing("", "expert", _EXPERT),
    **_like(_unary, list(UNARY), "", "{0}(x); with a second argument, dst = {0}(x)"),
    **_like(_vector_unary, ["v" + op for op in UNARY], "", "{}: dst = f(src)"),
    **_like(_vector_binary, ["v" + op for op in BINARY], "", "{}: dst = f(a, b)"),
}


@number_word
def if_then_else(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y, element by element in T.Parallel: of elements, `a[i, j] > 0`, or of positions,
    `c * 64 + i >= k * 64 + j`; joined by and, or, not."""
    return x if condition else y


@number_word
def And(a: Any, b: Any) -> Any:  # noqa: N802
    """Both conditions."""
    return a and b


@number_word
def Or(a: Any, b: Any) -> Any:  # noqa: N802
    """One of the conditions, or both."""
    return a or b


@number_word
def Not(a: Any) -> Any:  # noqa: N802
    """The opposite of a condition."""
    return not a


@number_word
def max(a: Any, b: Any) -> Any:
    """The larger of two values."""
    return a if a > b else b


@number_word
def min(a: Any, b: Any) -> Any:
    """The smaller of two values."""
    return a if a < b else b


def __getattr__(name: str) -> Any:
    if name in _WORDS:
        return _WORDS[name]
    if dtype_of(name) is not None:
        return ElementType(name)
    raise AttributeError(f"module 'tile_eg.language' has no word {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_WORDS])
