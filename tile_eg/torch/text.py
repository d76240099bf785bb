"""A region of torch's graph as the text of a `.tile` kernel about whole tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any

from tile_eg.errors import TileError
from tile_eg.ops.records import record
from tile_eg.ops.types import DTYPES
from tile_eg.torch.parts import INDEX_ARGUMENT
from tile_eg.torch.regions import Region
from tile_eg.torch.word import name_of, number, refuse
from tile_eg.torch.words import AXES, CONDITIONS, CONSTANTS, WORDS, is_size

OURS = {d.numpy: name for name, d in DTYPES.items()}
FLOATS = ("float16", "bfloat16", "float32")
ALONE = ("1",)
"""The shape of a tensor without dimensions in a kernel."""
MOST_FACTORS = 3
"""Sizes whose product a dimension is known as."""


@record(eq=False)
class Text:
    """A kernel's text, the tensors that it takes in their order, those that it gives, and sizes for an example."""

    name: str
    text: str
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    sizes: Mapping[str, int]


def text_of(region: Region, name: str) -> Text:
    """TileError where a kernel cannot say it, with the reason."""
    inside = set(region.nodes)
    nodes = sorted(region.nodes)
    inputs = tuple(a for a in region.inputs if not is_size(a))  # sizes of views are those of their results
    outputs = tuple(n for n in nodes if any(u not in inside for u in n.users) and not _several(n))
    return _Writer(name, inputs, outputs, nodes).written()


def _indices_of(node: Any) -> tuple[Any, ...]:
    """What says which rows or elements an operator takes."""
    place = INDEX_ARGUMENT.get(name_of(node))
    found = () if place is None else node.args[place]
    return tuple(found) if isinstance(found, list | tuple) else (found,)


def _several(node: Any) -> bool:
    return isinstance(node.meta.get("val"), tuple | list)


class UnknownSize(TileError):
    """A dimension of a value follows from no size of the inputs."""


class _Writer:
    def __init__(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any], nodes: Sequence[Any]) -> None:
        self.name, self.inputs, self.outputs, self.nodes = name, inputs, outputs, nodes
        self.texts: dict[Any, Any] = {n: f"x{i}" for i, n in enumerate(inputs)}
        self.own = {n: f"y{i}" for i, n in enumerate(outputs)}
        self.symbols: dict[str, tuple[str, Any]] = {}
        self.lines: list[str] = []

    def written(self) -> Text:
        for n in self.inputs:
            self._take_symbols(n)
        heads = [f"{self.texts[n]}: {self._declared(n, new=True)}" for n in self.inputs]
        if not heads or not self.outputs:
            raise refuse("it has no inputs, or gives nothing")
        for n in self.nodes:
            self._statement(n)
        gives = ", ".join(f"{self.own[n]}: {self._declared(n)}" for n in self.outputs)
        sizes = ", ".join(f"{name}: dyn" for name, _ in self.symbols.values())
        given = gives if len(self.outputs) == 1 else f"({gives})"
        body = "\n".join(f"  {line}" for line in self.lines)
        text = f"kernel {self.name}{f'[{sizes}]' if sizes else ''}({', '.join(heads)}) -> {given} {{\n{body}\n}}\n"
        return Text(self.name, text, tuple(self.inputs), tuple(self.outputs), {n: _hint(d) for n, d in self.symbols.values()})

    def _statement(self, node: Any) -> None:
        """A line for a value; what is free stands where it is used."""
        name = name_of(node)
        if name == "getitem":
            value = self.texts[node.args[0]][node.args[1]]
        else:
            value = WORDS[name](self, node)
        if isinstance(value, tuple):
            self.texts[node] = tuple(self.named(text) if self._taken(node, i) else text for i, text in enumerate(value))
        elif node in self.own:
            if name in CONDITIONS:
                raise refuse("it gives conditions")
            self.lines.append(f"{self.own[node]} = {value}")
            self.texts[node] = self.own[node]
        elif name in CONSTANTS or value.isidentifier():
            self.texts[node] = value
        else:
            self.texts[node] = self.named(value)

    def _taken(self, node: Any, part: int) -> bool:
        return any(name_of(u) == "getitem" and u.args[1] == part for u in node.users)

    def _declared(self, node: Any, new: bool = False) -> str:
        """Element type and shape: f16[n0, 64]."""
        value = node.meta.get("val")
        if not hasattr(value, "shape"):
            raise refuse("it takes or gives a number of torch's own")
        if new:
            for d in value.shape:
                if not isinstance(d, int) and self._known(d) is None:
                    self._take(d)
        of = "i32" if new and self._only_an_index(node) else self.dtype(node)
        return f"{of}[{', '.join(self.shape(node) or ALONE)}]"

    def _only_an_index(self, node: Any) -> bool:
        """Whether a value says which rows are taken, and nothing else."""
        users = [u for u in node.users if u in self.nodes]
        if not str(node.meta["val"].dtype).startswith("torch.int"):
            return False
        return all(self._only_an_index(u) if name_of(u) in AXES else self._is_index_alone(u, node) for u in users)

    def _is_index_alone(self, user: Any, node: Any) -> bool:
        return node in _indices_of(user) and user.args[0] is not node

    def _take_symbols(self, node: Any) -> None:
        """Makes sizes of an input's dimensions that are sizes of torch's, and not products of them."""
        for d in getattr(node.meta.get("val"), "shape", ()):
            if not isinstance(d, int) and d.node.expr.is_Symbol:
                self._take(d)

    def _take(self, dim: Any) -> None:
        self.symbols.setdefault(str(dim), (f"n{len(self.symbols)}", dim))

    # what an operator's word asks for

    def text(self, value: Any) -> str:
        if hasattr(value, "op"):
            if value not in self.texts:
                raise refuse(f"{value} is computed elsewhere")
            return str(self.texts[value])
        return number(value)

    def shape(self, node: Any) -> list[str]:
        value = node.meta["val"]
        return [self._size(d) for d in (value[0] if isinstance(value, tuple | list) else value).shape]

    def named(self, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def dtype(self, node: Any) -> str:
        name = str(node.meta["val"].dtype).removeprefix("torch.")
        if name not in FLOATS:
            raise refuse(f"its elements are {name}")
        return OURS[name]

    def _size(self, dim: Any) -> str:
        """A dimension as a number, or by the sizes. UnknownSize where these do not tell it."""
        found = self._known(dim)
        if found is None:
            raise UnknownSize(f"a dimension of {dim} follows from no input's")
        return found

    def _known(self, dim: Any) -> str | None:
        """A dimension as a number, a size, or a product of sizes times or by a number."""
        if isinstance(dim, int):
            return str(dim)
        if str(dim) in self.symbols:
            return self.symbols[str(dim)][0]
        for count in range(1, MOST_FACTORS + 1):
            for some in combinations(self.symbols.values(), count):
                all_of_them = prod(known.node.expr for _, known in some)
                names = " * ".join(name for name, _ in some)
                if (ratio := dim.node.expr / all_of_them).is_Integer:
                    return names if ratio == 1 else f"{names} * {ratio}"
                if (ratio := all_of_them / dim.node.expr).is_Integer:
                    return f"{names} // {ratio}"
        return None


def _hint(dim: Any) -> int:
    return int(dim.node.hint)
