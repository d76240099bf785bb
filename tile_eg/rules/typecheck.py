"""Whether egglog takes a theory: form by form, beside the rules that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tile_eg.ops.records import record
from tile_eg.rules import native
from tile_eg.rules.sexpr import Placed
from tile_eg.rules.theory import Theory

_PLACE = re.compile(r"In \d+:[\d-]+: *(.*)")


@record
class TypeFault:
    """What egglog says, and the part of the form that it says it of."""

    what: str
    where: str


def loaded(held: Iterable[Theory]) -> Any:
    """A new e-graph with these theories."""
    egraph = native.load().EGraph()
    native.run_all(egraph, [text for theory in held for text in theory.text])
    return egraph


def check_types(held: tuple[Theory, ...], forms: Iterable[tuple[Placed, str]]) -> Iterator[tuple[Placed, TypeFault]]:
    """The first form that egglog refuses, with what it says. A form is given with its text as egglog takes it."""
    egraph = loaded(held)
    for placed, text in forms:
        try:
            native.run(egraph, text)
        except RuntimeError as error:
            yield placed, _fault(str(error))
            return


def _fault(message: str) -> TypeFault:
    """egglog's message in two parts: `In 1:39-51: (BinS "ad" x)`, then what is wrong with that."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    place = _PLACE.match(lines[0]) if lines else None
    if not place:
        return TypeFault(" ".join(lines) or "egglog refuses it", "")
    what = " ".join(lines[1:]) or "egglog refuses it"
    return TypeFault(what[0].lower() + what[1:], place[1])
