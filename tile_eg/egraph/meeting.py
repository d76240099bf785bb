"""Where the two vector cores would meet in GM: a tensor that is stored to, touched twice at places that overlap.

No flag orders the two vector cores, so what one of them stores the other may neither read nor store. Each of them keeps to its
own half where all accesses that overlap are of one window and split alike.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations_with_replacement

from tile_eg.ir.index import ONE, Expr, terms_of, variables
from tile_eg.ir.values import WRITES, Values, reachable, tensor_of
from tile_eg.ops.records import record

MOST = 4096  # distances that are told apart; beyond them an overlap is assumed


@record
class Access:
    """A window of a tensor: its first element, the elements between rows, rows x cols."""

    offset: Expr
    stride: int
    rows: int
    cols: int
    store: bool


def accesses(values: Values) -> dict[str, list[Access]]:
    """Loads and stores by tensor."""
    terms = reachable(values)
    loops = {t.args[0]: t for t in terms if t.op == "loop"}
    out: dict[str, list[Access]] = defaultdict(list)
    for t in terms:
        if t.op == "load":
            out[tensor_of(t.args[0], loops).name].append(Access(t.args[1], t.args[2], t.rows, t.cols, False))
        elif t.op in WRITES:
            out[tensor_of(t, loops).name].append(Access(t.args[1], t.args[2], t.args[3].rows, t.args[3].cols, True))
    return out


def meetings(values: Values) -> dict[str, bool]:
    """The tensors that are stored to and touched again where it overlaps; False where not all such accesses split alike."""
    trips = {values.variables[loop]: n for loop, n in values.trips.items()}
    out: dict[str, bool] = {}
    for tensor, found in accesses(values).items():
        pairs = [(a, b) for a, b in combinations_with_replacement(found, 2) if a.store or b.store]
        met = [x for x in (_meet(a, b, trips, a is b) for a, b in pairs) if x is not None]
        if met:
            out[tensor] = all(met)
    return out


def _meet(a: Access, b: Access, trips: dict[str, int], same: bool) -> bool | None:
    """None where the two never overlap, or only as one and the same access; True where only at one window; else False."""
    if (a.rows, a.cols) != (b.rows, b.cols) or (a.rows > 1 and a.stride != b.stride):
        return None if _apart(a, b, trips) else False
    if a.rows > 1:
        rows = _distances(_part(a.offset, a.stride, row=True), _part(b.offset, a.stride, row=True), trips)
        cols = _distances(_part(a.offset, a.stride, row=False), _part(b.offset, a.stride, row=False), trips)
    else:
        rows, cols = {0}, _distances(terms_of(a.offset), terms_of(b.offset), trips)
    if rows is None or cols is None:
        return False
    near_rows, near_cols = {d for d in rows if abs(d) < a.rows}, {d for d in cols if abs(d) < a.cols}
    if not near_rows or not near_cols or (same and near_rows == near_cols == {0}):
        return None
    return near_rows == {0} if a.rows > 1 else near_cols == {0}


def _apart(a: Access, b: Access, trips: dict[str, int]) -> bool:
    """Whether two windows of different shape are apart as runs of elements."""
    found = _distances(terms_of(a.offset), terms_of(b.offset), trips)
    ends = [x.stride * (x.rows - 1) + x.cols for x in (a, b)]
    return found is not None and all(d >= ends[1] or -d >= ends[0] for d in found)


def _part(offset: Expr, stride: int, row: bool) -> dict[Expr, int]:
    """The terms of an offset that count whole rows, or those that count columns."""
    terms = terms_of(offset)
    constant = terms.pop(ONE, 0)
    if row:
        return {ONE: constant // stride} | {e: c // stride for e, c in terms.items() if c % stride == 0}
    return {ONE: constant % stride} | {e: c for e, c in terms.items() if c % stride}


def _distances(a: dict[Expr, int], b: dict[Expr, int], trips: dict[str, int]) -> set[int] | None:
    """All values of a - b where loop variables of both run freely; None where that is not known."""
    out = {a.get(ONE, 0) - b.get(ONE, 0)}
    for sign, terms, other in ((1, a, b), (-1, b, a)):
        for atom, c in terms.items():
            if atom.op == "var" and atom.args[0] in trips:
                out = {d + sign * c * i for d in out for i in range(trips[atom.args[0]])}
            elif atom != ONE and (variables(atom) & trips.keys() or other.get(atom) != c):
                return None
            if len(out) > MOST:
                return None
    return out
