"""Which elements of a tensor a kernel writes: all windows of all blocks and loop steps, marked in one mask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from tile_eg.ir import index
from tile_eg.ir.index import ONE, Expr
from tile_eg.ir.kernel import Assign, For, If, Kernel, Parallel, Region, Stmt

if TYPE_CHECKING:
    import numpy as np

Ranges = Mapping[str, range]


def written(kernel: Kernel, name: str) -> np.ndarray:
    """A mask of the tensor's shape, True where the kernel stores a value."""
    import numpy as np

    mask = np.zeros(next(t.shape for t in kernel.tensors if t.name == name), bool)
    grid = {v: range(n) for v, n in kernel.grid}
    for target, ranges, condition in _stores(kernel.body, grid, ONE):
        if target.name == name:
            _mark(mask, target, ranges, condition)
    return mask


def _stores(body: tuple[Stmt, ...], ranges: Ranges, condition: Expr) -> Iterator[tuple[Region, Ranges, Expr]]:
    """Every target, with the ranges of the variables around it and the condition under which it is reached."""
    for s in body:
        match s:
            case Assign():
                yield s.target, ranges, condition
            case For():
                within = condition if s.count is None else index.both(condition, index.less(index.var(s.var) - s.start, s.count))
                yield from _stores(s.body, {**ranges, s.var: range(s.start, s.start + s.extent)}, within)
            case Parallel():
                yield from _stores(s.body, {**ranges, **{v: range(n) for v, n in zip(s.vars, s.extents, strict=True)}}, condition)
            case If():
                yield from _stores(s.then, ranges, index.both(condition, s.condition))
                yield from _stores(s.otherwise, ranges, index.both(condition, index.less(s.condition, 1)))


def _mark(mask: np.ndarray, target: Region, ranges: Ranges, condition: Expr) -> None:
    import numpy as np

    used = sorted(set().union(*(index.variables(e) for e in (condition, *target.starts))))
    steps = np.meshgrid(*(np.array(ranges[v], int) for v in used), indexing="ij")
    env = {v: s.ravel() for v, s in zip(used, steps, strict=True)}
    count = next(iter(env.values())).size if env else 1
    starts = np.stack([np.broadcast_to(_values(e, env), count) for e in target.starts], axis=1)
    reached = np.broadcast_to(_values(condition, env), count).astype(bool)
    for start in np.unique(starts[reached], axis=0):
        mask[tuple(slice(s, s + (1 if e is None else e)) for s, e in zip(start, target.extents, strict=True))] = True


def _values(e: Expr, env: Mapping[str, np.ndarray]) -> Any:
    """The values of an index expression for all steps at once."""
    import numpy as np

    if e.op == "const":
        return e.args[0]
    if e.op == "var":
        return env[e.args[0]]
    rules: dict[str, Callable[..., Any]] = {
        "add": np.add, "mul": np.multiply, "div": np.floor_divide, "mod": np.mod, "min": np.minimum, "max": np.maximum,
        "lt": np.less, "and": np.logical_and,
    }  # fmt: skip
    return reduce(rules[e.op], (_values(a, env) for a in e.args))
