"""What statements of a kernel that is kept become, and what its scopes and loops give."""

from __future__ import annotations

from dataclasses import dataclass

from tile_eg.errors import TileError
from tile_eg.ir.index import Expr
from tile_eg.ir.program import Node
from tile_eg.ops.types import Level


@dataclass(frozen=True)
class On:
    """An instruction or a flag, and the core that it belongs to (None: each that has instructions)."""

    core: str | None
    node: Node


@dataclass(frozen=True)
class Scope:
    """What `T.Scope("C")` gives: the core that its body runs on."""

    core: str


@dataclass(frozen=True)
class Persistent:
    """What `T.Persistent` gives: the tiles of a domain that one block takes, wave by wave."""

    domain: tuple[int, ...]
    wave: int
    index: Expr
    group: int


class Misplaced(TileError):
    """A shared buffer turns out to lie in another memory than was assumed: the kernel is read again."""

    def __init__(self, name: str, level: Level) -> None:
        super().__init__(name)
        self.name, self.level = name, level
