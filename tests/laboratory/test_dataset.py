"""Datasets of schedules: distinct, the same on any number of workers, and resumed where they were cut short."""

from __future__ import annotations

import os
import pickle
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tile_eg
from tile_eg.chips import load_chip
from tile_eg.cli import app
from tile_eg.cost_models import rank_model
from tile_eg.cost_models.context import FEATURES, context
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.laboratory import Case, Dataset, Wanted, load_dataset, make_dataset
from tile_eg.laboratory import dataset as module
from tile_eg.laboratory.dataset import Piece, rows_of_piece
from tile_eg.laboratory.stored import write_rows
from tile_eg.search import search_options

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"S": 128, "H": 1}


def case(name: str = "flash_attention", **sizes: int) -> Case:
    kernel = tile_eg.load(EXAMPLES / f"{name}.tile").with_sizes(**sizes).kernel
    return Case(name, kernel, "910B2", search_options())


@cache
def attention() -> Case:
    return case(**SMALL)


@cache
def rows():
    """The first piece of attention."""
    return tuple(rows_of_piece(Piece(attention(), 0, 0)))


def wanted(n: int, format: str = "jsonl", seed: int = 0) -> Wanted:
    return Wanted((attention(),), n, seed, "timeline", format)


@pytest.fixture
def one_piece(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pieces are those of `rows`, cut in two; what is asked for is noted."""
    asked: list[int] = []

    def made(piece: Piece):
        asked.append(piece.number)
        return list(rows()[: len(rows()) // 2] if piece.number == 0 else rows()[len(rows()) // 2 :])

    monkeypatch.setattr(module, "rows_of_piece", made)
    return asked


@pytest.mark.slow
def test_draws_are_of_all_kinds_and_most_are_distinct() -> None:
    assert {r.way for r in rows()} == {"search", "near", "spread", "random"}
    assert len({r.key for r in rows()}) > len(rows()) / 2


@pytest.mark.slow
def test_the_same_seed_gives_the_same_rows() -> None:
    again = rows_of_piece(Piece(case(**SMALL), 0, 0))
    assert [r.plain() for r in again] == [r.plain() for r in rows()]


@pytest.mark.slow
def test_another_seed_gives_others() -> None:
    other = rows_of_piece(Piece(attention(), 1, 1))
    assert {r.key for r in other} - {r.key for r in rows()}


def test_the_time_is_that_of_the_timeline_over_the_rows_program() -> None:
    data = Dataset(rows()[:4])
    assert rank_model("timeline", load_chip()).predict(data.programs) == pytest.approx(list(data.labels))


def test_features_follow_from_the_program_alone() -> None:
    data = Dataset(rows()[:4])
    found = [[context(p, load_chip()).features[n] for n in FEATURES] for p in data.programs]
    assert np.allclose(found, data.features())


def test_decisions_are_numbers_of_options() -> None:
    data = Dataset(rows())
    about = data.options["flash_attention: skew of loop j"]
    column = list(data.options).index("flash_attention: skew of loop j")
    taken = {about[n] for n in data.decisions[:, column] if n >= 0}
    assert taken == set(about) and len(about) > 1


def test_a_graph_has_edges_between_its_nodes_and_a_product_reads_what_was_loaded() -> None:
    from tile_eg.laboratory.graphs import OPS

    g = Dataset(rows()[:1]).graphs[0]
    pairs = {(OPS[g.ops[a]], OPS[g.ops[b]]) for a, b, kind in zip(*g.edges, g.kinds, strict=True) if kind == 0}
    assert g.edges.max() < len(g.nodes) and ("l1_to_l0a", "mmad") in pairs and ("gm_to_l1", "l1_to_l0b") in pairs


def test_rows_are_distinct_and_numbered(tmp_path: Path, one_piece: list[int]) -> None:
    made = make_dataset(wanted(12), tmp_path)
    assert [r.number for r in made] == list(range(1, len(made) + 1)) and len({r.key for r in made}) == len(made)


def test_no_more_pieces_are_asked_for_than_draws_of_late_say() -> None:
    growing = module._Growing(case(), 2000, rows=dict.fromkeys(map(str, range(1980))), pieces=100, fresh=10.0)  # type: ignore[arg-type]
    assert growing.next_pieces() == range(100, 102)


def test_what_was_cut_short_goes_on(tmp_path: Path, one_piece: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = make_dataset(wanted(18), tmp_path / "whole")
    one_piece.clear()

    def killed(piece: Piece):
        if piece.number:
            raise KeyboardInterrupt
        return list(rows()[: len(rows()) // 2])

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, "rows_of_piece", killed)
        make_dataset(wanted(18), tmp_path / "cut")
    with pytest.raises(TileError, match="holds no rows") as error:
        load_dataset(tmp_path / "cut")
    assert "goes on" in error.value.help
    assert make_dataset(wanted(18), tmp_path / "cut") == whole and 0 not in one_piece


def test_a_piece_that_was_half_written_is_made_again(tmp_path: Path, one_piece: list[int]) -> None:
    whole = make_dataset(wanted(12), tmp_path)
    part = sorted((tmp_path / "_parts").iterdir())[0]
    part.write_bytes(part.read_bytes()[:100])
    assert make_dataset(wanted(12), tmp_path) == whole


def test_a_folder_of_another_dataset_is_refused(tmp_path: Path, one_piece: list[int]) -> None:
    make_dataset(wanted(4), tmp_path)
    with pytest.raises(TileError, match="holds a dataset that was made otherwise"):
        make_dataset(wanted(4, seed=1), tmp_path)


def test_a_folder_in_which_nothing_was_made_yet_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(piece: Piece):
        raise TileError("there is no CANN on this machine")

    monkeypatch.setattr(module, "rows_of_piece", failing)
    with pytest.raises(TileError, match="CANN"):
        make_dataset(wanted(8, seed=1), tmp_path)
    with pytest.raises(TileError, match="holds no rows") as told:
        load_dataset(tmp_path)
    assert "cut short" not in str(told.value)
    monkeypatch.setattr(module, "rows_of_piece", lambda piece: list(rows()[:8]))
    assert len(make_dataset(wanted(8, seed=2), tmp_path)) == 8


def test_a_piece_whose_bytes_are_damaged_is_made_again(tmp_path: Path, one_piece: list[int]) -> None:
    make_dataset(wanted(8), tmp_path)
    piece = next((tmp_path / "_parts").iterdir())
    whole = piece.read_bytes()
    piece.write_bytes(whole[:40] + bytes(40) + whole[80:])
    assert len(make_dataset(wanted(8), tmp_path)) == 8 and one_piece == [0, 0]


def test_another_process_that_writes_the_same_piece_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"

    def lines(held: list, beside: Path) -> None:
        beside.write_text("whole")
        monkeypatch.undo()
        monkeypatch.setattr("os.getpid", lambda: 1)
        write_rows(held, path)

    monkeypatch.setattr("tile_eg.laboratory.stored._write_lines", lines)
    write_rows([], path)
    assert path.read_text() == "whole"


def test_where_draws_find_no_others_it_ends(tmp_path: Path, one_piece: list[int]) -> None:
    made = make_dataset(wanted(1000), tmp_path)
    assert len(made) == len({r.key for r in rows()})
    assert "1000 were asked for" in (tmp_path / "_card.md").read_text()


def test_parquet_and_lines_hold_the_same(tmp_path: Path, one_piece: list[int]) -> None:
    pytest.importorskip("pyarrow", reason="Parquet is written by pyarrow (pip install 'tile_eg[data]')")
    made = make_dataset(wanted(6, "parquet"), tmp_path / "p"), make_dataset(wanted(6), tmp_path / "l")
    assert load_dataset(tmp_path / "p").rows == load_dataset(tmp_path / "l").rows == tuple(made[0])


def test_a_folder_reads_as_one_parquet_table(tmp_path: Path, one_piece: list[int]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet is written by pyarrow (pip install 'tile_eg[data]')")
    made = make_dataset(wanted(6, "parquet"), tmp_path)
    assert parquet.read_table(tmp_path).num_rows == len(made) == 6


def test_of_two_formats_the_one_written_last_is_read(tmp_path: Path, one_piece: list[int]) -> None:
    pytest.importorskip("pyarrow", reason="Parquet is written by pyarrow (pip install 'tile_eg[data]')")
    write_rows(rows()[:2], tmp_path / "rows.jsonl")
    write_rows(rows()[:1], tmp_path / "rows.parquet")
    os.utime(tmp_path / "rows.parquet", (0, 0))
    assert len(load_dataset(tmp_path)) == 2


def test_rows_whose_settings_are_not_there_are_not_written_over(tmp_path: Path, one_piece: list[int]) -> None:
    (tmp_path / "rows.jsonl").write_text("mine")
    with pytest.raises(TileError, match="made otherwise"):
        make_dataset(wanted(4), tmp_path)
    assert (tmp_path / "rows.jsonl").read_text() == "mine"


def test_without_pyarrow_it_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TileError, match="Parquet needs pyarrow") as error:
        make_dataset(wanted(6, "parquet"), tmp_path)
    assert "--format jsonl" in error.value.help


@pytest.mark.parametrize("text", ["[]", '{"case": 1}\n', "no json\n"])
def test_a_file_that_holds_no_rows_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.jsonl").write_text(text)
    with pytest.raises(TileError, match="holds no rows of a dataset"):
        load_dataset(tmp_path)


def test_sizes_that_are_left_open_are_found_before_workers_are_sent_the_kernel() -> None:
    text = "kernel doubled(X: f32[64, 128]) -> Y: f32[64, 128] {\n  Y = X * 2\n}\n"
    doubled = module.at_its_sizes(Case("doubled", load_text(text).instantiate(), "910B2", search_options()))
    assert pickle.loads(pickle.dumps(doubled)) == doubled


@pytest.mark.long
def test_workers_make_the_rows_of_one(tmp_path: Path) -> None:
    command = ["dataset", str(EXAMPLES / "softmax.tile"), "--set", "M=64,128", "--set", "N=128", "-n", "24", "--format", "jsonl"]
    assert app.run([*command, "-o", str(tmp_path / "1"), "--workers", "1"]) == 0
    assert app.run([*command, "-o", str(tmp_path / "2"), "--workers", "2"]) == 0
    one, two = (tmp_path / n / "rows.jsonl" for n in ("1", "2"))
    assert one.read_bytes() == two.read_bytes()
    assert {r.case for r in load_dataset(one).rows} == {"softmax M=64 N=128", "softmax M=128 N=128"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--set", "Q=4"], "no kernel has such a size"), (["--device", "gpu"], "it is timeline or npu"),
        (["--format", "xml"], "parquet or jsonl"), (["--chip", "910Z"], "unknown chip"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], told: str) -> None:
    assert app.run(["dataset", str(EXAMPLES / "softmax.tile"), "-o", str(tmp_path), "-n", "4", *given]) == 1
    assert told in capsys.readouterr().err


def test_the_package_alone_loads_none_of_the_extras() -> None:
    import subprocess

    code = "import sys, tile_eg.laboratory as lab; lab.Dataset; print({'pyarrow', 'scipy', 'sklearn'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


def test_guards_of_a_skewed_loop_leave_out_instructions_in_its_first_and_last_trips() -> None:
    """Two exponentials in each of two trips, however late which part of a trip is issued."""
    assert {r.decisions["skew of loop j"] for r in rows()} > {"0"}
    assert {r.instructions["vexp"] for r in rows()} == {4.0}


def test_the_text_of_a_sum_of_products_along_rows_reads_back() -> None:
    """It has two operands: a dataset holds programs as texts."""
    from tile_eg.ir.index import const
    from tile_eg.ir.program import Buffer, Instr, Program, Tile
    from tile_eg.ir.program.parser import parse_program
    from tile_eg.ops.types import F32, Level

    made = [("a", 16, 64, 0), ("b", 16, 64, 4096), ("r", 1, 16, 8192)]
    buffers = tuple(Buffer(name, Level.UB, F32, rows, cols, cols, addresses=(at,)) for name, rows, cols, at in made)
    dot = Instr("vrowdot", Tile("r"), (Tile("a"), Tile("b")), const(16), const(64), form="blocks", scratch=Tile("a"))
    program = Program("p", "910B2", "AIV_ONLY", (), 1, False, 0, buffers, (), (dot,))
    assert parse_program(str(program)) == program


COMMAND = ["dataset", str(EXAMPLES / "softmax.tile"), "--set", "M=256", "--format", "jsonl", "-n", "70"]


@pytest.mark.slow
def test_a_command_that_was_killed_goes_on_when_it_is_given_again(tmp_path: Path) -> None:
    import subprocess
    import time

    begun = subprocess.Popen([sys.executable, "-m", "tile_eg", *COMMAND, "-o", str(tmp_path / "cut"), "--workers", "1"])
    parts = tmp_path / "cut" / "_parts"
    while begun.poll() is None and not list(parts.glob("*.gz")):
        time.sleep(0.02)
    begun.kill()
    begun.wait()
    made = {p.name: p.stat().st_mtime_ns for p in parts.glob("*.gz")}
    assert app.run([*COMMAND, "-o", str(tmp_path / "cut"), "--workers", "1"]) == 0
    assert app.run([*COMMAND, "-o", str(tmp_path / "whole"), "--workers", "1"]) == 0
    assert made and all((parts / name).stat().st_mtime_ns == at for name, at in made.items())
    assert (tmp_path / "cut" / "rows.jsonl").read_bytes() == (tmp_path / "whole" / "rows.jsonl").read_bytes()


@pytest.mark.long
def test_a_dask_cluster_makes_the_rows_of_one_process(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="dask is an extra: pip install 'tile_eg[dask]'")
    from tests.spread.dask_cluster import DaskCluster

    cluster = DaskCluster(tmp_path)
    try:
        cluster.worker("--name", "one")
        cluster.wait_for(1)
        assert app.run([*COMMAND, "-o", str(tmp_path / "dask"), "--dask", cluster.address]) == 0
    finally:
        cluster.close()
    assert app.run([*COMMAND, "-o", str(tmp_path / "here"), "--workers", "1"]) == 0
    assert (tmp_path / "dask" / "rows.jsonl").read_bytes() == (tmp_path / "here" / "rows.jsonl").read_bytes()
