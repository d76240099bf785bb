"""Keeps pages true: fills every marked code block with the file, or with the output of the command, that its mark names.

    <!-- file: examples/gemm.tile -->                    a file of the project
    <!-- output: tile-eg explain examples/gemm.tile -->  what a command prints
    <!-- output: tile-eg emit examples/gemm.tile; lines 10-40 -->
    <!-- output: tile-eg explain examples/gemm.tile; until search -->    what stands before that line

`python docs/update_readme.py` rewrites the pages; a test compares them with what comes out now.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "search.md")
MARK = re.compile(
    r"<!-- (?P<kind>file|output): (?P<what>[^;\n]+?)(?:; lines (?P<first>\d+)-(?P<last>\d+)|; until (?P<until>\w+))? -->\n"
    r"```(?P<language>\w*)\n.*?^```$",
    re.M | re.S,
)


def filled(text: str) -> str:
    """The text with every marked code block as it should be."""
    return MARK.sub(_block, text)


def _block(mark: re.Match[str]) -> str:
    head = mark.group(0).splitlines()[0]
    content = _file(mark["what"]) if mark["kind"] == "file" else _output(mark["what"])
    lines = content.rstrip("\n").splitlines()
    if mark["first"]:
        lines = lines[int(mark["first"]) - 1 : int(mark["last"])]
    if mark["until"]:
        lines = "\n".join(lines).split(f"\n{mark['until']}\n")[0].rstrip().splitlines()
    return "\n".join([head, f"```{mark['language']}", *lines, "```"])


def _file(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _output(command: str) -> str:
    from tile_eg.cli.app import run

    out = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(out):
        code = run(shlex.split(command)[1:])
    if code:
        raise SystemExit(f"{command}: exit code {code}")
    return out.getvalue()


if __name__ == "__main__":
    os.environ["TILE_EG_NO_CACHE"] = "1"  # pages show what is compiled now
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
