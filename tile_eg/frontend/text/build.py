"""A parse tree and its sizes as a concrete Kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from math import prod
from typing import Any

from tile_eg.errors import TileError, attempted, by_line, did_you_mean, together
from tile_eg.frontend import scalars as sc
from tile_eg.frontend.checks import statement_faults
from tile_eg.frontend.conditions import guarded
from tile_eg.frontend.element_loops import read_as, trip_by_trip
from tile_eg.frontend.element_sums import names_beside, with_element_sums
from tile_eg.frontend.guarded_rows import with_rows_that_exist
from tile_eg.frontend.guarded_stores import with_counted_stores
from tile_eg.frontend.narrow_positions import with_words
from tile_eg.frontend.nibbles import with_bytes
from tile_eg.frontend.of_calls import as_written, of_calls, wholes_of_calls
from tile_eg.frontend.text.bools import BOOL, as_stored
from tile_eg.frontend.text.expressions import Expressions
from tile_eg.frontend.text.scope import Scope, fresh
from tile_eg.frontend.text.syntax import Node, span_of
from tile_eg.frontend.text.written_out import has_own_trips
from tile_eg.frontend.trips import depth, refuse_unbounded, trips
from tile_eg.frontend.widened import widened
from tile_eg.frontend.windows import OpenWindow, close, known_shape
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.open_kernel import NoBlocks
from tile_eg.ir.seen import indexed
from tile_eg.ops.types import DTYPES, U8, DType, dtype_of


def build(tree: Node, sizes: Mapping[str, int | float], source: str, file: str) -> kn.Kernel:
    """The kernel with these sizes, every one of them given."""
    name, _, _, results, block = tree.children[0].children
    builder = Builder(Scope(file))
    numbers = {str(n.children[0]) for n in number_nodes(tree)}
    builder.empty = any(size == 0 for name, size in sizes.items() if name not in numbers)
    for size in size_nodes(tree):
        builder.scope.define(str(size.children[0]), as_written(sizes[str(size.children[0])]), builder.span(size))
    arguments = (*builder.tensors(tensor_nodes(tree), False), *builder.tensors(results.children, True))
    try:
        body = tuple(builder.statements(block))
    except NoBlocks:
        raise NoBlocks(arguments) from None
    if builder.empty and all(0 in t.shape for t in arguments if t.output):
        raise NoBlocks(arguments)
    kernel = kn.Kernel(str(name), arguments, builder.grid or (), body, source, file, numbers=of_calls(sizes),
                       wholes=wholes_of_calls(sizes))  # fmt: skip
    kernel = replace(kernel, body=with_element_sums(body, arguments, names_beside(kernel)))
    if builder.told:
        raise together(by_line((*builder.told, *statement_faults(kernel))))
    return with_bytes(with_counted_stores(with_rows_that_exist(kernel)))


def size_nodes(tree: Node) -> list[Node]:
    """Names of sizes, with what they are declared as and their defaults; then those of the numbers that a call passes."""
    return [*(s for s in tree.children[0].children[1].children if s is not None), *number_nodes(tree)]


def number_nodes(tree: Node) -> list[Node]:
    """The parameters that are numbers (`lr: f32`), as sizes of that type without a default."""
    found = [n for n in tree.children[0].children[2].children if n is not None and n.data == "number_parameter"]
    return [type(n)("size", [*n.children, None], n.meta) for n in found]


def tensor_nodes(tree: Node) -> list[Node]:
    """The parameters that are tensors."""
    return [n for n in tree.children[0].children[2].children if n is not None and n.data == "tensor"]


NO_TYPE = {
    "f64": "the vector cores have no floats of 64 bits: take f32",
    "i64": "the vector cores have no whole numbers of 64 bits: take i32",
    "u64": "the vector cores have no whole numbers of 64 bits: take u32",
    "mxfp8": "take f8e4m3, and e8m0 for the scales: scaled(a, sa) @ scaled(b, sb).T",
    "mxfp4": "take f4e2m1, and e8m0 for the scales: scaled(a, sa) @ scaled(b, sb).T", "fp4": "take f4e2m1",
    "int": "take i32", "float": "take f32", "half": "take f16",
}  # fmt: skip


class Builder:
    """Builds statements in a scope; one object serves one kernel."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.expressions = Expressions(scope)
        self.grid: tuple[tuple[str, int], ...] | None = None
        self.trips: dict[str, ix.Interval] = {}
        self.empty = False
        self.told: list[TileError] = []

    @contextmanager
    def telling(self, *names: Any) -> Iterator[None]:
        """Keeps a mistake inside, and goes on; what uses the names that would have been bound there follows from it."""
        try:
            yield
        except TileError as e:
            self.told.append(e)
            self.scope.failed.update(map(str, names))

    def span(self, node: Any) -> kn.Span:
        return span_of(node, self.scope.file)

    def tensors(self, nodes: Sequence[Node | None], output: bool) -> Iterator[kn.Tensor]:
        for node in nodes:
            if node is not None:
                with self.telling(node.children[0]):
                    yield self.tensor(node, output)

    def tensor(self, node: Node, output: bool) -> kn.Tensor:
        name, dtype, shape, joined = node.children
        dims, truth = tuple(map(self.length, shape.children)), self.of_bools(name, dtype)
        held = self.seen_as(dims, joined) if joined else ()
        tensor = kn.Tensor(str(name), self.dtype(dtype), dims, output, self.span(node), truth=truth, seen=held)
        self.scope.define(tensor.name, indexed(tensor), self.span(name))
        return tensor

    def seen_as(self, dims: tuple[int, ...], node: Node) -> tuple[int, ...]:
        """The shape that statements index. TileError where it has other numbers of elements."""
        found = tuple(map(self.length, node.children))
        if prod(found) != prod(dims):
            raise TileError(f"{list(dims)} are {prod(dims)} elements, and {list(found)} are {prod(found)}", self.span(node))
        return found

    def of_bools(self, name: Node, token: Node) -> bool:
        """Whether what is declared so holds bools, which is noted."""
        self.scope.bools |= {str(name)} if str(token) == BOOL else set()
        return str(token) == BOOL

    def dtype(self, token: Node) -> DType:
        found = U8 if str(token) == BOOL else dtype_of(str(token))
        if found is None:
            help = NO_TYPE.get(str(token)) or did_you_mean(str(token), [*DTYPES, BOOL])
            raise TileError(f"unknown element type `{token}`", self.span(token), help=help)
        return found

    def shape(self, nodes: list[Node]) -> tuple[int, ...]:
        return tuple(self.expressions.size(n, "a dimension") for n in nodes)

    def length(self, node: Node) -> int:
        """A dimension of a tensor, or an extent of the grid: 0 where a size that each call tells is 0."""
        if self.empty and self.expressions.value(node) == 0:
            return 0
        return self.expressions.size(node, "a dimension")

    def statements(self, block: Node) -> Iterator[kn.Stmt]:
        for node in block.children:
            with self.telling(*_bound(node)):
                yield from list(getattr(self, "_" + node.data)(node))

    def _grid(self, node: Node) -> Iterator[kn.Stmt]:
        if self.grid is not None:
            raise TileError("a kernel has one grid", self.span(node))
        names, extents = self.names(node.children[0]), [self.length(n) for n in node.children[1].children if n is not None]
        if 0 in extents:
            raise NoBlocks
        if len(names) != len(extents):
            many = f"{len(names)} variable{'s' * (len(names) != 1)} for {len(extents)} extent{'s' * (len(extents) != 1)}"
            raise TileError(f"the grid names {many}", self.span(node), help="grid (bx, by) = (m, n): a name for each extent")
        self.grid = tuple((str(n), e) for n, e in zip(names, extents, strict=True))
        for n in names:
            self.scope.open_variable(str(n), self.span(n))
        yield from ()

    def names(self, node: Node) -> list[Node]:
        return [n for n in node.children if n is not None]

    def extents(self, node: Node) -> list[int]:
        return [self.expressions.size(n, "an extent") for n in node.children if n is not None]

    def _shared(self, node: Node) -> Iterator[kn.Stmt]:
        for b in node.children:
            with self.telling(b.children[0]):
                yield from list(self.buffer(b, str(node.data)))

    _fragment = _shared

    def buffer(self, node: Node, scope: str) -> Iterator[kn.Stmt]:
        name, dtype, *shape, value = node.children
        span = self.span(node)
        self.of_bools(name, dtype)
        alloc = kn.Alloc(str(name), scope, self.dtype(dtype), self.shape(shape), span)
        self.scope.define(alloc.name, alloc, self.span(name))
        yield alloc
        if value is not None:
            whole = kn.Region(alloc.name, (ix.ZERO,) * len(alloc.shape), alloc.shape, self.span(name))
            yield kn.Assign(whole, self._stored(self.expressions.tile(value), whole), span)

    def _let(self, node: Node) -> Iterator[kn.Stmt]:
        name, value = node.children
        v = self.expressions.read(self.expressions.value(value))
        if not sc.is_scalar(v):
            help = "declare a buffer for a tile: shared t: f32[m, n]"
            raise TileError("`let` names a number or an index, not a tile", self.span(value), help=help)
        self.scope.define(str(name), v, self.span(name))
        yield from ()

    def _assign(self, node: Node) -> Iterator[kn.Stmt]:
        target = self.target(node.children[0], node.children[-1])
        op = str(node.children[1]) if len(node.children) == 3 else None
        value = self.expressions.tile(node.children[-1])
        if op is not None:
            value = self.expressions.computed(op.removesuffix("="), target, value, self.span(node))
        if isinstance(target, OpenWindow):
            target = target.closed(known_shape(value) or None)
        yield kn.Assign(target, self._stored(value, target, op), self.span(node))

    def _atomic(self, node: Node) -> Iterator[kn.Stmt]:
        target, op = self.target(node.children[0], node.children[2]), str(node.children[1])
        value = self.expressions.tile(node.children[2])
        if op != "+=":
            raise TileError(f"only sums are atomic, not `{op}`", self.span(node), help="atomic C[i, j] += x")
        if isinstance(target, OpenWindow):
            target = target.closed(known_shape(value) or None)
        yield kn.Assign(target, self._stored(value, target, op), self.span(node), atomic="add")

    def _stored(self, value: kn.TileExpr, target: kn.Region, op: str | None = None) -> kn.TileExpr:
        """The value of a statement, which is added where it has an operator, as its target takes it."""
        value = as_stored(value, target, op, self.scope.bools, target.span)  # type: ignore[arg-type]
        types = self.known()[0]
        return with_words(widened(close(value, target.shape), types(target.name), types), types)

    def target(self, node: Node, value: Node) -> Any:
        """What is assigned to, where the `value` is."""
        name, items = node.children
        if items is not None:
            return self.expressions.window(name, [i for i in items.children if i is not None], self.span(node))
        known = [*self.scope.arrays, *self.scope.scalars, *self.scope.failed]
        if str(name) not in known and not get_close_matches(str(name), known, 1):
            help = f"declare a buffer above its first use: shared {name}: f32[{self.dimensions(value)}]"
            self.scope.failed.add(str(name))
            raise TileError(f"unknown name `{name}`", self.span(name), help=help)
        array = self.scope.array(str(name), self.span(name))
        if self.scope.elements:
            raise TileError(f"inside an element loop `{name}` needs an index for each dimension", self.span(node))
        return kn.Region(array.name, (ix.ZERO,) * len(array.shape), array.shape, self.span(node))

    def dimensions(self, value: Node) -> str:
        """Those of a value, as text; letters where they are not known."""
        shape = attempted(lambda: known_shape(self.expressions.tile(value)))
        return ", ".join(map(str, shape)) if isinstance(shape, tuple) and shape else "m, n"

    def _loop(self, node: Node) -> Iterator[kn.Stmt]:
        name, call, block = node.children
        kind, (start, end), stages, span = self.loop_range(call)
        grid = {n: (0, e - 1) for n, e in self.grid or ()}
        extent, count = trips(start, end, 1, grid, span)
        refuse_unbounded(count, grid, span)
        first = start.value if start.value is not None else 0
        if kind == "serial" and start.value is not None and has_own_trips(str(name), extent, count, block):
            yield from self.written_out(name, range(first, first + extent), block)
            return
        var = self.scope.open_variable(str(name), self.span(name), start - first)
        self.trips[var] = first, first + extent - 1
        body = tuple(self.statements(block))
        self.scope.close_variable(str(name))
        made = kn.For(var, first, extent, kind, stages, body, self.span(node), count)
        yield from trip_by_trip(made, *self.known())

    def written_out(self, name: Node, trips: range, block: Node) -> Iterator[kn.Stmt]:
        """The statements of a loop trip by trip; of mistakes those of the first trip that has any."""
        told = len(self.told)
        for n in trips:
            scalars, places = dict(self.scope.scalars), dict(self.scope.places)
            self.scope.define(str(name), n, self.span(name))
            yield from list(self.statements(block))
            self.scope.scalars, self.scope.places = scalars, places
            if len(self.told) > told:
                return

    def loop_range(self, call: Node) -> tuple[str, tuple[Expr, Expr], int, kn.Span]:
        """kind, start and end, stages, and the place of the end of `serial(n)`, `serial(a, b)`, `pipelined(n, stages=2)`."""
        kind, args = str(call.children[0]), [a for a in call.children[1:] if a is not None]
        if kind not in ("serial", "pipelined"):
            where, instead = self.span(call), "pipelined" if "pipeline" in kind.lower() else "serial"
            help = f"for k in {instead}(...) {{ ... }}; element loops are parallel (i, j) in (BM, BN) {{ ... }}"
            raise TileError(f"a loop runs over serial(n) or pipelined(n), not `{kind}`", where, help=help)
        stages = 0
        if args and args[-1].data == "keyword":
            stages = self.stages(kind, args.pop())
        if not 1 <= len(args) <= 2:
            raise TileError(f"`{kind}` takes an extent, or a start and an end", self.span(call))
        ends = [self.bound(a) for a in args]
        return kind, (ends[0] if len(ends) > 1 else ix.ZERO, ends[-1]), stages, self.span(args[-1])

    def bound(self, node: Node) -> Expr:
        e = self.expressions.index(node)
        if e.value is not None and e.value < 0:
            raise TileError(f"the range of a loop is not below 0, as {e.value} is", self.span(node))
        return e

    def stages(self, kind: str, node: Node) -> int:
        name, value = node.children
        if name != "stages" or kind != "pipelined":
            raise TileError(f"`{kind}` has no argument called `{name}`", self.span(node), help="pipelined(n, stages=2)")
        if value.data == "several":
            raise TileError("`stages` is one number", self.span(value), help="pipelined(n, stages=2)")
        return depth(self.expressions.size(value, "stages"), self.span(value))

    def _parallel(self, node: Node) -> Iterator[kn.Stmt]:
        names, extents = self.names(node.children[0]), self.extents(node.children[1])
        if len(names) != len(extents):
            raise TileError(f"this loop names {len(names)} variables for {len(extents)} extents", self.span(node))
        if self.scope.elements:
            raise TileError("element loops do not nest", self.span(node), help="write one loop: parallel (i, j) in (m, n)")
        names_used = tuple(self.scope.open_variable(str(n), self.span(n)) for n in names)
        self.scope.elements = names_used
        try:
            body = tuple(self.element_statements(node.children[2]))
        finally:
            self.scope.elements = ()
        for n in names:
            self.scope.close_variable(str(n))
        made = kn.Parallel(names_used, tuple(extents), body, self.span(node))
        yield from read_as(made, *self.known())

    def tensor_shape(self, name: str) -> tuple[int, ...] | None:
        """The dimensions of a tensor; None for a buffer."""
        array = self.scope.arrays[name]
        return array.shape if isinstance(array, kn.Tensor) else None

    def known(self) -> tuple[Any, ...]:
        """What reading an element loop asks: element types and dimensions by name, new names, ranges of variables, and the
        dimensions of tensors."""
        arrays, taken = self.scope.arrays, self.scope.variables
        ranges = {**self.trips, **{n: (0, e - 1) for n, e in self.grid or ()}}
        return lambda n: arrays[n].dtype, lambda n: arrays[n].shape, lambda n: fresh(n, taken), ranges, self.tensor_shape

    def element_statements(self, block: Node) -> Iterator[kn.Assign]:
        for stmt in self.statements(block):
            if not isinstance(stmt, kn.Assign):
                raise TileError("an element loop holds assignments only, and branches of them", stmt.span)
            yield stmt

    def _condition(self, node: Node) -> Iterator[kn.Stmt]:
        condition, then, otherwise = node.children
        if self.scope.elements:
            yes, no = (list(self.element_statements(arm)) if arm is not None else [] for arm in (then, otherwise))
            yield from guarded(self.expressions.choice(condition), yes, no, self.span(node))
            return
        test = self.expressions.condition(condition)
        first = tuple(self.statements(then))
        second = tuple(self.statements(otherwise)) if otherwise is not None else ()
        yield kn.If(test, first, second, self.span(node))


def _bound(node: Node) -> list[Node]:
    """The names that a statement gives a meaning behind it."""
    if node.data == "let":
        return [node.children[0]]
    return [n for n in node.children[0].children if n is not None] if node.data == "grid" else []
