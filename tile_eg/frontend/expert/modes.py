"""Which sets a wait between cores is for: T.wait_cross_flag names a flag, and the sets of that flag say which cores it joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile_eg.errors import Span, TileError
from tile_eg.ir.index import Interval, bounds, wrap
from tile_eg.ir.program import CrossSet, CrossWait, Loop, Node, When, walk

BETWEEN_KINDS = 2


def with_modes(nodes: tuple[Node, ...], ranges: Mapping[str, Interval]) -> tuple[Node, ...]:
    """The stream of a core, its waits with the mode of what they wait for.

    A flag that the stream itself sets among cores of its kind (modes 0 and 1) comes from there; any other one from the other kind
    of core. TileError for one flag with two modes.
    """
    alike: dict[int, tuple[int, Span | None]] = {}
    sets = [n for n in walk(nodes) if isinstance(n, CrossSet) and n.mode != BETWEEN_KINDS]
    for n in sets:
        low, high = bounds(wrap(n.id), ranges)
        for number in range(low, high + 1):
            mode, place = alike.setdefault(number, (n.mode, n.span))
            if mode != n.mode:
                raise TileError(f"flag {number} is set in mode {n.mode} here, and in mode {mode} before", n.span,
                                notes=(("set here", place),), help="take another number for one of them")  # fmt: skip
    return _waiting(nodes, {number: mode for number, (mode, _) in alike.items()}, ranges) if sets else nodes


def _waiting(nodes: Sequence[Node], alike: Mapping[int, int], ranges: Mapping[str, Interval]) -> tuple[Node, ...]:
    out: list[Node] = []
    for n in nodes:
        if isinstance(n, Loop | When):
            out.append(replace(n, body=_waiting(n.body, alike, ranges)))
        elif isinstance(n, CrossWait):
            low, high = bounds(wrap(n.id), ranges)
            modes = {alike.get(number, BETWEEN_KINDS) for number in range(low, high + 1)}
            if len(modes) > 1:
                raise TileError(f"flags {low} to {high}, one of which this waits for, are set in modes that differ", n.span)
            out.append(replace(n, mode=modes.pop()))
        else:
            out.append(n)
    return tuple(out)
