"""Numbers that the scalar unit keeps in a kernel that is kept: elements, variables, conditions."""

from __future__ import annotations

from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.conditions import is_condition, of_elements
from tile_eg.frontend.expert.nodes import NewVariable, On
from tile_eg.frontend.expert.read_places import indices_checked
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.expert.scalars import element_of, formula, is_scalar, of_index
from tile_eg.frontend.python.values import Window, describe, is_index, is_tile
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in, elements_in, with_elements
from tile_eg.ir.kernel import Number, Region
from tile_eg.ir.program import AIC, AIV, Formula
from tile_eg.ops.types import F32


def keep(r: ExpertReader, wish: str, value: Formula, span: Span | None) -> Any:
    """A new name for a number: an index where it is whole, else one element that is no buffer's."""
    name = r.unique(wish)
    set_to(r, name, value, span)
    return named(r, name)


def set_to(r: ExpertReader, name: str, value: Formula, span: Span | None) -> None:
    """The scalar unit keeps a value under this name, on the core of the scope; elements of UB are those of a vector core."""
    r.scalars.setdefault(name, value.whole)
    core = AIV if value.elements() else r.core
    if core != r.core == AIC:
        raise TileError("the cube core does not see UB", span, help="read the number from a tensor of int32: n = lengths[i]")
    if r.ends is not None and name in r.variables and r.ends.depends_on(name):
        r.ends.kept(name, keep(r, f"{name}_before", Formula("scalar", (name,), True), span))
    there = ix.ONE if r.ends is None else r.ends.there(r, value)
    if there.value != 1 and any(isinstance(x, pr.Gm) for x in value.operands()):  # it would be read beyond the tensor
        value = Formula("select", (Formula("index", (there,), True), value, Formula("number", (0.0,), value.whole)), value.whole)
    nodes: list[pr.Node] = [pr.Scalar(name, value, span)]
    flag = r.ends.beyond.get(name) if r.ends is not None else None
    if flag is not None and name in r.variables:
        nodes.append(_whether(flag, ix.ONE, span))
    elif r.ends is not None and there.value != 1 and name not in r.variables:
        flag = r.ends.beyond[name] = r.unique(f"{name}_there")
        r.scalars[flag] = True
        nodes.append(_whether(flag, there, span))
    if there.value != 1 and name in r.variables:
        return r.place_node(None, pr.When(there, tuple(On(core, n) for n in nodes)))  # type: ignore[arg-type, misc]
    for n in nodes:
        r.place_node(core, n)
    return None


def _whether(flag: str, there: Expr, span: Span | None) -> pr.Scalar:
    return pr.Scalar(flag, Formula("index", (there,), True), span)


def named(r: ExpertReader, name: str) -> Any:
    return ix.scalar(name) if r.scalars[name] else Region(name, (), ())


def settled(r: ExpertReader, e: Expr, span: Span | None = None, *, fixed: bool = False) -> Expr:
    """An index with what it reads from buffers and tensors kept under names; `fixed`: also what a variable is now."""

    known: dict[Expr, Expr] = {}

    def change(read: Expr) -> Expr:
        if read not in known:
            known[read] = changed(read)
        return known[read]

    def changed(read: Expr) -> Expr:
        name = read.args[0]
        if name in r.scalars:
            same = Formula("scalar", (name,), True)
            return keep(r, f"{name}_now", same, span) if fixed and name in r.variables else read
        indices_checked(r, read, span)
        place = settled(r, read.args[1], span, fixed=fixed)
        return keep(r, f"{name}_at", element_of(r, name, place, span), span)

    return with_elements(e, change) if elements_in(e) else e


def number(r: ExpertReader, value: Any, span: Span | None) -> Any:
    """What a user computed from elements as an index, where it is one whole number; anything else as it is."""
    if of_elements(value):
        return keep(r, "condition", formula(r, value, span), span)
    if is_tile(value) and is_scalar(value) and not isinstance(value, Number):
        with r.block(repeats=False) as made:
            found = formula(r, value, span)
        if not found.whole:
            return value
        r.statements += made
        return keep(r, f"{value.buffer.name}_at" if isinstance(value, Window) else "number", found, span)
    return value


def bound(r: ExpertReader, name: str, value: Any, span: Span | None) -> Any:
    """What a name stands for from here on: the number that it is now, or a variable that has it first where another trip, or what
    stands behind a branch, sees the name changed."""
    if name in r.changing and not isinstance(value, bool) and is_scalar(value):
        of_floats = isinstance(value, float | Number) or not formula(r, value, span).whole
        declared(r, name, NewVariable(F32 if of_floats else None, value), span)
        r.changing[name].add(str(variable_of(r, r.local[name])))
        return r.local[name]
    if isinstance(value, Expr):
        return settled(r, value, span, fixed=True)
    if of_elements(value) or (is_tile(value) and is_scalar(value) and not isinstance(value, Number)):
        return keep(r, name, formula(r, value, span), span)
    return value


def declared(r: ExpertReader, name: str, new: NewVariable, span: Span | None) -> None:
    """A variable under a name of its own, with its first value."""
    whole = new.dtype is None or new.dtype.whole
    unique = r.unique(name)
    r.scalars[unique] = whole
    assigned(r, unique, new.init, span)
    r.variables.add(unique)
    r.local[name] = named(r, unique)


def assigned(r: ExpertReader, name: str, value: Any, span: Span | None) -> None:
    """Another value for a variable. TileError for what is no number."""
    if not (is_scalar(value) or is_condition(value)):
        raise TileError(f"a variable holds a number, not {describe(value)}", span, help="one element of a buffer: x[i]")
    found = formula(r, value, span)
    if r.scalars[name] and not found.whole and any(name in made for made in r.changing.values()):
        raise TileError(f"`{name}` began as a whole number, and this is none", span, help="begin with a float: 0.0 for 0")
    set_to(r, name, converted(found, r.scalars[name]), span)


def converted(f: Formula, whole: bool) -> Formula:
    return f if f.whole == whole else Formula("cast", (f,), whole)


def variable_of(r: ExpertReader, value: Any) -> str | None:
    """The variable that a name stands for."""
    name = value.args[0] if isinstance(value, Expr) and value.op == "read" else value.name if isinstance(value, Region) else None
    return name if name in r.variables else None


def condition(r: ExpertReader, test: Any, span: Span | None) -> Expr:
    """A condition as it is now: 1 or 0."""
    if of_elements(test):
        name = r.unique("condition")
        set_to(r, name, formula(r, test, span), span)
        return ix.scalar(name, 1)
    return settled(r, test, span, fixed=True)


def whole(value: Any) -> bool:
    """Whether a value is a whole number that may be an index."""
    return is_index(value) or (isinstance(value, Window) and value.is_point and value.buffer.dtype.whole)


def picked(r: ExpertReader, span: Span, c: Expr, x: Expr, y: Expr) -> Expr:
    """x where the condition holds, else y: the lesser or the greater of the two where that is what it says."""
    if c.value is not None:
        return x if c.value else y
    if c.op == "lt":
        a, b = c.args
        if x - y in (a - b, a - b + 1):
            return ix.minimum(x, y)
        if x - y in (b - a, b - a - 1):
            return ix.maximum(x, y)
    if (x - y).value is not None:
        return y + c * (x - y)
    chosen = Formula("select", tuple(of_index(r, e, span) for e in (c, x, y)), True)
    (a, b), (low, high) = ix.bounds(x, r.ranges), ix.bounds(y, r.ranges)
    name = r.unique("chosen")
    set_to(r, name, chosen, span)
    most = max(b, high)
    if min(a, low) >= 0:
        return ix.scalar(name, min(most, ix.ANY))
    return ix.minimum(ix.scalar(name), most) if most < ix.ANY else ix.scalar(name)


def changes(r: ExpertReader, test: Any) -> bool:
    """Whether a condition looks at what may change: a variable, or elements of buffers."""
    if of_elements(test):
        return True
    return any(e.args[0] in r.variables or e.args[0] not in r.scalars for e in all_elements_in(test))
