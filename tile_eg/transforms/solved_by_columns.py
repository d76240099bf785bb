"""Triangular systems that are solved row by row, solved by columns: a row that is done is added to all rows behind it.

An equality of values, up to the order of additions. Row by row each is a sum over the rows before it, of which a row of numbers
says how much: a product of a whole tile, and its sum down the columns, which halves the rows until one is left. By columns the
product of a column of these numbers and of the row that is done is added to the tile as it lies. The numbers are known to be 0
for a row itself and for those behind it, so that both ways take the same rows as often.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_eg.ir import index as ix
from tile_eg.ir.values import Term, Values, made_of, reachable
from tile_eg.ops.records import record
from tile_eg.ops.types import F32
from tile_eg.ops.whole_tiles import TURNED
from tile_eg.transforms.rewriter import Rewriter

SIGNS = {"add": 1, "sub": -1}
HOLDS = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip


@record
class System:
    """A loop whose trips make rows of its state, each plus or minus the sum of all rows times the `numbers` of its row."""

    loop: Term
    numbers: Term
    sign: int


def solved_by_columns(values: Values) -> Values | None:
    """The kernel with its systems solved by columns; None where there is none."""
    terms = reachable(values)
    found = [s for t in terms if t.op == "loop" if (s := _system(values, t)) is not None]
    if not found:
        return None
    again, trips = Rewriter({}), dict(values.trips)
    for s in found:
        number, _, ((init, after),), *rest = s.loop.args
        trips[number] = init.rows - 1
        again.terms[after] = _by_column(again, values.variables[number], s)
        made = again.builder.make("loop", number, trips[number], ((again.term(init), again.terms[after]),), *rest)
        for t in terms:
            if t.op == "proj" and t.args[0] is s.loop:
                again.terms[t] = again.builder.make("proj", made, t.args[1], **_shape(t.rows, t.cols))
    return again.values(values, tuple(map(again.term, values.outputs)), trips=trips)


def _by_column(again: Rewriter, name: str, s: System) -> Term:
    """The state behind a trip: each row with its share of the one that is done."""
    make, i, numbers = again.builder.make, ix.var(name), again.term(s.numbers)
    rows, cols = s.loop.args[2][0][0].rows, s.loop.args[2][0][0].cols
    signed = numbers if s.sign > 0 else make("unary", "neg", numbers, **_shape(rows, rows))
    turned = make("whole", "transpose", rows, rows, signed, **_shape(rows, rows))
    state = make("arg", s.loop.args[0], 0, **_shape(rows, cols))
    done = make("bcast", 0, make("piece", i * cols, state, **_shape(1, cols)), **_shape(rows, cols))
    shares = make("bcast", 1, make("piece", i * rows, turned, **_shape(1, rows)), **_shape(rows, cols))
    return make("binary", "add", state, make("binary", "mul", done, shares, **_shape(rows, cols)), **_shape(rows, cols))


def _shape(rows: int, cols: int) -> dict[str, Any]:
    return {"rows": rows, "cols": cols, "dtype": F32, "vrows": ix.const(rows), "vcols": ix.const(cols)}


def _is(t: Term, rows: int, cols: int) -> bool:
    """Whether it is a tile of so many floats, all of which exist."""
    whole = {"rows": t.rows, "cols": t.cols, "dtype": t.dtype, "vrows": t.vrows, "vcols": t.vcols}
    return whole == _shape(rows, cols)


def _system(values: Values, loop: Term) -> System | None:
    """What a loop solves, where its numbers are known to be 0 but for the rows before each."""
    number, trips, states, stages = loop.args
    if len(states) != 1 or number in values.counts or stages or values.sizes:
        return None
    init, after = states[0]
    if after.op != "put" or after.args[1].op != "arg" or after.args[1].args[0] != number:
        return None
    at, state, row = after.args
    first, name = _row_of(at, state.cols, values.variables[number]), values.variables[number]
    if first is None or not all(_is(t, state.rows, state.cols) for t in (init, state, after)) or not _is(row, 1, state.cols):
        return None
    found = _numbers(row, at, state)
    if found is None:
        return None
    numbers, place, sign = found
    numbers = init if numbers is state else numbers
    if not _is(numbers, state.rows, state.rows) or state.rows % TURNED or _row_of(place, state.rows, name) != first:
        return None
    varies = any(t.op in ("arg", "targ") and t.args[0] == number for t in made_of(numbers))
    return None if varies or not _below(numbers, first, trips) else System(loop, numbers, sign)


def _row_of(at: ix.Expr, cols: int, name: str) -> int | None:
    """Of an offset of elements in rows of so many: the row at which the first trip is, where each is one further."""
    first = (at - ix.var(name) * cols).value
    return None if first is None or first % cols else first // cols


def _numbers(row: Term, at: ix.Expr, state: Term) -> tuple[Term, ix.Expr, int] | None:
    """Of a row that is its own plus or minus a sum over all rows: the tile of what each of these is taken times, its row's place,
    and the sign."""
    if row.op != "binary" or row.args[0] not in SIGNS:
        return None
    op, x, y = row.args
    own, total = (x, y) if _is_own(x, at, state) else (y, x) if op == "add" else (x, x)
    if not _is_own(own, at, state) or total.op != "reduce" or total.args[:2] != (0, "sum"):
        return None
    product = total.args[2]
    if product.op != "binary" or product.args[0] != "mul" or state not in product.args[1:]:
        return None
    shares = product.args[2] if product.args[1] is state else product.args[1]
    if shares.op != "bcast" or shares.args[0] != 1 or shares.args[1].op != "piece":
        return None
    place, numbers = shares.args[1].args
    return numbers, place, SIGNS[op]


def _is_own(t: Term, at: ix.Expr, state: Term) -> bool:
    return t.op == "piece" and t.args == (at, state)


def _below(numbers: Term, first: int, trips: int) -> bool:
    """Whether all rows that the loop makes have numbers but for rows before them, and the other rows have none."""
    shape = (numbers.rows, numbers.cols)
    i, j = np.indices(shape)
    made = (i >= first) & (i < first + trips)
    return bool(np.all(_zeros(numbers, shape) | (made & (j < i))))


def _zeros(t: Term, shape: tuple[int, int]) -> np.ndarray:
    """Where a tile, or a scalar expression at each position of one, is known to be 0 whatever is put in."""
    no, yes = np.zeros(shape, bool), np.ones(shape, bool)
    match t.op, t.args:
        case ("fill" | "number", (value,)):
            return yes if value == 0 else no
        case ("nest" | "s_cast" | "cast", (x,)):
            return _zeros(x, shape)
        case ("elem", (x,)) if (x.rows, x.cols) == shape:
            return _zeros(x, shape)
        case ("unary" | "s_unary", ("neg" | "abs", x)):
            return _zeros(x, shape)
        case ("choose_at" | "s_choose_at", (op, i, j, bound, x, y)) if bound.value is not None:
            rows, cols = np.indices(shape)
            return np.where(HOLDS[op](i * rows + j * cols, bound.value), _zeros(x, shape), _zeros(y, shape))
    return no
