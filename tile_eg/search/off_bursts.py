"""Sizes that decide how far the rows of operands lie apart: at some of them rows begin off a burst, and a load cuts them.

A kernel is priced at sizes of which rows begin on bursts, as most are. Launches at others may take a kernel that copies all
operands that can be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from tile_eg.ir.sizes import sizes_in
from tile_eg.search.packed_operand import made_of
from tile_eg.search.result import Lowered
from tile_eg.transforms.packed_operand import SEPARATOR

PART = 8
"""The part of a burst that rows are taken to begin off one (assumed): 64 of 512 bytes; off by less they are cut into more
requests."""


def on_bursts(priced: Iterable[tuple[Lowered, Mapping[str, int]]], free: Collection[str]) -> dict[str, int]:
    """Of each of the sizes that decides how far rows of an operand lie apart, what it is a multiple of where these begin on
    bursts, by the kernels and the sizes that they are priced at. Nothing where no load is cut for that, or where a kernel is
    priced off bursts already, by a size that is not `free`: a named one."""
    out: dict[str, int] = {}
    for lowered, sizes in priced:
        own = _multiples(lowered)
        if any(name not in free and sizes[name] % by for name, by in own.items()):
            return {}
        out |= {name: max(by, out.get(name, 1)) for name, by in own.items()}
    return out


def _multiples(lowered: Lowered) -> dict[str, int]:
    """`on_bursts` of one kernel, whatever sizes it is priced at."""
    form, request = lowered.form, lowered.chip.paths["gm_to_l1_nd2nz"].request
    if form is None or form.values.sizes is None or not request:
        return {}
    tensors = {t for g in form.grids if g.op == "Strips" for t in g.payload[0].split(SEPARATOR)}
    bytes_of = {t.name: t.dtype.bytes for t in form.values.tensors if t.name in tensors}
    out: dict[str, int] = {}
    for tensor, _, stride in form.values.sizes.strides:
        if tensor in bytes_of:
            out |= {e.args[0]: max(request // bytes_of[tensor], out.get(e.args[0], 1)) for e in sizes_in(stride)}
    return out


def off_bursts(sizes: Mapping[str, int], bursts: Mapping[str, int]) -> dict[str, int]:
    """Sizes like these of which rows begin off bursts."""
    return {name: max(1, n - bursts[name] // PART) if name in bursts else n for name, n in sizes.items()}


def steps(bursts: Mapping[str, int]) -> dict[str, int]:
    """What sizes are multiples of that rows are as far off a burst at."""
    return {name: max(1, n // PART) for name, n in bursts.items()}


def all_copied(lowered: Lowered) -> Lowered | None:
    """The kernel that copies all operands that may be, whether that is faster where it is priced or not."""
    form = lowered.form
    assert form is not None
    node = max((g for g in form.grids if g.op == "Strips"), key=lambda g: len(g.payload[0]), default=None)
    if node is None:
        return None
    own = [c for c in form.candidates if c.schedule.parts is node] or made_of(node, form).candidates
    return replace(lowered, program=own[0].planned.program, ranked=tuple(own)) if own else None
