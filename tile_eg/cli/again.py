"""A command line that was answered before is answered with the same text, as long as nothing has changed that it was made of.

To find the name of what is kept of a kernel, `emit` reads its options, its file and what that imports. So what a command line
came to is kept as well: the name, and the files that were read, by digests. Who asks again needs no more of tile_eg than this.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from tile_eg import kept_texts
from tile_eg.cli.codes import INTERRUPTED, USER_ERROR
from tile_eg.cli.console import complain, leave_unread, show
from tile_eg.disk_cache import forget, on, recall, remember
from tile_eg.errors import WITH_OR_WITHOUT_MARK, TileError

KIND, MOST = "asked", 2000
"""How the names of entries begin, and how many stay."""
COMMAND = "emit"
_arguments: ContextVar[tuple[str, ...]] = ContextVar("arguments", default=())


@contextmanager
def asked(arguments: Sequence[str]) -> Iterator[None]:
    """Within it, `keep` keeps what these arguments came to."""
    token = _arguments.set(tuple(arguments))
    try:
        yield
    finally:
        _arguments.reset(token)


def keep(entry: str, kind: str, read: Mapping[str, str], missing: Iterable[str]) -> None:
    """Keeps that the command line at hand came to one `kind` of text of an entry, and that it followed from the texts that were
    `read`, by their paths, and from files that were `missing`."""
    if arguments := _arguments.get():
        held = {"entry": entry, "kind": kind, "read": {p: _digest(t) for p, t in read.items()}, "missing": list(missing)}
        with suppress(OSError):
            remember(_name(arguments), json.dumps(held).encode(), MOST)


def said_again(arguments: Sequence[str]) -> bool:
    """Whether the text that the command line asks for was known, and is printed. On a terminal, where it gets its colours, it is
    not."""
    found = None if sys.stdout.isatty() else answer(arguments)
    if found is None:
        return False
    text, told = found
    for note in told:
        complain(note)
    try:
        show(text.rstrip("\n"))
    except BrokenPipeError:
        leave_unread()
        sys.exit(INTERRUPTED)
    except TileError as error:
        complain(str(error))
        sys.exit(USER_ERROR)
    return True


def answer(arguments: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """The text that the arguments came to before, and what was told then; None where that is not known, or may be another now."""
    if arguments[:1] != [COMMAND] or not on():
        return None
    try:
        name = _name(arguments)
        if (data := recall(name)) is None:
            return None
        held = json.loads(data)
        if any(_digest(Path(p).read_text(encoding=WITH_OR_WITHOUT_MARK)) != was for p, was in held["read"].items()):
            forget(name)
            return None
        texts = None if any(Path(p).exists() for p in held["missing"]) else kept_texts.find(held["entry"])
        return (str(getattr(texts, held["kind"])), texts.told) if texts else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _name(arguments: Sequence[str]) -> str:
    """That of what is known of a command line in this folder. OSError where the folder is gone, or a file of tile_eg was changed
    since this process began."""
    if (version := kept_texts.version()) is None:
        raise OSError("what runs is not what stands on disk")
    return f"{KIND}-{_digest(json.dumps([version, os.getcwd(), *arguments]))[:32]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
