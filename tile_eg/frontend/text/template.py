"""`.tile` text as a Template: a kernel whose sizes are still open."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field
from operator import index
from typing import Any, SupportsIndex

from tile_eg.errors import TileError, did_you_mean, in_source, searchable
from tile_eg.frontend.of_calls import number
from tile_eg.frontend.text.build import Builder, build, number_nodes, size_nodes, tensor_nodes
from tile_eg.frontend.text.definitions import expanded, imported_texts
from tile_eg.frontend.text.scope import Scope
from tile_eg.frontend.text.syntax import Node, parse, span_of
from tile_eg.ir.arrays import of_elements
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import AUTO, open_kernel
from tile_eg.ops.records import record
from tile_eg.ops.types import DType, dtype_of

NUMBERS = ("f32", "i32")
DYN = "dyn"
"""`[M: dyn]`: a size that has no default, as each call tells it."""


@record
class Template:
    """A kernel text. `sizes` gives every size's default, None where it has none, and where it is in `searched`: `auto`.

    `imported` are the texts that it imports, by file.
    """

    name: str
    sizes: Mapping[str, int | None]
    searched: frozenset[str]
    source: str
    file: str
    tree: Node = field(repr=False, compare=False)
    imported: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)

    @property
    def exact(self) -> tuple[object, ...]:
        """Plain values from which the kernel follows at all sizes: its text, and those that it imports."""
        return self.file, self.source, self.imported

    def instantiate(self, sizes: Mapping[str, int | str] | None = None) -> Kernel:
        """The kernel with these sizes ("auto": the search finds it), and the defaults for the rest. Raises TileError."""
        given = sizes or {}
        fixed = {name: value for name, value in given.items() if not _is_auto(value)}
        left = [name for name in (*self.sizes, *given) if _is_auto(given.get(name, AUTO if name in self.searched else None))]
        self.with_numbers(given)
        with in_source(self.source):
            if of_tensors(self.tree):
                return self._of_tensors(fixed, left)
            self._check_names(given)
            if left:
                made = open_kernel(list(dict.fromkeys(left)), lambda found: self.instantiate({**fixed, **found}))
                return searchable(made)
            return build(self.tree, self._complete(fixed), self.source, self.file)  # type: ignore[arg-type]

    def _of_tensors(self, fixed: Mapping[str, Any], left: Sequence[str]) -> Kernel:
        """The kernel of a text about whole tensors; beside its own sizes there are those of tiles."""
        from tile_eg.frontend.text.tensors import tensor_kernel

        own = self._complete({n: size for n, size in fixed.items() if n in self.sizes})
        kernel = tensor_kernel(self.tree, own, self.source, self.file)
        tiles = {n: size for n, size in fixed.items() if n not in self.sizes}
        for name in (*tiles, *left):
            if name in self.sizes or name not in kernel.open.values():
                if name in self.sizes:
                    message = f"the size {name} is that of a tensor: the search finds sizes of tiles"
                    raise TileError(message, help="give it a number")
                known = [*self.sizes, *kernel.open.values()]
                raise TileError(f"`{self.name}` has no size called `{name}`", help=did_you_mean(name, known))
        return kernel.kernel(whole_sizes(tiles))

    def tensor_dims(self) -> dict[str, tuple[str | None, ...]]:
        """For every argument tensor the size that each dimension is called by, None where it is an expression."""
        out = {}
        for t in tensor_nodes(self.tree):
            out[str(t.children[0])] = tuple(_size_name(d, self.sizes) for d in t.children[2].children)
        return out

    @property
    def parameters(self) -> list[str]:
        """What a call passes, in its order: tensors and numbers."""
        return [str(n.children[0]) for n in self.tree.children[0].children[2].children if n is not None]

    @property
    def numbers(self) -> dict[str, DType]:
        """The parameters that are numbers, with their types; they are among the sizes."""
        return {str(n.children[0]): _type_of_number(n, self.file) for n in number_nodes(self.tree)}

    @property
    def of_texts(self) -> tuple[str, ...]:
        """The sizes and whole numbers that one text may have as its arguments: those that each call tells."""
        left = [n for n, v in self.sizes.items() if v is None and n not in self.searched]
        return tuple(n for n in left if n not in self.numbers or self.numbers[n].whole)

    def sizes_of(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """The sizes that arrays of these shapes imply; arrays of 4-bit numbers hold bytes. TileError where a rank is wrong or two
        arrays disagree."""
        out: dict[str, tuple[int, str]] = {}
        dtypes = self._dtypes()
        for name, dims in self.tensor_dims().items():
            if name not in shapes:
                continue
            if len(shapes[name]) != len(dims):
                raise TileError(f"`{name}` has {len(dims)} dimensions, the array has {len(shapes[name])}: {shapes[name]}")
            for dim, n in zip(dims, of_elements(shapes[name], dtypes[name]), strict=True):
                if dim is not None and out.setdefault(dim, (n, name))[0] != n:
                    raise TileError(f"{dim} is {out[dim][0]} in `{out[dim][1]}` and {n} in `{name}`")
        return {dim: n for dim, (n, _) in out.items()}

    def _dtypes(self) -> dict[str, DType | None]:
        """The argument tensors with their element types."""
        return {str(t.children[0]): dtype_of(str(t.children[1])) for t in tensor_nodes(self.tree)}

    def of_calls(self) -> set[str]:
        """The sizes declared as `dyn`, which may be 0."""
        return {str(s.children[0]) for s in size_nodes(self.tree) if str(s.children[1]) == DYN}

    def _check_names(self, given: Iterable[str]) -> None:
        for name in given:
            if name not in self.sizes:
                raise TileError(f"`{self.name}` has no size called `{name}`", help=did_you_mean(name, self.sizes))

    def with_numbers(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The sizes, with what a call passes for each number as one of Python's. TileError for what is none."""
        with in_source(self.source):
            own = {str(n.children[0]): span_of(n, self.file) for n in number_nodes(self.tree)}
            return {n: number(n, self.numbers[n], v, own[n]) if n in own else v for n, v in given.items()}

    def check_numbers(self, given: Iterable[str]) -> None:
        """TileError where a number that is not whole is not given: no text serves several."""
        left = [n for n, t in self.numbers.items() if not t.whole and n not in given]
        with in_source(self.source):
            if left:
                raise self._missing({n: node for n in left for node in number_nodes(self.tree) if str(node.children[0]) == n})

    def _complete(self, given: Mapping[str, Any]) -> dict[str, int | float]:
        own = {n: v for n, v in given.items() if n not in self.numbers}
        numbers = self.with_numbers({n: given[n] for n in self.numbers if n in given})
        known = whole_sizes(own, self.of_calls()) | numbers
        full = _defaults(self.tree, known, self.file)
        missing = {str(n.children[0]): n for n in size_nodes(self.tree) if full[str(n.children[0])] is None}
        if missing:
            raise self._missing(missing)
        return {n: v for n, v in full.items() if v is not None}

    def _missing(self, nodes: Mapping[str, Node]) -> TileError:
        names, one = ", ".join(f"`{name}`" for name in nodes), len(nodes) == 1
        kind = "number" if set(nodes) <= self.numbers.keys() else "size"
        what = f"the {kind} {names} has no value" if one else f"the {kind}s {names} have no values"
        examples = {n: 512 if n not in self.numbers else 2 if self.numbers[n].whole else 0.5 for n in nodes}
        give = f"give {'it' if one else 'them'}: {' '.join(f'--set {n}={v}' for n, v in examples.items())}"
        return TileError(what, span_of(next(iter(nodes.values())), self.file), help=give)


def whole_sizes(given: Mapping[str, SupportsIndex], of_calls: Container[str] = ()) -> dict[str, int]:
    """Sizes as numbers. TileError for what is none, or below 1: below 0 for sizes that each call tells."""
    for name, value in given.items():
        if not isinstance(value, SupportsIndex):
            raise TileError(f"the size {name} is a whole number, not {value!r}")
        if index(value) < (least := 0 if name in of_calls else 1):
            raise TileError(f"the size {name} has to be at least {least}, not {value}")
    return {name: index(value) for name, value in given.items()}


def _type_of_number(node: Node, file: str) -> DType:
    found = dtype_of(str(node.children[1]))
    if found is None or found.name not in NUMBERS:
        help = "a number is f32 or i32; a tensor has a shape: X: f16[M, N]"
        raise TileError(f"`{node.children[0]}: {node.children[1]}` is no number", span_of(node, file), help=help)
    return found


def load_text(text: str, file: str = "<text>") -> Template:
    """Parses a kernel. Raises TileError, with its place, where the text is not one."""
    with in_source(text):
        tree = expanded(parse(text, file), file)
        searched = frozenset(str(s.children[0]) for s in size_nodes(tree) if _left_open(s.children[2]))
        imported = tuple(sorted(imported_texts(text, file).items()))
        return Template(str(tree.children[0].children[0]), _defaults(tree, {}, file), searched, text, file, tree, imported)


def _defaults(tree: Node, given: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Every size: given, or its default in terms of the sizes before it; None where there is neither."""
    scope = Scope(file)
    out: dict[str, Any] = {}
    for node in number_nodes(tree):
        _type_of_number(node, file)
    own = len(size_nodes(tree)) - len(number_nodes(tree))
    for place, node in enumerate(size_nodes(tree)):
        name, kind, default = node.children
        if place < own and kind is not None and (str(kind) != DYN or default is not None):
            message = f"`{name}: {kind}`: a size is `{name}=512`, or `{name}: {DYN}` where each call tells it"
            raise TileError(message, span_of(kind, file))
        out[str(name)] = value = given.get(str(name), _default(default, scope, out))
        scope.define(str(name), 1 if value is None else value, span_of(name, file))
    return out


def _default(node: Node | None, scope: Scope, before: Mapping[str, int | None]) -> int | None:
    if node is None or _left_open(node) or any(before.get(str(n.children[0]), 0) is None for n in node.find_data("name")):
        return None
    expressions = Builder(scope).expressions
    divided = "/" in node.scan_values(lambda _: True)
    if isinstance(value := expressions.value(node), float) and value != value // 1 and not divided:
        message = f"a kernel's parameters are whole numbers, not {value}"
        raise TileError(message, span_of(node, scope.file), help=f"a constant stands before the kernel: let s = {value}")
    return expressions.size(node, "a size")


def _left_open(default: Node | None) -> bool:
    return default is not None and default.data == "name" and str(default.children[0]) == AUTO


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == AUTO


def _size_name(node: Node, sizes: Mapping[str, int | None]) -> str | None:
    name = str(node.children[0]) if node.data == "name" else None
    return name if name in sizes else None


def of_tensors(tree: Node) -> bool:
    """Whether a kernel says what whole tensors are: it has assignments to names alone."""
    statements = tree.children[0].children[4].children
    return bool(statements) and all(s.data == "let" or (s.data == "assign" and _plain(s.children[0])) for s in statements)


def _plain(target: Node) -> bool:
    return target.children[1] is None
