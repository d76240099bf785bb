"""Loops over rows of which only those are done that a tensor has: `for i in B: if bx*B + i < N: x[i, :] = X[idx[bx*B + i], :]`.

The equalities: trips up to the first one in which a bound does not hold are as many trips of a loop; and a copy of what lies
beyond the end of a tensor, or whose place is an index that does, is none, so it needs no bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from tile_eg.frontend.liveness import regions
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, terms_of
from tile_eg.ir.index_elements import all_elements_in, elements_in
from tile_eg.ir.kernel import Assign, For, If, Kernel, Region, Stmt, assigns, exchanged

Shapes = Mapping[str, tuple[int, ...]]


def with_rows_that_exist(kernel: Kernel, half: str | None = None) -> Kernel:
    """The kernel in which such loops have no condition. `half` says which vector core this is, where that is no variable of the
    grid yet: then only copies that need no condition lose theirs."""
    grid = {name for name, _ in kernel.grid} | ({half} if half else set())
    shapes = {t.name: t.shape for t in kernel.tensors}
    written = Counter(s.target.name for s in assigns(kernel.body))
    once = {name for name, n in written.items() if n == 1}

    def instead(s: Stmt) -> Iterable[Stmt] | None:
        if not isinstance(s, For) or s.count is not None or (bound := _bound(s, grid)) is None:
            return None
        branch = s.body[0]
        assert isinstance(branch, If)
        new = once | (_first_written(kernel, s) if s in kernel.body else frozenset())
        if all(isinstance(a, Assign) and _ends_there(a, s.var, bound, shapes, new) for a in branch.then):
            return [replace(s, body=branch.then)]
        if half or not all(_copies(a, shapes) for a in branch.then):
            return None
        trips = ix.minimum(s.extent, ix.maximum(0, bound - s.start))
        if trips.op == "const":  # a branch that the first trips alone take
            return [replace(s, body=branch.then, extent=trips.args[0])] if trips.args[0] else None
        return [replace(s, body=branch.then, count=trips)]

    return replace(kernel, body=exchanged(kernel.body, instead))


def _first_written(kernel: Kernel, s: Stmt) -> frozenset[str]:
    """What no statement before this one of the kernel's body writes."""
    before = kernel.body[: kernel.body.index(s)]
    return frozenset(a.target.name for a in assigns((s,))) - {a.target.name for a in assigns(before)}


def _bound(s: For, grid: set[str]) -> Expr | None:
    """The number below which the loop's variable has to lie for its only statement to be done; None for other loops."""
    match s.body:
        case (If(condition=Expr(op="lt", args=(low, high)), otherwise=()),):
            bound = high - low + ix.var(s.var)
            known = terms_of(high - low).get(ix.var(s.var)) == -1 and ix.variables(bound) <= grid
            return bound if known and not elements_in(bound) else None
    return None


def _copies(s: Stmt, shapes: Shapes) -> bool:
    """Whether a statement copies a window of a tensor to rows of a buffer, or these to one: loops of such may have as many trips
    as the block says."""
    if not isinstance(s, Assign) or not isinstance(s.value, Region):
        return False
    tensors = [r for r in (s.target, s.value) if r.name in shapes]
    return bool(tensors) and all(len(r.starts) <= 2 for r in (s.target, s.value) if r not in tensors)


def _ends_there(a: Assign, variable: str, bound: Expr, shapes: Shapes, new: Set[str]) -> bool:
    """Whether an assignment copies one window, and does nothing where the variable is not below the bound; what it fills
    holds nothing before, which is told by `new`."""
    if a.target.name not in shapes and a.target.name not in new:
        return False
    windows = [r for r in (a.target, *regions(a.value)) if r.name in shapes]
    return isinstance(a.value, Region) and any(_is_beyond(r, variable, bound, shapes) for r in windows)


def _is_beyond(r: Region, variable: str, bound: Expr, shapes: Shapes) -> bool:
    """Whether a window, or an index that it is at, begins at the end of a tensor where the variable is the bound."""
    starts = zip(r.starts, shapes[r.name], strict=True)
    read = [(e.args[1], shapes.get(e.args[0], ())) for s in r.starts for e in all_elements_in(s)]
    vectors = ((at, shape[0]) for at, shape in read if len(shape) == 1)
    return any(at - size == ix.var(variable) - bound for at, size in (*starts, *vectors))
