"""`.tile` kernels whose statements are about whole tensors: no grid, no buffers, no loops."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend import scalars as sc
from tile_eg.frontend.of_calls import OfCall, as_written, of_calls, refuse_wholes
from tile_eg.frontend.tensor import TensorKernel
from tile_eg.frontend.tensor import functions as fn
from tile_eg.frontend.tensor import values as v
from tile_eg.frontend.tensor.gathers import part
from tile_eg.frontend.tensor.values import Value
from tile_eg.frontend.text.build import Builder, number_nodes, size_nodes, tensor_nodes
from tile_eg.frontend.text.expressions import BINARY
from tile_eg.frontend.text.scope import Scope
from tile_eg.frontend.text.syntax import Node, number_of
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.open_kernel import NoBlocks
from tile_eg.ops.elementwise import COMPARE
from tile_eg.ops.types import dtype_of

NUMBERS = ("+", "-", "*", "/", "//", "%")
SIGNS = {op.sign: op.name for op in COMPARE.values()}
ROWS = {f"row{op}": (op, -1) for op in ("max", "min", "sum")} | {f"col{op}": (op, -2) for op in ("max", "min", "sum")}


def tensor_kernel(tree: Node, sizes: Mapping[str, int | float], source: str, file: str) -> TensorKernel:
    """The kernel at these sizes, every one of them given."""
    refuse_wholes(sizes)
    name, _, _, results, block = tree.children[0].children
    numbers = {str(n.children[0]) for n in number_nodes(tree)}
    reader = Reader(Scope(file), [size for name, size in sizes.items() if name not in numbers])
    for size in size_nodes(tree):
        reader.scope.define(str(size.children[0]), as_written(sizes[str(size.children[0])]), reader.builder.span(size))
    arguments = [reader.builder.tensor(t, False) for t in tensor_nodes(tree)]
    returned = [reader.builder.tensor(t, True) for t in results.children if t is not None]
    for t in arguments:
        reader.values[t.name] = v.argument(t)
    if any(0 in t.shape for t in returned):
        raise NoBlocks((*arguments, *returned))
    for s in block.children:
        reader.statement(s)
    for t in returned:
        if t.name not in reader.values:
            raise TileError(f"nothing is written to the output `{t.name}`", t.span)
    outputs = {t.name: reader.values[t.name] for t in returned}
    return TensorKernel(str(name), (*arguments, *returned), outputs, source, file, of_calls(sizes))


class Reader:
    """Reads expressions: to a number of sizes where it can, else to a value."""

    def __init__(self, scope: Scope, sizes: Collection[float]) -> None:
        self.scope = scope
        self.builder = Builder(scope)
        self.builder.empty = 0 in sizes
        self.values: dict[str, Value] = {}

    def span(self, node: Any) -> Any:
        return self.builder.span(node)

    def statement(self, node: Node) -> None:
        target = node.children[0]
        name = target if node.data == "let" else target.children[0]
        found = self.read(node.children[-1])
        if node.data == "assign" and len(node.children) == 3:
            sign = str(node.children[1])
            found = self._binary_of(sign.removesuffix("="), self.read_name(name), found, node)
        self.define(str(name), found, self.span(name))

    def define(self, name: str, found: Any, span: Any) -> None:
        array = self.scope.arrays.get(name)
        if isinstance(array, Tensor) and not array.output:
            raise TileError(f"`{name}` is an input and cannot be written", span, notes=(("it is declared here", array.span),))
        if not isinstance(found, Value) and array is None:
            self.values.pop(name, None)
            self.scope.scalars.pop(name, None)
            self.scope.define(name, found, span)
            return
        if name in self.scope.scalars or name in sc.CONSTANTS:
            raise TileError(f"`{name}` is a number, not a tensor", span, help="give the value another name")
        self.values[name] = self.value_of(found, span)

    def value_of(self, x: Any, span: Any) -> Value:
        if isinstance(x, Expr):
            x = sc.as_size(x, "a number", span)
        if isinstance(x, OfCall):
            return v.number(x.written, span)
        return x if isinstance(x, Value) else v.number(x if isinstance(x, int) else float(x), span)

    def value(self, node: Node) -> Value:
        return self.value_of(self.read(node), self.span(node))

    def read(self, node: Node) -> Any:
        return getattr(self, "_" + node.data)(node)

    def integer(self, node: Node, what: str) -> int:
        found = self.read(node)
        if isinstance(found, Value):
            raise TileError(f"{what} is a whole number, not {found}", self.span(node))
        return found if isinstance(found, int) else sc.as_size(found, what, self.span(node))

    def _number(self, node: Node) -> Any:
        return number_of(node)

    def _name(self, node: Node) -> Any:
        return self.read_name(node.children[0])

    def read_name(self, token: Any) -> Any:
        name = str(token)
        if name in self.values:
            return self.values[name]
        if name in self.scope.scalars:
            return self.scope.scalars[name]
        if name in sc.CONSTANTS:
            return sc.CONSTANTS[name]
        if name in self.scope.arrays:
            raise TileError(f"`{name}` is read before it is written", self.span(token))
        error = self.scope.unknown(name, self.span(token))
        raise error

    def _negate(self, node: Node) -> Any:
        x = self.read(node.children[-1])
        return v.unary("neg", x, self.span(node)) if isinstance(x, Value) else -x

    def _inverted(self, node: Node) -> Any:
        return v.unary("not", self.value(node.children[-1]), self.span(node))

    def _opposite(self, node: Node) -> Any:
        return v.unary("not", self.value(node.children[0]), self.span(node))

    def _both(self, node: Node) -> Any:
        return self._joined("and", node)

    def _either(self, node: Node) -> Any:
        return self._joined("or", node)

    def _joined(self, op: str, node: Node) -> Value:
        left, right = map(self.value, node.children)
        return v.binary(op, left, right, self.span(node))

    def _binary(self, node: Node) -> Any:
        left, op, right = node.children
        return self._binary_of(str(op), self.read(left), self.read(right), node)

    def _binary_of(self, sign: str, x: Any, y: Any, node: Node) -> Any:
        span = self.span(node)
        if not isinstance(x, Value) and not isinstance(y, Value):
            return self._number_of(sign, x, y, span)
        a, b = self.value_of(x, span), self.value_of(y, span)
        if sign == "@":
            return v.matmul(a, b, span)
        if sign in ("//", "%"):
            return v.quotient(sign, a, b, span)
        if sign not in BINARY:
            raise TileError(f"`{sign}` works on sizes, not on tensors", span)
        return v.binary(BINARY[sign], a, b, span)

    def _number_of(self, sign: str, x: Any, y: Any, span: Span) -> Any:
        """Arithmetic of numbers."""
        if sign in NUMBERS:
            return sc.arithmetic(sign, x, y, span)
        if sign != "**":
            raise TileError(f"`{sign}` is not an operator of numbers", span)
        try:
            found = x**y
        except ArithmeticError:
            found = None
        if not isinstance(found, int | float):
            raise TileError(f"{x} ** {y} is not a number", span)
        return found

    def _compare(self, node: Node) -> Any:
        left, op, right = node.children
        return v.compare(SIGNS[str(op)], self.value(left), self.value(right), self.span(node))

    def _attribute(self, node: Node) -> Any:
        name = str(node.children[1])
        if name not in ("T", "mT"):
            raise TileError(f"there is no `.{name}`", self.span(node.children[1]), help="x.T and x.mT are transposes")
        return fn.turned(self.value(node.children[0]), name, self.span(node))

    def _call(self, node: Node) -> Any:
        name, span = str(node.children[0]), self.span(node)
        given = [a for a in node.children[1:] if a is not None]
        options = {str(a.children[0]): self.option(a) for a in given if a.data == "keyword"}
        args = [self.read(a) for a in given if a.data != "keyword"]
        if name == "arange":
            if len(args) != 1 or options:
                raise TileError("`arange` takes the number of positions: arange(S)", span)
            return v.arange(self.integer(given[0], "a number of positions"), span)
        if args and not options and not any(isinstance(a, Value) for a in args) and name in sc.FUNCTIONS:
            return sc.call(name, args, span)
        if (dtype := dtype_of(name)) is not None:
            if len(args) != 1:
                raise TileError(f"`{name}` takes one argument, not {len(args)}", span)
            return v.cast(dtype, self.value_of(args[0], span), span)
        if name in ROWS and len(args) == 1:
            op, axis = ROWS[name]
            return v.reduce(op, self.value_of(args[0], span), axis, False, span)
        whole = fn.values_among(name, len(args))
        values = [self.value_of(a, span) if n < whole else self._axis(name, a, span) for n, a in enumerate(args)]
        found = fn.call(name, values, options, span)
        if isinstance(found, tuple):
            raise TileError(f"`{name}` gives several values: a name has one", span, help="take each by a slice: x[:, 0:8]")
        return found

    @staticmethod
    def _axis(name: str, x: Any, span: Span) -> int:
        if not isinstance(x, int):
            raise TileError(f"`{name}` takes whole numbers behind its first argument, not {x}", span)
        return x

    def option(self, node: Node) -> int | tuple[int, ...] | Value:
        name, given = node.children
        if str(name) in fn.VALUES:
            return self.value(given)
        if given.data == "several":
            return tuple(self.integer(n, f"`{name}`") for n in given.children if n is not None)
        return self.integer(given, f"`{name}`")

    def _index(self, node: Node) -> Any:
        base, items = node.children[0], [i for i in node.children[1].children if i is not None]
        x = self.value(base)
        return part(x, [self.item(i) for i in items], self.span(node))

    def item(self, node: Node) -> v.Item | Value:
        if node.data == "new_axis":
            return v.NEW_AXIS
        if node.data != "slice":
            found = self.read(node)
            return found if isinstance(found, int | Value) else sc.as_size(found, "an index of a tensor", self.span(node))
        return v.Slice(*(None if n is None else self.integer(n, "an end or a step of a slice") for n in node.children))

    def _several(self, node: Node) -> Any:
        raise TileError("several numbers are axes, and here one value is taken", self.span(node))

    def _new_axis(self, node: Node) -> Any:
        raise TileError("None stands for a new axis, v[:, None], and nowhere else", self.span(node))
