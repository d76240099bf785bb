"""What the words for torch's operators are made of: who writes a kernel's text, an operator's name and arguments, numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import inf, isnan
from typing import Any, Protocol

from tile_eg.errors import TileError

ATEN = "aten"


class Writer(Protocol):
    """What the operators of a kernel are written with: the text of an argument, the sizes of a value, a name for a text."""

    def text(self, value: Any) -> str: ...

    def shape(self, node: Any) -> list[str]: ...

    def dtype(self, node: Any) -> str: ...

    def named(self, text: str) -> str: ...


Word = Callable[[Writer, Any], "str | tuple[str, ...]"]


def refuse(reason: str) -> TileError:
    return TileError(reason)


def name_of(node: Any) -> str:
    """ "add" of aten.add.Tensor; "getitem" where one of several values is taken; empty for what is no operator of torch's."""
    if node.op != "call_function":
        return ""
    if node.target is operator.getitem:
        return "getitem"
    return node.target._opname if getattr(node.target, "namespace", "") == ATEN else ""


def arguments(node: Any) -> dict[str, Any]:
    """An operator's arguments by name, defaults among them."""
    found = {a.name: a.default_value for a in node.target._schema.arguments if a.has_default_value()}
    return found | dict(zip((a.name for a in node.target._schema.arguments), node.args, strict=False)) | dict(node.kwargs)


def number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refuse(f"{value!r} is no number that a kernel is written with")
    if isnan(value):
        raise refuse("it is computed with NaN")
    if value in (inf, -inf):
        return "inf" if value > 0 else "(-inf)"
    return f"({value!r})" if value < 0 else repr(value)
