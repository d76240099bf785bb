"""E-graphs with rules and nothing else: reading rules takes longer than a small search, so those of the last ones are kept."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tile_eg.rules import Theory, native
from tile_eg.rules.reached import reached
from tile_eg.rules.theory import without_rules

KEPT = 6
MANY = 1.2
"""Times the rules that a kernel needs: e-graphs with more of them are slower by something that counts."""
OFTEN = 5
"""So often such an e-graph serves kernels that need the same rules: to read these by themselves takes what that loses."""


@dataclass(eq=False)
class _Base:
    """An e-graph with some rules, by name; `asked` is how often it served kernels that need these alone."""

    names: frozenset[str]
    egraph: Any
    asked: Counter[frozenset[str]] = field(default_factory=Counter)


_lock = threading.Lock()
_bases: dict[tuple[Theory, ...], list[_Base]] = {}  # what was used last stands last, of theories as of their e-graphs


def run(egraph: Any, commands: str) -> list:
    try:
        return native.run(egraph, commands)
    except RuntimeError as e:
        raise RuntimeError(f"the e-graph refused {commands[:200]!r}: {e}") from e


@contextmanager
def scratch(held: tuple[Theory, ...], commands: Sequence[str]) -> Iterator[Any]:
    """An e-graph with what `commands` need of the rules; what is added is gone afterwards. The caller runs them."""
    with _lock:
        base = _base(held, reached(held, commands))
        run(base.egraph, "(push)")
        try:
            yield base.egraph
        except BaseException:
            _bases[held].remove(base)  # a panic leaves it in an unknown state
            raise
        run(base.egraph, "(pop)")


def _base(held: tuple[Theory, ...], needed: frozenset[str]) -> _Base:
    """An e-graph with these rules at least. Of a first kernel it has its own alone, of others all of them, until kernels have
    often asked for the same few."""
    bases = _bases.pop(held, [])
    _bases[held] = bases
    base = min((b for b in bases if needed <= b.names), key=lambda b: len(b.names), default=None)
    if base is None or _is_too_large(base, needed):
        every = frozenset(rule.name for theory in held for rule in theory.rules)
        names = every if base is None and bases else needed
        base = _Base(names, _loaded(held, every - names))
    else:
        bases.remove(base)
    bases.append(base)
    _forget_others()
    return base


def _is_too_large(base: _Base, needed: frozenset[str]) -> bool:
    """Whether it would have paid to read the rules that are needed by themselves."""
    if len(base.names) <= MANY * len(needed):
        return False
    base.asked[needed] += 1
    return base.asked[needed] > OFTEN


def _forget_others() -> None:
    """Of the e-graphs that were used last `KEPT` stay."""
    while sum(map(len, _bases.values())) > KEPT:
        oldest = next(iter(_bases))
        _bases[oldest] = _bases[oldest][1:]
        if not _bases[oldest]:
            del _bases[oldest]


def _loaded(held: tuple[Theory, ...], left_out: frozenset[str]) -> Any:
    egraph = native.load().EGraph()
    native.run_all(egraph, [text for theory in held for text in without_rules(theory, left_out).text])
    return egraph
