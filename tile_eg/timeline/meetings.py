"""Launches whose cores all meet (`SyncAll`): what is between two meetings is timed by itself, and the times add up."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tile_eg.chips import Chip
from tile_eg.ir.machine import SYNC_ALL_HANDOVERS
from tile_eg.ir.program import AIC, AIV, Node, Program, SyncAll
from tile_eg.timeline.cores import Handover, Span

if TYPE_CHECKING:
    from tile_eg.timeline.result import Timeline

Key = TypeVar("Key", bound=Hashable)


def phases(program: Program) -> list[Program]:
    """The program from each meeting of all cores to the next one."""
    streams = [_split(program.core(core)) for core in (AIC, AIV)]
    if max(map(len, streams)) == 1:
        return [program]
    return [replace(program, cube=cube, vector=vector) for cube, vector in zip(*streams, strict=True)]


def _split(nodes: Sequence[Node]) -> list[tuple[Node, ...]]:
    at = [-1, *(k for k, n in enumerate(nodes) if isinstance(n, SyncAll)), len(nodes)]
    return [tuple(nodes[a + 1 : b]) for a, b in zip(at, at[1:], strict=False)]


def meeting(chip: Chip) -> float:
    """Cycles from where the last core comes to a meeting of all until they go on."""
    return SYNC_ALL_HANDOVERS * chip.sync.cross_latency


def joined(parts: Sequence[Timeline], chip: Chip) -> Timeline:
    """One launch whose cores all meet behind each part but the last."""
    if len(parts) == 1:
        return parts[0]
    longest, cycles = max(parts, key=lambda p: p.cycles), sum(p.cycles for p in parts) + meeting(chip) * (len(parts) - 1)
    starts = [sum(p.block_cycles + meeting(chip) for p in parts[:k]) for k in range(len(parts))]
    launch = max(p.launch_us for p in parts)
    return replace(
        longest,
        cycles=cycles,
        microseconds=launch + chip.microseconds(cycles),
        launch_us=launch,
        block_cycles=starts[-1] + parts[-1].block_cycles,
        hbm_cycles=sum(p.hbm_cycles for p in parts),
        busy=_sum([p.busy for p in parts]),
        bytes=_sum([p.bytes for p in parts]),
        spans=tuple(_later_span(x, at) for p, at in zip(parts, starts, strict=True) for x in p.spans),
        handovers=tuple(_later(x, at) for p, at in zip(parts, starts, strict=True) for x in p.handovers),
        extrapolated=any(p.extrapolated for p in parts),
    )


def _sum(parts: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    return {key: sum(part.get(key, 0.0) for part in parts) for key in dict.fromkeys(key for part in parts for key in part)}


def _later_span(s: Span, by: float) -> Span:
    return replace(s, start=s.start + by, end=s.end + by, complete=s.complete + by)


def _later(h: Handover, by: float) -> Handover:
    return replace(h, set=h.set + by, taken=h.taken + by)
