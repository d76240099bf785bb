"""The moves of the search: each is listed with its law, can be left out, is asked about by its name, and is told in `explain`."""

from __future__ import annotations

from functools import lru_cache

import pytest

from tests.cli.test_commands import Captured, printed
from tests.emit.test_phases import PRODUCT
from tests.extract.kernels import kernel
from tests.search.test_options import example
from tile_eg.errors import TileError
from tile_eg.explore.why_not import why_not
from tile_eg.rules import INEXACT, registry
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, lower
from tile_eg.search.moves import MOVES

SIZES = {"gemm": {"M": 2048, "N": 2048, "K": 256}, "softmax": {"M": 4096, "N": 512}}


@lru_cache
def lowered(name: str, **options: object) -> Lowered:
    return lower(example(name, **SIZES[name]), search=search_options(**options))


def made(low: Lowered) -> set[str]:
    return {t.offer.move.name for t in low.tried if t.made}


@pytest.mark.parametrize("move", MOVES.values(), ids=lambda m: m.name)
def test_a_move_that_rules_offer_has_their_law(move) -> None:
    assert {registry()[rule].law for rule in move.rules} <= {move.law}


@pytest.mark.slow
@pytest.mark.parametrize("name", [m for m in MOVES if m in ("persistent-grid", "split-result", "tile-order")])
def test_a_move_that_is_left_out_is_not_made(name: str) -> None:
    assert name in made(lowered("gemm"))
    assert name not in made(lowered("gemm", without=(name,)))


def test_exact_math_leaves_out_moves_that_round() -> None:
    inexact = {m.name for m in MOVES.values() if m.law in INEXACT}
    assert inexact and not inexact & search_options(exact_math=True).moves


def test_a_move_that_is_not_known_is_told_with_the_nearest() -> None:
    with pytest.raises(TileError, match="did you mean `row-panels`"):
        search_options(without=["row-panel"])


@pytest.mark.slow
def test_the_best_of_all_that_was_made_is_chosen() -> None:
    low = lowered("gemm")
    times = [t.microseconds for t in low.tried if t.microseconds is not None]
    assert low.candidates[0].microseconds <= min(times)


@pytest.mark.slow
def test_why_not_tells_what_a_move_gives() -> None:
    assert " (" in str(why_not(lowered("gemm"), "persistent-grid"))


@pytest.mark.slow
def test_why_not_makes_what_a_bound_had_dropped() -> None:
    low = lower(kernel(PRODUCT))
    assert "bound is no better" in str(why_not(low, "split-k=2 parts")) and " (+" in str(why_not(low, "split-k=2 parts"))


@pytest.mark.slow
def test_why_not_tells_that_a_move_has_nothing_to_do() -> None:
    assert "not offered" in str(why_not(lowered("gemm"), "column-tiles"))


@pytest.mark.slow
def test_why_not_tells_that_a_move_was_left_out() -> None:
    assert "left out" in str(why_not(lowered("gemm", without=("split-result",)), "split-result"))


@pytest.mark.slow
def test_why_not_names_what_else_there_is() -> None:
    assert "there is 8 parts, 4 parts, 2 parts" in str(why_not(lower(kernel(PRODUCT)), "split-k=7 parts"))


@pytest.mark.slow
def test_explain_tells_of_the_moves() -> None:
    assert "persistent-grid" in str(lowered("gemm").explanation)
    assert "not made: its bound" in str(lower(kernel(PRODUCT)).explanation)


def test_the_list_of_rules_has_the_moves(capsys: Captured) -> None:
    listed = printed(capsys, "rules", "moves")
    assert all(name in listed for name in MOVES)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_full_does_what_quick_does_and_goes_on(name: str) -> None:
    assert made(lowered(name)) < made(lowered(name, effort="full"))
    assert lowered(name, effort="full").candidates[0].microseconds <= lowered(name).candidates[0].microseconds
