"""Expressions of tiles as value terms: numbers, indices and vectors take the shape of what they stand beside."""

from __future__ import annotations

from functools import partial

from tile_eg.errors import NotSearched
from tile_eg.frontend.ssa import pieces, positions, whole_reductions, whole_tiles
from tile_eg.frontend.ssa.by_position import chosen_by
from tile_eg.frontend.ssa.regions import Env, Regions
from tile_eg.frontend.ssa.scaled import scaled
from tile_eg.frontend.ssa.tiles import tile_shape, valid_cols, valid_rows
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.passed import as_number
from tile_eg.ir.values import Term
from tile_eg.ops.types import F32, I32, U32, WHOLE, DType


class Expressions(Regions):
    """Converts the expressions of one kernel. `known` are the terms of what several parts of a statement have in common."""

    def __init__(self, kernel: kn.Kernel) -> None:
        super().__init__(kernel)
        self.known: dict[tuple[int, tuple[int, int], DType], tuple[kn.TileExpr, Term]] = {}

    def value(self, e: kn.TileExpr, env: Env, shape: tuple[int, int], dtype: DType) -> Term:
        """The term of a whole statement's expression, as `tile`."""
        self.known = {}
        return self.tile(e, env, shape, dtype)

    def tile(self, e: kn.TileExpr, env: Env, shape: tuple[int, int], dtype: DType) -> Term:
        """The term of an expression that stands where a tile of this shape does; `dtype` is what a bare number becomes.

        It is made once, but where what it takes alone may not exist, as that is noted each time.
        """
        key, ended = (id(e), shape, dtype), self.ended
        if key in self.known:
            return self.known[key][1]
        before, term = len(ended), self.made(e, env, shape, dtype)
        if self.ended is ended and len(ended) == before:
            self.known[key] = e, term
        return term

    def made(self, e: kn.TileExpr, env: Env, shape: tuple[int, int], dtype: DType) -> Term:
        t = self.tiles
        match e:
            case kn.Number():
                return t.fill(e.value, shape, dtype, e.span)
            case kn.Index():
                return t.index(positions.number(e, self.index(e.value), (None, None), {}, t.ranges), shape, e.span)
            case kn.Region():
                return self.region(e, env)
            case kn.Unary():
                return t.unary(e.op, self.tile(e.x, env, shape, dtype), e.span)
            case kn.Binary():
                return t.binary(e.op, *self.pair(e.x, e.y, env, shape, dtype), e.span)
            case kn.Cast(dtype=wanted, x=kn.Index(value=value)) if wanted in (I32, U32):
                place = positions.whole_number(self.index(value), (None, None), {}, e.span)
                return t.cast(t.index(place, shape, e.span, I32), wanted, e.span)
            case kn.Cast():
                return t.cast(self.tile(e.x, env, shape, e.dtype), e.dtype, e.span)
            case kn.Pack():
                return t.pack(self.tile(e.x, env, (shape[0], 8 * shape[1]), F32), e.span)
            case kn.Pad() if e.ends:
                raise NotSearched("the search has no form for elements beside their tensor, one by one", e.span)
            case kn.Pad(x=kn.Region() as r) if self.is_window(r):
                return self.padded(r, e.value, env)
            case kn.Pad():
                return pieces.padded(t, self.tile(e.x, env, shape, dtype), e.value, e.span)
            case kn.Whole():
                shapes = [self.shape_of(x) for x in e.xs]
                xs = [self.tile(x, env, tile_shape(s), dtype) for x, s in zip(e.xs, shapes, strict=True)]
                return whole_tiles.made(t, whole_tiles.of_two_axes(e, len(shapes[0])), xs, shape)
            case kn.Bytes():
                return t.bytes(self.tile(e.x, env, (shape[0], shape[1] // 2), dtype), e.dtype, e.span)
            case kn.Broadcast():
                vector = (1, shape[0] if e.axis == 1 else shape[1])
                return t.broadcast(self.tile(e.x, env, vector, dtype), e.axis, shape[e.axis], e.span)
            case kn.Reduce():
                return self.reduce(e, env)
            case kn.MatMul():
                return self.product(e, env)
            case kn.Scaled():
                return self.scaled(e, env)
            case kn.Select():
                return self.select(e, env, shape, dtype)
            case kn.Choose(op=kn.BIT):
                bits = self.tile(e.a, env, (shape[0], shape[1] // 8), dtype)
                return t.choose_bits(bits, self.pair(e.x, e.y, env, shape, dtype), e.span)
            case kn.Choose():
                compared = self.pair(e.a, e.b, env, shape, dtype)
                return t.choose(e.op, compared, self.pair(e.x, e.y, env, shape, dtype), e.span)

    def select(self, e: kn.Select, env: Env, shape: tuple[int, int], dtype: DType) -> Term:
        """One of two tiles: the one, where the condition is known, else a choice that is made at run time."""
        truth = self.truth(e.condition)
        if truth is not None:
            return self.tile(e.x if truth else e.y, env, shape, dtype)
        x, y, c = positions.parts(e)
        holds = positions.position(self.index(c), (None, None), {}, self.tiles.ranges, e.span)
        pair = self.arms(holds, x, y, env, shape, dtype)
        if e.branch:
            full = tuple(map(ix.const, shape))
            self.check_branch(e, *(full if isinstance(arm, kn.Number) else (valid_rows(t), valid_cols(t))
                                   for arm, t in zip((x, y), pair, strict=True)))  # fmt: skip
        return self.tiles.choose_at(holds, pair, e.span)

    def arms(
        self, holds: positions.Position, x: kn.TileExpr, y: kn.TileExpr, env: Env, shape: tuple[int, int], dtype: DType
    ) -> tuple[Term, Term]:
        """The two arms of a choice by indices."""
        one, other = (partial(self.tile, arm, env, shape, dtype) for arm in (x, y))
        return chosen_by(self, holds, partial(self.pair, x, y, env, shape, dtype), one, other)

    def pair(self, a: kn.TileExpr, b: kn.TileExpr, env: Env, shape: tuple[int, int], dtype: DType) -> tuple[Term, Term]:
        """Two operands; a number takes the other's dtype and extents."""
        if isinstance(a, kn.Number):
            y = self.tile(b, env, shape, dtype)
            return self.number(a, y), y
        x = self.tile(a, env, shape, dtype)
        if isinstance(b, kn.Number):
            return x, self.number(b, x)
        y = self.tile(b, env, shape, x.dtype or dtype)
        return self.spread(x, (y.rows, y.cols), a.span), self.spread(y, (x.rows, x.cols), b.span)

    def spread(self, x: Term, shape: tuple[int, int], span: kn.Span | None) -> Term:
        """One element as a tile of this shape; anything else as it is."""
        if (x.rows, x.cols) != (1, 1) or shape == (1, 1):
            return x
        row = self.tiles.broadcast(x, 1, shape[1], span)
        return row if shape[0] == 1 else self.tiles.broadcast(row, 0, shape[0], span)

    def number(self, n: kn.Number, other: Term) -> Term:
        return self.tiles.make(n.span, "fill", as_number(n.value), like=other)

    def reduce(self, e: kn.Reduce, env: Env) -> Term:
        shape = self.shape_of(e.x)
        x = self.tile(e.x, env, tile_shape(shape), F32)
        axis = 1 if len(shape) == 1 else e.axis
        if x.dtype in WHOLE:
            return whole_reductions.reduced(self.tiles, e.op, x, axis, e.span)
        return self.tiles.reduce(e.op, x, axis, e.span)

    def scaled(self, e: kn.Scaled, env: Env) -> Term:
        """An operand of a product with scales."""
        x, scale = (self.tile(part, env, tile_shape(self.shape_of(part)), F32) for part in (e.x, e.scale))
        return scaled(self.tiles, x, scale, e.packed, e.span)

    def product(self, e: kn.MatMul, env: Env) -> Term:
        a = self.tile(e.a, env, tile_shape(self.shape_of(e.a)), F32)
        b = self.tile(e.b, env, tile_shape(self.shape_of(e.b)), F32)
        x, y = pieces.of_one_depth(self.tiles, (a, e.transpose_a), (b, not e.transpose_b), e.span)
        self.elsewhere |= {self.named[t][0] for t, padded in ((a, x), (b, y)) if t is not padded and t in self.named}
        return self.tiles.matmul(x, y, e.transpose_a, e.transpose_b, e.span)

    def shape_of(self, e: kn.TileExpr) -> tuple[int, ...]:
        from tile_eg.frontend.windows import known_shape, spread_shape

        return known_shape(e) or spread_shape(e) or ()
