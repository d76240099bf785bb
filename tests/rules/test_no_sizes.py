"""A rule has no size threshold of its own: what it compares a size with is another size, or a number of the machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tile_eg.rules import theories
from tile_eg.rules.sexpr import Form, parse

COMPARED = ("<", "<=", ">", ">=")
FEW = 4  # numbers of buffers, factors and the like
EXACT = {2048: "whole numbers up to it are exact in halves"}
MACHINE = EXACT | {
    8: "rows of a repeat, elements of f32 in a block",
    16: "rows of a fractal",
    32: "bytes of a block, bytes of a row of a fractal",
    256: "bytes of a repeat",
    64: "elements of f32 in a repeat, bytes of two blocks",
    512: "bytes of the two bank groups",
}


def numbers(form: Form | str) -> Iterator[int]:
    if not isinstance(form, str):
        for x in form:
            yield from numbers(x)
    elif form.lstrip("-").isdigit():
        yield int(form)


def within(form: Form | str, heads: tuple[str, ...]) -> Iterator[Form]:
    """The forms inside a form, itself included, that begin with one of these words."""
    if not isinstance(form, str):
        if form and form[0] in heads:
            yield form
        for x in form:
            yield from within(x, heads)


def conditions() -> list[tuple[str, Form]]:
    rules = ((t.name, f) for t in theories() for text in t.text for f in parse(text) if f[0] == "rule")
    return [(f"{name}: {rule[-1]}", rule[1]) for name, rule in rules]  # type: ignore[misc]


def test_sizes_are_compared_with_sizes() -> None:
    compared = ((where, c) for where, when in conditions() for c in within(when, COMPARED))
    assert {where: c for where, c in compared if any(abs(n) > FEW and n not in EXACT for n in numbers(c))} == {}


def test_other_numbers_in_conditions_are_the_machines() -> None:
    found = {where: n for where, when in conditions() for n in numbers(when) if abs(n) > FEW and n not in MACHINE}
    assert found == {}


@pytest.mark.parametrize("condition", ["(<= 8192 (* n c))", "(>= s 64)", "(< 512 d)"])
def test_a_threshold_would_be_found(condition: str) -> None:
    (form,) = parse(condition)
    assert any(abs(n) > FEW for c in within(form, COMPARED) for n in numbers(c))
