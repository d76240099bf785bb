"""The state of reading one kernel: the names in sight, the statements so far, and the names taken."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tile_eg.errors import FollowUp, Note, NotSearched, Span, TileError
from tile_eg.frontend.bools import check_stored
from tile_eg.frontend.liveness import Liveness
from tile_eg.frontend.narrow_positions import with_words
from tile_eg.frontend.python.columns import spread
from tile_eg.frontend.python.first_elements import FirstElements
from tile_eg.frontend.python.plain_lists import Held, copied, seen
from tile_eg.frontend.python.source import Source
from tile_eg.frontend.python.tile_order import Order
from tile_eg.frontend.python.values import Buffer, FirstValue, NewBuffer, Slice, Window, nodes, reads, region
from tile_eg.frontend.python.views import is_view
from tile_eg.frontend.python.written_size import check_value
from tile_eg.frontend.widened import widened
from tile_eg.ir.index import ZERO, Expr, Interval, text
from tile_eg.ir.index_elements import element
from tile_eg.ir.kernel import Alloc, Assign, Cast, Index, MatMul, Number, Pack, Region, Stmt, TileExpr, mapped
from tile_eg.language.symbols import at_sizes
from tile_eg.ops.records import record
from tile_eg.ops.types import F32, I8, INDICES, U32, DType


@record
class Stale:
    """A name whose value was read from a buffer that has been written since; `kept` holds one element as it was."""

    buffer: str
    kept: Window | None = None


class Leave(Exception):
    """Leaves a trip of a loop that is read trip by trip (`again`), or the loop."""

    def __init__(self, again: bool) -> None:
        super().__init__()
        self.again = again


class Failed:
    """What a name stands for that a wrong statement would have bound."""


class ReadAgain(TileError):
    """No mistake: the kernel has to be read once more, with what is known now."""


class Builder(ABC):
    """Collects a kernel's statements.

    `local` holds the names that the kernel binds, `names` those around it (closure, globals), `outer` the bindings from
    outside of the current loop or branch, which it may not change. A name may stand for a tile expression, which is read
    where the name is used: `writes` (every buffer written so far) and `uses` (such names used inside of loops) tell where
    that would not be the value that the author bound. `masks` are the tiles that stand for buffers of bits, `bits` those
    that hold bits now, `homes` the statements among which each buffer is declared. `sizes` are those of a call, for the symbols
    of a kernel of any size; None leaves symbols as they are. `along` are the variables of the element loop. `may_leave`: a
    loop that is read trip by trip may end here. `scalars` are numbers of a name that no buffer has, and whether they are whole.
    """

    handlers: Mapping[str, Callable[..., Any]] | None = None
    """What the words mean, where that is not their sequential meaning (`frontend.python.words.HANDLERS`)."""
    counts_what_is_read = False
    """Whether a loop may run as often as an element says that is read."""

    def __init__(self, source: Source, names: Mapping[str, Any], sizes: Mapping[str, int] | None = None) -> None:
        self.source, self.names, self.sizes = source, names, sizes
        self.local: dict[str, Any] = {}
        self.outer: dict[str, Any] = {}
        self.statements: list[Stmt] = []
        self.taken: set[str] = set()
        self.writes: list[str] = []
        self.uses: list[tuple[str, set[str], Span]] = []
        self.in_parallel = False
        self.along: tuple[str, ...] = ()
        self.in_index = False
        self.grid: dict[str, Interval] = {}
        self.trips: dict[str, Interval] = {}
        self.left: list[tuple[str, Span, str]] = []
        self.orders: list[Order] = []
        self.variables: set[str] = set()
        self.once = False
        self.half: Expr | None = None
        self.half_used: Span | None = None
        self.has_product = False
        self.notes: list[Note] = []
        self.columns: set[str] = set()
        self.bools: set[str] = set()
        self.masks: dict[str, Buffer] = {}
        self.bits: set[str] = set()
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.too_long: NotSearched | None = None
        self.types: dict[str, DType] = {}
        self.lists: Held = {}
        self.copies: dict[int, tuple[str, Any, Any]] = {}
        self.depth = 0
        self.scalars: dict[str, bool] = {}
        self.homes: dict[str, list[Stmt]] = {}
        self.first_elements = FirstElements()
        self.may_leave = False
        self.kept: dict[str, tuple[Any, Window]] = {}
        self.unused: set[str] = set()
        self.told: list[TileError] = []
        self.most: int | None = None
        self.ended: set[str] = set()

    def renew_grid(self, grid: dict[str, Interval], span: Span, word: str) -> None:
        """Other variables for the blocks; those of before have no use beside them."""
        self.left += [(name, span, word) for name in self.grid]
        self.grid = grid

    @property
    def blocks(self) -> dict[str, Interval]:
        """What is known of a block when it starts: its index, and the tile that another order gives it."""
        return {**self.grid, **{o.name: (0, o.bands.tiles - 1) for o in self.orders if text(o.at) in self.grid}}

    def plain(self) -> list[Stmt]:
        """The statements without what only orders them."""
        return self.statements

    def span(self, node: ast.AST) -> Span:
        return self.source.span(node)

    def error(self, message: str, node: ast.AST, help: str = "") -> TileError:
        return TileError(message, self.span(node), help=help)

    def tell(self, error: TileError, node: ast.AST) -> None:
        """Keeps a mistake, and goes on: what uses the names that the statement would have bound follows from it."""
        self.told.append(error)
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.local.update({n: Failed() for n in (*names, *([node.arg] if isinstance(node, ast.arg) else ()))})

    def from_outside(self, name: str, value: Any) -> Any:
        """A value that stands outside of the kernel; of a list, the copy that this reading of the kernel may change."""
        if type(value) not in (list, dict, set):
            return value
        if id(value) not in self.copies:
            self.copies[id(value)] = name, value, copied(value)
            if self.depth:
                self.lists = {**self.lists, **seen({name: self.copies[id(value)][2]})}
        return self.copies[id(value)][2]

    def at_call(self, value: Any) -> Any:
        """A value of plain Python with the sizes of the call in it."""
        if self.sizes is None:
            return value
        try:
            return at_sizes(value, self.sizes)
        except KeyError as e:
            name = e.args[0]
            help = f"let a dimension of a tensor be {name}"
            raise TileError(f"{name}: the shape of no tensor has this size, so that no call tells it", help=help) from None

    def leave(self, span: Span, again: bool) -> None:
        """`break`, or `continue`."""
        if not self.may_leave:
            help = "its condition has to follow from numbers known when the kernel is compiled, or from a short loop's variable"
            what = "the search has no form for a loop whose end is known only at run time"
            raise NotSearched(what, span, help=help)
        raise Leave(again)

    def number(self, value: Any, span: Span) -> Any:
        """A value where a whole number is needed: what is computed from elements may be one in other kernels."""
        return value

    def asserted(self, test: Any, message: Any, node: ast.AST) -> None:
        """An assertion about what a kernel knows when it runs. NotSearched: there is no moment for it."""
        raise NotSearched("the search has no form for an assertion about run-time values", self.span(node))

    def counted_slice(self, start: Expr, extent: Expr, size: int, span: Span) -> Slice:
        """A slice whose extent is not known yet. TileError: a tile has a size."""
        help = "write A[i : i + size], or A[i : T.min(i + size, n)]; what lies beyond the end of a tensor is left out by itself"
        raise TileError("the size of a slice has to be known and positive", span, help=help)

    def read_element(self, r: Region) -> Expr | None:
        """One element of whole numbers as an index; None for other regions."""
        shape = self.shape_named(r.name)
        one = shape is not None and len(shape) == len(r.starts) and all(e is None for e in r.extents)
        return element(r.name, shape, r.starts) if one and self.dtype_of(r.name) in INDICES else None  # type: ignore[arg-type]

    def dtype_of(self, name: str) -> DType | None:
        """The element type of a buffer or tensor."""
        named = (v for v in self.local.values() if isinstance(v, Buffer))
        return self.types.get(name) or next((v.dtype for v in named if v.name == name), None)

    def divided_type(self, name: str) -> DType | None:
        """The element type of what a quotient is made of; None of a whole number of the scalar unit's."""
        return F32 if self.scalars.get(name) is False else self.dtype_of(name)

    def shape_named(self, name: str) -> tuple[int, ...] | None:
        """The dimensions of a buffer or tensor."""
        named = (v for v in self.local.values() if isinstance(v, Buffer))
        return self.shapes.get(name) or next((v.shape for v in named if v.name == name), None)

    def unique(self, name: str) -> str:
        """`name`, or with a number after it where it is taken."""
        found, n = name, 0
        while found in self.taken:
            n += 1
            found = f"{name}_{n}"
        self.taken.add(found)
        return found

    def assign(self, target: Region, value: TileExpr, span: Span | None, atomic: str = "") -> None:
        self.has_product |= any(isinstance(n, MatMul) for n in nodes(value))
        if self.in_parallel and any(e is not None for e in target.extents):
            raise TileError("inside T.Parallel only single elements can be assigned", span, help="write c[i, j] = ...")
        check_stored(target, value, atomic, self.bools, span)
        if isinstance(value, Region) and value.name in self.bits:
            value = self._packed(value, self.dtype_of(target.name), span)
        if isinstance(value, Index) and self.dtype_of(target.name) == U32:
            value = Cast(U32, value, value.span)
        value = mapped(value, lambda e: self._unpacked(e, span)) if self.bits else value
        value = with_words(widened(value, self.dtype_of(target.name), self.dtype_of), self.dtype_of)
        self.statements.append(Assign(target, spread(value, target.shape, self.columns), span, atomic))
        self.written(target.name)

    def _packed(self, r: Region, to: DType | None, span: Span | None) -> TileExpr:
        """The bytes of a mask that is copied as a whole, to bytes with a sign or without."""
        kept = self.masks[r.name]
        shape = self.shapes[r.name]
        if r.extents != shape or kept.shape != (*shape[:-1], 8 * shape[-1]):
            raise self._of_bits(r.name, r.span or span)
        packed = Pack(Region(kept.name, (ZERO,) * len(kept.shape), kept.shape, r.span), span)
        return Cast(I8, packed, span) if to == I8 else packed

    def _unpacked(self, e: TileExpr, span: Span | None) -> TileExpr:
        """What is read of a buffer of bools that a comparison wrote: the ones and zeros beside it. TileError for bits."""
        if not isinstance(e, Region) or e.name not in self.bits:
            return e
        if e.name not in self.bools or self.masks[e.name].shape != self.shapes[e.name]:
            raise self._of_bits(e.name, e.span or span)
        return replace(e, name=self.masks[e.name].name)

    @staticmethod
    def _of_bits(name: str, span: Span | None) -> TileError:
        help = "choose ones and zeros by the comparison: T.if_then_else(x > y, 1.0, 0.0)"
        what = f"{name} holds the bits of a comparison: only T.tile.select and bitwise words read them"
        return TileError(what, span, help=help)

    def written(self, name: str) -> None:
        """Notes that a buffer has been written."""
        self.bits.discard(name)
        self.writes.append(name)
        self._forget({name})

    def _forget(self, written: set[str]) -> None:
        """Names whose values were read from these buffers cannot be used any more."""
        for name, value in self.local.items():
            if changed := reads(value) & written:
                held, window = self.kept.get(name, (None, None))
                self.local[name] = Stale(min(changed), window if held is value else None)

    def use(self, name: str, value: Any, node: ast.AST) -> Any:
        """The value of a name at one place; TileError where what it was read from has been written since."""
        if isinstance(value, Failed):
            raise FollowUp(self.span(node))
        if isinstance(value, Stale) and value.kept is not None and not self.in_parallel:
            self.unused.discard(value.kept.buffer.name)
            return value.kept
        if isinstance(value, Stale):
            raise self._stale(name, value.buffer, self.span(node))
        if isinstance(value, Expr) and value == self.half and self.half_used is None:
            self.half_used = self.span(node)
        if name in self.outer and (buffers := reads(value)):
            self.uses.append((name, buffers, self.span(node)))
        return value

    def _stale(self, name: str, buffer: str, span: Span) -> TileError:
        message = f"{name} was computed from {buffer}, which may have changed since"
        return (NotSearched if name in self.variables else TileError)(message, span, help="keep the value in a buffer of its own")

    def allocate(self, name: str, new: NewBuffer, span: Span | None) -> None:
        shape = new.shape[:-1] if new.column else new.shape
        buffer = Buffer(self.unique(name), new.dtype, shape, new.scope, new.column, new.truth)
        self.statements.append(Alloc(buffer.name, new.scope, new.dtype, shape, span, new.level))
        self.homes[buffer.name] = self.statements
        self.shapes[buffer.name] = shape
        self.types[buffer.name] = buffer.dtype
        self.columns |= {buffer.name} if new.column else set()
        self.bools |= {buffer.name} if new.truth else set()
        self.local[name] = buffer

    def zeros(self, name: str, span: Span | None) -> list[Any]:
        """The statements by which a buffer begins with zeros."""
        shape = self.shapes[name]
        return [Assign(Region(name, (ZERO,) * len(shape), shape), Number(0.0), span)]

    def _named(self, name: str, value: Any, span: Span | None) -> Any:
        """An item of a list: a new buffer gets its name."""
        if not isinstance(value, NewBuffer):
            return value
        self.allocate(name, value, span)
        return self.local.pop(name)

    def bind(self, name: str, value: Any, span: Span | None) -> None:
        """A Python assignment: later uses of the name mean the value."""
        if isinstance(value, NewBuffer):
            return self.allocate(name, value, span)
        if isinstance(value, FirstValue):
            self.variables.add(name)
            value = value.value
        if is_view(value):
            self.variables.add(name)
        if isinstance(value, list | tuple) and any(isinstance(v, NewBuffer) for v in value):
            value = [self._named(f"{name}_{n}", v, span) for n, v in enumerate(value)]
        if isinstance(self.outer.get(name), Failed):
            raise FollowUp(span)
        if name in self.outer and self.outer[name] != value:
            kind = NotSearched if name in self.variables else TileError
            raise kind(f"{name} changes inside a loop or branch", span, help="keep what changes in a buffer, or use a new name")
        if isinstance(self.local.get(name), Buffer) and not isinstance(value, Buffer):
            raise TileError(f"{name} is a buffer; this would only rebind its name", span, help=f"write {name}[...] = to fill it")
        check_value(name, value, span)
        self.local[name] = value
        if isinstance(value, Window) and value.is_point and value.buffer.scope != "tensor" and not self.in_parallel:
            self._keep(name, value, span)
        return None

    def _keep(self, name: str, value: Window, span: Span | None) -> None:
        """A buffer for one element that has a name, in which it lives on where what it was read from is written. Where nothing
        asks for it (`unused`), it goes."""
        buffer = Buffer(self.unique(f"{name}_kept"), value.buffer.dtype, (1,), "shared")
        target = Region(buffer.name, (ZERO,), (1,), span)
        self.statements += [Alloc(buffer.name, buffer.scope, buffer.dtype, (1,), span), Assign(target, region(value), span)]
        self.unused.add(buffer.name)
        self.kept[name] = (value, Window(buffer, (ZERO,), span))

    @contextmanager
    def block(self, repeats: bool) -> Iterator[list[Stmt]]:
        """The body of a branch, or of a loop (it repeats): its statements, and names that end with it."""
        statements, local, outer, first_use = self.statements, self.local, self.outer, len(self.uses)
        bits, may_leave, lists = set(self.bits), self.may_leave, self.lists
        with self._writing() as written:
            self.lists = {**lists, **seen({name: copy for name, _, copy in self.copies.values()} | self.local)}
            self.depth += 1
            self.statements, self.local, self.outer, self.may_leave = [], dict(local), {**outer, **local}, False
            body = self.statements
            try:
                yield body
            finally:
                self.ended |= self.local.keys() - local.keys()
                self.lists, self.depth = lists, self.depth - 1
                self.statements, self.local, self.outer, self.may_leave = statements, local, outer, may_leave
        if repeats and self.bits - bits:
            exposed = Liveness(self.shapes).before(tuple(body), frozenset())
            if again := (self.bits - bits) & exposed:
                raise self._of_bits(min(again), body[0].span)
        for name, buffers, span in self.uses[first_use:] if repeats else ():
            if name in local and (changed := buffers & written):
                raise self._stale(name, min(changed), span)

    @contextmanager
    def _writing(self) -> Iterator[set[str]]:
        """Collects what is written inside; names outside that were read from it are forgotten at the end."""
        first, written = len(self.writes), set[str]()
        yield written
        written.update(self.writes[first:])
        self._forget(written)

    @contextmanager
    def indexing(self) -> Iterator[None]:
        """Inside, elements of buffers are indices, and no tiles to compute with."""
        outside, self.in_index = self.in_index, True
        try:
            yield
        finally:
            self.in_index = outside

    @abstractmethod
    def inline(self, function: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        """Writes out a function's body where it is called."""

    @contextmanager
    def inlined(self, source: Source, names: Mapping[str, Any], local: dict[str, Any]) -> Iterator[None]:
        """The body of a macro: names of its own, the statements go on."""
        saved = self.source, self.names, self.local, self.outer
        with self._writing():
            may_leave, self.may_leave = self.may_leave, False
            self.source, self.names, self.local, self.outer = source, names, local, {}
            try:
                yield
            finally:
                self.source, self.names, self.local, self.outer = saved
                self.may_leave = may_leave
