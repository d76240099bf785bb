"""Words of a kernel that is kept for instructions whose masks, repeats and strides the author writes (`ops/repeats.py`)."""

from __future__ import annotations

from functools import partial
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.expert.vectors import ub
from tile_eg.frontend.python.words import known
from tile_eg.ir import index as ix
from tile_eg.ir.machine import REPEAT_BYTES
from tile_eg.ops.repeats import ORDERS, REPEATED, Repeated


def _repeated(entry: Repeated, r: ExpertReader, span: Span, dst: Any, src: Any, *rest: Any) -> None:
    to, sources = ub(r, dst, span), [ub(r, src, span)]
    arguments = list(rest)
    if entry.second is not None:
        sources.append(ub(r, arguments.pop(0), span))
        if sources[1].dtype != entry.second:
            raise TileError(f"the offsets are of {entry.second}, not of {sources[1].dtype}", span)
    order = arguments.pop() if entry.ordered else ""
    if entry.ordered and order not in ORDERS:
        raise TileError(f"there is no order {order!r}", span, help="it is one of " + ", ".join(ORDERS))
    if sources[0].dtype not in entry.types or to.dtype != sources[0].dtype:
        takes = ", ".join(map(str, entry.types))
        raise TileError(f"T.tile.{entry.word} takes {takes} in both buffers, not {sources[0].dtype} and {to.dtype}", span)
    numbers = _numbers(entry, arguments, REPEAT_BYTES // to.dtype.bytes, span)
    times = dict(zip((n for n, _ in entry.limits), numbers, strict=True))[_times(entry)]
    worked = ix.const(times * REPEAT_BYTES // to.dtype.bytes)
    r.instr(entry.instruction, to.operand, *(s.operand for s in sources), cols=worked, steps=numbers, mode=order, span=span)


def _times(entry: Repeated) -> str:
    """What its number of repeats is called."""
    return next(name for name, _ in entry.limits if name.startswith("repeat"))


def _numbers(entry: Repeated, values: list[Any], lanes: int, span: Span) -> tuple[int, ...]:
    """TileError for a number that its field does not hold."""
    found = []
    for (name, most), value in zip(entry.limits, values, strict=True):
        n, most = known(value, name, span), lanes if name == "mask" else most
        if not (name == "mask") <= n <= most:
            raise TileError(f"{name} is {n}, and its field holds {int(name == 'mask')} to {most}", span)
        found.append(n)
    return tuple(found)


WORDS = {f"tile.{word}": partial(_repeated, entry) for word, entry in REPEATED.items()}
