"""The meaning of value terms, in NumPy: block by block, each term once in each trip of the loops that it depends on.

A tile is a rows x cols array with NaN beyond its valid extents, so that a leak shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from tile_eg.ir import arithmetic as ar
from tile_eg.ir import index as ix
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.left_padding import without_padding
from tile_eg.ir.passed import Passed
from tile_eg.ir.values import Term, Values, accumulates, first_version
from tile_eg.ops.types import packed_in

Array = np.ndarray


def run_values(values: Values, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs for these inputs, arrays of the tensors' shapes and dtypes; unwritten elements as in `run_kernel`.

    `inputs` has the numbers that a call passes as well, by their names. Of one phase of a launch: what it stores, and what
    another one has stored is given to it.
    """
    outputs = [first_version(o).args[0] for o in values.outputs]
    added = {t.name for t, o in zip(outputs, values.outputs, strict=True) if accumulates(o)}
    arrays = {}
    for t in values.in_gm:
        dtype = numpy_dtype(t.dtype)
        begun = np.full(t.shape, 0 if t.name in added else ar.nothing(dtype), dtype)
        given = np.array(inputs[t.name], dtype) if t.name in inputs or not t.output else begun
        arrays[t.name] = given.reshape(t.shape)
    arrays |= {name: np.asarray(inputs[name], np.float32) for name in values.numbers}
    loops = Dependences(values)
    with np.errstate(all="ignore"):
        for block in range(values.blocks):
            run = Run(values, loops, arrays, block)
            arrays |= {t.name: run.term(term) for t, term in zip(outputs, values.outputs, strict=True)}
    return {t.name: arrays[t.name] for t in outputs}


class Dependences:
    """Which loops' variables and states a term reads; the innermost of them decides how long its result holds."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.loop_of = {name: loop for loop, name in values.variables.items()}
        self.known: dict[Term, frozenset[int]] = {}

    def of(self, x: Any) -> frozenset[int]:
        if isinstance(x, tuple):
            return frozenset().union(*map(self.of, x))
        if isinstance(x, ix.Expr):
            return frozenset(self.loop_of[v] for v in ix.variables(x) if v in self.loop_of)
        if not isinstance(x, Term):
            return frozenset()
        if x not in self.known:
            own = frozenset(x.args[:1]) if x.op in ("arg", "targ") else frozenset()
            inner = frozenset(x.args[:1]) if x.op == "loop" else frozenset()
            self.known[x] = (own | self.of((x.args, x.vrows, x.vcols))) - inner
        return self.known[x]

    def home(self, t: Term) -> int:
        """The innermost loop that a term depends on; 0 for the block."""
        return max(self.of(t), key=self.depth, default=0)

    def depth(self, loop: int) -> int:
        return 0 if loop == 0 else 1 + self.depth(self.values.parents[loop])


def _element(arrays: Mapping[str, Array], name: str, place: int) -> int:
    """An element of an input."""
    return int(arrays[name].reshape(-1)[place])


class Run:
    """Evaluates terms in one block."""

    def __init__(self, values: Values, dependences: Dependences, arrays: Mapping[str, Array], block: int) -> None:
        self.values, self.dependences, self.arrays = values, dependences, arrays
        read = partial(_element, arrays)  # no cycle through this object, which holds whole versions of tensors
        self.indices: dict[str, Any] = {ix.BLOCK: block, ix.READ: read}
        self.states: dict[int, tuple[Array, ...]] = {}
        self.results: dict[int, dict[Term, Any]] = {}

    def term(self, t: Term) -> Any:
        """An array; for a loop the tuple of its final states."""
        known = self.results.setdefault(self.dependences.home(t), {})
        if t not in known:
            result = getattr(self, "_" + t.op)(t)
            known[t] = self.masked(t, result) if t.vrows is not None else result
        return known[t]

    def at(self, e: ix.Expr) -> int:
        return ix.evaluate(e, self.indices)

    def valid(self, t: Term) -> tuple[int, int]:
        assert t.vrows is not None and t.vcols is not None
        return self.at(t.vrows), self.at(t.vcols)

    def masked(self, t: Term, x: Array) -> Array:
        rows, cols = self.valid(t)
        assert x.shape == (t.rows, t.cols), f"{t.op} gives {x.shape}, not {(t.rows, t.cols)}"
        if (rows, cols) == x.shape:
            return x
        x = x.copy()
        x[rows:] = ar.nothing(x.dtype)
        x[:, cols:] = ar.nothing(x.dtype)
        return x

    def rows(self, offset: ix.Expr, stride: int, count: int) -> Array:
        """Where the rows of a window begin, one below the other."""
        if ix.EACH not in ix.variables(offset):
            return self.at(offset) + stride * np.arange(count)[:, None]
        found = [ix.evaluate(offset, {**self.indices, ix.EACH: i}) for i in range(count)]
        return np.asarray(found, int).reshape(-1, 1)

    # tiles

    def _load(self, t: Term) -> Array:
        version, offset, stride = t.args
        (rows, cols), (offset, zeros) = self.valid(t), without_padding(offset)
        left = self.at(zeros)
        flat = self.term(version).reshape(-1)
        places = self.rows(offset, stride, rows) + np.arange(cols - left)
        out = np.full((t.rows, t.cols), ar.nothing(flat.dtype), flat.dtype)
        out[:rows, :left], out[:rows, left:cols] = 0, flat[places]
        return out

    def _fill(self, t: Term) -> Array:
        return np.full((t.rows, t.cols), self.number(t.args[0]), numpy_dtype(_dtype(t)))

    def number(self, x: float | Passed) -> float:
        """A number; what follows from those that a call passes by their values."""
        return x.at(self.arrays) if isinstance(x, Passed) else x

    def _matmul(self, t: Term) -> Array:
        a, b, ta, tb = t.args
        x, y = self.inner(a), self.inner(b)
        x, y = (x.T if ta else x), (y.T if tb else y)
        depth = min(x.shape[1], y.shape[0])
        dtype = numpy_dtype(_dtype(t))
        out = np.full((t.rows, t.cols), ar.nothing(dtype), dtype)
        out[: x.shape[0], : y.shape[1]] = ar.matmul(x[:, :depth], y[:depth])
        return out

    def _scaled(self, t: Term) -> Array:
        x, scale = t.args
        return ar.scaled(self.term(x), self.term(scale), packed_in(_dtype(t)))

    def inner(self, t: Term) -> Array:
        rows, cols = self.valid(t)
        return self.term(t)[:rows, :cols]

    def _unary(self, t: Term) -> Array:
        return ar.unary(t.args[0], self.term(t.args[1]))

    def _binary(self, t: Term) -> Array:
        return ar.binary(t.args[0], self.term(t.args[1]), self.term(t.args[2]))

    def _bcast(self, t: Term) -> Array:
        axis, v = t.args
        x = self.term(v)
        return np.broadcast_to(x.T if axis == 1 else x, (t.rows, t.cols)).copy()

    def _reduce(self, t: Term) -> Array:
        axis, name, x = t.args
        dtype = numpy_dtype(_dtype(t))
        out = np.full((t.rows, t.cols), ar.nothing(dtype), dtype)
        found = ar.reduce(name, self.inner(x), axis)
        out[0, : found.size] = found
        return out

    def _cast(self, t: Term) -> Array:
        return ar.cast(self.term(t.args[0]), numpy_dtype(_dtype(t)))

    def _pack(self, t: Term) -> Array:
        return ar.packed(self.term(t.args[0]))

    def _bytes(self, t: Term) -> Array:
        return ar.bytes_of(self.term(t.args[0]), numpy_dtype(_dtype(t)))

    def _nibbles(self, t: Term) -> Array:
        return ar.nibbles(self.term(t.args[0]))

    def _piece(self, t: Term) -> Array:
        return ar.piece(self.term(t.args[1]), self.at(t.args[0]), (t.rows, t.cols))

    def _panel(self, t: Term) -> Array:
        return ar.panel(self.term(t.args[1]), self.at(t.args[0]), t.rows)

    def _put(self, t: Term) -> Array:
        return ar.put(self.term(t.args[1]), self.inner(t.args[2]), self.at(t.args[0]))

    def _whole(self, t: Term) -> Array:
        op, i, j, *xs = t.args
        return ar.whole(op, (i, j), list(map(self.term, xs))).reshape(t.rows, t.cols)

    def _choose_bits(self, t: Term) -> Array:
        bits, x, y = map(self.term, t.args)
        return np.where(ar.bits_of(bits)[:, : t.cols], x, y)

    def _choose(self, t: Term) -> Array:
        op, *four = t.args
        return ar.choose(op, *map(self.term, four))

    def _choose_at(self, t: Term) -> Array:
        op, i, j, bound, x, y = t.args
        return ar.choose_at(op, (i, j), self.at(bound), self.term(x), self.term(y))

    def _arg(self, t: Term) -> Array:
        return self.states[t.args[0]][t.args[1]]

    def _proj(self, t: Term) -> Array:
        return self.term(t.args[0])[t.args[1]]

    # scalar expressions

    def _nest(self, t: Term) -> Array:
        return np.broadcast_to(self.scalar(t.args[0], t.rows, t.cols), (t.rows, t.cols)).copy()

    def scalar(self, s: Term, rows: int, cols: int) -> Array:
        """A scalar expression over all points of a tile of rows x cols, as an array that broadcasts to it."""
        match s.op:
            case "elem" | "elem_col":
                return self.term(s.args[0])
            case "elem_row":
                return self.term(s.args[0]).T
            case "number":
                return np.full((1, 1), self.number(s.args[0]), numpy_dtype(_dtype(s)))
            case "s_unary":
                return ar.unary(s.args[0], self.scalar(s.args[1], rows, cols))
            case "s_binary":
                return ar.binary(s.args[0], *(self.scalar(x, rows, cols) for x in s.args[1:]))
            case "s_choose":
                return ar.choose(s.args[0], *(self.scalar(x, rows, cols) for x in s.args[1:]))
            case "s_choose_at":
                op, i, j, bound, *pair = s.args
                x, y = (np.broadcast_to(self.scalar(p, rows, cols), (rows, cols)) for p in pair)
                return ar.choose_at(op, (i, j), self.at(bound), x, y)
            case "s_index":
                i, j, start = s.args
                return ar.positions(i, j, rows, cols, self.at(start), numpy_dtype(_dtype(s)))
            case "s_cast":
                return ar.cast(self.scalar(s.args[0], rows, cols), numpy_dtype(_dtype(s)))
            case "s_reduce":
                return self.row_reduction(s, rows)
        raise AssertionError(f"{s.op} is not a scalar expression")

    def row_reduction(self, s: Term, rows: int) -> Array:
        """One value a row of the reduced tile: a column of a tile with as many rows, else (in a vector) a row."""
        name, x = s.args
        tile = np.broadcast_to(self.scalar(x, s.rows, s.cols), (s.rows, s.cols))
        valid_rows, valid_cols = self.valid(s)
        out = np.full((s.rows, 1), np.nan, numpy_dtype(_dtype(s)))
        out[:valid_rows, 0] = ar.reduce(name, tile[:valid_rows, :valid_cols], 1)
        return out if rows == s.rows else out.T

    # tensors and loops

    def _given(self, t: Term) -> Array:
        return self.arrays[t.args[0].name]

    def _store(self, t: Term) -> Array:
        version, offset, stride, value = t.args
        rows, cols = self.valid(value)
        x = self.term(value)
        out = self.term(version).copy()
        places = self.rows(offset, stride, rows) + np.arange(cols)
        out.reshape(-1)[places] = x[:rows, :cols]
        return out

    def _accumulate(self, t: Term) -> Array:
        version, offset, stride, value = t.args
        rows, cols = self.valid(value)
        out = self.term(version).copy()
        places = self.rows(offset, stride, rows) + np.arange(cols)
        flat = out.reshape(-1)
        for place, row in zip(places, self.term(value), strict=False):  # rows that lie anywhere may meet
            flat[place] = ar.binary("add", flat[place], row[:cols])
        return out

    _targ, _tproj = _arg, _proj

    def _loop(self, t: Term) -> tuple[Array, ...]:
        loop, _, states, _ = t.args
        current = tuple(self.term(init) for init, _ in states)
        name = self.values.variables[loop]
        for trip in range(self.values.trips_of(loop, self.indices[ix.BLOCK])):
            self.forget(loop)
            self.indices[name], self.states[loop] = trip, current
            current = tuple(self.term(following) for _, following in states)
        self.forget(loop)
        return current

    def forget(self, loop: int) -> None:
        """Drops the results that hold for one trip of a loop or of a loop inside it."""
        for home in list(self.results):
            if home == loop or self.within(home, loop):
                del self.results[home]

    def within(self, loop: int, outer: int) -> bool:
        return loop != 0 and (self.values.parents[loop] == outer or self.within(self.values.parents[loop], outer))


def _dtype(t: Term) -> Any:
    assert t.dtype is not None, f"{t.op} has no dtype"
    return t.dtype
