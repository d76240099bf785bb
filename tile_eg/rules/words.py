"""Do the texts of a rule name what there is: an operation, an element type? egglog takes any text for a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tile_eg.errors import did_you_mean
from tile_eg.ops.elementwise import BINARY, COMPARE, REDUCE, UNARY
from tile_eg.ops.physical import VECTOR
from tile_eg.ops.records import record
from tile_eg.ops.types import DTYPES
from tile_eg.rules.sexpr import Form


def _vector(operation: str) -> dict[str, int]:
    """The vector instructions that name such an operation, and at which argument."""
    return {name: term.says[1] for name, term in VECTOR.items() if term.says and term.says[0] == operation}


_KINDS: tuple[tuple[str, Iterable[str], dict[str, int]], ...] = (
    ("operation of one tile", UNARY, {"Un": 0, "SUn": 0} | _vector("unary")),
    ("operation of two tiles", BINARY,
     {"Bin": 0, "BinR": 0, "BinC": 0, "BinS": 0, "BinN": 0, "SBin": 0} | _vector("binary")),
    ("reduction", REDUCE, {"Red": 1, "SRed": 0} | _vector("reduction")),
    ("comparison", COMPARE,
     {"Cho": 0, "ChoS": 0, "ChoI": 0, "SCho": 0, "SChoI": 0} | _vector("comparison")),
    ("element type", DTYPES, {"Cast": 0, "SCast": 0, "K": 1, "KN": 1, "Fill": 3, "FillN": 3}),
)  # fmt: skip
"""What a text says, the texts that there are, and at which argument of which constructors it stands."""


@record
class UnknownWord:
    """A text, with its quotes, that names nothing."""

    word: str
    what: str
    help: str


def unknown_words(form: Form) -> Iterator[UnknownWord]:
    """The texts in a rule that name no operation or element type where one has to stand."""
    if isinstance(form, str) or not form:
        return
    for kind, known, places in _KINDS:
        at = places.get(form[0], -1) + 1 if isinstance(form[0], str) else 0
        word = form[at] if 0 < at < len(form) else ""
        if isinstance(word, str) and word.startswith('"') and word.strip('"') not in known:
            yield UnknownWord(word, f"there is no {kind} {word}", did_you_mean(word.strip('"'), known))
    for part in form:
        yield from unknown_words(part)
