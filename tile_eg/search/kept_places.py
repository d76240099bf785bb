"""Where the buffers of a kept kernel lie in one memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from tile_eg.chips import Chip
from tile_eg.errors import TileError
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.machine import ALIGNMENT, REPEAT_BYTES
from tile_eg.ir.program import Buffer
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.report.text import size
from tile_eg.search import kept_lifetimes as lifetimes
from tile_eg.search.kept_memory import Life, lives, packed


@record
class Places:
    """Places for the buffers of a kernel in one memory of a chip."""

    kernel: KeptKernel
    level: Level
    chip: Chip

    def found(self) -> list[Buffer]:
        """The buffers one behind the other, those with an address where they are; what gemm_v0 takes comes last, or first where
        there is no room behind the others. Where that is too long, and the author asked for planned memory, buffers that hold
        nothing at the same time share it. TileError where they do not fit."""
        found = self._found() if self.own or self.results else []
        at = {b.name: b.addresses for b in found}
        return [*found, *(replace(b, addresses=at[self.views[b.name]]) for b in self.kernel.buffers if self._is_view(b))]

    def _found(self) -> list[Buffer]:
        for b in self.given:
            self._check_given(b)
        found = self._in_a_row()
        if end_of(found) > self.room and (self.kernel.in_order or self.kernel.planned):
            found = self._shared()
        elif end_of(found) > self.room and self.level is Level.UB and not self.results:
            found = self._scratch_shared(found)
        if end_of(found) > self.room:
            raise self._too_long(found)
        return found

    @cached_property
    def own(self) -> list[Buffer]:
        return [b for b in self.kernel.buffers if b.level is self.level and b.name not in self.begins and not self._is_view(b)]

    @cached_property
    def views(self) -> dict[str, str]:
        """The buffer of each view."""
        return dict(self.kernel.views)

    def _is_view(self, b: Buffer) -> bool:
        return b.level is self.level and b.name in self.views

    @cached_property
    def results(self) -> list[Buffer]:
        """What T.Parallel computes on its way; they share memory."""
        return [b for b in self.kernel.buffers if b.level is self.level and b.name in self.begins]

    @cached_property
    def begins(self) -> dict[str, int]:
        """Where each of these begins in the memory that they share."""
        return dict(self.kernel.shared)

    @cached_property
    def given(self) -> list[Buffer]:
        return [b for b in self.own if b.addresses]

    @cached_property
    def free(self) -> list[Buffer]:
        return [b for b in self.own if not b.addresses]

    @cached_property
    def room(self) -> int:
        """All of a memory: what the framework keeps of it is the author's to leave, where he decides."""
        memory = self.chip.memories[self.level]
        return memory.usable if self.kernel.in_order else memory.bytes

    @property
    def grain(self) -> int:
        return ALIGNMENT[self.level]

    def _in_a_row(self) -> list[Buffer]:
        out, at = list(self.given), end_of(self.given)
        for b in self.free:
            step, start = (-(-n // self.grain) * self.grain for n in (b.slot_bytes, at))
            beside = b.name in self.kernel.beside and self.level is not Level.UB
            if beside and start + step * b.slots > self.room:
                start = 0
            out.append(replace(b, addresses=tuple(start + n * step for n in range(b.slots))))
            at = at if beside else max(at, start + step * b.slots)
        return [*out, *self._results_behind(at)]

    def _shared(self) -> list[Buffer]:
        first = end_of(self.given)
        if self.kernel.in_order:
            nodes = (*self.kernel.cube, *self.kernel.vector)
            rest = lifetimes.placed(self.free, nodes, self.grain, frozenset(self.views.values()))
        else:
            rest = packed(self.free, self._lives(), first, self.grain)
        return [*self.given, *rest, *self._results_behind(max(first, end_of(rest)))]

    def _results_behind(self, at: int) -> list[Buffer]:
        behind = -(-at // REPEAT_BYTES) * REPEAT_BYTES
        return [replace(b, addresses=(behind + self.begins[b.name],)) for b in self.results]

    def _scratch_shared(self, found: Sequence[Buffer]) -> list[Buffer]:
        """The buffers of UB, those behind the author's that instructions take for themselves in one place where none needs two of
        them. Vector instructions that meet there get their barrier like any others."""
        own = [b for b in found if b.name in self.kernel.beside]
        kept = [b for b in found if b.name not in self.kernel.beside]
        return [*kept, *packed([replace(b, addresses=()) for b in own], self._lives(), end_of(kept), self.grain)]

    def _lives(self) -> dict[str, Life]:
        """When each buffer holds something, in the stream of its own core; one that has views does so throughout."""
        buffers = {b.name: b for b in self.kernel.buffers}
        found = {**lives(self.kernel.cube, buffers), **lives(self.kernel.vector, buffers)}
        return {name: life for name, life in found.items() if name not in self.views.values()}

    def _check_given(self, b: Buffer) -> None:
        at, place = b.addresses[0], dict(self.kernel.places).get(b.name)
        if at % self.grain:
            raise TileError(f"{b.name} begins at byte {at}, and in {b.level} that is a multiple of {self.grain}", place)
        if end_of([b]) > self.room:
            raise TileError(f"{b.name} ends at byte {end_of([b])}, and {b.level} has {self.room}", place)

    def _too_long(self, found: Sequence[Buffer]) -> TileError:
        need, largest = end_of(found), max(found, key=lambda b: b.slot_bytes * b.slots)
        rows = ", ".join(f"{b.name} {size(b.slot_bytes * b.slots)}" for b in found if b.name not in self.begins)
        behind = [b.addresses[0] - self.begins[b.name] for b in found if b.name in self.begins]
        rows += f", and results of T.Parallel on the way {size(need - behind[0])}" if behind else ""
        return TileError(
            f"the buffers in {self.level} take {need} bytes, and {self.chip.name} has {self.room}",
            dict(self.kernel.places).get(largest.name),
            notes=((f"in {self.level} lie {rows}", None),), help="use smaller blocks, let buffers share memory where "
            "they can (pass_configs: TL_ASCEND_MEMORY_PLANNING), or give them one address: T.annotate_address({a: 0, b: 0})",
        )  # fmt: skip


def end_of(buffers: Sequence[Buffer]) -> int:
    """Where the last of some buffers ends; 0 where there are none."""
    return max((max(b.addresses) + b.slot_bytes for b in buffers), default=0)
