"""Tiles that an element loop makes, of which fewer elements are valid: its operands end there, too, so that the rules find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg.ir.index import Expr
from tile_eg.ir.values import Term

AXES = {"elem": (0, 1), "elem_row": (None, 0), "elem_col": (None, 1)}
"""The axes of a nest along which the rows and columns lie of a tile whose elements it reads."""
Ends = dict[int, Expr]
"""Where tiles end, by axis; on the other axes they stay as they are."""


class ShorterNest:
    """A nest of `rows` rows; `shorter` makes a tile with fewer valid rows and columns (None: as they are), if it can."""

    def __init__(self, rows: int, shorter: Callable[[Term, Expr | None, Expr | None], Any], make: Callable[..., Term]) -> None:
        self.rows, self.shorter, self.make = rows, shorter, make

    def scalar(self, s: Term, ends: Ends) -> tuple[Term | None, set[int]]:
        """A scalar term of tiles that end where it says, and the axes on which one of them does; None where one cannot."""
        if s.op in AXES:
            return self.element(s, ends)
        if s.op == "s_reduce":
            return self.reduction(s, ends)
        args, ended = list(s.args), set[int]()
        for n, arg in enumerate(s.args):
            if isinstance(arg, Term):
                args[n], axes = self.scalar(arg, ends)
                ended |= axes
        return (None if None in args else self.make(s, *args)), ended

    def element(self, s: Term, ends: Ends) -> tuple[Term | None, set[int]]:
        found = self.shorter(s.args[0], *(ends.get(axis) for axis in AXES[s.op]))  # type: ignore[arg-type]
        if not isinstance(found, Term):
            return None, set()
        ended = {axis for axis in AXES[s.op] if axis in ends and found.op != "fill"}
        return self.make(s, found), ended  # type: ignore[return-value]

    def reduction(self, s: Term, ends: Ends) -> tuple[Term | None, set[int]]:
        """What is reduced has a row for each row of the nest, or, where that is a vector, for each element."""
        axis = 0 if s.rows == self.rows else 1
        inner = ShorterNest(s.rows, self.shorter, self.make)
        found, ended = inner.scalar(s.args[1], {0: ends[axis]} if axis in ends else {})
        if found is None:
            return None, set()
        valid = {"vrows": ends[axis]} if axis in ends else {}
        return self.make(s, s.args[0], found, **valid), {axis} if 0 in ended else set()
