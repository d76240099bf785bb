"""Shapes and element types of tile expressions, and what does not fit in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from tile_eg.errors import NotSearched, TileError, did_you_mean
from tile_eg.frontend.checks import scaled
from tile_eg.frontend.checks.numbers import check_number
from tile_eg.frontend.hints import cast, hint
from tile_eg.frontend.windows import lies_across, shape_text
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.operands import regions
from tile_eg.ops.elementwise import BINARY, REDUCE, UNARY, Binary, Unary
from tile_eg.ops.records import record
from tile_eg.ops.types import BF16, F16, F32, I8, I16, I32, NARROW, SIGNED, U8, U32, WHOLE, DType, holds_all
from tile_eg.ops.whole_tiles import IN_BLOCKS, WHOLE_TILES

Shape = tuple[int, ...]
ANY = -1
"""The extent of a broadcast vector along the axis that it is repeated on."""


@record
class Type:
    """Shape (() is one element) and dtype (None: a number, which takes the other operand's)."""

    shape: Shape
    dtype: DType | None

    def __str__(self) -> str:
        if self.dtype is None:
            return "a number"
        return f"{self.dtype}[{', '.join('_' if n == ANY else str(n) for n in self.shape)}]"


class Typing:
    """Types of expressions over declared tensors and buffers. Every method raises TileError at the fault."""

    def __init__(self, arrays: Mapping[str, kn.Tensor | kn.Alloc]) -> None:
        self.arrays = arrays
        self.known: dict[int, tuple[kn.TileExpr, Type]] = {}

    def array(self, r: kn.Region) -> kn.Tensor | kn.Alloc:
        if r.name not in self.arrays:
            raise TileError(f"unknown name `{r.name}`", r.span, help=did_you_mean(r.name, self.arrays))
        return self.arrays[r.name]

    def of(self, e: kn.TileExpr) -> Type:
        """The type of an expression, found once for all that it is a part of: no name is declared twice."""
        if id(e) not in self.known:
            self.known[id(e)] = e, self.found(e)
        return self.known[id(e)][1]

    def found(self, e: kn.TileExpr) -> Type:
        match e:
            case kn.Region():
                return self.region(e)
            case kn.Number() | kn.Index():
                return Type((), None)
            case kn.Unary():
                return _takes(UNARY[_known(e, e.op, UNARY).op], self.of(e.x), e.span)
            case kn.Binary() | kn.Select():
                return self.pair(e)
            case kn.Choose():
                return self.choice(e)
            case kn.Broadcast():
                return self.broadcast(e)
            case kn.MatMul() if isinstance(e.a, kn.Scaled) or isinstance(e.b, kn.Scaled):
                return Type(scaled.product_shape(e, self.of), F32)
            case kn.MatMul():
                return self.product(e)
            case kn.Scaled():
                raise scaled.refused(e)
            case kn.Reduce():
                return self.reduction(e)
            case kn.Pack():
                return self.packed(e)
            case kn.Pad():
                return self.of(e.x)
            case kn.Whole():
                return self.whole(e)
            case kn.Bytes():
                return self.parts(e)
            case kn.Cast():
                x = self.of(e.x)
                return Type(x.shape, e.dtype)

    def region(self, r: kn.Region) -> Type:
        array = self.array(r)
        n = len(array.shape)
        if not len(r.starts) == len(r.extents) == n:
            raise TileError(f"`{r.name}` has {n} dimension{'s' * (n > 1)}, not {len(r.starts)}", r.span)
        if len(r.shape) > 4:
            raise TileError(f"a tile has at most four dimensions, not {len(r.shape)}", r.span, help="index the leading ones")
        if isinstance(array, kn.Tensor):
            _check_contiguous(r, array)
        return Type(r.shape, array.dtype)

    def pair(self, e: kn.Binary | kn.Select) -> Type:
        """Two operands of one shape, or one of them a number or a broadcast vector."""
        if isinstance(e, kn.Binary):
            _known(e, e.op, BINARY)
        x, y = self.of(e.x), self.of(e.y)
        for t, other in ((x, e.y), (y, e.x)):
            _check_number(t, other)
            if isinstance(e, kn.Binary):
                _takes(BINARY[e.op], t, e.span)
        if isinstance(e, kn.Binary) and not BINARY[e.op].native and BINARY[e.op].with_scalar and not isinstance(e.y, kn.Number):
            raise TileError(f"`{BINARY[e.op].sign}` takes a number known when the kernel is compiled on its right", e.span)
        if isinstance(e, kn.Binary) and e.op in ("shl", "shr") and isinstance(e.y, kn.Number) and x.dtype is not None:
            _check_shift(e.op, e.y, x.dtype)
        help = _product_help(x.shape, y.shape, e.span) if isinstance(e, kn.Binary) and e.op == "mul" else ""
        help = _sum_help(y) if isinstance(e, kn.Binary) and isinstance(e.y, kn.MatMul) else help
        return Type(joined(x, y, e.span, help), _common(x.dtype, y.dtype, e.span))

    def choice(self, e: kn.Choose) -> Type:
        """All four of one shape, or numbers or broadcast vectors; the type is that of what is chosen."""
        if e.op == kn.BIT:
            return self.by_bits(e)
        compared = self.pair(kn.Select(ix.ONE, e.a, e.b, e.span))
        chosen = self.pair(kn.Select(ix.ONE, e.x, e.y, e.span))
        if chosen.dtype is None:
            return Type(compared.shape, None)
        return Type(joined(Type(compared.shape, F32), chosen, e.span), chosen.dtype)

    def by_bits(self, e: kn.Choose) -> Type:
        """A choice by bits: one for each element of the two tiles."""
        bits, chosen = self.of(e.a), self.pair(kn.Select(ix.ONE, e.x, e.y, e.span))
        fits = chosen.shape and (*bits.shape[:-1], 8 * bits.shape[-1]) == chosen.shape if bits.shape else False
        if not fits or bits.dtype is None or not bits.dtype.whole or bits.dtype.bits != 8:
            help = "eight elements share a byte of a row"
            raise TileError(f"{bits} holds no bit for each element of {chosen}", e.span, help=help)
        return chosen

    def whole(self, e: kn.Whole) -> Type:
        """The result of an operation on whole tiles: the first one's element type."""
        entry, xs = WHOLE_TILES[e.op], [self.of(x) for x in e.xs]
        for x, takes in zip(xs, (entry.types, (entry.second,) if entry.second else entry.types), strict=False):
            if x.dtype not in takes or ANY in x.shape or not x.shape:
                help = _instead(x.dtype, takes, e.span)
                raise TileError(f"`{e.op}` works on {', '.join(map(str, takes))}, not on {x}", e.span, help=help)
            runs = entry.made_of_others or (e.op == "gather" and e.numbers[0] == IN_BLOCKS)
            if not runs and prod(x.shape[:-1]) > 1 and x.shape[-1] * x.dtype.bytes % 32:
                help = "make its rows a multiple of 32 bytes long, or use a buffer of one dimension"
                raise NotSearched(f"`{e.op}` takes elements in one run, and the rows of {x} have gaps", e.span, help=help)
        shape = entry.shape(tuple(x.shape for x in xs), e.numbers)
        if isinstance(shape, str):
            raise TileError(shape, e.span)
        dtype = entry.result or xs[0].dtype
        if e.op == "reshape" and len(shape) > 1 and shape[-1] * (dtype or F32).bytes % 32:
            help = "give it rows of a multiple of 32 bytes, or one dimension"
            raise NotSearched(f"`reshape` keeps one run of elements: rows of {shape[-1]} of {dtype} have gaps", e.span, help=help)
        return Type(shape, dtype)

    def parts(self, e: kn.Bytes) -> Type:
        """Twice as many elements: the bytes of numbers of 16 bits, or as f16 the numbers of 4 bits of bytes."""
        x = self.of(e.x)
        if e.dtype == F16 and (x.dtype not in (I8, U8) or not x.shape or ANY in x.shape):
            help = "a tile of i8 or u8 holds two of them in each byte"
            raise TileError(f"`nibbles` takes numbers of 4 bits out of bytes, not of {x}", e.span, help=help)
        return Type((*x.shape[:-1], 2 * x.shape[-1]), e.dtype)

    def packed(self, e: kn.Pack) -> Type:
        """A byte for eight elements of a row."""
        x = _floats(self.of(e.x), e.span)
        if not x.shape or x.shape[-1] * (x.dtype or F32).bytes % 256 or x.dtype in (BF16, *NARROW):
            help = "a row of f32 has a multiple of 64 elements, one of f16 of 128"
            raise TileError(f"the bits of {x} do not fill whole bytes as the instruction makes them", e.span, help=help)
        return Type((*x.shape[:-1], x.shape[-1] // 8), U8)

    def broadcast(self, e: kn.Broadcast) -> Type:
        x = self.of(e.x)
        if len(x.shape) != 1 or e.axis not in (0, 1):
            raise TileError(f"only a vector is repeated over rows or columns, not {x}", e.span)
        return Type((x.shape[0], ANY) if e.axis == 1 else (ANY, x.shape[0]), x.dtype)

    def product(self, e: kn.MatMul) -> Type:
        a, b = self.of(e.a), self.of(e.b)
        for t, side in ((a, e.a), (b, e.b)):
            if len(t.shape) != 2 or ANY in t.shape:
                raise TileError(f"`@` multiplies tiles of two dimensions, not {t}", side.span or e.span)
        if a.dtype != b.dtype and not {a.dtype, b.dtype} <= {*NARROW}:
            which = e.b.name if isinstance(e.b, kn.Region) else "x"
            kind = a.dtype or F32
            shape = ", ".join(map(str, b.shape))
            copied = f'{which}2 = T.alloc_shared(({shape}), "{kind.numpy}"), T.copy({which}, {which}2)'
            help = "cast one: " + hint(cast(kind, which, None), copied, e.span)
            raise TileError(f"`@` multiplies tiles of one element type, not {a} and {b}", e.span, help=help)
        (m, ka), (kb, n) = a.shape[:: -1 if e.transpose_a else 1], b.shape[:: -1 if e.transpose_b else 1]
        if ka != kb:
            left, right = f"{a}{'.T' * e.transpose_a}", f"{b}{'.T' * e.transpose_b}"
            message = f"the inner sizes of this product differ: {left} @ {right} has {ka} and {kb}"
            raise TileError(message, e.span, help=_turned_help(e, n == ka, m == kb))
        if a.dtype == I8 or a.dtype in NARROW:
            _bytes_fit(e, n, a.dtype)
        elif a.dtype in WHOLE:
            raise TileError(f"`@` multiplies f16, bf16, f32, i8 or f8, not {a.dtype}", e.span)
        return Type((m, n), I32 if a.dtype == I8 else F32)

    def reduction(self, e: kn.Reduce) -> Type:
        _known(e, e.op, REDUCE)
        x = self.of(e.x)
        if not x.shape or ANY in x.shape:
            raise TileError(f"{x} has nothing to reduce", e.span)
        if len(x.shape) > 2:
            raise TileError(f"{x} has three dimensions: only rows and columns are reduced", e.span, help="reduce plane by plane")
        return Type((x.shape[1 - e.axis],) if len(x.shape) == 2 else (), x.dtype)

    def assignment(self, s: kn.Assign) -> None:
        """The value has to have the target's shape; a number or one element fills it; any dtype is cast to a float one."""
        scaled.check_scales(s, self.arrays)
        target, value = self.of(s.target), self.of(s.value)
        _check_number(target, s.value, beside=False)
        if target.dtype in WHOLE and value.dtype not in (None, target.dtype) and not holds_all(target.dtype, value.dtype):
            to = target.dtype
            help = f"{cast(to, 'x', s.span)} rounds, and saturates"
            raise TileError(f"`{s.target.name}` holds {to}, the value is {value}", s.span, help=help)
        same_rank = len(target.shape) == len(value.shape)
        fits = same_rank and all(v in (t, ANY) for t, v in zip(target.shape, value.shape, strict=True))
        fits = fits or (bool(value.shape) and target.shape == (1, *value.shape))  # a vector is a tile of one row
        fills = value.dtype is None or value.shape == ()
        if not fits and not fills:
            what = f"`{s.target.name}` takes {shape_text(target.shape)} here, the value is {value}"
            beside_tensor = self._tensor_help(s, target, value)
            help = beside_tensor or _vector_help(target.shape, value.shape) or self._shape_help(s, target, value)
            raise TileError(what, s.span, help=help)

    def _tensor_help(self, s: kn.Assign, target: Type, value: Type) -> str:
        """What to do where a tensor stands in a value, or a part of one has an index beside a slice."""
        of = s.value
        read = [r for r in regions(of) if isinstance(self.arrays[r.name], kn.Tensor)]
        for region, shape in ((of, target.shape), (s.target, value.shape)):
            if isinstance(region, kn.Region) and self._is_one_row(region, len(shape)):
                return _one_row_help(region, shape)
        for r in read if not isinstance(of, kn.Region) else ():
            if r.extents == self.arrays[r.name].shape:
                return "load the part that is meant first: " + hint(f"x = {r.name}[i, j]", f"T.copy({r.name}[i, j], x)", s.span)
        return ""

    def _is_one_row(self, region: kn.Region, rank: int) -> bool:
        """Whether a part of a tensor has an index beside a slice, and fewer dimensions than what it is to hold."""
        sliced = sum(e is not None for e in region.extents)
        return isinstance(self.arrays[region.name], kn.Tensor) and None in region.extents and 0 < sliced < rank

    def _shape_help(self, s: kn.Assign, target: Type, value: Type) -> str:
        """What to do where a tensor is larger than the tile it is loaded into, or where a buffer has another shape."""
        array, of = self.arrays[s.target.name], s.value
        if isinstance(of, kn.Region) and isinstance(self.arrays[of.name], kn.Tensor) and len(target.shape) == len(value.shape):
            begins = f"{of.name}[{', '.join('ijklmn'[: len(of.starts)])}]"
            return f"a part as large as the tile is loaded from where it begins: {begins}"
        if isinstance(array, kn.Tensor) or target.shape != array.shape or ANY in value.shape or not value.shape:
            return ""
        dims = shape_text(value.shape).replace(" x ", ", ")
        one = f"({dims}{',' * (len(value.shape) == 1)})"
        return "a buffer for it is " + hint(f"{array.name}: {array.dtype}[{dims}]", f"T.alloc_fragment({one}, ...)", s.span)


def _one_row_help(region: kn.Region, shape: Sequence[int]) -> str:
    """What to do where a part of a tensor is one row, and the tile beside it has others."""
    letters = "ijklmn"[: len(region.starts)]
    lead = letters[: max(0, len(letters) - len(shape))]
    parts = (f"{i} : {i} + {n}" for i, n in zip(letters[len(lead) :], shape, strict=False))
    slices, begins = (f"{region.name}[{', '.join(index)}]" for index in ((*lead, *parts), letters))
    return f"an index takes one row: write slices, {slices}, or where the tile begins, {begins}"


def _takes(op: Unary | Binary, t: Type, span: kn.Span | None) -> Type:
    """TileError where an operation has no meaning on this element type."""
    if t.dtype is None or t.dtype in op.takes or (t.dtype in (BF16, *NARROW) and F32 in op.takes):
        return t
    near = (SIGNED.get(t.dtype), I16 if t.dtype.bits == 8 else I32, F32)
    to = next(d for d in near if d is not None and d in op.takes)
    there = ", ".join(map(str, op.takes))
    power = "; a power is x ** 2" if op.name == "xor" else ""
    raise TileError(f"{t}: `{_written(op)}` takes {there}", span, help=f"cast it first: {cast(to, 'x', span)}{power}")


def _written(op: Unary | Binary) -> str:
    return op.sign or op.name if isinstance(op, Binary) else op.name


def _check_number(t: Type, other: kn.TileExpr, beside: bool = True) -> None:
    """TileError where a number that stands beside whole numbers, fills them, or may be chosen for them, is none of them."""
    if isinstance(other, kn.Choose | kn.Select):
        _check_number(t, other.x, beside)
        _check_number(t, other.y, beside)
    if t.dtype is not None and isinstance(other, kn.Number):
        check_number(t.dtype, other.value, other.span, beside)


def _check_shift(op: str, by: kn.Number, dtype: DType) -> None:
    """TileError where a shift is by more bits than there are, or leaves none of them on the left."""
    most = dtype.bits if op == "shr" else dtype.bits - 1
    if not 0 <= by.value <= most:
        raise TileError(f"{dtype} is shifted by 0 to {most} bits, not by {by.value:g}", by.span)


def _floats(t: Type, span: kn.Span | None) -> Type:
    """TileError where elements are whole numbers, of which the instruction makes no bits."""
    if t.dtype in WHOLE:
        raise TileError(f"{t}: whole numbers are not packed", span, help=f"cast them first: {cast(F32, 'x', span)}")
    return t


def _bytes_fit(e: kn.MatMul, cols: int, of: DType) -> None:
    """TileError where no instruction brings bytes into L0A or L0B as the product wants them."""
    if e.transpose_a:
        raise TileError(f"a transposed left operand of {of} is not supported", e.span, help="store it as rows x depth")
    if not e.transpose_b and cols % 32:
        help = f"give it a multiple of 32 columns, not {cols}, or store it the other way round: "
        help += hint("a @ b.T", "a @ b.T, or transpose_B=True", e.span)
        raise TileError(f"a right operand of {of} is turned by squares of 32 x 32", e.span, help=help)


def joined(x: Type, y: Type, span: kn.Span | None, help: str = "") -> Shape:
    """The shape of an operation on both."""
    if x.dtype is None or y.dtype is None:
        return x.shape or y.shape
    a, b = x.shape, y.shape
    if () in (a, b):
        return a or b
    if len(a) == len(b) and all(p == q or ANY in (p, q) for p, q in zip(a, b, strict=True)):
        return tuple(max(p, q) for p, q in zip(a, b, strict=True))
    raise TileError(f"the shapes of {x} and {y} do not fit", span, help=_vector_help(a, b) or _vector_help(b, a) or help)


def _product_help(x: Shape, y: Shape, span: kn.Span | None) -> str:
    """Where `*` stands between two tiles that a matrix product would take."""
    if len(x) != 2 or len(y) != 2 or x[1] != y[0]:
        return ""
    return "`*` multiplies element by element; a matrix product is " + hint("a @ b", "T.gemm(a, b, c), or a @ b", span)


def _sum_help(product: Type) -> str:
    return f"the product is {shape_text(product.shape)}: what it is added to has that shape"


def _turned_help(e: kn.MatMul, right: bool, left: bool) -> str:
    """Which operand of a product fits the other one when it is transposed, or is not."""
    if right:
        return _turned("right", e.transpose_b, hint("a @ b.T", "transpose_B=True", e.span))
    return _turned("left", e.transpose_a, hint("a.T @ b", "transpose_A=True", e.span)) if left else ""


def _turned(side: str, already: bool, written: str) -> str:
    return f"it fits where the {side} operand is not transposed" if already else f"transpose the {side} operand: {written}"


def _vector_help(tile: Shape, vector: Shape) -> str:
    if len(tile) == 2 and len(vector) == 1:
        return "a vector becomes a tile as v[:, None] (one value a row) or v[None, :] (one value a column)"
    if len(tile) == len(vector) == 2 and ANY in vector and ANY not in tile:
        return _other_axis(tile, vector)
    return ""


def _other_axis(tile: Shape, vector: Shape) -> str:
    """Which way round a vector fits a tile, that is repeated along the other axis or has another length."""
    n, down = max(vector), vector[1] == ANY
    if n == tile[1 if down else 0]:
        return f"{n} values are one for each {'column: v[None, :]' if down else 'row: v[:, None]'}"
    return f"a tile of {tile[0]} x {tile[1]} takes {tile[0]} values as v[:, None], or {tile[1]} as v[None, :], not {n}"


def _instead(dtype: DType | None, takes: Sequence[DType], span: kn.Span | None) -> str:
    """How elements of another type are taken."""
    if dtype is I32 and U32 in takes:
        return hint("take its bits: u32(at)", 'copy its bits: T.copy(at, b), b being a buffer of "uint32"', span)
    if dtype is None or not dtype.whole or F32 not in takes:
        return ""
    return f"cast it first: {cast(F32, 'x', span)}" + (", which rounds from 2^24 on" if dtype.bits == 32 else "")


def _common(x: DType | None, y: DType | None, span: kn.Span | None) -> DType | None:
    if {x, y} == {F16, BF16}:
        raise TileError("f16 and bf16 do not mix", span, help=f"cast one of them, or both to f32: {cast(F32, 'x', span)}")
    if x in WHOLE and y in WHOLE and x != y:
        help = f"cast one of them: {cast(y, 'x', span)}"  # type: ignore[arg-type]
        raise TileError(f"{x} and {y} do not mix", span, help=help)
    return y if x is None else x if y is None or x == y else F32


def _known(e, op: str, names: Iterable[str]):  # noqa: ANN001, ANN202
    if op not in names:
        raise TileError(f"unknown operation `{op}`", e.span, help=did_you_mean(op, names))
    return e


def _check_contiguous(r: kn.Region, tensor: kn.Tensor) -> None:
    """TileError unless the window's last dimension is contiguous in memory, or it is one column."""
    if lies_across(r, tensor) and (len(r.shape) != 1 or tensor.dtype not in (F16, BF16, F32, *WHOLE)):
        raise TileError(
            f"the elements of this window's rows do not lie side by side in `{r.name}`", r.span,
            help="a window has to take in the tensor's last dimension, as in A[i, 0:64], or be one column, A[0:64, j]",
        )  # fmt: skip
