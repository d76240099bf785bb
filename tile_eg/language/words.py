"""What a word of the language is, and how it is declared."""

from __future__ import annotations

import functools
import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.ops.records import record


def _each(args: Iterable[Any]) -> Iterator[Any]:
    """Arguments, and those in lists of some."""
    return (a for x in args for a in (x if isinstance(x, list | tuple) else (x,)))


@record(eq=False)
class Word:
    """A word of the language. `level` is developer, beginner (about whole tensors), expert or later, which has no meaning yet.

    `number` computes the word on plain Python numbers, inside and outside of a kernel, where it can.
    """

    name: str
    signature: inspect.Signature
    level: str = "developer"
    number: Callable[..., Any] | None = field(default=None, repr=False)
    __doc__: str | None = field(default=None, repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _reading and (self.level == "beginner" or any(hasattr(a, "__tile_word__") for a in _each((*args, *kwargs.values())))):
            return _reading[-1](self.name, args, kwargs)
        if self.number is not None:
            return self.number(*args, **kwargs)
        error = TileError(f"T.{self.name} has a meaning only inside a function under @T.prim_func")
        raise at_frame(error if self.level == "developer" else missing(self, None), sys._getframe(1))


TensorWord = Callable[[str, Sequence[Any], Mapping[str, Any]], Any]
_reading: list[TensorWord] = []


@contextmanager
def tensors_read(meaning: TensorWord) -> Iterator[None]:
    """While a function of whole tensors is run, `meaning` says what a word does with their values."""
    _reading.append(meaning)
    try:
        yield
    finally:
        _reading.pop()


PACKAGE = str(Path(__file__).parents[1])


def user_place() -> Span | None:
    """The expression that runs, in the nearest function that is not the compiler's."""
    frame = _user_frame()
    return place_of(frame) if frame is not None else None


def user_names() -> dict[str, Any]:
    """The names that are local there."""
    frame = _user_frame()
    return dict(frame.f_locals) if frame is not None else {}


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    others = [p for name in ("torch", "numpy") for p in getattr(sys.modules.get(name), "__path__", ())]
    while frame is not None and frame.f_code.co_filename.startswith((PACKAGE, *others)):
        frame = frame.f_back
    return frame


def missing(word: Word, span: Span | None) -> TileError:
    """The error for a word that exists in TileLang and not here."""
    if word.level == "expert":
        return TileError(
            f"T.{word.name} is Expert level, not supported yet",
            span,
            help="write it at Developer level: T.alloc_shared and T.alloc_fragment, no scopes, no flags; the rest is found",
        )
    if word.level == "beginner":
        help = "a function under @tile_eg.jit that takes T.Tensor arguments and returns an expression of them has these words"
        return TileError(f"T.{word.name} is about whole tensors, not tiles", span, help=help)
    return TileError(f"T.{word.name} is not supported yet", span)


def developer_words(words: Any) -> list[str]:
    """The names in the language, or in `tile`, that have a meaning."""
    found = ((name, getattr(words, name)) for name in dir(words) if not name.startswith("_"))
    return [name for name, word in found if isinstance(word, Word) and word.level == "developer"]


def at_frame(error: TileError, frame: FrameType) -> TileError:
    """The error with the place in the user's source that a frame is executing."""
    error.span = place_of(frame)
    error.source = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    return error


def place_of(frame: FrameType) -> Span:
    """The expression that a frame is executing."""
    code = frame.f_code
    line, end_line, column, end_column = next(islice(code.co_positions(), frame.f_lasti // 2, None))
    line = line or frame.f_lineno
    return Span(code.co_filename, line, (column or 0) + 1, end_line or line, (end_column or 0) + 1)


def word(function: Callable[..., Any]) -> Any:
    return Word(function.__name__, inspect.signature(function), __doc__=function.__doc__)


class Whole(int):
    """What a word gives for plain whole numbers: one of them, with a `value` as TVM's have it."""

    @property
    def value(self) -> int:
        return int(self)


def number_word(function: Callable[..., Any]) -> Any:
    """A word whose body computes it on plain numbers."""

    @functools.wraps(function)
    def computed(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        return Whole(found) if type(found) is int else found

    return Word(function.__name__, inspect.signature(function), number=computed, __doc__=function.__doc__)


def alike(function: Callable[..., None], names: Sequence[str], prefix: str, doc: str) -> dict[str, Word]:
    """A word for each name with the parameters of a function; `doc` says what `{}` does."""
    signature = inspect.signature(function)
    return {n: Word(prefix + n, signature, __doc__=doc.format(n)) for n in names}


def unsupported(prefix: str, level: str, names: str) -> dict[str, Word]:
    """Words of TileLang's that have no meaning here."""

    def anything(*args: Any, **kwargs: Any) -> Any: ...

    return {n: Word(prefix + n, inspect.signature(anything), level) for n in names.split()}


def reduction(name: str) -> Word:
    def reduce(
        buffer: Any, out: Any = None, dim: int = -1, clear: bool = True, real_shape: Any = None, size: Any = None
    ) -> Any: ...

    doc = f"out = {name[7:]} of the buffer over `dim`; with clear=False, what out holds takes part. Without out, an expression."
    return Word(name, inspect.signature(reduce), __doc__=doc)
