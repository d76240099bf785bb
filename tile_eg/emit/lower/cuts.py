"""How a matrix product is cut into steps that fit L0A, L0B and L0C."""

from __future__ import annotations

from tile_eg.ir.index import ZERO, Expr, const, maximum, minimum
from tile_eg.ops.records import record


@record
class Cut:
    """How a product m x n x k is stepped: the sizes of a step and how many steps each dimension takes."""

    m: int
    n: int
    k: int
    steps_m: int
    steps_n: int
    steps_k: int

    @property
    def steps(self) -> int:
        return self.steps_m * self.steps_n * self.steps_k


def part(valid: Expr, index: Expr, step: int, size: int) -> Expr:
    """How much of the step that starts at index * step is valid."""
    if index == ZERO:
        return minimum(step, valid) if valid.value is not None or size > step else valid
    if valid.value == size and size % step == 0:
        return const(step)
    return maximum(0, minimum(step, valid - index * step))
