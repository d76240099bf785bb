"""What Python expressions of a kernel evaluate to, besides plain Python values, index expressions and tile expressions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from math import prod
from typing import Any

from tile_eg.errors import NotSearched, Span, TileError, did_you_mean
from tile_eg.frontend.conditions import chosen, of_elements
from tile_eg.frontend.of_calls import OfCall, as_of_call
from tile_eg.frontend.python.views import is_view
from tile_eg.frontend.windows import check_written, known_shape, most, placed
from tile_eg.ir.index import ZERO, Expr, variables, wrap
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.index_elements import element as element_of
from tile_eg.ir.kernel import (
    Binary,
    Broadcast,
    Cast,
    Choose,
    Index,
    MatMul,
    Number,
    Reduce,
    Region,
    Scaled,
    Select,
    TileExpr,
    Unary,
    Whole,
)
from tile_eg.ops.records import record
from tile_eg.ops.types import DTYPES, I32, INDICES, DType, dtype_of, spelled

TILE_NODES = (Region, Number, Index, Unary, Binary, Broadcast, MatMul, Scaled, Reduce, Cast, Select, Choose, Whole)


@record
class Buffer:
    """A GM tensor (scope "tensor") or a tile. A tile written as (n, 1) is a vector of n elements: `column` is set.

    One of n rows and a size that happens to be 1 stays a tile: it is used as at any other size. Of `truth`: it holds bytes that
    are 0 or 1.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    scope: str
    column: bool = False
    truth: bool = False

    @property
    def written(self) -> tuple[int, ...]:
        """The shape as the author wrote it."""
        return (*self.shape, 1) if self.column else self.shape


OPEN = 0


@record
class Slice:
    """start .. start + extent; `count`: of these the first so many, as is known at run time. An extent that is `OPEN` comes from
    the other side of a copy."""

    start: Expr
    extent: int
    count: Expr | None = None


Item = Expr | Slice | None


@record
class Window:
    """`buffer[items]`: an index, a slice or None (a new axis) for each dimension."""

    buffer: Buffer
    items: tuple[Item, ...]
    span: Span | None = None

    @property
    def is_point(self) -> bool:
        """Only indices: one element, or where a tile starts."""
        return all(isinstance(i, Expr) for i in self.items)

    @property
    def is_open(self) -> bool:
        """Whether the other side says how many elements it has."""
        return self.is_point or self.has_open_slice

    @property
    def has_open_slice(self) -> bool:
        return any(map(_is_open, self.items))


def _is_open(item: Item) -> bool:
    """Whether a slice has as many elements as the other side of a copy."""
    return isinstance(item, Slice) and item.extent == OPEN


def _at_most(item: Item) -> Item:
    """An open slice with the number that its length has, if it has one."""
    if not isinstance(item, Slice) or item.count is None or not _is_open(item):
        return item
    return replace(item, extent=most(item.count) or OPEN)


@record
class Transposed:
    """`a.T`, which has a meaning beside @ only."""

    x: TileExpr


@record
class FirstValue:
    """What a variable begins with that may get other values when the kernel runs."""

    value: Any


@record
class NewBuffer:
    """What `T.alloc_*` gives: a buffer that gets its name from the assignment. `column`: the author wrote it as (n, 1). `level`:
    he says in which memory it lies; `truth`: it holds bools."""

    scope: str
    dtype: DType
    shape: tuple[int, ...]
    column: bool = False
    level: str = ""
    truth: bool = False


@record
class Loop:
    """What loop words give. kind: serial, pipelined or parallel; serial loops may have a step.

    `count` is how many trips there are where the block decides it; the extent is then the most, and the loop is not a nest.
    `counts` of an element loop are its ends where the kernel finds them out; the extents are then the most.
    """

    kind: str
    starts: tuple[int | Expr, ...]
    extents: tuple[int, ...]
    step: int = 1
    stages: int = 0
    count: Expr | None = None
    counts: tuple[Expr | None, ...] = ()


@record
class Launch:
    """What `T.Kernel` gives."""

    extents: tuple[int, ...]


def is_tile(value: Any) -> bool:
    return isinstance(value, (Buffer, Window, Transposed, *TILE_NODES))


def is_index(value: Any) -> bool:
    """An integer known now or at run time."""
    return isinstance(value, (Expr, int)) and not isinstance(value, bool)


def element(window: Window) -> Expr:
    """One element of whole numbers, as an index. TileError of other elements."""
    if window.buffer.dtype not in INDICES:
        message = f"an index is a whole number, and `{window.buffer.name}` holds {window.buffer.dtype}"
        raise TileError(message, window.span, help="indices are int32, or shorter whole numbers")
    return element_of(window.buffer.name, window.buffer.shape, [i for i in window.items if isinstance(i, Expr)])


def is_whole(value: Any) -> bool:
    """An index, or one element of a buffer of i32."""
    return is_index(value) or (isinstance(value, Window) and value.is_point and value.buffer.dtype is I32)


def beside_an_index(value: Any, other: Any, loop: Collection[str], written: Collection[str]) -> Any:
    """A number that an element loop over these variables reads from an input, the same one for all its elements, as an index
    where it meets one; anything else as it is."""
    if not loop or not isinstance(other, Expr) or not isinstance(value, Window) or not is_whole(value):
        return value
    same = not variables(element(value)) & set(loop)
    return element(value) if same and value.buffer.scope == "tensor" and value.buffer.name not in written else value


def whole(buffer: Buffer, span: Span | None = None) -> Region:
    return Region(buffer.name, (ZERO,) * len(buffer.shape), buffer.shape, span)


def region(window: Window) -> Region:
    """The window as it is written: plain indices drop their dimension."""
    starts = tuple(i.start if isinstance(i, Slice) else i for i in window.items if i is not None)
    extents = tuple(i.extent if isinstance(i, Slice) else None for i in window.items if i is not None)
    counts = tuple(i.count if isinstance(i, Slice) else None for i in window.items if i is not None)
    return Region(window.buffer.name, starts, extents, window.span, counts=counts if any(counts) else ())


def stored_at(window: Window, shape: tuple[int, ...]) -> Region:
    """A tile of `shape` that is assigned to a point of a tensor: it starts there. TileError for one of a buffer, an element."""
    if window.buffer.scope != "tensor" and prod(shape) > 1:
        what = f"one element of {window.buffer.name} is assigned a tile of shape {shape}"
        whole = ", ".join(":" * len(window.buffer.shape))
        raise TileError(what, window.span, help=f"all of it: {window.buffer.name}[{whole}] = ..., or a slice of that shape")
    return start_point(window, shape)


def start_point(window: Window, shape: tuple[int, ...], column: bool = False) -> Region:
    """A tile of `shape` that starts at the window's point; leading dimensions that `shape` lacks are dropped.

    `column`: the tile is a vector that runs down a column. In a tensor of one dimension a tile has one row that is there.
    """
    r = region(window)
    while len(shape) > len(r.starts) and shape[0] == 1:
        shape = shape[1:]
    missing = len(r.starts) - len(shape)
    if missing < 0 and len(shape) == 2 and window.buffer.scope == "tensor":
        return Region(r.name, r.starts, shape[1:], r.span, beside=shape[0], counts=r.counts)
    if missing < 0:
        name, rank = window.buffer.name, len(r.starts)
        what = f"a tile of shape {shape} cannot start in {name}, which has {rank} dimension{'s' * (rank > 1)}"
        raise TileError(what, window.span, help=f"give the tile as many: {', '.join(map(str, shape[:rank]))}")
    down = missing > 0 and len(shape) == 1 and (column or window.buffer.shape[-1] == 1)
    counts = r.counts or (None,) * len(r.starts)
    extents = (*(None,) * (missing - 1), *shape, None) if down else placed(shape, r.extents, counts)
    if not r.counts:
        return Region(r.name, r.starts, extents, r.span)
    return Region(r.name, r.starts, extents, r.span, counts=_with_fewer(r, extents))


def _with_fewer(r: Region, extents: Sequence[int | None]) -> tuple[Expr | None, ...]:
    """The counts of a window that has some; a length that is known, and less than there is on the other side, is one beside
    these. TileError where more is written than there is."""
    sides = zip(r.extents, r.counts, extents, strict=True)
    counts = tuple(wrap(e) if c is None and e is not None and n is not None and e < n else c for e, c, n in sides)
    written = [e if c is None else None for e, c in zip(r.extents, counts, strict=True)]
    check_written(r.name, written, counts, extents, r.span)
    return counts


def as_region(value: Any, span: Span | None) -> Region:
    """A buffer or a window as a place that can be written."""
    if isinstance(value, Buffer):
        return whole(value, span)
    if isinstance(value, Window) and value.has_open_slice:
        value = replace(value, items=tuple(map(_at_most, value.items)))
    if isinstance(value, Window) and value.has_open_slice:
        help = "copy it to a buffer first: T.copy(A[i : i + n, 0], a)"
        raise TileError("how large a tile this slice is part of is not known here", span or value.span, help=help)
    if isinstance(value, Window) and None not in value.items:
        return region(value)
    if isinstance(value, Region):
        return value
    kind = NotSearched if is_view(value) else TileError
    raise kind(f"a buffer or a slice of one is needed here, not {describe(value)}", span)


def as_tile(value: Any, span: Span | None) -> TileExpr:
    """A value as a tile expression: numbers are broadcast, `v[:, None]` and `v[None, :]` are vectors as tiles, a condition of
    elements is 1 where it holds, else 0."""
    if isinstance(value, TILE_NODES):
        return value
    if isinstance(value, (bool, int, float)):
        return Number(float(value), span)
    if isinstance(value := as_of_call(value), OfCall):
        return Number(value.written, span)
    if isinstance(value, Window) and None in value.items:
        if len(value.items) != 2:
            raise TileError("a vector becomes a tile as v[:, None] or v[None, :]", span)
        return Broadcast(region(value), 1 if value.items[1] is None else 0, span)
    if of_elements(value):
        return chosen(value, Number(1.0, span), Number(0.0, span), span)
    if isinstance(value, Expr) and value.value is not None:
        return Number(float(value.value), span)
    if isinstance(value, Transposed):
        if len(known_shape(value.x) or ()) != 2:
            raise TileError("only a tile of two dimensions is transposed as a value", span)
        return Whole("transpose", (value.x,), (0, 0), span)
    if isinstance(value, Expr):
        return Index(value, span)
    return as_region(value, span)


def with_rank(r: Region, rank: int) -> Region:
    """The region with extents of 1 dropped, the first ones first, until it has `rank` dimensions or none is left."""
    extents = list(r.extents)
    for i, e in enumerate(extents):
        if sum(x is not None for x in extents) <= rank:
            break
        if e == 1:
            extents[i] = None
    return replace(r, extents=tuple(extents))


_NO_TYPE = (
    (("mxfp", "mxf"), "blocks of floats with scales are two tensors: the floats, and a scale for each 32 of them along K",
     'declare "float8_e4m3" or "float4_e2m1", and "float8_e8m0" for the scales: T.gemm_mx(a, sa, b, sb, c, transpose_B=True)'),
    (("e8m0", "float4", "fp4", "hifloat"), "no float of 4 bits, and no scale, has this name",
     'on the 950 there are "float4_e2m1" and "float4_e1m2", and "float8_e8m0" for scales'),
    (("float8", "fp8", "e4m3", "e5m2"), "no float of 8 bits has this name",
     'on the 950 there are "float8_e4m3" and "float8_e5m2"'),
    (("float64", "double"), "the vector cores have no floats of 64 bits", 'take "float32"'),
    (("int64",), "the vector cores have no whole numbers of 64 bits", 'take "int32"; of an array, x.astype("int32")'),
    (("bool",), "bools are not computed with, and lie in UB and in tensors alone: T.tile.compare puts its bits into bytes",
     'compare: m[i, j] != 0; for T.tile.compare "uint8", an eighth as many'),
    (("uint4",), "numbers of 4 bits have a sign here, as the chips' casts take them",
     'take "int4", or load bytes ("uint8"), two numbers in each: x & 15 and x >> 4 in T.Parallel'),
)  # fmt: skip
"""Element types of other chips, by parts of their names: why they are none here, and what to write."""


def as_dtype(value: Any, span: Span | None) -> DType:
    if isinstance(value, DType):
        return value
    found = None if isinstance(value, (Buffer, Window, *TILE_NODES)) else dtype_of(spelled(value))
    if found is None:
        what = repr(str(value)) if isinstance(value, (str, int, float)) else describe(value)
        what = value.__name__ if isinstance(value, type) else what
        for names, why, help in _NO_TYPE:
            if any(n in str(value) for n in names) and not isinstance(value, Buffer | Window):
                raise TileError(f"{what}: {why}", span, help=help)
        raise TileError(f"unknown dtype {what}", span, help=did_you_mean(str(value), (d.numpy for d in DTYPES.values())))
    return found


def nodes(tree: Any) -> Iterator[Any]:
    """Every node of a kernel tree (statements and expressions), the tree itself first."""
    if isinstance(tree, tuple):
        for part in tree:
            yield from nodes(part)
    elif is_dataclass(tree) and not isinstance(tree, (Expr, DType, Span)):
        yield tree
        for f in fields(tree):
            if f.compare:
                yield from nodes(getattr(tree, f.name))


def is_one_number(value: Any, span: Span | None) -> bool:
    """Whether a value that is no part of a buffer is a single number."""
    return not isinstance(value, Buffer | Window) and known_shape(as_tile(value, span)) == ()


def regions_in(tree: Any) -> Iterator[Region]:
    """Every region of a kernel tree."""
    return (n for n in nodes(tree) if isinstance(n, Region))


def reads(value: Any) -> set[str]:
    """The names of the buffers whose elements a bound value would read when it is used."""
    if isinstance(value, Expr):
        return {r.args[0] for r in all_elements_in(value)}
    if isinstance(value, Window) and value.is_point:
        return {value.buffer.name}
    if isinstance(value, Transposed):
        return reads(value.x)
    if isinstance(value, TILE_NODES):
        return {n.name for n in nodes(value) if isinstance(n, Region)}
    return set()


WORDS = {
    "Expr": "an index", "Compared": "a condition", "Logic": "a condition", "Transposed": "a transposed tile", "Loop": "a loop",
    "Defined": "a function",
    "Launch": "a launch", "Slice": "a slice", "Word": "a word of the language", "Macro": "a macro", "PrimFunc": "a kernel",
    "TensorType": "a type of tensors", "ElementType": "a dtype", "NewBuffer": "a buffer", "NoneType": "nothing (None)",
    "module": "a module", "function": "a function", "builtin_function_or_method": "a function", "ellipsis": "...",
    **{t.__name__: "an expression" for t in TILE_NODES}, "Buffer": "a buffer", "Window": "a part of a buffer",
}  # fmt: skip
"""Classes of values in a user's words."""


def describe(value: Any) -> str:
    """A value in a user's words."""
    if isinstance(value, (Buffer, Window)):
        return "a tensor" if value_buffer(value).scope == "tensor" else "a buffer"
    kind = type(value).__name__
    if kind in WORDS:
        return WORDS[kind]
    if isinstance(value, (list, tuple, dict, set)):
        return f"a {kind}"
    return f"{kind} {value!r}" if isinstance(value, (bool, int, float, complex, str, bytes)) else f"a value of type {kind}"


def plainly(error: Exception) -> str:
    """What Python says of a fault, with a user's words for the values of a kernel."""
    said = str(error) or type(error).__name__
    for kind, word in WORDS.items():
        said = said.replace(f"'{kind}' object", word).replace(f"'{kind}'", word).replace(f'"{kind}"', word)
    return said


def value_buffer(value: Buffer | Window) -> Buffer:
    return value.buffer if isinstance(value, Window) else value
