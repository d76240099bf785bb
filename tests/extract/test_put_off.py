"""A kernel whose tiles are too large is first given smaller ones; another extractor is the last resort."""

from __future__ import annotations

import pytest

from tests.extract.kernels import CHIP, graph_of
from tile_eg.extract import EXTRACTORS, Storage, found_schedules
from tile_eg.extract.base import Extraction, Overflow, Refused
from tile_eg.frontend.text import load_text
from tile_eg.ops.types import F32, Level
from tile_eg.search import search_options
from tile_eg.search.compiler import lower

ADD = """
kernel add[M=64, N=64](X: f32[M, N], Y: f32[M, N]) -> Z: f32[M, N] {
  grid i = ceildiv(M, 16)
  shared x: f32[16, N], y: f32[16, N]
  x = X[i*16, 0]
  y = Y[i*16, 0]
  Z[i*16, 0] = x + y
}
"""
SMALLER = ("row-panels", "column-tiles", "column-tiles-of-sums", "epilogue-panels", "column-parts")
TILE = Storage(0, "x", Level.UB, 16, 64, F32, None, slot_bytes=4096)


class TooLarge:
    """Refuses one choice for its room, and gives up."""

    name = "exact"

    def extract(self, *_: object, **__: object) -> Extraction:
        refused = Refused("room", "too large", overflow=Overflow("UB", 1, (("x", TILE.bytes, TILE),)))
        return Extraction([], [(1.0, refused)], self.name, gave_up=True)


@pytest.fixture(autouse=True)
def exact_finds_all_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRACTORS, "exact", f"{__name__}:TooLarge")


def test_another_extractor_takes_over_unless_it_is_put_off() -> None:
    graph = graph_of(ADD)
    assert found_schedules(graph, CHIP).extractor == "beam"
    put_off = found_schedules(graph, CHIP, resort=False)
    assert put_off.put_off and put_off.problem and not put_off.schedules


def test_what_was_put_off_is_asked_where_nothing_else_was_found() -> None:
    low = lower(load_text(ADD), search=search_options(without=(*SMALLER, "blocks-together")))
    assert low.extraction.extractor == "beam" and not low.form.moves


class Nothing:
    """Finds nothing, behind choices that are illegal."""

    name = "beam"

    def extract(self, *_: object, **__: object) -> Extraction:
        return Extraction([], [(1.0, Refused("order", "a buffer is handed over twice"))], self.name)


def test_where_the_beam_finds_nothing_legal_the_greedy_one_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRACTORS, "beam", f"{__name__}:Nothing")
    found = found_schedules(graph_of(ADD), CHIP)
    assert found.extractor == "greedy" and found.schedules
