"""The elementwise words, made from the table of operations, and the words of TileLang's that have no meaning yet.

There are three spellings: destination first (T.tile.exp(dst, src)), destination last (T.vexp(src, dst) and T.exp(src, dst)), and
expressions (T.exp(x)).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tile_eg.language.gpu import HINTS, hint
from tile_eg.language.words import Word, alike, unsupported
from tile_eg.ops import elementwise

_MADE = ("exp2", "exp10", "log2", "silu")
"""Functions of one value that are made of others."""
UNARY = {word: op.name for op in elementwise.UNARY.values() for word in op.python} | {n: n for n in _MADE}
BINARY = {word: op.name for op in elementwise.BINARY.values() for word in (op.python or (op.name,))}
_DIALECT = {"vand": "and", "vor": "or", "vxor": "xor", "vpow": "pow"}
"""Of AscendNPU-IR."""
VECTOR_BINARY = {"v" + word: op for word, op in BINARY.items() if not word.startswith("bitwise")} | _DIALECT
ROW_EXPANDED = ("mul", "sub", "div")
"""Operations of a tile and a number for each of its rows that have a word."""
EXPRESSIONS = ("bitwise_and", "bitwise_or", "bitwise_xor", *elementwise.OF_TWO_FLOATS)
"""Words of two values that are expressions too."""


def _tile_unary(dst: Any, src: Any) -> None: ...
def _tile_binary(dst: Any, a: Any, b: Any) -> None: ...
def _tile_fill(buffer: Any, value: float) -> None: ...
def _tile_clear(buffer: Any) -> None: ...
def _tile_cast(dst: Any, src: Any, mode: str = "CAST_NONE", count: Any = None) -> None: ...
def _tile_broadcast(dst: Any, src: Any, axis: int | None = None) -> None: ...
def _tile_multiply_add(dst: Any, a: Any, b: Any) -> None: ...
def _tile_atomic(dst: Any, src: Any) -> None: ...
def _tile_bound(out: Any, buffer: Any, bound: Any, count: Any = None) -> None: ...
def _tile_compare(dst: Any, src0: Any, src1: Any, mode: str) -> None: ...
def _tile_select(dst: Any, mask: Any, src0: Any, src1: Any, selMode: str = "VSEL_TENSOR_TENSOR_MODE") -> None: ...  # noqa: N803
def _tile_index(dst: Any, first: Any) -> None: ...
def _tile_progression(buffer: Any, first: Any, diff: Any, count: Any = None) -> None: ...
def _tile_shift(dst: Any, src: Any, bits: Any) -> None: ...
def _tile_counted(out: Any, buffer: Any, count: Any = None) -> None: ...
def _tile_whole_reduce(  # noqa: N803
    dst: Any, src: Any, mask: Any, repeattimes: Any, dstrepstride: Any, srcblkstride: Any, srcrepstride: Any,
    ReduceOrder: str = "ORDER_VALUE_INDEX",  # noqa: N803
) -> None: ...  # fmt: skip
def _tile_whole_sum(
    dst: Any, src: Any, mask: Any, repeattimes: Any, dstrepstride: Any, srcblkstride: Any, srcrepstride: Any
) -> None: ...
def _tile_block_reduce(
    dst: Any, src: Any, repeat: Any, mask: Any, dstPepStride: Any, srcBlkStride: Any, srcRepStride: Any  # noqa: N803
) -> None: ...
def _tile_gatherb(dst: Any, src0: Any, offset: Any, repeat_time: Any, dst_blk_stride: Any, dst_rep_stride: Any) -> None: ...
def _tile_pair_counted(dst: Any, src0: Any, src1: Any, count: Any) -> None: ...
def _tile_one_counted(dst: Any, src: Any, count: Any) -> None: ...
def _tile_sums(dst: Any, src: Any, sumParams: Any) -> None: ...  # noqa: N803
def _tile_reduce(dst: Any, src: Any, tmp: Any = None, dim: int = -1, size: Any = None) -> None: ...
def _tile_rows(dst: Any, src0: Any, src1: Any, tmp: Any = None) -> None: ...
def _tile_blocks(dst: Any, src: Any, repeat_times: Any, dst_blk_stride: Any, dst_repeat_stride: Any) -> None: ...
def _printf(format: str, *args: Any) -> None: ...
def _dump_tensor(tensor: Any, desc: int, dump_size: int, shape_info: Any = ()) -> None: ...
def _print(obj: Any, msg: str = "", warp_group_id: Any = 0, warp_id: Any = 0) -> None: ...
def _device_assert(condition: Any, msg: str = "") -> None: ...
def _cumsum(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False) -> None: ...
def _place(buffer: Any, out: Any = None, dim: int = -1) -> Any: ...
def _deq_scale(scale: Any) -> None: ...
def _tile_pairs(dst: Any, src: Any, indices: Any) -> None: ...
def _tile_gather(dst: Any, src: Any, offsets: Any, base: Any = 0) -> None: ...
def _tile_gather_mask(dst: Any, src: Any, pattern: Any) -> None: ...
def _tile_sort(dst: Any, src: Any, count: Any) -> None: ...
def _tile_topk(dst: Any, src: Any, K: Any, count: Any) -> None: ...  # noqa: N803
def _tile_merge(dst: Any, src0: Any, src1: Any, src2: Any = None, src3: Any = None) -> None: ...
def _reinterpreted(dst: Any, src: Any, dtype: Any) -> None: ...
def _chosen(condition: Any, x: Any, y: Any) -> Any: ...
def _expression(x: Any, y: Any) -> Any: ...
def _typed(dtype: Any, x: Any) -> Any: ...
def _within(x: Any, min_val: Any, max_val: Any) -> Any: ...
def _predicate(x: Any) -> Any: ...
def _vector_compare(a: Any, b: Any, dst: Any, mode: str) -> None: ...
def _vector_select(mask: Any, a: Any, b: Any, dst: Any) -> None: ...
def _reduced(
    buffer: Any, out: Any, dims: Any = None, reduce_mode: Any = None, size: Any = None, clear: bool = True, *,
    reduce_type: Any = None, dim: Any = None, real_shape: Any = None,
) -> None: ...  # fmt: skip


def _absolute(buffer: Any, out: Any = None, dim: int = -1, clear: bool = True, real_shape: Any = None) -> Any: ...
def _tile_clamp(out: Any, buffer: Any, low: Any, high: Any, count: Any = None) -> None: ...
def _unary(x: Any, dst: Any = None) -> Any: ...
def _vector_unary(src: Any, dst: Any) -> None: ...
def _vector_binary(a: Any, b: Any, dst: Any) -> None: ...
def _transposed(src: Any, dst: Any, permutation: Any = None, size: Any = None) -> None: ...


_TILE_LATER = """init_sort_buf bilinear_interpolation fill_experiment gathermask_experiment reduce_sum_mask_experiment
    datacachecleanandinvalid_experiment"""
_LATER = """If Then Else view reshape reinterpret
    print dynamic dyn while_loop any_of all_of call_extern contiguous shmem_put_nbi
    shmem_get_nbi shmem_ub_put_nbi shmem_ub_get_nbi c2d_im2col Then alloc_local wait_wgmma"""
_EXPERT = """Scope set_flag wait_flag barrier_all pipe_barrier sync_all
    set_cross_flag wait_cross_flag init_flag clear_flag annotate_address sync_threads"""

tile = SimpleNamespace(
    **unsupported("tile.", "later", _TILE_LATER),
    **alike(_tile_unary, [u for u in UNARY if u != "round"], "tile.", "dst = {}(src)"),
    **alike(_tile_counted, ["round"], "tile.", "out = the buffer, each element the nearest whole number, ties to even"),
    **alike(_tile_binary, tuple(BINARY), "tile.", "dst = {} of a and b, which is a tile, a number or an element m[i]"),
    **alike(_tile_fill, ["fill"], "tile.", "every element becomes `value`"),
    **alike(_tile_clear, ["clear"], "tile.", "every element becomes 0"),
    **alike(_tile_cast, ["cast"], "tile.", "dst = src in dst's dtype"),
    **alike(_tile_broadcast, ["broadcast"], "tile.", "dst = src along each row (axis 0) or each column (axis 1)"),
    **alike(_tile_multiply_add, ["axpy", "mul_add_dst"], "tile.", "dst = dst + a * b"),
    **alike(_tile_atomic, ["atomic_add"], "tile.", "dst += src, where other blocks may add to dst as well"),
    **alike(_tile_atomic, ["atomic_max"], "tile.", "dst = the larger of dst and src, where other blocks may do so as well"),
    **alike(_tile_atomic, ["atomic_min"], "tile.", "dst = the smaller of dst and src, where other blocks may do so as well"),
    **alike(_tile_bound, ["clamp_min", "clamp_max"], "tile.", "out = the buffer, not beyond the bound"),
    **alike(_tile_compare, ["compare"], "tile.", "a mask: where src0 is to src1 as the mode says: EQ NE GT GE LT LE"),
    **alike(_tile_select, ["select"], "tile.", "dst = src0 where the mask holds, else src1"),
    **alike(_tile_index, ["createvecindex"], "tile.", "dst = first, first + 1, ... row by row"),
    **alike(_tile_progression, ["arith_progression"], "tile.", "buffer = first, first + diff, first + 2 diff, ... row by row"),
    **alike(_tile_pairs, ["sort32"], "tile.", "dst = pairs of src and its indices, each 32 of them sorted, the largest first"),
    **alike(_tile_unary, ["transpose"], "tile.", "dst[j, i] = src[i, j]"),
    **alike(_tile_gather, ["gather"], "tile.", "dst[i] = the element of src at so many bytes: offsets[i] (uint32) and base"),
    **alike(_tile_gather_mask, ["gather_mask"], "tile.", "dst = the elements of src that the pattern names: P0101 the even ones"),
    **alike(_tile_sort, ["sort"], "tile.", "dst = pairs of value and index of the first `count` of src, the largest first"),
    **alike(_tile_topk, ["topk"], "tile.", "dst = the first K pairs of value and index of src's first `count`, sorted"),
    **alike(_tile_merge, ["merge_sort"], "tile.", "dst = two to four sorted lists of pairs as one"),
    **alike(_tile_whole_reduce, ["wholereducemax", "wholereducemin"], "tile.", "each repeat of src as one value and its index"),
    **alike(_tile_whole_sum, ["wholereducesum"], "tile.", "each repeat of src as its sum"),
    **alike(_tile_block_reduce, [f"block_reduce_{op}" for op in elementwise.REDUCE], "tile.", "32 bytes of src as one value"),
    **alike(_tile_reduce, [f"reduce_{op}" for op in elementwise.REDUCE], "tile.",
            "dst = src, or its first rows and columns (`size`), reduced along `dim`"),
    **alike(_tile_gatherb, ["gatherb"], "tile.", "dst = the blocks of 32 bytes of src at so many bytes: offset (uint32)"),
    **alike(_tile_pair_counted, ["sub_experiment"], "tile.", "dst = src0 - src1, of the first `count` elements"),
    **alike(_tile_one_counted, ["abs_experiment"], "tile.", "dst = |src|, of the first `count` elements"),
    **alike(_tile_pair_counted, ["mins_experiment"], "tile.", "dst = src, not above a number, of the first `count` elements"),
    **alike(_tile_one_counted, ["reduce_sum_experiment"], "tile.", "dst[0] = the sum of the first `count` elements of src"),
    **alike(_tile_sums, ["sum_experiment"], "tile.", "dst = sums of rows: [rows, elements from row to row, elements summed]"),
    **alike(_tile_rows, ["row_expand_mul"], "tile.", "dst[i, j] = src0[i, j] * src1[i]"),
    **alike(_tile_rows, [f"row_expand_{op}_experiment" for op in ROW_EXPANDED], "tile.",
            "dst[i, j] = src0[i, j] op src1[i], or src1[i, j % 8] where its rows are 32 bytes (% 16 of 16-bit elements)"),
    **alike(_tile_blocks, ["brcb", "brcb_experiment"], "tile.", "dst = 32 bytes of each of 8 * repeat_times elements of src"),
    **alike(_tile_clamp, ["clamp"], "tile.", "out = the buffer within low .. high"),
)
WORDS: dict[str, Word] = {
    **unsupported("", "later", _LATER),
    **unsupported("", "expert", _EXPERT),
    **alike(hint, list(HINTS), "", "{}, of a GPU: it means nothing here"),
    **alike(_unary, list(UNARY), "", "{0}(x); with a second argument, dst = {0}(x)"),
    **alike(_vector_unary, ["v" + op for op in UNARY], "", "{}: dst = f(src)"),
    **alike(_vector_binary, list(VECTOR_BINARY), "", "{}: dst = f(a, b)"),
    **alike(_vector_unary, ["vnot"], "", "{}: dst = f(src)"),
    **alike(_vector_compare, ["vcmp"], "", "{}: the mask of a comparison"),
    **alike(_vector_select, ["vselect"], "", "{}: dst = a where the mask holds, else b"),
    **alike(_expression, list(EXPRESSIONS), "", "{} of two values"),
    **alike(_transposed, ["transpose"], "", "dst = src, rows and columns exchanged, or the axes as `permutation` says"),
    **alike(_expression, ["fmod"], "", "the remainder of x / y with the sign of x, of floats"),
    **alike(_expression, ["Min", "Max"], "", "the {} of two values"),
    **alike(_within, ["clamp"], "", "x within min_val .. max_val, as an expression"),
    **alike(_typed, ["Cast"], "", "x in another dtype, as an expression"),
    **alike(_chosen, ["where", "Select"], "", "x where the condition holds, else y"),
    **alike(_cumsum, ["cumprod"], "", "dst = running products of src along `dim`, from its end with `reverse`"),
    **alike(_place, ["argmax", "argmin"], "", "{}: out = places (int32) along `dim`, the first of equals; also an expression"),
    **alike(_cumsum, ["cumsum", "vcumsum"], "", "dst = running sums of src along `dim`, from its end with `reverse`"),
    **alike(_printf, ["printf"], "", "prints its arguments by a C format, from each core that is there"),
    **alike(_print, ["print"], "", "prints a number, or all elements of a buffer or of a part of one, behind the text `msg`"),
    **alike(_dump_tensor, ["dump_tensor"], "", "prints the first elements of a buffer or tensor under the number `desc`"),
    **alike(_device_assert, ["device_assert"], "", "a condition on indices that has to hold when the kernel is there"),
    **alike(_deq_scale, ["set_deq_scale"], "", "what int32 is multiplied by on its way to float16 from here on"),
    **alike(_predicate, ["isnan"], "", "the condition that x is no number"),
    **alike(_reinterpreted, ["reinterpretcast"], "", "dst = the bits of src"),
    **alike(_reduced, ["reduce", "npuir_reduce"], "", "out = the buffer reduced along one of `dims`, as `reduce_mode` says"),
    **alike(_absolute, ["reduce_absmax", "reduce_abssum"], "", "{}: the reduction of the magnitudes"),
}
