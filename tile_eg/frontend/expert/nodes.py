"""What statements of a kernel that is kept become, and what its scopes and loops give."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend.python.build import ReadAgain
from tile_eg.ir.index import Expr
from tile_eg.ir.program import Formula, Node
from tile_eg.ops.records import record
from tile_eg.ops.types import DType, Level


@record
class On:
    """An instruction or a flag, and the core that it belongs to (None: each that has instructions)."""

    core: str | None
    node: Node


@record
class Scope:
    """What `T.Scope("C")` gives: the core that its body runs on."""

    core: str


@record
class Pipe:
    """What `T.rs("PIPE_V")` gives: the pipe whose flags its body sets, and that waits for flags there."""

    name: str

    def run(self, r: Any, node: ast.With) -> None:
        """Reads the statements below: they run where each of them does, and their flags are the pipe's."""
        if r.pipe is not None:
            raise r.error("T.rs inside of T.rs", node, "each pipe has statements of its own, one behind the other")
        r.pipe = self.name
        try:
            r.unit.body(r, node.body)
        finally:
            r.pipe = None


@record
class Persistent:
    """What `T.Persistent` gives: the tiles of a domain that one block takes, wave by wave."""

    domain: tuple[int, ...]
    wave: int
    index: Expr
    group: int


class Misplaced(ReadAgain):
    """A shared buffer turns out to lie in another memory than was assumed: the kernel is read again."""

    def __init__(self, name: str, level: Level) -> None:
        super().__init__(name)
        self.name, self.level = name, level


class TripByTrip(ReadAgain):
    """A loop turns out to be one in whose trips choices leave out other elements: the kernel is read again, with its trips one
    by one."""

    def __init__(self, loop: Span) -> None:
        super().__init__("the trips of a loop")
        self.loop = loop


@record
class Branch:
    """What `T.If(condition)` gives: its body is `with T.Then():`, and `with T.Else():` behind it."""

    test: Any


@record
class Part:
    """What `T.Then()` and `T.Else()` give."""

    name: str


@record
class NewVariable:
    """What `T.alloc_var` gives: a number that gets its name from the assignment."""

    dtype: DType | None
    init: Any


@record
class Exits:
    """The numbers of one loop: `loop` is 0 once it is left, `trip` once the trip is; empty where nothing leaves them."""

    loop: str = ""
    trip: str = ""


@record
class ScalarUnit:
    """What the scalar unit does in a kernel, as functions of its reader: `frontend/expert/variables.py` has most of them.

    `taken` reads the body of `T.If`, `rules` are those of statements; `exits` are the numbers of a loop that may be left, `trip`
    reads one of its trips, `body` what a macro has in it; `function` makes what the unit does not compute itself.
    """

    settled: Callable[..., Expr]
    number: Callable[..., Any]
    bound: Callable[..., Any]
    declared: Callable[..., None]
    assigned: Callable[..., None]
    variable_of: Callable[..., str | None]
    taken: Callable[..., None]
    rules: Mapping[type, Callable[..., None]]
    exits: Callable[..., AbstractContextManager[Exits]]
    trip: Callable[..., None]
    body: Callable[..., None]
    function: Callable[..., Formula]
