"""How a mistake reaches its author: the message first, and no frame of tile_eg in the traceback."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tile_eg.errors import TileError

HOUSE = str(Path(__file__).parents[1])
F = TypeVar("F", bound=Callable[..., Any])


def told(function: F) -> F:
    """A door of tile_eg: a mistake leaves it as if the author's own line had raised it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # pytest leaves such frames out
        try:
            return function(*args, **kwargs)
        except TileError as e:
            raise e.with_traceback(None) from None

    return call  # type: ignore[return-value]


def levels() -> int:
    """How many levels up from its caller, who is the first, the author's own line is: for `warnings.warn`."""
    frame, count = sys._getframe(1), 1
    while frame.f_code.co_filename.startswith(HOUSE) and frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count


def shown(error: TileError, trace: TracebackType | None) -> str:
    """What a script that ends with a mistake prints: the message, and the author's line that led to it."""
    frames = [f for f in traceback.extract_tb(trace) if not f.filename.startswith(HOUSE)]
    called = [f"called at {f.filename}:{f.lineno}: {f.line}" for f in frames[-1:]]
    return "\n".join([error.render(), *called])


def message_first() -> None:
    """From now on, a script that ends with a mistake prints its message and no traceback; other errors print as before."""
    before = sys.excepthook

    def print_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, TileError):
            print(shown(error, trace), file=sys.stderr)
        else:
            before(kind, error, trace)

    sys.excepthook = print_error


message_first()
