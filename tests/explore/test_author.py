"""An author's kernel beside what the search makes of it: what is told of either is what its program does."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.cli.test_commands import printed
from tests.frontend.sequential import kernels
from tests.frontend.sequential.test_numbers import searched
from tile_eg.cli.app import run
from tile_eg.explore import AuthorAndSearch
from tile_eg.ir.program import AIC, AIV, CrossSet
from tile_eg.report.executed import executed
from tile_eg.search import search_options
from tile_eg.search.compiler import lower
from tile_eg.search.kept import planned_kept

EXPERT = Path(__file__).parents[2] / "examples" / "expert" / "linear_relu.py"
SMALL = ("--set", "M=128", "--set", "N=128", "--set", "K=256")
Captured = pytest.CaptureFixture[str]


@functools.cache
def both(name: str) -> AuthorAndSearch:
    kernel = getattr(kernels, name)()
    options = search_options(without=("blocks-together",))
    return AuthorAndSearch(planned_kept(kernel.kernel, "910B2"), lower(searched(kernel).compiled, "910B2", search=options))


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


@pytest.mark.slow
def test_the_faster_one_is_named_with_both_times() -> None:
    shown = both("biased")
    mine, theirs = shown.written.timeline.microseconds, shown.found.timeline.microseconds
    assert f"the search's is {mine / theirs:.2f} times as fast" in shown.headline()


@pytest.mark.slow
def test_a_statement_that_the_search_does_otherwise_stands_with_its_line() -> None:
    shown = both("product").statements()
    assert "T.mma(" in shown and "16 x mmad 32 x 32 x 32" in shown and "4 x mmad 32 x 32 x 64" in shown


def test_loops_of_flags_alone_are_not_shown() -> None:
    assert "s: 2 trips" not in both("product").loops()


def test_how_deep_a_buffer_is_stands_on_both_sides() -> None:
    assert ["a in L1", "f16[32, 64] x 2", "-"] in rows(both("product").buffers())


def test_flags_are_those_that_a_block_sets() -> None:
    shown, tiles = both("biased"), 2
    assert ["flags between cores", str(2 * tiles + 1), "2"] in rows(shown.flags())


def test_a_handed_over_tensor_of_the_author_is_his_workspace() -> None:
    assert rows(both("biased").buffers())[-2][:2] == ["workspace in GM", "8 KiB"]


def test_the_text_is_shown_on_demand() -> None:
    shown = both("biased")
    assert "--- as written" in str(AuthorAndSearch(shown.written, shown.found, text=True))
    assert "--- as written" not in str(shown)


@pytest.mark.parametrize("core", [AIC, AIV])
def test_how_often_a_block_does_something_follows_from_its_loops(core: str) -> None:
    program = planned_kept(kernels.biased(tiles=3).kernel, "910B2").program
    sets = sum(count for n, count in executed(program, core) if isinstance(n, CrossSet))
    assert sets == {AIC: 3, AIV: 4}[core]


def test_branches_of_a_loop_s_trips_are_counted_trip_by_trip() -> None:
    program = planned_kept(kernels.product(k_tiles=4, tiles=(1, 1), blocks=1).kernel, "910B2").program
    loads = sum(count for n, count in executed(program, AIC) if getattr(n, "op", "") == "gm_to_l1")
    assert loads == 2 * 4


@pytest.mark.slow
def test_diff_shows_an_author_s_file(capsys: Captured) -> None:
    out = printed(capsys, "diff", EXPERT, *SMALL)
    titles = [line for line in out.splitlines() if line and not line.startswith(" ")]
    assert titles[0].startswith("main on 910B2: ")
    assert titles[1:] == [
        "time", "who computes what, for each line of the source", "loops", "where values lie", "synchronisation of one block",
        "transfers of the launch",
    ]  # fmt: skip


@pytest.mark.slow
def test_run_checks_the_numbers_of_what_is_found(capsys: Captured) -> None:
    assert "D       uniform" in printed(capsys, "run", EXPERT, "--schedule", "search", *SMALL)


@pytest.mark.slow
def test_emit_writes_what_is_found(capsys: Captured) -> None:
    found, written = (printed(capsys, "emit", EXPERT, *SMALL, *more) for more in (("--schedule", "search"), ()))
    assert "PipeBarrier<PIPE_ALL>" in written and "PipeBarrier<PIPE_ALL>" not in found


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("alternatives", str(EXPERT)), "--schedule search"),
        (("explain", str(EXPERT)), "--schedule search"),
        (("emit", str(EXPERT), "--schedule", "fast"), "a schedule's number, or search"),
        (("diff", str(EXPERT), "1"), "1 and which other schedule?"),
        (("diff", str(EXPERT.parents[1] / "softmax.tile")), "has no flags, barriers or scopes: all of it is found"),
    ],
)
def test_what_cannot_be_shown_says_what_can(command: tuple[str, ...], message: str, capsys: Captured) -> None:
    assert run(list(command)) == 1
    assert message in capsys.readouterr().err
