"""`T.Parallel` in a kernel that is kept: each statement of its body in turn, for all elements, as vector instructions.

A statement that only copies is what `T.copy` is. What else it reads of a tensor is loaded, and what it writes to one stored, with
flags around the place in UB that is the compiler's own; nothing else is added between pipes. Where elements do not lie as vector
instructions take them, the rows are done one by one, or the scalar unit copies single elements, and a note says so.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from dataclasses import fields, replace
from functools import reduce
from typing import Any

from tile_eg.errors import Note, TileError
from tile_eg.frontend.conditions import guarded, is_condition, opposite
from tile_eg.frontend.element_loops import by_trips, read_as
from tile_eg.frontend.expert import written_rows
from tile_eg.frontend.expert.accesses import Access, Axes, Unfit, access, accesses, check_order, idle, place, window
from tile_eg.frontend.expert.bools import noted
from tile_eg.frontend.expert.elements import Elements
from tile_eg.frontend.expert.extents import unless
from tile_eg.frontend.expert.loads import fitted
from tile_eg.frontend.expert.nodes import TripByTrip
from tile_eg.frontend.expert.operands import FULL, Step, check_aligned, inside, kind_of
from tile_eg.frontend.expert.part_stores import OPTIONS, stored_in_part
from tile_eg.frontend.expert.picked import where_read
from tile_eg.frontend.expert.places import same_memory
from tile_eg.frontend.expert.reader import ExpertReader, On
from tile_eg.frontend.expert.registers import Registers, each
from tile_eg.frontend.expert.scalars import drained_in, of_tensor
from tile_eg.frontend.expert.typed import in_type_of
from tile_eg.frontend.guarded_stores import with_fewer_elements
from tile_eg.frontend.python.expressions import evaluate
from tile_eg.frontend.python.placement_words import HANDLERS
from tile_eg.frontend.python.values import Loop, is_tile, nodes
from tile_eg.frontend.ssa.positions import parts
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir import program as pr
from tile_eg.ir.index import ZERO, Expr
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Assign, Choose, Number, Region, Select, TileExpr, at_places, mapped
from tile_eg.ir.program import AIV, Formula, Tile
from tile_eg.language.elementwise_words import EXPRESSIONS as EXPRESSION_WORDS
from tile_eg.language.elementwise_words import UNARY
from tile_eg.ops.types import I32, Level


def read_loop(r: ExpertReader, node: ast.For, loop: Loop, names: list[str]) -> list[kn.Parallel]:
    """An element loop as it is written, or as loops over its parts. TileError where its iterations depend on each other."""
    if len(names) != len(loop.extents):
        raise r.error(f"this loop has {len(loop.extents)} variables, got {ast.unparse(node.target)}", node.target)
    variables = [r.unique(n) for n in names]
    r.grid.update({v: (0, max(0, n - 1)) for v, n in zip(variables, loop.extents, strict=True)})
    written = kn.Parallel(tuple(variables), tuple(loop.extents), _body(r, node, names, variables), r.span(node))
    known = r.dtype_of, r.shape_named, r.unique, r.ranges
    parts = [p for s in with_fewer_elements(written, r.tensors) for p in read_as(s, *known)]
    for part in parts if r.ends is not None else ():
        if v := by_trips(part, r.shape_named, {v: r.ranges[v] for v in r.around}):
            raise TripByTrip(r.around[v])
    for part in parts if 0 not in loop.extents else ():
        r.grid.update({v: (0, n - 1) for v, n in zip(part.vars, part.extents, strict=True)})
        check_order(r, tuple(s for s in part.body if not s.atomic), _axes(part))
    return parts


def _axes(s: kn.Parallel) -> Axes:
    """The last two variables are rows and columns."""
    *outer, col = zip(s.vars, s.extents, strict=True)
    row = outer[-1] if outer else (None, 1)
    return Axes(row[0], col[0], row[1], col[1])


def elements(r: ExpertReader, s: kn.Parallel) -> None:
    """Each statement of a loop for all elements; all but its last two variables are loops around it."""
    with r.block(repeats=False) as made:
        for a in s.body:
            statement(r, a, _axes(s))
    found: list[Any] = list(made)
    for name, extent in reversed([*zip(s.vars, s.extents, strict=True)][:-2]):
        found = [On(None, pr.Loop(name, extent, tuple(found), s.span))]
    r.statements += found


def _body(r: ExpertReader, node: ast.For, names: list[str], variables: list[str]) -> tuple[Assign, ...]:
    if r.in_parallel:
        raise r.error("T.Parallel inside T.Parallel is not supported", node, "write one: for i, j in T.Parallel(m, n)")
    r.in_parallel, r.along = True, tuple(variables)
    try:
        with r.block(repeats=True) as body:
            r.local.update({n: ix.var(v) for n, v in zip(names, variables, strict=True)})
            r.run(node.body)
    finally:
        r.in_parallel, r.along = False, ()
    for s in body:
        if not isinstance(s, Assign):
            raise r.error("inside T.Parallel only assignments of elements are supported", node, "write the words behind the loop")
    return tuple(s for s in body if isinstance(s, Assign))


def statement(r: ExpertReader, s: Assign, axes: Axes) -> None:
    """One assignment for all elements."""
    gone = idle(s, axes) | {n for n in axes.names if axes.extent(n) == 1}
    axes, s = axes.without(gone), at_places(s, dict.fromkeys(gone, ZERO))
    noted(r, s.target, s.value, s.span)
    if stored_in_part(r, s, axes):
        return None
    drained_in(r, s, axes.uses)
    s = replace(s, value=_single(in_type_of(r, s, axes)))
    if (there := _there(r, s, axes)).value == 1:
        with written_rows.followed(r, s, axes):
            return _by_condition(r, s, axes)
    with r.block(repeats=False) as inner, r.where(there):
        _by_condition(r, s, axes)
    r.statements.append(On(None, pr.When(there, tuple(inner))))  # type: ignore[arg-type]
    return None


def _there(r: ExpertReader, s: Assign, axes: Axes) -> Expr:
    """That the rows, columns and elements exist which the statement takes alone, elsewhere than its target stands."""
    return _needed(r, s, axes, s.value)


def _needed(r: ExpertReader, s: Assign, axes: Axes, e: TileExpr) -> Expr:
    """The same of a part of the value. TileError where it is not the same for all elements."""
    if isinstance(e, Region):
        return _exists(r, s, axes, e)
    needed = [_needed(r, s, axes, x) for x in _operands(e)]
    if not isinstance(e, Select) or len({*needed}) == 1:
        return reduce(ix.both, needed, ix.ONE)
    if axes.uses(e.condition):
        what = "a tensor's end may cut off an element that one arm of this choice takes, and only some elements choose that arm"
        raise TileError(what, e.span or s.span, help="load the tile with pad_value, or write a loop for each arm")
    x, y = needed
    return ix.both(unless(opposite(e.condition, None), x), unless(e.condition, y))  # type: ignore[arg-type]


def _operands(e: TileExpr) -> list[TileExpr]:
    values = (getattr(e, f.name) for f in fields(e))
    return [x for v in values for x in (v if isinstance(v, tuple) else (v,)) if isinstance(x, TileExpr)]  # type: ignore[arg-type]


def _exists(r: ExpertReader, s: Assign, axes: Axes, x: Region) -> Expr:
    found = ix.ONE
    known = r.ends.known if r.ends is not None else {}
    if x.name in r.tensors and r.ends is not None and not any(axes.uses(at) or elements_in(at) for at in x.starts):
        return r.ends.there(r, of_tensor(r, x, r.tensors[x.name].dtype))
    ends = known.get(x.name, ()) if len(x.starts) <= 2 else ()
    for at, end in zip(x.starts[::-1], ends[::-1], strict=False):
        alone = not axes.uses(at) and at not in s.target.starts and not elements_in(at)
        if end is not None and alone and ix.bounds(at - end, r.ranges)[1] >= 0:
            found = ix.both(found, ix.less(at, end))
    return found


def _single(e: TileExpr) -> TileExpr:
    """The expression with one comparison in each choice by position."""
    return mapped(e, lambda x: Select(*_parted(x), x.span) if isinstance(x, Select) else x)


def _parted(e: Select) -> tuple[Expr, TileExpr, TileExpr]:
    x, y, c = parts(e)
    return c, _single(x), _single(y)


def _by_condition(r: ExpertReader, s: Assign, axes: Axes) -> None:
    """A choice that is the same for all elements is a branch around the statement."""
    for e in nodes(s.value):
        if isinstance(e, Select) and not axes.uses(e.condition):
            for condition, of in ((e.condition, 1), (opposite(e.condition, None), 2)):
                _branch(r, s, axes, e, condition, of)  # type: ignore[arg-type]
            return
    if s.value != s.target:
        _assigned(r, s, axes)


def _branch(r: ExpertReader, s: Assign, axes: Axes, e: Select, condition: Expr, arm: int) -> None:
    made = replace(s, value=mapped(s.value, lambda x: (x.x if arm == 1 else x.y) if x == e else x))
    low, high = ix.bounds(condition, r.ranges)
    if high == 0:
        return None
    if low == 1:
        return _by_condition(r, made, axes)
    with r.block(repeats=False) as inner:
        _by_condition(r, made, axes)
    if inner:
        r.statements.append(On(None, pr.When(condition, tuple(inner))))  # type: ignore[arg-type]
    return None


# One statement


def _assigned(r: ExpertReader, s: Assign, axes: Axes) -> None:
    if _copied(r, s, axes) or _zeroed(r, s, axes):
        return
    _check_target(r, s)
    tries: list[Callable[[], list[str]]] = [
        lambda: _vectors(r, s, axes, flat=True, gathers=False),
        lambda: _vectors(r, s, axes, flat=False, gathers=False),
        lambda: _row_by_row(r, s, axes),
        lambda: _vectors(r, s, axes, flat=False, gathers=True),
    ]
    for attempt in tries[:-1]:
        statements, notes = len(r.statements), len(r.notes)
        try:
            attempt()
            return
        except Unfit:
            del r.statements[statements:], r.notes[notes:]
    try:
        reasons = tries[-1]()
    except Unfit as e:
        raise TileError(f"{e}: T.Parallel cannot compute this", s.span, help="T.serial loops over single elements") from None
    if reasons:
        r.notes.append(Note(f"the scalar unit copies single elements here: {reasons[0]}", s.span))


def _check_target(r: ExpertReader, s: Assign) -> None:
    """A tensor is not read where some of its elements stay as they are."""
    if s.target.name in r.tensors and any(isinstance(e, Select | Choose) for e in nodes(s.value)):
        if any(x.name == s.target.name for x in accesses(s.value)):
            raise TileError(
                f"{s.target.name} is a tensor, and a condition decides which elements of it are written", s.span,
                help="choose into a buffer, and T.copy that; what lies beyond the end of a tensor is left out by itself",
            )  # fmt: skip
    elif s.target.name in r.held and r.held[s.target.name].level is not Level.UB:
        level = r.held[s.target.name].level
        r.used_by_vectors(s.target.name)
        raise TileError(f"{s.target.name} lies in {level}, and T.Parallel computes in UB", s.span,
                        help=f"compute in UB, and T.copy what {level} needs through GM")  # fmt: skip


def _copied(r: ExpertReader, s: Assign, axes: Axes) -> bool:
    """A statement that only moves elements between memories: T.copy of the windows."""
    value = s.value
    if not isinstance(value, Region) or value.name in r.scalars:
        return False
    levels = {r.level_of(value), r.level_of(s.target)}
    if levels in ({Level.UB}, {Level.GM}):
        return False
    types = {(r.tensors.get(x.name) or r.held[x.name]).dtype for x in (value, s.target)}
    if Level.UB in levels and len(types) > 1:
        return False
    try:
        source, target = (window(x, axes) for x in (value, s.target))
    except Unfit:
        if Level.UB in levels:
            return False
        raise TileError("this is no copy of rows of neighbouring elements", s.span) from None
    if source.shape != target.shape:
        return False
    from tile_eg.frontend.expert.moves import copy
    copy(r, s.span, *fitted(r, s, source, target), None, **OPTIONS)  # type: ignore[arg-type]
    return True


def _zeroed(r: ExpertReader, s: Assign, axes: Axes) -> bool:
    """A whole buffer of L0C that becomes 0."""
    if s.target.name in r.tensors or r.held[s.target.name].level is not Level.L0C or getattr(s.value, "value", None) != 0.0:
        return False
    found = window(s.target, axes)
    shape = r.held[s.target.name].shape
    if found.shape != shape[-len(found.shape) :] or len(found.shape) != 2 or any(x != ZERO for x in found.starts[-2:]):
        return False
    from tile_eg.frontend.expert.products import cleared

    cleared(r, s.span, found)  # type: ignore[arg-type]
    return True


def _row_by_row(r: ExpertReader, s: Assign, axes: Axes) -> list[str]:
    """The rows one after the other, each as a vector."""
    if axes.row is None or axes.rows == 1:
        raise Unfit("there are no rows")
    one, there = Axes(None, axes.col, 1, axes.cols), written_rows.there(r, s)
    with r.block(repeats=True) as body, r.where(there), written_rows.anew(r, s, axes):
        reasons = _vectors(r, s, one, flat=True, gathers=False)
    rows: list[Any] = list(body) if there.value == 1 else _zeros_elsewhere(r, s, axes, one, there, body)
    r.statements.append(On(None, pr.Loop(axes.row, axes.rows, tuple(rows), s.span)))  # type: ignore[arg-type]
    return reasons


def _zeros_elsewhere(r: ExpertReader, s: Assign, axes: Axes, one: Axes, there: Expr, body: Any) -> list[On]:
    """A row where it is there; of a buffer zeros where it is not."""
    exists = On(None, pr.When(there, tuple(body)))  # type: ignore[arg-type]
    if s.target.name not in r.held:
        return [exists]
    with written_rows.noted(r, s, axes), r.block(repeats=True) as zeros, r.where(1 - there):
        _vectors(r, replace(s, value=Number(0.0, s.span)), one, flat=True, gathers=False)
    return [exists, On(None, pr.When(1 - there, tuple(zeros)))]  # type: ignore[arg-type]


def _vectors(r: ExpertReader, s: Assign, axes: Axes, flat: bool, gathers: bool) -> list[str]:
    """Vector instructions for the value, into the target where they can. Why the scalar unit helps, where it does."""
    guarded = any(isinstance(e, Select | Choose) for e in nodes(s.value))
    made = Elements(r, axes, guarded, gathers)
    tensor = s.target.name in r.tensors
    dtype = r.tensors[s.target.name].dtype if tensor else r.held[s.target.name].dtype
    root = made.vector(made.to(made.of(s.value, dtype), dtype), dtype, FULL)
    into, scattered = (None, "") if tensor else _target(r, s.target, axes, guarded, gathers)
    if root.access is not None and (into is not None or tensor):
        root = made.step("vcopy", FULL, dtype, root)
    registers = Registers(r, axes, s.span, flat)
    registers.write(made.steps, root, into, into is not None and not _read(made.steps, same_memory(r.views, [into.name])))
    if tensor:
        _stored(r, s, axes, registers.of(root))
    elif into is None:
        _scattered(r, s, axes, registers.of(root), guarded)
    return [*made.reasons, *([scattered] if scattered else [])]


def _target(r: ExpertReader, region: Region, axes: Axes, guarded: bool, gathers: bool) -> tuple[Access | None, str]:
    """Where the elements of the target lie, or why they are stored one by one."""
    try:
        found = access(r, region, axes, guarded)
        check_aligned(found, axes, kind_of(found, axes), gathers)
        return found, ""
    except Unfit as reason:
        if not gathers:
            raise
        return None, str(reason)


def _read(steps: list[Step], names: Collection[str]) -> bool:
    """Whether the value looks at one of these buffers at all."""
    for s in steps:
        value = s.fields.get("value")
        elements = value.elements() if isinstance(value, Formula) else ()
        if s.fields.get("of") in names or any(t.buffer in names for t in elements):
            return True
        if any(v.access is not None and v.access.name in names for v in s.srcs):
            return True
    return False


def _stored(r: ExpertReader, s: Assign, axes: Axes, result: Access) -> None:
    """The result from its own place to the tensor, and the place is free again."""
    from tile_eg.frontend.expert.moves import PATHS, handover

    try:
        to = window(s.target, axes)
    except Unfit as reason:
        raise TileError(f"{reason}: T.Parallel stores rows of neighbouring elements", s.target.span or s.span,
                        help="write into a buffer, and T.copy that") from None  # fmt: skip
    target = r.place(to, s.span, Level.GM)
    source = place(result, axes.rows, axes.cols, axes.rows == 1 or result.pitch == axes.cols, s.span)
    if (target.rows, target.cols) != (source.rows, source.cols):
        raise TileError("T.Parallel stores rows of neighbouring elements", s.target.span or s.span,
                        help="write into a buffer, and T.copy that")  # fmt: skip
    handover(r, AIV, "V", "MTE3", s.span)  # type: ignore[arg-type]
    PATHS[Level.UB, Level.GM][0](r, s.span, source, target, {})
    handover(r, AIV, "MTE3", "V", s.span)  # type: ignore[arg-type]


def _scattered(r: ExpertReader, s: Assign, axes: Axes, result: Access, guarded: bool) -> None:
    """The result to the target, element by element."""
    at = sum((ix.var(n) * k for n, k in ((axes.row, result.down), (axes.col, 1)) if n and axes.extent(n) > 1), result.base)
    value = Formula("element", (Tile(result.name, ZERO, ZERO, at),), result.dtype is I32)

    def store() -> None:
        there = inside(r, s.target) if guarded else ix.ONE
        if r.ends is not None:
            exists = ix.both(where_read(r, r.ends, s.target.starts, s.span), r.ends.there(r, value))
            there = r.unit.settled(r, ix.both(there, exists), s.span)
        with r.block(repeats=False) as inner:
            r.instr("store_element", r.place(s.target, s.span, Level.UB).operand, value=value, span=s.span)
        r.statements += inner if there.value == 1 else [On(None, pr.When(there, tuple(inner)))]  # type: ignore[arg-type, list-item]

    each(r, axes, axes.names, store, s.span)


# What stands in the body


def branch(r: ExpertReader, node: ast.If) -> None:
    """A branch in an element loop: each element takes one of two values."""
    test = evaluate(r, node.test)
    if is_tile(test):
        raise r.error("a condition compares: x[i, j] > 0, i < n", node.test)
    if not is_condition(test):
        return r.run(node.body if test else node.orelse)
    then, otherwise = (_arm(r, body) for body in (node.body, node.orelse))
    r.statements += guarded(test, then, otherwise, r.span(node))
    return None


def _arm(r: ExpertReader, body: list[ast.stmt]) -> list[Any]:
    with r.block(repeats=False) as found:
        r.run(body)
    return list(found)


EXPRESSIONS = (*UNARY, *EXPRESSION_WORDS, "clamp", "isnan", "Max", "Min", "where", "Select", "Cast", "fmod")
WORDS = {word: HANDLERS[word] for word in EXPRESSIONS}
"""Words that are expressions of elements."""
