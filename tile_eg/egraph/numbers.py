"""What the terms of an e-graph's classes are in numbers: one block of the kernel, on given arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tile_eg.egraph.members import Class, Member, Members
from tile_eg.ir import arithmetic as ar
from tile_eg.ir import index as ix
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.left_padding import without_padding
from tile_eg.ir.passed import Passed
from tile_eg.ops.types import DTYPES, VALUE_TYPES, packed_in

Array = np.ndarray


class Unbound(Exception):
    """The term belongs to a trip of a loop that is not running."""


class Numbers:
    """Evaluates terms where the block index and, inside loops, the trips and states are bound.

    A tile is rows x cols with NaN, or the least whole number, beyond its valid extents; a version is all elements of its tensor;
    a loop the tuple of its final states; a scalar expression an array over (i, j).
    """

    def __init__(self, members: Members, arrays: Mapping[str, Array], indices: Mapping[str, int]) -> None:
        self.members, self.arrays, self.indices = members, arrays, dict(indices)
        self.states: dict[int, tuple[Array, ...]] = {}
        self.known: dict[Class, Any] = {}

    def inside(self, loop: int, trip: int, states: tuple[Array, ...]) -> Numbers:
        """The same block in a trip of a loop."""
        deeper = Numbers(self.members, self.arrays, {**self.indices, self.variable(loop): trip})
        deeper.states = {**self.states, loop: states}
        return deeper

    def variable(self, loop: int) -> str:
        return self.members.encoder.values.variables[loop]

    def of(self, cls: Class) -> Any:
        """The value of a class, by its smallest term."""
        if cls not in self.known:
            self.known[cls] = self.member(cls, self.members.chosen[cls])
        return self.known[cls]

    def member(self, cls: Class, m: Member) -> Any:
        """The value of one term of a class. Unbound where it belongs to another trip."""
        x = getattr(self, f"_{m.op.lower()}")(*m.args)
        return self.masked(cls, x) if cls[0] == "V" and cls in self.members.shapes else x

    def at(self, e: ix.Expr) -> int:
        if not ix.variables(e) <= self.indices.keys():
            raise Unbound
        return ix.evaluate(e, self.indices)

    def masked(self, cls: Class, x: Array) -> Array:
        shape = self.members.shapes[cls]
        rows, cols = max(0, self.at(shape.vrows)), max(0, self.at(shape.vcols))
        dtype = numpy_dtype(shape.dtype)
        out = np.full((shape.rows, shape.cols), ar.nothing(dtype), dtype)
        out[:rows, :cols] = np.broadcast_to(x, (shape.rows, shape.cols))[:rows, :cols]
        return out

    def inner(self, cls: Class) -> Array:
        """The valid part of a tile."""
        shape = self.members.shapes[cls]
        return self.of(cls)[: max(0, self.at(shape.vrows)), : max(0, self.at(shape.vcols))]

    # tiles

    def _load(self, version: Class, offset: ix.Expr, stride: int, rows: int, cols: int, vr: ix.Expr, vc: ix.Expr) -> Array:
        flat, (r, c) = self.of(version), (max(0, self.at(vr)), max(0, self.at(vc)))
        start, left = map(self.at, without_padding(offset))
        out = np.full((rows, cols), ar.nothing(flat.dtype), flat.dtype)
        out[:r, :left], out[:r, left:c] = 0, flat[start + stride * np.arange(r)[:, None] + np.arange(c - left)]
        return out

    def _fill(self, value: float, rows: int, cols: int, dtype: str) -> Array:
        return np.full((rows, cols), value, numpy_dtype(DTYPES[dtype]))

    def _filln(self, value: Passed, rows: int, cols: int, dtype: str) -> Array:
        return self._fill(value.at(self.arrays), rows, cols, dtype)

    def _matmul(self, a: Class, b: Class, ta: int, tb: int) -> Array:
        x, y = self.inner(a), self.inner(b)
        x, y = (x.T if ta else x), (y.T if tb else y)
        depth = min(x.shape[1], y.shape[0])
        made = ar.matmul(x[:, :depth], y[:depth])
        rows = self.members.shapes[a].cols if ta else self.members.shapes[a].rows
        cols = self.members.shapes[b].rows if tb else self.members.shapes[b].cols
        out = np.full((rows, cols), ar.nothing(made.dtype), made.dtype)
        out[: made.shape[0], : made.shape[1]] = made
        return out

    def _scaled(self, dtype: str, _: ix.Expr, x: Class, scale: Class) -> Array:
        return ar.scaled(self.of(x), self.of(scale), packed_in(VALUE_TYPES[dtype]))

    def _un(self, op: str, x: Class) -> Array:
        return ar.unary(op, self.of(x))

    def _bin(self, op: str, x: Class, y: Class) -> Array:
        return ar.binary(op, self.of(x), self.of(y))

    def _bins(self, op: str, x: Class, f: float) -> Array:
        a = self.of(x)
        return ar.binary(op, a, np.full_like(a, f))

    def _binn(self, op: str, x: Class, n: Passed) -> Array:
        return self._bins(op, x, n.at(self.arrays))

    def _binr(self, op: str, swap: int, x: Class, v: Class) -> Array:
        return self._broadcast(op, swap, self.of(x), self.of(v).T)

    def _binc(self, op: str, swap: int, x: Class, v: Class) -> Array:
        return self._broadcast(op, swap, self.of(x), self.of(v))

    @staticmethod
    def _broadcast(op: str, swap: int, a: Array, v: Array) -> Array:
        b = np.broadcast_to(v, a.shape)
        return ar.binary(op, b, a) if swap else ar.binary(op, a, b)

    def _blk(self, v: Class) -> Array:
        x = self.of(v)
        return np.repeat(x.T, 32 // x.dtype.itemsize, axis=1)

    def _stripsof(self, v: Class) -> Array:
        x = self.of(v)
        return x.reshape(len(x), -1, 32 // x.dtype.itemsize).swapaxes(0, 1).reshape(-1, len(x) * 32 // x.dtype.itemsize)

    def _twice(self, v: Class) -> Array:
        return np.tile(self._blk(v), 2)

    def _cast(self, dtype: str, x: Class) -> Array:
        return ar.cast(self.of(x), numpy_dtype(DTYPES[dtype]))

    def _pack(self, x: Class) -> Array:
        return ar.packed(self.of(x))

    def _bytes(self, dtype: str, x: Class) -> Array:
        return ar.bytes_of(self.of(x), numpy_dtype(DTYPES[dtype]))

    def _nibbles(self, _: ix.Expr, x: Class) -> Array:
        return ar.nibbles(self.of(x))

    def _piece(self, offset: ix.Expr, rows: int, cols: int, vrows: ix.Expr, vcols: ix.Expr, x: Class) -> Array:
        return ar.piece(self.of(x), self.at(offset), (rows, cols))

    def _panel(self, row: ix.Expr, rows: int, valid: ix.Expr, x: Class) -> Array:
        return ar.panel(self.of(x), self.at(row), rows)

    def _put(self, offset: ix.Expr, x: Class, y: Class) -> Array:
        return ar.put(self.of(x), self.inner(y), self.at(offset))

    def _ofwhole(self, op: str, i: int, j: int, rows: int, cols: int, *xs: Class) -> Array:
        return ar.whole(op, (i, j), [self.of(x) for x in xs]).reshape(rows, cols)

    _ofwholes = _ofwhole

    def _bcast(self, axis: int, v: Class, n: int) -> Array:
        x = self.of(v)
        return np.repeat(x.T, n, axis=1) if axis == 1 else np.repeat(x, n, axis=0)

    def _red(self, axis: int, op: str, x: Class) -> Array:
        shape = self.members.shapes[x]
        made = ar.reduce(op, self.inner(x), axis)
        out = np.full((1, shape.rows if axis == 1 else shape.cols), np.nan, numpy_dtype(shape.dtype))
        out[0, : made.size] = made
        return out

    def _ramp(self, rows: int, cols: int, i: int, j: int) -> Array:
        return ar.positions(i, j, rows, cols, 0)

    def _addi(self, x: Class, start: ix.Expr) -> Array:
        return self._bins("add", x, self.at(start))

    def _cho(self, op: str, *four: Class) -> Array:
        return ar.choose(op, *map(self.of, four))

    def _chob(self, bits: Class, x: Class, y: Class) -> Array:
        a = self.of(x)
        return np.where(ar.bits_of(self.of(bits))[:, : a.shape[1]], a, self.of(y))

    def _chos(self, op: str, a: Class, f: float, x: Class, y: Class) -> Array:
        tile = self.of(a)
        return ar.choose(op, tile, np.full_like(tile, f), self.of(x), self.of(y))

    def _choi(self, op: str, a: Class, bound: ix.Expr, x: Class, y: Class) -> Array:
        return self._chos(op, a, self.at(bound), x, y)

    def _arg(self, loop: int, k: int) -> Array:
        if loop not in self.states:
            raise Unbound
        return self.states[loop][k]

    def _proj(self, k: int, loop: Class) -> Array:
        return self.of(loop)[k]

    # scalar expressions

    def _par(self, rows: int, cols: int, s: Class) -> Array:
        return np.broadcast_to(self.scalar(s, (rows, cols)), (rows, cols))

    def scalar(self, cls: Class, shape: tuple[int, int]) -> Array:
        """A scalar expression over all (i, j), as an array that broadcasts to `shape`; in a vector reductions lie along it."""
        vector = shape[0] == 1
        m = self.members.chosen[cls]
        match m.op:
            case "Ld" | "LdC":
                return self.of(m.args[0])
            case "LdR":
                return self.of(m.args[0]).T
            case "K":
                return np.full((1, 1), m.args[0], numpy_dtype(DTYPES[m.args[1]]))
            case "KN":
                return np.full((1, 1), m.args[0].at(self.arrays), numpy_dtype(DTYPES[m.args[1]]))
            case "SUn":
                return ar.unary(m.args[0], self.scalar(m.args[1], shape))
            case "SBin":
                return ar.binary(m.args[0], *(self.scalar(x, shape) for x in m.args[1:]))
            case "SCho":
                return ar.choose(m.args[0], *(self.scalar(x, shape) for x in m.args[1:]))
            case "SChoI":
                op, i, j, bound, *pair = m.args
                x, y = (np.broadcast_to(self.scalar(p, shape), shape) for p in pair)
                return ar.choose_at(op, (i, j), self.at(bound), x, y)
            case "SIdx":
                i, j, start = m.args
                return ar.positions(i, j, *shape, self.at(start))
            case "SCast":
                return ar.cast(self.scalar(m.args[1], shape), numpy_dtype(DTYPES[m.args[0]]))
        over = (shape[1] if vector else shape[0], m.args[2])
        tile = np.broadcast_to(self.scalar(m.args[1], over), over)
        made = ar.reduce(m.args[0], tile[:, : self.width(m.args[1])], 1)
        return made[None, :] if vector else made[:, None]

    def width(self, cls: Class) -> int | None:
        """How many j of a scalar expression are valid; None where no operand limits them."""
        m = self.members.chosen[cls]
        if m.op in ("Ld", "LdC"):
            return max(0, self.at(self.members.shapes[m.args[0]].vcols))
        inner = [] if m.op in ("LdR", "K", "KN", "SIdx", "SRed") else [self.width(x) for x in m.args if isinstance(x, tuple)]
        return min((w for w in inner if w is not None), default=None)

    # versions and loops

    def _given(self, name: str) -> Array:
        return self.arrays[name].reshape(-1)

    def _store(self, version: Class, offset: ix.Expr, stride: int, value: Class, vr: ix.Expr, vc: ix.Expr) -> Array:
        rows, cols = max(0, self.at(vr)), max(0, self.at(vc))
        out = self.of(version).copy()
        out[self.at(offset) + stride * np.arange(rows)[:, None] + np.arange(cols)] = self.of(value)[:rows, :cols]
        return out

    def _accumulate(self, version: Class, offset: ix.Expr, stride: int, value: Class, vr: ix.Expr, vc: ix.Expr) -> Array:
        added = np.zeros_like(self.of(version))
        rows, cols = max(0, self.at(vr)), max(0, self.at(vc))
        added[self.at(offset) + stride * np.arange(rows)[:, None] + np.arange(cols)] = self.of(value)[:rows, :cols]
        return self.of(version) + added

    _targ, _tproj = _arg, _proj

    def _snil(self) -> tuple:
        return ()

    def _scons(self, init: Class, after: Class, rest: Class) -> tuple:
        return ((init, after), *self.of(rest))

    _tcons = _scons

    def _loop(self, loop: int, trips: int, chain: Class) -> tuple[Array, ...]:
        *_, last = [states for _, states in self.trips(loop, trips, chain)]
        return last

    def trips(self, loop: int, trips: int, chain: Class) -> list[tuple[Numbers, tuple[Array, ...]]]:
        """Each trip of a loop, with the states after it."""
        pairs = self.of(chain)
        states = tuple(self.of(init) for init, _ in pairs)
        out: list[tuple[Numbers, tuple[Array, ...]]] = []
        values = self.members.encoder.values
        for trip in range(values.trips_of(loop, self.indices[ix.BLOCK]) if loop in values.counts else trips):
            here = self.inside(loop, trip, states)
            states = tuple(here.of(after) for _, after in pairs)
            out.append((here, states))
        return out or [(self, states)]
