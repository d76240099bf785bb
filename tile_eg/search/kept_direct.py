"""Copies between the two kinds of core on architecture 3510: straight from L0C to UB, and from UB to L1, without the workspace.

Such a copy in a kept kernel is written as a store to a workspace, a flag there, a load and a flag back. Here the core that takes
the tile first says that it has done with the place, the other one writes it, and says so. What has no direct form (columns parted
between the vector cores, parts of a buffer, columns that are no whole blocks) stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tile_eg.ir.index import SUB, ZERO, variables
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.program import Buffer, CrossSet, CrossWait, Instr, Loop, Node, PipeBarrier, Tile, When, walk
from tile_eg.ops.records import record
from tile_eg.ops.types import Level


@record
class _Copy:
    """The store to a workspace, and the load from it."""

    store: Instr
    load: Instr

    def direct(self, op: str) -> Instr:
        """The one instruction that does both."""
        assert isinstance(self.load.dst, Tile) and isinstance(self.store.dst, Tile)
        to = self.load.dst if op == "fixpipe" else replace(self.load.dst, row=self.store.dst.row)
        return replace(self.store, op=op, dst=to)


def with_direct_paths(kernel: KeptKernel) -> KeptKernel:
    """The kernel with such copies on their direct paths, where they have one."""
    buffers = {b.name: b for b in kernel.buffers}
    handed = {b.name for b in kernel.buffers if b.level is Level.WS}
    copies = {name: c for name in sorted(handed) if (c := _copy(kernel, name)) is not None}
    good = {name: c for name, c in copies.items() if _has_path(c, buffers)}
    parted = {n: _parted(c) for n, c in good.items() if c.store.op == "fixpipe"}
    halved = {c.load.dst.buffer: parted[n] for n, c in good.items() if n in parted and isinstance(c.load.dst, Tile)}
    good = {n: c for n, c in good.items() if n not in parted or halved[c.load.dst.buffer] == parted[n]}  # type: ignore[union-attr]
    kept = (replace(b, halved=halved.get(b.name, b.halved)) for b in kernel.buffers if b.name not in good)
    cube, vector = (tuple(_changed(nodes, good)) for nodes in (kernel.cube, kernel.vector))
    return replace(kernel, cube=cube, vector=vector, buffers=tuple(kept)) if good else kernel


def _copy(kernel: KeptKernel, name: str) -> _Copy | None:
    nodes = [n for n in walk((*kernel.cube, *kernel.vector)) if isinstance(n, Instr)]
    stores = [n for n in nodes if _of(n.dst, name)]
    loads = [n for n in nodes if any(_of(o, name) for o in n.srcs)]
    return _Copy(stores[0], loads[0]) if len(stores) == len(loads) == 1 else None


def _of(operand: Any, name: str) -> bool:
    return isinstance(operand, Tile) and operand.buffer == name


def _has_path(c: _Copy, buffers: Mapping[str, Buffer]) -> bool:
    part = c.load.srcs[0] if c.store.op == "fixpipe" else c.store.dst
    to = c.load.dst
    if not isinstance(part, Tile) or not isinstance(to, Tile) or part.col != ZERO or (to.row, to.col) != (ZERO, ZERO):
        return False
    target = buffers[to.buffer]
    if c.store.op == "fixpipe":
        return c.load.rows.value == target.rows and target.slots == 1
    source = c.store.srcs[0]
    assert isinstance(source, Tile)
    held = buffers[source.buffer]
    blocks = 32 // held.dtype.bytes
    whole = c.load.rows.value == target.rows and c.load.cols.value == target.cols
    return whole and (source.row, source.col) == (ZERO, ZERO) and not (held.pitch % blocks or (c.store.cols.value or 1) % blocks)


def _parted(c: _Copy) -> bool:
    """Whether each vector core gets its own rows."""
    part = c.load.srcs[0]
    return isinstance(part, Tile) and SUB in variables(part.row)


def _changed(nodes: Sequence[Node], copies: Mapping[str, _Copy]) -> list[Node]:
    out: list[Node] = []
    k = 0
    while k < len(nodes):
        n = nodes[k]
        done = next((made for form in (_giver, _taker) if (made := form(nodes[k : k + 3], copies))), None)
        if done is not None:
            out += done
            k += 3
            continue
        out.append(replace(n, body=tuple(_changed(n.body, copies))) if isinstance(n, Loop | When) else n)
        k += 1
    return out


def _giver(nodes: Sequence[Node], copies: Mapping[str, _Copy]) -> list[Node] | None:
    """Store, flag there, wait for the flag back: waits first, and then writes to the other core."""
    match nodes:
        case [Instr(dst=Tile(buffer=name)) as store, CrossSet() as there, CrossWait() as back] if name in copies:
            op = "fixpipe" if store.op == "fixpipe" else "ub_to_l1"
            return [back, copies[name].direct(op), there]
    return None


def _taker(nodes: Sequence[Node], copies: Mapping[str, _Copy]) -> list[Node] | None:
    """Wait, load, flag back: says that its place is free, and waits until it is filled."""
    match nodes:
        case [CrossWait() as there, Instr(srcs=(Tile(buffer=name),)), CrossSet() as back] if name in copies:
            return [PipeBarrier("ALL", back.span), back, there]
    return None
