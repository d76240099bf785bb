"""Errors that a user can act on: what is wrong, where, and what to do."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

Read = TypeVar("Read")
WITH_OR_WITHOUT_MARK = "utf-8-sig"
"""How files of a user's are decoded: UTF-8, also with the byte order mark that some editors put in front."""


def why_unread(error: Exception) -> str:
    """Why a file of a user's could not be read, in words without numbers of errors."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text (byte {error.start})"
    return getattr(error, "strerror", None) or str(error)


@dataclass(frozen=True)
class Span:
    """A place in a source: 1-based line and column; the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Note:
    """What an author should know of a kernel that is right, and the place that it is about."""

    text: str
    span: Span | None = None


class TileError(Exception):
    """A user's mistake. `span` is its place; `notes` are further (text, place) pairs; `help` says what to do.

    `source` is the text that the spans point into; whoever knows it sets it before the error is shown. `texts` has those of other
    files that they point into: file of the span -> text. `others` are further mistakes in the same source, told below this one.
    """

    def __init__(
        self, message: str, span: Span | None = None, *, help: str = "", notes: tuple[tuple[str, Span | None], ...] = ()
    ) -> None:
        super().__init__(message)
        self.message, self.span, self.help, self.notes = message, span, help, notes
        self.source = ""
        self.texts: dict[str, str] = {}
        self.others: tuple[TileError, ...] = ()

    def __str__(self) -> str:
        return self.render()

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of a traceback."""
        return self.render().splitlines()

    def render(self) -> str:
        """The message, the source line with a caret under the fault, the notes, and the help; then the other mistakes."""
        shown = [e._alone() for e in (self, *self.others[: MOST_SHOWN - 1])]
        if self.others:
            left = len(self.others) + 1 - len(shown)
            shown.append(f"{len(self.others) + 1} errors" + (f", of which {left} are not shown" if left else ""))
        return "\n\n".join(shown)

    def said_in(self, text: str, file: str = "") -> None:
        """Gives the error, and the others, the text that their spans point into, where they have none. Where that is of a `file`,
        spans in others, in which a macro stands, get the texts of these."""
        for e in (self, *self.others):
            e.source = e.source or text
            spans = (e.span, *(span for _, span in e.notes)) if file else ()
            for other in {span.file for span in spans if span} - {file} - e.texts.keys():
                if lines := linecache.getlines(other):
                    e.texts[other] = "".join(lines)

    def _alone(self) -> str:
        parts = [f"error: {self.message}", *_place(self.span, self._text(self.span))]
        for text, span in self.notes:
            parts += [f"note: {text}", *_place(span, self._text(span))]
        if self.help:
            parts.append(f"help: {self.help}")
        return "\n".join(parts)

    def _text(self, span: Span | None) -> str:
        return self.texts.get(span.file, self.source) if span else ""


class FollowUp(TileError):
    """An error that follows from one that is told: a statement uses what a wrong statement would have made."""

    def __init__(self, span: Span | None = None) -> None:
        super().__init__("this follows from another error", span)


MOST_SHOWN = 20
"""Mistakes that one message lists."""


def together(found: Iterable[TileError]) -> TileError:
    """The mistakes of a source as one error, each once; what follows from others is left out."""
    apart = [e for given in found for e in (given, *given.others) if not isinstance(e, FollowUp)]
    each: list[TileError] = []
    for e in apart:
        if all((e.message, e.span) != (other.message, other.span) for other in each):
            each.append(e)
        e.others = ()
    first = each[0]
    first.others = tuple(each[1:])
    return first


def by_line(found: Iterable[TileError]) -> list[TileError]:
    """Mistakes in the order of their lines, where they are of one file."""
    each = [e for given in found for e in (given, *given.others)]
    one_file = len({e.span.file for e in each if e.span}) == 1
    return sorted(each, key=lambda e: (e.span.line, e.span.column) if e.span else (0, 0)) if one_file else each


class NotSearched(TileError):
    """A kernel that the search has no form for. In the order of its statements it can be done, where that is possible here.
    `asked`: a word asks for that order, so that it is no mistake where another statement cannot be done in it."""

    asked = False


def no_form(e: TileError) -> TileError:
    """The same mistakes as reasons for which the search has no form for a kernel."""
    if isinstance(e, NotSearched | FollowUp):
        return e
    made = NotSearched(e.message, e.span, help=e.help, notes=e.notes)
    made.source, made.texts, made.others = e.source, e.texts, tuple(map(no_form, e.others))
    return made


def chain_too_long(kind: type[TileError] = TileError) -> TileError:
    """What is told where Python's RecursionError ends the way of a kernel."""
    message = "the kernel has a longer chain of operations, each on the result of the one before, than tile_eg can follow"
    help = "a loop in place of statements that repeat, or several kernels, each of which stores what the next one loads"
    return kind(message, help=help)


class ReadFirst(TileError):
    """Something is read before it is written, in the order of the statements. As two streams they may have another order."""


def attempted(way: Callable[[], Read]) -> Read | TileError:
    """What `way` gives; where it ends in a mistake, that, as one of two results between which the caller decides."""
    try:
        return way()
    except TileError as mistake:
        return mistake


@dataclass(frozen=True)
class InOrder:
    """That the search has no form for a kernel, and `why`: it is done in the order of its statements, if that is possible.
    `searched`: a kernel that the search has a form for, at great length."""

    why: NotSearched | ReadFirst
    searched: Any = None


def searchable(found: Read | InOrder) -> Read:
    """What was read of a kernel. Raises why the search has no form for it, where that is what was found."""
    if isinstance(found, InOrder):
        if found.searched is None:
            raise found.why
        return found.searched  # type: ignore[no-any-return]
    return found


class TileWarning(UserWarning):
    """What an author should know of a kernel that compiles; Python shows it as a warning."""


def rendered(note: Note, source: str) -> str:
    """A note with its line of the source."""
    return "\n".join([f"note: {note.text}", *_place(note.span, source)])


class PlanError(Exception):
    """A schedule that cannot be planned or written: flag ids run out, a field of an instruction is too narrow. Another may do.

    `span` is the source line that it came from.
    """

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message + (f" ({span.file}:{span.line})" if span else ""))
        self.message, self.span = message, span


def plannable(way: Callable[[], Read]) -> Read | PlanError:
    """What `way` gives; where there is no plan, why, as one of two results between which the caller decides."""
    try:
        return way()
    except PlanError as none:
        return none.with_traceback(None)


class LimitError(PlanError):
    """A schedule of a kernel whose sizes are beyond a limit of the machine; `help` is the way out."""

    help = "write smaller sizes: this limit of the machine is reached by every schedule that was found"


@contextmanager
def in_source(text: str, file: str = "") -> Iterator[None]:
    """Gives an error that leaves the block the text that its spans point into, that of a `file`."""
    try:
        yield
    except TileError as e:
        e.said_in(text, file)
        raise


class NotHere:
    """A name of TileLang's that is not here: using it is an error that says what does its work."""

    def __init__(self, name: str, instead: str) -> None:
        self._name, self._instead = name, instead

    def __repr__(self) -> str:
        return f"<{self._name}, which is not here>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TileError(f"{self._name} is not here", help=self._instead)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise TileError(f"{self._name} is not here", help=self._instead)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A help line that offers the known names nearest to `name`, or lists them all where none is near."""
    from difflib import get_close_matches

    names = sorted(set(known))
    near = get_close_matches(name, names, n=2, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(f"`{n}`" for n in near) + "?"
    return "known here: " + ", ".join(names) if names else ""


def _place(span: Span | None, source: str) -> list[str]:
    if span is None:
        return []
    head = f"  --> {span.file}:{span.line}:{span.column}"
    lines = source.splitlines()
    if not 0 < span.line <= len(lines):
        return [head]
    line = lines[span.line - 1]
    width = span.end_column - span.column if span.end_line == span.line else len(line) - span.column + 1
    gutter = f"{span.line:>5} | "
    return [head, gutter + line, " " * (len(gutter) - 2) + "| " + " " * (span.column - 1) + "^" * max(1, width)]


class InternalError(Exception):
    """A fault of tile_eg itself: the user's kernel is not to blame. `stage` says where on the way it happened."""

    def __init__(self, stage: str, what: str) -> None:
        note = "note: this is a fault of tile_eg, not of your kernel: please report it"
        super().__init__(f"internal error in '{stage}': {what}\n{note}")
        self.stage = stage
