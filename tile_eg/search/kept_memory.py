"""Addresses for the buffers of a kept kernel that share memory: those that do not hold a value at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tile_eg.ir.index import ONE, ZERO
from tile_eg.ir.program import Buffer, Instr, Node, Scalar, Tile, When, While
from tile_eg.ops.records import record


@record
class Life:
    """The first and the last instruction that touch a buffer, by their place in the stream. `made`: the first one writes all of
    it, so that nothing is carried from trip to trip of a loop around it."""

    first: int
    last: int
    made: bool

    def meets(self, other: Life) -> bool:
        return self.first <= other.last and other.first <= self.last


def lives(nodes: Sequence[Node], buffers: Mapping[str, Buffer]) -> dict[str, Life]:
    """When each buffer holds something that is read later."""
    found: dict[str, Life] = {}
    _walk(nodes, buffers, found, 0)
    return found


def _walk(nodes: Sequence[Node], buffers: Mapping[str, Buffer], found: dict[str, Life], at: int) -> int:
    for n in nodes:
        body = getattr(n, "body", None)
        if body is not None:
            inside: dict[str, Life] = {}
            end = _walk(body, buffers, inside, at)
            repeats = isinstance(n, While) or not isinstance(n, When)
            for name, life in inside.items():
                whole = Life(at, end, False) if repeats and not life.made else replace(life, made=life.made and repeats)
                _join(found, name, whole)
            at = end + 1
        elif isinstance(n, Scalar):
            for t in n.value.elements():
                _join(found, t.buffer, Life(at, at, False))
            at += 1
        elif isinstance(n, Instr):
            for name, made in _touched(n, buffers):
                _join(found, name, Life(at, at, made))
            at += 1
    return at


def _join(found: dict[str, Life], name: str, life: Life) -> None:
    old = found.get(name)
    found[name] = life if old is None else Life(min(old.first, life.first), max(old.last, life.last), old.made)


def _touched(i: Instr, buffers: Mapping[str, Buffer]) -> Iterator[tuple[str, bool]]:
    """The buffers of an instruction, and whether it makes all of each anew; those that it reads come first."""
    for o in i.reads():
        if isinstance(o, Tile):
            yield o.buffer, False
    for o in i.writes():
        if isinstance(o, Tile):
            yield o.buffer, o is i.scratch or _all_of(i, o, buffers.get(o.buffer))


def _all_of(i: Instr, o: Tile, b: Buffer | None) -> bool:
    if b is None or b.slots != 1 or (o.row, o.col) != (ZERO, ZERO) or i.when != ONE:
        return False
    if i.op == "l1_zero":
        return i.form != "window"
    if i.op.startswith(("vrow", "vcol")) or i.op in ("vbrcb", "store_element"):
        return False
    rows, cols = i.rows.value, i.cols.value
    return (rows, cols) in ((b.rows, b.cols), (1, b.rows * b.cols))


def packed(buffers: Sequence[Buffer], found: Mapping[str, Life], start: int, grain: int) -> list[Buffer]:
    """The buffers from `start` on, the largest first, each at the lowest place that none has whose life meets its own."""
    out: list[Buffer] = []
    for b in sorted(buffers, key=lambda b: (-b.slot_bytes * b.slots, b.name)):
        step = -(-b.slot_bytes // grain) * grain
        size, at = step * b.slots, -(-start // grain) * grain
        others = [o for o in out if o.name not in found or b.name not in found or found[o.name].meets(found[b.name])]
        for o in sorted(others, key=lambda o: o.addresses[0]):
            low, high = o.addresses[0], -(-(o.addresses[-1] + o.slot_bytes) // grain) * grain
            if at < high and low < at + size:
                at = high
        out.append(replace(b, addresses=tuple(at + n * step for n in range(b.slots))))
    names = [b.name for b in buffers]
    return sorted(out, key=lambda b: names.index(b.name))
