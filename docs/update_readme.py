"""Keeps pages true: fills every marked code block with the file, or with the output of the command, that its mark names.

    <!-- file: examples/gemm.tile -->                    a file of the project
    <!-- output: tile-eg explain examples/gemm.tile -->  what a command prints
    <!-- output: tile-eg emit examples/gemm.tile; lines 10-40 -->
    <!-- output: python docs/porting/add.py -->          what a script prints
    <!-- output: tile-eg explain examples/gemm.tile; until search -->    what stands before that line

The page of errors is made whole from tests/errors/gallery. `python docs/update_readme.py` rewrites the pages; a test compares
them with what comes out now.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "search.md", ROOT / "docs" / "porting.md")
GALLERY = ROOT / "tests" / "errors" / "gallery"
ERRORS = ROOT / "docs" / "errors.md"
ABOUT_ERRORS = """# Errors

The mistakes that people make most, and what is said of them. A message shows the line of the source with a caret, what is wrong
in the kernel's own terms (shapes, dtypes, bytes, names), and a way out. All mistakes of a kernel are told at once, one of a
statement; what only follows from another mistake is left out. A script that ends with one prints the message and no traceback;
the exit code is 1. "A fault of tile_eg" (exit code 2) is never yours to mend.

This page is made from `tests/errors/gallery` by `docs/update_readme.py`. What stands behind a message is the way out that was
tried: with it, the kernel compiles, runs, and its numbers are right.
"""
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


def errors_page() -> str:
    """The page of errors: every mistake of the gallery with its messages and what mends them."""
    mistakes = tomllib.loads((GALLERY / "mistakes.toml").read_text(encoding="utf-8"))["mistake"]
    listed = "\n".join(f"- [{m['title']}](#{_anchor(m['title'])})" for m in mistakes)
    return "\n".join([ABOUT_ERRORS, listed, *("\n" + _shown(m) for m in mistakes)]) + "\n"


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _shown(mistake: dict) -> str:
    parts = [f"## {mistake['title']}"]
    for suffix in ("py", "tile"):
        message = GALLERY / f"{mistake['name']}.{suffix}.txt"
        if message.exists():
            parts += ["", "```text", message.read_text(encoding="utf-8").rstrip("\n"), "```"]
        parts += ["", *(_mend(old, new, suffix) for old, new in mistake[suffix])] if suffix in mistake else []
    return "\n".join(parts)


def _mend(old: str, new: str, suffix: str) -> str:
    """What stands there and what it becomes, for people."""
    before, after = old.strip(), new.strip()
    if not after:
        return f"Leave out `{before}`."
    if before == after:
        return f"Indent `{before}` once more."
    if "\n" not in before + after:
        return f"For `{before}` write `{after}`."
    text = f"For {_code(before, suffix)} write {_code(after, suffix)}".rstrip()
    return text.replace(" \n", "\n").replace("\n write", "\nwrite") + "." * ("\n" not in after)


def _code(text: str, suffix: str) -> str:
    """A piece of a source in a sentence, or several lines of it as a block; their first line has lost its indentation."""
    if "\n" not in text:
        return f"`{text}`"
    first, rest = text.split("\n", 1)
    lines = textwrap.dedent(rest)
    if first.endswith(":") and not lines.startswith(" "):
        lines = textwrap.indent(lines, "    ")
    return f"\n\n```{'python' if suffix == 'py' else 'text'}\n{first}\n{lines}\n```\n\n"


def _file(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _output(command: str) -> str:
    from tile_eg.cli.app import run

    out = io.StringIO()
    program, *arguments = shlex.split(command)
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(out):
        code = run(arguments) if program == "tile-eg" else runpy.run_path(*arguments, run_name="__main__") and 0
    if code:
        raise SystemExit(f"{command}: exit code {code}")
    return out.getvalue()


if __name__ == "__main__":
    os.environ["TILE_EG_NO_CACHE"] = "1"  # pages show what is compiled now
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
    ERRORS.write_text(errors_page(), encoding="utf-8")
