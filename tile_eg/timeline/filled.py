"""How much of an access's bytes is moved, over all its blocks and trips: tensors end within tiles, and guards leave trips out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from tile_eg.ir.index import BLOCK, SUB, Expr, less, var, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.program import Instr, Loop
from tile_eg.ir.sampling import spread
from tile_eg.timeline.arrays import values

MOST_POINTS = 1 << 15
"""So many blocks and trips are looked at; where there are more, those that lie evenly among them."""
EVEN = 1.0, 1.0


class Access(Protocol):
    """What is needed of an access (`accesses.Access` says what it holds)."""

    @property
    def instr(self) -> Instr: ...
    @property
    def loops(self) -> Sequence[Loop]: ...
    @property
    def guards(self) -> Sequence[Expr]: ...
    @property
    def blocks(self) -> int: ...
    @property
    def halves(self) -> int: ...
    @property
    def means(self) -> Mapping[str, float]: ...
    @property
    def names(self) -> frozenset[str]: ...
    def times(self, loops: Iterable[Loop]) -> float: ...


def filled(a: Access, blocks: int) -> tuple[float, float]:
    """What an access moves, of its bytes in all its runs; and the same of the runs that move what no other one does.

    Guards and sizes that values of a tensor decide are left out: nobody knows them before the launch.
    """
    lengths = {BLOCK: blocks, SUB: a.halves, **{v.var: v.trips for v in a.loops}}
    asked = [e for e in (a.instr.rows, a.instr.cols, *a.guards) if _known(e, lengths)]
    if not any(_uneven(e, a) for e in asked):
        return EVEN
    names = frozenset[str]().union(*map(variables, asked))
    axes = {name: n for name, n in lengths.items() if name in names}
    moved, most = _moved(a, asked, axes), _at_start(a, asked)
    if not most:
        return EVEN
    once = moved.max(axis=tuple(k for k, name in enumerate(axes) if name not in a.names), keepdims=True)
    return _share(a, moved, axes, axes, most), _share(a, once, axes, a.names, most)


def _share(a: Access, moved: np.ndarray, axes: Mapping[str, int], along: Collection[str], most: int) -> float:
    """The sum of what is moved `along` some of the axes, of `most` in as many runs as the access says that there are."""
    runs = a.times(v for v in a.loops if v.var in axes and v.var in along)
    runs *= (a.blocks if BLOCK in axes and BLOCK in along else 1) * (a.halves if SUB in axes and SUB in along else 1)
    points = prod(n for name, n in axes.items() if name in along)
    return min(1.0, float(moved.mean()) * points / (most * runs)) if runs else 1.0


def _moved(a: Access, asked: Sequence[Expr], axes: Mapping[str, int]) -> np.ndarray:
    """Elements in each point of the axes."""
    env = _grid(axes)
    rows, cols = (np.maximum(values(e, env), 0) if e in asked else 1 for e in (a.instr.rows, a.instr.cols))
    moved: Any = rows * cols
    for guard in a.guards:
        if guard in asked:
            moved = moved * (values(guard, env) != 0)
    return np.broadcast_to(moved, [n.size for n in env.values()])


def _known(e: Expr, lengths: Mapping[str, int]) -> bool:
    return e.op != "const" and variables(e) <= lengths.keys() and not elements_in(e)


def _uneven(e: Expr, a: Access) -> bool:
    """Whether it says more than `blocks` and `means` do, in which the guards of blocks and the lengths of loops are."""
    if e not in a.guards:
        return True
    counted = [less(var(v.var), v.until) for v in a.loops if v.until is not None]
    held = e == a.instr.when and any(v.var in a.means and v.until is not None for v in a.loops if v.var in variables(e))
    return variables(e) != {BLOCK} and e not in counted and not held


def _at_start(a: Access, asked: Sequence[Expr]) -> int:
    start = dict.fromkeys((BLOCK, SUB, *(v.var for v in a.loops)), 0)
    return prod(max(0, int(values(e, start))) for e in (a.instr.rows, a.instr.cols) if e in asked)


def _grid(axes: Mapping[str, int]) -> dict[str, Any]:
    """Each name along an axis of its own, its values in order."""
    most = MOST_POINTS
    while prod(min(n, most) for n in axes.values()) > MOST_POINTS:
        most //= 2
    shape = [[-1 if i == k else 1 for i in range(len(axes))] for k in range(len(axes))]
    return {name: np.array(spread(n, most)).reshape(shape[k]) for k, (name, n) in enumerate(axes.items())}
