"""Words on buffers of bools in a kernel that is kept: a byte an element, where masks have a bit; done as element loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend.expert.by_elements import by_elements
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.python.bools import holds_bools
from tile_eg.frontend.python.mask_words import LOGIC, comparison
from tile_eg.ir.kernel import Choose, Number, TileExpr

Word = Callable[..., Any]
ONE, NONE = Number(1.0), Number(0.0)


def bool_words(words: Mapping[str, Word]) -> dict[str, Word]:
    """The words on masks, which take bools as well."""
    logic: dict[str, Callable[..., TileExpr]] = {**LOGIC, "not": _inverted}
    joined = {f"tile.bitwise_{op}": partial(_computed, made) for op, made in logic.items()}
    found: dict[str, Word] = {"tile.compare": _compare, "tile.select": _select, **joined}
    return {name: partial(word, words[name]) for name, word in found.items() if name in words}


def _inverted(x: TileExpr) -> TileExpr:
    return Choose("ne", x, NONE, NONE, ONE, x.span)


def _compare(word: Word, r: ExpertReader, span: Span, dst: Any, a: Any, b: Any, mode: Any) -> None:
    if not holds_bools(dst):
        return word(r, span, dst, a, b, mode)
    return by_elements(lambda x, y: Choose(comparison(mode, span), x, y, ONE, NONE, span), r, span, dst, a, b)


def _select(word: Word, r: ExpertReader, span: Span, dst: Any, mask: Any, a: Any, b: Any, mode: Any) -> None:
    if not holds_bools(mask):
        return word(r, span, dst, mask, a, b, mode)
    return by_elements(lambda m, x, y: Choose("ne", m, NONE, x, y, span), r, span, dst, mask, a, b)


def _computed(made: Callable[..., TileExpr], word: Word, r: ExpertReader, span: Span, dst: Any, *sources: Any) -> None:
    """Of bools each element by itself; bits as they are."""
    if not all(map(holds_bools, (dst, *sources))):
        return word(r, span, dst, *sources)
    return by_elements(made, r, span, dst, *sources)
