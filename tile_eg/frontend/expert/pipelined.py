"""`T.Pipelined(num_stages=n)` in a kernel that is kept: its loads run n - 1 trips ahead, into n buffers; the rest is in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_eg.errors import TileError
from tile_eg.frontend.expert.places import same_memory
from tile_eg.frontend.expert.reader import ExpertReader, On
from tile_eg.frontend.expert.streams import mapped
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import Expr
from tile_eg.ir.program.tasks import renamed

LOADS = ("gm_to_l1", "gm_to_ub")


def prefetched(r: ExpertReader, loop: pr.Loop, stages: int) -> list[On]:
    """The first trips' loads, and the loop in which each trip loads for the one `stages` - 1 behind it."""
    body: Sequence[Any] = loop.body
    made_here = _stored(body)
    loads = [on for on in body if isinstance(on.node, pr.Instr) and on.node.op in LOADS and _ahead(r, on.node, made_here)]
    loaded = {on.node.dst.buffer for on in loads}
    if not loads or loop.trips < 2:
        return [On(None, loop)]
    _check(r, body, loaded, loop)
    for name in loaded:
        r.held[name] = replace(r.held[name], slots=stages)
    trip, ahead = ix.var(loop.var), ix.var(loop.var) + (stages - 1)
    made: list[Any] = []
    for on in body:
        if any(on is load for load in loads):
            moved = _at(on.node, loop.var, ahead, loaded, stages)
            made.append(On(None, pr.When(ix.less(ahead, _trips(loop)), (On(on.core, moved),))))  # type: ignore[arg-type]
        else:
            made.append(On(on.core, _slotted(on.node, loaded, trip % stages)))
    first = range(min(stages - 1, loop.trips))
    early = [On(on.core, _at(on.node, loop.var, ix.const(k), loaded, stages)) for k in first for on in loads]
    return [*early, On(None, replace(loop, body=tuple(made)))]


def _ahead(r: ExpertReader, load: pr.Instr, made_here: set[str]) -> bool:
    """Whether a load may run ahead: the author declared the buffer that is loaded, others are loaded where they are needed; and
    nothing in the loop stores to the tensor, of which an earlier trip would load what is not there yet."""
    (source,) = load.srcs
    there = isinstance(source, pr.Gm) and source.tensor not in made_here
    return there and isinstance(load.dst, pr.Tile) and load.dst.buffer in r.held


def _stored(body: Sequence[Any]) -> set[str]:
    """The tensors that a loop's body stores to."""
    found = set[str]()
    for on in body:
        if isinstance(on.node, pr.Loop | pr.When):
            found |= _stored(on.node.body)
        elif isinstance(on.node, pr.Instr) and isinstance(on.node.dst, pr.Gm):
            found.add(on.node.dst.tensor)
    return found


def _trips(loop: pr.Loop) -> Expr:
    return ix.const(loop.trips) if loop.until is None else loop.until


def _check(r: ExpertReader, body: Sequence[Any], loaded: set[str], loop: pr.Loop) -> None:
    for name in loaded:
        held = r.held[name]
        if name in same_memory(r.views, r.views):
            what = f"{name} has another shape or element type too, and gets a buffer for each stage here"
            raise TileError(what, loop.span, help="leave num_stages out")
        if held.slots > 1 or name in r.addresses:
            why = "is in a pipelined loop already" if held.slots > 1 else "has an address"
            raise TileError(f"{name} {why}, and gets a buffer for each stage here", loop.span, help="leave num_stages out")
    if loop.until is not None:
        raise TileError("a pipelined loop in a kernel that is kept has a number of trips", loop.span, help="use T.serial")
    for on in body:
        if isinstance(on.node, pr.Instr) and on.node.op == "l1_zero":
            raise TileError("a pipelined loop loads whole blocks in a kernel that is kept", on.node.span, help="use T.serial")


def _at(node: Any, var: str, trip: Expr, loaded: set[str], stages: int) -> Any:
    """A load as it is in another trip, into that trip's buffer."""
    (moved,) = renamed((node,), {var: trip})
    return _slotted(moved, loaded, trip % stages)


def _slotted(node: Any, loaded: set[str], slot: Expr) -> Any:
    def tile(o: Any) -> Any:
        return replace(o, slot=slot) if isinstance(o, pr.Tile) and o.buffer in loaded else o

    def instr(i: pr.Instr) -> pr.Instr:
        value = i.value and _in_formula(i.value, tile)
        return replace(i, dst=tile(i.dst), srcs=tuple(map(tile, i.srcs)), value=value)

    return mapped(node, instr)


def _in_formula(f: pr.Formula, tile: Any) -> pr.Formula:
    return replace(f, args=tuple(_in_formula(a, tile) if isinstance(a, pr.Formula) else tile(a) for a in f.args))
