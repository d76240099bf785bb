"""Buffers that vector cores compute with and the cube core multiplies, in a kernel that is done in the order of its statements.

Such a buffer lies in UB. What is multiplied of it is copied to L1, and a product goes from L0C to UB, where it is added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend.expert.between_cores import copy_between
from tile_eg.frontend.expert.places import Held
from tile_eg.frontend.expert.reader import ExpertReader, On
from tile_eg.frontend.expert.vectors import elementwise, filled, ub
from tile_eg.frontend.python.values import Buffer, Window, as_region
from tile_eg.ir import program as pr
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Region
from tile_eg.ops.types import DType, Level


def lies_in_ub(r: ExpertReader, value: Any) -> bool:
    """Whether it was found that the vector cores need a buffer whose memory the kernel leaves open."""
    if not isinstance(value, Buffer | Window | Region):
        return False
    name = value.buffer.name if isinstance(value, Window) else value.name
    return r.ends is not None and name in r.open and r.levels.get(name) is Level.UB


def in_l1(r: ExpertReader, span: Span, value: Any) -> Any:
    """An operand of a product where the cube core finds it."""
    if not lies_in_ub(r, value):
        return value
    region = as_region(value, span)
    place = r.place(region, span)
    copy = _own(r, Level.L1, place.dtype, (place.rows, place.cols))
    copy_between(r, span, as_region(copy, span), region, {})
    return copy


def through_l0c(r: ExpertReader, span: Span, c: Any, begins: Expr, multiply: Callable[[Any], None]) -> None:
    """`multiply` gives a product in the buffer that it is called with; it becomes `c` where `begins` holds, else it is added."""
    to = ub(r, c, span)
    shape = to.rows, to.cols
    product = _own(r, Level.L0C, to.dtype, shape)
    multiply(product)
    if begins.value == 1:
        return copy_between(r, span, as_region(c, span), as_region(product, span), {})
    part = _own(r, Level.UB, to.dtype, shape)
    copy_between(r, span, as_region(part, span), as_region(product, span), {})
    if begins.value != 0:
        assert r.ends is not None
        for zeros in r.ends.one_of(r, (True, False)):
            with r.block(repeats=False) as inner:
                if zeros:
                    filled(r, span, to, 0.0)
            r.statements += [On(None, pr.When(begins, tuple(inner)))] if inner else []  # type: ignore[arg-type,list-item]
    return elementwise(r, span, "vadd", to, to, ub(r, part, span))


def _own(r: ExpertReader, level: Level, dtype: DType, shape: tuple[int, int]) -> Buffer:
    """A buffer of the compiler's, for products alike."""
    key = f"both {level} {dtype} {shape}"
    if key not in r.own_keys:
        r.own_keys[key] = name = r.unique(f"in_{str(level).lower()}")
        r.held[name] = Held(name, level, dtype, shape)
    return Buffer(r.own_keys[key], dtype, shape, str(level))
