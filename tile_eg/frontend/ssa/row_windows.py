"""Windows of a tile that have the same columns and other rows, as a stencil reads: they are loaded together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.operands import regions

Columns = tuple[str, Expr]
"""The name of a buffer, and the first column of a window of it."""


def shared_columns(body: tuple[kn.Stmt, ...]) -> frozenset[Columns]:
    """The columns of which element loops read several windows, each with other rows."""
    found: dict[Columns, set[Expr]] = defaultdict(set)
    for columns, row in _windows(body):
        found[columns].add(row)
    return frozenset(columns for columns, rows in found.items() if len(rows) > 1)


def _windows(body: tuple[kn.Stmt, ...]) -> Iterator[tuple[Columns, Expr]]:
    for s in body:
        match s:
            case kn.For():
                yield from _windows(s.body)
            case kn.If():
                yield from _windows((*s.then, *s.otherwise))
            case kn.Parallel():
                begin = dict.fromkeys(s.vars, ix.ZERO)
                for a in s.body:
                    yield from _read(a.value, begin)


def _read(e: kn.TileExpr, begin: Mapping[str, Expr]) -> Iterator[tuple[Columns, Expr]]:
    """Where the windows begin that the single elements of an expression run over."""
    for r in regions(e):
        if len(r.starts) == 2 and r.extents == (None, None):
            row, col = (ix.substitute(start, begin) for start in r.starts)
            yield (r.name, col), row
