"""`.tile` text as a parse tree with positions."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tile_eg.ir.kernel import Span

if TYPE_CHECKING:
    from lark import Lark

Node = Any
"""A lark Tree (`data`, `children`, `meta`) or Token; lark is imported on first use only."""


@cache
def parser() -> Lark:
    """The LALR parser, built on first use."""
    from lark import Lark

    grammar = files("tile_eg").joinpath("grammar.lark").read_text()
    return Lark(grammar, parser="lalr", lexer="basic", propagate_positions=True, maybe_placeholders=True)


def parse(text: str, file: str) -> Node:
    """The tree of a `.tile` text; TileError where the text is not one."""
    from lark.exceptions import UnexpectedInput

    try:
        return parser().parse(text)
    except UnexpectedInput as e:
        from tile_eg.frontend.syntax_errors import explain

        raise explain(e, text, file) from None


def span_of(node: Node, file: str) -> Span:
    place = node.meta if hasattr(node, "meta") else node
    return Span(file, place.line, place.column, place.end_line, place.end_column)
