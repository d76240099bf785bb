"""Addresses for buffers of one memory that are used one after the other in a stream of instructions: they may share it.

A buffer lives from its first use to its last, in the order of the stream. In a loop whose trips do not begin by writing all of
it, it lives throughout: what a trip leaves there may be read in the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tile_eg.ir.index import ONE, ZERO, less, var
from tile_eg.ir.program import Buffer, Instr, Loop, Node, Scalar, Tile, When, While, walk

Written = tuple[str, str]
"""A buffer that is written as a whole (""), or the row of it that a loop's variable says."""
COPIES = ("gm_to_l1", "gm_to_ub", "mmad", "vdup", "vcopy", "vcast")
"""Instructions that write all of their rows and columns."""


@dataclass
class _Uses:
    """Where the instructions of a stream use each buffer; `at` counts them."""

    buffers: Mapping[str, Buffer]
    at: int = 0
    lives: dict[str, tuple[int, int]] = field(default_factory=dict)

    def walk(self, nodes: Sequence[Node]) -> tuple[set[str], set[Written]]:
        """The buffers that these nodes use, and what of them is written whole before anything else is done with it."""
        seen, written = set[str](), set[Written]()
        for used, found in self.parts(nodes):
            written |= {w for w in found if w[0] not in seen}
            seen |= used
        return seen, written

    def parts(self, nodes: Sequence[Node]) -> Iterator[tuple[set[str], set[Written]]]:
        """The same of each node, and of both arms of a branch together."""
        n = 0
        while n < len(nodes):
            node, other = nodes[n], nodes[n + 1] if n + 1 < len(nodes) else None
            if type(node) is When and type(other) is When and other.condition == less(node.condition, 1):
                (used, one), (also, two) = self.walk(node.body), self.walk(other.body)
                yield used | also, one & two
                n += 2
                continue
            yield self.nested(node) if isinstance(node, Loop | When) else self.single(node)
            n += 1

    def nested(self, n: Loop | When) -> tuple[set[str], set[Written]]:
        begin = self.at
        used, written = self.walk(n.body)
        if type(n) is When:
            return used, set()
        if isinstance(n, Loop):
            written |= {(name, "") for name, row in written if row == n.var and self.by_rows(n, name)}
        for name in used - {name for name, row in written if not row}:
            self.note(name, begin, self.at)
        done = not isinstance(n, While) and n.until is None and n.trips > 0  # type: ignore[union-attr]
        return used, {w for w in written if w[1] != n.var} if done else set()  # type: ignore[union-attr]

    def by_rows(self, loop: Loop, name: str) -> bool:
        """Whether each trip uses a row of its own of a buffer, and the trips all rows."""
        tiles = [t for n in walk(loop.body) for t in _tiles(n) if t.buffer == name]
        alone = all(i.rows == ONE for i in walk(loop.body) if isinstance(i, Instr) and any(t.buffer == name for t in _tiles(i)))
        return alone and loop.trips == self.buffers[name].rows and all(t.row == var(loop.var) for t in tiles)

    def single(self, n: Node) -> tuple[set[str], set[Written]]:
        self.at += 1
        used = {t.buffer for t in _tiles(n)} & self.buffers.keys()
        for name in used:
            self.note(name, self.at, self.at)
        return used, set(self.whole(n))

    def note(self, name: str, first: int, last: int) -> None:
        known = self.lives.get(name, (first, last))
        self.lives[name] = (min(first, known[0]), max(last, known[1]))

    def whole(self, n: Node) -> Iterator[Written]:
        """What an instruction writes all of, and reads nothing of."""
        if not isinstance(n, Instr) or not isinstance(n.dst, Tile) or n.when != ONE or n.op not in COPIES:
            return
        b = self.buffers.get(n.dst.buffer)
        if b is None or b.slots > 1 or n.dst.col != ZERO or sum(t.buffer == b.name for t in _tiles(n)) > 1:
            return
        rows, cols = n.rows.value or 0, n.cols.value or 0
        if n.dst.row == ZERO and rows * cols >= b.rows * b.cols:
            yield b.name, ""
        elif rows == 1 and cols == b.cols and n.dst.row.op == "var":
            yield b.name, n.dst.row.args[0]


def _tiles(n: Node) -> list[Tile]:
    """The windows of buffers that a node reads and writes."""
    if isinstance(n, Scalar):
        return list(n.value.elements())
    return [o for o in (*n.reads(), *n.writes()) if isinstance(o, Tile)] if isinstance(n, Instr) else []


def placed(
    buffers: Sequence[Buffer], nodes: Sequence[Node], grain: int, throughout: frozenset[str] = frozenset()
) -> list[Buffer]:
    """The buffers with addresses, the largest ones first, each as low as those that live meanwhile leave room. Those of
    `throughout` live all the time."""
    uses = _Uses({b.name: b for b in buffers})
    uses.walk(nodes)
    always = (0, uses.at)
    lives = {b.name: always if b.name in throughout else uses.lives.get(b.name, always) for b in buffers}
    done: dict[str, Buffer] = {}
    for b in sorted(buffers, key=lambda b: (-b.slot_bytes * b.slots, lives[b.name], b.name)):
        step = -(-b.slot_bytes // grain) * grain
        first, last = lives[b.name]
        others = [o for o in done.values() if lives[o.name][0] <= last and first <= lives[o.name][1]]
        starts = sorted({0, *(-(-end(o) // grain) * grain for o in others)})
        start = next(s for s in starts if all(s + step * b.slots <= min(o.addresses) or end(o) <= s for o in others))
        done[b.name] = replace(b, addresses=tuple(start + n * step for n in range(b.slots)))
    return [done[b.name] for b in buffers]


def end(b: Buffer) -> int:
    """The byte behind a buffer."""
    return max(b.addresses) + b.slot_bytes
