"""Branches and `while` in a kernel that is kept: by indices, by variables, by elements that are read."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.conditions import is_condition, opposite
from tile_eg.frontend.expert import leaving, macros, variables
from tile_eg.frontend.expert.functions import of_numbers
from tile_eg.frontend.expert.nodes import Branch, On, Part, ScalarUnit
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.expert.scalars import formula
from tile_eg.frontend.python.bools import as_condition
from tile_eg.frontend.python.expressions import evaluate
from tile_eg.frontend.python.values import is_tile
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import Expr
from tile_eg.ir.program import Formula


def branch(r: ExpertReader, test: Any, then: list[ast.stmt], otherwise: list[ast.stmt], span: Span) -> None:
    """The one body where the condition holds, the other one where it does not."""
    test = as_condition(test, span)
    if is_tile(test):
        raise TileError("a condition compares: x[i] > 0, x[i] != y[i]", span)
    if not is_condition(test):
        return leaving.run(r, then if test else otherwise)
    test = variables.condition(r, test, span)
    low, high = ix.bounds(test, r.ranges)
    if low == high:
        return leaving.run(r, then if low else otherwise)
    there = ix.ONE if r.ends is None else r.ends.meant(test)
    chosen = (test, then), (opposite(test, None), otherwise)
    arms = [partial(guarded, r, ix.both(there, c), body) for c, body in chosen]  # type: ignore[arg-type]
    for arm in arms if r.ends is None else r.ends.one_of(r, arms, test if there.value == 1 else None):
        arm()
    return None


def taken(r: ExpertReader, node: ast.With, chosen: Branch) -> None:
    """The bodies of `with T.Then():` and `with T.Else():` inside of `with T.If(...):`."""
    parts: dict[str, list[ast.stmt]] = {"Then": [], "Else": []}
    for s in node.body:
        part = evaluate(r, s.items[0].context_expr) if isinstance(s, ast.With) and len(s.items) == 1 else None
        if not isinstance(part, Part) or parts[part.name]:
            raise r.error("inside T.If stand `with T.Then():` and `with T.Else():`, once each", s)
        parts[part.name] = s.body  # type: ignore[attr-defined]
    branch(r, chosen.test, parts["Then"], parts["Else"], r.span(node.items[0].context_expr))


def _if(r: ExpertReader, node: ast.If) -> None:
    branch(r, evaluate(r, node.test), node.body, node.orelse, r.span(node.test))


def repeated(r: ExpertReader, node: ast.While) -> None:
    """The condition is looked at before each trip, and kept under a name."""
    test, span = evaluate(r, node.test), r.span(node.test)
    if isinstance(test, int) and test and "break" in leaving.leaving(r, node.body):
        return _until_left(r, node, span, Formula("number", (1.0,), True), None)
    if not is_condition(test) or not variables.changes(r, test):
        if is_condition(test) or test:
            help = 'a variable changes: n = T.alloc_var("int32", init=0)'
            raise r.error("what this loop looks at does not change in it", node.test, help)
        return None
    return _until_left(r, node, span, formula(r, test, span), node.test)


def _until_left(r: ExpertReader, node: ast.While, span: Span, first: Formula, again: ast.expr | None) -> None:
    """A loop whose condition is a number: `first` before it, that of `again` behind each trip that does not leave it."""
    name = r.unique("going")
    _looked(r, name, first, span)
    before = r.ends and r.ends.begun()
    with r.block(repeats=True) as body, leaving.exits(r, node.body, span, name) as exits:
        leaving.begun(r, node.body, exits, span)
        if again is not None:
            with r.block(repeats=False) as end:
                _looked(r, name, formula(r, evaluate(r, again), span), span)
            leaves = "break" in leaving.leaving(r, node.body)
            whole = [On(None, pr.When(ix.scalar(name, 1), tuple(end)))] if leaves else end  # type: ignore[arg-type]
            r.statements.extend(whole)  # type: ignore[arg-type]
    if r.ends and before:
        r.ends.left(r, "", before)
    r.place_node(None, pr.While(ix.scalar(name, 1), tuple(body)))  # type: ignore[arg-type]


def _looked(r: ExpertReader, name: str, test: Formula, span: Span) -> None:
    """The loop goes on where the condition holds, and what it looks at exists."""
    variables.set_to(r, name, test, span)
    there = ix.ONE if r.ends is None else r.ends.meant(ix.scalar(name, 1))
    if there.value != 1:
        variables.set_to(r, name, Formula("index", (ix.both(there, ix.scalar(name, 1)),), True), span)


def guarded(r: ExpertReader, condition: Expr, body: list[ast.stmt]) -> None:
    """The statements where the condition holds."""
    with r.block(repeats=False) as inner, r.where(condition):
        leaving.run(r, body)
    if inner:
        r.statements.append(On(None, pr.When(condition, tuple(inner))))  # type: ignore[arg-type]


SCALAR_UNIT = ScalarUnit(
    variables.settled, variables.number, variables.bound, variables.declared, variables.assigned, variables.variable_of, taken,
    {
        ast.If: _if, ast.While: repeated,
        ast.Break: lambda r, node: leaving.left(r, r.span(node), False),
        ast.Continue: lambda r, node: leaving.left(r, r.span(node), True),
    },
    leaving.exits, leaving.trip, macros.body, of_numbers,
)  # fmt: skip
