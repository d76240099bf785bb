"""A value of a run that is not what it should be, and how it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from math import isfinite
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.ir.printed import Printed
from tile_eg.ops.records import record


@record
class Difference:
    """One element: `got`, where `want` is meant and may be `allowed` off.

    `name` is the buffer's, or the output's that `stored` says it is an element of; `element` the place in it. `place` is a tensor
    in GM and the place in that, where the element is loaded from one. Of the `size` elements that the instruction wrote `wrong`
    are wrong. `tile` is the tile of the grid by its number and its `grid` variables, `block` that of the launch,
    `trips` are those of the loops around. `instruction`, `rules`, `memory`, `buffer` and `core` say what computed it, and where
    it lies.
    """

    name: str
    element: tuple[int, ...]
    got: float
    want: float
    allowed: float
    wrong: int
    size: int
    tile: int
    block: int
    grid: Mapping[str, int] = field(default_factory=dict)
    trips: Mapping[str, int] = field(default_factory=dict)
    span: Span | None = None
    stored: bool = False
    shape: str = ""
    place: tuple[str, tuple[int, ...]] | None = None
    instruction: str = ""
    rules: Sequence[str] = ()
    memory: str = ""
    buffer: str = ""
    core: str = ""

    @property
    def message(self) -> str:
        allowed = f" ({self.allowed:.2g} off is allowed)" if isfinite(self.allowed) else ""
        return f"{self.name}[{_listed(self.element)}] is {_number(self.got)}, and {_number(self.want)} is meant{allowed}"

    @property
    def notes(self) -> list[str]:
        if self.tile < 0:
            return ["no block has written it"]
        where = f"tile {self.tile} of the grid" + (f" ({_named(self.grid)})" if self.grid else "")
        where += f", trip {_named(self.trips)}" if self.trips else ""
        count = f"{self.wrong} of {self.size} elements {'is' if self.wrong == 1 else 'are'} wrong"
        held = f"; {self.shape} in {self.buffer} ({self.memory})" if self.buffer else ""
        out = [f"{where}, block {self.block} of the launch: {count}{held}"]
        if self.place:
            out.append(f"it is loaded from {self.place[0]}[{_listed(self.place[1])}]")
        if self.instruction:
            rules = f" (rule{'s' * (len(self.rules) > 1)} {', '.join(self.rules)})" if self.rules else ""
            out.append(f"`{self.instruction}` of {self.core}{rules} wrote it")
        return out

    def data(self) -> dict[str, Any]:
        """Plain values for JSON."""
        numbers = {k: v if isfinite(v) else None for k, v in asdict(self).items() if isinstance(v, float)}
        line = {"line": self.span.line, "file": self.span.file} if self.span else {"line": None, "file": None}
        plain = {k: v for k, v in asdict(self).items() if k not in ("span", "place")}
        place = {"tensor": self.place[0], "index": list(self.place[1])} if self.place else None
        return {**plain, **numbers, **line, "element": list(self.element), "rules": list(self.rules), "place": place}


@record(repr=False)
class Located(Printed):
    """What was looked for: `first` is the first value that differs, None where none does. `among` says from what, and on which
    inputs, `before` how many values inside the kernel were compared before and are right, `remarks` what else is known."""

    first: Difference | None
    among: str
    before: int = 0
    remarks: Sequence[str] = ()
    source: str = ""

    @property
    def good(self) -> bool:
        return self.first is None

    def error(self) -> TileError | None:
        """The difference at its line of the source."""
        if self.first is None:
            return None
        notes = [*self.first.notes, *([f"{self.before} values of this tile before it are right"] if self.before else [])]
        error = TileError(self.first.message, self.first.span, notes=tuple((n, None) for n in (*notes, *self.remarks)))
        error.source = self.source
        return error

    def __str__(self) -> str:
        if self.first is None:
            return "\n".join([f"no value differs {self.among}", *(f"note: {r}" for r in self.remarks)])
        what = "the first value inside the kernel that differs" if not self.first.stored else "the first value that differs"
        return f"{what} {self.among}:\n{self.error()}"

    def data(self) -> dict[str, Any]:
        """Plain values for JSON."""
        first = None if self.first is None else self.first.data()
        return {"first": first, "among": self.among, "right_before": self.before, "remarks": list(self.remarks)}


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _named(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {n}" for name, n in numbers.items())


def _number(x: float) -> str:
    return f"{x:.7g}"
