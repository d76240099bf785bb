"""What the scalar unit computes in a kernel that is kept: elements of UB in formulas, as operands and as stores."""

from __future__ import annotations

from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.python.values import Window, as_tile, describe, is_index
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Binary, Cast, Index, Number, Region, Select, TileExpr, Unary
from tile_eg.ir.program import Formula
from tile_eg.ops.types import I32, Level

UNARY = "neg sqrt abs"


def is_scalar(value: Any) -> bool:
    """A number, an index, one element of a buffer, or an expression of these."""
    if isinstance(value, Window):
        return value.is_point
    if isinstance(value, Region):
        return value.shape == ()
    if isinstance(value, Unary | Cast):
        return is_scalar(value.x)
    if isinstance(value, Binary | Select):
        return is_scalar(value.x) and is_scalar(value.y)
    return isinstance(value, bool | int | float | Expr | Number | Index)


def formula(r: ExpertReader, value: Any, span: Span | None) -> Formula:
    """A value as what the scalar unit computes. TileError for what it cannot."""
    if isinstance(value, Expr) or is_index(value):
        return Formula("index", (value,), True) if isinstance(value, Expr) else Formula("number", (float(value),), True)
    return _formula(r, as_tile(value, span), span)


def _formula(r: ExpertReader, e: TileExpr, span: Span | None) -> Formula:
    match e:
        case Number():
            return Formula("number", (e.value,), e.value == int(e.value) if abs(e.value) < 2**31 else False)
        case Index():
            return Formula("index", (e.value,), True)
        case Region() if e.shape == ():
            place = r.place(e, span, Level.UB)
            return Formula("element", (place.tile(),), place.dtype is I32)
        case Binary():
            x, y = _formula(r, e.x, span), _formula(r, e.y, span)
            whole = x.whole and y.whole and e.op != "div"
            return Formula(e.op, (_as(x, whole), _as(y, whole)), whole)
        case Unary() if e.op in UNARY.split():
            x = _formula(r, e.x, span)
            return Formula(e.op, (x,), x.whole and e.op != "sqrt")
        case Cast():
            return _as(_formula(r, e.x, span), e.dtype is I32)
        case Select():
            x, y = _formula(r, e.x, span), _formula(r, e.y, span)
            whole = x.whole and y.whole
            return Formula("select", (e.condition, _as(x, whole), _as(y, whole)), whole)
    raise TileError(f"the scalar unit cannot compute {describe(e)}", span, help="it has +, -, *, /, min, max and sqrt")


def _as(f: Formula, whole: bool) -> Formula:
    """The formula in whole numbers, or in floats."""
    if f.whole == whole:
        return f
    if f.op in ("number", "index"):
        return Formula(f.op, f.args, whole)
    return Formula("cast", (f,), whole)


def negative(f: Formula) -> Formula:
    return Formula("neg", (f,), f.whole)


def reciprocal(f: Formula) -> Formula:
    return Formula("div", (Formula("number", (1.0,)), _as(f, False)))


def store(r: ExpertReader, target: Region, value: TileExpr, span: Span | None) -> None:
    """An element of a buffer in UB, written by the scalar unit. TileError for a whole buffer: there are words for that."""
    if target.shape != ():
        raise TileError(
            "a whole buffer is computed by a vector word in a kernel that is kept", span,
            help="T.tile.add(c, a, b) for c[:, :] = a + b; T.copy for c[:, :] = a",
        )  # fmt: skip
    if target.name in r.tensors:
        raise TileError(f"{target.name} is a tensor: single elements of it cannot be written", span, help="T.copy from a buffer")
    place = r.place(target, span, Level.UB)
    made = _formula(r, value, span)
    r.instr("store_element", place.operand, value=_as(made, place.dtype is I32), span=span)
