"""Extractors are found by name, or as module:Class; whatever is wrong with one is told."""

from __future__ import annotations

import pytest

from tests.extract.kernels import CHIP, GATED, graph_of
from tile_eg.chips import Chip
from tile_eg.egraph import Graph
from tile_eg.errors import TileError
from tile_eg.extract import EXTRACTORS, Extraction, extract, make_extractor
from tile_eg.extract.beam import Beam
from tile_eg.extract.pricing import Pricer


class Mine(Beam):
    """An extractor from outside."""

    name = "mine"


class Broken:
    """One that fails."""

    def extract(self, graph: Graph, chip: Chip, pricer: Pricer, k: int = 3) -> Extraction:
        raise ValueError("out of ideas")


class Nothing:
    """No extractor."""


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("name", EXTRACTORS)
def test_every_name_finds_schedules(name: str) -> None:
    found = extract(graph_of(GATED), CHIP, k=1, extractor=name)
    assert found.schedules
    assert found.extractor in (name, "beam")


@pytest.mark.slow
def test_a_class_of_ones_own_is_used() -> None:
    assert extract(graph_of(GATED), CHIP, k=1, extractor=f"{__name__}:Mine").extractor == "mine"


def test_a_class_that_fails_is_named_with_what_it_said() -> None:
    with pytest.raises(TileError, match="Broken' failed: ValueError: out of ideas"):
        extract(graph_of(GATED), CHIP, extractor=f"{__name__}:Broken")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("exat", "did you mean `exact`"),
        ("no.such.module:X", "No module named"),
        (f"{__name__}:Absent", "has no attribute"),
        (f"{__name__}:Nothing", "has no method extract"),
    ],
)
def test_what_is_no_extractor_is_refused(name: str, words: str) -> None:
    with pytest.raises(TileError, match=words):
        make_extractor(name)


def test_settings_reach_the_extractor() -> None:
    assert make_extractor("exact", {"work": 1.5}).work == 1.5  # type: ignore[attr-defined]


def test_greedy_takes_the_next_legal_choice_where_its_own_is_not() -> None:
    """The additive choice of a gated product may clobber a value that is still read."""
    found = extract(graph_of(GATED), CHIP, k=1, extractor="greedy")
    assert len(found.schedules) == 1
