"""What the regions, indices and conditions of a kernel are as values, at the trip and in the blocks that are being built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from types import MappingProxyType

from tile_eg.errors import NotSearched, TileError, attempted
from tile_eg.frontend.hints import hint
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.liveness import Kept
from tile_eg.frontend.ranges import decided, extremes, surely_equal
from tile_eg.frontend.ssa import by_position, columns, outside, pieces
from tile_eg.frontend.ssa.along_rows import refuse_outside, rows_along
from tile_eg.frontend.ssa.branches import as_choices
from tile_eg.frontend.ssa.extents import inside, smaller
from tile_eg.frontend.ssa.parts import Part, part, part_of_whole
from tile_eg.frontend.ssa.positions import Position
from tile_eg.frontend.ssa.row_windows import shared_columns
from tile_eg.frontend.ssa.tiles import Tiles, Window, tile_shape, valid_cols, valid_rows
from tile_eg.frontend.ssa.whole_tiles import transposed
from tile_eg.frontend.windows import lies_across, lies_down
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import BLOCK, EACH, Expr
from tile_eg.ir.index_elements import indices_of, inside_of, with_elements
from tile_eg.ir.seen import indexed
from tile_eg.ir.values import Term, made_of
from tile_eg.ops.types import BF16, F16, F32

Env = dict[str, Term]


class EndedByBranch(NotSearched):
    """How much of a tile is valid depends on a condition."""


STORED_IN_PART = ("put", "piece", "whole", "cast", "unary", "binary", "choose", "choose_at", "reduce", "proj")
"""Terms that are computed whole where they cannot be had of operands that end earlier; a store says itself how much it takes."""


def grid_variables(grid: tuple[tuple[str, int], ...]) -> dict[str, Expr]:
    """Every grid variable in terms of the block index; the first dimension varies fastest."""
    block, out, before = ix.var(BLOCK), {}, 1
    for n, (name, extent) in enumerate(grid):
        index = block // before
        last = n == len(grid) - 1
        out[name] = ix.ZERO if extent == 1 else index if last else index % extent
        before *= extent
    return out


class Regions:
    """The regions of one kernel.

    `env` is what each name holds where the statement at hand stands, `indices` replaces the kernel's variables in index
    expressions, `facts` narrows a loop variable to the trips that are being built. `named` is what terms are called: the name of
    a buffer, and its scope. `rows` are those of the window at hand; `there` tells of the rows of a gathered
    window how many there are. `elsewhere` are the buffers whose tiles are not kept in the memory that the author names.
    `ended` are the rows, columns and elements that the statement at hand takes alone, and that may not exist; `keeping` are the
    targets of statements that take such ones. `rows_alone`: rows that may not exist are such, too, where they are windows of what
    a tile was made of as well; `rows_end` tells that there are any.
    """

    def __init__(self, kernel: kn.Kernel) -> None:
        self.kernel = kernel
        self.tensors = {t.name: indexed(t) for t in kernel.tensors}
        self.buffers: dict[str, kn.Alloc] = {}
        self.blocks = prod(e for _, e in kernel.grid)
        self.tiles = Tiles(ranges={BLOCK: (0, self.blocks - 1)}, shared=shared_columns(kernel.body))
        self.indices = grid_variables(kernel.grid)
        self.env: Env = {}
        self.rows = 1
        self.there: list[Callable[[int], Expr]] = []
        self.facts: dict[str, ix.Interval] = {}
        self.named = self.tiles.named
        self.elsewhere: set[str] = set()
        self.ended: list[by_position.Ended] = []
        self.keeping: set[Kept] = set()
        self.rows_alone = self.rows_end = False
        self.short: dict[Term, frozenset[int]] = {}

    def index(self, e: Expr, span: kn.Span | None = None) -> Expr:
        """An index in terms of the block and of loops, what it reads from buffers as what these were loaded from."""
        return with_elements(ix.substitute(e, self.indices), lambda read: self.element(read, span))

    def element(self, read: Expr, span: kn.Span | None) -> Expr:
        """An element of a tensor or of a buffer, as one of an input."""
        name, place, most, _ = read.args
        if name in self.kernel.wholes:
            return read
        held = self.env.get(name)
        place = inside_of(self.index(place, span), self.count_of(name) - 1)
        indices = self.check_inside(read, span)
        if held is not None and held.op == "given" and not held.args[0].output:
            if self.tensors[name].strides:
                raise TileError(f"indices are read one by one from `{name}`, whose elements do not lie in one run", span)
            self.shorten(indices)
            return ix.read(name, place, most)
        if held is None or held.op != "load" or held.args[0].op != "given" or held.args[0].args[0].output:
            what = "holds what is computed here" if name in self.buffers else "is written here"
            raise NotSearched(
                f"an index is read from `{name}`, which {what}: not supported yet", span,
                help="read it from an input of the kernel, or from a buffer that is loaded from one",
            )  # fmt: skip
        version, offset, stride = held.args
        if EACH in ix.variables(offset):
            raise NotSearched(f"an index is read from `{name}`, whose rows were gathered: not supported yet", span)
        self.shorten_by(held, place, name, span)
        row, col = (ix.ZERO, place) if held.rows == 1 else (place // held.cols, place % held.cols)
        self.check_there(held, row, col, name, span)
        return ix.read(version.args[0].name, offset + row * stride + col, most)

    def decide(self, condition: Expr, span: kn.Span | None, extents: Mapping[str, int] = MappingProxyType({})) -> bool:
        """The truth of a condition on the trips that are being built, at all elements of a loop over `extents`."""
        elements = {v: (0, n - 1) for v, n in extents.items()}
        truth = decided(self.index(condition), self.tiles.ranges | self.facts | elements)
        inside = sorted(ix.variables(condition) & extents.keys())
        if truth is None and inside:
            raise NotSearched(
                f"`{index_text(condition)}` is true for some `{inside[0]}` of this loop and not for others", span,
                help="a loop over rows or elements does the same for each; choose the value: "
                + hint("x[i] = select(i > 0, y[i], z[i])", "x[i] = T.if_then_else(i > 0, y[i], z[i])", span),
            )  # fmt: skip
        if truth is None:
            raise NotSearched(
                f"`{index_text(condition)}` is neither always true nor true on the first trip alone: not supported yet", span,
                help="conditions may single out the first trip of a loop, as `if k == 0` does",
            )  # fmt: skip
        return truth

    def chosen(self, s: kn.If, extents: Mapping[str, int] = MappingProxyType({})) -> tuple[kn.Stmt, ...] | None:
        """A branch whose condition is not the same on the trips that are being built, as choices; None for others."""
        ranges = self.tiles.ranges | self.facts | {v: (0, n - 1) for v, n in extents.items()}
        if decided(self.index(s.condition), ranges) is not None:
            return None
        own = {v: extremes(self.index(ix.var(v)), ranges) for v in self.indices}
        return as_choices(s, self.tensors, {**ranges, **own})

    def truth(self, condition: Expr, extents: Mapping[str, int] = MappingProxyType({})) -> bool | None:
        """The truth of a condition at all elements of a loop over `extents`, and on all trips, else None."""
        elements = {v: (0, n - 1) for v, n in extents.items()}
        facts = {} if elements else self.facts
        return decided(self.index(condition), self.tiles.ranges | facts | elements)

    def check_branch(self, e: kn.Select, x: tuple[Expr, ...], y: tuple[Expr, ...]) -> None:
        """EndedByBranch where the valid rows or columns are not those of `x` and of `y` alike: the branch says which they are."""
        for a, b, what in zip(x, y, ("rows", "columns"), strict=True):
            if not surely_equal(a, b, self.tiles.ranges):
                target = next(arm for arm in (e.y, e.x) if isinstance(arm, kn.Region))
                raise EndedByBranch(
                    f"the valid {what} of `{target.name}` change with this condition: {index_text(a)} or {index_text(b)}", e.span,
                    help="choose a tile that divides the tensor, or load a number for what lies beyond its end: "
                    + hint("pad(A[i, j], 0)", "T.copy(A[i, j], x, pad_value=0)", e.span),
                )  # fmt: skip

    def check_inside(self, read: Expr, span: kn.Span | None) -> ix.Indices:
        """The indices of an element that is read as one. TileError where they lie outside."""
        written = indices_of(read, self.count_of(read.args[0]))
        found = tuple((self.index(e, span), size) for e, size in written)
        ranges = {**self.tiles.ranges, **self.facts, EACH: (0, self.rows - 1)}
        refuse_outside(read.args[0], zip(written, found, strict=True), ranges, self.tiles.within, span)
        return found

    def count_of(self, name: str) -> int:
        """The elements of a tensor or buffer."""
        return prod((self.tensors.get(name) or self.buffers[name]).shape)

    def shorten(self, indices: ix.Indices) -> None:
        """Of rows that lie anywhere, those are there for which an index is, in the dimension of an input along which they go."""
        if (along := rows_along(indices)) is None:
            return
        ranges, within = self.tiles.ranges, self.tiles.within
        first = ix.simplified(along.first, {**ranges, **self.facts}) if len(indices) > 1 else along.first
        self.there.append(lambda rows: inside(first, rows, along.size, ranges, 1, within))

    def shorten_by(self, held: Term, place: Expr, name: str, span: kn.Span | None) -> None:
        """The same for a buffer, where the end of an input may have cut it short."""
        rows, cols = valid_rows(held), valid_cols(held)
        if EACH not in ix.variables(place) or (rows.value, cols.value) == (held.rows, held.cols):
            return
        if held.rows != 1 or place != ix.var(EACH):
            raise TileError(
                f"rows are gathered by a part of `{name}`, which ends at the edge of a tensor: not supported yet", span,
                help=f"use all of `{name}`, or load it so that it lies inside",
            )  # fmt: skip
        self.there.append(lambda _: cols)

    def check_there(self, held: Term, row: Expr, col: Expr, name: str, span: kn.Span | None) -> None:
        """NotSearched where the end of an input may have cut off an element of a buffer that is read as an index: a branch
        that leaves it out is a choice here, so that it would be read."""
        if EACH in ix.variables(row) | ix.variables(col):
            return
        ranges = {**self.tiles.ranges, **self.facts}
        ends = (row, valid_rows(held), held.rows), (col, valid_cols(held), held.cols)
        if any(n.value != most and extremes(at - n, ranges, self.tiles.within)[1] >= 0 for at, n, most in ends):
            message = f"the search has no form for an index that is read from `{name}` where its tensor may have ended"
            raise NotSearched(message, span, help=f"let the loop end with the tensor, or `{name}` lie inside of it")

    def located(self, r: kn.Region) -> kn.Region:
        return replace(r, starts=tuple(self.index(s, r.span) for s in r.starts))

    def store(self, s: kn.Assign, value: Term, env: Env) -> Term:
        """The next version of the target tensor."""
        tensor = self.tensors[s.target.name]
        t, w = self.tiles, self.window(s.target)
        value = t.cast(value, tensor.dtype, s.span)
        if lies_across(s.target, tensor):
            value = columns.stored(t, value, s.span)
        rows = t.extent(smaller(valid_rows(value), w.vrows, t.ranges))
        cols = t.extent(smaller(valid_cols(value), w.vcols, t.ranges))
        value = self.for_window(value, rows, cols, s.span)
        made = t.make(s.span, "accumulate" if s.atomic else "store", env[tensor.name], w.offset, w.stride, value)
        ends = (rows, w.vrows), (cols, w.vcols)
        self.short[made] = frozenset(a for a, pair in enumerate(ends) if not surely_equal(*pair, t.ranges))
        return made

    def for_window(self, value: Term, rows: Expr, cols: Expr, span: kn.Span | None) -> Term:
        """A value for a window with so many rows and columns. It is made of operands that end there, too; where it cannot, and is
        valid so far, so much of it is stored: of a product by way of a tile in UB, as L0C holds as many rows as were made."""
        t = self.tiles
        value = t.as_laid(value)
        product = any(x.op == "matmul" for x in made_of((value,)))
        if value.op == "nest":  # the store says how much of it is there
            return t.make(span, "nest", *value.args, like=value, vrows=rows, vcols=cols)
        found = t.with_extents(value, rows, cols)
        if isinstance(found, Term):
            return found
        reaches = ((rows, valid_rows(value), value.rows), (cols, valid_cols(value), value.cols))
        apart = any(has not in (wanted, ix.const(size)) or (product and has.value != size) for wanted, has, size in reaches)
        if apart and (product or value.op not in STORED_IN_PART):
            raise found.error(span)
        value = pieces.copied(t, value, span) if product else value
        return t.make(span, value.op, *value.args, like=value, vrows=rows, vcols=cols)

    def window(self, r: kn.Region, tensor: kn.Tensor | None = None) -> Window:
        """Where a region lies in its tensor, or in that tensor's transposed form."""
        tensor = tensor or self.tensors[r.name]
        self.there, self.rows = [], max((e or 1 for e in r.extents), default=1)
        if lies_across(r, tensor):  # a column: rows of one element
            if r.extents[-1] is not None:
                raise TileError(f"the elements of a vector of `{r.name}` lie apart, with others between: not supported", r.span)
            r = replace(r, extents=(*r.extents[:-1], 1))
        found = self.tiles.window(tensor, self.located(r), self.tiles.ranges)
        for there in self.there:
            found.vrows = self.tiles.extent(smaller(found.vrows, there(found.rows), self.tiles.ranges))
        if r.counts:
            found.vrows, found.vcols = self.counted(r, found.vrows, found.vcols)
        return found

    def counted(self, r: kn.Region, rows: Expr, cols: Expr) -> tuple[Expr, Expr]:
        """The valid rows and columns of a region, of which no more than its `counts` are meant."""
        valid = [rows, cols][2 - max(1, len(r.shape)) :]
        counts = [c for c, e in zip(r.counts, r.extents, strict=True) if e is not None][-len(valid) :]
        for n, count in enumerate(counts):
            if count is not None:
                there = ix.simplified(ix.maximum(0, self.index(count, r.span)), self.tiles.ranges)
                valid[n] = self.tiles.extent(smaller(valid[n], there, self.tiles.ranges))
        return (rows, cols)[: 2 - len(valid)] + (*valid,)  # type: ignore[return-value]

    def is_whole(self, r: kn.Region) -> bool:
        """Whether the region is all of its buffer, in its rows and columns (the only column is a vector, so a row); an index
        stands for all of a dimension of one element."""
        shape = self.buffers[r.name].shape
        all_of_it = all(e == n or (e is None and n == 1) for e, n in zip(r.extents, shape, strict=True))
        return all_of_it and all(s == ix.ZERO for s in r.starts) and tile_shape(r.shape) == tile_shape(shape)

    def region(self, r: kn.Region, env: Env) -> Term:
        if r.name in self.tensors:
            if lies_down(r, self.tensors[r.name]):
                return self.turned(r, env)
            loaded = self.tiles.load(env[r.name], self.window(r), self.tensors[r.name].dtype, r.span)
            return columns.taken(self.tiles, loaded, r.span) if lies_across(r, self.tensors[r.name]) else loaded
        held = self.held(r.name, env, r.span)
        found = held if self.is_whole(r) else by_position.as_vector(self.tiles, self.piece(r, held), r)
        if r.counts:
            return self.tiles.narrowed(found, *self.counted(r, valid_rows(found), valid_cols(found)), r.span)
        return found

    def turned(self, r: kn.Region, env: Env) -> Term:
        """A window whose columns lie in runs: an operand of a product, which takes them as rows. TileError for anything else."""
        tensor = self.tensors[r.name]
        i, j = (d for d, e in enumerate(r.extents) if e is not None)
        order = [{i: j, j: i}.get(d, d) for d in range(len(r.extents))]
        turned = lambda each: tuple(each[d] for d in order)  # noqa: E731
        if tensor.dtype not in (F16, BF16, F32) or r.step != 1 or any(EACH in ix.variables(self.index(s)) for s in r.starts):
            raise TileError(f"the columns of `{r.name}` lie in runs: not supported for {tensor.dtype}, or rows apart", r.span)
        region = replace(r, starts=turned(r.starts), extents=turned(r.extents), counts=turned(r.counts) if r.counts else ())
        window = self.window(region, replace(tensor, shape=turned(tensor.shape), strides=turned(tensor.strides)))
        loaded = self.tiles.load(env[r.name], window, tensor.dtype, r.span)
        made = transposed(self.tiles, loaded, kn.Whole("transpose", (r,), (0, 0), r.span))
        self.tiles.laid[made] = lambda: self.not_turned(r)
        return made

    @staticmethod
    def not_turned(r: kn.Region) -> Term:
        raise TileError(f"the columns of `{r.name}` lie in runs, and it is not an operand of a product: not supported", r.span)

    def is_window(self, r: kn.Region) -> bool:
        """Whether a region is a window of a tensor whose rows are runs of it."""
        tensor = self.tensors.get(r.name)
        return tensor is not None and not lies_across(r, tensor) and not lies_down(r, tensor)

    def padded(self, r: kn.Region, value: float, env: Env) -> Term:
        """A window of a tensor with a number for what it does not have."""
        window = outside.Padded(env[r.name], self.tensors[r.name], self.located(r), value)
        return outside.window(self.tiles, window, r.span)

    def held(self, name: str, env: Env, span: kn.Span | None) -> Term:
        """What a buffer holds. What no statement has written begins as 0: it is in the way of a choice or of other parts, and
        not read."""
        buffer = self.buffers[name]
        return env.get(name) or self.tiles.fill(0.0, tile_shape(buffer.shape), buffer.dtype, span)

    def place(self, r: kn.Region) -> Part:
        """Where a region lies in its buffer, plain indices being one row or column."""
        places = [(self.index(start, r.span), extent or 1) for start, extent in zip(r.starts, r.extents, strict=True)]
        (row, rows), (col, cols) = [(ix.ZERO, 1)] * (2 - len(places)) + places
        return Part(row, col, rows, cols, r.step)

    def piece(self, r: kn.Region, t: Term) -> Term:
        """A part of a tile: windows of what it was made of, a piece of what was computed, or what stands alone in it."""
        p = self.place(r)
        inside = by_position.lies_inside(t, p, self.tiles.ranges | self.facts, self.tiles.within)
        ended = by_position.ends_before(t, p, r.name, self.tiles.ranges | self.facts, self.tiles.within)
        self.rows_end = self.rows_end or bool(ended)
        if inside and not (p.cols == 1 and t.cols > 1) and not (ended and self.rows_alone):
            taken = part_of_whole if self.stands(r) else part
            found = attempted(lambda: taken(self.tiles, t, p, r.name, r.span))
            if not isinstance(found, TileError):
                return found
            if not by_position.is_piece(t, p):
                raise found
        self.ended += ended
        return by_position.taken(self.tiles, t, p, r.name, r.span)

    def where_there(self, value: Term, target: kn.Region, env: Env) -> Term:
        """What a statement gives a part of a buffer: what stands there, where a tensor's end cuts off an element that it takes.
        Where the end cuts off the target as well it matters not."""
        ended, self.ended = self.ended, []
        if not ended:
            return value
        if target.name not in env:
            by_position.check_exists(ended, self.tiles.ranges, self.tiles.within, target.span)
        own, before = self.place(target), self.region(target, env)
        for e in ended:
            if e.place in (own.row, own.col):
                continue
            self.keeping.add((target.name, target.span))
            cut = before
            for holds, first in e.arms:
                cut = self.tiles.choose_at(holds, (cut, value) if first else (value, cut), target.span)
            value = self.tiles.choose_at(Position("lt", 0, 0, e.extent - e.place), (value, cut), target.span)
        return value

    def refuse_ended(self, target: kn.Region) -> None:
        """NotSearched where what a tensor's end cuts off is stored to another tensor, in a place that does not go with it."""
        ended, self.ended = self.ended, []
        own = frozenset().union(*(ix.variables(self.index(s)) for s in target.starts if ended))
        if any(not ix.variables(e.place) & own for e in ended):
            what = "the search has no form for a store of an element that a tensor's end may have cut off"
            raise NotSearched(what, target.span, help="let the loop end with the tensor")

    def stands(self, r: kn.Region) -> bool:
        """Whether a loop goes through the parts of a buffer that it does not write."""
        return False

    def filled(self, r: kn.Region, value: Term, env: Env, step: int = 1) -> Term:
        """The tile of a buffer with a value in a window of it, whose columns are `step` apart; what nobody wrote before is 0."""
        old, p = self.held(r.name, env, r.span), self.place(r)
        value = self.tiles.cast(value, self.buffers[r.name].dtype, r.span)
        self.elsewhere.add(r.name)
        if step == 1 and by_position.is_piece(old, p) and not self._in_one_run(old, value, p):
            return by_position.placed(self.tiles, old, value, p, r.name, r.span)
        if (value.rows, value.cols) != (p.rows, p.cols):
            raise TileError(f"a window of {p.rows} x {p.cols} of `{r.name}` cannot hold {value.rows} x {value.cols}", r.span)
        self.check_window(r, (p.row, p.col, p.rows, (p.cols - 1) * step + 1))
        window = pieces.Window(p.row, p.col, p.rows, p.cols, step)
        return pieces.replaced(self.tiles, old, value, window, r.name, r.span)

    def _in_one_run(self, old: Term, value: Term, p: Part) -> bool:
        """Whether a row or more of a tile may be copied into their place, with zeros beyond the end of a tensor."""
        fits = (value.rows, value.cols) == (p.rows, p.cols) and pieces.dense(old) and pieces.may_be_padded(value)
        inside = by_position.lies_inside(old, p, self.tiles.ranges | self.facts, self.tiles.within)
        return fits and inside and pieces.aligned(p.row * old.cols + p.col, old)

    def check_window(self, r: kn.Region, window: tuple[Expr, Expr, int, int]) -> None:
        """TileError where a window that is written passes the end of its buffer."""
        row, col, rows, cols = window
        shape = tile_shape(self.buffers[r.name].shape)
        for start, extent, size in ((row, rows, shape[0]), (col, cols, shape[1])):
            low, high = extremes(start, {**self.tiles.ranges, **self.facts}, self.tiles.within)
            if low < 0 or high + extent > size:
                where = f"{low} to {high + extent - 1}" if low < high else f"{low} to {low + extent - 1}"
                raise TileError(f"elements {where} of a dimension of `{r.name}`, which has {size}, are written", r.span)
