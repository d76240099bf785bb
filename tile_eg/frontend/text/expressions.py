"""Expressions of `.tile` text: scalars are computed, the rest becomes tile expressions of the kernel tree."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tile_eg.errors import TileError, attempted, did_you_mean
from tile_eg.frontend import scalars as sc
from tile_eg.frontend.conditions import NAMES, Compared, Condition, both, chosen, either, of_elements, opposite
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.made_words import MADE
from tile_eg.frontend.of_calls import OfCall, as_of_call
from tile_eg.frontend.scalars import Scalar, is_scalar
from tile_eg.frontend.text.bools import as_condition
from tile_eg.frontend.text.scope import Scope
from tile_eg.frontend.text.syntax import Node, number_of, span_of
from tile_eg.frontend.whole_quotients import AS_C, divided
from tile_eg.frontend.windows import OpenWindow, known_shape, length, may_vary
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in, element
from tile_eg.ops import elementwise
from tile_eg.ops.types import DTYPES, E8M0, F16, INDICES, dtype_of
from tile_eg.ops.whole_tiles import WHOLE_TILES

UNARY = {word: op.name for op in elementwise.UNARY.values() for word in op.tile}
REDUCTIONS = {f"{side}{op}": (op, axis) for side, axis in (("row", 1), ("col", 0)) for op in elementwise.REDUCE}
BINARY = {op.sign: op.name for op in elementwise.BINARY.values() if op.sign}
JOINED = {"&": both, "|": either}
"""How conditions of elements are joined, as NumPy has it."""
PAIRS = {AS_C, *(op.name for op in elementwise.BINARY.values() if not op.sign)}
FUNCTIONS = sorted({*UNARY, *MADE, *PAIRS, *REDUCTIONS, *sc.FUNCTIONS, "sum", "select", "isnan", "bits", "pack", "pad", "nibbles"}
                   | {"scaled", "topk", *WHOLE_TILES, *DTYPES} - {E8M0.name})  # fmt: skip

INSTEAD = {
    "where": "select(condition, x, y)", "mean": "rowsum(x) / n",
    "softmax": "exp(x - rowmax(x)[:, None]), and divide by its rowsum",
    "load": "X[i, j], where the tile begins", "square": "x * x", "pow": "x ** y", "power": "x ** y", "dot": "a @ b",
    "matmul": "a @ b", "float": "f32(x)", "int": "i32(x)", "range": "for k in serial(n) { ... }", "maximum": "max(x, y)",
    "minimum": "min(x, y)", "cast": "f32(x), f16(x), ...", "zeros": "0, which fills a buffer",
    "clamp": "min(max(x, low), high)", "amax": "rowmax(x)", "amin": "rowmin(x)",
    "var": "rowsum(x * x) / n, where x is less its mean", "concat": "two stores, or two parts of a buffer: y[:, 0:n] = x",
    "len": "its size, which the kernel's sizes tell",
    **dict.fromkeys(("rowmean", "rowavg", "avg"), "rowsum(x) / n"), "colmean": "colsum(x) / n",
    **dict.fromkeys(("rowvar", "std", "rowstd"), "rowsum(x * x) / n, where x is less its mean"),
    **dict.fromkeys(("rowabsmax", "absmax"), "rowmax(abs(x))"), "norm": "sqrt(rowsum(x * x))",
    "logsumexp": "m + log(rowsum(exp(x - m[:, None]))), where m is rowmax(x)",
    **dict.fromkeys(("rowprod", "prod"), "the last column of cumprod(x): y[i] = c[i, n - 1] in an element loop"),
    "any": "rowmax(select(x > 0, 1, 0))", "all": "rowmin(select(x > 0, 1, 0))", "fma": "x * y + z", "arctan2": "atan2(y, x)",
    "neg": "-x", "swish": "x * sigmoid(x)", "elu": "select(x > 0, x, exp(x) - 1)", "lerp": "x + (y - x) * t",
    "gelu_tanh": "x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))",
    **dict.fromkeys(("broadcast", "expand", "broadcast_to"), "v[:, None] for one value a row, v[None, :] for one a column"),
    "flip": "y[i, j] = x[i, n - 1 - j] in an element loop", "roll": "y[i, j] = x[i, (j + 1) % n] in an element loop",
    "triu": "select(i <= j, x[i, j], 0) in an element loop", "tril": "select(i >= j, x[i, j], 0) in an element loop",
    "full": "the number, which fills a buffer", "ones": "1, which fills a buffer", "empty": "shared x: f32[m, n]",
}  # fmt: skip
"""What to write in place of functions of other languages."""


@dataclass
class Expressions:
    """Evaluates expression trees in a scope: to an int, a float or an index Expr where it can, else to a tile expression."""

    scope: Scope
    numbers: bool = False
    """Whether what is read now may be a number of elements, where an index divides and multiplies as numbers do."""
    found: dict[tuple[int, bool], Any] | None = None
    """What was read of an expression so far: operands are looked at twice, and without this theirs four times, and so on."""

    def span(self, node: Any) -> kn.Span:
        return span_of(node, self.scope.file)

    def value(self, node: Node) -> Any:
        """A Scalar or a TileExpr, in which windows may still be open."""
        if node.data == "new_axis":
            raise TileError("None stands for a new axis of a vector, v[:, None], and nowhere else", self.span(node))
        if self.found is not None:
            return self._once(node, self.found)
        self.found = {}
        try:
            return self._once(node, self.found)
        finally:
            self.found = None

    def _once(self, node: Node, found: dict[tuple[int, bool], Any]) -> Any:
        key = id(node), self.numbers
        if key not in found:
            found[key] = getattr(self, "_" + node.data)(node)
        return found[key]

    def index(self, node: Node) -> Expr:
        """An expression that stands where an index does."""
        outside, self.numbers = self.numbers, False
        found = sc.as_index(self.read(self.value(node)), self.span(node))
        self.numbers = outside
        return found

    def read(self, value: Any) -> Any:
        """One element of i32 as an index; any other value as it is."""
        starts = getattr(value, "starts", ())
        array = value.tensor if isinstance(value, OpenWindow) else self.scope.array(value.name, value.span) if starts else None
        if array is None or array.dtype not in INDICES or any(getattr(value, "extents", ())):
            return value
        return element(array.name, array.shape, starts)

    def size(self, node: Node, what: str) -> int:
        return sc.as_size(self.value(node), what, self.span(node))

    def tile(self, node: Node) -> kn.TileExpr:
        """An expression that stands where a tile does: a number becomes a Number; windows may still be open."""
        outside, self.numbers = self.numbers, True
        v = self.value(node)
        self.numbers = outside
        if of_elements(v):
            return chosen(v, kn.Number(1.0, self.span(node)), kn.Number(0.0, self.span(node)), self.span(node))
        if isinstance(v := as_of_call(v), Expr):
            return kn.Index(v, self.span(node))
        if isinstance(v, OfCall):
            return kn.Number(v.written, self.span(node))
        return kn.Number(float(v), self.span(node)) if isinstance(v, int | float) else v

    def condition(self, node: Node) -> Expr:
        """A condition over grid and loop variables, as an index expression that is 0 or 1."""
        found = self.value(node)
        if of_elements(found):
            help = "choose element by element: x = select(a > b, x, y)"
            raise TileError("a branch cannot depend on the elements of a tile", self.span(node), help=help)
        return sc.as_index(found, self.span(node))

    def choice(self, node: Node) -> Condition:
        """A condition over indices or over elements."""
        found = self.truth(self.value(node))
        if not (of_elements(found) or isinstance(found, Expr) or is_scalar(found)):
            what, help = "a choice goes by a condition, and this is a tile of numbers", "compare: select(x != 0, y, z)"
            raise TileError(what, self.span(node), help=help)
        return found if of_elements(found) else sc.as_index(found, self.span(node))

    def truth(self, value: Any) -> Any:
        """Elements of bools as a condition; anything else as it is."""
        return as_condition(value, self.scope.bools)

    def _number(self, node: Node) -> Scalar:
        return number_of(node)

    def _name(self, node: Node) -> Any:
        name, span = str(node.children[0]), self.span(node)
        if name in self.scope.scalars:
            return self.scope.scalars[name]
        if name in sc.CONSTANTS:
            return sc.CONSTANTS[name]
        array = self.scope.array(name, span)
        if self.scope.elements:
            raise TileError(f"inside an element loop `{name}` needs an index for each dimension", span)
        return _whole(array, span)

    def _negate(self, node: Node) -> Any:
        x = self.value(node.children[-1])
        if isinstance(x, OfCall):
            return -x
        if is_scalar(x):
            return sc.arithmetic("-", 0, x, self.span(node)) if x != 0 or isinstance(x, int) else -x
        return kn.Unary("neg", x, self.span(node))

    def _inverted(self, node: Node) -> kn.TileExpr | Condition:
        if of_elements(x := self.truth(self.value(node.children[-1]))):
            return opposite(x, self.span(node))
        if is_scalar(x):
            raise TileError("`~` turns the bits of tiles, not of numbers", self.span(node))
        return kn.Unary("not", self.tile(node.children[-1]), self.span(node))

    def _binary(self, node: Node) -> Any:
        left, op, right = node.children
        if op == "@":
            return self._product(left, right, self.span(node))
        x, y = self.value(left), self.value(right)
        if not self.numbers and op in sc.OF_INDICES:
            x, y = self.read(x), self.read(y)
        if op in JOINED and of_elements(a := self.truth(x)) and of_elements(b := self.truth(y)):
            return JOINED[op](a, b, self.span(node))
        if is_scalar(x) and is_scalar(y) and self.numbers and sc.leaves_integers(str(op), x, y):
            x, y = as_of_call(x), as_of_call(y)
        if is_scalar(x) and is_scalar(y) and not (self.numbers and sc.leaves_integers(str(op), x, y)):
            return sc.arithmetic(str(op), x, y, self.span(node))
        return self.computed(str(op), self.tile(left), self.tile(right), self.span(node))

    def computed(self, sign: str, x: kn.TileExpr, y: kn.TileExpr, span: kn.Span) -> kn.TileExpr:
        """What an operator makes of two tiles."""
        if op := BINARY.get(sign, sign if sign in elementwise.BINARY else ""):
            return kn.Binary(op, x, y, span)
        return divided(sign, x, y, lambda name: self.scope.arrays[name].dtype, span)

    def _product(self, left: Node, right: Node, span: kn.Span) -> kn.MatMul:
        (a, ta), (b, tb) = self._operand(left), self._operand(right)
        return kn.MatMul(a, b, ta, tb, span)

    def _operand(self, node: Node) -> tuple[kn.TileExpr, bool]:
        if node.data == "attribute" and node.children[1] == "T":
            return self.tile(node.children[0]), True
        return self.tile(node), False

    def _attribute(self, node: Node) -> kn.TileExpr:
        if node.children[1] == "T":
            return self._transposed(node)
        raise TileError(f"there is no `.{node.children[1]}`", self.span(node.children[1]), help="a transposed operand is a.T")

    def _transposed(self, node: Node) -> kn.Whole:
        """`x.T` where no product takes it as it is."""
        if self.scope.elements:
            help = "read the element that is meant: y[i, j] = x[j, i]"
            raise TileError("an element loop takes elements, and `.T` is of a tile", self.span(node), help=help)
        x = self.tile(node.children[0])
        if isinstance(x, OpenWindow) or len(known_shape(x) or ()) != 2:
            help = "load it into a buffer first: a = A[i, j], then a.T"
            raise TileError("only a tile of two dimensions is transposed as a value", self.span(node), help=help)
        return kn.Whole("transpose", (x,), (0, 0), self.span(node))

    def _compare(self, node: Node) -> Condition:
        left, op, right = node.children
        if all(sc.is_scalar(self.value(side)) for side in (left, right)) or self._of_positions(left, right):
            return sc.COMPARE[str(op)](self.index(left), self.index(right))
        return Compared(NAMES[str(op)], self.tile(left), self.tile(right), self.span(node))

    def _of_positions(self, *sides: Node) -> bool:
        """Whether an element's place is compared with numbers that are read from inputs, the same ones for all elements."""
        loop, outside = set(self.scope.elements), self.numbers
        self.numbers = False
        found = attempted(lambda: [e for e in (self.read(self.value(side)) for side in sides) if not isinstance(e, int)])
        self.numbers = outside
        if isinstance(found, TileError):  # no indices, as they divide
            return False
        if not all(isinstance(e, Expr) for e in found) or not any(ix.variables(e) & loop for e in found):
            return False
        reads = {r for e in found for r in all_elements_in(e)}
        read = [self.scope.arrays[r.args[0]] for r in reads if r.args[0] in self.scope.arrays]  # the others are numbers of a call
        return all(isinstance(a, kn.Tensor) and not a.output for a in read) and not any(ix.variables(r) & loop for r in reads)

    def _both(self, node: Node) -> Condition:
        left, right = node.children
        return both(self.choice(left), self.choice(right), self.span(node))

    def _either(self, node: Node) -> Condition:
        left, right = node.children
        return either(self.choice(left), self.choice(right), self.span(node))

    def _opposite(self, node: Node) -> Condition:
        return opposite(self.choice(node.children[0]), self.span(node))

    def _call(self, node: Node) -> Any:
        name, args, span = str(node.children[0]), [a for a in node.children[1:] if a is not None], self.span(node)
        if name in INSTEAD and name not in FUNCTIONS:
            raise TileError(f"unknown function `{name}`", span, help=f"write {INSTEAD[name]}")
        for a in args:
            if a.data == "keyword":
                help = f"row{name}(x) is a number a row, col{name}(x) a number a column" if f"row{name}" in REDUCTIONS else ""
                raise TileError(f"`{name}` has no argument called `{a.children[0]}`", self.span(a), help=help)
        if name == "select":
            return self._select(args, span)
        if name == "pack":
            return kn.Pack(self.tile(_one(name, args, span)), span)
        if name == "scaled":
            return self._scaled(args, span)
        if name == "nibbles":
            return kn.Bytes(F16, self.tile(_one(name, args, span)), span)
        if name == "pad":
            return self._padded(args, span)
        if name == "bits":
            return Compared(kn.BIT, self.tile(_one(name, args, span)), kn.Number(0.0, span), span)
        if name == "isnan":
            x = self.tile(_one(name, args, span))
            return Compared("ne", x, x, span)
        if name in WHOLE_TILES or name == "topk":
            return self._whole(name, args, span)
        if (dtype := dtype_of(name)) is not None:
            return kn.Cast(dtype, self.tile(_one(name, args, span)), span)
        values = [self.value(a) if self.numbers else self.read(self.value(a)) for a in args]
        of_call = any(isinstance(v, OfCall) for v in values)
        if name in sc.FUNCTIONS and values and all(map(is_scalar, values)) and not of_call:
            return sc.call(name, values, span)
        return self._tile_call(name, args, span)

    def _scaled(self, args: list[Node], span: kn.Span) -> kn.Scaled:
        """scaled(a, s): an operand of a product, with a scale for each 32 elements of a row."""
        if len(args) != 2:
            raise TileError("`scaled` takes a tile and its scales: scaled(a, s)", span)
        return kn.Scaled(self.tile(args[0]), self.tile(args[1]), span=span)

    def _padded(self, args: list[Node], span: kn.Span) -> kn.Pad:
        """pad(A[i, j], 0): a number in the place of what lies beyond the end of the tensor."""
        value = self.value(args[1]) if len(args) == 2 else None
        if isinstance(value, Expr):
            value = value.value
        if not isinstance(value, int | float):
            raise TileError("`pad` takes a window of a tensor and a number: pad(A[i, j], 0)", span)
        return kn.Pad(self.value(args[0]), float(value), span)

    def _whole(self, name: str, args: list[Node], span: kn.Span) -> kn.TileExpr:
        """An operation on whole tiles; numbers that are left out are those for all of them. topk(x, k) is sort(x, n, k)."""
        entry = WHOLE_TILES["sort" if name == "topk" else name]
        xs = tuple(self.tile(a) for a in args[: entry.operands])
        shapes = tuple(known_shape(x) for x in xs)
        numbers = [self.index(a).value for a in args[entry.operands :]]
        names = ("k",) if name == "topk" else entry.numbers
        if len(xs) < entry.operands or len(numbers) > len(names) or None in numbers or None in shapes:
            raise TileError(f"`{name}` takes {entry.operands} tiles by name, then numbers: {', '.join(names)}", span)
        given = [prod(shapes[0] or ()), *numbers] if name == "topk" else numbers
        full = entry.default(tuple(s or () for s in shapes))
        first, second = (given[n] if n < len(given) else full[n] for n in (0, 1))
        return kn.Whole(entry.name, xs, (first, second), span)  # type: ignore[arg-type]

    def _tile_call(self, name: str, args: list[Node], span: kn.Span) -> kn.TileExpr:
        if name in UNARY:
            return kn.Unary(UNARY[name], self.tile(_one(name, args, span)), span)
        if name in MADE:
            return MADE[name](self.tile(_one(name, args, span)), span)
        if name in REDUCTIONS:
            op, axis = REDUCTIONS[name]
            return kn.Reduce(op, self.tile(_one(name, args, span)), axis, span)
        if name in PAIRS and (len(args) == 2 or name not in ("max", "min")):
            if len(args) != 2:
                raise TileError(f"`{name}` takes two arguments, not {len(args)}", span)
            return self.computed(name, self.tile(args[0]), self.tile(args[1]), span)
        if name in ("max", "min") and len(args) > 2:
            raise TileError(f"`{name}` takes two values, not {len(args)}", span, help=f"{name}({name}(x, y), z)")
        if name in ("max", "min", "sum"):
            return kn.Reduce(name, self.tile(_one(name, args, span)), 1, span)
        if name in sc.FUNCTIONS:
            raise TileError(f"`{name}` works on sizes and indices, not on tiles", span)
        raise TileError(f"unknown function `{name}`", span, help=did_you_mean(name, FUNCTIONS))

    def _select(self, args: list[Node], span: kn.Span) -> kn.TileExpr:
        if len(args) != 3:
            raise TileError("`select` takes a condition and two tiles: select(k == 0, x, y)", span)
        return chosen(self.choice(args[0]), self.tile(args[1]), self.tile(args[2]), span)

    def _index(self, node: Node) -> Any:
        base, items = node.children[0], [i for i in node.children[1].children if i is not None]
        new = [n for n, i in enumerate(items) if i.data == "new_axis"]
        if new:
            return self._broadcast(base, items, new, self.span(node))
        if base.data != "name":
            raise TileError("only buffers and tensors have indices", self.span(node), help="name the value first")
        return self.window(base.children[0], items, self.span(node))

    def _broadcast(self, base: Node, items: list[Node], new: list[int], span: kn.Span) -> kn.Broadcast:
        rest = [i for i in items if i.data != "new_axis"]
        if len(new) != 1 or len(rest) != 1:
            raise TileError("a vector becomes a tile as v[:, None] (one value a row) or v[None, :] (one value a column)", span)
        plain = rest[0].data == "slice" and not any(rest[0].children)
        x = self.tile(base) if plain else self.window(base.children[0], rest, span)
        return kn.Broadcast(x, new[0], span)

    def window(self, name: Node, items: list[Node], span: kn.Span) -> Any:
        """A tensor or buffer with indices. A tensor with plain indices only gives a start: an open window."""
        array = self.scope.array(str(name), self.span(name))
        if len(items) != len(array.shape):
            n = len(array.shape)
            help = f"an index or a slice for each: {array.name}[{', '.join('ijklmn'[:n])}]"
            raise TileError(f"`{array.name}` has {n} dimension{'s' * (n > 1)}, not {len(items)}", span, help=help)
        found = [self._item(i, size, isinstance(array, kn.Tensor)) for i, size in zip(items, array.shape, strict=True)]
        starts, lengths = tuple(start for start, _ in found), [length for _, length in found]
        extents = tuple(None if length is None else length.value for length in lengths)
        counts = tuple(length if length is not None and length.value is None else None for length in lengths)
        if isinstance(array, kn.Tensor) and not self.scope.elements and (any(counts) or not any(extents)):
            return OpenWindow(array, starts, extents, counts, span)
        return kn.Region(array.name, starts, extents, span)

    def _item(self, item: Node, size: int, tensor: bool) -> tuple[Expr, Expr | None]:
        """Where an index or a slice begins, and the slice's length."""
        if item.data != "slice":
            return self.index(item), None
        if self.scope.elements:
            help = "x[i, j]; what is made of a row stands outside of the loop: v = rowsum(x)"
            raise TileError("an element loop takes one element at a time, not a slice", self.span(item), help=help)
        if item.children[2] is not None:
            help = "take the elements one by one: parallel (i, j) in (m, n) { y[i, j] = x[i, 2*j] }"
            raise TileError("a slice of a tile has no step", self.span(item.children[2]), help=help)
        low = self.index(item.children[0]) if item.children[0] is not None else ix.ZERO
        high = self.index(item.children[1]) if item.children[1] is not None else ix.const(size)
        extent = length(low, high)
        if extent.value is not None and extent.value < 1:
            raise TileError(f"this slice is empty: its length is {extent.value}", self.span(item))
        if extent.value is None and not (tensor and may_vary(extent)):
            help = "write it as i:i + 64, or i:min(i + 64, n) where it may end before"
            raise TileError(f"the length of this slice varies: {index_text(extent)}", self.span(item), help=help)
        return low, extent


def _whole(array: kn.Tensor | kn.Alloc, span: kn.Span) -> kn.Region:
    return kn.Region(array.name, (ix.ZERO,) * len(array.shape), array.shape, span)


def _one(name: str, args: list[Node], span: kn.Span) -> Node:
    if len(args) != 1:
        help = "rowsum(x) is of each row, colsum(x) of each column, and so with max and min" if name in REDUCTIONS else ""
        raise TileError(f"`{name}` takes one argument, not {len(args)}", span, help=help)
    return args[0]
