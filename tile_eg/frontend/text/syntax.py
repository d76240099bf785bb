"""`.tile` text as a parse tree with positions."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_eg.disk_cache import recall, remember
from tile_eg.errors import Span, TileError

if TYPE_CHECKING:
    from lark import Lark

Node = Any
"""A lark Tree (`data`, `children`, `meta`) or Token; lark is imported on first use only."""


GRAMMAR = Path(__file__).parents[2] / "grammar.lark"
OPTIONS = {"parser": "lalr", "lexer": "basic", "propagate_positions": True, "maybe_placeholders": True}
GRAMMARS = 8  # tables that stay in the cache


@cache
def parser() -> Lark:
    """The LALR parser, on first use: from its tables where they were kept, else from the grammar."""
    from lark import Lark, __version__

    grammar = GRAMMAR.read_text(encoding="utf-8")
    name = f"grammar-{sha256(repr((grammar, __version__, OPTIONS, sys.version)).encode()).hexdigest()[:32]}"
    kept = recall(name)
    if kept is not None:
        with suppress(Exception):  # tables of any other form are built again
            return Lark._load_from_dict(**json.loads(kept, object_hook=_numbered))
    made = Lark(grammar, **OPTIONS)
    remember(name, _tables(made), GRAMMARS)
    return made


def _tables(made: Lark) -> bytes:
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    data, memo = made.memo_serialize([TerminalDef, Rule])
    return json.dumps({"data": data, "memo": memo}).encode()


def _numbered(table: dict[str, Any]) -> dict[str | int, Any]:
    """A table with the numbers back that JSON has made texts of."""
    return {int(key) if key.isdecimal() else key: value for key, value in table.items()}


def parse(text: str, file: str) -> Node:
    """The tree of a `.tile` text; TileError where the text is not one."""
    from lark.exceptions import UnexpectedInput

    if found := re.search(r"^[ \t]*(//|/\*)", text, re.MULTILINE):
        line, column = text.count("\n", 0, found.start(1)) + 1, found.start(1) - text.rfind("\n", 0, found.start(1))
        raise TileError(f"`{found[1]}` begins no comment", Span(file, line, column, line, column + 2), help="# begins one")
    try:
        return parser().parse(text)
    except UnexpectedInput as e:
        from tile_eg.frontend.text.syntax_errors import explain

        raise explain(e, text, file, parser()) from None


def span_of(node: Node, file: str) -> Span:
    place = node.meta if hasattr(node, "meta") else node
    return Span(file, place.line, place.column, place.end_line, place.end_column)


def number_of(node: Node) -> int | float:
    """A number as it is written: 4, 0x1f, 0b101, 1e-5."""
    text = str(node.children[0])
    if text[:2].lower() in ("0x", "0b"):
        return int(text, 0)
    return int(text) if text.isdigit() else float(text)
