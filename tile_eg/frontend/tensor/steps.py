"""Which axes go through a tensor in steps, `x[:, ::2]`, and which outputs take turns along their rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tile_eg.frontend.tensor.indices import Affine, Axis, Indices
from tile_eg.ir.kernel import Tensor

FARTHEST = 16
"""The longest step along rows for which all that lies between is loaded: assumed."""
FARTHEST_OF_ALL = 256
"""The longest one where loops take what lies between, too: assumed, as of 16 rows of 16 such steps UB has room for one tile."""


def farthest(d: Affine, step: int) -> int:
    """The longest step that tiles take along the rows of a tensor."""
    return FARTHEST_OF_ALL if any(0 < s < step for s in d.strides.values()) else FARTHEST


def can_step(at: Indices, axis: Axis) -> bool:
    """Whether tiles can be loaded through which an axis goes in steps: along rows of a tensor, or from row to row."""
    having = [n for n, d in enumerate(at) if axis in d.every]
    if len(having) != 1 or any(d.elements for d in at):
        return False
    step, last = at[having[0]].strides[axis], len(at) - 1
    if having[0] == last:
        return step == -1 or 1 < step <= farthest(at[-1], step)
    along = any(a.extent > 1 and (s == 1 or can_step(at, a)) for a, s in at[-1].strides.items())
    return having[0] == last - 1 and step > 1 and along


def in_turns(outputs: Sequence[tuple[Tensor, Indices]]) -> dict[int, int]:
    """The outputs that store every second element of rows, each with the one that stores those between."""
    found: dict[int, int] = {}
    for n, (tensor, at) in enumerate(outputs):
        last = at[-1] if at else Affine()
        if 2 not in last.strides.values() or last.offset % 2:
            continue
        beside = (*at[:-1], last.plus(Affine(offset=1)))
        other = [m for m, (of, place) in enumerate(outputs) if of is tensor and place == beside]
        found |= dict.fromkeys([n], other[0]) if other else {}
    return found


def stepped(at: Indices, layout: Collection[Axis]) -> bool:
    """Whether a tile takes some axis of a tensor in steps."""
    return any(s != 1 for d in at for a, s in d.strides.items() if a in layout)
