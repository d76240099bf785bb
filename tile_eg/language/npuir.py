"""Words of AscendNPU-IR's dialect that the rest of the language does not have: the destination behind the sources."""

from __future__ import annotations

from typing import Any

from tile_eg.language.words import Word, alike, unsupported


def _with_room(src: Any, dst: Any, tmp: Any = None) -> None: ...
def _clamp(src: Any, dst: Any, min_val: Any, max_val: Any) -> None: ...
def _shift(a: Any, b: Any, dst: Any) -> None: ...
def _shift_right(a: Any, b: Any, dst: Any, round: Any = True) -> None: ...
def _bitcast(src: Any, dtype: Any) -> None: ...
def _moved(src: Any, dst: Any, size: Any = None) -> None: ...
def _from_l0c(
    src: Any, dst: Any, size: Any = None, enable_nz2nd: Any = False, channel_split: Any = False, pre_relu_mode: Any = ""
) -> None: ...
def _arange(dst: Any, strides: Any, offset: Any = 0) -> None: ...
def _concat(*operands: Any, size: Any = None) -> None: ...
def _interleave(*operands: Any, channel_nums: int = 2, size: Any = None) -> None: ...
def _deinterleave(*operands: Any, channel_nums: int = 2, index_mode: str = "ALL_CHANNELS", size: Any = None) -> None: ...
def _pad(src: Any, dst: Any, pad_value: Any, low: Any, high: Any, size: Any = None) -> None: ...
def _flip(src: Any, dst: Any, axis: int, size: Any = None) -> None: ...
def _gather(src: Any, dst: Any, indices: Any, size: Any = None) -> None: ...
def _reciprocal(src: Any, dst: Any) -> None: ...


WORDS: dict[str, Word] = {
    **alike(_with_room, ["vexp2", "vlog2"], "", "{}: dst = f(src); `tmp` holds what is computed on the way"),
    **alike(_reciprocal, ["vrec"], "", "dst = 1 / src"),
    **alike(_clamp, ["vclamp"], "", "dst = src within min_val .. max_val, which are numbers or tiles"),
    **alike(_shift, ["vshl"], "", "dst = the bits of a, b further to the left"),
    **alike(_shift_right, ["vshr"], "", "dst = the bits of a, b further to the right"),
    **alike(_moved, ["load_nd2nz", "store_nz2nd"], "", "dst = src, as T.copy: how tiles lie in L1 and L0C is found"),
    **alike(_from_l0c, ["store_fixpipe"], "", "dst = a product, as T.copy, with `pre_relu_mode` \"relu\" not below 0"),
    **alike(_moved, ["atomic_addx4"], "", "dst += src, where other blocks may add to dst as well"),
    **alike(_arange, ["arange"], "", "dst[i, j] = offset + i * strides[0] + j * strides[1]"),
    **alike(_concat, ["concat"], "", "dst = the sources, one behind the other: T.concat(a, b, dst, axis)"),
    **alike(_interleave, ["interleave"], "", "the last argument is dst: its columns are those of two sources by turns"),
    **alike(_deinterleave, ["deinterleave"], "", "the destinations take src's even columns and its odd ones"),
    **alike(_pad, ["pad"], "", "dst = src, with `low` elements of the padding before it and `high` behind, by axis"),
    **alike(_flip, ["flip"], "", "dst = src, the last of its elements along `axis` first"),
    **alike(_gather, ["gather"], "", "dst[i, j] = src[i, indices[i, j]]"),
    **alike(_bitcast, ["vbitcast"], "", "from here on the bits of a buffer are elements of `dtype`"),
    **unsupported("", "expert", "rs sync_block_set sync_block_wait block_barrier subblock_barrier"),
}
_SAME = (
    "add sub max min mul div or and xor pow shl shr exp ln exp2 log2 brc cast clamp relu sigmoid select cmp sqrt rsqrt abs rec"
    " not"
)
_AS_THEY_ARE = (
    "load_nd2nz store_nz2nd store_fixpipe fill clear cumsum atomic_add atomic_addx4 gather interleave deinterleave transpose"
    " arange concat pad flip vcos vsin verf vtanh reshape"
)
NAMES = {
    **{f"npuir_{name}": f"v{name}" for name in _SAME.split()}, **{f"npuir_{name}": name for name in _AS_THEY_ARE.split()},
    "npuir_dot": "gemm", "npuir_bitcast": "vbitcast", "npuir_print": "print",
}  # fmt: skip
"""The dialect's own names of words, and the word that each is."""
