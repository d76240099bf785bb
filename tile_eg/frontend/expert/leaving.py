"""`break`, `continue` and `T.loop_break()` where only run time knows whether they are come by.

A number says whether the loop still runs, another one whether the trip does; what stands behind is done where they hold.
"""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.nodes import Exits, On
from tile_eg.frontend.expert.variables import set_to
from tile_eg.frontend.python.defined import Defined
from tile_eg.frontend.python.source import read_function
from tile_eg.frontend.python.word_users import uses_words
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import Expr
from tile_eg.ir.program import Formula
from tile_eg.language.kernels import Macro

if TYPE_CHECKING:
    from tile_eg.frontend.expert.reader import ExpertReader

LOOPS = (ast.For, ast.While, ast.FunctionDef, ast.Lambda)


def leaving(r: ExpertReader, body: Sequence[ast.stmt]) -> set[str]:
    """Which of "break" and "continue" are the loop's that has this body; a macro may have T.loop_break() of it."""
    return _leaving(body, ChainMap(r.local, dict(r.names)), frozenset())


def _leaving(body: Sequence[ast.stmt], names: Mapping[str, Any], within: frozenset[FunctionType]) -> set[str]:
    found = set[str]()
    for node in _own(body):
        if isinstance(node, ast.Continue):
            found.add("continue")
        elif isinstance(node, ast.Break) or _is_word(node):
            found.add("break")
        elif isinstance(node, ast.Call):
            found |= _in_macro(node.func, names, within)
    return found


def _in_macro(called: ast.expr, names: Mapping[str, Any], within: frozenset[FunctionType]) -> set[str]:
    """The same of what is written out where it is called."""
    made = _named(called, names)
    function = made.function if isinstance(made, Macro) else made
    if isinstance(function, Defined):
        source = function.found()
    elif isinstance(function, FunctionType) and function not in within and (made is not function or uses_words(function)):
        source, within = read_function(function), within | {function}
    else:
        return set()
    return _leaving(source.node.body, source.names, within) if isinstance(source.node, ast.FunctionDef) else set()


def _named(e: ast.expr, names: Mapping[str, Any]) -> Any:
    """What a name stands for, or an attribute of it; None where that is not known before it is read."""
    if isinstance(e, ast.Attribute):
        return getattr(_named(e.value, names), e.attr, None)
    return names.get(e.id) if isinstance(e, ast.Name) else None


def _own(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    for node in body:
        if not isinstance(node, LOOPS):
            yield node
            yield from _own(list(ast.iter_child_nodes(node)))


def _is_word(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "loop_break"


@contextmanager
def exits(r: ExpertReader, body: Sequence[ast.stmt], span: Span, loop: str = "") -> Iterator[Exits]:
    """The numbers of a loop with this body; `loop` is one that its condition has already."""
    kinds = leaving(r, body)
    made = Exits(loop or (_number(r, "running") if "break" in kinds else ""), _number(r, "here") if "continue" in kinds else "")
    if made.loop and not loop:
        set_to(r, made.loop, _value(1), span)
    r.exits.append(made)
    try:
        yield made
    finally:
        r.exits.pop()


def trip(r: ExpertReader, body: Sequence[ast.stmt], made: Exits, span: Span) -> None:
    """One trip of the loop, where it still runs."""
    if not made.loop:
        return begun(r, body, made, span)
    with r.block(repeats=False) as inner:
        begun(r, body, made, span)
    r.statements.append(On(None, pr.When(ix.scalar(made.loop, 1), tuple(inner))))  # type: ignore[arg-type]
    return None


def begun(r: ExpertReader, body: Sequence[ast.stmt], made: Exits, span: Span) -> None:
    """One trip of a loop that runs."""
    if made.trip:
        set_to(r, made.trip, _value(1), span)
    run(r, body)


def run(r: ExpertReader, body: Sequence[ast.stmt]) -> None:
    """Statements of which those behind a branch that may leave are done only where it did not."""
    for n, node in enumerate(body):
        r.run([node])
        if (kinds := leaving(r, [node])) and r.exits:
            surely = isinstance(node, ast.Break | ast.Continue) or (isinstance(node, ast.Expr) and _is_word(node.value))
            if body[n + 1 :] and not surely:
                _rest(r, body[n + 1 :], _runs(r.exits[-1], kinds))
            return


def _runs(made: Exits, kinds: set[str]) -> Expr:
    """Whether what stands behind a branch is still done."""
    names = [name for name, kind in ((made.loop, "break"), (made.trip, "continue")) if kind in kinds]
    found = ix.ONE
    for name in names:
        found = ix.both(found, ix.scalar(name, 1))
    return found


def _rest(r: ExpertReader, body: Sequence[ast.stmt], condition: Expr) -> None:
    with r.block(repeats=False) as inner:
        run(r, body)
    if inner:
        r.statements.append(On(None, pr.When(condition, tuple(inner))))  # type: ignore[arg-type]


def left(r: ExpertReader, span: Span, again: bool) -> None:
    """The trip, or the loop, is left here."""
    name = (r.exits[-1].trip if again else r.exits[-1].loop) if r.exits else ""
    if not name or r.in_parallel:
        raise TileError("there is no loop here that can be left", span, help="T.serial, range and `while` can")
    set_to(r, name, _value(0), span)


def _number(r: ExpertReader, wish: str) -> str:
    name = r.unique(wish)
    r.scalars[name] = True
    r.variables.add(name)
    return name


def _value(n: int) -> Formula:
    return Formula("number", (float(n),), True)
