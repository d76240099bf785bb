"""What values an index expression takes: intervals first, and every value where intervals are too coarse."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, Interval
from tile_eg.ir.index_elements import elements_in, with_elements

MAX_POINTS = 1 << 20
Ranges = Mapping[str, Interval]


def extremes(e: Expr, ranges: Ranges, where: Expr = ix.ONE) -> Interval:
    """The least and the greatest value of e where `where` holds; an interval around them where there are too many points, and
    the empty one (0, -1) where `where` never holds."""
    if e.value is not None and where == ix.ONE:
        return e.value, e.value
    if elements_in(e) or elements_in(where):
        e, where, ranges = _opaque(e, where, ranges)
    names = sorted(ix.variables(e) | ix.variables(where))
    counts = [ranges[n][1] - ranges[n][0] + 1 for n in names]
    if prod(counts) > MAX_POINTS:
        return ix.bounds(e, ranges)
    import numpy as np

    values, holds = np.broadcast_arrays(all_values(e, ranges, names), all_values(where, ranges, names))
    chosen = values[holds != 0]
    return (int(chosen.min()), int(chosen.max())) if chosen.size else (0, -1)


def countable(e: Expr, ranges: Ranges, where: Expr) -> bool:
    """Whether `extremes` looks at every point at which `where` holds."""
    names = ix.variables(e) | ix.variables(where)
    return prod(ranges[n][1] - ranges[n][0] + 1 for n in names if n in ranges) <= MAX_POINTS


def runs(variable: str, count: Expr | None, ranges: Ranges) -> Expr:
    """That a trip of a loop runs, as far as it is told: where the number of trips is an expression, there may be none."""
    return ix.ONE if count is None or not ix.variables(count) <= ranges.keys() else ix.less(ix.var(variable), count)


def _opaque(e: Expr, where: Expr, ranges: Ranges) -> tuple[Expr, Expr, Ranges]:
    """The two with a variable of its own in place of each element of a tensor, of which no more than its bounds are known."""
    found = sorted(elements_in(e) | elements_in(where), key=ix.text)
    names = {r: f"{n}[]" for n, r in enumerate(found)}
    known = {**ranges, **{name: ix.bounds(r, ranges) for r, name in names.items()}}
    e, where = (with_elements(x, lambda r: ix.var(names[r])) for x in (e, where))
    return e, where, known


def at_most(e: Expr, limit: int, ranges: Ranges, where: Expr = ix.ONE) -> bool:
    """Whether e <= limit is certain where `where` holds."""
    return ix.bounds(e, ranges)[1] <= limit or extremes(e, ranges, where)[1] <= limit


def decided(condition: Expr, ranges: Ranges) -> bool | None:
    """The condition's truth where it is the same everywhere, else None."""
    low, high = ix.bounds(condition, ranges)
    if low != high:
        low, high = extremes(condition, ranges)
    return bool(low) if low == high else None


def surely_equal(a: Expr, b: Expr, ranges: Ranges) -> bool:
    return a == b or extremes(a - b, ranges) == (0, 0)


def all_values(e: Expr, ranges: Ranges, names: list[str]):  # noqa: ANN202
    """e at every point, one axis a variable."""
    import numpy as np

    axes = np.ogrid[tuple(slice(ranges[n][0], ranges[n][1] + 1) for n in names)]
    return np.asarray(values_at(e, dict(zip(names, axes, strict=True))))


def values_at(e: Expr, env: Mapping):  # noqa: ANN201
    """An expression where its variables have these values, numbers or arrays that go together."""
    import numpy as np

    if e.op == "const":
        return np.int64(e.args[0])
    if e.op == "var":
        return np.asarray(env[e.args[0]])
    parts = [values_at(a, env) for a in e.args]
    if e.op == "add":
        return sum(parts[1:], parts[0])
    a, b = parts
    if e.op == "lt":
        return (a < b).astype(np.int64)
    if e.op == "and":
        return ((a != 0) & (b != 0)).astype(np.int64)
    ufunc = {"mul": np.multiply, "div": np.floor_divide, "mod": np.mod, "min": np.minimum, "max": np.maximum}[e.op]
    return ufunc(a, b)
