"""Which loads bring, in each trip of their loop, what an earlier loop loaded in its trip of the same number.

Where UB has room for the tiles of all trips, the later loop finds them there (rule `row-stays`, `rules/40_moves.egg`): a row
that is gone through twice, for its statistics and for its result, comes from GM once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import permutations

from tile_eg.ir.index import Expr, substitute, var, variables
from tile_eg.ir.machine import USABLE_EVENT_IDS
from tile_eg.ir.values import Term, Values, loops_in

Again = tuple[Term, Term, int, int]


def loads_again(values: Values, terms: Iterable[Term], most: int = len(USABLE_EVENT_IDS)) -> Iterator[Again]:
    """Each load with an earlier one of the same tiles, and the loops that they are in, of no more than `most` trips."""
    terms = list(terms)
    loops = {t.args[0]: t for t in terms if t.op == "loop"}
    able = {values.variables[n]: n for n in loops if _may_stay(values, n, most)}
    alike: dict[tuple, list[tuple[Term, int]]] = defaultdict(list)
    for t in (t for t in terms if t.op == "load"):
        for name in variables(t.args[1]) & able.keys():
            n = able[name]
            alike[_tile(t, name), values.parents[n], values.trips[n]].append((t, n))
    for found in alike.values():
        for (load, loop), (first, earlier) in permutations(found, 2):
            if earlier != loop and earlier in loops_in((loops[loop],)):  # its results are needed, so that it is through by then
                yield load, first, loop, earlier


def _may_stay(values: Values, loop: int, most: int) -> bool:
    """Whether a loop has so few trips, as each needs a flag, and its author left open how many buffers it has."""
    return loop not in values.counts and 1 < values.trips[loop] <= most and not values.stages.get(loop)


def _tile(load: Term, variable: str) -> tuple:
    """What a load brings in a trip, whatever the variable of its loop is called."""
    version, offset, stride = load.args

    def named(e: Expr | None) -> Expr | None:
        return None if e is None else substitute(e, {variable: var("trip")})

    return version, named(offset), stride, load.rows, load.cols, load.dtype, named(load.vrows), named(load.vcols)
