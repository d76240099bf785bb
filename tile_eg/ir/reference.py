"""The sequential meaning of a kernel, in NumPy: statement by statement, block by block, with buffers that are written in place.

Every buffer remembers which of its elements are valid. What lies outside a tensor is loaded as invalid (and as NaN, so that a
leak shows); a result is valid where all its operands are; reductions and products run over valid elements only; stores write
valid elements that lie inside the tensor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import product
from types import MappingProxyType

import numpy as np

from tile_eg.ir import arithmetic as ar
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.known_numbers import at_numbers
from tile_eg.ir.reference_places import NO_INDEX, Array, Env, evaluate, meant, refuse_outside
from tile_eg.ir.reference_tiles import Tile, both, common, common_ends, existing, filled, meeting, numbers_with
from tile_eg.ir.reference_values import run_values
from tile_eg.ir.seen import as_indexed
from tile_eg.ops.types import I32, U32, DType
from tile_eg.ops.whole_tiles import NOTHING, WHOLE_TILES

__all__ = ["run_kernel", "run_values"]

WORDS = (I32, U32)
"""What takes the low bits of an index; any other type takes what f32 holds of it."""


def run_kernel(
    kernel: kn.Kernel, inputs: Mapping[str, Array], written: Mapping[str, Array] = MappingProxyType({}),
    tiles: Collection[int] | None = None,
) -> dict[str, Array]:  # fmt: skip
    """The outputs for these inputs, arrays of the tensors' shapes and dtypes. Elements of an output that the kernel does not
    write are NaN (zero where it adds), or what `inputs` gives for that output. Those that it writes are marked in the masks
    `written`, by tensor name. `tiles` are numbers of those of the grid that are computed, where not all are."""
    given, kernel = kernel.tensors, as_indexed(at_numbers(kernel, inputs))
    arrays = initial(kernel, inputs)
    masks = {t.name: written[t.name].reshape(t.shape) for t in kernel.tensors if t.name in written}
    with np.errstate(all="ignore"):
        for point in blocks(kernel.grid, tiles):
            Block(arrays, masks).run(kernel.body, point)
    return {t.name: arrays[t.name].reshape(t.shape) for t in given if t.output}


def written_elements(kernel: kn.Kernel, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """For each output a mask of the elements that the kernel writes."""
    masks = {t.name: np.zeros(t.shape, bool) for t in kernel.tensors if t.output}
    run_kernel(kernel, inputs, masks)
    return masks


def initial(kernel: kn.Kernel, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What every tensor holds when the kernel begins."""
    added = kn.added_to(kernel)
    return {t.name: _initial(t, inputs, t.name in added) for t in kernel.tensors}


def _initial(t: kn.Tensor, inputs: Mapping[str, Array], added: bool) -> Array:
    dtype = numpy_dtype(t.dtype)
    if t.name in inputs or not t.output:
        return np.array(inputs[t.name], dtype).reshape(t.shape)
    return np.full(t.shape, 0 if added else ar.nothing(dtype), dtype)


def blocks(grid: tuple[tuple[str, int], ...], tiles: Collection[int] | None = None) -> Iterator[dict[str, int]]:
    """Every block's grid variables, the first one fastest; those of some `tiles` by their numbers."""
    names = [n for n, _ in grid]
    for number, point in enumerate(product(*(range(e) for _, e in reversed(grid)))):
        if tiles is None or number in tiles:
            yield dict(zip(names, reversed(point), strict=True))


class Block:
    """Runs the statements of one block. `elements` tells that the indices are arrays over an element loop. `cut_off` says for
    each element, row or column that the statement at hand takes alone and that does not exist, where that matters."""

    def __init__(self, tensors: dict[str, Array], written: Mapping[str, Array] = MappingProxyType({})) -> None:
        self.tensors, self.written = tensors, written
        self.buffers: dict[str, Tile] = {}
        self.elements = False
        self.cut_off: list[Array] = []
        self.target: kn.Region | None = None

    def run(self, body: tuple[kn.Stmt, ...], env: Env) -> None:
        if ix.READ not in env:
            env = {**env, ix.READ: self.read}  # type: ignore[dict-item]
        for s in body:
            self.statement(s, env)

    def statement(self, s: kn.Stmt, env: Env) -> None:
        match s:
            case kn.Alloc():
                self.buffers[s.name] = self.allocated(s)
            case kn.Assign():
                self.assign(s, env)
            case kn.For():
                count = s.extent if s.count is None else int(evaluate(s.count, env))
                for i in range(s.start, s.start + count):
                    self.run(s.body, {**env, s.var: i})
            case kn.Parallel():
                points = np.ogrid[tuple(slice(0, e) for e in s.extents)]
                self.elements = True
                self.run(s.body, {**env, **dict(zip(s.vars, points, strict=True))})
                self.elements = False
            case kn.If():
                self.run(s.then if evaluate(s.condition, env) else s.otherwise, env)

    def allocated(self, s: kn.Alloc) -> Tile:
        dtype = numpy_dtype(s.dtype)
        return Tile(np.full(s.shape, ar.nothing(dtype), dtype), np.zeros(s.shape, bool))

    def read(self, name: str, place: int | Array, inside: bool | Array = True) -> Array:
        """Elements of a tensor or a buffer, by their number; `NO_INDEX` where there are none, or none that is valid. `inside`:
        where each of their indices lies in its dimension."""
        held = Tile(self.tensors[name]) if name in self.tensors else self.buffers[name]
        flat, at = held.data.reshape(-1), np.asarray(place)
        found = flat[np.clip(at, 0, flat.size - 1)].astype(np.int64)
        known = inside & (at >= 0) & (at < flat.size)
        if held.valid is not None:
            known = known & held.valid.reshape(-1)[np.clip(at, 0, flat.size - 1)]
        return np.where(known, found, NO_INDEX)

    # assignments

    def assign(self, s: kn.Assign, env: Env) -> None:
        self.cut_off, self.target = [], s.target
        target = self.tensors.get(s.target.name)
        if target is not None:
            self.store(s, target, self.value(s.value, env), env)
            return
        value = self.value(s.value, env)
        gone = reduce(np.logical_or, self.cut_off, np.asarray(False))  # type: ignore[arg-type]
        if np.any(gone) and not np.all(gone):
            value = self.kept(gone, value, self.buffers[s.target.name].taken(self.place(s.target, env)))
        if not np.all(gone):
            self.write(self.buffers[s.target.name], self.place(s.target, env), value)

    def kept(self, gone: Array, value: Tile, old: Tile) -> Tile:
        """A value, but where its statement is not done what the target holds."""
        data = np.where(gone, old.data, ar.cast(value.data, old.data.dtype))
        known = [np.True_ if t.valid is None else t.valid for t in (old, value)]
        return Tile(data, np.broadcast_to(np.where(gone, *known), data.shape))

    def is_alone(self, r: kn.Region, env: Env) -> bool:
        """Whether a region is an element, a row or a column that the statement takes alone, at another place than its target's:
        where a tensor's end cuts that off, the target stays as it is."""
        target = self.target
        if target is None or target.name in self.tensors:
            return False
        alone = [s for s, e in zip(r.starts, r.extents, strict=True) if e is None and s not in target.starts]
        return any(np.ndim(evaluate(s, env)) == 0 for s in alone)

    def write(self, buffer: Tile, place: tuple, value: Tile) -> None:
        buffer.data[place] = ar.cast(value.data, buffer.data.dtype)
        buffer.ends = value.ends if not self.elements and value.data.shape == buffer.data.shape else None
        self.mark(buffer, place, value.valid)

    def mark(self, buffer: Tile, place: tuple, valid: Array | None) -> None:
        """Notes which elements of a buffer are valid after a write."""
        if valid is None and buffer.data[place].shape == buffer.data.shape and not self.elements:
            buffer.valid = None
            return
        if buffer.valid is None:
            buffer.valid = np.ones(buffer.data.shape, bool)
        buffer.valid[place] = True if valid is None else valid
        buffer.data[~buffer.valid] = ar.nothing(buffer.data.dtype)

    def place(self, r: kn.Region, env: Env) -> tuple:
        """A region of a buffer as a NumPy index."""
        starts = [evaluate(s, env) for s in r.starts]
        return tuple(s if e is None else slice(int(s), int(s) + e) for s, e in zip(starts, r.extents, strict=True))

    def store(self, s: kn.Assign, array: Array, value: Tile, env: Env) -> None:
        places, inside = self.tensor_places(s.target, array, env)
        mask = inside if value.valid is None else inside & value.valid
        points = np.broadcast_arrays(*places, mask)[:-1]
        self.put(s, array, tuple(p[mask] for p in points), mask, value)

    def put(self, s: kn.Assign, array: Array, at: tuple, mask: Array, value: Tile) -> None:
        """Stores the elements of a value that a mask of its shape selects, `at` these places of a tensor's array."""
        data = np.broadcast_to(ar.cast(value.data, array.dtype), mask.shape)[mask]
        array[at] = ar.binary("add", array[at], data) if s.atomic else data
        if s.target.name in self.written:
            self.written[s.target.name][at] = True

    def tensor_places(self, r: kn.Region, array: Array, env: Env) -> tuple[list[Array], Array]:
        """The index of every element of a region in each dimension, and which of them lie inside the tensor."""
        rank, n, places = len(r.shape), 0, []
        asked = meant(r, env)
        for d, (start, extent) in enumerate(zip(r.starts, r.extents, strict=True)):
            at = np.asarray(evaluate(start, env))
            if elements_in(start) and asked.any():
                refuse_outside(r, d, at, array.shape[d])
            if extent is not None:
                at = (at + np.arange(extent)).reshape((-1,) + (1,) * (rank - n - 1))
                n += 1
            places.append(at)
        inside = np.broadcast_to(asked, np.broadcast_shapes(*(p.shape for p in places)))
        for p, size in zip(places, array.shape, strict=True):
            inside = inside & (p >= 0) & (p < size)
        return places, inside

    # expressions

    def value(self, e: kn.TileExpr, env: Env) -> Tile:
        match e:
            case kn.Number():
                return Tile(ar.number(e.value), number=True)
            case kn.Index():
                return Tile(np.asarray(evaluate(e.value, env), np.float32))
            case kn.Region():
                return self.load(e, env) if e.name in self.tensors else self.held(e, env)
            case kn.Unary():
                return self.unary(e.op, self.value(e.x, env))
            case kn.Binary():
                return self.binary(e.op, self.value(e.x, env), self.value(e.y, env))
            case kn.Cast(dtype=dtype, x=kn.Index() as index) if dtype in WORDS:
                return Tile(np.asarray(evaluate(index.value, env), np.int64).astype(numpy_dtype(dtype)))
            case kn.Cast():
                return self.cast(self.value(e.x, env), numpy_dtype(e.dtype))
            case kn.Pack():
                return self.packed(self.value(e.x, env))
            case kn.Pad(x=kn.Region() as r) if e.ends:
                places, _ = self.tensor_places(r, self.tensors[r.name], env)
                there = [np.asarray(places[d] < self.tensors[r.name].shape[d]) for d in e.ends]
                return self.padded(self.value(r, env), e.value, reduce(np.logical_and, there))
            case kn.Pad():
                return self.padded(self.value(e.x, env), e.value)
            case kn.Whole():
                return self.whole(e, [self.value(x, env) for x in e.xs])
            case kn.Bytes():
                return self.bytes(self.value(e.x, env), numpy_dtype(e.dtype))
            case kn.Broadcast():
                return self.value(e.x, env).taken((slice(None), None) if e.axis == 1 else (None, slice(None)))
            case kn.Reduce():
                return self.reduced(e.op, self.value(e.x, env), e.axis)
            case kn.MatMul():
                a, b = self.value(e.a, env), self.value(e.b, env)
                return self.product(*meeting(a.flipped if e.transpose_a else a, b.flipped if e.transpose_b else b))
            case kn.Scaled():
                return self.scaled(self.value(e.x, env), self.value(e.scale, env), e.packed)
            case kn.Select() if self.elements:
                holds = np.asarray(evaluate(e.condition, env)) != 0
                return self.chosen(holds, self.arm(e.x, env, holds), self.arm(e.y, env, ~holds))
            case kn.Select():
                return self.value(e.x if evaluate(e.condition, env) else e.y, env)
            case kn.Choose():
                return self.compared(e.op, *(self.value(x, env) for x in (e.a, e.b, e.x, e.y)))

    def arm(self, e: kn.TileExpr, env: Env, chosen: Array) -> Tile:
        """One arm of a choice; what is cut off of it matters where it is chosen."""
        before, self.cut_off = self.cut_off, []
        value = self.value(e, env)
        self.cut_off = [*before, *(where & chosen for where in self.cut_off)]
        return value

    def held(self, r: kn.Region, env: Env) -> Tile:
        """A part of a buffer; of its elements those are valid that are meant, but one that is taken alone stands for itself."""
        found = self.buffers[r.name].taken(self.place(r, env))
        if found.valid is not None and not found.valid.any() and self.is_alone(r, env):
            self.cut_off.append(np.asarray(True))
            found = replace(found, valid=None)
        if not r.counts:
            return found
        valid = np.broadcast_to(meant(r, env), found.data.shape)
        return replace(found, valid=both(found.valid, valid), ends=None if self.elements else self.ends(r, found.data.shape, env))

    def ends(self, r: kn.Region, shape: tuple[int, ...], env: Env) -> tuple[Array, ...] | None:
        """Which places along each axis of a window exist, where its length may be none; None for others."""
        if not any(r.counts):
            return None
        size = self.tensors[r.name].shape if r.name in self.tensors else (None,) * len(r.starts)
        found = []
        for start, extent, count, full in zip(r.starts, r.extents, r.counts, size, strict=True):
            at = int(evaluate(start, env))
            if extent is None and full is not None and not 0 <= at < full:
                return None
            if extent is not None:
                places = np.arange(extent)
                inside = places >= 0 if full is None else (places + at >= 0) & (places + at < full)
                found.append(inside if count is None else inside & (places < int(evaluate(count, env))))
        return tuple(found) if tuple(map(len, found)) == shape else None

    def load(self, r: kn.Region, env: Env) -> Tile:
        array = self.tensors[r.name]
        at, inside = self.places_to_load(r, array, env)
        data = np.broadcast_to(array[at], inside.shape).copy()
        if inside.all():
            return Tile(data)
        data[~inside] = ar.nothing(data.dtype)
        return Tile(data, inside, ends=None if self.elements else self.ends(r, inside.shape, env))

    def places_to_load(self, r: kn.Region, array: Array, env: Env) -> tuple[tuple, Array]:
        """An index of as many elements as the region has, and which of them lie inside the tensor."""
        places, inside = self.tensor_places(r, array, env)
        clipped = [np.clip(p, 0, size - 1) for p, size in zip(places, array.shape, strict=True)]
        return tuple(np.broadcast_arrays(*clipped)), inside

    def chosen(self, holds: Array, x: Tile, y: Tile, valid: Array | None = None) -> Tile:
        """x where it holds, else y; valid where both of them are."""
        dtype = common(x, y)
        data = np.where(holds, x.data.astype(dtype), y.data.astype(dtype))
        valid = both(valid, both(x.valid, y.valid))
        number = x.number and y.number
        return Tile(data, None if valid is None else np.broadcast_to(valid, data.shape), number, ends=common_ends(x, y))

    def unary(self, op: str, x: Tile) -> Tile:
        return Tile(ar.unary(op, x.data), x.valid, x.number, ends=x.ends)

    def cast(self, x: Tile, dtype: np.dtype) -> Tile:
        return Tile(ar.cast(x.data, dtype), x.valid, ends=x.ends)

    def packed(self, x: Tile) -> Tile:
        """A byte is valid where all of its elements are."""
        valid = None if x.valid is None else np.asarray(x.valid.reshape(*x.valid.shape[:-1], -1, 8).all(axis=-1))
        return Tile(ar.packed(x.data), valid)

    def padded(self, x: Tile, value: float, there: Array | None = None) -> Tile:
        return Tile(numbers_with(x, value), there)

    def whole(self, e: kn.Whole, xs: list[Tile]) -> Tile:
        """Around the elements that exist stands what changes nothing; of the result those exist that follow from them."""
        nothing = NOTHING.get(e.op, 0.0)
        data = ar.whole(e.op, e.numbers, [numbers_with(x, nothing) for x in xs])
        shape = WHOLE_TILES[e.op].shape(tuple(x.data.shape for x in xs), e.numbers)
        assert not isinstance(shape, str)
        return Tile(data.reshape(shape), existing(e, xs, shape))

    def bytes(self, x: Tile, dtype: np.dtype) -> Tile:
        parts = ar.nibbles(x.data) if x.data.dtype.itemsize == 1 else ar.bytes_of(x.data, dtype)
        return Tile(parts, None if x.valid is None else np.repeat(x.valid, 2, axis=-1))

    def compared(self, op: str, a: Tile, b: Tile, x: Tile, y: Tile) -> Tile:
        """x where `a op b`, else y."""
        if op == kn.BIT:
            return self.chosen(ar.bits_of(a.data), x, y, None if a.valid is None else np.repeat(a.valid, 8, axis=-1))
        holds = ar.compare(op, *(ar.compared(t.data.astype(common(a, b))) for t in (a, b)))
        return self.chosen(holds, x, y, both(a.valid, b.valid))

    def binary(self, op: str, x: Tile, y: Tile) -> Tile:
        valid = both(x.valid, y.valid)
        dtype = common(x, y)
        data = ar.binary(op, x.data.astype(dtype), y.data.astype(dtype))
        number = x.number and y.number
        return Tile(data, None if valid is None else np.broadcast_to(valid, data.shape), number, ends=common_ends(x, y))

    def reduced(self, op: str, x: Tile, axis: int) -> Tile:
        """A reduction over valid elements. A row or column with none is not valid, unless its length is read, and 0."""
        axis = axis if x.data.ndim == 2 else 0
        if x.valid is None:
            return Tile(ar.reduce(op, x.data, axis))
        some = x.along(1 - axis) if x.data.ndim == 2 else np.asarray(x.ends is not None or np.any(x.valid))
        return Tile(ar.reduce(op, filled(op, x), axis), some, ends=(some,) if x.ends is not None and some.ndim else None)

    def scaled(self, x: Tile, scale: Tile, packed: DType | None) -> Tile:
        """An operand of a product with scales."""
        valid = np.repeat(x.valid, 2, axis=-1) if packed and x.valid is not None else x.valid
        return Tile(ar.scaled(x.data, scale.data, packed), valid)

    def product(self, a: Tile, b: Tile) -> Tile:
        """A product of operands whose invalid elements are 0; a row and a column that do not exist are not valid."""
        data = ar.matmul(a.data, b.data)
        if a.valid is None or b.valid is None:
            return Tile(data)
        return Tile(data, np.logical_and.outer(a.along(0), b.along(1)))
