"""Printing: in colour on a terminal, plain text where the output is piped or kept."""

from __future__ import annotations

import errno
import os
import sys
from typing import TextIO

from tile_eg.errors import TileError


def show(text: str, language: str = "") -> None:
    """Prints to standard output at once, as source code of `language` ("cpp") where it is some.

    BrokenPipeError where nobody reads it any more; TileError where it cannot be written, as on a full disk.
    """
    try:
        _print(text, language)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        leave_unread()
        raise TileError(f"the text cannot be written: {error.strerror}") from None


def unwritten(error: OSError) -> OSError | TileError:
    """What is told where a full disk ended a command; every other error as it is."""
    if error.errno != errno.ENOSPC:
        return error
    leave_unread()
    return TileError(f"what is to be written does not fit: {error.strerror}", help="make room, and run it again")


def _print(text: str, language: str) -> None:
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


def leave_unread() -> None:
    """Lets what is still to be printed go nowhere: the reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class ProgressLine:
    """Tells how far a long run is: on a terminal in one line that changes, after two seconds; elsewhere by a line each minute."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.next = 2.0 if self.terminal else 60.0
        self.last = ""

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self.last and self.terminal:
            self.stream.write("\r" + " " * len(self.last) + "\r")
            self.stream.flush()

    def tell(self, text: str, seconds: float) -> None:
        """`seconds` have passed since the run began."""
        if seconds < self.next:
            return
        if self.terminal:
            self.stream.write("\r" + text.ljust(len(self.last)))
        else:
            self.stream.write(text + "\n")
            self.next = seconds + 60.0
        self.last = text
        self.stream.flush()


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
    r"(?m)^(schedule|decisions|alternatives|refused|search|time|who computes what.*|loops|where values lie|synchronisation .*"
    r"|transfers .*|Ascend C)$": "bold",
}
