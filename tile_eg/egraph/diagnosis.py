"""Which rule joined two values that differ in shape, dtype or extent: the run is repeated with one rule at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tile_eg.rules import OF_VALUES, Theory, native

ROUNDS = 3


def merging_rule(new_egraph: Callable[[], Any], commands: Sequence[str], theories: Sequence[Theory]) -> str | None:
    """The name of the rule after which the facts of two joined values disagree, or None where no single rule does it.

    The commands build the kernel's values; every value rule runs alone, and the facts are brought up to date behind it.
    """
    egraph = new_egraph()
    names = [r.name for t in theories for r in t.rules if r.ruleset in OF_VALUES]
    for theory in theories:
        for text in theory.text:
            native.run(egraph, alone(text, names))
    for command in commands:
        native.run(egraph, command)
    for name in names * ROUNDS:
        try:
            native.run(egraph, f"(run-schedule (seq (run {ruleset_of(name)}) (saturate (run facts))))")
        except RuntimeError:
            return name
    return None


def ruleset_of(name: str) -> str:
    """The ruleset that holds one rule alone."""
    return f"only-{name}"


def alone(text: str, names: Iterable[str]) -> str:
    """The command with its rule, where it is one of `names`, moved to a ruleset of its own."""
    for name in names:
        if f':name "{name}"' in text:
            head, _, _ = text.rpartition(" :ruleset ")
            return f'(ruleset {ruleset_of(name)})\n{head} :ruleset {ruleset_of(name)} :name "{name}")'
    return text
