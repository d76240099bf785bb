"""The kernel as its author wrote it: one syntax tree for `.tile` text and for Python, with all sizes known.

Statements assign tile expressions to regions of buffers or tensors; their meaning is sequential, statement by statement.
Integer expressions are `ir.index.Expr` over grid variables and loop variables (their own names, unique in a kernel).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, fields, replace
from typing import Any, Union

from tile_eg.errors import Note, Span
from tile_eg.ir.index import Expr, substitute
from tile_eg.ops.records import record
from tile_eg.ops.types import DType

BIT = "bit"


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False)  # type: ignore[return-value]


@record
class Tensor:
    """A GM tensor argument. `output` tensors are returned to the caller; one that is `given` begins with what he put there.

    Copies of one that is `past_l2` leave L2 out (SetL2CacheHint with CACHE_MODE_DISABLE). `strides` are elements from one to the
    next of each dimension; without them its elements lie one behind the other. Of `truth` the caller has bools: bytes of 0 and 1.
    Statements index its elements in the shape `seen`, where that is given. One that is `alone` is a single element, of which the
    caller has an array without dimensions.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    output: bool
    span: Span | None = _span()
    given: bool = False
    past_l2: bool = False
    strides: tuple[int, ...] = ()
    truth: bool = False
    seen: tuple[int, ...] = ()
    alone: bool = False


@record
class Region:
    """A window of a tensor or buffer: a start for every dimension and an extent for every dimension.

    An extent of None is a plain index: the dimension is dropped. The rank of the window is the number of extents that are ints.
    Its rows are `step` apart: that is 1 but for what an element loop over rows such as x[2*i, j] runs over. `beside`: a window of
    a tensor of one dimension is the first of so many rows, of which the others lie outside. `counts` says of how many elements of
    each dimension it is meant, where that is known at run time: the others do not exist.
    """

    name: str
    starts: tuple[Expr, ...]
    extents: tuple[int | None, ...]
    span: Span | None = _span()
    step: int = 1
    beside: int = 0
    counts: tuple[Expr | None, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return (*((self.beside,) if self.beside else ()), *(e for e in self.extents if e is not None))


@record
class Number:
    """A scalar, broadcast to where it is used: a constant, or what follows from numbers that each call passes (Passed)."""

    value: float
    span: Span | None = _span()


@record
class Index:
    """An index expression as a number, in f32; in an element loop it may vary with the element. `beside`: how far from 0 what is
    added to it may be, so that f32 has to hold the sum."""

    value: Expr
    span: Span | None = _span()
    beside: int = 0


@record
class Unary:
    """op: exp ln sqrt rsqrt reciprocal abs relu sigmoid tanh neg."""

    op: str
    x: TileExpr
    span: Span | None = _span()


@record
class Binary:
    """op: add sub mul div max min. Operands have equal shapes, or one is a Number or a Broadcast."""

    op: str
    x: TileExpr
    y: TileExpr
    span: Span | None = _span()


@record
class Broadcast:
    """A vector as a tile: axis 1 is v[:, None] (one value a row), axis 0 is v[None, :] (one value a column)."""

    x: TileExpr
    axis: int
    span: Span | None = _span()


@record
class MatMul:
    """a @ b with fp32 (int8: int32) accumulation, either operand transposed."""

    a: TileExpr
    b: TileExpr
    transpose_a: bool = False
    transpose_b: bool = False
    span: Span | None = _span()


@record
class Scaled:
    """An operand of a product with scales: x (r, k) with a scale (r, k / 32, e8m0) for each 32 elements of a row.

    `packed`: the floats of 4 bits of which each byte of x holds two, so that x has half as many columns.
    """

    x: TileExpr
    scale: TileExpr
    packed: DType | None = None
    span: Span | None = _span()


@record
class Reduce:
    """op: max min sum, over axis 1 (rows become values) or 0 (columns become values) of a tile: a vector."""

    op: str
    x: TileExpr
    axis: int
    span: Span | None = _span()


@record
class Cast:
    dtype: DType
    x: TileExpr
    span: Span | None = _span()


@record
class Bytes:
    """The two bytes of each number of 16 bits, the lower one first, as i8 or u8: twice as many columns."""

    dtype: DType
    x: TileExpr
    span: Span | None = _span()


@record
class Pack:
    """Bytes (u8) of eight elements each, a bit for an element that is not 0, the first one lowest."""

    x: TileExpr
    span: Span | None = _span()


@record
class Pad:
    """x, and `value` where x is outside of the tensor that it was loaded from: all of it exists, but for what lies behind the end
    of the dimensions `ends` of that tensor."""

    x: TileExpr
    value: float
    span: Span | None = _span()
    ends: tuple[int, ...] = ()


@record
class Whole:
    """An operation on whole tiles (`ops/whole_tiles.py`): op, its operands, and the two numbers that it takes.

    `along`, of a gather: for each axis three numbers (step, first, per), where element i takes element (i * step + first) // per
    of the first operand; (0, 0, 0) where it is another one, () where nothing is known.
    """

    op: str
    xs: tuple[TileExpr, ...]
    numbers: tuple[int, int] = (0, 0)
    span: Span | None = _span()
    along: tuple[tuple[int, int, int], ...] = ()


@record
class Select:
    """x where the condition (an index expression, 0 or 1) holds, else y. In an element loop it may vary with the element.

    `branch`: a statement stands under the condition; the one that is not chosen says nothing of where the result ends.
    """

    condition: Expr
    x: TileExpr
    y: TileExpr
    span: Span | None = _span()
    branch: bool = False


@record
class Choose:
    """x where `a op b` holds of the elements, else y. op: lt le gt ge eq ne; a comparison with NaN holds for ne alone.

    All four have equal shapes, or are Numbers or Broadcasts. op `BIT`: x where the bit of an element is 1 in the bytes a, whose
    rows hold eight elements a byte, the lowest bit first.
    """

    op: str
    a: TileExpr
    b: TileExpr
    x: TileExpr
    y: TileExpr
    span: Span | None = _span()


TileExpr = Union[
    Region, Number, Index, Unary, Binary, Broadcast, MatMul, Scaled, Reduce, Cast, Bytes, Pack, Pad, Whole, Select, Choose
]  # fmt: skip


@record
class Alloc:
    """A buffer. scope: shared or fragment. `level` is the memory in which its author puts it ("": open), `slots` how many buffers
    its tile has (0: open)."""

    name: str
    scope: str
    dtype: DType
    shape: tuple[int, ...]
    span: Span | None = _span()
    level: str = ""
    slots: int = 0


@record
class Assign:
    """target = value; the value is cast where the dtypes differ.

    `atomic`: the value is added to a window of an output, to which other blocks may add as well, in any order. Such an output
    begins with what the caller put there, or with zeros.
    """

    target: Region
    value: TileExpr
    span: Span | None = _span()
    atomic: str = ""


@record
class For:
    """for var in start .. start+extent. kind: serial or pipelined.

    What a pipelined loop loads in each trip has `stages` slots; 0: as many as the search finds best.
    Where the block decides how many trips there are, `count` says how many, over the grid's variables: 0 .. extent of them.
    """

    var: str
    start: int
    extent: int
    kind: str
    stages: int
    body: tuple[Stmt, ...]
    span: Span | None = _span()
    count: Expr | None = None


@record
class Parallel:
    """An element loop nest: Regions in the body index single elements (every extent is None) by the loop variables."""

    vars: tuple[str, ...]
    extents: tuple[int, ...]
    body: tuple[Assign, ...]
    span: Span | None = _span()


@record
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...]
    span: Span | None = _span()


Stmt = Union[Alloc, Assign, For, Parallel, If]


@record
class Kernel:
    """`grid` names the block dimensions and their extents; the first one varies fastest. `source` is the text, for messages.

    `notes` are what the frontend has to say about it. `numbers` are the floats (f32) that each call passes, whose values are not
    known; they are arguments behind the tensors.
    """

    name: str
    tensors: tuple[Tensor, ...]
    grid: tuple[tuple[str, int], ...]
    body: tuple[Stmt, ...]
    source: str = field(default="", compare=False, repr=False)
    file: str = field(default="", compare=False, repr=False)
    notes: tuple[Note, ...] = field(default=(), compare=False, repr=False)
    numbers: tuple[str, ...] = ()
    wholes: tuple[str, ...] = ()


def added_to(kernel: Kernel) -> frozenset[str]:
    """The outputs to which the kernel adds atomically, and those that are given: what they hold before counts."""
    return frozenset(s.target.name for s in assigns(kernel.body) if s.atomic) | {t.name for t in kernel.tensors if t.given}


def float_sums(kernel: Kernel) -> list[Assign]:
    """The statements that add floats atomically, so that the order of a sum may change from run to run."""
    floats = {t.name for t in kernel.tensors if not t.dtype.whole}
    return [s for s in assigns(kernel.body) if s.atomic and s.target.name in floats]


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement in a body, each before those inside of it."""
    for s in body:
        yield s
        match s:
            case For() | Parallel():
                yield from statements(s.body)
            case If():
                yield from statements((*s.then, *s.otherwise))


def assigns(body: Iterable[Stmt]) -> Iterator[Assign]:
    """Every assignment in a body, in their order."""
    return (s for s in statements(body) if isinstance(s, Assign))


def allocs(body: Iterable[Stmt]) -> Iterator[Alloc]:
    """Every buffer in a body, in their order."""
    return (s for s in statements(body) if isinstance(s, Alloc))


def mapped(e: TileExpr, change: Callable[[TileExpr], TileExpr]) -> TileExpr:
    """The expression with `change` of each of its parts, the innermost first; a part that occurs twice is changed once."""
    known: dict[int, TileExpr] = {}

    def of(x: Any) -> TileExpr:
        if id(x) not in known:
            new = {f.name: of(v) for f in fields(x) if isinstance(v := getattr(x, f.name), TileExpr)}  # type: ignore[arg-type]
            known[id(x)] = change(replace(x, **new) if any(v is not getattr(x, n) for n, v in new.items()) else x)
        return known[id(x)]

    return of(e)


def at_places(s: Assign, env: Mapping[str, Expr]) -> Assign:
    """The assignment with other expressions in the place of these variables."""
    if not env:
        return s

    def change(e: Any) -> Any:
        match e:
            case Region():
                return replace(e, starts=tuple(substitute(x, env) for x in e.starts))
            case Index():
                return replace(e, value=substitute(e.value, env))
            case Select():
                return replace(e, condition=substitute(e.condition, env))
        return e

    return replace(s, target=change(s.target), value=mapped(s.value, change))


def exchanged(body: Iterable[Stmt], instead: Callable[[Stmt], Iterable[Stmt] | None]) -> tuple[Stmt, ...]:
    """A body with what `instead` gives in the place of each statement, which it gets in their order. Where it gives None, the
    statement stays, and those in it are exchanged if it is a loop or a branch; the assignments of an element loop stay."""
    out: list[Stmt] = []
    for s in body:
        found = instead(s)
        match s:
            case _ if found is not None:
                out += found
            case For():
                out.append(replace(s, body=exchanged(s.body, instead)))
            case If():
                out.append(replace(s, then=exchanged(s.then, instead), otherwise=exchanged(s.otherwise, instead)))
            case _:
                out.append(s)
    return tuple(out)
