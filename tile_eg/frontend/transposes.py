"""A transposed tile as a value: a buffer of its own, filled by an element loop."""

from __future__ import annotations

from collections.abc import Callable

from tile_eg.errors import Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.windows import known_shape
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import DType


def transposed(
    x: kn.TileExpr, dtype: DType, scope: str, unique: Callable[[str], str], span: Span | None
) -> tuple[list[kn.Stmt], kn.Region]:
    """Statements that transpose a tile of this dtype, and the buffer that they fill. TileError where it has no two dimensions."""
    shape = known_shape(x)
    if shape is None or len(shape) != 2:
        help = "load it into a buffer first: " + hint("a = A[i, j], then a.T", "T.copy(A[i, j], a), then a.T", span)
        raise TileError("only a tile of two dimensions is transposed as a value", span, help=help)
    statements: list[kn.Stmt] = []
    if not isinstance(x, kn.Region) or any(s != ix.ZERO for s in x.starts) or None in x.extents:
        source = kn.Alloc(unique("tile"), scope, dtype, shape, span)
        statements += [source, kn.Assign(_all(source), x, span)]
        x = _all(source)
    made = kn.Alloc(unique(f"{x.name}_T"), scope, dtype, shape[::-1], span)
    names = unique("row"), unique("col")
    row, col = map(ix.var, names)
    to, of = kn.Region(made.name, (row, col), (None, None), span), kn.Region(x.name, (col, row), (None, None), span)
    statements += [made, kn.Parallel(names, made.shape, (kn.Assign(to, of, span),), span)]
    return statements, _all(made)


def _all(buffer: kn.Alloc) -> kn.Region:
    return kn.Region(buffer.name, (ix.ZERO,) * len(buffer.shape), buffer.shape, buffer.span)
