"""Buffers that go on from trip to trip, and are joined in each with what a tensor's end may cut off: `s = max(s, x)`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.extents import Extents
from tile_eg.ir import index as ix
from tile_eg.ir.program import Instr, Tile

KEEP_ZEROS = {"vcopy", "vcast", "vabs", "vrelu", "vmuls", "vneg"}
"""Instructions on one tile that make zeros of zeros."""
ADD = {"vadd", "vsub", "vaxpy", "vmuladd"}
"""Instructions that leave what is there where they add zeros."""


@dataclass
class Carried:
    """`joined` are the buffers that an instruction of this trip changed from what the trip before left there, by more than adding
    zeros. What a tensor's end cuts off of `zeros` is 0."""

    joined: dict[str, Span | None] = field(default_factory=dict)
    zeros: set[str] = field(default_factory=set)

    def computed(self, i: Instr, fresh: Collection[str]) -> None:
        """An instruction is done; `fresh` is what was written in this trip before it."""
        assert isinstance(i.dst, Tile)
        name, read = i.dst.buffer, [t.buffer for t in i.reads() if isinstance(t, Tile)]
        others = [n for n in read if n != name]
        adds_zeros = i.op in ADD and any(n in self.zeros for n in others)
        if name in read and others and name not in fresh and not adds_zeros:
            self.joined.setdefault(name, i.span)
        keeps = (i.op in KEEP_ZEROS and read[:1]) or (i.op == "vmul" and read)
        (self.zeros.add if keeps and any(n in self.zeros for n in keeps) else self.zeros.discard)(name)

    def begun(self) -> dict[str, Span | None]:
        """A loop begins: what was joined before it."""
        before, self.joined = self.joined, {}
        return before

    def left(
        self, variable: str, known: Mapping[str, Extents], before: dict[str, Span | None], fresh: Collection[str], help: str
    ) -> None:
        """A loop was left. TileError where what exists of a buffer that goes on differs from trip to trip."""
        for name, span in self.joined.items():
            if any(e is not None and variable in ix.variables(e) for e in known.get(name, ())):
                what = f"how much of {name} exists differs from trip to trip: what it is joined with ends where its tensor does"
                raise TileError(what, span, help=help)
        self.joined = before | {name: span for name, span in self.joined.items() if name not in fresh}
