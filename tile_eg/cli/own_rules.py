"""Whether it is the user's own rules that make a run go wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_eg.search import SearchOptions
from tile_eg.search.compiler import Lowered, Planned


def blamed(planned: Planned, search: SearchOptions, good: Callable[[SearchOptions], bool]) -> str:
    """What to tell of a bad run in which rules of the user's own took part; empty where it is as bad without them.

    `good` compiles and runs the kernel with other options of the search, and says whether that run is good.
    """
    own = {r.name: r.law for theory in search.rules for r in theory.rules if r.name not in search.without}
    if isinstance(planned, Lowered):
        matched = {name for phase in planned.phases for name, n in phase.matches.items() if n}
        own = {name: law for name, law in own.items() if name in matched}
    if not own or not good(replace(search, rules=())):
        return ""
    names = ", ".join(f"'{name}' ({law})" for name, law in own.items())
    audit = "`tile-eg audit` with the same --rules says which equality does not hold in numbers"
    implements = "; what a rule of the law `implements` claims of an instruction, only a run shows"
    help = (audit if set(own.values()) != {"implements"} else "") + (implements if "implements" in own.values() else "")
    return f"error: without rules of your own the run is good; these took part: {names}\nhelp: {help.removeprefix('; ')}"
