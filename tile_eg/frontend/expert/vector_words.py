"""AscendNPU-IR's names of vector words, the destination last, in a kernel that is kept: what `T.tile` does with it first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert import vectors
from tile_eg.frontend.expert.moves import places, sized
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.expert.views import bits_of
from tile_eg.frontend.python.mask_words import SELECT_MODES
from tile_eg.frontend.python.values import describe
from tile_eg.language.elementwise_words import UNARY, VECTOR_BINARY

Word = Callable[..., Any]


def vector_words(words: Mapping[str, Word]) -> dict[str, Word]:
    """The words by those that do the same."""
    same = {**{f"v{name}": f"tile.{name}" for name in UNARY}, **{name: f"tile.{name[1:]}" for name in VECTOR_BINARY}}
    same |= {"vand": "tile.bitwise_and", "vor": "tile.bitwise_or", "vxor": "tile.bitwise_xor", "vnot": "tile.bitwise_not"}
    same |= {"vbrc": "tile.broadcast"}
    return {
        **{name: partial(_last, words[of]) for name, of in same.items() if of in words},
        **{name: partial(_of_bits, words[same[name]]) for name in ("vand", "vor", "vxor", "vnot")},
        "vcast": partial(_cast, words["tile.cast"]), "vcmp": partial(_compare, words["tile.compare"]),
        "vselect": partial(_select, words["tile.select"]),
    }  # fmt: skip


def _last(word: Word, r: ExpertReader, span: Span, *operands: Any) -> None:
    *sources, dst = operands
    word(r, span, dst, *sources)


def _of_bits(word: Word, r: ExpertReader, span: Span, *operands: Any) -> None:
    """The bits of floats are joined as those of whole numbers."""
    _last(word, r, span, *(bits_of(r, span, v) for v in operands))


def _cast(word: Word, r: ExpertReader, span: Span, src: Any, dst: Any, mode: Any, size: Any) -> None:
    if not isinstance(mode, str):
        raise TileError(f"a rounding mode is a name, not {describe(mode)}", span, help='round_mode="rint"')
    mode = f"CAST_{mode.upper().removeprefix('CAST_')}"
    if size is None:
        return word(r, span, dst, src, mode)
    target, source, counted = sized(r, span, src, dst, size)
    if not counted:
        return word(r, span, target, source, mode)
    return vectors.cast(r, span, *places(r, span, target, source), mode)


def _compare(word: Word, r: ExpertReader, span: Span, a: Any, b: Any, dst: Any, mode: Any) -> None:
    word(r, span, dst, a, b, mode)


def _select(word: Word, r: ExpertReader, span: Span, mask: Any, a: Any, b: Any, dst: Any) -> None:
    word(r, span, dst, mask, a, b, SELECT_MODES[-1])
