"""Printing: in colour on a terminal, plain text where the output is piped or kept."""

from __future__ import annotations

import sys
from typing import TextIO


def show(text: str, language: str = "") -> None:
    """Prints to standard output, as source code of `language` ("cpp") where it is some."""
    if not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console
    from rich.syntax import Syntax

    console = Console(highlight=False, soft_wrap=True)
    if language:
        console.print(Syntax(text, language, background_color="default"))
    else:
        console.print(_coloured(text))


def complain(text: str) -> None:
    """Prints to standard error, its first word in red on a terminal."""
    _print_error(text, sys.stderr)


def _print_error(text: str, stream: TextIO) -> None:
    if not stream.isatty():
        print(text, file=stream)
        return
    from rich.console import Console

    Console(file=stream, highlight=False, soft_wrap=True).print(_coloured(text))


def _coloured(text: str) -> object:
    from rich.text import Text

    styled = Text(text)
    for pattern, style in _STYLES.items():
        styled.highlight_regex(pattern, style)
    return styled


_STYLES = {
    r"(?m)^(internal )?error\b": "bold red",
    r"(?m)^note\b": "bold cyan",
    r"(?m)^help\b": "bold green",
    r"\bgood\b": "green",
    r"\bBAD\b": "bold red",
    r"\^+": "red",
    r"[│├└─]+": "dim",
    r"\b\d[\d.]* (([KMG]i)?B|[num]?s|%)(?!\w)": "cyan",
    r"(?m)^(schedule|decisions|alternatives|refused|search)$": "bold",
}
