"""Statements of a kernel in Python."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

from tile_eg.errors import FollowUp, NotSearched, Span, TileError
from tile_eg.frontend.conditions import compared_in, guarded, is_condition, of_elements
from tile_eg.frontend.element_loops import read_as, trip_by_trip
from tile_eg.frontend.python import plain_statements as plain
from tile_eg.frontend.python.bools import as_condition, as_stored
from tile_eg.frontend.python.branch_words import as_if
from tile_eg.frontend.python.build import Builder, Leave, ReadAgain
from tile_eg.frontend.python.counted_loops import with_ends
from tile_eg.frontend.python.defined import Defined
from tile_eg.frontend.python.expressions import arithmetic, evaluate
from tile_eg.frontend.python.loops_apart import apart
from tile_eg.frontend.python.source import read_function
from tile_eg.frontend.python.trips_of_indices import most_trips
from tile_eg.frontend.python.values import (
    OPEN,
    Buffer,
    Loop,
    Slice,
    Window,
    as_region,
    as_tile,
    describe,
    is_tile,
    plainly,
    stored_at,
)
from tile_eg.frontend.python.ways_out import ENDS, OUTSIDE, STATEMENTS, of_arguments
from tile_eg.frontend.python.words import counted
from tile_eg.frontend.python.written_out import MOST, has_own_trips, trips_of
from tile_eg.frontend.python.written_size import many_elements
from tile_eg.frontend.windows import known_shape, may_vary
from tile_eg.ir import index
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Assign, For, If, Parallel, Region, Stmt, TileExpr

MACRO_DEPTH = 32


class Return(Exception):
    """Leaves a macro with its value."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Reader(Builder):
    """Reads statements into the builder. `last` are the statements that end the launch."""

    calls = 0
    last: Sequence[ast.stmt] = ()

    def counted_slice(self, start: Expr, extent: Expr, size: int, span: Span) -> Slice:
        """A slice of which the kernel finds out how long it is: the other side says how many elements it has at most."""
        if extent.value is not None or not may_vary(extent):
            return super().counted_slice(start, extent, size, span)
        return Slice(start, OPEN, extent)

    def assign(self, target: Region, value: TileExpr, span: Span | None, atomic: str = "") -> None:
        """NotSearched where a part of a buffer is written or read whose length only the kernel knows, and that has no form."""
        super().assign(self.first_elements.written(target, self.shapes, value, span), value, span, atomic)

    def rules(self) -> dict[type, Callable[..., None]]:
        """What each kind of statement means."""
        return RULES

    def has_own_trips(self, node: ast.For, loop: Loop) -> bool:
        """Whether a loop is read trip by trip."""
        return has_own_trips(node, loop, self.local)

    def check_last(self, node: ast.For) -> None:
        """TileError where a loop over all tiles is not the last statement of the kernel."""
        if not any(node is s for s in self.last) or self.outer:
            help = "stores may stand in it; what all tiles have in common, before it"
            raise self.error("T.Persistent has to be the last statement of the kernel", node, help)

    def finished(self) -> list[Stmt]:
        """The statements of the whole body, in their order."""
        return self.statements

    def settled(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """What else has to be known of the body, and changed in it, where a kernel is read in another way than this one."""
        return body

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Reads statements one by one; a mistake in one is told beside those in others."""
        for node in (part for s in body for part in apart(s)):
            try:
                self.statement(node)
            except ReadAgain:
                raise
            except TileError as e:
                self.tell(e, node)

    def statement(self, node: ast.stmt) -> None:
        rule = self.rules().get(type(node))
        if rule is None:
            word, help = STATEMENTS.get(type(node), (type(node).__name__.lower(), OUTSIDE))
            raise self.error(f"`{word}` has no meaning in a kernel", node, help)
        try:
            rule(self, node)
        except (TileError, Return, Leave):
            raise
        except Exception as e:
            raise self.error(f"this cannot be done: {plainly(e)}", node) from e
        plain.check_lists(self, node)

    def run_macro(self, body: list[ast.stmt]) -> None:
        """The statements of a macro."""
        self.run(body)

    def inline(self, function: FunctionType | Defined, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        """Writes out a function's body with its parameters bound; gives what it returns."""
        found = function.found() if isinstance(function, Defined) else read_function(function)
        signature = function.signature() if isinstance(function, Defined) else inspect.signature(function)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as e:
            name = function.__name__ if function.__name__ != "<lambda>" else ast.unparse(node.func)
            raise self.error(f"{name}: {e}", node, of_arguments(name, signature, kwargs)) from e
        bound.apply_defaults()
        if self.calls >= MACRO_DEPTH:
            raise self.error(f"{function.__name__} calls itself without end", node)
        self.calls += 1
        told, value = len(self.told), None
        try:
            with self.inlined(found.source, found.names, dict(bound.arguments)):
                if isinstance(found.node, ast.Lambda):
                    return evaluate(self, found.node.body)
                self.run_macro(found.node.body)
        except Return as r:
            value = r.value
        finally:
            self.calls -= 1
        if len(self.told) > told:
            raise FollowUp(self.span(node))
        return value


def _expression(r: Reader, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return
    if evaluate(r, node.value) is not None:
        raise r.error(f"the value of {ast.unparse(node.value)} is not used", node, "assign it: c[:, :] = ...")


def _return(r: Reader, node: ast.Return) -> None:
    if r.outer or not r.calls:
        inside = "assign to a name there, and return that at the end" if r.calls else ENDS
        raise r.error("`return` stands at the end of a function, not in a loop, a branch or a kernel", node, inside)
    raise Return(None if node.value is None else evaluate(r, node.value))


# Assignments


def _assign(r: Reader, node: ast.Assign) -> None:
    value = evaluate(r, node.value)
    for target in node.targets:
        _store(r, target, value, node)


def _annotated(r: Reader, node: ast.AnnAssign) -> None:
    if node.value is not None:
        _store(r, node.target, evaluate(r, node.value), node)


def _store(r: Reader, target: ast.expr, value: Any, node: ast.stmt) -> None:
    if isinstance(target, ast.Name):
        r.bind(target.id, value, r.span(node))
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(r, target, value, node)
    elif isinstance(target, ast.Subscript) and isinstance(held := evaluate(r, target.value), list | dict):
        plain.item_assigned(r, held, evaluate(r, target.slice), value, target)
    elif isinstance(target, ast.Subscript):
        place = evaluate(r, target)
        if not isinstance(place, Window):
            raise r.error(f"{ast.unparse(target)} is not an element or slice of a buffer", target)
        r.assign(_place(r, place, value, node), as_stored(place, value, r.span(node)), r.span(node))
    else:
        raise r.error(f"{ast.unparse(target)} cannot be assigned in a kernel", target)


def _place(r: Reader, window: Window, value: Any, node: ast.stmt) -> Region:
    """What an assignment to a window writes: `C[i, j] = tile` writes a tile that starts there."""
    shape = known_shape(as_tile(value, r.span(node)))
    if window.is_open and shape and not r.in_parallel:
        return stored_at(window, shape)
    return as_region(window, r.span(node))


def _unpack(r: Reader, target: ast.Tuple | ast.List, value: Any, node: ast.stmt) -> None:
    rest = next((n for n, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
    if rest is not None and isinstance(value, (tuple, list)) and len(value) >= len(target.elts) - 1:
        behind = len(target.elts) - rest - 1
        end = len(value) - behind
        value = [*value[:rest], list(value[rest:end]), *value[end:]]
        plain = [t.value if isinstance(t, ast.Starred) else t for t in target.elts]
        target = ast.copy_location(ast.Tuple(plain, ast.Store()), target)
    if not isinstance(value, (tuple, list)) or len(value) != len(target.elts):
        raise r.error(f"{describe(value)} does not unpack into {len(target.elts)} names", node)
    for t, v in zip(target.elts, value, strict=True):
        _store(r, t, v, node)


def _augmented(r: Reader, node: ast.AugAssign) -> None:
    read = plain.loaded(node.target)
    old = evaluate(r, read)
    value = arithmetic(r, type(node.op), old, evaluate(r, node.value), node)
    if not isinstance(old, (Buffer, Window)):
        _store(r, node.target, value, node)
    else:
        r.assign(as_region(old, r.span(node.target)), as_stored(old, value, r.span(node)), r.span(node))


# Branches and loops


def _if(r: Reader, node: ast.If) -> None:
    test = as_condition(evaluate(r, node.test), r.span(node.test))
    if is_tile(test) or (of_elements(test) and not r.in_parallel):
        help = "choose element by element: T.if_then_else(x > y, x, y)"
        if of_elements(test) and all(known_shape(v) == () for c in compared_in(test) for v in (c.a, c.b)):
            raise NotSearched("the search has no form for a branch by an element that is read", r.span(node.test))
        raise r.error("a branch cannot depend on the elements of a tile", node.test, help)
    if not is_condition(test):
        return r.run(node.body if test else node.orelse)
    then, otherwise = (_block(r, body) for body in (node.body, node.orelse))
    if r.in_parallel:
        r.statements += guarded(test, then, otherwise, r.span(node))
        return None
    r.statements.append(If(test, then, otherwise, r.span(node)))
    return None


def _block(r: Reader, body: Sequence[ast.stmt]) -> tuple[Stmt, ...]:
    with r.block(repeats=False) as statements:
        r.run(body)
    return tuple(statements)


def _for(r: Reader, node: ast.For) -> None:
    if node.orelse:
        raise r.error("else on a loop is not supported in a kernel", node)
    r.most = most_trips(r.local, node)
    over, r.most = evaluate(r, node.iter), None
    if isinstance(over, range):
        over = counted(r, r.span(node.iter), over.start, over.stop, over.step)
    if isinstance(over, Loop):
        return {"parallel": _parallel, "persistent": _persistent}.get(over.kind, _loop)(r, node, over)
    if isinstance(over, Iterable) and not is_tile(over) and not isinstance(over, str | dict):
        return _unrolled(r, node, list(over))
    help = "T.serial, T.Pipelined, T.Parallel and range are"
    if is_tile(over):
        rows = (known_shape(as_tile(over, r.span(node.iter))) or ("n",))[0]
        help = f"over its rows: for i in range({rows}), where {ast.unparse(node.iter)}[i, :] is one of them"
    raise r.error(f"{ast.unparse(node.iter)} is not a loop", node.iter, help)


def _unrolled(r: Reader, node: ast.For, over: Iterable[Any]) -> None:
    before = len(r.statements)
    for value in over:
        _store(r, node.target, value, node)
        if not _trip(r, node.body):
            break
        r.too_long = r.too_long or many_elements(r.statements[before:], r.span(node))


def _trip(r: Reader, body: Sequence[ast.stmt]) -> bool:
    """Reads one trip of a loop that is written out; False where it leaves the loop."""
    outside, r.may_leave = r.may_leave, True
    try:
        r.run(body)
    except Leave as left:
        return left.again
    finally:
        r.may_leave = outside
    return True


def _while(r: Reader, node: ast.While) -> None:
    if node.orelse:
        raise r.error("else on a loop is not supported in a kernel", node)
    for _ in range(MOST):
        test = evaluate(r, node.test)
        if is_condition(test) or is_tile(test):
            help = "count in a number that is known when the kernel is compiled, or write a loop with a range"
            what = "the search has no form for a loop whose end is known only at run time"
            raise NotSearched(what, r.span(node.test), help=help)
        if not test or not _trip(r, node.body):
            return
    raise r.error(f"this loop runs more than {MOST} times", node, "write `for i in T.serial(n)`")


def _names(r: Reader, node: ast.For, count: int) -> list[str]:
    targets = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
    if len(targets) != count or not all(isinstance(t, ast.Name) for t in targets):
        what = f"this loop has {count} variable{'s' * (count > 1)}, got {ast.unparse(node.target)}"
        raise r.error(what, node.target, f"write `for {', '.join('ijklmn'[:count])} in {ast.unparse(node.iter)}:`")
    return [t.id for t in targets if isinstance(t, ast.Name)]


def _loop(r: Reader, node: ast.For, loop: Loop) -> None:
    if r.in_parallel:
        raise r.error("a serial loop inside T.Parallel is not supported", node, "put the serial loop outside")
    if r.has_own_trips(node, loop):
        names = _names(r, node, len(loop.extents))
        _unrolled(r, node, (v if len(names) > 1 else v[0] for v in trips_of(loop)))
    else:
        _nest(r, node, loop, _names(r, node, len(loop.extents)), 0)


def _nest(r: Reader, node: ast.For, loop: Loop, names: list[str], axis: int) -> None:
    if axis == len(names):
        return r.run(node.body)
    if loop.extents[axis] == 0 and loop.count is None:
        return None
    var, start = r.unique(names[axis]), loop.starts[axis]
    plain = loop.step == 1 and isinstance(start, int)
    r.trips[var] = (start, start + loop.extents[axis] - 1) if isinstance(start, int) and plain else (0, loop.extents[axis] - 1)
    with r.block(repeats=True) as body:
        r.local[names[axis]] = index.var(var) if plain else start + index.var(var) * loop.step
        _nest(r, node, loop, names, axis + 1)
    first = start if plain and isinstance(start, int) else 0
    made = For(var, first, loop.extents[axis], loop.kind, loop.stages, tuple(body), r.span(node), loop.count)
    r.statements += trip_by_trip(made, *_known(r))
    return None


def _parallel(r: Reader, node: ast.For, loop: Loop) -> None:
    if r.in_parallel:
        raise r.error("T.Parallel inside T.Parallel is not supported", node, "write one: for i, j in T.Parallel(m, n)")
    names = _names(r, node, len(loop.extents))
    if loop.counts:
        return with_ends(r, node, loop, names, partial(_parallel, r))
    variables = tuple(r.unique(n) for n in names)
    r.in_parallel, r.along = True, variables
    r.trips |= {v: (0, max(0, n - 1)) for v, n in zip(variables, loop.extents, strict=True)}
    try:
        with r.block(repeats=True) as body:
            r.local.update({n: index.var(v) for n, v in zip(names, variables, strict=True)})
            r.run(node.body)
    finally:
        r.in_parallel, r.along = False, ()
    r.statements += read_as(Parallel(variables, loop.extents, _element_assignments(body), r.span(node)), *_known(r))
    return None


def _known(r: Reader) -> tuple[Any, ...]:
    """What reading an element loop asks of names."""
    tensor = lambda name: None if name in r.shapes else r.shape_named(name)  # noqa: E731
    return r.dtype_of, r.shape_named, r.unique, {**r.trips, **r.grid}, tensor


def _persistent(r: Reader, node: ast.For, loop: Loop) -> None:
    """All tiles as the blocks of a grid: each is done once, by whichever block, so that none may know of another."""
    r.check_last(node)
    before, first = set(r.writes), len(r.writes)
    names = _names(r, node, len(loop.extents))
    variables = [r.unique(n) for n in names]
    r.renew_grid({v: (0, n - 1) for v, n in zip(variables, loop.extents, strict=True)}, r.span(node.iter), "T.Persistent")
    r.local.update({n: index.var(v) for n, v in zip(names, variables, strict=True)})
    r.run(node.body)
    if carried := before & set(r.writes[first:]):
        name = min(carried)
        message = f"`{name}` is carried from tile to tile, and tiles of T.Persistent have no order"
        raise r.error(message, node, f"fill {name} inside")


def _element_assignments(body: list[Stmt]) -> tuple[Assign, ...]:
    for s in body:
        if not isinstance(s, Assign):
            raise TileError("inside T.Parallel only assignments of elements are supported", s.span)
    return tuple(s for s in body if isinstance(s, Assign))


RULES: dict[type, Callable[..., None]] = {
    ast.Expr: _expression, ast.Assign: _assign, ast.AnnAssign: _annotated, ast.AugAssign: _augmented, ast.If: _if,
    ast.For: _for, ast.Assert: plain.asserted, ast.Return: _return, ast.Pass: lambda r, node: None,
    ast.With: lambda r, node: _if(r, as_if(r, node, evaluate)),
    ast.While: _while, ast.Break: lambda r, node: r.leave(r.span(node), False),
    ast.Continue: lambda r, node: r.leave(r.span(node), True),
    ast.FunctionDef: plain.function_defined, ast.Delete: plain.deleted, ast.Import: plain.imported,
    ast.ImportFrom: plain.imported_from, ast.Raise: plain.raised,
}  # fmt: skip
