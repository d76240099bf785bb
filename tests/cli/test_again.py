"""A command line that was answered before is answered from the disk, while all that its text was made of is as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tile_eg import disk_cache
from tile_eg.cli import again, sources
from tile_eg.cli.app import run

KERNEL = """import parts
kernel k(X: f32[16, 64]) -> Y: f32[16, 64] {
  grid bx = 1
  shared x: f32[16, 64]
  for i in pipelined(1, stages=3) {
    x = X[i, 0]
    x = twice(x)
    Y[i, 0] = x
  }
}
"""
PARTS = "function twice(x) = x + x\n"
HEAVY = (
    "typer", "rich", "numpy", "egglog", "ortools", "lark", "tile_eg.search", "tile_eg.rules", "tile_eg.frontend", "tile_eg.ir",
    "tile_eg.chips",
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel that imports another file and of which something is told; the cache is on, in a folder of this test's own."""
    monkeypatch.delenv("TILE_EG_NO_CACHE")
    monkeypatch.setenv("TILE_EG_CACHE", str(tmp_path / "cache"))
    (tmp_path / "parts.tile").write_text(PARTS, encoding="utf-8")
    (tmp_path / "k.tile").write_text(KERNEL, encoding="utf-8")
    return tmp_path / "k.tile"


@pytest.fixture
def emitted(file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What `emit` prints of it, and tells."""
    assert run(["emit", str(file)]) == 0
    return capsys.readouterr()


@pytest.mark.slow
def test_what_was_asked_before_is_known_with_what_was_told(file: Path, emitted: tuple[str, str]) -> None:
    text, told = again.answer(["emit", str(file)]) or ("", ())
    assert (text.rstrip("\n") + "\n", "\n".join(told) + "\n") == emitted and "of its 3 stages" in told[0]


SECOND = f"""
import sys
from tile_eg.cli import main
try:
    main(sys.argv[1:])
finally:
    heavy = {HEAVY!r}
    assert not set(heavy) & set(sys.modules), set(heavy) & set(sys.modules)
"""


@pytest.mark.slow
def test_a_second_process_imports_no_more_than_it_takes(file: Path, emitted: tuple[str, str]) -> None:
    command = [sys.executable, "-c", SECOND, "emit", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == tuple(emitted)


CHANGES: dict[str, Callable[[Path], object]] = {
    "the file": lambda f: f.write_text(KERNEL + "# longer\n", encoding="utf-8"),
    "an import": lambda f: (f.parent / "parts.tile").write_text("function twice(x) = 2.0 * x\n", encoding="utf-8"),
    "an import that is gone": lambda f: (f.parent / "parts.tile").unlink(),
    "a schedule that was tuned": lambda f: f.with_name("k.tile.tuned.json").write_text("{}", encoding="utf-8"),
    "the folder": lambda f: os.chdir(f.parent),
}


@pytest.mark.few(2)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_has_changed_is_not_answered(
    change: Callable[[Path], object], file: Path, emitted: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path.cwd())
    change(file)
    assert again.answer(["emit", str(file)]) is None


@pytest.mark.slow
def test_a_changed_import_is_compiled_once_and_then_known(file: Path, emitted: tuple[str, str]) -> None:
    CHANGES["an import"](file)
    assert again.answer(["emit", str(file)]) is None and run(["emit", str(file)]) == 0
    assert again.answer(["emit", str(file)]) is not None


OTHERS = (["--no-cache"], ["--host"], ["--chip", "910B4"])


@pytest.mark.slow
def test_other_options_are_another_question(file: Path, emitted: tuple[str, str]) -> None:
    assert [again.answer(["emit", str(file), *others]) for others in OTHERS] == [None] * len(OTHERS)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("asked", [["--no-cache"], ["-o", "OUT"], ["--rules", "OWN"]], ids=" ".join)
def test_what_does_more_than_print_a_kept_text_is_not_kept(
    asked: list[str], file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = '(rewrite (Un "exp" x) (Un "exp" (BinS "mul" x 1.0)) :ruleset algebra :name "one" :law equal)'
    (tmp_path / "OWN").write_text(rule, encoding="utf-8")
    arguments = ["emit", str(file), *(str(tmp_path / a) if a.isupper() else a for a in asked)]
    assert run(arguments) == 0 and again.answer(arguments) is None


@pytest.mark.slow
def test_an_entry_that_is_gone_or_broken_is_no_answer(file: Path, emitted: tuple[str, str], tmp_path: Path) -> None:
    for entry in (tmp_path / "cache").glob("compiled-*"):
        (entry / disk_cache.DATA).write_bytes(b"{}")
    assert again.answer(["emit", str(file)]) is None


@pytest.mark.slow
def test_nothing_is_answered_where_the_cache_is_off(
    file: Path, emitted: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILE_EG_NO_CACHE", "1")
    assert again.answer(["emit", str(file)]) is None


@pytest.mark.slow
def test_while_files_of_tile_eg_change_nothing_is_kept_or_answered(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["emit", str(file)]) == 0
    monkeypatch.setattr("tile_eg.kept_texts.version", lambda: None)
    with again.asked(["emit", str(file)]):
        again.keep(str(next(iter(file.parent.glob("cache/compiled-*"))).name), "source", {}, [])
    assert again.answer(["emit", str(file)]) is None


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_what_cannot_be_written_is_told_without_a_traceback(file: Path, emitted: tuple[str, str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "tile_eg", "emit", str(file)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "error: the text cannot be written: No space left on device" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_help_that_cannot_be_written_is_told_without_a_traceback() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "tile_eg", "--help"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "error: what is to be written does not fit: No space left on device" in done.stderr


@pytest.mark.slow
def test_an_import_that_is_edited_while_its_kernel_is_compiled_is_asked_again(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled = sources.compile_held

    def edited(*asked: object) -> object:
        made = compiled(*asked)  # type: ignore[arg-type]
        CHANGES["an import"](file)
        return made

    monkeypatch.setattr(sources, "compile_held", edited)
    assert run(["emit", str(file)]) == 0
    assert again.answer(["emit", str(file)]) is None
