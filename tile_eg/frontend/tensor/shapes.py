"""Shapes of whole tensors."""

from __future__ import annotations

from collections.abc import Sequence

from tile_eg.errors import Span, TileError

Shape = tuple[int, ...]


def joined_shape(a: Shape, b: Shape) -> Shape | None:
    """The shape to which two broadcast; None where they do not."""
    n = max(len(a), len(b))
    pairs = zip((1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b, strict=True)
    out = tuple(p if q == 1 else q if p in (1, q) else -1 for p, q in pairs)
    return None if -1 in out else out


def whole_sizes(shape: Sequence[int], span: Span | None) -> list[int]:
    for n in shape:
        if not isinstance(n, int):
            raise TileError(f"the sizes of a shape are whole numbers, not {n}", span)
    return list(shape)
