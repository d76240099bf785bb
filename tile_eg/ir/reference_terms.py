"""The meaning of value terms with bounds: what each tile should hold in each trip, and how far roundings may take it from that.

The terms are gone through as `reference_values` does it; the operations, and what they do to bounds, are those of
`reference_bounds`. So a tile inside a kernel is judged as its outputs are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from tile_eg.ir import accuracy as ac
from tile_eg.ir import arithmetic as ar
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir import rounding as rd
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.reference import Tile
from tile_eg.ir.reference_bounds import BoundedBlock, Expected, Scales, spread
from tile_eg.ir.reference_places import Array
from tile_eg.ir.reference_values import Dependences, Run
from tile_eg.ir.values import Term, Values, accumulates, first_version, reachable
from tile_eg.ops.records import record
from tile_eg.ops.types import packed_in

Trips = tuple[tuple[str, int], ...]
"""The trips that a value is of: loops' variables, outermost loop first."""
Observer = Callable[[Term, Trips, Expected], None]
"""Is told a term, its trips, and what exists of its value."""


@record
class Version:
    """A tensor's elements in one run, their spread (None: they are exact), and what has been written over them since."""

    flat: Array
    spread: Array | None = None
    patches: tuple[tuple[Array, Array, Array], ...] = ()

    def at(self, places: Array) -> tuple[Array, Array]:
        """The elements at these places, and their spread."""
        data = self.flat[places]
        known = rd.exact(places.shape) if self.spread is None else self.spread[:, places].astype(np.float64)
        for written, values, spreads in self.patches:
            order = np.argsort(written)
            found = np.minimum(np.searchsorted(written, places, sorter=order), written.size - 1)
            there = written[order[found]] == places if written.size else np.zeros(places.shape, bool)
            data = np.where(there, values[order[found]], data)
            known = np.where(there, spreads[:, order[found]], known)
        return data, known

    def written(self, places: Array, values: Array, spreads: Array) -> Version:
        """The version with these elements, one for each place."""
        return replace(self, patches=(*self.patches, (places.reshape(-1), values.reshape(-1), spreads.reshape(2, -1))))

    def settled(self) -> Version:
        """The same without patches."""
        if not self.patches:
            return self
        flat, known = self.flat.copy(), np.zeros((2, self.flat.size), np.float32) if self.spread is None else self.spread.copy()
        for places, values, spreads in self.patches:
            flat[places], known[:, places] = values, spreads
        return Version(flat, known)


class Meaning:
    """What the tiles of one form of a kernel should hold on these inputs. `shared`: what an earlier phase has stored."""

    def __init__(
        self, values: Values, kernel: kn.Kernel, inputs: Mapping[str, Array], shared: Mapping[str, Version] | None = None
    ) -> None:
        self.values, self.scales, self.dependences = values, Scales.of(kernel), Dependences(values)
        self.outputs = [first_version(o).args[0] for o in values.outputs]
        added = {t.name for t, o in zip(self.outputs, values.outputs, strict=True) if accumulates(o)}
        self.begun = {t.name: _begun(t, inputs, t.name in added) for t in values.in_gm} | dict(shared or {})

    @cached_property
    def terms(self) -> frozenset[Term]:
        """Every value of this form."""
        return frozenset(reachable(self.values))

    def loops_of(self, t: Term) -> tuple[str, ...]:
        """The variables of the loops that decide over a term, outermost first."""
        loop, out = self.dependences.home(t), list[str]()
        while loop:
            out.append(self.values.variables[loop])
            loop = self.values.parents[loop]
        return tuple(reversed(out))

    def observe(self, tile: int, observer: Observer | None = None) -> None:
        """Tells the observer every value of one tile of the grid, in each trip. What the tile stores is then there for others."""
        run = BoundedRun(self.values, self.dependences, self.begun, tile, self.scales, observer, self.loops_of)
        with np.errstate(all="ignore"):
            done = {t.name: run.term(o) for t, o in zip(self.outputs, self.values.outputs, strict=True)}
        self.begun = self.begun | {name: version.settled() for name, version in done.items()}

    @property
    def stored(self) -> dict[str, Version]:
        """The outputs as far as tiles are done."""
        return {t.name: self.begun[t.name] for t in self.outputs}


def _begun(t: kn.Tensor, inputs: Mapping[str, Array], added: bool) -> Version:
    dtype = numpy_dtype(t.dtype)
    given = t.name in inputs
    flat = np.array(inputs[t.name], dtype) if given else np.full(t.shape, 0 if added else ar.nothing(dtype), dtype)
    return Version(flat.reshape(-1))


class BoundedRun(Run):
    """Evaluates terms of one tile of the grid; each gives a `Tile` with its spread, a version of a tensor a `Version`."""

    def __init__(
        self, values: Values, dependences: Dependences, begun: Mapping[str, Version], tile: int, scales: Scales,
        observer: Observer | None = None, loops: Callable[[Term], Iterable[str]] = lambda t: (),
    ) -> None:  # fmt: skip
        arrays = {name: version.flat for name, version in begun.items()}
        super().__init__(values, dependences, arrays, tile)
        self.begun, self.observer, self.loops, self.does = begun, observer, loops, BoundedBlock({}, {}, {}, scales)

    def term(self, t: Term) -> Any:
        known = self.results.setdefault(self.dependences.home(t), {})
        if t in known:
            return known[t]
        result = super().term(t)
        if self.observer and isinstance(result, Tile):
            rows, cols = self.valid(t)
            allowed = ac.SIDES * rd.total(spread(result))
            self.observer(t, self.trips(self.loops(t)), Expected(result.data[:rows, :cols], allowed[:rows, :cols]))
        return result

    def trips(self, names: Iterable[str]) -> Trips:
        """The trips of loops."""
        return tuple((name, self.indices[name]) for name in names)

    def masked(self, t: Term, x: Any) -> Any:
        rows, cols = self.valid(t)
        assert x.data.shape == (t.rows, t.cols), f"{t.op} gives {x.data.shape}, not {(t.rows, t.cols)}"
        if (rows, cols) == x.data.shape:
            return x
        outside = np.ones(x.data.shape, bool)
        outside[:rows, :cols] = False
        data = np.where(outside, ar.nothing(x.data.dtype), x.data).astype(x.data.dtype)
        return Tile(data, spread=np.where(outside, 0, spread(x)))

    def inner(self, t: Term) -> Any:
        rows, cols = self.valid(t)
        return self.term(t).taken((slice(0, rows), slice(0, cols)))

    def within_tile(self, t: Term, x: Tile) -> Tile:
        """What is valid of a tile as all of it."""
        out = np.full((t.rows, t.cols), ar.nothing(x.data.dtype), x.data.dtype)
        known = rd.exact(out.shape)
        data, spreads = np.atleast_2d(x.data), spread(x).reshape(2, *np.atleast_2d(x.data).shape)
        out[: data.shape[0], : data.shape[1]], known[:, : data.shape[0], : data.shape[1]] = data, spreads
        return Tile(out, spread=known)

    # tiles

    def _load(self, t: Term) -> Any:
        version, offset, stride = t.args
        rows, cols = self.valid(t)
        return self.within_tile(t, Tile(*_found(self.term(version), self.rows(offset, stride, rows) + np.arange(cols))))

    def _fill(self, t: Term) -> Any:
        return Tile(super()._fill(t))

    def _matmul(self, t: Term) -> Any:
        a, b, ta, tb = t.args
        x, y = self.inner(a), self.inner(b)
        x, y = (x.flipped if ta else x), (y.flipped if tb else y)
        depth = min(x.data.shape[1], y.data.shape[0])
        every, deep = slice(None), slice(0, depth)
        return self.within_tile(t, self.does.product(x.taken((every, deep)), y.taken((deep, every))))

    def _scaled(self, t: Term) -> Any:
        x, scale = t.args
        assert t.dtype is not None
        return self.does.scaled(self.term(x), self.term(scale), packed_in(t.dtype))

    def _unary(self, t: Term) -> Any:
        return self.does.unary(t.args[0], self.term(t.args[1]))

    def _binary(self, t: Term) -> Any:
        return self.does.binary(t.args[0], *self.operands(*t.args[1:]))

    def operands(self, *terms: Term) -> list[Tile]:
        """Two operands, of which one that is the same number everywhere is a number."""
        tiles = [self.term(x) for x in terms]
        numbers = [x.op == "fill" for x in terms]
        if sum(numbers) == 1:
            at = numbers.index(True)
            tiles[at] = Tile(tiles[at].data[0, 0], number=True)
        return tiles

    def _bcast(self, t: Term) -> Any:
        axis, v = t.args
        x = self.term(v).flipped if axis == 1 else self.term(v)
        data = np.broadcast_to(x.data, (t.rows, t.cols)).copy()
        return Tile(data, spread=rd.repeated(spread(x), data.shape))

    def _reduce(self, t: Term) -> Any:
        axis, name, x = t.args
        return self.within_tile(t, self.does.reduced(name, self.inner(x), axis))

    def _cast(self, t: Term) -> Any:
        return self.does.cast(self.term(t.args[0]), numpy_dtype(_dtype(t)))

    def _pack(self, t: Term) -> Any:
        return self.does.packed(self.term(t.args[0]))

    def _bytes(self, t: Term) -> Any:
        return self.does.bytes(self.term(t.args[0]), numpy_dtype(_dtype(t)))

    def _piece(self, t: Term) -> Any:
        at, x = self.at(t.args[0]), self.term(t.args[1])
        return _each(lambda part: ar.piece(part, at, (t.rows, t.cols)), x)

    def _panel(self, t: Term) -> Any:
        at, x = self.at(t.args[0]), self.term(t.args[1])
        return _each(lambda part: ar.panel(part, at, t.rows), x)

    def _put(self, t: Term) -> Any:
        at, x, y = self.at(t.args[0]), self.term(t.args[1]), self.inner(t.args[2])
        parts = (ar.put(a, b, at) for a, b in zip(spread(x), spread(y), strict=True))
        return Tile(ar.put(x.data, y.data, at), spread=np.stack(list(parts)))

    def _whole(self, t: Term) -> Any:
        op, i, j, *xs = t.args
        done = self.does.whole(kn.Whole(op, (), (i, j)), list(map(self.term, xs)))
        return Tile(done.data.reshape(t.rows, t.cols), spread=spread(done).reshape(2, t.rows, t.cols))

    def _choose_bits(self, t: Term) -> Any:
        bits, x, y = map(self.term, t.args)
        return self.does.chosen(ar.bits_of(bits.data)[:, : t.cols], x, y)

    def _choose(self, t: Term) -> Any:
        op, *four = t.args
        return self.does.compared(op, *map(self.term, four))

    def _choose_at(self, t: Term) -> Any:
        op, i, j, bound, x, y = t.args
        return self.does.chosen(self.holds(op, (i, j), bound, (t.rows, t.cols)), self.term(x), self.term(y))

    def holds(self, op: str, steps: tuple[int, int], bound: ix.Expr, shape: tuple[int, int]) -> Array:
        """Where a comparison of positions holds in a tile."""
        yes, no = np.ones(shape, bool), np.zeros(shape, bool)
        return ar.choose_at(op, steps, self.at(bound), yes, no)

    # scalar expressions

    def _nest(self, t: Term) -> Any:
        x = self.scalar(t.args[0], t.rows, t.cols)
        data = np.broadcast_to(x.data, (t.rows, t.cols)).copy()
        return Tile(data, spread=rd.repeated(spread(x), data.shape))

    def scalar(self, s: Term, rows: int, cols: int) -> Any:
        args = s.args
        match s.op:
            case "elem" | "elem_col":
                return self.term(args[0])
            case "elem_row":
                return self.term(args[0]).flipped
            case "number":
                return Tile(np.asarray(self.number(args[0]), numpy_dtype(_dtype(s))), number=True)
            case "s_unary":
                return self.does.unary(args[0], self.scalar(args[1], rows, cols))
            case "s_binary":
                return self.does.binary(args[0], *(self.scalar(x, rows, cols) for x in args[1:]))
            case "s_choose":
                four = [_full(self.scalar(x, rows, cols), (rows, cols)) for x in args[1:]]
                return self.does.compared(args[0], *four)
            case "s_choose_at":
                op, i, j, bound, *pair = args
                x, y = (_full(self.scalar(p, rows, cols), (rows, cols)) for p in pair)
                return self.does.chosen(self.holds(op, (i, j), bound, (rows, cols)), x, y)
            case "s_index":
                i, j, start = args
                return Tile(ar.positions(i, j, rows, cols, self.at(start)))
            case "s_cast":
                return self.does.cast(self.scalar(args[0], rows, cols), numpy_dtype(_dtype(s)))
            case "s_reduce":
                return self.row_reduction(s, rows)
        raise AssertionError(f"{s.op} is not a scalar expression")

    def row_reduction(self, s: Term, rows: int) -> Any:
        name, x = s.args
        tile = _full(self.scalar(x, s.rows, s.cols), (s.rows, s.cols))
        valid_rows, valid_cols = self.valid(s)
        found = self.does.reduced(name, tile.taken((slice(0, valid_rows), slice(0, valid_cols))), 1)
        whole = self.within_tile(replace(s, rows=1, cols=s.rows), found)
        return whole.flipped if rows == s.rows else whole

    # tensors

    def _given(self, t: Term) -> Any:
        return self.begun[t.args[0].name]

    def _store(self, t: Term) -> Any:
        version, offset, stride, value = t.args
        rows, cols = self.valid(value)
        x = self.does.cast(self.inner(value), self.term(version).flat.dtype)
        return self.term(version).written(self.rows(offset, stride, rows) + np.arange(cols), x.data, spread(x))

    def _accumulate(self, t: Term) -> Any:
        version, offset, stride, value = t.args
        rows, cols = self.valid(value)
        out, x = self.term(version), self.inner(value)
        for place, n in zip(self.rows(offset, stride, rows) + np.arange(cols), range(rows), strict=True):  # rows may meet
            row = self.does.binary("add", Tile(*_found(out, place)), x.taken((n,)))
            out = out.written(place, row.data, spread(row))
        return out


def _found(version: Version, places: Array) -> tuple[Array, None, bool, Array]:
    """The fields of a tile of these elements."""
    data, known = version.at(places)
    return data, None, False, known


def _each(change: Callable[[Array], Array], x: Tile) -> Tile:
    """A tile whose elements are moved."""
    return Tile(change(x.data), spread=np.stack([change(part) for part in spread(x)]))


def _full(x: Tile, shape: tuple[int, int]) -> Tile:
    return Tile(np.broadcast_to(x.data, shape), number=x.number, spread=rd.repeated(spread(x), shape))


def _dtype(t: Term) -> Any:
    assert t.dtype is not None, f"{t.op} has no dtype"
    return t.dtype
