"""What to write in place of words that the language does not have."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from tile_eg import language
from tile_eg.language.words import developer_words

INSTEAD = {
    "maximum": "T.max(x, y)", "minimum": "T.min(x, y)", 
    "to": 'T.cast(x, "float32")', "square": "x * x", "power": "x ** y", "fabs": "T.abs(x)",
    "softmax": "T.reduce_max, T.exp and T.reduce_sum of the rows", "mean": "T.reduce_sum(x, dim=1) / n",
    "reduce_mean": "T.reduce_sum(x, dim=1) / n", "matmul": "T.gemm(a, b, c)", "dot": "T.gemm(a, b, c)",
    "argmax": "T.reduce_max, then the least index where x equals it: T.reduce_min(T.where(x == m[:, None], index, n))",
    "argmin": "T.reduce_min, then the least index where x equals it: T.reduce_min(T.where(x == m[:, None], index, n))",
    "fmod": "x - y * T.trunc(x / y)", "log2": "T.log(x) * 1.4426950408889634", "log10": "T.log(x) * 0.4342944819032518",
    "zeros": "T.clear(buffer)", "ones": "T.fill(buffer, 1)", "sum": "T.reduce_sum(x, dim=1)", "isinf": "T.abs(x) == T.infinity()",
    "logical_and": "a and b", "logical_or": "a or b", "logical_not": "not a", "xor": "T.bitwise_xor(x, y)",
}  # fmt: skip
"""Words of other languages of arrays."""


def near_word(prefix: str, words: Any, name: str) -> str:
    """A help line: the word of that name in the other half of the language, what says the same, or the nearest word."""
    if words is language and name in developer_words(language.tile):
        return f"did you mean {prefix}.tile.{name}?"
    if words is language.tile and name in developer_words(language):
        return f"did you mean {prefix.removesuffix('.tile')}.{name}?"
    if name in INSTEAD:
        return f"write {INSTEAD[name]}"
    close = get_close_matches(name, developer_words(words), 1)
    return f"did you mean {prefix}.{close[0]}?" if close else ""
