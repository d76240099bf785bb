"""The elementwise words, made from the table of operations, and the words of TileLang's that have no meaning yet.

There are three spellings: destination first (T.tile.exp(dst, src)), destination last (T.vexp(src, dst) and T.exp(src, dst)), and
expressions (T.exp(x)).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tile_eg.language.words import Word, alike, unsupported
from tile_eg.ops import elementwise

UNARY = {word: op.name for op in elementwise.UNARY.values() for word in op.python} | {"exp2": "exp2", "silu": "silu"}
BINARY = tuple(elementwise.BINARY)


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


_TILE_LATER = """pow leaky_relu bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_lshift bitwise_rshift sin cos round
    transpose createvecindex arith_progression compare select gather gatherb gather_mask sort sort32 merge_sort topk
    init_sort_buf wholereducemax wholereducemin wholereducesum block_reduce_max block_reduce_min block_reduce_sum
    bilinear_interpolation brcb brcb_experiment row_expand_mul row_expand_mul_experiment row_expand_sub_experiment
    row_expand_div_experiment sub_experiment abs_experiment mins_experiment reduce_sum_experiment fill_experiment
    gathermask_experiment sum_experiment reduce_sum_mask_experiment datacachecleanandinvalid_experiment"""
_LATER = """If Then Else Select view reshape reinterpretcast reinterpret printf
    print dump_tensor dynamic dyn loop_break while_loop set_deq_scale verf vpow vand vor vnot vxor vcmp vselect vcumsum
    erf pow sin cos floor ceil round bitwise_and bitwise_or cumsum any_of all_of call_extern contiguous shmem_put_nbi
    shmem_get_nbi shmem_ub_put_nbi shmem_ub_get_nbi c2d_im2col Then alloc_local wait_wgmma"""
_EXPERT = """Scope set_flag wait_flag barrier_all pipe_barrier sync_all
    set_cross_flag wait_cross_flag init_flag clear_flag annotate_address sync_threads"""

tile = SimpleNamespace(
    **unsupported("tile.", "later", _TILE_LATER),
    **alike(_tile_unary, list(UNARY), "tile.", "dst = {}(src)"),
    **alike(_tile_binary, BINARY, "tile.", "dst = {} of a and b, which is a tile, a number or an element m[i]"),
    **alike(_tile_fill, ["fill"], "tile.", "every element becomes `value`"),
    **alike(_tile_clear, ["clear"], "tile.", "every element becomes 0"),
    **alike(_tile_cast, ["cast"], "tile.", "dst = src in dst's dtype"),
    **alike(_tile_broadcast, ["broadcast"], "tile.", "dst = src along each row (axis 0) or each column (axis 1)"),
    **alike(_tile_multiply_add, ["axpy", "mul_add_dst"], "tile.", "dst = dst + a * b"),
    **alike(_tile_atomic, ["atomic_add"], "tile.", "dst += src, where other blocks may add to dst as well"),
    **alike(_tile_bound, ["clamp_min", "clamp_max"], "tile.", "out = the buffer, not beyond the bound"),
    **alike(_tile_clamp, ["clamp"], "tile.", "out = the buffer within low .. high"),
)
WORDS: dict[str, Word] = {
    **unsupported("", "later", _LATER),
    **unsupported("", "expert", _EXPERT),
    **alike(_unary, list(UNARY), "", "{0}(x); with a second argument, dst = {0}(x)"),
    **alike(_vector_unary, ["v" + op for op in UNARY], "", "{}: dst = f(src)"),
    **alike(_vector_binary, ["v" + op for op in BINARY], "", "{}: dst = f(a, b)"),
}
