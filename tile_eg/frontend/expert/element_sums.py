"""`T.Parallel` in a kernel that is kept: its statements in turn, and tiles or their rows where it adds to a tensor.

Flags stand around the tiles that are the compiler's own.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tile_eg.frontend.element_sums import with_element_sums
from tile_eg.frontend.expert import variables
from tile_eg.frontend.expert.moves import added, handover
from tile_eg.frontend.expert.parallel import elements, read_loop
from tile_eg.frontend.expert.picked import where_read
from tile_eg.frontend.expert.places import Held
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.python.values import Loop
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Alloc, Assign, For, If, Parallel, Stmt, assigns
from tile_eg.ir.operands import regions
from tile_eg.ir.program import AIV
from tile_eg.ops.types import Level


def parallel(r: ExpertReader, node: ast.For, loop: Loop, names: list[str]) -> None:
    """An element loop."""
    for s in read_loop(r, node, loop, names):
        if 0 not in s.extents:
            _done(r, s)


def _done(r: ExpertReader, s: Parallel) -> None:
    held = {b.name: Alloc(b.name, "shared", b.dtype, b.shape) for b in r.held.values()}
    parts = with_element_sums((s,), tuple(r.tensors.values()), r.unique, held)
    _statements(r, parts, {part.name for part in parts if isinstance(part, Alloc)})


def _statements(r: ExpertReader, parts: Sequence[Stmt], own: set[str]) -> None:
    for part in parts:
        _statement(r, part, own)
        if isinstance(part, Parallel) and own & _written(part):
            handover(r, AIV, "V", "MTE3", part.span)  # type: ignore[arg-type]
        elif own & _read(part) and not own & _written(part):
            handover(r, AIV, "MTE3", "V", part.span)  # type: ignore[arg-type]


def _written(s: Stmt) -> set[str]:
    return {a.target.name for a in assigns((s,))}


def _read(s: Stmt) -> set[str]:
    return {x.name for a in assigns((s,)) for x in regions(a.value)}


def _statement(r: ExpertReader, s: Stmt, own: set[str]) -> None:
    """What a loop became, as nodes of the program."""
    match s:
        case Alloc():
            r.held[s.name] = Held(s.name, Level.UB, s.dtype, s.shape, s.span)
        case Parallel():
            elements(r, s)
        case For():
            r.grid[s.var] = (0, s.extent - 1)
            with r.block(repeats=True) as body:
                _statements(r, s.body, own if any(isinstance(x, Parallel) for x in s.body) else set())
            r.place_node(None, pr.Loop(s.var, s.extent, tuple(body), s.span))  # type: ignore[arg-type]
        case If():
            condition = variables.condition(r, s.condition, s.span)
            with r.block(repeats=False) as then, r.where(condition):
                _statement(r, s.then[0], set())
            r.place_node(None, pr.When(condition, tuple(then)))  # type: ignore[arg-type]
        case Assign() if s.span is not None:
            condition = _picked(r, s)
            if condition.value == 1:
                return added(r, s.span, s.target, s.value, s.atomic or "add")
            with r.block(repeats=False) as then, r.where(condition):
                added(r, s.span, s.target, s.value, s.atomic or "add")
            r.place_node(None, pr.When(condition, tuple(then)))  # type: ignore[arg-type]
    return None


def _picked(r: ExpertReader, s: Assign) -> Expr:
    """That the elements exist which say where to add: those that a tensor's end cuts off add nothing."""
    return ix.ONE if r.ends is None else where_read(r, r.ends, s.target.starts, s.target.span or s.span)
