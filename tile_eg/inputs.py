"""Inputs that are drawn for a kernel, in sets by name, and what the kernel means on them.

`uniform` is what most numbers look like. `wide` is what they may look like too: large and small rows, ties, zeros, subnormals.
`nan` is `uniform` with NaN and infinities in some rows. A set follows from the kernel and a seed alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError, did_you_mean
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.kernel import Kernel, MatMul, Tensor, assigns
from tile_eg.ir.pieces import pieces_of
from tile_eg.ir.reference import run_kernel
from tile_eg.ir.reference_bounds import Expected, run_with_bounds
from tile_eg.ir.reference_indices import most_of_indices
from tile_eg.ops.records import record

if TYPE_CHECKING:
    import numpy as np

SETS = ("uniform", "wide", "nan")
USUAL = ("uniform", "wide")
"""The sets that a run draws unless it is told which."""
GIVEN = "given"
"""The name of a set of which the user has given every array."""
TOPS = (256.0, 16.0, 4.0, 2.0, 1.0)
"""Largest magnitudes of `wide`, tried in turn: exp overflows float at 88 and half at 11. Of products the second is the first."""
OCTAVES = 4  # of magnitudes in a row of `wide`
ROWS = ("large", "negative", "large", "small", "large", "equal", "large", "zero")
"""What rows of `wide` hold, in equal shares. Rows below zero find a maximum that starts at 0; equal ones are all ties."""

Arrays = dict[str, "np.ndarray"]


@record
class Drawn:
    """One set of inputs by tensor name, and the outputs that the kernel means, with the bounds of their roundings; None of a
    program, which has no other meaning. Of some `tiles` of the grid it was computed; None: of all."""

    name: str
    arrays: Arrays
    meant: Mapping[str, Expected] | None
    tiles: Collection[int] | None = None


def set_names(text: str) -> tuple[str, ...]:
    """The sets in "uniform,wide", each once. TileError names the ones that there are."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in SETS:
            raise TileError(f"there are no inputs called '{name}'", help=did_you_mean(name, SETS))
    if not names:
        raise TileError("no inputs are named", help=f"one or more of {', '.join(SETS)}, for example: {','.join(USUAL)}")
    return names


def drawn_sets(
    kernel: Kernel, names: Sequence[str], seed: int, given: Mapping[str, np.ndarray] | None = None,
    tiles: Collection[int] | None = None,
) -> list[Drawn]:  # fmt: skip
    """A set for each name; arrays that are `given` are in all of them. Where nothing is left to draw there is one set. What is
    meant is computed for some `tiles` of the grid where these are given."""
    kept = dict(given or {})
    if all(t.output or t.name in kept for t in kernel.tensors):
        return [Drawn(GIVEN if kept else names[0], kept, run_with_bounds(kernel, kept, tiles), tiles)]
    return [_drawn(kernel, name, seed, kept, tiles) for name in names]


def draw(tensors: Sequence[Tensor], name: str, seed: int, top: float = TOPS[-1]) -> Arrays:
    """An array for each tensor; `top` is the largest magnitude of floats in `wide`."""
    import numpy as np

    rng = np.random.default_rng(seed if name == "uniform" else [seed, SETS.index(name)])
    return {t.name: _array(rng, t, n, name, top) for n, t in enumerate(tensors)}


def _drawn(kernel: Kernel, name: str, seed: int, given: Arrays, tiles: Collection[int] | None) -> Drawn:
    """The set, `wide` at the first magnitude that the kernel's outputs bear."""
    inputs = [t for t in kernel.tensors if not t.output]
    tries = _tops(kernel) if name == "wide" else TOPS[-1:]
    pieces = _pieces(kernel, seed, given)
    drawn = (_with_indices(kernel, draw(inputs, name, seed, top)) | pieces | given for top in tries)
    arrays = _borne(kernel, drawn, len(tries), tiles)
    return Drawn(name, arrays, run_with_bounds(kernel, arrays, tiles), tiles)


def _with_indices(kernel: Kernel, arrays: Arrays) -> Arrays:
    """The arrays with indices that lie inside where the kernel reads indices."""
    found = {name: (arrays[name], most) for name, most in most_of_indices(kernel).items() if name in arrays}
    return arrays | {name: _at_most(a, most) for name, (a, most) in found.items()}


def _at_most(indices: np.ndarray, most: int) -> np.ndarray:
    """Whole numbers from 0 to `most`, or to what their type holds."""
    import numpy as np

    most = min(most, int(np.iinfo(indices.dtype).max))
    return (indices.astype(np.int64) % (most + 1)).astype(indices.dtype)


def _pieces(kernel: Kernel, seed: int, given: Arrays) -> Arrays:
    """Where pieces of an output begin and how long they are: each of its elements is stored once, as far as they reach."""
    import numpy as np

    rng, shapes = np.random.default_rng(seed), {t.name: t.shape for t in kernel.tensors}
    out: Arrays = {}
    for p in pieces_of(kernel):
        if not given.keys() & {p.begins, p.lengths}:
            lengths = _lengths(rng, p.size, p.count, p.most)
            ends = np.concatenate(([0], np.cumsum(lengths)))
            begins, lengths = (ends if p.lengths is None else ends[:-1]).astype(np.int32), lengths.astype(np.int32)
            out[p.begins] = begins.reshape(shapes[p.begins])
            out |= {p.lengths: lengths.reshape(shapes[p.lengths])} if p.lengths else {}
    return out


def _lengths(rng: np.random.Generator, size: int, count: int, most: int) -> np.ndarray:
    """So many lengths of at most `most`, together `size` or what comes nearest. Each gave some to the next one, or took it."""
    import numpy as np

    out = np.minimum(size // count + (np.arange(count) < size % count), most)
    for i in range(count - 1):
        moved = rng.integers(-min(out[i], most - out[i + 1]), min(out[i + 1], most - out[i]) + 1)
        out[i : i + 2] += [moved, -moved]
    return out


def _borne(kernel: Kernel, tries: Iterator[Arrays], count: int, tiles: Collection[int] | None) -> Arrays:
    """The first whose outputs are far from overflowing; else the first with no more that are than the last, the smallest."""
    seen = []
    for arrays in tries:
        if count == 1:
            return arrays
        seen.append((_overflows(kernel, arrays, tiles), arrays))
        if seen[-1][0] == 0:
            return arrays
    return next(arrays for overflows, arrays in seen if overflows <= seen[-1][0])


def _overflows(kernel: Kernel, arrays: Arrays, tiles: Collection[int] | None) -> int:
    """How many elements that are written are infinite, no numbers, or so near to the end of their type that rounding decides."""
    import ml_dtypes
    import numpy as np

    written = {t.name: np.zeros(t.shape, bool) for t in kernel.tensors if t.output}
    outputs = run_kernel(kernel, arrays, written, tiles)
    floats = [a[written[name]] for name, a in outputs.items() if a.dtype.kind not in "iu"]
    ends = (float(ml_dtypes.finfo(a.dtype).max) / 2 for a in floats)
    return sum(int(np.sum(~(np.abs(a.astype(np.float64)) <= end))) for a, end in zip(floats, ends, strict=True))


def _tops(kernel: Kernel) -> tuple[float, ...]:
    return TOPS[1:] if any(_has_product(s) for s in assigns(kernel.body)) else TOPS


def _has_product(node: Any) -> bool:
    parts = (getattr(node, part, None) for part in ("value", "x", "y", "a", "b"))
    return isinstance(node, MatMul) or any(map(_has_product, filter(is_dataclass, parts)))


def _array(rng: np.random.Generator, t: Tensor, number: int, name: str, top: float) -> np.ndarray:
    dtype = numpy_dtype(t.dtype)
    if t.dtype.scale:
        return _scales(rng, t, 12 if name == "wide" else 4).astype(dtype)
    if dtype.kind in "iu":
        return _whole(rng, t, name).astype(dtype)
    if name == "wide":
        return _wide(rng, t, top).astype(dtype)
    plain = rng.uniform(-1, 1, t.shape)
    return (_with_specials(rng, plain, number) if name == "nan" else plain).astype(dtype)


def _scales(rng: np.random.Generator, t: Tensor, most: int) -> np.ndarray:
    """Powers of two, from 2**-most to 2**most."""
    import numpy as np

    return np.exp2(rng.integers(-most, most + 1, t.shape).astype(np.float32))


def _whole(rng: np.random.Generator, t: Tensor, name: str) -> np.ndarray:
    """-8 to 8 (of bools 0 and 1); `wide` has all bytes, and of longer numbers those that float holds exactly."""
    if t.truth:
        return rng.integers(0, 2, t.shape)
    if name != "wide":
        return rng.integers(-8, 9, t.shape)
    end = 1 << min(8 * t.dtype.bytes - 1, 23)
    x = rng.integers(-end, end, t.shape)
    return _some(rng, _some(rng, x, 1 / 16, -end), 1 / 16, 0)


def _wide(rng: np.random.Generator, t: Tensor, top: float) -> np.ndarray:
    """Rows (along the last dimension) of different kinds; among their elements ties, zeros and subnormals."""
    import ml_dtypes
    import numpy as np

    shape = (int(np.prod(t.shape[:-1])), t.shape[-1])
    x = top * 2 ** -rng.uniform(0, OCTAVES, shape) * rng.choice([-1, 1], shape)
    repeated = rng.random(shape) < 1 / 8
    repeated[:, :1] = False
    x = np.where(repeated, np.roll(x, 1, axis=1), x)
    x = _some(rng, x, 1 / 32, 0)
    x = _some(rng, x, 1 / 64, float(ml_dtypes.finfo(numpy_dtype(t.dtype)).smallest_normal) * rng.uniform(-1, 1, shape))
    return _in_rows(rng, x, top).reshape(t.shape)


def _in_rows(rng: np.random.Generator, x: np.ndarray, top: float) -> np.ndarray:
    """The rows as `ROWS` says, in any order; a tensor of one row keeps it, else all of it might be zero."""
    import numpy as np

    if len(x) == 1:
        return x
    kinds = np.array(ROWS)[rng.permutation(len(x)) % len(ROWS)][:, None]
    below = -top * rng.uniform(0.5, 1, x.shape)
    equal = np.broadcast_to(2.0 ** -rng.integers(2, 6, (len(x), 1)), x.shape)
    choices = {"negative": below, "small": x / 256, "equal": equal, "zero": np.zeros_like(x)}
    return np.select([kinds == kind for kind in choices], list(choices.values()), x)


def _with_specials(rng: np.random.Generator, x: np.ndarray, number: int) -> np.ndarray:
    """In one matrix of x, a row in eight has a NaN, one an infinity, and one minus infinity; the others have none.

    Tensors of different `number` have them in different matrices, where there are several: what one poisons leaves some of
    what the others do.
    """
    import numpy as np

    out = x.copy()
    matrices = out.reshape(-1, *x.shape[-2:]) if x.ndim > 1 else out.reshape(1, 1, -1)
    rows = matrices[number % len(matrices)]
    order = rng.permutation(len(rows))
    for first, special in enumerate((np.nan, np.inf, -np.inf)):
        chosen = order[first::8]
        rows[chosen, rng.integers(0, rows.shape[1], len(chosen))] = special
    return out


def _some(rng: np.random.Generator, x: np.ndarray, share: float, value: Any) -> np.ndarray:
    """x with the value at some places."""
    import numpy as np

    return np.where(rng.random(x.shape) < share, value, x)
