"""The value of one assignment of an element loop as operations on whole tiles, each of them one vector instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg.errors import Span, TileError, attempted
from tile_eg.frontend.expert import scalars
from tile_eg.frontend.expert.accesses import Access, Axes, Unfit, access, window
from tile_eg.frontend.expert.operands import (
    COL,
    FULL,
    ROW,
    SPREAD,
    Scalar,
    Step,
    Value,
    Vector,
    check_aligned,
    formula,
    inside,
    inverse,
    joint,
    kind_of,
    negative,
    scalar_field,
)
from tile_eg.frontend.expert.picked import where_read
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.python.values import describe
from tile_eg.frontend.ssa.positions import number, parts, position, whole_number
from tile_eg.frontend.ssa.rounding import rounded
from tile_eg.frontend.ssa.steps import between, computing, promoted
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Region, TileExpr
from tile_eg.ir.program import Formula
from tile_eg.ops.casts import is_direct
from tile_eg.ops.elementwise import BINARY, COMPARE, SCALAR_UNARY, UNARY
from tile_eg.ops.types import BF16, F16, F32, I8, I16, I32, NARROW, U8, U32, DType, Level

HELD = ((F16, F32), (I16, F32), (I32, F32), (I16, F16), (I8, F16), (U8, F16))
"""Casts that come with the use of an element: its number is read as it is, and rounded once."""


class Elements:
    """Makes the steps of one value. With `gathers`, elements that no vector instruction can take where they lie are copied by the
    scalar unit first; without it they raise Unfit."""

    def __init__(self, r: ExpertReader, axes: Axes, guarded: bool, gathers: bool) -> None:
        self.r, self.axes, self.guarded, self.gathers = r, axes, guarded, gathers
        self.steps: list[Step] = []
        self.known: dict[int, tuple[TileExpr, Value]] = {}
        self.reasons: list[str] = []

    def of(self, e: TileExpr, dtype: DType) -> Value:
        """An expression; `dtype` is what a bare number becomes. The same expression is computed once."""
        if id(e) not in self.known:
            self.known[id(e)] = e, self._of(e, dtype)
        return self.known[id(e)][1]

    def _of(self, e: TileExpr, dtype: DType) -> Value:
        match e:
            case kn.Number():
                return Scalar(e.value)
            case kn.Index():
                return self.index(e)
            case Region():
                return self.region(e)
            case kn.Unary():
                return self.unary(e, dtype)
            case kn.Binary():
                return self.binary(e, dtype)
            case kn.Cast(x=kn.Index() as at) if e.dtype in (I32, U32) and self.axes.uses(at.value):
                place = whole_number(at.value, (self.axes.row, self.axes.col), self.extents, e.span)
                return self.to(self.ramp(*place, I32), e.dtype)
            case kn.Cast():
                return self.to(self.of(e.x, e.dtype), e.dtype)
            case kn.Select():
                return self.by_position(e, dtype)
            case kn.Choose() if e.op != kn.BIT:
                return self.choice(e, dtype)
        raise TileError(f"{describe(e)} like this has no place in T.Parallel of a kernel that is kept", e.span)

    def step(self, op: str, kind: str, dtype: DType, *srcs: Vector, **fields: Any) -> Vector:
        out = Vector(kind, dtype)
        self.steps.append(Step(op, out, srcs, fields))
        return out

    # Elements

    def region(self, e: Region) -> Value:
        if e.name in self.r.scalars:
            whole = self.r.scalars[e.name]
            return Scalar(Formula("scalar", (e.name,), whole), I32 if whole else F32)
        if e.name in self.r.tensors:
            return self.loaded(e)
        held = self.r.held[e.name]
        if held.level is not Level.UB:
            self.r.used_by_vectors(e.name)
            raise TileError(
                f"{e.name} lies in {held.level}, and T.Parallel computes in UB", e.span,
                help="a loop that only copies it is the same as T.copy: C[i, j] = c[i, j]",
            )  # fmt: skip
        try:
            return self.fitting(access(self.r, e, self.axes, self.guarded))
        except Unfit as reason:
            if not self.gathers:
                raise
            return self.gathered(e, held.dtype, str(reason))

    def fitting(self, a: Access) -> Value:
        """The elements as an operand. Raises Unfit where they are none."""
        axes = self.axes
        if (a.down, a.along) == (0, 0) and (axes.rows, axes.cols) != (1, 1):
            return self.scalar(Formula("element", (a.tile,), a.dtype in (I32, U32)), a.name, a.dtype)
        kind = kind_of(a, axes)
        check_aligned(a, axes, kind, self.gathers)
        return Vector(kind, a.dtype, a)

    def scalar(self, element: Formula, name: str, dtype: DType) -> Scalar:
        """One element for all of the loop."""
        if dtype in (BF16, *NARROW):
            raise TileError(f"{name}: the scalar unit does not read {dtype}", None, help="cast the buffer first: T.copy")
        return Scalar(element, dtype)

    def gathered(self, e: Region, dtype: DType, reason: str) -> Vector:
        """A copy, element by element."""
        if self.guarded and (dtype in (U32, BF16) or dtype.bytes == 1):
            raise TileError(f"{reason}: the scalar unit does not copy {dtype} by single elements", e.span)
        self.reasons.append(reason)
        return self.step("gather", self.spans([*e.starts]), dtype, value=lambda: self.element(e, dtype), of=e.name, at=e.starts)

    def element(self, e: Region, dtype: DType) -> Formula:
        """One element, or 0 where a condition guards it and there is none."""
        made = Formula("element", (self.r.place(e, e.span, Level.UB).tile(),), dtype is I32)
        if not self.guarded:
            return made
        return Formula("select", (_position(inside(self.r, e)), made, Formula("number", (0.0,), made.whole)), made.whole)

    def spans(self, indices: list[Expr]) -> str:
        """What elements at these indices vary with."""
        axes = self.axes
        down, along = (n is not None and axes.extent(n) > 1 and any(n in ix.variables(e) for e in indices)
                       for n in (axes.row, axes.col))  # fmt: skip
        return COL if down and not along and axes.cols > 1 else ROW if along and not down and axes.rows > 1 else FULL

    def loaded(self, e: Region) -> Value:
        """A window of a tensor, copied into UB."""
        axes, tensor = self.axes, self.r.tensors[e.name]
        try:
            found = window(e, axes)
        except Unfit as reason:
            return self.picked(e, tensor.dtype, str(reason))
        source = self.r.place(found, e.span, Level.GM)
        kind = self.spans([*e.starts])
        size = {FULL: (axes.rows, axes.cols), ROW: (1, axes.cols), COL: (1, axes.rows)}[kind]
        if found.shape == () and (axes.rows, axes.cols) != (1, 1):
            return self.scalar(scalars.formula(self.r, e, e.span), e.name, tensor.dtype)
        if (source.rows, source.cols) != size:
            return self.picked(e, tensor.dtype, f"elements of {e.name} are no rows of neighbouring ones")
        return self.step("load", kind, tensor.dtype, place=source)

    def picked(self, e: Region, dtype: DType, reason: str) -> Vector:
        """Elements of a tensor, loaded one by one where the elements exist that say which. Raises Unfit without `gathers`."""
        if not self.gathers:
            raise Unfit(reason)
        self.reasons.append(reason)
        return self.step("gather", self.spans([*e.starts]), dtype, value=lambda: scalars.of_tensor(self.r, e, dtype), of=e.name,
                         at=e.starts, there=lambda: self.is_there(e))  # fmt: skip

    def is_there(self, e: Region) -> Expr:
        """Whether an element of a tensor is one, and the elements exist that say which one it is."""
        found = inside(self.r, e) if self.guarded else ix.ONE
        there = found if self.r.ends is None else ix.both(where_read(self.r, self.r.ends, e.starts, e.span), found)
        return self.r.unit.settled(self.r, there, e.span)

    def index(self, e: kn.Index) -> Value:
        if not self.axes.uses(e.value):
            return Scalar(Formula("index", (e.value,), True))
        found = number(e, e.value, (self.axes.row, self.axes.col), self.extents, self.r.ranges)
        return self.ramp(*found)

    @property
    def extents(self) -> dict[str, int]:
        return {n: self.axes.extent(n) for n in self.axes.names}

    def ramp(self, down: int, along: int, start: Expr, dtype: DType = F32) -> Vector:
        """The numbers start + down i + along j, in f32 or i32."""
        kind = COL if down and not along and self.axes.cols > 1 else ROW if not down and self.axes.rows > 1 else FULL
        return self.step("vramp", kind, dtype, bound=start, steps=(0, down) if kind == COL else (down, along))

    # Element types

    def to(self, v: Value, dtype: DType) -> Value:
        """The value in another element type, rounded as a cast rounds."""
        if v.dtype == dtype:
            return v
        if isinstance(v, Scalar):
            return self.scalar_to(v, dtype)
        step = between(v.dtype, dtype)
        if step is None and not is_direct(v.dtype, dtype):  # f32 to bytes saturates twice, and rounds once
            step = I16 if dtype.bytes == 1 else F32
        if step is not None:
            return self.to(self.to(v, step), dtype)
        return self.step("vcast", v.kind, dtype, v)

    def scalar_to(self, v: Scalar, dtype: DType) -> Value:
        if isinstance(v.value, float):
            return Scalar(rounded(v.value, dtype), dtype)
        if dtype is F16 and v.dtype in (None, I16):  # whole numbers above 2048 are rounded
            return Scalar(Formula("half", (formula(v, False),)), dtype)
        if v.dtype is None or (v.dtype, dtype) in HELD:
            return Scalar(v.value, dtype)
        if (step := between(v.dtype, dtype)) is not None:
            return self.to(self.scalar_to(v, step), dtype)
        return self.to(self.vector(v, v.dtype, ROW if self.axes.rows > 1 else FULL), dtype)

    def vector(self, v: Value, dtype: DType, kind: str) -> Vector:
        """The value as a vector of this kind, in this element type."""
        if isinstance(v, Scalar) and v.dtype is not None and v.dtype != dtype:
            v = self.to(v, dtype)
        if isinstance(v, Scalar):
            return self.step("vdup", kind, dtype, **scalar_field(v))
        found = self.to(v, dtype)
        assert isinstance(found, Vector)
        return found if found.kind == kind else self.spread(found, kind)

    def spread(self, v: Vector, kind: str) -> Vector:
        """A row or column for all elements: ones times it, exact for every number."""
        work = self.vector(v, computing(v.dtype), v.kind) if computing(v.dtype) != v.dtype else v
        ones = self.step("vdup", kind, work.dtype, scalar=1.0)
        return self.vector(self.crossed("mul", ones, work, swap=False), v.dtype, kind)

    # Operations

    def pair(self, a: TileExpr, b: TileExpr, dtype: DType) -> tuple[Value, Value, DType]:
        """Two operands in the element type that the vector unit works in on them, and the wider of their own."""
        x, y = self.of(a, dtype), self.of(b, dtype)
        if x.dtype is None or y.dtype is None:
            wide = x.dtype or y.dtype or dtype
        else:
            wide = promoted(x.dtype, y.dtype)
        return self.to(x, computing(wide)), self.to(y, computing(wide)), wide

    def unary(self, e: kn.Unary, dtype: DType) -> Value:
        x = self.of(e.x, dtype)
        wide = x.dtype or dtype
        if isinstance(x, Scalar) and e.op in SCALAR_UNARY and wide in (F32, I32):
            return self.scalar_operation(e.op, [x], wide)
        work = computing(wide)
        v = self.vector(x, work, x.kind if isinstance(x, Vector) else self.least)
        made = MADE.get(e.op)
        if made is not None:
            found = made(self, v)
        elif UNARY[e.op].native and work in UNARY[e.op].types:
            found = self.step(f"v{e.op}", v.kind, work, v)
        else:
            raise TileError(f"there is no vector instruction for {e.op} of {work}", e.span, help="cast it to float first")
        return self.to(found, wide)

    @property
    def least(self) -> str:
        return ROW if self.axes.rows > 1 else FULL

    def scalar_operation(self, op: str, values: list[Scalar], dtype: DType) -> Scalar:
        """What the scalar unit computes, in f32 or i32."""
        operands = [formula(v, dtype is I32) for v in values]
        return Scalar(Formula(op, tuple(operands), dtype is I32), dtype)

    def binary(self, e: kn.Binary, dtype: DType) -> Value:
        x, y, wide = self.pair(e.x, e.y, dtype)
        if isinstance(x, Scalar) and isinstance(y, Scalar):
            work = computing(wide)
            if e.op in ("add", "sub", "mul", "max", "min") and work in (F32, I32) or (e.op == "div" and work is F32):
                return Scalar(self.scalar_operation(e.op, [x, y], work).value, wide if wide == work else work)
            x = self.vector(x, work, self.least)
        return self.to(self.operated(e.op, x, y, e.span), wide)

    def operated(self, op: str, x: Value, y: Value, span: Span | None = None) -> Vector:
        """An operation on two operands of one element type, at least one of them a vector."""
        if isinstance(y, Scalar):
            assert isinstance(x, Vector)
            return self.with_scalar(op, x, y)
        if isinstance(x, Scalar):
            return self.of_scalar(op, x, y)
        if x.kind == y.kind:
            return self.step(f"v{op}", x.kind, x.dtype, x, y)
        if FULL in (x.kind, y.kind):
            full, other = (x, y) if x.kind == FULL else (y, x)
            return self.crossed(op, full, other, swap=x.kind != FULL)
        return self.crossed(op, self.spread(x, FULL), y, swap=False)

    def crossed(self, op: str, full: Vector, other: Vector, swap: bool) -> Vector:
        """A tile and a row or column: `swap` where the tile is the second operand."""
        if other.kind == COL:
            blocks = self.step("vbrcb", SPREAD, other.dtype, other)
            return self.step(f"v{op}_rows", FULL, full.dtype, full, blocks, swap=swap)
        return self.step(f"v{op}_cols", FULL, full.dtype, full, other, swap=swap)

    def with_scalar(self, op: str, x: Vector, y: Scalar) -> Vector:
        """x - s as x + (-s), and x / s as x * (1 / s) where that is as good."""
        if op == "sub" and x.dtype in (F16, F32, I16, I32):
            op, y = "add", negative(y)
        elif op == "div" and (found := inverse(y, x.dtype)) is not None:
            op, y = "mul", found
        if not BINARY[op].with_scalar or x.dtype not in BINARY[op].types:
            return self.operated(op, x, self.vector(y, x.dtype, x.kind))
        return self.step(f"v{op}s", x.kind, x.dtype, x, **scalar_field(y))

    def of_scalar(self, op: str, x: Scalar, y: Vector) -> Vector:
        if op in ("add", "mul", "max", "min", "and", "or"):
            return self.with_scalar(op, y, x)
        return self.operated(op, self.vector(x, y.dtype, y.kind), y)

    # Choices

    def choice(self, e: kn.Choose, dtype: DType) -> Value:
        a, b, _ = self.pair(e.a, e.b, F32)
        op = e.op
        if isinstance(a, Scalar) and isinstance(b, Vector):
            a, b, op = b, a, COMPARE[op].turned or op
        x, y, wide = self.pair(e.x, e.y, dtype)
        kind = joint(*(v.kind for v in (a, b, x, y) if isinstance(v, Vector))) or self.least
        first = self.vector(a, a.dtype or F32, kind)
        second = b if isinstance(b, Scalar) else self.vector(b, first.dtype, kind)
        return self.to(self.chosen(op, first, second, x, y, computing(wide), kind), wide)

    def chosen(self, op: str, a: Vector, b: Value, x: Value, y: Value, dtype: DType, kind: str, **more: Any) -> Vector:
        """x where a is to b as `op` says, else y."""
        yes = self.vector(x, dtype, kind)
        if isinstance(b, Scalar) and isinstance(y, Scalar) and isinstance(y.value, float) and not dtype.whole:
            return self.step(f"vmask_{op}", kind, dtype, a, yes, other=y.value, **scalar_field(b), **more)
        no = self.vector(y, dtype, kind)
        if isinstance(b, Scalar):
            return self.step(f"vchooses_{op}", kind, dtype, a, yes, no, **scalar_field(b), **more)
        return self.step(f"vchoose_{op}", kind, dtype, a, b, yes, no)

    def by_position(self, e: kn.Select, dtype: DType) -> Value:
        """A choice by the place of an element; one by something else is made before the loop."""
        yes, no, c = parts(e)
        low, high = ix.bounds(c, self.r.ranges)
        if low == high:
            return self.of(yes if low else no, dtype)
        x, y, wide = self.pair(yes, no, dtype)
        work, axes = computing(wide), (self.axes.row, self.axes.col)
        at = attempted(lambda: position(c, axes, self.extents, self.r.ranges, e.span))
        if isinstance(at, TileError):
            if not self.gathers:
                raise Unfit("a condition is not linear in the loop's variables")
            return self.to(self.by_formula(c, x, y, work), wide)
        a = self.ramp(at.row, at.col, ix.ZERO)
        kind = joint(a.kind, *(v.kind for v in (x, y) if isinstance(v, Vector)))
        where = self.vector(a, F32, kind)
        return self.to(self.chosen(at.op, where, Scalar(0.0), x, y, work, kind, bound=at.bound), wide)

    def by_formula(self, c: Expr, x: Value, y: Value, dtype: DType) -> Vector:
        """A choice by ones and zeros that the scalar unit writes."""
        self.reasons.append("a condition is not linear in the loop's variables")
        numbers = tuple(Formula("number", (n,)) for n in (1.0, 0.0))
        ones = Formula("select", (_position(c), *numbers))
        where = self.step("gather", self.spans([c]), F32, value=lambda: ones, of="", at=(c,))
        kind = joint(where.kind, *(v.kind for v in (x, y) if isinstance(v, Vector)))
        return self.chosen("gt", self.vector(where, F32, kind), Scalar(0.0), x, y, dtype, kind)


def _position(c: Expr) -> Formula:
    return Formula("index", (c,), True)


def _sigmoid(m: Elements, x: Vector) -> Vector:
    """1 / (1 + exp(-x))"""
    e = m.step("vexp", x.kind, x.dtype, m.with_scalar("mul", x, Scalar(-1.0)))
    return m.of_scalar("div", Scalar(1.0, x.dtype), m.with_scalar("add", e, Scalar(1.0)))


def _tanh(m: Elements, x: Vector) -> Vector:
    """1 - 2 / (1 + exp(2 x)), in f32"""
    wide = m.vector(x, F32, x.kind)
    e = m.step("vexp", x.kind, F32, m.with_scalar("mul", wide, Scalar(2.0)))
    part = m.of_scalar("div", Scalar(-2.0, F32), m.with_scalar("add", e, Scalar(1.0)))
    return m.vector(m.with_scalar("add", part, Scalar(1.0)), x.dtype, x.kind)


def _over(m: Elements, x: Vector) -> Vector:
    return m.of_scalar("div", Scalar(1.0, x.dtype), x)


MADE: dict[str, Callable[[Elements, Vector], Vector]] = {
    "neg": lambda m, x: m.with_scalar("mul", x, Scalar(-1.0)),
    "sigmoid": _sigmoid,
    "tanh": _tanh,
    "rsqrt": lambda m, x: _over(m, m.step("vsqrt", x.kind, x.dtype, x)),
    "reciprocal": _over,
}
"""Operations without an instruction that is exact enough, as the rules make them of others."""
