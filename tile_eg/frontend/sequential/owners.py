"""Whose a statement outside of scopes is: the cube core's where its buffers are, else the vector cores'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_eg.frontend.python.values import nodes
from tile_eg.ir.kernel import Assign, MatMul, Region, Stmt
from tile_eg.ir.program import AIC, AIV


class Owners:
    """`levels` are those that the author gave; a buffer without one is the cube core's where products read or write it."""

    def __init__(self, levels: Mapping[str, str], body: Sequence[Stmt]) -> None:
        self.cube = {name for name, level in levels.items() if level != "UB"}
        for s in nodes(tuple(body)):
            if isinstance(s, Assign) and any(isinstance(n, MatMul) for n in nodes(s.value)):
                self.cube |= {r.name for r in nodes(s) if isinstance(r, Region) and levels.get(r.name) != "UB"}

    def of(self, s: Stmt) -> str:
        return AIC if any(isinstance(r, Region) and r.name in self.cube for r in nodes(s)) else AIV
