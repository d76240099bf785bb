"""Loops whose trips store at places of their own: what they store does not wait for another trip, and may be another block's."""

from __future__ import annotations

from tile_eg.ir.index import BLOCK, Expr, const, less, substitute, terms_of, var, variables
from tile_eg.ir.values import VERSIONS, Term, Values, first_version, reachable
from tile_eg.transforms.rewriter import Rewriter

ENDING = ("load", "unary", "binary", "cast", "reduce", "proj")
"""Values that end where they are told to: blocks that are not to store them have none of their rows."""


def stores_apart(values: Values, loop: Term, k: int) -> bool:
    """Whether a state of a loop is a tensor as it was given, to which trips store alone, and no two trips at one place."""
    number, trips, states, _ = loop.args
    init, after = states[k]
    first = after
    while first.op == "store":
        first = first.args[0]
    own = (first.op, first.args) == ("targ", (number, k))
    return init.op == "given" and after.op == "store" and own and _at_places_of_their_own(after, values.variables[number], trips)


def _at_places_of_their_own(after: Term, variable: str, trips: int) -> bool:
    """Whether trips store whole rows one behind the other, or columns beside each other. Of several stores that a trip makes, all
    columns between the first and the last are its own, and all rows."""
    every = _stores_of(after)
    step = terms_of(every[0].args[1]).get(var(variable), 0)
    strides, rows = {s.args[2] for s in every}, {s.args[3].rows for s in every}
    starts = [(s.args[1] - every[0].args[1]).value for s in every]
    if step < 1 or len(strides) > 1 or len(rows) > 1 or None in starts or _goes_on_by_more(every[0], variable):
        return False
    stride, first = strides.pop(), min(at for at in starts if at is not None)
    widths = [_width(s, variable, trips) for s in every]
    cols = max((at or 0) - first + widest for at, (widest, _) in zip(starts, widths, strict=True))
    last = max((at or 0) - first + width for at, (_, width) in zip(starts, widths, strict=True))
    beside = step >= cols and (trips - 1) * step + last <= stride
    return beside or step >= (rows.pop() - 1) * stride + cols


def _goes_on_by_more(store: Term, variable: str) -> bool:
    """Whether a loop's variable stands in an offset beside its own step."""
    return any(variable in variables(e) for e in terms_of(store.args[1]) if e != var(variable))


def _width(store: Term, variable: str, trips: int) -> tuple[int, int]:
    """The columns of a store, and those that are valid in the last trip."""
    _, _, stride, value = store.args
    cols = min(value.cols, stride) if value.rows > 1 else value.cols
    last = value.vcols and substitute(value.vcols, {variable: const(trips - 1)}).value
    return cols, cols if last is None else last


def loop_of_stores(values: Values) -> Term | None:
    """The one loop at the top, of trips that are known and of which none is in another, that only stores."""
    loops = [t for t in reachable(values) if t.op == "loop" and all(init.op in VERSIONS for init, _ in t.args[2])]
    if len(loops) != 1:
        return None
    loop, (number, trips, states, _) = loops[0], loops[0].args
    alone = number not in values.counts and values.parents[number] == 0 and number not in values.parents.values()
    apart = alone and trips > 1 and all(stores_apart(values, loop, k) for k in range(len(states)))
    return loop if apart and all(_in(o, loop) or all(x.op in ENDING for x in stored(o)) for o in values.outputs) else None


def stored(version: Term) -> list[Term]:
    """What is stored in a version, since it was given or a trip began."""
    return [store.args[3] for store in _stores_of(version)]


def _stores_of(version: Term) -> list[Term]:
    return [version, *_stores_of(version.args[0])] if version.op == "store" else []


def trips_in_blocks(values: Values, parts: int) -> Values | None:
    """The kernel with so many blocks for each one, each with its share of the trips of its `loop_of_stores`; None where it has no
    such loop, a share is no whole number of trips, something else is stored, or what is stored is read."""
    loop = loop_of_stores(values)
    if loop is None or loop.args[1] % parts or loop.args[1] == parts or not all(_in(o, loop) for o in values.outputs):
        return None
    if not reads_as_given(values):
        return None
    number, trips, states, stages = loop.args
    each, name = trips // parts, values.variables[number]
    again = Rewriter({BLOCK: var(BLOCK) // parts, name: var(name) + var(BLOCK) % parts * each})
    begun = tuple((again.term(init), again.term(after)) for init, after in states)
    again.terms[loop] = again.builder.make("loop", number, each, begun, stages)
    outputs = tuple(map(again.term, values.outputs))
    return again.values(
        values, outputs, blocks=values.blocks * parts, grid=(parts, *values.grid), trips=values.trips | {number: each}
    )


def reads_as_given(values: Values) -> bool:
    """Whether a kernel loads from no tensor that it stores to: an update of a caller's tensor has blocks that may not meet."""
    stored_to = {first_version(o).args[0] for o in values.outputs}
    loads = (t.args[0] for t in reachable(values) if t.op == "load")
    return all(version.op == "given" and version.args[0] not in stored_to for version in loads)


def trips_as_blocks(values: Values) -> Values:
    """The kernel with a block for each trip of its `loop_of_stores`: those of the first trip come first."""
    loop = loop_of_stores(values)
    assert loop is not None
    number, trips, states, _ = loop.args
    trip: dict[str, Expr] = {values.variables[number]: var(BLOCK) // values.blocks, BLOCK: var(BLOCK) % values.blocks}
    again = Rewriter(trip if values.blocks > 1 else {values.variables[number]: var(BLOCK), BLOCK: const(0)})
    for t in reachable(values):
        if t.op == "targ" and t.args[0] == number:
            again.terms[t] = again.term(states[t.args[1]][0])
    for t in reachable(values):
        if t.op == "tproj" and t.args[0] is loop:
            again.terms[t] = again.term(states[t.args[1]][1])
    outputs = tuple(again.term(o) if _in(o, loop) else _by_first_blocks(again, o, values.blocks) for o in values.outputs)
    left = {name: {n: x for n, x in getattr(values, name).items() if n != number} for name in ("parents", "trips", "variables")}
    return again.values(values, outputs, blocks=values.blocks * trips, grid=(*values.grid, trips), **left)


def _in(version: Term, loop: Term) -> bool:
    return version.op == "tproj" and version.args[0] is loop


def _by_first_blocks(again: Rewriter, version: Term, blocks: int) -> Term:
    """A version of a tensor whose values are stored by so many blocks, the first ones."""
    if version.op != "store":
        return again.term(version)
    given, offset, stride, value = version.args
    own = again.term(value)
    assert own.vrows is not None
    shape = {"rows": own.rows, "cols": own.cols, "dtype": own.dtype, "vcols": own.vcols}
    here = again.builder.make(own.op, *own.args, **shape, vrows=own.vrows * less(var(BLOCK), blocks))
    return again.builder.make("store", _by_first_blocks(again, given, blocks), again.anything(offset), stride, here)
