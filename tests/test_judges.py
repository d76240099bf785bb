"""The judges of instruction costs: what needs no pypto. A small library of our own stands in for its cost function."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

from benchmarks.judges import __main__ as page_of_all
from benchmarks.judges.ask import LIBRARY as FILE
from benchmarks.judges.cases import ALONE, BEHIND, QUEUE, Case, asked_for, cases, instructions
from benchmarks.judges.judges import Fit, asked, fits, library
from benchmarks.judges.page import put
from benchmarks.judges.report import FIT, LIBRARY, Judged, Row, far, idle, judged, rows, told, unjudged, write_csv
from tile_eg.chips import load_chip
from tile_eg.errors import TileError

ROOT = Path(__file__).parents[1]
WORDS = judged(asked_for()["judged"])
ADD = Case("vector.add", "half", 16, ALONE, 40.0, "vadd", "ADD", 4096)
WORD = Judged(("vector.add",), LIBRARY, 1.5, 2.5, "why", "PTO")
HEADER = '{ {"ADD", {2.5, 0.02}},\n  {"UB_COPY_IN", {2.0f, 1e-3f}}, {"DIV", {4.0, 0.0}} };'


def row(price: float, judge: str = LIBRARY) -> Row:
    return Row(ADD, {judge: price})


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a library that takes 10 cycles a line, 1 for nothing, and talks on stdout."""
    folder = tmp_path_factory.mktemp("judges") / "lib"
    folder.mkdir()
    code = r"""#include <cstdio>
    extern "C" int GetTileOpCycle(const char* text) {
        puts("not support");
        int lines = *text ? 1 : 0;
        for (const char* c = text; *c; ++c) lines += *c == '\n';
        return lines ? 10 * lines : 1;
    }"""
    command = ["g++", "-x", "c++", "-shared", "-fPIC", "-o", str(folder / FILE), "-"]
    subprocess.run(command, input=code, text=True, check=True)
    return folder


def test_every_instruction_of_the_tables_is_put_to_the_judges_or_said_why_not() -> None:
    asked_of = {f"{room}.{op}" for room in ("vector", "cube", "path") for op in asked_for()[room]}
    assert asked_of == set(instructions(load_chip()))


@pytest.mark.parametrize("room", ["vector", "cube", "path"])
def test_an_instruction_without_a_text_and_an_operation_has_a_reason(room: str) -> None:
    assert all(("neither" in how) != ("text" in how or "fit" in how) for how in asked_for()[room].values())


def test_a_text_holds_the_size_that_is_priced() -> None:
    text = next(c.text for c in cases() if c.name == "vector.exp" and c.size == 64)
    assert text.startswith("vexp<half>(0, 0, 64,")


def test_a_repeat_of_halves_is_four_of_the_sort() -> None:
    sort = next(c for c in cases() if c.name == "vector.sort" and c.dtype == "half" and c.size == 16)
    assert sort.text == "vbitsort<half>(0, 0, 0, 64)"


def test_our_price_is_the_tables() -> None:
    add = next(c for c in cases() if c.name == "vector.add" and c.size == 64 and c.when == ALONE)
    cost = load_chip().vector.ops["add", 2]
    assert add.ours == cost.free * 64 + cost.fixed


def test_the_folder_of_the_library_is_found_under_what_is_named(stand_in: Path) -> None:
    assert library(stand_in.parent) == stand_in


def test_a_folder_without_the_library_is_told_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(TileError, match=r"(?s)there is no libtile_fwk_simulation_ca\.so under.*pip install pypto"):
        library(tmp_path)


def test_the_library_answers_in_cycles(stand_in: Path) -> None:
    assert asked(stand_in, ["vadd", "vadd\nvadd"]) == [10.0, 20.0]


def test_what_the_library_cannot_read_has_no_price(stand_in: Path) -> None:
    assert asked(stand_in, [""]) == [None]


def test_a_library_that_does_not_load_is_told(tmp_path: Path) -> None:
    tmp_path.joinpath(FILE).write_text("no library")
    with pytest.raises(TileError, match="does not answer"):
        asked(tmp_path, ["vadd"])


def test_back_to_back_is_what_one_more_adds(stand_in: Path) -> None:
    behind = Case("vector.add", "half", 16, BEHIND, 16.0, "vadd")
    assert len(behind.texts[0].splitlines()) == QUEUE and rows([behind], stand_in, {})[0].judges == {LIBRARY: 10.0}


def test_the_fitted_table_is_read_off_its_source(tmp_path: Path) -> None:
    file = tmp_path / "table.h"
    file.write_text(HEADER)
    assert fits(file) == {"ADD": Fit(2.5, 0.02), "UB_COPY_IN": Fit(2.0, 0.001), "DIV": Fit(4.0, 0.0)}


def test_a_file_without_the_table_is_told_with_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "table.h"
    file.write_text("nothing")
    with pytest.raises(TileError, match=r"(?s)no table of operations.*hicann/pypto"):
        fits(file)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(TileError, match="cannot be read"):
        fits(tmp_path / "table.h")


def test_the_fitted_price_grows_by_twice_the_bytes() -> None:
    assert Fit(2.5, 0.02).cycles("ADD", "half", 4096) == int(2.5 * 2 * 4096 * 2e-3 + 40) + 1


def test_a_division_of_floats_counts_its_bytes_once() -> None:
    assert Fit(4.0, 0.0).cycles("DIV", "float", 1000) == 9


def test_a_copy_from_gm_takes_its_latency_besides() -> None:
    assert Fit(0.0, 0.0).cycles("UB_COPY_IN", "half", 32) == 1401


def test_the_fitted_table_prices_nothing_back_to_back() -> None:
    behind = Case("vector.add", "half", 16, BEHIND, 16.0, "vadd", "ADD", 4096)
    assert rows([behind], None, {"ADD": Fit(1.0, 0.0)})[0].judges == {}


@pytest.mark.parametrize(("price", "apart"), [(35.0, False), (34.0, True), (45.0, False), (47.0, True)])
def test_more_than_fifteen_percent_either_way_is_a_difference(price: float, apart: bool) -> None:
    assert far(row(price), LIBRARY) is apart


def test_a_difference_that_nothing_is_said_of_is_not_judged() -> None:
    assert unjudged([row(20)], []) == [(row(20), LIBRARY)]


def test_a_word_holds_within_its_ratios() -> None:
    assert unjudged([row(20)], [WORD]) == []


def test_a_difference_beyond_the_ratios_of_its_word_is_not_judged() -> None:
    assert unjudged([row(10)], [WORD]) == [(row(10), LIBRARY)]


def test_a_word_on_one_judge_says_nothing_of_the_other() -> None:
    assert told(row(20, FIT), FIT, [WORD]) == "NOT JUDGED"


def test_a_word_with_a_source_settles() -> None:
    assert told(row(20), LIBRARY, [WORD]) == "settled"


def test_a_word_without_a_source_leaves_open() -> None:
    assert told(row(20), LIBRARY, [Judged(("vector.add",), LIBRARY, 1.5, 2.5, "why")]) == "open"


def test_a_word_on_no_difference_is_idle() -> None:
    assert idle([row(40)], [WORD]) == [WORD]


def test_a_word_on_a_judge_that_was_not_asked_is_not_idle() -> None:
    assert idle([row(40, FIT)], [WORD]) == []


@pytest.mark.parametrize("word", WORDS, ids=lambda w: f"{w.of[0]} {w.judge} {w.low}")
def test_who_settles_a_difference_is_a_source_of_the_chip_file(word: Judged) -> None:
    assert all(by in load_chip().sources for by in filter(None, word.by.split(", ")))


@pytest.mark.parametrize("word", WORDS, ids=lambda w: f"{w.of[0]} {w.judge} {w.low}")
def test_the_page_tells_what_was_judged(word: Judged) -> None:
    assert f"| {word.by or 'open'} | {word.why} |" in (ROOT / "docs/timing.md").read_text("utf-8")


def test_the_csv_has_prices_ratios_and_what_was_judged(tmp_path: Path) -> None:
    write_csv(tmp_path / "out.csv", [row(20)], [WORD])
    (line,) = csv.DictReader((tmp_path / "out.csv").open(encoding="utf-8"))
    assert (line["ours"], line["library"], line["library ratio"], line["library judged"]) == ("40", "20", "2.00", "settled")


def test_the_table_of_a_page_has_the_ratios_that_were_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    blocks = ("judges", "judges counted")
    page.write_text("".join(f"<!-- {b} -->\nold\n<!-- end of {b} -->\n" for b in blocks))
    put(page, [row(20)], [WORD])
    assert "| `add` | library | 2.00 | PTO | why |" in page.read_text() and "old" not in page.read_text()


def test_a_page_without_the_comments_is_told(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(TileError, match="has no <!-- judges -->"):
        put(tmp_path / "page.md", [], [])


def test_without_pypto_the_report_ends_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["judges", "--pypto", str(tmp_path)])
    assert page_of_all.main() == 2 and "pip install pypto" in capsys.readouterr().err


def test_a_difference_that_is_not_judged_fails_the_report(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["judges", "--pypto", str(stand_in)])
    assert page_of_all.main() == 1 and "NOT JUDGED: vector.add half 16 alone, library, ratio 4.00" in capsys.readouterr().out
