"""No two rows of the table of decisions read alike, nor do two ways to decide one thing."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tile_eg.extract.schedule import Schedule
from tile_eg.frontend.text import load_text
from tile_eg.report.decisions import choices, option
from tile_eg.search.compiler import lower

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("flash_attention", "layer_norm", "gemm")


@cache
def schedule(name: str) -> Schedule:
    return lower(load_text((EXAMPLES / f"{name}.tile").read_text()).instantiate({})).candidates[0].schedule


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", NAMES)
def test_each_decision_is_about_something_of_its_own(name: str) -> None:
    rows = Counter(about for _, about, _, _ in choices(schedule(name)))
    assert [about for about, n in rows.items() if n > 1] == []


@pytest.mark.slow(but=0)
@pytest.mark.parametrize("name", NAMES)
def test_what_was_chosen_reads_otherwise_than_what_was_not(name: str) -> None:
    chosen, graph = schedule(name), schedule(name).graph
    others = ((n, m) for n in chosen.nodes for m in graph.classes[n.cls] if (m.op, m.payload) != (n.op, n.payload))
    assert [(n.op, option(m, graph)) for n, m in others if option(m, graph) == option(n, graph)] == []
