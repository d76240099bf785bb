"""Numbers that both cores need, of a buffer in UB that was loaded from a tensor: `T.copy(Mask[b, :], m)`, then `if m[k] != 0:`.

The equality: where nothing else writes the buffer, and nothing the tensor, an element of one is an element of the other. The cube
core sees the tensor alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tile_eg.frontend.expert.nodes import On
from tile_eg.frontend.expert.streams import numbers
from tile_eg.ir.index import BLOCK, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.program import AIC, Buffer, Formula, Gm, Instr, Loop, Scalar, Tile, When
from tile_eg.ops.records import record


@record
class Loaded:
    """A buffer of one row that holds a window of a tensor."""

    source: Gm
    place: int


def read_by_both(statements: Sequence[On], buffers: Mapping[str, Buffer], stored: Collection[str]) -> list[On]:
    """The statements in which such numbers are read from the tensor, by both cores. `stored` are the tensors that are written."""
    wanted = _wanted(statements)
    if not any(_is_of_buffer(on, wanted) for on in _flat(statements)):
        return list(statements)
    loaded = _loaded(statements, buffers, stored)
    return [_changed(on, wanted, {n: x for n, x in loaded.items() if x.place < at}) for at, on in enumerate(statements)]


def _is_of_buffer(on: On, wanted: Collection[str]) -> bool:
    """Whether a statement keeps a number for the cube core that is made of elements of UB."""
    return isinstance(on.node, Scalar) and on.node.name in wanted and bool(on.node.value.elements())


def _flat(statements: Sequence[On]) -> Iterator[On]:
    for on in statements:
        yield on
        if isinstance(on.node, Loop | When):
            yield from _flat(on.node.body)  # type: ignore[arg-type]


def _wanted(statements: Sequence[On]) -> set[str]:
    """The numbers that what the cube core does needs, and those that they are made of."""
    found = set[str]()
    for on in _flat(statements):
        if on.core == AIC or (isinstance(on.node, Loop | When) and any(x.core == AIC for x in _flat(on.node.body))):  # type: ignore[arg-type]
            found |= numbers(on.node)
    kept = [on.node for on in _flat(statements) if isinstance(on.node, Scalar)]
    while more := {name for n in kept if n.name in found for name in numbers(n)} - found:
        found |= more
    return found


def _loaded(statements: Sequence[On], buffers: Mapping[str, Buffer], stored: Collection[str]) -> dict[str, Loaded]:
    """The buffers that one load at the kernel's own level fills, as the block says from where, and nothing else writes."""
    written = Counter(n.dst.buffer for on in _flat(statements) if isinstance(n := on.node, Instr) and isinstance(n.dst, Tile))
    found: dict[str, Loaded] = {}
    for at, on in enumerate(statements):
        n = on.node
        if not isinstance(n, Instr) or n.op != "gm_to_ub" or not isinstance(n.dst, Tile) or not isinstance(src := n.srcs[0], Gm):
            continue
        b = buffers.get(n.dst.buffer)
        whole = b is not None and n.dst == Tile(b.name) and b.rows == b.slots == 1 and n.cols.value == b.cols
        known = variables(src.offset) <= {BLOCK} and not elements_in(src.offset)
        if whole and known and written[n.dst.buffer] == 1 and src.tensor not in stored:
            found[n.dst.buffer] = Loaded(src, at)
    return found


def _changed(on: On, wanted: set[str], loaded: Mapping[str, Loaded]) -> On:
    n = on.node
    if isinstance(n, Loop | When):
        body = tuple(_changed(x, wanted, loaded) for x in n.body)  # type: ignore[arg-type]
        return replace(on, node=replace(n, body=body))  # type: ignore[arg-type]
    if not isinstance(n, Scalar) or not _is_of_buffer(on, wanted) or {t.buffer for t in n.value.elements()} - loaded.keys():
        return on
    return On(None, replace(n, value=_of_tensors(n.value, loaded)))


def _of_tensors(f: Formula, loaded: Mapping[str, Loaded]) -> Formula:
    def changed(x: Any) -> Any:
        if isinstance(x, Formula):
            return _of_tensors(x, loaded)
        if isinstance(x, Tile):
            src = loaded[x.buffer].source
            return replace(src, offset=src.offset + x.col)
        return x

    return replace(f, args=tuple(map(changed, f.args)))
