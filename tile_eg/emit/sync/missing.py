"""Barriers and flags between instructions of one core that share memory and have nothing between them.

A kernel that is kept is built by CANN's compiler with its automatic synchronisation, which orders vector instructions among each
other, and the scalar unit with the other pipes of a vector core (BiSheng Compiler, Automatic Synchronization). Our text is built
without it (`docs/machine.md`, clause 25), so that it is written here. With `everything` all pipes of a core are ordered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, Interval, const
from tile_eg.ir.machine import USABLE_EVENT_IDS, needs_barrier
from tile_eg.ir.program import (
    AIV,
    SPREAD,
    Buffer,
    Gm,
    Instr,
    Loop,
    Node,
    Operand,
    PipeBarrier,
    Print,
    Program,
    Scalar,
    SetFlag,
    SyncAll,
    Tasks,
    Tile,
    WaitFlag,
    When,
    While,
    walk,
)
from tile_eg.ir.sizes import usual
from tile_eg.ops.records import record
from tile_eg.ops.repeats import REPEATED
from tile_eg.ops.whole_tiles import WHOLE_TILES

SCALAR = "S"
ALL_OF = (
    "vbrcb", "vpiece", "vput", "vsort32", "vtranspose", *(f"v{w}" for w in WHOLE_TILES),
    *(r.instruction for r in REPEATED.values()),
)  # fmt: skip
"""Instructions of which an operand may be all of its buffer."""


@record
class Access:
    """Bytes of a memory, or elements of a tensor, that an instruction of a pipe reads or writes."""

    pipe: str
    place: str
    start: int
    end: int
    written: bool
    fractals: int = 0
    name: str = ""

    def meets(self, other: Access) -> bool:
        shared = self.place == other.place and self.start < other.end and other.start < self.end
        return shared and (self.written or other.written)


Pending = dict[tuple[str, str], tuple[Access, ...]]
"""By pair of pipes: what the first did that the second has not waited for."""


@dataclass
class _Walk:
    program: Program
    core: str
    everything: bool
    buffers: Mapping[str, Buffer]
    ranges: dict[str, Interval]
    free: Mapping[tuple[str, str], int]
    sharing: frozenset[str]

    @property
    def pipes(self) -> tuple[str, ...]:
        return ("MTE2", "V", "MTE3", SCALAR) if self.core == AIV else ("MTE2", "MTE1", "M", "FIX", "MTE3")

    def body(self, nodes: Sequence[Node], pending: Pending, marks: Pending) -> list[Node]:
        out: list[Node] = []
        for n in nodes:
            out += self.node(n, pending, marks)
        return out

    def node(self, n: Node, pending: Pending, marks: Pending) -> list[Node]:
        match n:
            case Loop():
                return [self.loop(n, pending, marks)]
            case While():
                return [self.loop(n, pending, marks)]
            case When():
                after = dict(pending)
                made = replace(n, body=tuple(self.body(n.body, after, dict(marks))))
                _join(pending, after)
                return [made]
            case PipeBarrier():
                _clear(pending, [(a, b) for a, b in pending if n.pipe == "ALL" or a == b == n.pipe])
            case SyncAll():
                pending.clear()
            case SetFlag():
                marks[n.src, n.dst] = pending.get((n.src, n.dst), ())
            case WaitFlag():
                seen = set(marks.get((n.src, n.dst), ()))
                pending[n.src, n.dst] = tuple(a for a in pending.get((n.src, n.dst), ()) if a not in seen)
            case Instr() | Scalar() | Print():
                return self.instr(n, pending)
        return [n]

    def loop(self, n: Loop | While, pending: Pending, marks: Pending) -> Loop | While:
        """The body twice: what its end leaves meets its beginning."""
        if isinstance(n, Loop):
            self.ranges[n.var] = (0, max(0, n.trips - 1))
        if isinstance(n, Tasks):
            self.ranges.update({let.name: (0, let.most) for let in n.lets})
        before = dict(pending)
        body: Sequence[Node] = n.body
        while True:
            after = dict(pending)
            made = self.body(body, after, dict(marks))
            grown = dict(pending)
            _join(grown, after)
            if made == list(body) and grown == pending:
                break
            body = made
            pending.update(grown)
        pending.clear()
        pending.update(before)
        _join(pending, after)
        return replace(n, body=tuple(body))

    def instr(self, i: Instr | Scalar | Print, pending: Pending) -> list[Node]:
        accesses = list(self.accesses(i))
        met = sorted({(src, dst) for (src, dst), found in pending.items() for a, b in product(found, accesses)
                      if dst == b.pipe and a.meets(b) and self.unordered(a, b)})  # fmt: skip
        out: list[Node] = []
        if any(src != dst for src, dst in met) and self.everything:
            pending.clear()
            out = [PipeBarrier("ALL")]
        else:
            for src, dst in met:
                out += [PipeBarrier(src)] if src == dst else self.handover(src, dst)
                _clear(pending, [(src, dst)])
        for a in accesses:
            for dst in self.pipes:
                if self.minded(a.pipe, dst) or a.name in self.sharing:
                    old = pending.get((a.pipe, dst), ())
                    pending[a.pipe, dst] = old if a in old else (*old, a)
        return [*out, i]

    def unordered(self, a: Access, b: Access) -> bool:
        """Whether two that meet are ordered here."""
        return (self.minded(a.pipe, b.pipe) or self.shared(a, b)) and _unguarded(a, b)

    def shared(self, a: Access, b: Access) -> bool:
        """Whether they meet for the place alone, which the author did not choose."""
        return a.name != b.name and a.name in self.sharing and b.name in self.sharing

    def minded(self, src: str, dst: str) -> bool:
        """Whether this pair is ordered here."""
        if src == dst:
            return src != SCALAR and (self.everything or src == "V")
        return self.everything or (self.core == AIV and SCALAR in (src, dst))

    def handover(self, src: str, dst: str) -> list[Node]:
        """A flag set and waited for at once. The scalar unit, which is ahead of the others, first waits for the one behind it."""
        back = self.handover(dst, src) if src == SCALAR else []
        flag = const(self.free.get((src, dst), USABLE_EVENT_IDS[-1]))
        return [*back, SetFlag(src, dst, flag), WaitFlag(src, dst, flag)]

    def accesses(self, i: Instr | Scalar | Print) -> Iterator[Access]:
        if isinstance(i, Scalar | Print):
            for t in i.value.elements() if isinstance(i, Scalar) else (t for f in i.args for t in f.elements()):
                yield self.access(SCALAR, t, Instr("store_element", t), False, 0)
            return
        size = i.rows.value, i.cols.value
        fractals = (size[0] or 0) // 16 * ((size[1] or 0) // 16) if i.op == "mmad" else 0
        elements = i.value.elements() if i.value else ()
        for o in i.writes():
            yield self.access(i.pipe, o, i, True, fractals)
        for o in i.reads():
            yield self.access(SCALAR if o in elements and o not in i.srcs else i.pipe, o, i, False, fractals)

    def access(self, pipe: str, o: Operand, i: Instr, written: bool, fractals: int) -> Access:
        if isinstance(o, Gm):
            low, high = self.bounds(o.offset)
            rows, cols = (self.bounds(e)[1] for e in (i.rows, i.cols))
            end = high + max(0, rows - 1) * usual(o.stride) + cols
            return Access(pipe, o.tensor, low, end, written, name=o.tensor)
        b = self.buffers[o.buffer]
        low, high = self.span(b, o, i)
        return Access(pipe, str(b.level), low, high, written, fractals, b.name)

    def span(self, b: Buffer, o: Tile, i: Instr) -> Interval:
        """The bytes of a window: whole slots in fractals; in UB from its first row to its last."""
        first, last = (max(0, min(len(b.addresses) - 1, s)) for s in self.bounds(o.slot))
        places = b.addresses[first : last + 1]
        if b.layout != "nd" or not places:
            return min(b.addresses), max(b.addresses) + b.slot_bytes
        low, high = self.bounds(o.row * b.pitch + o.col)
        elements = i.value.elements() if i.value else ()
        if o in elements or i.op == "store_element":
            taken = 1
        elif o == i.dst and i.op.startswith("vrow"):
            taken = self.bounds(i.rows)[1]
        elif o == i.scratch or i.op in ALL_OF or i.op.endswith(SPREAD):
            return min(places), max(places) + b.slot_bytes
        else:
            taken = max(0, self.bounds(i.rows)[1] - 1) * b.pitch + self.bounds(i.cols)[1]
        size = b.dtype.bytes
        return min(places) + low * size, min(max(places) + b.slot_bytes, max(places) + (high + taken) * size)

    def bounds(self, e: Expr) -> Interval:
        return ix.bounds(e, self.ranges)


def _unguarded(a: Access, b: Access) -> bool:
    if a.pipe != b.pipe:
        return True
    return needs_barrier(a.pipe, 16, 16 * min(a.fractals, b.fractals)) if a.pipe == "M" else needs_barrier(a.pipe)


def _clear(pending: Pending, pairs: list[tuple[str, str]]) -> None:
    for pair in pairs:
        pending.pop(pair, None)


def _join(pending: Pending, other: Pending) -> None:
    for pair, found in other.items():
        mine = pending.get(pair, ())
        pending[pair] = (*mine, *(a for a in found if a not in mine))


def completed(program: Program, core: str, everything: bool, sharing: frozenset[str] = frozenset()) -> tuple[Node, ...]:
    """The stream of a core with what is missing between its instructions. Buffers have addresses; the `sharing` ones lie where
    others do without their author's knowing, who did not order them."""
    ranges = {ix.BLOCK: (0, max(0, program.blocks - 1)), ix.SUB: (0, 1)}
    stream = _Walk(program, core, everything, {b.name: b for b in program.buffers}, ranges, _free(program.core(core)), sharing)
    return tuple(stream.body(program.core(core), {}, {}))



def _free(nodes: tuple[Node, ...]) -> dict[tuple[str, str], int]:
    """By pair of pipes: the last number of a flag that the author does not use, as far as his are numbers."""
    used: dict[tuple[str, str], set[int | None]] = {}
    for n in walk(nodes):
        if isinstance(n, SetFlag | WaitFlag):
            used.setdefault((n.src, n.dst), set()).add(n.id.value)
    return {pair: next((k for k in reversed(USABLE_EVENT_IDS) if k not in ids), 0) for pair, ids in used.items()}
