"""Constants fitted to rows: those of a chip with known constants are found, and what rows do not determine is said."""

from __future__ import annotations

from functools import cache
from math import inf
from pathlib import Path

import pytest

import tile_eg
from tile_eg.chips import chip_of, load_chip, tables_of
from tile_eg.chips.loader import chip_marks, ends
from tile_eg.cli import app
from tile_eg.errors import TileError
from tile_eg.ir.program import Program
from tile_eg.laboratory.calibrate import Constant, Fit, calibrate, values_of
from tile_eg.laboratory.fit_shown import chip_text, fit_text
from tile_eg.search.compiler import lower
from tile_eg.timeline import engine

pytestmark = pytest.mark.slow

pytest.importorskip("scipy", reason="fitting needs scipy (pip install 'tile_eg[fit]')")
EXAMPLES = Path(__file__).parents[2] / "examples"
TRUE = {
    "launch.prologue_us": 3.5, "launch.core_us": 0.25, "shared.hbm_write": 0.6e12, "path.gm_to_l1_nd2nz.row_least": 6.0,
}  # fmt: skip
"""What the synthetic chip has; 910B2 has about half of each, and more of the third."""


@cache
def programs() -> tuple[Program, ...]:
    sizes = [("vector_add", {"N": n}) for n in (4096, 65536, 1 << 20)]
    tiles = {"N": 128, "BM": 64, "BN": 64, "BK": 32}
    sizes += [("gemm", {"M": m, "K": k, **tiles}) for m, k in ((128, 128), (128, 1024), (512, 512))]
    return tuple(lower(tile_eg.load(EXAMPLES / f"{name}.tile").with_sizes(**s).kernel).program for name, s in sizes)


def synthetic() -> list[tuple[Program, float]]:
    """The programs' times on a chip with other constants."""
    tables = tables_of("910B2")
    for name, value in TRUE.items():
        at = tables
        *path, key = name.split(".")
        for part in path:
            at = at[part]
        at[key] = value
    chip = chip_of(tables)
    return [(p, engine.run(p, chip).microseconds) for p in programs()]


@cache
def fitted() -> Fit:
    return calibrate(synthetic(), "910B2", (*TRUE, "path.gm_to_ub.issue", "path.l1_to_bt.peak"))


@pytest.mark.slow
def test_the_constants_of_a_chip_are_found() -> None:
    found = {c.name: c.value for c in fitted().changed}
    assert found == pytest.approx(TRUE, rel=0.03) and all(c.determined for c in fitted().changed)


@pytest.mark.slow
def test_the_error_that_is_left_is_small() -> None:
    assert fitted().after < 0.002 < 0.02 < fitted().before


def test_a_constant_that_no_row_knows_of_is_kept_and_told() -> None:
    untouched = next(c for c in fitted().constants if c.name == "path.l1_to_bt.peak")
    assert not untouched.determined and untouched.value == untouched.before
    assert "kept, as no row knows of it: path.l1_to_bt.peak" in fit_text(fitted())


def test_a_constant_that_changes_little_is_not_determined_and_told() -> None:
    little = next(c for c in fitted().constants if c.name == "path.gm_to_ub.issue")
    assert 0.35 < little.error < float("inf") and little.value == little.before
    assert "the rows do not determine it: kept" in fit_text(fitted())


def test_without_names_the_constants_are_those_that_the_chip_s_file_marks() -> None:
    marked = {m.name: m.kind for m in chip_marks("910B2")}
    names = values_of("910B2", None)
    assert {marked[n] for n in names} == {"fitted", "assumed"}
    assert {"launch.core_us", "path.gm_to_ub.miss_peak"} <= names.keys()
    assert not names.keys() & {"path.gm_to_l1.issue", "limits.queue_depth", "sync.refill", "path.gm_to_l1_nd2nz.request"}


@pytest.mark.long
def test_a_constant_stays_in_the_range_of_its_mark_and_that_is_told() -> None:
    fit = calibrate(synthetic(), "910B2", tuple(TRUE))
    assert next(c for c in fit.changed if c.name == "launch.prologue_us").value <= 3.5
    assert "determined, at the end of its range (2.2 to 3.5)" in fit_text(fit)


def test_rows_that_no_value_of_the_range_explains_keep_the_constant_and_say_so() -> None:
    fit = calibrate([(p, us + 20) for p, us in synthetic()], "910B2", ("launch.prologue_us",))
    assert not fit.changed and "the rows would have it beyond its range (2.2 to 3.5): kept" in fit_text(fit)


def test_many_constants_that_no_row_knows_of_are_counted() -> None:
    kept = tuple(Constant(f"vector.ops.{n}.half.fixed", 20, 20, inf, 10, 30) for n in range(40))
    assert "40 other constants, 40 of [vector]" in fit_text(Fit("910B2", 1, kept, 0.1, 0.1, {}))


def test_what_was_fitted_is_assumed_no_longer_and_the_rest_keeps_its_marks(tmp_path: Path) -> None:
    own = (Constant("launch.core_us", 0.136, 0.2, 0.01, 0.1, 0.3), Constant("vector.ops.other.half.fixed", 30, 40, 0.01, 17, 46))
    (tmp_path / "m.toml").write_text(chip_text(Fit("910B2", 2, own, 0.1, 0.1, tables_of("910B2")), "marked-fit", "rows"))
    quick, slow = ends(load_chip(str(tmp_path / "m.toml"))) or ()
    assert quick.launch.core_us == slow.launch.core_us == 0.2
    assert (quick.launch.prologue_us, slow.launch.prologue_us) == (2.2, 3.5)
    costs = [[chip.vector.ops["other", size].fixed for chip in (quick, slow)] for size in (2, 4)]
    assert costs == [[40, 40], [17, 46]]
    assert quick.vector.ops["other", 2].slope < slow.vector.ops["other", 2].slope


def test_a_chip_of_one_s_own_is_no_base(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text('base = "910B2"\nname = "no-base"\nnames = []\nsource = "here"\n')
    with pytest.raises(TileError, match="no-base is a chip of a file of your own"):
        calibrate([], str(tmp_path / "m.toml"))


def test_a_name_that_is_none_is_told_before_a_row_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text(f"{HEAD}\nnone.tile,M=128,910B2,5,us\n")
    assert app.run(["calibrate", str(tmp_path / "rows.csv"), "--constants", "launch.bass_us"]) == 1
    assert "there is no constant 'launch.bass_us'" in capsys.readouterr().err


@pytest.mark.long
def test_two_constants_that_always_come_together_are_not_both_determined() -> None:
    fit = calibrate(synthetic(), "910B2", ("launch.base_us", "launch.prologue_us"))
    assert len(fit.changed) < 2


def test_the_chip_file_is_a_chip_and_says_where_its_numbers_are_from(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(chip_text(fitted(), "910B2-test-fit", "rows of a test"))
    chip = load_chip(str(file))
    assert chip.launch.prologue_us == pytest.approx(3.5, rel=0.03) and chip.path("gm_to_ub").issue == 13
    assert chip.sources["ROWS"] == "rows of a test" and "before, within" in chip.launch.source
    assert load_chip("910B2-test-fit") is chip and chip.cube == load_chip("910B2").cube
    times = [engine.run(p, chip).microseconds / us for p, us in synthetic()]
    assert times == pytest.approx([1.0] * len(times), rel=0.01)


HEAD = "file,shape,chip,value,unit"


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("gemm.tile,M=128,910Z,5,us", "unknown chip '910Z'"), ("gemm.tile,M=128,910B2,5,minutes", "is not a unit of time"),
        ("gemm.tile,M=128,910B2,5,", "its time has no unit"),
        ("gemm.tile,M=many,910B2,5,us", "shape M=many: 'many' is no number"), ("gemm.tile,Q=4,910B2,5,us", "Q"),
        ("gemm.tile,M=128,910B2,fast,us", "'fast' is not a number"), ("gemm.tile,M=128,910B2,-3,us", "above 0"),
        ("gemm.tile,M=128,910B2,5", "fewer values than there are columns"),
        ("gemm.tile,M=128,910B2,5,us,1", "more values than there are columns"),
        ("none.tile,M=128,910B2,5,us", "there is no file"), ("gemm.tile,M=128,910B3,5,us", "measured on 910B3"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_used_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, told: str
) -> None:
    (tmp_path / "gemm.tile").write_text((EXAMPLES / "gemm.tile").read_text())
    (tmp_path / "rows.csv").write_text(f"{HEAD}\n{line}\n")
    assert app.run(["calibrate", str(tmp_path / "rows.csv")]) == 1
    error = capsys.readouterr().err
    assert told in error and "line 2 of" in error


def test_a_file_without_its_columns_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    assert app.run(["calibrate", str(tmp_path / "rows.csv")]) == 1
    assert "no columns of measured rows" in capsys.readouterr().err


def test_rows_of_bench_are_read_and_a_chip_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "kernel,shape,dtype,chip,metric,value,unit,schedule,source"
    command = f"tile-eg bench {EXAMPLES / 'vector_add.tile'} --shapes N={{}}; tile_eg, 100 launches"
    front = "vector_add,N,fp32,910B2 24 AIC 1.8GHz,task_time"
    lines = [f"{front},{us},us,x,\"{command.format(n)}\"" for n, us in ((256, 6.35), (1024, 10.45))]
    (tmp_path / "rows.csv").write_text("\n".join([head, *lines]))
    out = tmp_path / "mine.toml"
    given = ["--constants", "launch.prologue_us", "-o", str(out), "--name", "B2-b"]
    assert app.run(["calibrate", str(tmp_path / "rows.csv"), *given]) == 0
    assert "determined" in capsys.readouterr().out
    assert load_chip(str(out)).launch.prologue_us > load_chip().launch.prologue_us
    assert app.run(["emit", str(EXAMPLES / "vector_add.tile"), "--chip", str(out)]) == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("base = '910B2'\nname = '910B2'", "as a chip of tile_eg is"), ("name = 'x'", "is not a chip"),
        ("base = [", "is not a chip"),
        ("base = '910B2'\nname = 'x'\n[sync]\nwarp = 3", "is not a chip"), ("base = 'none'\nname = 'x'", "unknown chip"),
    ],
)  # fmt: skip
def test_a_chip_file_that_is_none_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(TileError, match=told):
        load_chip(str(tmp_path / "x.toml"))


def test_an_unknown_constant_is_refused() -> None:
    with pytest.raises(TileError, match="there is no constant 'launch.bass_us'"):
        calibrate([], "910B2", ("launch.bass_us",))
