"""Blocks that share the trips of a loop of stores: the same numbers, and only where no two of them store at one place."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extract.kernels import kernel
from tests.transforms.test_side_by_side import HEADS
from tests.transforms.test_split_k import whole_numbers
from tile_eg.chips import load_chip
from tile_eg.cost_models import rank_model
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.values import Values, reachable
from tile_eg.search import search_options
from tile_eg.search.compiler import meaning
from tile_eg.search.form import Setting, searched
from tile_eg.search.trips_in_blocks import filling
from tile_eg.transforms.rewriter import Rewriter
from tile_eg.transforms.stores_of_trips import trips_in_blocks

STORE = "Y[bs*BS : bs*BS + BS, h, :] = (x - m[:, None]) * c + h"
IN_HALVES = HEADS.replace(
    STORE,
    "Y[bs*BS : bs*BS + BS, h, 0 : D // 2] = x[:, 0 : D // 2] * c[:, 0 : D // 2]\n"
    "    Y[bs*BS : bs*BS + BS, h, D // 2 : D] = x[:, D // 2 : D] + h",
)
OVER_THE_NEXT = HEADS.replace(STORE, f"{STORE}\n    Y[bs*BS : bs*BS + BS, (h + 1) % H, :] = x")
BEHIND_THE_NEXT = HEADS.replace(STORE, f"{STORE}\n    Y[bs*BS : bs*BS + BS, h + 1, :] = x")
OF_ONE_PLACE = HEADS.replace("Z[h, bs*BS]", "Z[0, bs*BS]")
READ_AGAIN = HEADS.replace("    Z[h", "    x = Y[bs*BS : bs*BS + BS, h, :]\n    m = rowmax(x)\n    Z[h")
CASES = [(HEADS, 2, {}), (HEADS, 3, {"S": 16}), (IN_HALVES, 2, {}), (IN_HALVES, 3, {"S": 33})]


def of(text: str, parts: int, **sizes: int) -> Values | None:
    return trips_in_blocks(to_values(kernel(text, **sizes)), parts)


@pytest.mark.parametrize(("text", "parts", "sizes"), CASES)
def test_the_meaning_stays(text: str, parts: int, sizes: dict[str, int]) -> None:
    k = kernel(text, **sizes)
    made, arrays = of(text, parts, **sizes), whole_numbers(k)
    assert made is not None and made.grid[0] == parts
    got, want = run_values(made, arrays), meaning(k, arrays)
    assert all(np.array_equal(got[name], want[name]) for name in want)


@pytest.mark.parametrize(("text", "parts", "sizes"), CASES[:3])
def test_the_simulator_computes_the_same(text: str, parts: int, sizes: dict[str, int]) -> None:
    k, chip = kernel(text, **sizes), load_chip("910B2")
    setting = Setting(chip, search_options(), rank_model("timeline", chip), k.source)
    form, arrays = searched(k, to_values(k), setting, of(text, parts, **sizes)), whole_numbers(k)
    got, want = form.candidates[0].planned.run(arrays).outputs, meaning(k, arrays)
    assert all(np.array_equal(got[name], want[name]) for name in want)


@pytest.mark.parametrize(
    ("text", "parts"),
    [(HEADS, 4), (HEADS, 6), (OVER_THE_NEXT, 2), (BEHIND_THE_NEXT, 2), (OF_ONE_PLACE, 2), (READ_AGAIN, 2)],
    ids=["parts of trips", "a trip each", "over another trip's", "into the next trip's", "at one place", "read again"],
)
def test_others_stay_as_they_are(text: str, parts: int) -> None:
    assert of(text, parts) is None


def test_blocks_do_not_read_what_others_store() -> None:
    values = to_values(kernel(HEADS))
    given = {t.args[0].name: t for t in reachable(values) if t.op == "given"}
    again = Rewriter({}, {given["C"]: given["Y"]})
    updated = again.values(values, tuple(map(again.term, values.outputs)))
    assert trips_in_blocks(values, 2) is not None
    assert trips_in_blocks(updated, 2) is None


def test_how_full_turns_of_cores_are() -> None:
    assert [filling(blocks, 48) for blocks in (48, 24, 64)] == [1.0, 0.5, 64 / 96]
