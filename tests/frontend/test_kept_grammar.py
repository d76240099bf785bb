"""The parser from kept tables is the parser from the grammar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lark import Lark, Token, Tree

from tile_eg.errors import TileError
from tile_eg.frontend.text import syntax

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.tile"))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """What is kept, by name; parsers are made anew."""
    held: dict[str, bytes] = {}
    monkeypatch.setattr(syntax, "recall", held.get)
    monkeypatch.setattr(syntax, "remember", lambda name, data, most: held.update({name: data}))
    syntax.parser.cache_clear()
    yield held
    syntax.parser.cache_clear()


def shown(node: syntax.Node) -> str:
    """A tree with all places."""
    if not isinstance(node, Tree):
        return repr((node, node.line, node.column, node.end_line, node.end_column) if isinstance(node, Token) else node)
    return f"{node.data} {sorted(vars(node.meta).items())} [{', '.join(map(shown, node.children))}]"


def from_the_grammar_and_from_tables(text: str) -> list[str]:
    """What each of the two makes of a text: its tree with all places, or the error."""
    out = []
    for _ in range(2):
        syntax.parser.cache_clear()
        try:
            tree = syntax.parse(text, "x.tile")
        except TileError as error:
            out.append(str(error))
        else:
            out.append(shown(tree))
    return out


@pytest.mark.few(7)
@pytest.mark.slow(but=2)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_the_tree_is_the_same(example: Path, kept: dict[str, bytes]) -> None:
    built, loaded = from_the_grammar_and_from_tables(example.read_text(encoding="utf-8"))
    assert built == loaded and len(kept) == 1


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("end", range(20, 400, 60))
def test_the_error_is_the_same(end: int, kept: dict[str, bytes]) -> None:
    text = EXAMPLES[0].read_text(encoding="utf-8")
    built, loaded = from_the_grammar_and_from_tables(text[:end] + " ) = ?")
    assert built == loaded and "error: " in built


@pytest.mark.slow
def test_kept_tables_are_used(kept: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    syntax.parser()
    syntax.parser.cache_clear()
    monkeypatch.setattr(Lark, "__init__", lambda *_: pytest.fail("built again"))
    syntax.parser()


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("tables", [b"", b"{}", b"[]", b"\xff", b'{"data": {}, "memo": {}}'])
def test_tables_of_another_form_are_built_again(tables: bytes, kept: dict[str, bytes]) -> None:
    syntax.parser()
    kept.update(dict.fromkeys(kept, tables))
    built, loaded = from_the_grammar_and_from_tables(EXAMPLES[0].read_text(encoding="utf-8"))
    assert built == loaded
