"""Buffers that an author puts at one address: each may be read only where it holds what was written by its own name.

The statements are gone through as they stand, trip by trip, for some blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from tile_eg.errors import Span
from tile_eg.frontend.python.temporaries import uses_of
from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.sequential.blocks import some_blocks
from tile_eg.frontend.sequential.handovers import box_of
from tile_eg.frontend.sequential.parts import unordered
from tile_eg.ir import index as ix
from tile_eg.ir.index import Interval
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Alloc, Assign, For, If, Parallel, Region, Stmt

MOST = 200_000
"""Statements that are gone through, at most."""
Env = Mapping[str, Interval]
Lost = dict[str, np.ndarray]


def check_shared_addresses(
    body: Sequence[Stmt], addresses: Mapping[str, int], levels: Mapping[str, str], grid: Mapping[str, Interval]
) -> None:
    """TileError where a buffer is read, and its memory may hold what was written by the name of another one."""
    shapes = {s.name: s.shape for s in nodes(tuple(body)) if isinstance(s, Alloc)}
    sizes = {s.name: prod(s.shape) * max(1, s.slots) * s.dtype.bits // 8 for s in nodes(tuple(body)) if isinstance(s, Alloc)}
    given = {n: (at, at + sizes[n]) for n, at in addresses.items() if n in sizes}
    beside = {
        n: {o for o, theirs in given.items() if o != n and levels.get(n) == levels.get(o) and _meet(mine, theirs)}
        for n, mine in given.items()
    }
    if any(beside.values()):
        for at in some_blocks(grid, body):
            _Walk(beside, shapes).run(body, {v: (n, n) for v, n in at.items()})


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


@dataclass
class _Walk:
    """`lost` are the elements over which another buffer was written, `by` that buffer, and where."""

    beside: Mapping[str, set[str]]
    shapes: Mapping[str, tuple[int, ...]]
    lost: Lost = field(default_factory=dict)
    by: dict[str, tuple[str, Span | None]] = field(default_factory=dict)
    steps: int = 0

    def run(self, body: Sequence[Stmt], env: Env) -> None:
        for s in body:
            match s:
                case For() if self.matters(s):
                    count = s.extent if s.count is None else ix.evaluate(s.count, _numbers(env))
                    for v in range(s.start, s.start + count):
                        self.run(s.body, {**env, s.var: (v, v)})
                case If() if self.matters(s):
                    self.branch(s, env)
                case Parallel():
                    self.run(s.body, {**env, **{v: (0, n - 1) for v, n in zip(s.vars, s.extents, strict=True)}})
                case Assign():
                    self.assign(s, env)

    def matters(self, s: Stmt) -> bool:
        return any(self.beside.get(name) for name in uses_of(s))

    def branch(self, s: If, env: Env) -> None:
        known = _numbers(env)
        if not ix.variables(s.condition) - known.keys() and not elements_in(s.condition):
            return self.run(s.then if ix.evaluate(s.condition, known) else s.otherwise, env)
        before = {n: mask.copy() for n, mask in self.lost.items()}
        self.run(s.then, env)
        after, self.lost = self.lost, before
        self.run(s.otherwise, env)
        for name, mask in after.items():
            self.lost[name] = self.lost[name] | mask if name in self.lost else mask
        return None

    def assign(self, s: Assign, env: Env) -> None:
        self.steps += 1
        if self.steps > MOST:
            raise unordered(f"there are more than {MOST} statements to be held against the addresses", s.span)
        for r in nodes(s.value):
            if isinstance(r, Region) and r.name in self.lost and self.lost[r.name][_slices(r, env)].any():
                other, place = self.by[r.name]
                message = f"`{r.name}` is read here, and shares its memory with `{other}`, which was written since"
                raise unordered(message, r.span or s.span, (("written here", place),))
        self.write(s, env)

    def write(self, s: Assign, env: Env) -> None:
        target = s.target
        if target.name in self.lost and _all_of_its_box(target, env):
            self.lost[target.name][_slices(target, env)] = False
        for other in self.beside.get(target.name, ()):
            self.lost[other] = np.ones(self.shapes[other], bool)
            self.by[other] = target.name, s.span


def _numbers(env: Env) -> dict[str, int]:
    return {v: low for v, (low, high) in env.items() if low == high}


def _slices(r: Region, env: Env) -> tuple[slice, ...]:
    return tuple(slice(max(0, low), high + 1) for low, high in box_of(r, env))


def _all_of_its_box(r: Region, env: Env) -> bool:
    """Whether a window is all of the least box that holds it: each start is known, or moves along its own dimension."""
    seen = set[str]()
    for start in r.starts:
        moving = {v for v in ix.variables(start) if v not in env or env[v][0] != env[v][1]}
        if len(moving) > 1 or moving & seen or not moving <= env.keys() or elements_in(start):
            return False
        if any(v in ix.variables(start - ix.var(v)) for v in moving):
            return False
        seen |= moving
    return r.step == 1 and not any(r.counts)
