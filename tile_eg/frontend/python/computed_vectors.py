"""Vectors that are computed, as tiles: `(x + y)[:, None]`."""

from __future__ import annotations

import ast

from tile_eg.errors import NotSearched
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.views import is_view
from tile_eg.frontend.windows import known_shape
from tile_eg.ir.kernel import Broadcast, TileExpr

HELP = "a vector becomes a tile as (x + y)[:, None] or (x + y)[None, :]; for anything else, store it in a buffer first"


def computed_vector(b: Builder, value: TileExpr, node: ast.Subscript) -> Broadcast:
    """An expression with a new axis. TileError where it is no vector, or has other indices."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    new = [isinstance(p, ast.Constant) and p.value is None for p in parts]
    rest = [p for p, n in zip(parts, new, strict=True) if not n]
    plain = all(isinstance(p, ast.Slice) and p.lower is p.upper is p.step is None for p in rest)
    if len(parts) != 2 or sum(new) != 1 or not plain or len(known_shape(value) or ()) != 1:
        if is_view(value):
            raise NotSearched("the search has no form for elements of a view", b.span(node), help="T.copy it to a buffer first")
        raise b.error("only buffers and tensors have indices", node, HELP)
    return Broadcast(value, 1 if new[1] else 0, b.span(node))
