"""Functions and constants of an author's own, and those of files that a text imports: written out where a kernel uses them.

A function is an expression of its parameters, a constant a number. What is written out is a tree, so that it means what it would
mean if it stood there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tile_eg.errors import WITH_OR_WITHOUT_MARK, Span, TileError, did_you_mean, in_source, why_unread
from tile_eg.frontend.made_words import MADE
from tile_eg.frontend.scalars import CONSTANTS
from tile_eg.frontend.text.expressions import FUNCTIONS as OF_TILES
from tile_eg.frontend.text.syntax import Node, parse, span_of
from tile_eg.frontend.whole_quotients import AS_C
from tile_eg.ops.elementwise import OF_TWO_FLOATS
from tile_eg.ops.records import record

BINDS = {"size": 0, "tensor": 0, "buffer": 0, "let": 0, "loop": 0}
"""The nodes that give a name a meaning, and which child it is."""

RESERVED = {*OF_TILES, *CONSTANTS} - {*MADE, AS_C, *OF_TWO_FLOATS}
"""Words that keep their meaning; one that stands for an expression of others may be defined otherwise."""


def may_be_called(name: str) -> bool:
    """Whether a definition may call it: a function of tiles, or of whole tensors."""
    if name in OF_TILES or name == "arange":
        return True
    from tile_eg.frontend.tensor.functions import FUNCTIONS

    return name in FUNCTIONS


@record
class Definition:
    """A function of `parameters`, or a constant, which has none."""

    parameters: tuple[str, ...] | None
    value: Node
    span: Span


@dataclass
class Definitions:
    """What a text defines so far; `around` are the files that import it."""

    file: str
    around: tuple[str, ...] = ()
    known: dict[str, Definition] = field(default_factory=dict)

    def read(self, nodes: list[Node]) -> None:
        """Definitions in their order: each may use those before it."""
        for node in nodes:
            getattr(self, "_" + node.data)(node)

    def _constant(self, node: Node) -> None:
        name, value = node.children
        self._define(name, Definition(None, self.applied(value, frozenset()), span_of(name, self.file)))

    def _function(self, node: Node) -> None:
        name, *parameters, value = (n for n in node.children if n is not None)
        names = tuple(map(str, parameters))
        for n, place in enumerate(parameters):
            if str(place) in names[:n]:
                raise TileError(f"`{place}` is defined twice", span_of(place, self.file))
        self._define(name, Definition(names, self.applied(value, frozenset(names)), span_of(name, self.file)))

    def _define(self, name: Node, made: Definition) -> None:
        if str(name) in RESERVED:
            raise TileError(f"`{name}` is a word of the language", made.span, help="give it another name")
        self._add(str(name), made, made.span)

    def _add(self, name: str, made: Definition, span: Span) -> None:
        if name in self.known:
            raise TileError(f"`{name}` is defined twice", span, notes=(("it is defined here", self.known[name].span),))
        self.known[name] = made

    def _imported(self, node: Node) -> None:
        span, path = span_of(node, self.file), path_of(self.file, ".".join(map(str, node.children)))
        if str(path) in (self.file, *self.around):
            raise TileError(f"{path} imports itself", span)
        text = _text_of(path, span)
        inner = Definitions(str(path), (*self.around, self.file))
        try:
            with in_source(text):
                inner.read([n for n in parse(text, str(path)).children if n.data != "kernel"])
        except TileError as e:
            e.notes += (("it is imported here", span),)
            e.texts[str(path)], e.source = text, ""
            raise
        for name, made in inner.known.items():
            self._add(name, Definition(made.parameters, made.value, span), span)

    def applied(self, node: Node, parameters: frozenset[str] | None = None) -> Node:
        """A tree with everything defined written out. Of a definition (`parameters` are its own) nothing else is known."""
        if not hasattr(node, "data"):
            return node
        children = [self.applied(c, parameters) for c in node.children]
        name = str(children[0]) if node.data in ("name", "call") else ""
        if node.data == "call" and name in self.known:
            return self._called(node, name, children[1:])
        if node.data == "call" and parameters is not None and not may_be_called(name):
            help = "a function uses those that stand above it"
            raise TileError(f"unknown function `{name}`", span_of(node, self.file), help=help)
        if node.data == "name" and name in self.known and name not in (parameters or ()):
            if self.known[name].parameters is not None:
                raise TileError(f"`{name}` is a function", span_of(node, self.file), help=f"call it: {name}(x)")
            return _placed(self.known[name].value, {}, node)
        if node.data == "name" and parameters is not None and name not in parameters and name not in CONSTANTS:
            help = did_you_mean(name, [*parameters, *self.known])
            raise TileError(f"unknown name `{name}`", span_of(node, self.file), help=help)
        return type(node)(node.data, children, node.meta)

    def _called(self, node: Node, name: str, arguments: list[Node]) -> Node:
        made, given = self.known[name], [a for a in arguments if a is not None]
        span = span_of(node, self.file)
        if made.parameters is None:
            raise TileError(f"`{name}` is a number, not a function", span)
        if len(given) != len(made.parameters):
            many = f"{len(made.parameters)} argument{'s' * (len(made.parameters) != 1)}, not {len(given)}"
            raise TileError(f"`{name}` takes {many}", span, notes=(("it is defined here", made.span),))
        return _placed(made.value, dict(zip(made.parameters, given, strict=True)), node)

    def check_names(self, kernel: Node) -> None:
        """TileError where a kernel gives a name that is defined another meaning."""
        for name in _bound(kernel):
            if str(name) in self.known:
                notes = (("it is defined here", self.known[str(name)].span),)
                raise TileError(f"`{name}` is defined twice", span_of(name, self.file), notes=notes)


def expanded(tree: Node, file: str) -> Node:
    """The tree of a text with its kernel alone, in which what the text defines and imports is written out."""
    kernels = [n for n in tree.children if n.data == "kernel"]
    if not kernels:
        help = "kernel name[sizes](inputs) -> results { ... }"
        raise TileError("a text begins with `kernel`, or with what its kernel uses", Span(file, 1, 1, 1, 2), help=help)
    if len(tree.children) == 1:
        return tree
    found = Definitions(file)
    found.read([n for n in tree.children if n.data != "kernel"])
    found.check_names(kernels[0])
    return type(tree)(tree.data, [found.applied(kernels[0])], tree.meta)


def _placed(value: Node, given: Mapping[str, Node], use: Node) -> Node:
    """A definition's tree at the place where it is used, its parameters replaced."""
    if not hasattr(value, "data"):
        return value
    if value.data == "name" and str(value.children[0]) in given:
        return given[str(value.children[0])]
    return type(value)(value.data, [_placed(c, given, use) for c in value.children], use.meta)


def _bound(node: Node) -> Iterator[Node]:
    if not hasattr(node, "data"):
        return
    if node.data in BINDS:
        yield node.children[BINDS[node.data]]
    elif node.data == "names":
        yield from (n for n in node.children if n is not None)
    for child in node.children:
        yield from _bound(child)


def path_of(file: str, name: str) -> Path:
    """The file that an import names: beside the one that imports it, or in folders there."""
    return Path(file).parent.joinpath(*name.split(".")).with_suffix(".tile")


def _text_of(path: Path, span: Span) -> str:
    try:
        return path.read_text(encoding=WITH_OR_WITHOUT_MARK)
    except (OSError, UnicodeDecodeError) as e:
        help = "import common reads common.tile beside this file, import lib.common the one in lib"
        raise TileError(f"cannot read {path}: {why_unread(e)}", span, help=help) from None


IMPORT = re.compile(r"^\s*import\s+(\w+(?:\s*\.\s*\w+)*)", re.M)


def imported_texts(text: str, file: str) -> dict[str, str]:
    """The texts that a text imports, by file, and what these import; those that cannot be read are left out."""
    found: dict[str, str] = {}
    left = [(text, file)]
    while left:
        text, file = left.pop()
        for name in IMPORT.findall(text):
            path = path_of(file, re.sub(r"\s", "", name))
            if str(path) not in found and path.is_file():
                found[str(path)] = path.read_text(encoding=WITH_OR_WITHOUT_MARK, errors="replace")
                left.append((found[str(path)], str(path)))
    return found
