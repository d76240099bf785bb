"""Instructions of a program that are several in the text, with barriers between them (`ascend_c.reduce`, `ascend_c.select`).

Such a barrier orders more than the steps: what came before the instruction has finished when its last step starts, and its first
step has when the next instruction does. So a conflict with an operand of one end may need no barrier of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tile_eg.ir.index import ONE
from tile_eg.ir.machine import REPEAT_ELEMENTS, block_steps
from tile_eg.ir.program import REDUCE, Buffer, Instr, Operand, Tile

REPEAT_BYTES = REPEAT_ELEMENTS * 4
ROW_REDUCTIONS = frozenset(f"vrow{r}" for r in REDUCE)


class Steps(NamedTuple):
    """Operands that no step behind the last barrier touches, and those that no step before the first barrier does."""

    first: tuple[Operand, ...] = ()
    last: tuple[Operand, ...] = ()

    def of(self, o: Operand) -> str:
        """In letters: f for one of the first, l for one of the last."""
        return "f" * (o in self.first) + "l" * (o in self.last)


def parted(before: str, after: str) -> bool:
    """Whether a barrier within an instruction stands between two uses on its pipe, each with its `Steps.of`."""
    return "f" in before or "l" in after


def steps(i: Instr, buffers: Mapping[str, Buffer]) -> Steps | None:
    """The ends of an instruction that surely has a barrier within; None for any other."""
    return ends(i, buffers) if i.when == ONE else None


def ends(i: Instr, buffers: Mapping[str, Buffer]) -> Steps | None:
    """The ends of an instruction that has a barrier within wherever it is done; None for any other."""
    if not i.op.startswith(("vrow", "vcol", "vchoose", "vmask", "vramp")):
        return None
    if i.op in ROW_REDUCTIONS:
        return Steps(i.srcs, (i.dst,)) if _row_steps(i, buffers) else None
    if i.op == "vrowdot":
        return Steps(i.srcs, (i.dst,))
    if i.op.startswith("vcol"):
        return Steps() if (i.rows.value or 0) > 1 else None
    if i.op == "vramp":
        return Steps() if (i.rows.value or 0) > 1 or i.steps[1] not in (0, 1) else None
    return _of_choice(i)


def _row_steps(i: Instr, buffers: Mapping[str, Buffer]) -> bool:
    """Whether a row reduction has more than one step."""
    rows, cols = i.rows.value, i.cols.value
    if not rows or not cols:
        return False
    if i.form == "blocks":
        return len(block_steps(cols, rows)) > 1
    (src,) = i.srcs
    return isinstance(src, Tile) and cols > REPEAT_BYTES // buffers[src.buffer].dtype.bytes


def _of_choice(i: Instr) -> Steps | None:
    """It compares, then it selects; row by row, what it compares with or selects may be put in place before."""
    if not i.rows.value or not i.cols.value:
        return None
    compared = i.srcs[:2] if i.op.startswith("vchoose_") else i.srcs[:1]
    chosen = i.srcs[len(compared) :]
    if i.form == "flat" or len(compared) == 2:
        return Steps(_without(compared, (*chosen, i.dst)), _without((i.dst, *chosen), compared))
    return Steps(_without(compared, (*chosen, i.dst)), (i.dst, *i.srcs))


def _without(operands: tuple[Operand, ...], others: tuple[Operand, ...]) -> tuple[Operand, ...]:
    return tuple(o for o in operands if o not in others)
