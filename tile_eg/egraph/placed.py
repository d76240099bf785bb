"""What authors say of their buffers, kept: nodes that would put a value elsewhere, or in more or fewer slots, are not offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_eg.egraph.graph import Demand, Node, Tile
from tile_eg.errors import TileError
from tile_eg.ir.values import Values
from tile_eg.ops.physical import MOVES
from tile_eg.ops.types import Level

STRAIGHT = frozenset(name for name, m in MOVES.items() if m.target == "L1" and m.source in ("GM", "L0C"))
"""Moves that bring to L1 what has not been in UB."""


def as_placed(node: Node, where: Mapping[Any, Demand], values: Values, name: str | None = None) -> bool:
    """Whether a node leaves each buffer (or the one of this name) where its author puts it, as deep as he says."""
    if node.op == "Buffers":
        tile, (level, _), loop, each, depth = node.payload
        slots = slots_of(tile, level, name) if tile is not None else 0
        return not slots or (each, depth) == (1, min(slots, values.trips.get(loop, slots)))
    if node.op == "FixToGM":
        tensor = node.payload[-1][0]
        return tensor not in values.places or name not in (None, tensor)
    demand = where.get(node.cls)
    levels = {p.level for n, p in demand.tile.places if name in (None, n)} if demand else set()
    if demand is None or levels not in ({"L1"}, {"UB"}):
        return True
    if levels == {"L1"}:
        return demand.level is not Level.UB
    return demand.level is not Level.L1 or node.op not in STRAIGHT


def slots_of(tile: Tile, level: Level, name: str | None = None) -> int:
    """How many slots the author gives to a value in a memory; 0: he leaves it open."""
    found = [p.slots for n, p in tile.places if p.slots and p.level in ("", str(level)) and name in (None, n)]
    return max(found, default=0)


def misplaced(
    values: Values, nodes: Sequence[Node], where: Mapping[Any, Demand], possible: Callable[[list[Node]], bool]
) -> TileError | None:
    """The error for a kernel that could be done if its author had not said where a buffer lies; None where it is not that."""
    if not values.places or not possible(list(nodes)):
        return None
    for name, place in sorted(values.places.items()):
        if place.level and not possible([n for n in nodes if as_placed(n, where, values, name)]):
            return _told(name, place.level, values)
    return None


def _told(name: str, level: str, values: Values) -> TileError:
    other, word = ("UB", "T.alloc_ub") if level == "L1" else ("L1", "T.alloc_L1")
    who = "the vector cores compute with it" if level == "L1" else "it is an operand of a product"
    tile = next((t for t, (n, _) in values.buffers.items() if n == name), None)
    held = f" ({tile.rows * tile.cols * tile.dtype.bits // 8:,} bytes)" if tile is not None and tile.dtype else ""
    return TileError(
        f"`{name}`{held} is said to be in {level}, and {who}: that is done in {other}", values.places[name].span,
        help=f"copy it to a buffer of {word}, or declare it by T.alloc_shared: where that lies is found",
    )  # fmt: skip
