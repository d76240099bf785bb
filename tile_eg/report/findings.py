"""A finding of the simulator with what it points at: the Ascend C line, and the line of the kernel that it came from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tile_eg.report.text import indent
from tile_eg.simulator.findings import Finding

ORIGIN = re.compile(r"//\s*(?P<place>\S+:(?P<line>\d+))\s")


def finding_text(finding: Finding, ascend_c: str, source: str = "") -> str:
    """The finding, then the statements of the emitted text that it names, each with its origin in the kernel's own text."""
    lines = ascend_c.splitlines()
    shown = [_statement(lines, n, source) for n in dict.fromkeys((finding.line, finding.other_line)) if 0 < n <= len(lines)]
    return "\n".join([str(finding), *(indent(s) for s in shown)])


def _statement(lines: list[str], line: int, source: str) -> str:
    text = list(_until_semicolon(lines, line))
    shown = [f"{line:>5} | {text[0].strip()}", *(f"      | {t.strip()}" for t in text[1:])]
    origin = ORIGIN.search(text[-1] + " ")
    written = source.splitlines()
    if origin and 0 < int(origin["line"]) <= len(written):
        shown.append(f"      = {origin['place']}: {written[int(origin['line']) - 1].strip()}")
    return "\n".join(shown)


def _until_semicolon(lines: list[str], line: int) -> Iterator[str]:
    for text in lines[line - 1 :]:
        yield text
        if text.partition("//")[0].rstrip().endswith((";", "{", "}")):
            return
