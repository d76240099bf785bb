"""Buffers that an author puts at one address: each may be read only while it holds what was written by its own name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tile_eg.errors import Span
from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.sequential.parts import unordered
from tile_eg.ir.kernel import Alloc, Assign, For, If, Parallel, Region, Stmt


def check_shared_addresses(body: Sequence[Stmt], addresses: Mapping[str, int], levels: Mapping[str, str]) -> None:
    """TileError where a buffer is read, and its memory may hold what was written by the name of another one."""
    sizes = {s.name: prod(s.shape) * s.dtype.bits // 8 for s in nodes(tuple(body)) if isinstance(s, Alloc)}
    given = {n: (at, at + sizes[n]) for n, at in addresses.items() if n in sizes}
    beside = {
        n: {o for o, theirs in given.items() if o != n and levels.get(n) == levels.get(o) and _meet(mine, theirs)}
        for n, mine in given.items()
    }
    if any(beside.values()):
        _Walk(beside).run(body)


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


@dataclass
class _Walk:
    """`lost` are buffers over which another one was written: its name, and where."""

    beside: Mapping[str, set[str]]
    lost: dict[str, tuple[str, Span | None]] = field(default_factory=dict)

    def run(self, body: Sequence[Stmt]) -> None:
        for s in body:
            match s:
                case For():
                    for _ in range(min(2, s.extent)):  # what a trip leaves there, the next one may read
                        self.run(s.body)
                case If():
                    self.run(s.then)
                    self.run(s.otherwise)
                case Parallel():
                    self.run(s.body)
                case Assign():
                    self.assign(s)

    def assign(self, s: Assign) -> None:
        for r in nodes(s.value):
            if isinstance(r, Region) and r.name in self.lost:
                other, place = self.lost[r.name]
                message = f"`{r.name}` is read here, and shares its memory with `{other}`, which was written since"
                raise unordered(message, r.span or s.span, (("written here", place),))
        name = s.target.name
        if name in self.beside:
            self.lost.pop(name, None)
            self.lost |= dict.fromkeys(self.beside[name], (name, s.span))
