"""What there is: the rules by theory, and the chips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tile_eg.chips import DEFAULT_CHIP, known_chips, load_chip
from tile_eg.errors import TileError
from tile_eg.ops.types import Level
from tile_eg.report.text import indent, size, table
from tile_eg.rules import LAWS, Rule, Theory, theories

MOVES = "moves"


def rules_text(wanted: Sequence[str] = (), moves: Sequence[tuple[str, str, str]] = ()) -> str:
    """The count of rules by theory and law; then every rule's name, law, line of maths and bound, theory by theory; and the moves
    of the search (name, law, line of maths) in the same way.

    `wanted` names the theories to list, or "moves"; none lists all. TileError for a name that none has.
    """
    known = [*(t.name for t in theories()), MOVES]
    for name in wanted:
        if name not in known:
            raise TileError(f"there is no theory '{name}'", help="the theories: " + ", ".join(known))
    listed = [_theory(t) for t in theories() if not wanted or t.name in wanted]
    if moves and (not wanted or MOVES in wanted):
        listed.append(f"{MOVES}\n{indent(table(moves))}")
    counts = [] if wanted == [MOVES] else [_counts()]
    return "\n\n".join([*counts, *filter(None, listed)])


def _counts() -> str:
    rows = [(t.name, *(n or "" for n in _by_law(t)), len(t.rules)) for t in theories()]
    total = [sum(_by_law(t)[i] for t in theories()) for i in range(len(LAWS))]
    return table([*rows, ("together", *total, sum(total))], ("theory", *LAWS, "rules"), right=range(1, len(LAWS) + 2))


def _by_law(theory: Theory) -> list[int]:
    count = Counter(rule.law for rule in theory.rules)
    return [count[law] for law in LAWS]


def _theory(theory: Theory) -> str:
    rows = [(rule.name, rule.law, _line(rule)) for rule in theory.rules]
    return f"{theory.name}\n{indent(table(rows))}" if rows else ""


def _line(rule: Rule) -> str:
    """Its line of maths, and how far its sides may be apart."""
    return f"{rule.maths}   within {rule.within}" if rule.within else rule.maths


def chips_text() -> str:
    """The chips that have tables, and what sets them apart."""
    levels = (Level.L1, Level.L0A, Level.L0B, Level.L0C, Level.UB)
    rows = []
    for name in known_chips(None):
        c = load_chip(name)
        mark = " (default)" if name == DEFAULT_CHIP else ""
        memories = [size(c.memories[level].bytes) for level in levels]
        rows.append((name + mark, c.architecture, c.cube_cores, c.vector_cores, f"{c.clock_mhz:g}", *memories, size(c.l2_bytes)))
    return table(rows, ("chip", "arch", "cube", "vector", "MHz", *levels, "L2"), right=range(2, 11))
