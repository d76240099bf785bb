"""Windows that give a start only, `A[i, j]`: their extent comes from the other side of the assignment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from tile_eg.errors import Span, TileError
from tile_eg.ir import index as ix
from tile_eg.ir.index import ONE, Expr, terms_of
from tile_eg.ir.kernel import (
    BIT,
    Binary,
    Broadcast,
    Cast,
    Choose,
    Index,
    MatMul,
    Number,
    Pack,
    Pad,
    Reduce,
    Region,
    Scaled,
    Select,
    Tensor,
    TileExpr,
    Unary,
    Whole,
)
from tile_eg.ir.strided import strides_of
from tile_eg.ops.records import record
from tile_eg.ops.types import SCALE_BLOCK
from tile_eg.ops.whole_tiles import WHOLE_TILES

Shape = tuple[int, ...]


@record
class OpenWindow:
    """A window of a tensor that starts at `starts`; it stands in a tile expression until its extent is known.

    `extents` are those that were written nevertheless, and `counts` how many elements of a dimension are meant where only the
    kernel knows.
    """

    tensor: Tensor
    starts: tuple[Expr, ...]
    extents: tuple[int | None, ...]
    counts: tuple[Expr | None, ...]
    span: Span | None = None

    def closed(self, shape: Shape | None) -> Region:
        """The window with this shape in the dimensions that have slices, if those are as many, else in the last ones; the others
        are plain indices. Where the other side tells no shape, the lengths of slices do if they have numbers."""
        shape = self.written() if shape is None else shape
        if shape is None:
            raise TileError(
                f"the extent of this window of `{self.tensor.name}` is not known from the other side", self.span,
                help=f"give it, e.g. {self.tensor.name}[i:i + 64, j:j + 64]",
            )  # fmt: skip
        lead = len(self.starts) - len(shape)
        if lead < 0:
            raise TileError(
                f"`{self.tensor.name}` has {len(self.starts)} dimension{'s' * (len(self.starts) > 1)}, "
                f"the other side is a tile of {shape_text(shape)}", self.span,
            )  # fmt: skip
        found = placed(shape, self.extents, self.counts)
        check_written(self.tensor.name, self.extents, self.counts, found, self.span)
        return Region(self.tensor.name, self.starts, found, self.span, counts=self.counts if any(self.counts) else ())

    def written(self) -> Shape | None:
        """The most elements of each slice; None where something else decides that of one of them, or there is none."""
        sizes = [e if c is None else most(c) for e, c in zip(self.extents, self.counts, strict=True) if (e, c) != (None, None)]
        return None if None in sizes or not sizes else tuple(n for n in sizes if n is not None)


def placed(shape: Shape, extents: Sequence[int | None], counts: Sequence[Expr | None]) -> tuple[int | None, ...]:
    """The extents of a window of this shape: those of its slices where it has as many (of these, those of one element left out
    where it has fewer), else those of its last dimensions."""
    slices = [d for d, (e, c) in enumerate(zip(extents, counts, strict=True)) if (e, c) != (None, None)]
    longer = [d for d in slices if extents[d] != 1]
    slices = longer if len(slices) > len(shape) == len(longer) else slices
    dims = slices if len(slices) == len(shape) else range(len(extents) - len(shape), len(extents))
    sizes = dict(zip(dims, shape, strict=True))
    return tuple(sizes.get(d) for d in range(len(extents)))


def may_vary(length: Expr) -> bool:
    """Whether the length of a slice may be known at run time only: one that is read, or a minimum of others. One that grows with
    the block, `A[i : i*16]`, is a mistake."""
    return any(e != ONE and e.op != "var" for e in terms_of(length))


def check_written(
    name: str, extents: Sequence[int | None], counts: Sequence[Expr | None], found: Sequence[int | None], span: Span | None
) -> None:
    """TileError where the extents that were written in a window are not those that it has from the other side."""
    for n, (written, have) in enumerate(zip(extents, found, strict=False)):
        if written is not None and written != have and (written, have) != (1, None):
            other = f"has {have}" if have else "has no such dimension"
            raise TileError(f"this window of `{name}` has {written} elements in dimension {n}, and the other side {other}", span)
    if any(count is not None and have is None for count, have in zip(counts, found, strict=False)):
        raise TileError(
            f"a slice of `{name}` whose length is known only at run time stands in a dimension that the other side lacks", span,
            help="give the tile on the other side as many dimensions as slices stand here",
        )  # fmt: skip


def lies_across(r: Region, tensor: Tensor) -> bool:
    """Whether the elements of a window's rows do not lie side by side in its tensor."""
    dims = [d for d, e in enumerate(r.extents) if e is not None]
    return bool(dims) and r.extents[dims[-1]] != 1 and strides_of(tensor)[dims[-1]] != 1 and not lies_down(r, tensor)


def lies_down(r: Region, tensor: Tensor) -> bool:
    """Whether the columns of a window lie in runs in its tensor, and not its rows."""
    dims = [d for d, e in enumerate(r.extents) if e is not None]
    return bool(tensor.strides) and len(dims) == 2 and tensor.strides[dims[1]] != 1 and tensor.strides[dims[0]] == 1


def length(low: Expr, high: Expr) -> Expr:
    """How many elements a slice has; up to a minimum as many as up to the first of its operands."""
    return reduce(ix.minimum, (end - low for end in _least_of(high)))


def most(count: Expr) -> int | None:
    """The most elements of a slice whose length is a minimum with a number; None for others."""
    known = [x.value for x in _least_of(count) if x.value is not None]
    return min(known, default=None)


def _least_of(e: Expr) -> Iterator[Expr]:
    """The operands of minima."""
    if e.op != "min":
        yield e
        return
    for x in e.args:
        yield from _least_of(x)


def shape_text(shape: Shape) -> str:
    return " x ".join(map(str, shape)) if shape else "one element"


def known_shape(e: TileExpr | OpenWindow) -> Shape | None:
    """The shape of an expression, () for a scalar, None where an open window leaves it unknown."""
    match e:
        case OpenWindow():
            return None
        case Region():
            return e.shape
        case Number() | Index():
            return ()
        case Unary() | Cast() | Pad():
            return known_shape(e.x)
        case Pack():
            x = known_shape(e.x)
            return (*x[:-1], x[-1] // 8) if x else None
        case Whole():
            xs = [known_shape(x) for x in e.xs]
            shape = WHOLE_TILES[e.op].shape(tuple(x for x in xs if x is not None), e.numbers) if None not in xs else None
            return None if isinstance(shape, str) else shape
        case Binary() | Select():
            x, y = known_shape(e.x), known_shape(e.y)
            return max((s for s in (x, y) if s), key=len, default=None if None in (x, y) else ())
        case Choose():
            parts = [known_shape(part) for part in ((e.x, e.y) if e.op == BIT else (e.a, e.b, e.x, e.y))]
            return max((s for s in parts if s), key=len, default=None if None in parts else ())
        case MatMul():
            return _product_shape(e)
        case Scaled():
            x = known_shape(e.x)
            return (*x[:-1], 2 * x[-1]) if x and e.packed else x
        case Reduce():
            x = known_shape(e.x)
            return None if x is None else (x[1 - e.axis],) if len(x) == 2 else ()
    return None


def spread_shape(e: TileExpr) -> Shape | None:
    """The shape of an expression whose operands are all vectors spread over rows or columns; None where one axis is not told."""
    told: dict[int, int] = {}
    for axis, shape in _spread(e):
        if shape and len(shape) == 1:
            told[1 - axis] = shape[0]
    return (told[0], told[1]) if len(told) == 2 else None


def _spread(e: TileExpr) -> Iterator[tuple[int, Shape | None]]:
    match e:
        case Broadcast():
            yield e.axis, known_shape(e.x)
        case Unary() | Cast():
            yield from _spread(e.x)
        case Binary() | Select() | Choose():
            for part in (e.x, e.y) if not isinstance(e, Choose) else (e.a, e.b, e.x, e.y):
                yield from _spread(part)


def _product_shape(e: MatMul) -> Shape | None:
    a, b = known_shape(e.a), known_shape(e.b)
    if not a or not b or len(a) != 2 or len(b) != 2:
        return None
    return (a[1] if e.transpose_a else a[0], b[0] if e.transpose_b else b[1])


def close(e: TileExpr | OpenWindow, shape: Shape | None) -> TileExpr:
    """e with its open windows closed, where e itself has this shape (None: not known)."""
    match e:
        case OpenWindow():
            return e.closed(shape)
        case Unary() | Cast() | Pad():
            return replace(e, x=close(e.x, shape))
        case Binary() | Select():
            shape = shape if shape is not None else known_shape(e)
            return replace(e, x=_operand_of(e.x, shape), y=_operand_of(e.y, shape))
        case Choose():
            shape = shape if shape is not None else known_shape(e)
            a, b, x, y = (_operand_of(part, shape) for part in (e.a, e.b, e.x, e.y))
            return replace(e, a=a, b=b, x=x, y=y)
        case Pack():
            return replace(e, x=close(e.x, None if shape is None else (*shape[:-1], 8 * shape[-1])))
        case Whole():
            return replace(e, xs=tuple(close(x, shape if e.op == "gather" and n else None) for n, x in enumerate(e.xs)))
        case Broadcast():
            return replace(e, x=close(e.x, (shape[1 - e.axis],) if shape is not None and len(shape) == 2 else None))
        case Reduce():
            return replace(e, x=close(e.x, None))
        case Scaled():
            return replace(e, x=close(e.x, shape), scale=close(e.scale, scales_shape(shape or known_shape(e))))
        case MatMul():
            return replace(e, a=close(e.a, _operand(e, shape, True)), b=close(e.b, _operand(e, shape, False)))
    return e


def _operand_of(e: TileExpr | OpenWindow, shape: Shape | None) -> TileExpr:
    """An operand beside others of a shape: what has fewer dimensions, each with a start alone, is one element."""
    if isinstance(e, OpenWindow) and shape and len(e.starts) < len(shape) and e.written() is None and not any(e.extents):
        return e.closed(())
    if isinstance(e, Unary | Cast):
        return replace(e, x=_operand_of(e.x, shape))
    return close(e, shape)


def scales_shape(shape: Shape | None) -> Shape | None:
    """The shape of the scales of an operand of this shape."""
    return (*shape[:-1], shape[-1] // SCALE_BLOCK) if shape else None


def _operand(e: MatMul, shape: Shape | None, left: bool) -> Shape | None:
    """The shape that one operand of a product must have, from the product's and the other's."""
    other = known_shape(e.b if left else e.a)
    if not shape or len(shape) != 2 or not other or len(other) != 2:
        return None
    flipped = e.transpose_a if left else e.transpose_b
    if left:
        pair = (shape[0], other[1] if e.transpose_b else other[0])
    else:
        pair = (other[0] if e.transpose_a else other[1], shape[1])
    return pair[::-1] if flipped else pair
