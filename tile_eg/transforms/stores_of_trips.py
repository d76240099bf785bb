"""Loops whose trips store at places of their own: what they store does not wait for another trip."""

from __future__ import annotations

from tile_eg.ir.index import BLOCK, Expr, const, less, substitute, terms_of, var, variables
from tile_eg.ir.values import VERSIONS, Term, Values, reachable
from tile_eg.transforms.rewriter import Rewriter

ENDING = ("load", "unary", "binary", "cast", "reduce", "proj")
"""Values that end where they are told to: blocks that are not to store them have none of their rows."""


def stores_apart(values: Values, loop: Term, k: int) -> bool:
    """Whether a state of a loop is a tensor as it was given, to which a trip stores once, and no two trips at one place."""
    init, after = loop.args[2][k]
    if init.op != "given" or after.op != "store" or after.args[0].op != "targ":
        return False
    return after.args[0].args == (loop.args[0], k) and _at_places_of_its_own(after, values.variables[loop.args[0]], loop.args[1])


def _at_places_of_its_own(store: Term, variable: str, trips: int) -> bool:
    """Whether trips store whole rows one behind the other, or columns beside each other."""
    _, offset, stride, value = store.args
    terms = terms_of(offset)
    step = terms.pop(var(variable), 0)
    if step < 1 or any(variable in variables(e) for e in terms):
        return False
    cols = min(value.cols, stride) if value.rows > 1 else value.cols
    last = value.vcols and substitute(value.vcols, {variable: const(trips - 1)}).value
    beside = step >= cols and (trips - 1) * step + (cols if last is None else last) <= stride
    return beside or step >= (value.rows - 1) * stride + cols


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
    return [version.args[3], *stored(version.args[0])] if version.op == "store" else []


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
