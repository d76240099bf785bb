"""Loops that only fold: each state takes in one value of each trip, and no value goes by a state.

Beside such states there may be tensors in which each trip stores at places of its own.
"""

from __future__ import annotations

from tile_eg.ir.values import VERSIONS, Term, Values, reachable
from tile_eg.ops.elementwise import REDUCE, neutral
from tile_eg.transforms.stores_of_trips import stored, stores_apart

OF = {r.joins: r for r in REDUCE.values()}
"""The reduction whose results an operation joins."""


def loops_of_folds(values: Values) -> set[int]:
    """The loops of two or more trips, of a number that is known, with a state that is a sum, maximum or minimum over the trips;
    each other state is such a one, or stored in parts."""
    loops = (t for t in reachable(values) if t.op == "loop" and t.args[1] > 1 and t.args[0] not in values.counts)
    return {t.args[0] for t in loops if _only_folds(values, t)}


def _only_folds(values: Values, loop: Term) -> bool:
    folds = [_folds(loop.args[0], k, *state) for k, state in enumerate(loop.args[2])]
    return any(folds) and all(folded or _stores(values, loop, k) for k, folded in enumerate(folds))


def _stores(values: Values, loop: Term, k: int) -> bool:
    return stores_apart(values, loop, k) and not any(map(_goes_by_more, stored(loop.args[2][k][1])))


def is_neutral(state: tuple[Term, Term]) -> bool:
    """Whether a state begins with what takes no part in its operation."""
    init, after = state
    if init.op != "fill" or after.op != "binary" or after.args[0] not in OF or init.dtype is None:
        return False
    reduction = OF[after.args[0]]
    return init.args[0] == neutral(reduction.name, init.dtype)


def _folds(loop: int, k: int, init: Term, after: Term) -> bool:
    if init.op in VERSIONS or after.op != "binary" or after.args[0] not in OF:
        return False
    states = [x for x in after.args[1:] if x.op == "arg" and x.args == (loop, k)]
    others = [x for x in after.args[1:] if x not in states]
    return len(states) == 1 and len(others) == 1 and not _goes_by_more(others[0])


def _goes_by_more(value: Term) -> bool:
    """Whether a value is made of products, loops, states, or of what the kernel stored."""
    seen, stack = set[Term](), [value]
    while stack:
        t = stack.pop()
        if t not in seen:
            seen.add(t)
            if t.op in ("loop", "arg", "matmul") or (t.op == "load" and t.args[0].op != "given"):
                return True
            stack += [x for x in t.args if isinstance(x, Term)]
    return False
