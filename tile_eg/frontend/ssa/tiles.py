"""Makes value terms with their shapes, dtypes and valid extents, and the casts that mixed element types need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tile_eg.errors import NotSearched, Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.ranges import Ranges, extremes, surely_equal
from tile_eg.frontend.ssa.extents import inside, known_as, meet, same
from tile_eg.frontend.ssa.positions import Place, Position
from tile_eg.frontend.ssa.rounding import constant_as
from tile_eg.frontend.ssa.shorter_nests import ShorterNest
from tile_eg.frontend.ssa.steps import between, computing, promoted, reducing
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import elements_in, inside_of
from tile_eg.ir.kernel import Region, Tensor, Whole
from tile_eg.ir.passed import Passed, as_number, wholes_in
from tile_eg.ir.strided import strides_of
from tile_eg.ir.values import Border, Builder, Term
from tile_eg.ops.elementwise import REDUCE
from tile_eg.ops.types import F16, F32, I8, I32, SCALE_BLOCK, U8, DType


def tile_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a buffer or window; a vector is one row."""
    return (1, 1) if not shape else (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])


@dataclass
class Window:
    """A tile's place in a tensor: first element, elements between rows, and how much of it lies inside."""

    offset: Expr
    stride: int
    rows: int
    cols: int
    vrows: Expr
    vcols: Expr


class Unlike(NamedTuple):
    """The valid rows and columns of a value that cannot be made with fewer, and those that were wanted."""

    has: tuple[Expr, Expr]
    wanted: tuple[Expr, Expr]

    def error(self, span: Span | None) -> TileError:
        have, want = (" x ".join(map(index_text, pair)) for pair in self)
        help = "a value that a loop has accumulated ends where its tensors end; give them the same sizes"
        return TileError(f"{have} valid elements meet a window of {want}: not supported yet", span, help=help)


@dataclass
class Tiles:
    """`ranges` holds the interval of the block index and of each loop variable that is open, `within` what holds in the trips
    that blocks count; `spans` collects sources.

    `extents` are the varying extents that were met, each in the form in which it came first. `turned` are transposed tiles, each
    with the tile that it is of: a product takes that one, anything else what `laid` makes of it. `windows` are tiles that may
    reach beyond their tensor, each with its window (`outside.Padded`): windows are taken of the tensor, anything else takes what
    `laid` makes; those of the columns in `shared` are parts of one window with all rows. `named` are the buffers and scopes of
    terms, `borders` the windows that tiles stand for which what there is of them is put into. Of loops that are `narrowing` the
    states are noted that are asked for with fewer elements; `narrowed_result` makes such a state of a loop.
    """

    builder: Builder = field(default_factory=Builder)
    ranges: dict[str, ix.Interval] = field(default_factory=dict)
    within: Expr = ix.ONE
    spans: dict[Term, Span] = field(default_factory=dict)
    extents: dict[Expr, None] = field(default_factory=dict)
    turned: dict[Term, Term] = field(default_factory=dict)
    laid: dict[Term, Callable[[], Term]] = field(default_factory=dict)
    named: dict[Term, tuple[str, str]] = field(default_factory=dict)
    narrowing: dict[int, dict[int, tuple[Expr, Expr]]] = field(default_factory=dict)
    narrowed_result: Callable[[Term, tuple[Expr, Expr]], Term | None] = lambda x, extents: None
    windows: dict[Term, Any] = field(default_factory=dict)
    shared: frozenset[tuple[str, Expr]] = frozenset()
    borders: dict[Term, Border] = field(default_factory=dict)

    def make(self, span: Span | None, op: str, *args: object, like: Term | None = None, **shape: object) -> Term:
        """A term; `like` gives its shape and valid extents, and its dtype where none is named."""
        if like is not None:
            shape = {name: getattr(like, name) for name in ("rows", "cols", "dtype", "vrows", "vcols")} | shape
        if self.laid:
            args = tuple(map(self.as_laid, args))
        t = self.builder.make(op, *args, **shape)
        if span is not None:
            self.spans.setdefault(t, span)
        return t

    def as_laid(self, arg: Any) -> Any:
        """An argument of a term, in which transposed tiles are such as lie in memory."""
        if isinstance(arg, tuple):
            return tuple(map(self.as_laid, arg))
        return self.alike_named(arg, self.laid[arg]()) if isinstance(arg, Term) and arg in self.laid else arg

    def window(self, tensor: Tensor, region: Region, ranges: Ranges, anywhere: bool = False) -> Window:
        """Where a region of a tensor lies; its tile dimensions are those with an extent. Elements that lie anywhere are rows. It
        begins inside, but one that may begin `anywhere` at numbers of a call."""
        rows = max((e or 1 for e in region.extents), default=1)
        ranges = {**ranges, ix.EACH: (0, rows - 1)}
        placed = zip(region.starts, tensor.shape, strict=True)
        within = [s if anywhere and wholes_in(s) else inside_of(s, n - 1) for s, n in placed]
        pitch, starts = strides_of(tensor), [ix.simplified(s, ranges) for s in within]
        offset = ix.ZERO
        for start, step in zip(starts, pitch, strict=True):
            offset = offset + start * step
        dims = [d for d, e in enumerate(region.extents) if e is not None]
        rows, cols = tile_shape(region.shape)
        steps = [1] * len(dims) if len(dims) < 2 else [region.step, 1]
        ends = zip(dims, steps, strict=True)
        valid = [self.valid(starts[d], region.extents[d] or 1, tensor.shape[d], ranges, k) for d, k in ends]
        valid = [ix.ONE] * (2 - len(valid)) + valid
        others = [(s, n) for s, n, e in zip(starts, tensor.shape, region.extents, strict=True) if e is None]
        valid[0] = self.passing(valid[0], rows, others)
        if len(dims) == 1 and ix.EACH in ix.variables(offset):
            return Window(offset, 1, cols, 1, valid[1], ix.ONE)
        if tensor.strides and len(dims) == 2:
            check_rows(tensor, cols, pitch[dims[0]], (tensor.shape[dims[1]], pitch[dims[1]]), region.span)
        return Window(offset, pitch[dims[0]] * region.step if len(dims) == 2 else cols, rows, cols, valid[0], valid[1])

    def valid(self, start: Expr, extent: int, size: int, ranges: Ranges, step: int) -> Expr:
        """How much of a dimension lies inside; of rows that lie anywhere, all do."""
        if ix.EACH in ix.variables(start):
            return ix.const(extent)
        return self.extent(inside(start, extent, size, ranges, step, self.within))

    def passing(self, valid: Expr, rows: int, places: list[tuple[Expr, int]]) -> Expr:
        """The valid rows of a window at these places of other dimensions: none where one lies behind the end, as those of an
        element loop may, and those of the last vector core."""
        for start, size in places:
            if ix.variables(start) and ix.EACH not in ix.variables(start) and not elements_in(start):
                there = inside(start, 1, size, self.ranges, where=self.within)
                if extremes(start, self.ranges, self.within)[0] < 0:
                    there = ix.maximum(0, ix.minimum(there, start + 1))
                valid = valid if there == ix.ONE else self.extent(ix.minimum(valid, there * rows))
        return valid

    def extent(self, e: Expr) -> Expr:
        """An extent in the form of the first one that equals it."""
        if e.value is not None or e in self.extents:
            return e
        known = known_as(e, (k for k in self.extents if ix.variables(k) <= self.ranges.keys()), self.ranges)
        if known.value is None:
            self.extents.setdefault(known)
        return known

    def load(self, version: Term, w: Window, dtype: DType, span: Span | None) -> Term:
        shape: dict[str, Any] = {"rows": w.rows, "cols": w.cols, "vrows": w.vrows, "vcols": w.vcols}
        return self.make(span, "load", version, w.offset, w.stride, dtype=dtype, **shape)

    def fill(self, value: float | Passed, shape: tuple[int, int], dtype: DType, span: Span | None) -> Term:
        rows, cols = shape
        valid: dict[str, Any] = {"vrows": ix.const(rows), "vcols": ix.const(cols)}
        return self.make(span, "fill", as_number(value), rows=rows, cols=cols, dtype=dtype, **valid)

    def index(self, place: Place, shape: tuple[int, int], span: Span | None, dtype: DType = F32) -> Term:
        """A tile whose elements are an index, which may go with their place in it; in i32 its low bits."""
        rows, cols = shape
        number = self.make(span, "s_index", *place, dtype=dtype)
        return self.make(span, "nest", number, rows=rows, cols=cols, dtype=dtype, vrows=ix.const(rows), vcols=ix.const(cols))

    def cast(self, x: Term, dtype: DType, span: Span | None) -> Term:
        if x.dtype == dtype:
            return x
        if x.op == "fill" and (known := constant_as(x.args[0], x.dtype, dtype)) is not None:
            return self.make(span, "fill", known, like=x, dtype=dtype)
        if x.op == "bcast" and dtype.bits > 8:
            return self.make(span, "bcast", x.args[0], self.cast(x.args[1], dtype, span), like=x, dtype=dtype)
        step = between(x.dtype, dtype)
        if step is not None:
            return self.cast(self.make(span, "cast", x, like=x, dtype=step), dtype, span)
        return self.make(span, "cast", x, like=x, dtype=dtype)

    def unary(self, name: str, x: Term, span: Span | None) -> Term:
        work = self.cast(x, computing(x.dtype), span)
        return self.cast(self.make(span, "unary", name, work, like=work), x.dtype or F32, span)

    def binary(self, name: str, x: Term, y: Term, span: Span | None) -> Term:
        """Operands of equal shape; the wider dtype wins, and bf16 is computed in f32."""
        dtype = promoted(x.dtype, y.dtype)
        (x, y), valid = self.meeting(self.alike(x, y, span), span)
        return self.cast(self.make(span, "binary", name, x, y, like=x, **valid), dtype, span)

    def choose(self, op: str, compared: tuple[Term, Term], pair: tuple[Term, Term], span: Span | None) -> Term:
        """x of `pair` where the first compared is to the second as `op` says, else y; both pairs in their wider dtype."""
        four, valid = self.meeting((*self.alike(*compared, span), *self.alike(*pair, span)), span)
        chosen = self.make(span, "choose", op, *four, like=four[2], **valid)
        return self.cast(chosen, promoted(pair[0].dtype, pair[1].dtype), span)

    def choose_bits(self, bits: Term, pair: tuple[Term, Term], span: Span | None) -> Term:
        """x of `pair` where the bit of an element is 1, else y."""
        (x, y), valid = self.meeting(self.alike(*pair, span), span)
        valid["vrows"] = rows = self.extent(meet(valid["vrows"], valid_rows(bits), x.rows, self.ranges))
        x, y, bits = self.ending(x, rows, None, span), self.ending(y, rows, None, span), self.ending(bits, rows, None, span)
        if valid_cols(bits).value != bits.cols:
            help = "let the tile divide the tensor"
            raise NotSearched("bits that end before their row does are not supported yet", span, help=help)
        chosen = self.make(span, "choose_bits", bits, x, y, like=x, **valid)
        return self.cast(chosen, promoted(pair[0].dtype, pair[1].dtype), span)

    def choose_at(self, holds: Position, pair: tuple[Term, Term], span: Span | None) -> Term:
        """x of `pair` where an element's position is as `holds` says, else y."""
        (x, y), valid = self.meeting(self.alike(*pair, span), span)
        chosen = self.make(span, "choose_at", *holds, x, y, like=x, **valid)
        return self.cast(chosen, promoted(pair[0].dtype, pair[1].dtype), span)

    def alike(self, x: Term, y: Term, span: Span | None) -> tuple[Term, Term]:
        """Both in the dtype that the vector unit works in on them."""
        dtype = computing(promoted(x.dtype, y.dtype))
        return self.cast(x, dtype, span), self.cast(y, dtype, span)

    def meeting(self, xs: tuple[Term, ...], span: Span | None) -> tuple[tuple[Term, ...], dict[str, Any]]:
        """Operands of one shape, none of which ends behind another one unless it is whole, and their result's valid extents."""
        first, *others = xs
        rows, cols = valid_rows(first), valid_cols(first)
        for x in others:
            rows = self.extent(meet(rows, valid_rows(x), x.rows, self.ranges))
            cols = self.extent(meet(cols, valid_cols(x), x.cols, self.ranges))
        return tuple(self.ending(x, rows, cols, span) for x in xs), {"vrows": rows, "vcols": cols}

    def ending(self, x: Term, rows: Expr | None, cols: Expr | None, span: Span | None) -> Term:
        """x, narrowed where it ends behind these extents (None: no matter where) and is not whole."""
        behind = lambda valid, end, full: end and valid.value != full and not surely_equal(valid, end, self.ranges)  # noqa: E731
        rows = rows if behind(valid_rows(x), rows, x.rows) else None
        cols = cols if behind(valid_cols(x), cols, x.cols) else None
        return self.narrowed(x, rows, cols, span)

    def broadcast(self, x: Term, axis: int, count: int, span: Span | None) -> Term:
        """A vector as a tile with `count` columns (axis 1) or rows (axis 0); of one that lies beyond a tensor's end, none."""
        if x.dtype is not None and x.dtype.whole and x.dtype.bits == 8:  # bytes are not repeated: numbers of f16 hold them all
            return self.cast(self.broadcast(self.cast(x, F16, span), axis, count, span), x.dtype, span)
        n, there = ix.const(count), valid_rows(x)
        if axis == 1:
            vrows = x.vcols if there.value == 1 else ix.minimum(valid_cols(x), there * x.cols)
            return self.make(span, "bcast", 1, x, rows=x.cols, cols=count, dtype=x.dtype, vrows=vrows, vcols=n)
        vrows = n if there.value == 1 else there * count
        return self.make(span, "bcast", 0, x, rows=count, cols=x.cols, dtype=x.dtype, vrows=vrows, vcols=x.vcols)

    def pack(self, x: Term, span: Span | None) -> Term:
        """A byte of eight elements each."""
        if valid_cols(x).value != x.cols:
            help = "let the tile divide the tensor"
            raise NotSearched("bits of a row that ends before its tile does are not supported yet", span, help=help)
        return self.make(span, "pack", x, like=x, cols=x.cols // 8, dtype=U8, vcols=ix.const(x.cols // 8))

    def whole(self, e: Whole, xs: list[Term], shape: tuple[int, int]) -> Term:
        """An operation on whole tiles; NotSearched where one of them ends early."""
        self.check_whole(e, xs)
        return self.make(e.span, "whole", e.op, *e.numbers, *xs, rows=shape[0], cols=shape[1], dtype=xs[0].dtype,
                         vrows=ix.const(shape[0]), vcols=ix.const(shape[1]))  # fmt: skip

    @staticmethod
    def check_whole(e: Whole, xs: list[Term]) -> None:
        if any(valid_rows(x).value != x.rows or valid_cols(x).value != x.cols for x in xs):
            padded = hint("pad(A[i, j], 0)", "T.copy(A[i, j], x, pad_value=0)", e.span)
            help = f"let the tile divide the tensor, or load it with a number for what lies beyond its end: {padded}"
            raise NotSearched(f"`{e.op}` of a tile that a tensor's end cuts off is not supported yet", e.span, help=help)

    def bytes(self, x: Term, dtype: DType, span: Span | None) -> Term:
        """The two bytes of each element of 16 bits, or the two numbers of 4 bits of each byte as f16."""
        cols = self.extent(valid_cols(x) * 2)
        if x.dtype is not None and x.dtype.bits == 8:
            return self.make(span, "nibbles", x, like=x, cols=2 * x.cols, dtype=F16, vcols=cols)
        return self.make(span, "bytes", x, like=x, cols=2 * x.cols, dtype=dtype, vcols=cols)

    def reduce(self, name: str, x: Term, axis: int, span: Span | None) -> Term:
        work = self.with_some(self.cast(x, reducing(name, x.dtype), span), REDUCE[name].neutral, axis, span)
        n, valid = (x.rows, x.vrows) if axis == 1 else (x.cols, x.vcols)
        t = self.make(span, "reduce", axis, name, work, rows=1, cols=n, dtype=work.dtype, vrows=ix.ONE, vcols=valid)
        return self.cast(t, x.dtype or F32, span)

    def may_be_none(self, extent: Expr | None) -> bool:
        """Whether so many elements may be none: a window's length is read."""
        return extent is not None and bool(elements_in(extent)) and extremes(extent, self.ranges, self.within)[0] <= 0

    def with_some(self, x: Term, neutral: float, axis: int, span: Span | None) -> Term:
        """A tile that is reduced; one that may have no elements, as a window's length is read, lies in one of neutral ones."""
        n = valid_cols(x) if axis == 1 else valid_rows(x)
        if not self.may_be_none(n):
            return x
        whole, full = self.fill(neutral, (x.rows, x.cols), x.dtype or F32, span), ix.const(x.cols if axis == 1 else x.rows)
        return self.make(span, "put", ix.ZERO, whole, x, like=x, **{"vcols" if axis == 1 else "vrows": full})

    def matmul(self, a: Term, b: Term, ta: bool, tb: bool, span: Span | None) -> Term:
        """f32 product, of i8 in i32; both operands are narrowed to the inner extent that they share."""
        (a, ta), (b, tb) = ((self.turned[x], not t) if x in self.turned else (x, t) for x, t in ((a, ta), (b, tb)))
        depth = a.rows if ta else a.cols
        ka, kb = (valid_rows(a) if ta else valid_cols(a)), (valid_cols(b) if tb else valid_rows(b))
        k = same(ka, kb, depth, self.ranges, "inner extents of this product", span)
        a = self.narrowed(a, k if ta else None, None if ta else k, span)
        b = self.narrowed(b, None if tb else k, k if tb else None, span)
        m, vm = (a.cols, a.vcols) if ta else (a.rows, a.vrows)
        n, vn = (b.rows, b.vrows) if tb else (b.cols, b.vcols)
        dtype = I32 if a.dtype == I8 else F32
        return self.make(span, "matmul", a, b, ta, tb, rows=m, cols=n, dtype=dtype, vrows=vm, vcols=vn)

    def alike_named(self, x: Term, made: Term) -> Term:
        """A term that stands for another one, under its name, as the same window."""
        if x in self.named:
            self.named.setdefault(made, self.named[x])
        if x in self.borders:
            self.borders.setdefault(made, self.borders[x])
        return made

    def narrowed(self, x: Term, vrows: Expr | None, vcols: Expr | None, span: Span | None) -> Term:
        """x with fewer valid rows or columns (None: as they are). TileError where it cannot be made with so many."""
        found = self.with_extents(x, vrows, vcols)
        if isinstance(found, Unlike):
            raise found.error(span)
        return found

    def with_extents(self, x: Term, vrows: Expr | None, vcols: Expr | None) -> Term | Unlike:
        """x with so many valid rows and columns (None: as they are), made of operands that are valid no further themselves;
        or which of those cannot be made with fewer."""
        rows, cols = vrows or valid_rows(x), vcols or valid_cols(x)
        if (rows, cols) == (x.vrows, x.vcols):
            return x
        x = self.as_laid(x)
        match x.op, x.args:
            case "arg", (loop, k) if loop in self.narrowing and self.narrowing[loop].setdefault(k, (rows, cols)) == (rows, cols):
                wanted: list[tuple[Any, Any, Any]] = [(a, None, None) for a in x.args]
            case "proj", _ if (found := self.narrowed_result(x, (rows, cols))) is not None:
                return found
            case "nest", _:
                return self.alike_named(x, self.shorter_nest(x, (rows, cols)))
            case ("load" | "fill" | "put" | "piece" | "whole", _):
                wanted = [(a, None, None) for a in x.args]
            case "choose_bits", (bits, *pair):
                wanted = [(bits, rows, None), *((a, rows, cols) for a in pair)]
            case ("unary" | "binary" | "cast" | "choose" | "choose_at", _):
                wanted = [(a, rows, cols) for a in x.args]
            case "bcast", (axis, v):
                wanted = [(axis, None, None), (v, None, rows if axis == 1 else cols)]
            case "reduce", (axis, name, v):
                wanted = [(axis, None, None), (name, None, None), (v, *((cols, None) if axis == 1 else (None, cols)))]
            case "scaled", (a, scale):
                wanted = [(a, rows, cols // (x.cols // a.cols)), (scale, rows, cols // SCALE_BLOCK)]
            case "matmul", (a, b, ta, tb):
                of_a, of_b = (None, rows) if ta else (rows, None), (cols, None) if tb else (None, cols)
                wanted = [(a, *of_a), (b, *of_b), (ta, None, None), (tb, None, None)]
            case _:
                return Unlike((valid_rows(x), valid_cols(x)), (rows, cols))
        args = []
        for arg, r, c in wanted:
            args.append(self.with_extents(arg, r, c) if isinstance(arg, Term) and (r or c) else arg)
            if isinstance(args[-1], Unlike):
                return args[-1]
        return self.alike_named(x, self.make(self.spans.get(x), x.op, *args, like=x, vrows=rows, vcols=cols))

    def shorter_nest(self, nest: Term, ends: tuple[Expr, Expr]) -> Term:
        """A nest of tiles that end there, too; where not all of them can, or none does, the part of it that is there."""
        again = lambda s, *args, **valid: self.make(self.spans.get(s), s.op, *args, like=s, **valid)  # noqa: E731
        asked = {axis: e for axis, e in enumerate(ends) if e != (valid_rows(nest), valid_cols(nest))[axis]}
        s, ended = ShorterNest(nest.rows, self.with_extents, again).scalar(nest.args[0], asked)
        if s is not None and ended == asked.keys():
            return again(nest, s, vrows=ends[0], vcols=ends[1])
        return self.make(self.spans.get(nest), "piece", ix.ZERO, nest, like=nest, vrows=ends[0], vcols=ends[1])


def check_rows(tensor: Tensor, cols: int, pitch: int, row: tuple[int, int], span: Span | None) -> None:
    """TileError where a window's rows, of tensors with strides, do not lie side by side; `row` is its length and its step."""
    length, step = min(cols, row[0]), row[1]
    if step == 1 and pitch >= length:
        return
    what = f"rows of `{tensor.name}` begin {pitch} elements apart, and are {length} long: they lie over one another"
    if step != 1:
        what = f"the elements of a row of `{tensor.name}` lie {step} apart"
    raise TileError(f"{what}: not supported", span, help="pass a contiguous array: np.ascontiguousarray(x), x.contiguous()")


def valid_rows(x: Term) -> Expr:
    return x.vrows if x.vrows is not None else ix.const(x.rows)


def valid_cols(x: Term) -> Expr:
    return x.vcols if x.vcols is not None else ix.const(x.cols)
