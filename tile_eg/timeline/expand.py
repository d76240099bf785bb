"""A core's stream as the scalar unit walks it: loops run, guards evaluated, long loops shortened by whole periods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tile_eg.ir.index import ONE, Expr, evaluate, variables
from tile_eg.ir.program import Instr, Loop, Node, When

Env = dict[str, int]
Step = tuple[Node, Env]


def trip_numbers(trips: int, skipped: int) -> Iterator[int]:
    """0 .. trips, without `skipped` of them in the middle; the first and the last ones, where edges are, always run."""
    head = (trips - skipped + 1) // 2
    yield from range(head)
    yield from range(head + skipped, trips)


def holds(condition: Expr, env: Mapping[str, int]) -> bool:
    return bool(condition.args[0] if condition.op == "const" else evaluate(condition, env))


def steps(nodes: tuple[Node, ...], env: Env, skip: Mapping[str, int]) -> Iterator[Step]:
    """Every node that is issued, with the variables' values at its time; a Loop itself comes once for each of its trips."""
    for node in nodes:
        if isinstance(node, Loop):
            for k in trip_numbers(node.trips, skip.get(node.var, 0)):
                inner = {**env, node.var: k}
                yield node, inner
                yield from steps(node.body, inner, skip)
        elif isinstance(node, When):
            if holds(node.condition, env):
                yield from steps(node.body, env, skip)
        elif not isinstance(node, Instr) or holds(node.when, env):
            yield node, env


def count(nodes: tuple[Node, ...], trips: Mapping[str, int]) -> int:
    """How many steps a stream has, every guard taken, with `trips` in place of the loops' own where it names them."""
    total = 0
    for node in nodes:
        if isinstance(node, Loop):
            total += trips.get(node.var, node.trips) * (1 + count(node.body, trips))
        elif isinstance(node, When):
            total += count(node.body, trips)
        else:
            total += 1
    return total


def loops(nodes: tuple[Node, ...]) -> dict[str, int]:
    """The fewest trips of the loops by variable: cube and vector side of one loop may differ by its skew."""
    out: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, Loop | When):
            inner = loops(node.body)
            if isinstance(node, Loop):
                inner[node.var] = min(node.trips, inner.get(node.var, node.trips))
            for var, trips in inner.items():
                out[var] = min(trips, out.get(var, trips))
    return out


def nests(nodes: tuple[Node, ...]) -> set[str]:
    """The variables of loops that hold other loops of more than one trip."""
    out: set[str] = set()
    for node in nodes:
        if isinstance(node, Loop | When):
            inner = loops(node.body)
            out |= nests(node.body)
            if isinstance(node, Loop) and any(trips > 1 for trips in inner.values()):
                out.add(node.var)
    return out


def guards_on(nodes: tuple[Node, ...], name: str) -> bool:
    """Whether a guard depends on the variable `name`."""
    for node in nodes:
        condition = node.condition if isinstance(node, When) else node.when if isinstance(node, Instr) else ONE
        if name in variables(condition):
            return True
        if isinstance(node, Loop | When) and guards_on(node.body, name):
            return True
    return False
