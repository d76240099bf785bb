"""What a kernel has to keep to, whichever language it was written in: names, types, shapes, bounds, and writes before reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

from tile_eg.errors import FollowUp, TileError, did_you_mean, in_source, together
from tile_eg.frontend.checks.blocks import is_partly, refuse_meeting, refuse_others
from tile_eg.frontend.checks.definite import Definite
from tile_eg.frontend.checks.types import Typing
from tile_eg.frontend.hints import hint
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.liveness import padded
from tile_eg.frontend.ranges import extremes
from tile_eg.frontend.read_indices import never_inside, outside
from tile_eg.frontend.windows import lies_across
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in, elements_in, indices_of
from tile_eg.ir.operands import regions
from tile_eg.ir.seen import indexed
from tile_eg.ops.types import INDICES


def check(kernel: kn.Kernel) -> None:
    """Raises TileError with all faults of a kernel; returns nothing where it has none."""
    with in_source(kernel.source, kernel.file):
        checker = Checker(kernel)
        ranges = {name: (0, extent - 1) for name, extent in kernel.grid}
        checker.block(kernel.body, ranges, ix.ONE)
        checker.check_outputs()
        checker.check_sums()
        for store, around in checker.stores:
            checker.attempt(refuse_meeting, kernel, store, around)
        checker.attempt(refuse_others, kernel, checker.alone)
        checker.attempt(check_reads, kernel)
        if checker.told:
            raise together(checker.told)


def statement_faults(kernel: kn.Kernel) -> list[TileError]:
    """What is wrong with single statements of a kernel that was not read in full, as others of its statements are wrong."""
    checker = Checker(kernel)
    checker.block(kernel.body, {name: (0, extent - 1) for name, extent in kernel.grid}, ix.ONE)
    return checker.told


def type_faults(tensors: Iterable[kn.Tensor], body: Iterable[kn.Stmt]) -> list[TileError]:
    """What is wrong with the types and shapes of single statements, wherever they stand."""
    checker = Checker(kn.Kernel("", tuple(tensors), (), ()))
    for s in kn.statements(body):
        if isinstance(s, kn.Alloc):
            checker.attempt(checker.declare, s)
        elif isinstance(s, kn.Assign):
            checker.attempt(checker.typing.assignment, s)
    return checker.told


def stored_alike(kernel: kn.Kernel) -> frozenset[str]:
    """The outputs of a kernel that has passed `check` to which several blocks store equal values at one place."""
    checker = Checker(kernel)
    checker.block(kernel.body, {name: (0, extent - 1) for name, extent in kernel.grid}, ix.ONE)
    meeting = lambda s, around: refuse_meeting(kernel, s, around)  # noqa: E731
    return frozenset(s.target.name for s, around in checker.stores if meeting(s, around))


def check_reads(kernel: kn.Kernel, **known: int) -> None:
    """Raises TileError with each buffer or output that may be read before it was written, in blocks with `known` indices."""
    ranges = {name: (known.get(name, 0), known.get(name, extent - 1)) for name, extent in kernel.grid}
    filled: dict[str, kn.Tensor | kn.Alloc] = {t.name: indexed(t) for t in kernel.tensors if t.output and not t.given}
    filled |= {s.name: s for s in kn.allocs(kernel.body)}
    definite = Definite(filled)
    definite.run(kernel.body, frozenset(), ranges)
    if definite.told:
        raise together(definite.told.values())


Ranges = dict[str, ix.Interval]


class Checker:
    """Walks the statements with the ranges of the variables around them and the condition under which they run.

    `told` are the faults so far, at most one of a statement; a buffer whose declaration is one is in `failed`. `stores` are done
    in every block, and those of them that are `alone` in every trip of their loops.
    """

    def __init__(self, kernel: kn.Kernel) -> None:
        self.told: list[TileError] = []
        self.failed: set[str] = set()
        self.tensors: dict[str, kn.Tensor] = {}
        self.buffers: dict[str, kn.Alloc] = {}
        self.arrays: dict[str, kn.Tensor | kn.Alloc] = {}
        self.written: set[str] = set()
        self.meant = {s.target.name for s in kn.assigns(kernel.body)}
        self.stores: list[tuple[kn.Assign, Ranges]] = []
        self.alone: list[tuple[kn.Assign, Ranges]] = []
        self.added: dict[str, kn.Span | None] = {}
        self.plain: dict[str, kn.Span | None] = {}
        self.elements: frozenset[str] = frozenset()
        self.within = ix.ONE
        self.typing = Typing(self.arrays)
        for t in kernel.tensors:
            self.tensors[t.name] = indexed(t)
            self.attempt(self.declare, self.tensors[t.name])
        for name, _ in kernel.grid:
            self.attempt(self.check_new, name, None)

    def attempt(self, look: Callable[..., object], *about: Any, declares: str = "") -> None:
        """Keeps what is wrong, and goes on."""
        try:
            look(*about)
        except TileError as e:
            self.told.append(e)
            self.failed |= {declares} if declares else set()

    def declare(self, array: kn.Tensor | kn.Alloc) -> None:
        self.check_new(array.name, array.span)
        least = 0 if isinstance(array, kn.Tensor) and not array.output else 1  # an input without elements may go unread
        if not array.shape or min(array.shape) < least:
            raise TileError(f"`{array.name}` has no elements: its shape is {array.shape}", array.span)
        self.arrays[array.name] = array

    def check_new(self, name: str, span: kn.Span | None) -> None:
        if name in self.arrays:
            raise TileError(f"`{name}` is defined twice", span, notes=(("it is defined here", self.arrays[name].span),))

    def check_outputs(self) -> None:
        """A mistake for each output that nothing writes; one that a wrong statement writes follows from that one's."""
        for t in self.tensors.values():
            if t.output and t.name not in self.written | self.meant:
                help = "store a tile to it: " + hint(f"{t.name}[i, j] = x", f"T.copy(x, {t.name}[i, j])", t.span)
                self.told.append(TileError(f"nothing is written to the output `{t.name}`", t.span, help=help))

    def block(self, body: tuple[kn.Stmt, ...], ranges: Ranges, where: Expr) -> None:
        for s in body:
            self.attempt(self.statement, s, ranges, where, declares=s.name if isinstance(s, kn.Alloc) else "")

    def statement(self, s: kn.Stmt, ranges: Ranges, where: Expr) -> None:
        match s:
            case kn.Alloc():
                self.buffer(s)
            case kn.Assign():
                self.assign(s, ranges, where)
            case kn.For():
                self.new_variable(s.var, ranges, s.span)
                self.variables(s.count or ix.ZERO, ranges, s.span)
                if s.extent:
                    self.loop(s, ranges | {s.var: (s.start, s.start + s.extent - 1)}, where)
            case kn.Parallel():
                self.element_loop(s, ranges, where)
            case kn.If():
                self.variables(s.condition, ranges, s.span)
                self.block(s.then, ranges, ix.both(where, s.condition))
                self.block(s.otherwise, ranges, ix.both(where, ix.less(s.condition, 1)))

    def loop(self, s: kn.For, ranges: Ranges, where: Expr) -> None:
        """The body of a loop; where the block counts its trips, its variable stays below their number."""
        around = self.within
        if s.count is not None:
            self.within = ix.both(around, ix.less(ix.var(s.var) - s.start, s.count))
        self.block(s.body, ranges, where)
        self.within = around

    def buffer(self, s: kn.Alloc) -> None:
        self.declare(s)
        self.buffers[s.name] = s
        if len(s.shape) > 4:
            message = f"a buffer has at most four dimensions, `{s.name}` has {len(s.shape)}"
            raise TileError(message, s.span, help="join the leading ones, or index them in a loop")

    def new_variable(self, name: str, ranges: Ranges, span: kn.Span | None) -> None:
        self.check_new(name, span)
        if name in ranges:
            raise TileError(f"`{name}` is a loop or grid variable around this loop already", span)

    def element_loop(self, s: kn.Parallel, ranges: Ranges, where: Expr) -> None:
        for name in s.vars:
            self.new_variable(name, ranges, s.span)
        if len(s.vars) > 4:
            tile = "for a in serial(n) { parallel (g, h, i, j) in (2, m, 8, 64) { } }"
            way = hint(tile, "for a in range(n): around T.Parallel(m, k, l, o)", s.span)
            message = f"an element loop runs over one to four variables, not {len(s.vars)}"
            raise TileError(message, s.span, help=f"a loop around it for the first ones: {way}")
        outside, self.elements = self.elements, self.elements | set(s.vars)
        self.block(s.body, ranges | {v: (0, n - 1) for v, n in zip(s.vars, s.extents, strict=True)}, where)
        self.elements = outside

    def touched(self, s: kn.Assign) -> None:
        """Notes outputs that are added to, and refuses to store to them or to read them as well: other blocks add meanwhile."""
        if s.atomic and (s.target.name not in self.tensors or self.elements):
            raise TileError("atomic additions are of whole tiles, to a tensor", s.target.span or s.span)
        for r in (*(() if s.atomic else (s.target,)), *regions(s.value)):
            self.plain.setdefault(r.name, r.span or s.span)
        if s.atomic:
            self.added.setdefault(s.target.name, s.span)

    def check_sums(self) -> None:
        for name in sorted(self.added.keys() & self.plain.keys()):
            self.told.append(TileError(
                f"`{name}` is added to atomically, and stored to or read here", self.plain[name],
                notes=(("it is added to here", self.added[name]),),
                help="blocks run in no promised order; an output that is added to begins with zeros, or with what it is given",
            ))  # fmt: skip

    def assign(self, s: kn.Assign, ranges: Ranges, where: Expr) -> None:
        if self.failed and not self.failed.isdisjoint(r.name for r in (s.target, *regions(s.value))):
            raise FollowUp(s.span)
        self.written.add(s.target.name)
        self.typing.assignment(s)
        if (tensor := self.tensors.get(s.target.name)) is not None and not tensor.output:
            raise TileError(
                f"`{tensor.name}` is an input and cannot be written", s.target.span or s.span,
                notes=(("it is declared here", tensor.span),), help="name it among the results, behind ->",
            )  # fmt: skip
        self.touched(s)
        if tensor is not None and not s.atomic and where == ix.ONE and not (self.elements and is_partly(s)):
            self.stores.append((s, ranges))
            self.alone += [(s, ranges)] if self.within == ix.ONE and not self.elements else []
        beyond = [r for r in padded(s.value) if r.name in self.tensors and not lies_across(r, self.tensors[r.name])]
        for r in (s.target, *regions(s.value)):
            if not any(r is other for other in beyond):
                self.window(r, ranges, where, r is s.target)

    def window(self, r: kn.Region, ranges: Ranges, where: Expr, written: bool) -> None:
        """A region has to begin inside its tensor at all times, and to lie wholly inside its buffer."""
        shape, tensor = self.arrays[r.name].shape, r.name in self.tensors
        for count in filter(None, r.counts):
            self.variables(count, ranges, r.span)
            for read in all_elements_in(count):
                self.index_tensor(read, ranges, where, r.span)
        for d, (start, extent) in enumerate(zip(r.starts, r.extents, strict=True)):
            self.variables(start, ranges, r.span)
            room = shape[d] - (1 if tensor else extent or 1)
            for read in all_elements_in(start):
                self.index_tensor(read, ranges, where, r.span)
            if elements_in(start):  # what is read is looked at when the kernel runs
                continue
            low, high = self.range_of(start, room, ranges, ix.both(where, self.within), tensor)
            if tensor and high > room and low >= 0 and self.of_parts(start, r.extents[d], room, ranges):
                continue
            if low < 0 or high > room:
                raise self.outside(r, d, start, low if low < 0 else high, written)

    def of_parts(self, start: Expr, extent: int | None, room: int, ranges: Ranges) -> bool:
        """Whether blocks or trips take parts of a tile side by side, bx * 32 + half * 16 + row or b // n * 32 + half * 16, and
        each tile begins inside: the last parts of a tile at the edge may have nothing to do."""
        over = [v for v in self.elements if v in ix.variables(start)]
        if extent is None:  # an element loop runs over the window
            once = len(over) == 1 and ix.terms_of(start).get(ix.var(over[0])) == 1
            extent = ranges[over[0]][1] + 1 if once else 1
        steps = ix.terms_of(ix.substitute(start, dict.fromkeys(over, ix.ZERO)))
        own = {a.args[0]: k for a, k in steps.items() if a.op == "var" and a.args[0] not in over}
        parts, width = list[str](), extent
        counts = {v: ranges[v][1] + 1 for v in own if ranges[v][0] == 0}
        while found := [v for v, n in counts.items() if own[v] == width and width * n in steps.values()]:
            parts.append(found[0])
            width *= counts.pop(found[0])
        return bool(parts) and ix.bounds(ix.substitute(start, dict.fromkeys((*parts, *over), ix.ZERO)), ranges)[1] <= room

    def index_tensor(self, read: Expr, ranges: Ranges, where: Expr, span: kn.Span | None) -> None:
        """What an index is read from holds whole numbers; and it is not read where none of them is in any block or trip."""
        name = read.args[0]
        if (array := self.arrays.get(name)) is None:
            return
        if array.dtype not in INDICES:
            what = f"an index is a whole number, and `{array.name}` holds {array.dtype}"
            raise TileError(what, span, help="indices are i32, or shorter whole numbers")
        where = ix.both(where, self.within)
        for d, (index, size) in enumerate(indices_of(read, prod(array.shape))):
            if elements_in(index) or ix.variables(index) - ranges.keys():
                continue
            if (value := never_inside(index, size, ranges, where)) is not None:
                raise outside(f"an index is read outside of `{name}`", d, index, value, size, span)

    def range_of(self, start: Expr, room: int, ranges: Ranges, where: Expr, tensor: bool) -> ix.Interval:
        """The values of an index; in a tensor, an element loop may run over the edge, so that its first element counts."""
        if tensor:
            start = ix.substitute(start, dict.fromkeys(self.elements, ix.ZERO))
        low, high = ix.bounds(start, ranges)
        return (low, high) if low >= 0 and high <= room else extremes(start, ranges, where)

    def outside(self, r: kn.Region, d: int, start: Expr, value: int, written: bool) -> TileError:
        size, tensor = self.arrays[r.name].shape[d], r.name in self.tensors
        extent = r.extents[d]
        what = index_text(start) if start.value is not None else f"{index_text(start)} takes the value {value}"
        if tensor:
            message = f"a window of `{r.name}` lies outside: {what}, dimension {d} has {size} elements"
        else:
            part = f"{what}, with {extent} elements" if extent else f"index {what}"
            message = f"this part of `{r.name}` lies outside: {part}, dimension {d} has {size} elements"
        help = _at_the_edge(written, r.span) if tensor else _inside(start, size, value, written, extent)
        return TileError(message, r.span, help=help)

    def variables(self, e: Expr, ranges: Ranges, span: kn.Span | None) -> None:
        for name in sorted(ix.variables(e) - ranges.keys()):
            raise TileError(f"unknown name `{name}`", span, help=did_you_mean(name, ranges))


def _at_the_edge(written: bool, span: kn.Span | None) -> str:
    edge = "tails are cut at the edge, but a window has to begin inside"
    if written:
        return f"{edge}: as many blocks or trips as there are tiles, {hint('ceildiv(M, BM)', 'T.ceildiv(M, BM)', span)}"
    pad = hint("x = pad(X[i - 1, j], 0)", "T.copy(X[i - 1, j], x, pad_value=0)", span)
    return f"{edge}, unless a number stands for what is not there: {pad}"


def _inside(start: Expr, size: int, value: int, written: bool, extent: int | None) -> str:
    """A help line: which indices a dimension of a buffer has, and how one that is no number stays among them."""
    last = size + start.value if start.value is not None else -1
    if 0 <= last < size:
        return f"indices do not count from the end: write {last}"
    if not ix.variables(start) or (written and extent):
        return f"its indices are 0 to {size - 1}"
    told = index_text(start)
    condition = f"if {told} >= 0" if value < 0 else f"if {told} < {size}"
    read = f"one that a condition leaves out is read, too: keep it inside by max(min({told}, {size - 1}), 0)"
    return f"its indices are 0 to {size - 1}; " + (f"write under a condition: {condition}" if written else read)
