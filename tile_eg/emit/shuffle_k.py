"""Shuffle-K: each core begins a sum over depth at another trip, and comes to the first ones at the end.

Cores that share an operand then read other lines of it at a time; otherwise L2 gives a line to one after the other of them, and
all wait for HBM. CATLASS has it as `ENABLE_SHUFFLE_K`. The sums are of the same products in another order, the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile_eg.ir.index import BLOCK, Expr, substitute, var, variables
from tile_eg.ir.program import Gm, Instr, Loop, Node, Operand, Program, Tile, WaitFlag, walk
from tile_eg.ir.program.instructions import PipeBarrier, SetFlag

PRODUCTS = ("gm_to_l1", "l1_to_l0a", "l1_to_l0b", "mmad")
"""What a trip consists of that does nothing but add a product."""


def shuffled(program: Program) -> Program | None:
    """The program with another first trip in each core for its loops of products; None where it has none."""
    cube = _all(program.cube, frozenset(n.var for n in walk(program.vector) if isinstance(n, Loop)))
    return replace(program, cube=cube) if cube != program.cube else None


def _all(nodes: tuple[Node, ...], shared: frozenset[str]) -> tuple[Node, ...]:
    """The nodes with their outermost loops of products begun elsewhere, but those that the vector cores go through as well."""
    return tuple(_node(n, shared) for n in nodes)


def _node(node: Node, shared: frozenset[str]) -> Node:
    if not isinstance(node, Loop):
        return node
    if node.var not in shared and _adds_products(node):
        return _begun_elsewhere(node)
    return replace(node, body=_all(node.body, shared))


def _adds_products(loop: Loop) -> bool:
    """Whether all that the trips of a loop do is to load whole tiles that move on, and to add their products."""
    nodes = list(walk(loop.body))
    instrs = [n for n in nodes if isinstance(n, Instr)]
    if loop.trips < 2 or loop.until is not None or {i.op for i in instrs}.isdisjoint({"mmad"}):
        return False
    moves_on = any(loop.var in _named(i.srcs[0]) for i in instrs if i.op == "gm_to_l1")
    alone = all(isinstance(n, Loop | SetFlag | WaitFlag | PipeBarrier | Instr) for n in nodes)
    return moves_on and alone and all(_in_any_order(i, loop) for i in instrs)


def _in_any_order(i: Instr, loop: Loop) -> bool:
    """Whether an instruction may be done for another trip: nothing but what it reads, and where it puts that, varies."""
    fixed = {v for e in (i.rows, i.cols, i.depth, i.bound, i.when) for v in variables(e)}
    if i.op not in PRODUCTS or loop.var in fixed or not isinstance(i.dst, Tile):
        return False
    if i.op == "gm_to_l1":
        return isinstance(i.srcs[0], Gm) and loop.var not in variables(i.dst.row) | variables(i.dst.col)
    if i.op == "mmad":
        return loop.var not in _named(i.dst)
    return all(_read_in_any_order(source, loop) for source in i.srcs)


def _read_in_any_order(source: Operand, loop: Loop) -> bool:
    """Whether what goes on to L0 lies where another trip finds it as well."""
    if not isinstance(source, Tile):
        return False
    window = variables(source.row) | variables(source.col)
    return loop.var not in (window if source.buffer in _filled(loop) else variables(source.slot))


def _filled(loop: Loop) -> set[str]:
    """The buffers in L1 that a loop fills."""
    return {n.dst.buffer for n in walk(loop.body) if isinstance(n, Instr) and n.op == "gm_to_l1" and isinstance(n.dst, Tile)}


def _named(operand: Operand) -> frozenset[str]:
    """The variables that say where an operand is."""
    return frozenset(v for e in _places(operand) for v in variables(e))


def _places(operand: Operand) -> Iterator[Expr]:
    yield from (operand.offset,) if isinstance(operand, Gm) else (operand.slot, operand.row, operand.col)


def _begun_elsewhere(loop: Loop) -> Loop:
    trip = {loop.var: (var(loop.var) + var(BLOCK)) % loop.trips}
    return replace(loop, body=_with(loop.body, trip, _filled(loop)))


def _with(nodes: tuple[Node, ...], trip: dict[str, Expr], filled: set[str]) -> tuple[Node, ...]:
    """The nodes for another trip; flags, buffers and what comes first go by the trips as they come."""
    return tuple(_of_trip(n, trip, filled) for n in nodes)


def _of_trip(node: Node, trip: dict[str, Expr], filled: set[str]) -> Node:
    if isinstance(node, Loop):
        return replace(node, body=_with(node.body, trip, filled))
    if not isinstance(node, Instr):
        return node
    if node.op == "mmad":
        return replace(node, held=None)  # a part of a sum that the kernel does not have
    held = node.held and node.held.changed(lambda e: substitute(e, trip))
    return replace(node, srcs=tuple(_moved(s, trip, filled) for s in node.srcs), held=held)


def _moved(source: Operand, trip: dict[str, Expr], filled: set[str]) -> Operand:
    if isinstance(source, Gm):
        return replace(source, offset=substitute(source.offset, trip))
    if source.buffer in filled:
        return source
    return replace(source, row=substitute(source.row, trip), col=substitute(source.col, trip))
