"""What the scalar unit computes in a kernel that is kept: elements of UB in formulas, as operands and as stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.checks.numbers import check_number
from tile_eg.frontend.conditions import Compared, Logic
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.read_places import arm
from tile_eg.frontend.expert.reader import ExpertReader, on
from tile_eg.frontend.expert.unaligned import own_room
from tile_eg.frontend.hints import cast
from tile_eg.frontend.python.values import Window, as_tile, describe, nodes
from tile_eg.frontend.ssa.rounding import rounded
from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO, Expr
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.kernel import Assign, Binary, Cast, Choose, Index, Number, Region, Select, TileExpr, Unary, mapped
from tile_eg.ir.machine import BLOCK_BYTES
from tile_eg.ir.program import AIV, Formula, Gm, PipeBarrier, Tile, When
from tile_eg.ops.elementwise import BINARY, BITS_OF_SCALARS, OF_TWO_FLOATS, SCALAR_UNARY, UNARY
from tile_eg.ops.types import BF16, F16, F32, I32, SIGNED, U32, DType, Level

FUNCTIONS = frozenset((*UNARY, *OF_TWO_FLOATS)) - {*SCALAR_UNARY, "not"}
"""Of numbers, but not the scalar unit's own."""

ROUNDED_DOWN = {"div": "floordiv", "mod": "floormod"}
"""What quotients of whole numbers are called where the scalar unit computes them: its `div` is of floats."""


def is_scalar(value: Any) -> bool:
    """A number, an index, one element of a buffer, or an expression of these."""
    if isinstance(value, Window):
        return value.is_point
    if isinstance(value, Region):
        return value.shape == ()
    if isinstance(value, Unary | Cast):
        return is_scalar(value.x)
    if isinstance(value, Binary | Select | Choose):
        return is_scalar(value.x) and is_scalar(value.y)
    return isinstance(value, bool | int | float | Expr | Number | Index)


def drained(r: ExpertReader, value: Any, span: Span | None) -> None:
    """All pipes of the vector core finish before an element of a buffer or tensor is an operand of a vector instruction.

    TileLang writes that barrier (`codegen_ascend.cc`: AddsAndMulsOpCodegen, SubsOpCodegen, DivsOpCodegen, CompareScalarCodegen),
    and an author's own flags count on it. Within an expression (`2 * x[0]`), or where the element has a name, there is none.
    """
    name = value.buffer.name if isinstance(value, Window) else value.name if isinstance(value, Region) else None
    if r.drains and name is not None and name not in r.scalars:
        on(r, AIV, PipeBarrier("ALL", span))


def drained_in(r: ExpertReader, s: Assign, varies: Callable[[Expr], bool]) -> None:
    """TileLang's barrier before an instruction with an element, of an element loop in which some indices vary
    (GenerateBufferScalarVectorCall, where it lowers the loop)."""
    operands = (e.y for e in nodes(s.value) if isinstance(e, Binary) and e.op in ("add", "sub", "mul", "div"))
    elements = (x for x in operands if isinstance(x, Region) and not any(map(varies, x.starts)))
    if (found := next(elements, None)) is not None:
        drained(r, found, s.span)


def formula(r: ExpertReader, value: Any, span: Span | None) -> Formula:
    """A value as what the scalar unit computes. TileError for what it cannot."""
    if isinstance(value, bool | int):
        return Formula("number", (float(value),), True)
    if isinstance(value, Expr):
        return of_index(r, value, span)
    if isinstance(value, Compared | Logic):
        return _condition(r, value, span)
    return _formula(r, as_tile(value, span), span)


def of_index(r: ExpertReader, e: Expr, span: Span | None) -> Formula:
    """An index; elements that it is made of are read where the formula is computed, and only then; their places before it."""
    elements = all_elements_in(e)
    if e.op == "read" and e.args[0] in r.scalars:
        return Formula("scalar", (e.args[0],), True)
    if not elements or (e.op not in ("add", "mul", "min", "max") and all(x.args[0] in r.scalars for x in elements)):
        return Formula("index", (e,), True)
    if e.op == "read":
        place = of_index(r, e.args[1], span)
        at = place.args[0] if place.op == "index" else r.unit.settled(r, e.args[1], span)
        return element_of(r, e.args[0], at, span)
    parts = [of_index(r, a, span) for a in e.args]
    found = parts[0]
    for part in parts[1:]:
        found = Formula(ROUNDED_DOWN.get(e.op, e.op), (found, part), True)
    return found


def element_of(r: ExpertReader, name: str, place: Expr, span: Span | None) -> Formula:
    """An element of whole numbers of a buffer in UB or of a tensor, counted from the first one."""
    if name in r.tensors:
        return Formula("element", (_of_input(r, Gm(name, place, 1), span),), True)
    if r.held[name].level is not Level.UB:
        r.used_by_vectors(name)
        raise TileError(f"{name} lies in {r.held[name].level}: the scalar unit reads elements of UB and of tensors", span)
    return Formula("element", (Tile(name, ZERO, ZERO, place),), True)


def of_tensor(r: ExpertReader, e: Region, dtype: DType) -> Formula:
    """One element of a tensor."""
    at = r.place(e, e.span, Level.GM).operand
    assert isinstance(at, Gm)
    return Formula("element", (_of_input(r, at, e.span),), dtype is I32)


def _of_input(r: ExpertReader, place: Gm, span: Span | None) -> Gm:
    """Notes that an element of a tensor is read: what the kernel writes itself, the scalar unit might not see."""
    r.looked_up.setdefault(place.tensor, span)
    return place


def _condition(r: ExpertReader, c: Any, span: Span | None) -> Formula:
    match c:
        case Compared():
            x, y = _formula(r, c.a, span), _formula(r, c.b, span)
            whole = x.whole and y.whole
            return Formula(c.op, (_as(x, whole), _as(y, whole)), True)
        case Logic():
            return Formula(c.op, tuple(_condition(r, part, span) for part in c.parts), True)
    return formula(r, c, span)


def _formula(r: ExpertReader, e: TileExpr, span: Span | None) -> Formula:
    match e:
        case Number():
            return Formula("number", (e.value,), e.value == int(e.value) if abs(e.value) < 2**31 else False)
        case Index():
            return of_index(r, e.value, span)
        case Region() if e.name in r.scalars:
            return Formula("scalar", (e.name,), r.scalars[e.name])
        case Region() if all(n in (None, 1) for n in e.extents):
            place = r.place(e, span, Level.UB, Level.GM)
            at = place.operand if isinstance(place.operand, Tile) else _of_input(r, place.operand, span)
            return Formula("element", (at,), place.dtype.whole)
        case Binary() if e.op in FUNCTIONS:
            return _function(r, e, span)
        case Binary() if e.op in BITS_OF_SCALARS:
            return _of_bits(r, e, span)
        case Binary():
            x, y = _formula(r, e.x, span), _formula(r, e.y, span)
            whole = x.whole and y.whole and e.op != "div"
            return Formula(e.op, (_as(x, whole), _as(y, whole)), whole)
        case Unary() if e.op in SCALAR_UNARY:
            x = _formula(r, e.x, span)
            return Formula(e.op, (x,), x.whole and e.op != "sqrt")
        case Unary() if e.op in FUNCTIONS:
            return _function(r, e, span)
        case Cast():
            return _cast(r, e, span)
        case Select() | Choose():
            c = e.condition if isinstance(e, Select) else Compared(e.op, e.a, e.b)
            x = arm(r, c, 1, lambda: _formula(r, _where_chosen(e, e.x, 1), span), span)
            y = arm(r, c, 0, lambda: _formula(r, _where_chosen(e, e.y, 0), span), span)
            whole = x.whole and y.whole
            return Formula("select", (_condition(r, c, span), _as(x, whole), _as(y, whole)), whole)
    raise TileError(f"the scalar unit cannot compute {describe(e)}", span, help="it has +, -, *, /, min, max and sqrt")


def _of_bits(r: ExpertReader, e: Binary, span: Span | None) -> Formula:
    """An operation on the bits of whole numbers. TileError for floats, and for a shift to the right of `uint32`: numbers here
    have a sign."""
    x, y = _formula(r, e.x, span), _formula(r, e.y, span)
    if not (x.whole and y.whole):
        what = f"`{BINARY[e.op].sign}` works on the bits of whole numbers, not on floats"
        raise TileError(what, e.span or span, help='cast them first: T.cast(x, "int32")')
    unsigned = (v.name for v in nodes(e.x) if isinstance(v, Region) and v.name not in r.scalars and r.dtype_of(v.name) is U32)
    if e.op == "shr" and (name := next(unsigned, None)):
        what = f"an element of {name} (uint32) is shifted to the right by the scalar unit, which has numbers with a sign"
        raise TileError(what, e.span or span, help="shift a vector of them: T.tile.bitwise_rshift(y, x, n)")
    return Formula(BITS_OF_SCALARS[e.op], (x, y), True)


def _function(r: ExpertReader, e: Unary | Binary, span: Span | None) -> Formula:
    """What the scalar unit does not compute itself. TileError for a function of whole numbers."""
    operands = [_formula(r, x, span) for x in ((e.x,) if isinstance(e, Unary) else (e.x, e.y))]
    if operands[0].whole:
        what = f"{e.op} of a whole number is not computed here"
        raise TileError(what, e.span or span, help='cast it first: T.cast(x, "float32")')
    return r.unit.function(r, e, tuple(operands), span)


def _where_chosen(e: Select | Choose, value: TileExpr, chosen: int) -> TileExpr:
    """An arm in which functions are of 0 where it is not taken: their operands are read before the choice is made."""
    zero = Number(0.0, e.span)

    def guarded(x: TileExpr) -> TileExpr:
        return replace(e, x=x, y=zero) if chosen else replace(e, x=zero, y=x)

    def change(x: TileExpr) -> TileExpr:
        if (isinstance(x, Unary) and x.op in FUNCTIONS) or (isinstance(x, Cast) and not x.dtype.whole):
            return replace(x, x=guarded(x.x))
        if isinstance(x, Binary) and x.op in FUNCTIONS:
            return replace(x, x=guarded(x.x), y=guarded(x.y))
        return x

    return mapped(value, change)


def _as(f: Formula, whole: bool) -> Formula:
    """The formula in whole numbers, or in floats."""
    if f.whole == whole:
        return f
    if f.op in ("number", "index"):
        return Formula(f.op, f.args, whole)
    return Formula("cast", (f,), whole)


def _cast(r: ExpertReader, e: Cast, span: Span | None) -> Formula:
    """A number as an element type has it. The scalar unit rounds to f16 and to whole numbers itself, to shorter floats the vector
    unit does. A kernel whose author decided its order has the cast of C++, as TileLang writes it."""
    x = _formula(r, e.x, span)
    if e.dtype.whole:
        rounds = r.ends is not None and not x.whole
        return _within(_nearest(x) if rounds else _as(x, True), e.dtype)
    held = r.dtype_of(e.x.name) if isinstance(e.x, Region) and e.x.name not in r.scalars else None
    if e.dtype in (F32, held):
        return _as(x, False)
    if x.op == "number":
        return Formula("number", (rounded(x.args[0], e.dtype),))
    return Formula("half", (_as(x, False),)) if e.dtype is F16 else r.unit.function(r, e, (x,), span)


def _nearest(f: Formula) -> Formula:
    """A float as the nearest whole number, the even one of two."""
    if f.op == "number":
        return Formula("number", (float(round(f.args[0])),), True)
    return _as(f, True) if f.op == "index" else Formula("nearest", (f,), True)


def _within(f: Formula, dtype: DType) -> Formula:
    """A number as a shorter whole type has it: the nearest one that there is. An index is wrapped already."""
    if not dtype.whole or dtype.bits >= I32.bits or f.op == "index":
        return f
    low = 0 if dtype in SIGNED else -(2 ** (dtype.bits - 1))
    least, most = (Formula("number", (float(n),), True) for n in (low, low + 2**dtype.bits - 1))
    return Formula("min", (Formula("max", (f, least), True), most), True)


def negative(f: Formula) -> Formula:
    return Formula("neg", (f,), f.whole)


def reciprocal(f: Formula) -> Formula:
    return Formula("div", (Formula("number", (1.0,)), _as(f, False)))


def store(r: ExpertReader, target: Region, value: TileExpr, span: Span | None) -> None:
    """An element of a buffer in UB, written by the scalar unit."""
    place = r.place(target, span, Level.UB, Level.GM)
    made = _formula(r, value, span)
    if made.op == "element" and r.place(value, span).dtype == place.dtype:  # copied as it is
        field = made
    elif place.dtype is BF16:
        raise TileError("the scalar unit does not compute with bf16", span, help="cast the buffer to float32 first: T.copy")
    else:
        _check_whole(target.name, place.dtype, made, span)
        field = _as(made, place.dtype.whole)
    there = ix.ONE
    if r.ends is not None:
        at = place.operand if isinstance(place.operand, Tile) else None
        there = ix.both(r.ends.there(r, field, at), r.ends.meant(*Formula("element", (place.operand,)).indices()))
    if there.value == 1:
        return _stored(r, place, field, span)
    with r.block(repeats=False) as then, r.where(there):
        _stored(r, place, field, span)
    return r.place_node(None, When(there, tuple(then)))  # type: ignore[arg-type]


def _check_whole(name: str, dtype: DType, made: Formula, span: Span | None) -> None:
    """TileError where a float would be stored as a whole number without a cast."""
    if made.op == "number":
        check_number(dtype, made.args[0], span, beside=False)
    elif dtype.whole and not made.whole and made.op != "index":
        help = f"{cast(dtype, 'x', span)} makes it one, and saturates"
        raise TileError(f"`{name}` holds {dtype}, the value is {F32}", span, help=help)


def _stored(r: ExpertReader, place: Place, field: Formula, span: Span | None) -> None:
    if place.level is Level.UB:
        r.instr("store_element", place.operand, value=field, span=span)
        return
    row = own_room(r, place.dtype, 1, BLOCK_BYTES // place.dtype.bytes)
    r.instr("store_element", row, value=field, span=span)
    r.instr("ub_to_gm", place.operand, row, span=span)
