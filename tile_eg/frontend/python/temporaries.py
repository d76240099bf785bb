"""Buffers that each trip of a loop fills before it reads them, and that nothing outside of it uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.ranges import all_values
from tile_eg.ir.index import variables
from tile_eg.ir.index_elements import all_elements_in, elements_in
from tile_eg.ir.kernel import Assign, For, Parallel, Region, Stmt

ELEMENTS = 1 << 16
"""Loops over more elements than this are not looked through."""


def uses_of(tree: object) -> Counter[str]:
    """How many windows of each buffer and tensor there are, and how many indices are read from it."""
    windows = [r for r in nodes(tree) if isinstance(r, Region)]
    return Counter(r.name for r in windows) + Counter(e.args[0] for r in windows for s in r.starts for e in all_elements_in(s))


def temporaries(loop: For, shapes: Mapping[str, tuple[int, ...]], uses: Counter[str]) -> set[str]:
    """The buffers that each trip of a loop fills before it reads them, and that nothing outside of it uses."""
    inside = uses_of(loop.body)
    written = {n.target.name for n in nodes(loop.body) if isinstance(n, Assign)} & shapes.keys()
    return {name for name in written if inside[name] == uses[name] and _fills(loop.body, name, shapes[name])}


def _fills(body: Sequence[Stmt], name: str, shape: tuple[int, ...]) -> bool:
    """Whether the first statement that uses a buffer writes all of it, and reads nothing of it."""
    first = next(s for s in body if name in uses_of(s))
    match first:
        case Assign():
            return first.target.shape == shape and first.target.name == name and uses_of(first)[name] == 1
        case Parallel(vars=names, extents=extents):
            return _reaches_all(first.body, name, shape, dict(zip(names, extents, strict=True)))
        case For() if first.extent and first.count is None:
            inside = all(isinstance(s, Assign) for s in first.body)
            found = inside and _reaches_all(first.body, name, shape, {first.var: first.extent}, first.start)  # type: ignore[arg-type]
            return found or _fills(first.body, name, shape)
    return False


def _reaches_all(
    body: Sequence[Assign], name: str, shape: tuple[int, ...], extents: Mapping[str, int], start: int = 0
) -> bool:
    """Whether assignments in a loop over elements write every element of a buffer, and read none of it."""
    targets = [s.target for s in body if s.target.name == name]
    import numpy as np

    if uses_of(tuple(body))[name] > len(targets) or prod(extents.values()) > ELEMENTS or any(t.shape for t in targets):
        return False
    if any(variables(x) - extents.keys() or elements_in(x) for t in targets for x in t.starts):
        return False
    ranges = {v: (start, start + n - 1) for v, n in extents.items()}
    places = [np.broadcast_arrays(*(all_values(x, ranges, list(extents)) for x in t.starts)) for t in targets]
    return len({p for axes in places for p in zip(*(a.ravel().tolist() for a in axes), strict=True)}) == prod(shape)
