"""The kernels that all rules need, looked for in two processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

from benchmarks.rules.kernels import kernels
from benchmarks.rules.needed import Search, Witness, choices

PROCESSES = 2


def witnesses(known: Mapping[str, str]) -> list[Witness]:
    """A kernel for each rule that has one: the `known` one where it still needs the rule, else the first that does.

    Rules with one kernel go together, so that it is compiled with all rules once; the large kernels come first.
    """
    of_kernel: dict[str, list[str]] = {name: [] for name in reversed(kernels())}
    for rule in choices():
        if known.get(rule) in of_kernel:
            of_kernel[known[rule]].append(rule)
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        groups = [(name, rules) for name, rules in of_kernel.items() if rules]
        found = {w.rule: w for ws in pool.map(_on, *zip(*groups, strict=True)) for w in ws if w.needed}
        return [*found.values(), *filter(None, pool.map(_first, [r for r in choices() if r not in found]))]


@cache
def _search() -> Search:
    return Search(kernels())


def _on(name: str, rules: Iterable[str]) -> list[Witness]:
    return [_search().tried(rule, name) for rule in rules]


def _first(rule: str) -> Witness | None:
    return _search().first(rule)
