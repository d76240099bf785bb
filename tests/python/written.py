"""A kernel's function from its text, as if it stood in a file."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import tile_eg
import tile_eg.language as T

_count = itertools.count()


def defined(text: str, **others: Any) -> dict[str, Any]:
    """What a module with this text, and `others`, defines; its lines can be shown in errors."""
    file = f"<text {next(_count)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"T": T, "tile_eg": tile_eg, **others}
    exec(compile(text, file, "exec"), names)
    return names


def prim_func(text: str) -> Any:
    """The function `f` that the text defines."""
    return defined(text)["f"]
