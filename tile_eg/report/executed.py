"""How often a block does each instruction of a program, loops and branches gone through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, SUB, Expr
from tile_eg.ir.program import Loop, Node, Program, When, While, walk
from tile_eg.ir.program.instructions import Tasks


def executed(program: Program, core: str, block: int = 0) -> list[tuple[Node, int]]:
    """Each node of a core's stream that is no loop and no branch, with how often this block does it, if it does.

    What is decided by what is read counts as done, and a loop of which nothing is known has its most trips.
    """
    env = {BLOCK: block, SUB: 0}
    for let in program.lets:
        env[let.name] = _value(let.value, env, let.most)
    found = _Count()
    found.run(program.core(core), env, 1)
    return [(found.nodes[key], count) for key, count in found.counts.items() if count]


@dataclass
class _Count:
    counts: Counter[int] = field(default_factory=Counter)
    nodes: dict[int, Node] = field(default_factory=dict)

    def run(self, body: Sequence[Node], env: Mapping[str, int], times: int) -> None:
        for n in body:
            if isinstance(n, Loop):
                self.loop(n, env, times)
            elif isinstance(n, When):
                if isinstance(n, While) or _value(n.condition, env, 1):
                    self.run(n.body, env, times)
            else:
                self.nodes[id(n)] = n
                self.counts[id(n)] += times

    def loop(self, n: Loop, env: Mapping[str, int], times: int) -> None:
        trips = n.trips if n.until is None else _value(n.until, env, n.trips)
        if not isinstance(n, Tasks) and not _asked(n):
            self.run(n.body, {**env, n.var: 0}, times * trips)
            return
        for trip in range(trips):
            inside = {**env, n.var: trip}
            for let in n.lets if isinstance(n, Tasks) else ():
                inside[let.name] = _value(let.value, inside, let.most)
            self.run(n.body, inside, times)


def _asked(n: Loop) -> bool:
    """Whether a branch or a loop in a loop asks which trip this is."""
    conditions = [m.condition for m in walk(n.body) if isinstance(m, When)]
    counts = [m.until for m in walk(n.body) if isinstance(m, Loop) and m.until is not None]
    return any(n.var in ix.variables(e) for e in (*conditions, *counts))


def _value(e: Expr, env: Mapping[str, int], unknown: int) -> int:
    try:
        return ix.evaluate(e, env)
    except KeyError:
        return unknown
