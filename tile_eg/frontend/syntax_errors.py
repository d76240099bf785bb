"""What is wrong with a text that does not parse, in words."""

from __future__ import annotations

from lark.exceptions import UnexpectedInput

from tile_eg.errors import TileError
from tile_eg.ir.kernel import Span


def explain(error: UnexpectedInput, text: str, file: str) -> TileError:
    """A syntax error as a TileError at its place."""
    return TileError("syntax error", Span(file, error.line, error.column, error.line, error.column + 1))
