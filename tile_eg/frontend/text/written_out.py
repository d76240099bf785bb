"""Loops whose variable says how far a loop in them goes, `for i in serial(8) { for j in serial(i) { ... } }`: they are read trip
by trip, the variable being a number in each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tile_eg.frontend.text.syntax import Node
from tile_eg.ir.index import Expr

MOST = 256
"""Trips that are read one by one."""


def has_own_trips(variable: str, extent: int, count: Expr | None, block: Node) -> bool:
    """Whether the trips of a loop with this body are read one by one. No buffer may be declared in them."""
    inside = [n for n in _nodes(block) if hasattr(n, "data")]
    if extent > MOST or count is not None or any(n.data in ("shared", "fragment") for n in inside):
        return False
    following = {variable}
    for n in inside:
        if n.data == "let" and _mentions(n.children[1], following):
            following.add(str(n.children[0]))
    return any(n.data in ("loop", "parallel") and _mentions(n.children[1], following) for n in inside)


def _nodes(node: Any) -> Iterator[Any]:
    """What a tree consists of, in the order of the text."""
    for part in getattr(node, "children", ()):
        yield part
        yield from _nodes(part)


def _mentions(node: Any, names: set[str]) -> bool:
    return any(isinstance(n, str) and str(n) in names for n in _nodes(node)) or (isinstance(node, str) and str(node) in names)
