"""How long the sequential meaning of a kernel takes to compute: the elements that its statements go over."""

from __future__ import annotations

from math import isqrt, prod

from tile_eg.ir import kernel as kn

PRODUCTS = 64
"""How many multiplications of a matrix product take as long as an element of what is computed one by one."""


def elements_of_tile(kernel: kn.Kernel) -> int:
    """The elements that the expressions of one tile of the grid have together, at most; `PRODUCTS` of a product count as one."""
    return sum(map(_of_statement, kernel.body))


def _of_statement(s: kn.Stmt) -> int:
    match s:
        case kn.Assign():
            held = prod(s.target.shape)
            return held + _of_expression(s.value, held)[1]
        case kn.For():
            return s.extent * sum(map(_of_statement, s.body))
        case kn.Parallel():
            return prod(s.extents) * sum(map(_of_statement, s.body))
        case kn.If():
            return max(sum(map(_of_statement, part)) for part in (s.then, s.otherwise))
    return 0


def _of_expression(e: object, held: int) -> tuple[int, int]:
    """The elements of an expression, and those of all that it is made of; `held` are those of what it is stored to."""
    if isinstance(e, kn.Region):
        return prod(e.shape), prod(e.shape)
    parts = [_of_expression(x, held) for x in _operands(e)]
    sizes, below = [n for n, _ in parts] or [1], sum(n for _, n in parts)
    if isinstance(e, kn.MatMul):  # (m, k) and (k, n) for (m, n): m * k * n products
        return held, held + isqrt(sizes[0] * sizes[1] * held) // PRODUCTS + below
    return max(sizes), max(sizes) + below


def _operands(e: object) -> list[object]:
    found = [getattr(e, name, None) for name in ("x", "y", "a", "b", "scale")] + list(getattr(e, "xs", ()))
    return [x for x in found if hasattr(x, "__dataclass_fields__")]
