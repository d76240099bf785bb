"""What the reader of such a kernel knows of the author's places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend.python.build import Builder
from tile_eg.frontend.python.source import Source
from tile_eg.frontend.python.statements import Reader
from tile_eg.frontend.python.values import Slice
from tile_eg.ir.index import Expr


class Placed(Reader):
    """`core` is whose scope is read; `levels` are where the author puts his buffers, `addresses` the bytes at which he says that
    they begin; `turned` are the buffers of L0 that hold their tile the other way round, `alike` the flags that cores of one
    kind set for one another, by that kind."""

    def __init__(self, source: Source, names: Mapping[str, Any], sizes: Mapping[str, Any] | None = None) -> None:
        super().__init__(source, names, sizes)
        self.core: str | None = None
        self.levels: dict[str, str] = {}
        self.addresses: dict[str, int] = {}
        self.turned: set[str] = set()
        self.alike: set[tuple[str, Expr]] = set()

    def counted_slice(self, start: Expr, extent: Expr, size: int, span: Span) -> Slice:
        return Builder.counted_slice(self, start, extent, size, span)
