"""The audit of a kernel: what its rules call equal is computed, term by term, and what differs is traced to the rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tile_eg.egraph.audit import Audit, Disagreement, audit, joined_by
from tile_eg.egraph.saturate import proves, value_members
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.values import Values
from tile_eg.rules import Theory, registry
from tile_eg.search import SearchOptions, search_options
from tile_eg.search.compiler import stage

SHOWN = 8


def audit_kernel(kernel: Kernel, search: SearchOptions | None = None, seed: int = 0) -> Audit:
    """All classes of the kernel's values in numbers, in its first and last block, on random inputs.

    Of each disagreement the rules that joined the two terms are found by leaving rules out; the first few are traced.
    """
    from tile_eg.frontend.checks import check
    from tile_eg.frontend.ssa import to_values

    with stage("check", kernel.source):
        check(kernel)
        values = to_values(kernel)
    search = search or search_options()
    held = search.theories
    with stage("saturate", kernel.source):
        members, phases = value_members(values, held, search.budget)
    with stage("audit", kernel.source):
        done = audit(members, _inputs(kernel, seed), sorted({0, values.blocks - 1}))
        matched = [r for p in phases for r, n in p.matches.items() if n and registry(held)[r].law != "fact"]
        done.found = [_traced(d, values, held, list(dict.fromkeys(matched))) for d in done.found[:SHOWN]] + done.found[SHOWN:]
    return done


def _inputs(kernel: Kernel, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {t.name: random.uniform(-1, 1, t.shape).astype(numpy_dtype(t.dtype)) for t in kernel.tensors}


def _traced(d: Disagreement, values: Values, held: tuple[Theory, ...], matched: list[str]) -> Disagreement:
    """The disagreement with the rules that made the two terms one."""

    def equal(names: frozenset[str]) -> bool:
        dropped = frozenset(matched) - names
        return proves(values, tuple(_without(t, dropped) for t in held), d.first, d.second)

    return replace(d, rules=joined_by(matched, equal)) if equal(frozenset(matched)) else d


def _without(theory: Theory, names: frozenset[str]) -> Theory:
    text = tuple(t for t in theory.text if not any(t.endswith(f':name "{name}")') for name in names))
    return theory if text == theory.text else replace(theory, text=text)
