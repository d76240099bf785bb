"""One element of a statement of an element loop: over which axes it goes, and what is known of its value."""

from __future__ import annotations

from tile_eg.ir import index as ix
from tile_eg.ir.values import Term
from tile_eg.ops.records import record


@record
class Axes:
    """What a statement runs over: the names of its row and column coordinates (no row for a vector) and their extents."""

    row: str | None
    col: str | None
    rows: int
    cols: int


@record
class Scalar:
    """A scalar term, and the valid extents that its operands allow (None: any)."""

    term: Term
    vrows: ix.Expr | None = None
    vcols: ix.Expr | None = None

    def ends_with(self, other: Scalar) -> bool:
        """Whether there is no extent at which another value ends and this one does not."""
        return other.vrows in (None, self.vrows) and other.vcols in (None, self.vcols)
