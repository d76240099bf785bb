"""E-graphs with rules and nothing else: reading rules takes longer than a small search, so those of the last ones are kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tile_eg.rules import Theory, native
from tile_eg.rules.reached import reached
from tile_eg.rules.theory import without_rules

KEPT = 4
_lock = threading.Lock()
_bases: dict[tuple[Theory, ...], tuple[frozenset[str], Any]] = {}


def run(egraph: Any, commands: str) -> list:
    try:
        return native.run(egraph, commands)
    except RuntimeError as e:
        raise RuntimeError(f"the e-graph refused {commands[:200]!r}: {e}") from e


@contextmanager
def scratch(held: tuple[Theory, ...], commands: Sequence[str]) -> Iterator[Any]:
    """An e-graph with what `commands` need of the rules; what is added is gone afterwards. The caller runs them."""
    with _lock:
        egraph = _base(held, reached(held, commands))
        run(egraph, "(push)")
        try:
            yield egraph
        except BaseException:
            _bases.pop(held, None)  # a panic leaves it in an unknown state
            raise
        run(egraph, "(pop)")


def _base(held: tuple[Theory, ...], needed: frozenset[str]) -> Any:
    """The e-graph with these rules at least: of a first kernel with its own alone, of others with all of them."""
    names, egraph = _bases.get(held, (None, None))
    if names is None or not needed <= names:
        every = frozenset(rule.name for theory in held for rule in theory.rules)
        names = needed if names is None else every
        for old in list(_bases)[: max(0, len(_bases) - KEPT + 1)]:
            del _bases[old]
        egraph = _loaded(held, every - names)
        _bases[held] = names, egraph
    return egraph


def _loaded(held: tuple[Theory, ...], left_out: frozenset[str]) -> Any:
    egraph = native.load().EGraph()
    native.run_all(egraph, [text for theory in held for text in without_rules(theory, left_out).text])
    return egraph
