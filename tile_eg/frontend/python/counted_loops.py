"""Element loops of which the kernel finds out how far they go: `for i, j in T.Parallel(T.min(64, n), 128)`.

They are loops over the most iterations that there may be, in each of which the body stands under `i < T.min(64, n)`. A buffer
that is written there first is 0 where it is not written, as one is of which a part is copied.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.values import Loop
from tile_eg.frontend.python.words import handles, sizes
from tile_eg.frontend.windows import most
from tile_eg.ir.index import Expr


@handles("Parallel")
def _parallel(b: Builder, span: Span, *extents: Any, **_: Any) -> Loop:
    counts = tuple(e if isinstance(e, Expr) and e.value is None and most(e) else None for e in extents)
    for e in extents:
        if isinstance(e, Expr) and e.value is None and not most(e):
            what = "how far T.Parallel goes is found out by the kernel, and may be any number"
            raise TileError(what, span, help="say the most: T.Parallel(T.min(64, n)) for a loop up to n")
    found = sizes([e if c is None else most(c) for c, e in zip(counts, extents, strict=True)], "the extent of T.Parallel", span)
    return Loop("parallel", (0,) * len(found), found, counts=counts if any(counts) else ())


def with_ends(r: Builder, node: ast.For, loop: Loop, names: Sequence[str], run: Callable[[ast.For, Loop], None]) -> None:
    """Runs such a loop as one that goes by conditions, and any other one as it is."""
    if not loop.counts:
        return run(node, loop)
    tests: list[ast.expr] = []
    for name, count in zip(names, loop.counts, strict=True):
        if count is not None:
            end = f"the end of {name}"
            r.local[end] = count
            tests.append(ast.Compare(ast.Name(name, ast.Load()), [ast.Lt()], [ast.Name(end, ast.Load())]))
    test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    inside = ast.copy_location(ast.If(test, node.body, []), node.iter)
    for made in ast.walk(test):
        ast.copy_location(made, node.iter)
    written, ends = set(r.writes), {name: len(home) for name, home in r.homes.items()}
    run(ast.copy_location(ast.For(node.target, node.iter, [inside], [], None), node), replace(loop, counts=()))
    for name in dict.fromkeys(r.writes):
        if name not in written and name in ends:
            r.homes[name][ends[name] : ends[name]] = r.zeros(name, r.span(node.iter))
    return None
