"""The mistakes that people make most: what is said of each, word for word, and that the way out that is named works.

`gallery/mistakes.toml` lists them. `pytest tests/errors --update-golden` writes what is said now; docs/errors.md shows it.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tile_eg.cli.app import run

GALLERY = Path(__file__).parent / "gallery"
MISTAKES = tomllib.loads((GALLERY / "mistakes.toml").read_text())["mistake"]
FILES = [(m, suffix) for m in MISTAKES for suffix in ("py", "tile") if (GALLERY / f"{m['name']}.{suffix}").exists()]
NAMES = [f"{m['name']}.{suffix}" for m, suffix in FILES]
MENDED = [(m, suffix) for m, suffix in FILES if suffix in m]
each = pytest.mark.parametrize(("mistake", "suffix"), FILES, ids=NAMES)
each_mended = pytest.mark.parametrize(("mistake", "suffix"), MENDED, ids=[f"{m['name']}.{s}" for m, s in MENDED])
NO_PLACE = {"sync_off_without_flags", "out_idx", "arrays_that_are_missing", "kernel_not_returned"}
"""What is said of them is not about a line of the kernel."""


def said(command: str, file: str) -> tuple[int, str]:
    """The exit code of a command, and the errors that it prints."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = run([command, file])
    told = [part for part in out.getvalue().split("\n\n") if part.startswith("error: ")]
    return code, errors.getvalue() or "\n\n".join(told) + "\n" * bool(told)


@pytest.mark.slow
@each
def test_what_is_said_is_what_the_gallery_shows(mistake, suffix, update_golden, monkeypatch) -> None:
    monkeypatch.chdir(GALLERY)
    code, text = said("run" if mistake.get("runs") else "check", f"{mistake['name']}.{suffix}")
    golden = GALLERY / f"{mistake['name']}.{suffix}.txt"
    if update_golden:
        golden.write_text(text)
    assert (code, text) == (1, golden.read_text())


@each
def test_each_message_has_a_place_with_a_caret(mistake, suffix) -> None:
    text = (GALLERY / f"{mistake['name']}.{suffix}.txt").read_text()
    assert text.startswith("error: ")
    assert mistake["name"] in NO_PLACE or ("-->" in text and "^" in text)


def mended(mistake: dict, suffix: str, folder: Path) -> str:
    """A file with the way out in it."""
    text = (GALLERY / f"{mistake['name']}.{suffix}").read_text()
    for old, new in mistake[suffix]:
        assert old in text
        text = text.replace(old, new)
    file = folder / f"{mistake['name']}.{suffix}"
    file.write_text(text)
    return str(file)


@pytest.mark.slow
@each_mended
def test_the_way_out_is_one(mistake, suffix, tmp_path) -> None:
    assert said("check", mended(mistake, suffix, tmp_path)) == (0, "")


@pytest.mark.long
@each_mended
def test_what_was_mended_runs_and_is_right(mistake, suffix, tmp_path) -> None:
    assert said("run", mended(mistake, suffix, tmp_path)) == (0, "")


def test_forty_mistakes_are_shown() -> None:
    assert len({m["name"] for m, _ in FILES}) >= 40
    assert {f.stem for f in GALLERY.iterdir() if f.suffix in (".py", ".tile")} == {m["name"] for m, _ in FILES}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["several", "kernel_not_returned", "shape_of_an_array"])
def test_a_script_that_ends_with_a_mistake_prints_its_message_first(name: str) -> None:
    done = subprocess.run([sys.executable, f"{name}.py"], cwd=GALLERY, capture_output=True, text=True)
    shown = (GALLERY / f"{name}.py.txt").read_text()
    assert done.stderr.startswith("error: ")
    assert done.stderr.splitlines()[0] == shown.splitlines()[0]
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("called at ")
