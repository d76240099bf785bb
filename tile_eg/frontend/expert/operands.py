"""What the steps of an element loop work on: vectors in UB and scalars, and which elements an instruction takes as they lie."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from math import frexp
from typing import Any

from tile_eg.frontend.expert.accesses import Access, Axes, Unfit, shape_of
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Region
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.ir.program import Formula
from tile_eg.ops.records import record
from tile_eg.ops.types import F32, DType

FULL, ROW, COL, SPREAD = "full", "row", "col", "spread"
"""A tile of all elements; one value for each column; one for each row; these as blocks of 32 bytes, as instructions take them."""


@dataclass(eq=False)
class Vector:
    """Elements in UB: those of a buffer of the author's, or a result that has no place yet."""

    kind: str
    dtype: DType
    access: Access | None = None


@record
class Scalar:
    """One value for all elements: a number, or what the scalar unit computes. `dtype` None: it takes the other operand's."""

    value: float | Formula
    dtype: DType | None = None


Value = Vector | Scalar


@dataclass(eq=False)
class Step:
    """One instruction, a load of a tensor (`load`), or a copy of single elements by the scalar unit (`gather`)."""

    op: str
    out: Vector
    srcs: tuple[Vector, ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)


def kind_of(a: Access, axes: Axes) -> str:
    """What the elements are to the loop. Raises Unfit where they are no rows of neighbours."""
    if axes.rows > 1 and axes.cols > 1:
        found = {(True, True): FULL, (False, True): ROW, (True, False): COL}[a.down != 0, a.along != 0]
        good = {FULL: a.along == 1 and a.down in (axes.cols, a.pitch), ROW: a.along == 1, COL: a.down == 1}[found]
    else:
        found, good = FULL, (a.along == 1 or axes.cols == 1) and (a.down in (axes.cols, a.pitch) or axes.rows == 1)
    if not good:
        raise Unfit(f"what is taken of {a.name} is not rows of neighbouring elements")
    return found


def check_aligned(a: Access, axes: Axes, kind: str, by_rows: bool) -> None:
    """Raises Unfit where an instruction cannot take the elements where they are: in one run or, `by_rows`, row by row."""
    if not a.aligned:
        raise Unfit(f"what is used of {a.name} need not begin at a multiple of 32 bytes")
    if by_rows and kind == FULL and axes.rows > 1 and (a.down != a.pitch or a.down * a.dtype.bytes % BLOCK_BYTES):
        raise Unfit(f"rows of {a.name} do not begin at multiples of 32 bytes")


def joint(*kinds: str) -> str:
    """The kind that all of these can become."""
    return reduce(lambda a, b: a if a == b else FULL, kinds) if kinds else ""


def inside(r: ExpertReader, e: Region) -> Expr:
    """Whether an element is one of its buffer's."""
    found = ix.ONE
    for start, size in zip(e.starts, shape_of(r, e), strict=True):
        for c in (ix.less(-1, start), ix.less(start, size)):
            found = ix.both(found, c) if ix.bounds(c, r.ranges) != (1, 1) else found
    return found


def scalar_field(v: Scalar) -> dict[str, Any]:
    return {"scalar": v.value} if isinstance(v.value, float) else {"value": v.value}


def formula(v: Scalar, whole_numbers: bool) -> Formula:
    if isinstance(v.value, float):
        return Formula("number", (v.value,), whole_numbers)
    if v.value.whole == whole_numbers:
        return v.value
    return Formula("index", v.value.args, whole_numbers) if v.value.op == "index" else Formula("cast", (v.value,), whole_numbers)


def negative(v: Scalar) -> Scalar:
    return Scalar(-v.value, v.dtype) if isinstance(v.value, float) else Scalar(Formula("neg", (v.value,), v.value.whole), v.dtype)


def inverse(v: Scalar, dtype: DType) -> Scalar | None:
    """1 / s where a product with it is as good as a quotient: of a power of two, and in f32 of a number that is not too small."""
    if isinstance(v.value, Formula):
        return Scalar(Formula("div", (Formula("number", (1.0,)), formula(v, False))), v.dtype) if dtype is F32 else None
    if v.value == 0 or v.value != v.value or abs(v.value) in (float("inf"),):
        return None
    exact, close = abs(frexp(v.value)[0]) == 0.5 and 2.0**-14 <= abs(v.value) <= 2.0**14, 2.0**-100 < abs(v.value) < 2.0**100
    return Scalar(1 / v.value, v.dtype) if exact or (dtype is F32 and close) else None
