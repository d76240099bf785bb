"""The Python surface: TileLang's words, `import tile_eg.language as T`.

A function under `@T.prim_func` is not run: its source is read (`frontend.python`), and the words below get their meaning
there. What stands here is their names, their parameters and their documentation. Conventions: sizes and indices are in
elements, dtypes are names such as "float16", and a `tile` is a buffer, a slice `a[i:j, :]` of one, or an expression of them.
Every word raises `TileError` where it is called outside of a kernel, unless it computes with plain numbers.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from typing import Any

from tile_eg.ir.open_kernel import AUTO
from tile_eg.language.eager import const as const
from tile_eg.language.eager import empty as empty
from tile_eg.language.elementwise_words import WORDS
from tile_eg.language.elementwise_words import tile as tile
from tile_eg.language.gpu import Fragment as Fragment
from tile_eg.language.gpu import GemmWarpPolicy as GemmWarpPolicy
from tile_eg.language.gpu import Layout as Layout
from tile_eg.language.gpu import make_swizzled_layout as make_swizzled_layout
from tile_eg.language.kernels import Buffer as Buffer
from tile_eg.language.kernels import ElementType
from tile_eg.language.kernels import FragmentBuffer as FragmentBuffer
from tile_eg.language.kernels import PrimFunc as PrimFunc
from tile_eg.language.kernels import SharedBuffer as SharedBuffer
from tile_eg.language.kernels import Tensor as Tensor
from tile_eg.language.kernels import macro as macro
from tile_eg.language.kernels import prim_func as prim_func
from tile_eg.language.npuir import NAMES as DIALECT_NAMES
from tile_eg.language.npuir import WORDS as DIALECT
from tile_eg.language.placement import Persistent as Persistent
from tile_eg.language.placement import alloc_L0A as alloc_L0A
from tile_eg.language.placement import alloc_L0B as alloc_L0B
from tile_eg.language.placement import alloc_L0C as alloc_L0C
from tile_eg.language.placement import alloc_L1 as alloc_L1
from tile_eg.language.placement import alloc_ub as alloc_ub
from tile_eg.language.placement import annotate_layout as annotate_layout
from tile_eg.language.placement import use_swizzle as use_swizzle
from tile_eg.language.symbols import Dyn, of_sizes, symbols
from tile_eg.language.tensor_words import WORDS as TENSOR_WORDS
from tile_eg.language.words import number_word, reduction, word
from tile_eg.ops import elementwise
from tile_eg.ops.types import dtype_of

dtype = ElementType
DTYPES = (
    "bool", "short", "long", "double", "uint", "int64", "uint64", "float64", "tfloat32", "float8_e4m3fnuz", "float8_e5m2fnuz",
)  # fmt: skip
"""Names of further dtypes, which tensors of a kernel do not have."""

# Kernels

auto = AUTO
"""The size of a block that the search is to find: `gemm(1024, 1024, 1024, block_M=T.auto, block_N=T.auto)`."""


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


# Buffers


@word
def alloc_shared(shape: Sequence[int], dtype: Any, scope: str = "shared.dyn") -> Any:
    """A tile that all units of a core share: L1 or UB, whichever its uses ask for."""


@word
def alloc_fragment(shape: Sequence[int], dtype: Any, scope: str = "local.fragment") -> Any:
    """A tile next to a compute unit: L0A, L0B, L0C or UB, whichever its uses ask for."""


@word
def alloc_var(dtype: Any, *init_or_scope: Any, init: Any = None, scope: str = "local.var") -> Any:
    """A number by name: `a = T.alloc_var("int32", init=1)`; 0 where there is no `init`.

    It is known when the kernel is compiled: `a = 2` and `a += 1` change it, but not in a loop or branch around which it goes on.
    """


# Loops


@word
def serial(start: int, stop: int | None = None, step: int = 1, *, annotations: Any = None) -> Any:
    """A loop in order: `for k in T.serial(n)`."""


@word
def unroll(start: int, stop: int | None = None, step: int = 1, *, explicit: Any = None, annotations: Any = None) -> Any:
    """A loop in order; whether it is written out is decided by the compiler."""


@word
def loop_break() -> None:
    """Leaves the loop, as `break` does: where that is known when the kernel is compiled."""


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
    """dst = src. Either side is a buffer, a slice, or a start point `A[i, j]`, whose extent is `size` or the other side's.

    `disable_tma` says how a GPU does it: it means nothing here.
    """


@word
def gemm(
    A: Any,
    B: Any,
    C: Any,
    size: Sequence[int] | bool | None = None,
    *by_position: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    a_transpose: bool = False,
    b_transpose: bool = False,
    init: Any = False,
    initC: Any = False,
    clear_accum: Any = False,
    policy: Any = GemmWarpPolicy.Square,
    k_pack: int = 1,
    wg_wait: int = 0,
) -> None:
    """C += A @ B, or C = A @ B where `init` (also `initC`, `clear_accum`) holds; `size` is [m, k, n].

    By position stand, in place of `size`, transpose_A, transpose_B, policy and clear_accum, as TileLang has them. `policy` says
    how a GPU's warps share the product: it means nothing here.
    """


@word
def gemm_v0(A: Any, B: Any, C: Any, transpose_A: bool = False, transpose_B: bool = False, init: Any = False) -> None:
    """C += A @ B, or C = A @ B where `init` holds."""


@word
def gemm_mx(
    A: Any, A_scale: Any, B: Any, B_scale: Any, C: Any, transpose_A: bool = False, transpose_B: bool = False, init: Any = False
) -> None:
    """C += (A * A_scale) @ (B * B_scale).T of blocks of 32 small floats with a scale (MXFP8, MXFP4); `init`: C = instead of C +=.

    A (M, K) and B (N, K) are of float8_e4m3, float8_e5m2, or of float4_e2m1, float4_e1m2, and K is a multiple of 64. A_scale
    (M, K / 32) and B_scale (N, K / 32) are of float8_e8m0, a scale for each 32 elements along K. C (M, N) is of float32.
    `transpose_B` says that B lies as (N, K), and has to be given: B as (K, N) is not supported. Of the 950 alone.
    """


@word
def mma(A: Any, B: Any, C: Any, init: Any = False) -> None:
    """C += A @ B, or C = A @ B where `init` holds, of operands in L0A and L0B."""


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
def align_up(a: int, b: int) -> int:
    """a, or the next multiple of b."""
    return -(-a // b) * b


@number_word
def floordiv(a: int, b: int) -> int:
    """a / b rounded down; of tiles of whole numbers too."""
    return a // b


@number_word
def floormod(a: int, b: int) -> int:
    """What is left of a after b * floordiv(a, b): the sign of b; of tiles of whole numbers too."""
    return a % b


@number_word
def infinity(dtype: Any = "float32") -> float:
    """The largest value of a dtype: infinity."""
    return float("inf")


@number_word
def symbolic(name: str, dtype: Any = "int32") -> Any:
    """A size known at each call, from the shapes of its arrays; one of the same name is the same size. Several at once:
    `M, N = T.symbolic("M, N")`."""
    return symbols(name)


dynamic = symbolic
Serial = serial
parallel = Parallel
Vectorized = vectorized = Parallel
dyn = Dyn()


@word
def atomic_add(
    dst: Any, src: Any, size: Sequence[int] | None = None, *, memory_order: Any = None, use_tma: bool = False
) -> None:
    """dst += src, where dst is a window of a tensor to which other blocks may add as well, in any order. The tensor begins with
    what it is given, or with zeros. `size` says how many elements, as in T.copy; `memory_order` and `use_tma` say how a GPU does
    it, and mean nothing here."""


@word
def atomic_max(
    dst: Any, src: Any, size: Sequence[int] | None = None, *, memory_order: Any = None, use_tma: bool = False
) -> None:
    """dst becomes the larger of dst and src, element by element; the rest as for T.atomic_add."""


@word
def atomic_min(
    dst: Any, src: Any, size: Sequence[int] | None = None, *, memory_order: Any = None, use_tma: bool = False
) -> None:
    """dst becomes the smaller of dst and src, element by element; the rest as for T.atomic_add."""


reduce_max, reduce_min, reduce_sum = (reduction(f"reduce_{op}") for op in elementwise.REDUCE)


@number_word
def if_then_else(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y, element by element in T.Parallel: of elements, `a[i, j] > 0`, or of positions,
    `c * 64 + i >= k * 64 + j`; joined by and, or, not."""
    return of_sizes("if_then_else", lambda c, x, y: x if c else y, condition, x, y)


@number_word
def And(a: Any, b: Any) -> Any:  # noqa: N802
    """Both conditions."""
    return of_sizes("And", lambda a, b: a and b, a, b)


@number_word
def Or(a: Any, b: Any) -> Any:  # noqa: N802
    """One of the conditions, or both."""
    return of_sizes("Or", lambda a, b: a or b, a, b)


@number_word
def Not(a: Any) -> Any:  # noqa: N802
    """The opposite of a condition."""
    return of_sizes("Not", lambda a: not a, a)


@number_word
def max(a: Any, b: Any) -> Any:
    """The larger of two values."""
    return of_sizes("max", builtins.max, a, b)


@number_word
def min(a: Any, b: Any) -> Any:
    """The smaller of two values."""
    return of_sizes("min", builtins.min, a, b)


def __getattr__(name: str) -> Any:
    if name in DIALECT_NAMES:
        return DIALECT.get(DIALECT_NAMES[name]) or globals().get(DIALECT_NAMES[name]) or __getattr__(DIALECT_NAMES[name])
    if name in DIALECT and name not in TENSOR_WORDS:
        return DIALECT[name]
    if name in WORDS:
        return WORDS[name]
    if name in TENSOR_WORDS:
        return TENSOR_WORDS[name]
    if dtype_of(name) is not None or name in DTYPES:
        return ElementType(name)
    raise AttributeError(f"module 'tile_eg.language' has no word {name!r}", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted({*globals(), *WORDS, *DIALECT, *TENSOR_WORDS})
