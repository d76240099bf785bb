"""The index expressions in the nodes of a program, and their variables."""

from __future__ import annotations

from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.program import (
    CrossSet,
    CrossWait,
    Formula,
    Instr,
    Loop,
    Node,
    Operand,
    Print,
    Scalar,
    SetFlag,
    Tasks,
    Tile,
    WaitFlag,
    When,
    walk,
)


def expressions_of(n: Node) -> list[Expr]:
    match n:
        case When():
            return [n.condition]
        case Loop() if not isinstance(n, Tasks):
            return [] if n.until is None else [n.until]
        case Tasks():
            return [n.until, *(let.value for let in n.lets)]
        case SetFlag() | WaitFlag():
            return [n.id]
        case CrossSet() | CrossWait():
            return [n.id] if isinstance(n.id, Expr) else []
        case Print():
            return [n.holds, *(e for f in n.args for e in f.indices()), *_places((n.shown,) if n.shown else ())]
        case Instr():
            parts = _places((n.dst, *n.srcs, *([n.scratch] if n.scratch else [])))
            formula = n.value.indices() if n.value else ()
            return [n.rows, n.cols, n.depth, n.init, n.bound, n.when, n.unit, *formula, *parts]
        case Scalar():
            return list(n.value.indices())
    return []


def _places(operands: tuple[Operand, ...]) -> list[Expr]:
    """The index expressions that say where operands begin."""
    return [e for o in operands for e in ((o.slot, o.row, o.col) if isinstance(o, Tile) else (o.offset,))]


def variables_of(nodes: tuple[Node, ...]) -> set[str]:
    return {v for n in walk(nodes) for e in expressions_of(n) for v in ix.variables(e)}


def kept_numbers_of(n: Node) -> set[str]:
    """What a node reads by name: the kept numbers, and the inputs of which it reads elements for an index."""
    formulas = n.args if isinstance(n, Print) else [f for f in (getattr(n, "value", None),) if isinstance(f, Formula)]
    return {r.args[0] for e in expressions_of(n) for r in all_elements_in(e)} | {name for f in formulas for name in f.scalars()}


def read_outside(nodes: tuple[Node, ...], seen: set[str]) -> set[str]:
    """The names that are read where no number that is kept in the same block, or around it, has been set; `seen` grows."""
    found: set[str] = set()
    for n in nodes:
        found |= kept_numbers_of(n) - seen
        if isinstance(n, Scalar):
            seen.add(n.name)
        if isinstance(n, Loop | When):
            found |= read_outside(n.body, set(seen))
    return found
