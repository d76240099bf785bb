"""Index expressions in NumPy, and the places of a region that they make."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tile_eg.errors import TileError
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index_elements import elements_in

Array = np.ndarray
NO_INDEX = -(1 << 52)
"""What is read for an index beyond the end of a tensor, or of a tile that ended there: what begins at it lies outside of all."""
Env = Mapping[str, int | Array]


def meant(r: kn.Region, env: Env) -> Array:
    """Which elements of a region are meant, by its counts, as an array of its rank."""
    found, n = np.ones((1,) * len(r.shape), bool), 0
    for count, extent in zip(r.counts, r.extents, strict=False):
        if extent is not None:
            if count is not None:
                below = np.arange(extent) < evaluate(count, env)
                found = found & below.reshape((-1,) + (1,) * (len(r.shape) - n - 1))
            n += 1
    return found


def refuse_outside(r: kn.Region, d: int, at: Array, size: int) -> None:
    """TileError where an index that was read begins a window outside of its tensor."""
    found = outside(at, size)
    if found.size:
        value = int(found.flat[0])
        what = f"an index of `{r.name}` that is read is {value}: dimension {d} has {size} elements"
        way = f"one that a condition leaves out is read, too: keep it inside by max(min(i, {size - 1}), 0)"
        raise TileError(what, r.span, help=way)


def outside(at: Array, size: int) -> Array:
    """Those of some indices that were read and do not lie in a dimension."""
    return at[((at < 0) | (at >= size)) & ~_is_nowhere(at)]


def _is_nowhere(at: int | Array) -> Array:
    """Which indices were made of `NO_INDEX`, with what is usually added to it."""
    return np.abs(at) >= -NO_INDEX // 16


def _inside(indices: ix.Indices, env: Env) -> bool | Array:
    """Whether each index of an element that is read lies in its dimension."""
    found: bool | Array = True
    for e, size in indices:
        at = evaluate(e, env)
        found = found & (at >= 0) & (at < size)
    return found


def evaluate(e: ix.Expr, env: Env) -> int | Array:
    """An index expression where variables may be arrays over an element loop."""
    if e.op == "const":
        return e.args[0]
    if e.op == "var":
        return env[e.args[0]]
    if e.op == "read":
        return env[ix.READ](e.args[0], evaluate(e.args[1], env), _inside(e.args[3], env))  # type: ignore[operator]
    parts = [evaluate(a, env) for a in e.args]
    if e.op == "add":
        return sum(parts[1:], parts[0])
    a, b = parts
    if e.op in ("lt", "and"):
        return (a < b) * 1 if e.op == "lt" else (a != 0) & (b != 0)
    f = {"mul": np.multiply, "div": np.floor_divide, "mod": np.mod, "min": np.minimum, "max": np.maximum}[e.op]
    if e.op in ("div", "mod") and elements_in(e.args[0]):
        return np.where(_is_nowhere(a), a, f(a, b))
    return f(a, b)
