"""Values of whole tensors: what an expression of NumPy's means, as a graph with shapes and element types.

Shapes broadcast as NumPy's do. Element types are those that NumPy gives (numbers take the other operand's), but that products of
i8 add up in i32; a type says how a value is rounded where it is stored, is an operand of `@`, or is cast: in between floats are
computed in f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.nibbles import TENSORS, whole_bytes
from tile_eg.frontend.tensor.shapes import Shape, joined_shape, whole_sizes
from tile_eg.frontend.tensor.types import beside_bytes, reduced_as, wider
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.passed import Passed
from tile_eg.ir.seen import indexed
from tile_eg.ops.elementwise import BINARY, UNARY
from tile_eg.ops.records import record
from tile_eg.ops.types import BF16, F16, F32, FLOATS, I8, I32, WHOLE, DType

LOGICAL = ("and", "or")
OF_CONDITIONS = {"mul": "and", "min": "and", "max": "or"}
"""What operations on numbers are on two conditions."""
EXACT = 1 << 24
"""Up to here f32 has all whole numbers."""
MOST_POWER = 31
"""The largest exponent of whole numbers: of more, no number but 0, 1 and -1 has a power in 32 bits."""


@record(eq=False)
class Value:
    """`op` is tensor, number, arange, unary, binary, compare, logic, where, cast, reduce, scan, matmul, permute, reshape, window,
    gather, slide, join, turns, stored or nothing; `of` are its operands, of a gather what is gathered and then indices.

    `args` is what else it has: a tensor's name; a number; an operation's name, also of a reduction of no elements, `nothing`; the
    axes of a reduction or of a permutation; the operation of a scan and its axis; the axes that indices pick of, the place of
    their own axes among the others, and how many these are; a window's (start, size, step) of each axis, None where it is a new
    axis and a size of None where it takes one index; the axis along which a join has its operands one behind the other, or along
    which the elements of two take turns; the windows that slide along axes.
    `dtype` is None for a number, and for a condition, which `truth` says it is.
    """

    op: str
    of: tuple[Value, ...]
    args: tuple
    shape: Shape
    dtype: DType | None
    span: Span | None = None
    truth: bool = False

    def __str__(self) -> str:
        if self.op == "number":
            return f"{self.args[0]:g}"
        kind = "a condition" if self.truth else str(self.dtype)
        return f"{kind}{list(self.shape)}" if self.shape else kind


def tensor(name: str, shape: Shape, dtype: DType, span: Span | None = None) -> Value:
    whole_bytes(dtype, TENSORS, span)
    return Value("tensor", (), (name,), shape, dtype, span)


def argument(t: Tensor) -> Value:
    """A tensor that a kernel takes, in the shape that statements index; of bools, whether each is true."""
    x = reshape(tensor(t.name, t.shape, t.dtype, t.span), () if t.alone else indexed(t).shape, t.span)
    return truth(x, t.span) if t.truth else x


def number(value: float | Passed, span: Span | None = None) -> Value:
    return Value("number", (), (value,), (), None, span)


def arange(count: int, span: Span | None = None) -> Value:
    """The whole numbers 0 .. count - 1."""
    if count < 1:
        raise TileError(f"arange counts to a number of at least 1, not to {count}", span)
    return Value("arange", (), (), (count,), I32, span)


def unary(op: str, x: Value, span: Span | None = None) -> Value:
    if x.truth:
        if op != "not":
            raise TileError(f"`{op}` takes numbers, not a condition", span, help="choose numbers by it: where(c, 1, 0)")
        return Value("logic", (x,), ("not",), x.shape, None, span, truth=True)
    if op == "not" and x.dtype not in WHOLE:
        raise TileError(f"`~` turns conditions and the bits of whole numbers, not {x}", span, help="compare first: ~(x > 0)")
    dtype = x.dtype if x.dtype in FLOATS or x.dtype in UNARY[op].takes else F32
    return Value("unary", (x,), (op,), x.shape, dtype, span)


def binary(op: str, x: Value, y: Value, span: Span | None = None) -> Value:
    """An operation on elements, also of conditions: `and`, `or`."""
    if x.truth and y.truth:
        op = OF_CONDITIONS.get(op, op)
    if x.truth is not y.truth and op not in LOGICAL:
        x, y = _counted(x, y, span)
    if x.truth or y.truth:
        if op == "xor" and x.truth and y.truth:
            return compare("ne", x, y, span)
        if op not in LOGICAL or not (x.truth and y.truth):
            help = "choose numbers by it: where(c, 1, 0); conditions are joined by & and |"
            raise TileError(f"`{sign(op)}` takes numbers, not a condition", span, help=help)
        return Value("logic", (x, y), (op,), broadcast(op, x, y, span=span), None, span, truth=True)
    shape, dtype = broadcast(op, x, y, span=span), common(x, y, span)
    if dtype is None and op in LOGICAL:
        raise TileError(f"`{sign(op)}` takes bits or conditions, not numbers", span)
    if dtype is not None and dtype.whole and op == "div":
        dtype = F32
    if op == "pow" and dtype is not None and dtype.whole:
        return _power(x, y, span)
    return Value("binary", _of_one_width(dtype, x, y), (op,), shape, dtype, span)


def _counted(x: Value, y: Value, span: Span | None) -> tuple[Value, Value]:
    """A condition as 1 and 0 beside numbers."""
    return (ones(x, y.dtype, span), y) if x.truth else (x, ones(y, x.dtype, span)) if y.truth else (x, y)


def _of_one_width(dtype: DType | None, *values: Value) -> tuple[Value, ...]:
    """Operands of which whole numbers are of the type of the result, where that is one of whole numbers."""
    narrow = [dtype is not None and dtype.whole and v.dtype not in (None, dtype) for v in values]
    return tuple(cast(dtype, v, v.span) if n and dtype is not None else v for v, n in zip(values, narrow, strict=True))


def _power(x: Value, y: Value, span: Span | None) -> Value:
    """x ** n of whole numbers, multiplied out."""
    if y.op != "number" or not 0 <= y.args[0] <= MOST_POWER:
        help = f"cast it first: {hint('f32(x) ** y', 'x.astype(np.float32) ** y', span)}, exact below 2^24"
        raise TileError(f"whole numbers have powers of 0 to {MOST_POWER}, known ahead, not of {y}", span, help=help)
    n, out = int(y.args[0]), None
    while n:
        if n % 2:
            out = x if out is None else binary("mul", out, x, span)
        x, n = binary("mul", x, x, span) if n > 1 else x, n // 2
    return out if out is not None else cast(x.dtype or F32, repeated(number(1.0, span), x.shape, span), span)


def quotient(sign: str, x: Value, y: Value, span: Span | None = None) -> Value:
    """x // y and x % y, rounded down as Python's."""
    dtype = common(x, y, span)
    if x.truth or y.truth or dtype is None:
        help = f"a condition as a number is {hint('select', 'T.where', span)}(x, 1, 0)"
        raise TileError(f"`{sign}` divides numbers, not {x} by {y}", span, help=help)
    operands = _of_one_width(dtype, x, y) if dtype.whole else (x, y)
    return Value("binary", operands, (sign,), broadcast(sign, x, y, span=span), dtype, span)


def ones(condition: Value, dtype: DType | None, span: Span | None = None) -> Value:
    """1 where a condition holds, else 0: in this type, or in f32."""
    return Value("where", (condition, number(1.0), number(0.0)), (), condition.shape, dtype or F32, span)


def truth(x: Value, span: Span | None = None) -> Value:
    """Whether elements are not 0."""
    return x if x.truth else compare("ne", repeated(x, x.shape, span) if x.op == "number" else x, number(0, span), span)


def compare(op: str, x: Value, y: Value, span: Span | None = None) -> Value:
    if x.truth and y.truth:
        return _compared_conditions(op, x, y, span)
    x, y = _counted(x, y, span)
    operands = _of_one_width(common(x, y, span), x, y)
    return Value("compare", operands, (op,), broadcast("compare", x, y, span=span), None, span, truth=True)


def _compared_conditions(op: str, x: Value, y: Value, span: Span | None) -> Value:
    """What of two conditions, as 1 and 0, holds where they compare so."""
    not_x, not_y = unary("not", x, span), unary("not", y, span)
    left, joins, right = {
        "eq": (binary("and", x, y, span), "or", binary("and", not_x, not_y, span)),
        "ne": (binary("and", x, not_y, span), "or", binary("and", not_x, y, span)),
        "lt": (not_x, "and", y), "le": (not_x, "or", y), "gt": (x, "and", not_y), "ge": (x, "or", not_y),
    }[op]  # fmt: skip
    return binary(joins, left, right, span)


def where(condition: Value, x: Value, y: Value, span: Span | None = None) -> Value:
    if condition.op == "number" and isinstance(condition.args[0], int | float):
        condition = truth(condition, span)
    if not condition.truth:
        help = "compare: where(x > 0, x, y)"
        raise TileError(f"`where` chooses by a condition, not by {condition}", span, help=help)
    if x.truth and y.truth:
        left, right = binary("and", condition, x, span), binary("and", unary("not", condition, span), y, span)
        return binary("or", left, right, span)
    x, y = _counted(x, y, span)
    dtype, shape = common(x, y, span), broadcast("where", condition, x, y, span=span)
    return Value("where", (condition, *_of_one_width(dtype, x, y)), (), shape, dtype, span)


def cast(dtype: DType, x: Value, span: Span | None = None) -> Value:
    whole_bytes(dtype, TENSORS, span)
    x = ones(x, None, span) if x.truth else x
    return Value("cast", (x,), (), x.shape, dtype, span)


def reduce(op: str, x: Value, axes: Any, keepdims: bool = False, span: Span | None = None) -> Value:
    """op: max, min, sum, mean, over the axes (None: all)."""
    if x.truth:
        return _of_condition(op, x, axes, keepdims, span)
    if not x.shape and (axes is None or (op != "mean" and axes in (0, -1))):
        return reduce(op, reshape(x, (1,), span), 0, False, span)
    given = range(len(x.shape)) if axes is None else axes if isinstance(axes, list | tuple) else (axes,)
    along = tuple(sorted(axis_of(a, x, span) for a in given))
    if len(set(along)) < len(along):
        raise TileError(f"`{op}` reduces an axis once, not {sorted(given)}", span)
    if not along:
        raise TileError(f"`{op}`: {x} has nothing to reduce", span)
    if x.dtype is not None and x.dtype.whole and (wide := reduced_as(op, x.dtype)) != x.dtype:
        found = reduce(op, cast(wide, x, span), along, keepdims, span)
        return cast(x.dtype, found, span) if op in ("max", "min") else found
    n = prod(x.shape[a] for a in along)
    shape = tuple(1 if a in along else d for a, d in enumerate(x.shape) if keepdims or a not in along)
    if n == 0 and x.dtype is not None:
        return _of_nothing(op, shape, x.dtype, span)
    if op == "mean":
        return binary("mul", reduce("sum", x, along, keepdims, span), number(1 / n, span), span)
    found = Value("reduce", (x,), (op, along), tuple(d for a, d in enumerate(x.shape) if a not in along), x.dtype, span)
    return reshape(found, shape, span) if keepdims else found


def _of_condition(op: str, x: Value, axes: Any, keepdims: bool, span: Span | None) -> Value:
    """How many elements are true, whether one is, and whether all are, by 1 and 0."""
    few = prod(x.shape) < EXACT
    found = reduce(op, ones(x, F32 if few or op != "sum" else I32, span), axes, keepdims, span)
    return truth(found, span) if op in ("max", "min") else cast(I32, found, span) if op == "sum" else found


def _of_nothing(op: str, shape: Shape, dtype: DType, span: Span | None) -> Value:
    """A reduction of no elements: but for a sum it is refused where an output needs it."""
    return stored(number(0.0, span), shape, dtype) if op == "sum" else Value("nothing", (), (op,), shape, dtype, span)


def scan(op: str, x: Value, axis: int, span: Span | None = None) -> Value:
    """op: cumsum or cumprod, along an axis."""
    if x.truth or (x.dtype is not None and x.dtype.whole):
        help = f"cast it first: {hint('f32(x)', 'x.astype(np.float32)', span)}, exact below 2^24"
        raise TileError(f"`{op}` takes floats, not {x}", span, help=help)
    return Value("scan", (x,), (op, axis_of(axis, x, span)), x.shape, x.dtype or F32, span)


def matmul(a: Value, b: Value, span: Span | None = None) -> Value:
    """`a @ b` as NumPy has it: vectors on either side, leading axes broadcast."""
    for x in (a, b):
        if not x.shape:
            raise TileError(f"`@` multiplies matrices and vectors, not {x}", x.span or span, help="write * for numbers")
        if x.truth:
            raise TileError("`@` multiplies numbers, not conditions", x.span or span)
    k = a.shape[-1]
    if k != (other := b.shape[-2] if len(b.shape) > 1 else b.shape[0]):
        help = "transpose it: a @ b.T" if len(b.shape) == 2 and b.shape[1] == k else ""
        raise TileError(f"the inner sizes of this product differ: {a} @ {b} has {k} and {other}", span, help=help)
    rows, cols = a.shape[-2:-1], b.shape[-1:] if len(b.shape) > 1 else ()
    lead = joined_shape(a.shape[:-2], b.shape[:-2])
    if lead is None:
        raise TileError(f"the leading axes of {a} @ {b} do not broadcast", span, help="sizes agree from the right, or are 1")
    dtype = common(a, b, span)
    if dtype is not None and dtype.whole and dtype != I8:
        raise TileError(f"`@` multiplies f16, bf16, f32, i8 or f8, not {dtype}", span)
    if k == 0:
        return stored(number(0.0, span), (*lead, *rows, *cols), I32 if dtype == I8 else dtype or F32)
    return Value("matmul", (a, b), (), (*lead, *rows, *cols), I32 if dtype == I8 else dtype, span)


def permute(x: Value, axes: Sequence[int] | None, span: Span | None = None) -> Value:
    """The axes in another order; None: turned round."""
    order = tuple(reversed(range(len(x.shape)))) if axes is None else tuple(axis_of(a, x, span) for a in axes)
    if sorted(order) != list(range(len(x.shape))):
        raise TileError(f"a transpose names each of the {len(x.shape)} axes of {x} once, not {list(axes or ())}", span)
    return Value("permute", (x,), order, tuple(x.shape[a] for a in order), x.dtype, span, truth=x.truth)


def reshape(x: Value, shape: Sequence[int], span: Span | None = None) -> Value:
    """The same elements in another shape; one size may be -1."""
    sizes, count = whole_sizes(shape, span), prod(x.shape)
    if sizes.count(-1) == 1 and (rest := prod(n for n in sizes if n != -1)) > 0 and count % rest == 0:
        sizes[sizes.index(-1)] = count // rest
    if any(n < 0 for n in sizes) or prod(sizes) != count:
        raise TileError(f"{x} has {count} elements, a shape of {list(shape)} has others", span)
    if tuple(sizes) == x.shape:
        return x
    return Value("reshape", (x,), (), tuple(sizes), x.dtype, span, truth=x.truth)


@record
class Slice:
    """start:stop:step of an axis; None: from its beginning, to its end. Below 0 they count from the end."""

    start: int | None = None
    stop: int | None = None
    step: int | None = None


NEW_AXIS, REST = "new axis", "rest"
Item = int | Slice | str
Cut = tuple[int, int | None, int]


def window(x: Value, items: Sequence[Item], span: Span | None = None) -> Value:
    """x[items]: numbers, slices, new axes, and the rest of the axes as they are."""
    named = sum(i not in (NEW_AXIS, REST) for i in items)
    if named > len(x.shape) or items.count(REST) > 1:
        raise too_many(x, named, span)
    rest: list[Item] = [Slice()] * (len(x.shape) - named)
    at = items.index(REST) if REST in items else len(items)
    full = [*items[:at], *rest, *items[at + (REST in items) :]]
    out: list[Cut | None] = []
    for item in full:
        out.append(None if item == NEW_AXIS else _cut(item, x.shape[sum(o is not None for o in out)], span))
    shape = tuple(n for n in (1 if o is None else o[1] for o in out) if n is not None)
    whole = [o for o in out if o is not None]
    if all(o == (0, n, 1) for o, n in zip(whole, x.shape, strict=True)):
        return reshape(x, shape, span)
    return Value("window", (x,), tuple(out), shape, x.dtype, span, truth=x.truth)


def too_many(x: Value, named: int, span: Span | None) -> TileError:
    n = len(x.shape)
    return TileError(f"{x} has {n} ax{'is' if n == 1 else 'es'}, not {named}", span)


def _cut(item: Item, size: int, span: Span | None) -> Cut:
    if isinstance(item, int):
        if not -size <= item < size:
            raise TileError(f"the index {item} lies outside of an axis of {size}", span)
        return item % size, None, 1
    assert isinstance(item, Slice)
    if item.step == 0:
        raise TileError("the steps of a slice are not 0", span)
    taken = range(*slice(item.start, item.stop, item.step).indices(size))
    if not taken and size:
        raise TileError(f"this slice of an axis of {size} is empty", span)
    return taken.start, len(taken), taken.step if len(taken) > 1 else 1


def axis_of(axis: int, x: Value, span: Span | None) -> int:
    if not isinstance(axis, int):
        raise TileError(f"an axis is a whole number, not {axis}", span)
    if not -len(x.shape) <= axis < len(x.shape):
        help = f"axes are 0 to {len(x.shape) - 1}, or -1 to {-len(x.shape)} from the last one" if x.shape else "it is a number"
        raise TileError(f"{x} has no axis {axis}", span, help=help)
    return axis % len(x.shape)


def broadcast(op: str, *values: Value, span: Span | None) -> Shape:
    out: Shape = ()
    for v in values:
        joined = joined_shape(out, v.shape)
        if joined is None:
            shapes = " and ".join(str(v) for v in values if v.shape)
            help = "sizes agree from the right, or are 1: a vector of rows is v[:, None]"
            if len(out) == 2 and out[::-1] == v.shape:
                help = "transpose one of them, x.T: sizes agree from the right, or are 1"
            raise TileError(f"the shapes of {shapes} do not broadcast", span, help=help)
        out = joined
    return out


def common(x: Value, y: Value, span: Span | None) -> DType | None:
    """The element type of an operation on both, as NumPy has it."""
    a, b = x.dtype, y.dtype
    if a is None or b is None:
        of, beside = (b, x) if a is None else (a, y)
        return F32 if of is not None and of.whole and _is_float(beside) else of
    if {a, b} == {F16, BF16}:
        raise TileError("f16 and bf16 do not mix", span, help="cast one of them, or both to f32")
    if a == b:
        return a
    return wider(a, b, span) if a.whole and b.whole else beside_bytes(a, b) or F32


def _is_float(x: Value) -> bool:
    return x.op == "number" and not isinstance(x.args[0], int)


def stored(x: Value, shape: Shape, dtype: DType) -> Value:
    """x as an output holds it: repeated to its shape."""
    return Value("stored", (x,), (), shape, dtype, x.span)


def repeated(x: Value, shape: Sequence[int], span: Span | None = None) -> Value:
    """x in a shape to which its own broadcasts."""
    shape = whole_sizes(shape, span)
    if joined_shape(x.shape, tuple(shape)) != tuple(shape):
        help = "sizes agree from the right, or are 1: a vector of rows is v[:, None]"
        raise TileError(f"{x} does not broadcast to {list(shape)}", span, help=help)
    return Value("stored", (x,), (), tuple(shape), x.dtype, span, truth=x.truth)


def sign(op: str) -> str:
    return BINARY[op].sign or op if op in BINARY else op
