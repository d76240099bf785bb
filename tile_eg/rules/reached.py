"""The rules that may match in an e-graph: those whose conditions name only what its first rows hold, or what such rules make."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from tile_eg.rules.theory import Theory

HEAD = re.compile(r"\(([^\s()]+)")
DECLARED = ("constructor", "function", "relation")
Needs = tuple[tuple[str, frozenset[str], frozenset[str]], ...]


def reached(held: tuple[Theory, ...], commands: Iterable[str]) -> frozenset[str]:
    """The names of the rules of `held` that may match once `commands` are carried out.

    No rule of another name ever does, so an e-graph without them finds the same.
    """
    needs, first = _needs(held)
    return _closed(needs, first.union(*map(HEAD.findall, commands)))


@lru_cache(maxsize=16)
def _closed(needs: Needs, heads: frozenset[str]) -> frozenset[str]:
    known, names, left = set(heads), set[str](), list(needs)
    while True:
        may = [rule for rule in left if rule[1] <= known]
        if not may:
            return frozenset(names)
        left = [rule for rule in left if not rule[1] <= known]
        names.update(name for name, _, _ in may)
        known.update(*(makes for _, _, makes in may))


@lru_cache(maxsize=16)
def _needs(held: tuple[Theory, ...]) -> tuple[Needs, frozenset[str]]:
    """Of each rule its name, the tables that it asks for, and what it makes; and what the theories' own facts hold."""
    texts = [text for theory in held for text in theory.text]
    tables = {text.split(None, 2)[1] for text in texts if (first := HEAD.search(text)) and first[1] in DECLARED}
    facts = [text for text in texts if not text.startswith(("(rule ", *(f"({word} " for word in DECLARED)))]
    rules = tuple((r.name, r.needs & tables, r.makes) for theory in held for r in theory.rules)
    return rules, frozenset(head for fact in facts for head in HEAD.findall(fact))
