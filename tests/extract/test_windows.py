"""Results that are computed in windows of tiles, and windows that are read where they lie: the same numbers in every choice."""

from __future__ import annotations

import pytest

from benchmarks.rules.windows import IN_TILES, windows
from tests.extract.checked import check_numbers
from tests.extract.kernels import graph_of, kernel
from tests.rules.test_implements import Using
from tile_eg.egraph import Node
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.selection import gone_before
from tile_eg.ir.index import const
from tile_eg.ir.program import Buffer, Instr, Tile
from tile_eg.ops.types import F32, Level
from tile_eg.timeline.banks import meetings

OVER_ITSELF = IN_TILES.format(rows=32, cols=128, value="y = cumsum(x, 0)  c = y  c[8:16, :] = c[4:12, :] + c[8:16, :]")
SUMS = graph_of(windows()["running sums upwards"])


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["v-binary-in-place", "ub-lies"])
def test_no_window_is_computed_over_what_it_reads(rule: str) -> None:
    check_numbers(kernel(OVER_ITSELF), Using(rule))


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["running sums upwards", "sums of some rows", "sums above differences", "columns less a tile"])
@pytest.mark.parametrize("extractor", [Worst(), Random(0), Random(1)], ids=["worst", "random0", "random1"])
def test_every_choice_computes_the_same(extractor, name: str) -> None:
    check_numbers(kernel(windows()[name]), extractor)


@pytest.mark.parametrize(
    ("row", "gone"),
    [(0, True), (1, False), (2, True), (16, True), (17, False)],
    ids=["above", "itself", "below", "its end", "behind"],
)
def test_what_overlaps_with_a_window_is_gone_when_it_is_written(row: int, gone: bool) -> None:
    made = next(n for n in SUMS.nodes if n.op == "VBinIn")
    writer = Node(0, "VBinIn", made.cls, (), ("add", const(128), 16, 128), 0, ())
    assert gone_before(SUMS, writer, [Node(0, "Part", 0, (), (row, 0, 16, 128), 0, ())]) is gone


def test_a_window_is_in_the_banks_in_which_it_begins() -> None:
    home = Buffer("x", Level.UB, F32, 4, 128, 128, addresses=(0,))
    to = Buffer("y", Level.UB, F32, 4, 64, 64, addresses=(4096,))
    columns = [Tile("x", col=const(at)) for at in (0, 64)]
    add = lambda *of: Instr("vadd", Tile("y"), of, const(4), const(64), form="rows")  # noqa: E731
    found = [meetings(add(columns[0], other), {"x": home, "y": to}, 4, 64) for other in columns]
    assert [m.sources for m in found if m] == [1.0, 0.0]
