"""Words of AscendNPU-IR's dialect in a kernel that is kept: by the words that they are made of, or element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend.expert.by_elements import written
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.python.dialect_words import ELEMENTWISE, HANDLERS, in_loops, transposed_loops, turns_rows
from tile_eg.frontend.python.values import Buffer, Window, as_region
from tile_eg.ir.kernel import Assign

Word = Callable[..., Any]
COMPOSED = (
    "vexp2", "vlog2", "vclamp", "vrec", "vshl", "vshr", "load_nd2nz", "store_nz2nd", "store_fixpipe", "atomic_addx4", "concat",
    "pad",
)  # fmt: skip
"""Words that run others, which have a meaning here."""


def _one(r: ExpertReader, s: Assign, names: list[str], sizes: list[int]) -> None:
    r.grid.update({n: (0, size - 1) for n, size in zip(names, sizes, strict=True)})
    written(r, s, names, sizes)


def _by_elements(word: str, r: ExpertReader, span: Span, *operands: Any, **options: Any) -> None:
    in_loops(r, ELEMENTWISE[word](span, *operands, **options), span, _one)


def _transpose(plain: Word, r: ExpertReader, span: Span, src: Any, dst: Any, permutation: Any, size: Any) -> None:
    if turns_rows(permutation, size):
        return plain(r, span, src, dst)
    return in_loops(r, transposed_loops(span, src, dst, permutation, size), span, _one)


def _reshape(view: Word, copy: Word, r: ExpertReader, span: Span, src: Any, shape: Any = None, dtype: Any = None) -> Any:
    """T.reshape(src, dst) of two buffers fills the second one, and of one leaves it; with a shape it is a view of the first."""
    if not isinstance(shape, Buffer | Window):
        return view(r, span, src, shape, dtype)
    if shape is src:
        return None
    return copy(r, span, view(r, span, src, as_region(shape, span).shape, dtype), shape, None)


def dialect_words(words: Mapping[str, Word]) -> dict[str, Word]:
    """The dialect's words, beside the `words` that are there."""
    return {
        **{word: HANDLERS[word] for word in COMPOSED}, **{word: partial(_by_elements, word) for word in ELEMENTWISE},
        "transpose": partial(_transpose, words["transpose"]),
        "reshape": partial(_reshape, words["reshape"], words["copy"]),
    }  # fmt: skip
