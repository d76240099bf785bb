"""Split-K: the least that a launch takes whose long sums are done in parts."""

from __future__ import annotations

from tile_eg.chips import Chip
from tile_eg.egraph import Node
from tile_eg.timeline.meetings import meeting


def least_cycles(node: Node, blocks: int, cores: int, cycles: float, hbm_cycles: float, shared: int, chip: Chip) -> float:
    """The least cycles of a kernel of so many `blocks` with its sums in parts, as a node says, where it takes `cycles` whole,
    on a chip that runs so many `cores` at a time.

    `hbm_cycles` is what HBM needs for the kernel, `shared` the bytes that one part of the sums takes.
    """
    parts, again = node.payload[0], node.op == "Parts"
    turns = -(-blocks * parts // cores) / parts / -(-blocks // cores)
    moved = (1 + again) * parts * shared / chip.hbm_share(1)
    extra = meeting(chip) + again * chip.least_ub_pass + moved
    return max(cycles * turns, hbm_cycles) + extra
