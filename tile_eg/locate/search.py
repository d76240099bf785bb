"""From outputs that are wrong to the first value that is: which tile of the grid, and what in it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from math import prod
from typing import Any, Protocol

import numpy as np

from tile_eg.errors import Span
from tile_eg.extract.schedule import Schedule
from tile_eg.ir.index import BLOCK, EACH, READ, evaluate, variables
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Kernel, assigns
from tile_eg.ir.program import AIV, Program
from tile_eg.ir.reference_bounds import Expected
from tile_eg.ir.reference_terms import Meaning, Version
from tile_eg.ir.values import Term, Values, first_version
from tile_eg.locate.difference import Difference, Located
from tile_eg.locate.inside import Comparer, Wrong
from tile_eg.locate.stores import Stored, Stores, stores_of
from tile_eg.locate.watches import Watched, named, with_watches
from tile_eg.ops.records import record
from tile_eg.report.compare import wrong_elements
from tile_eg.simulator.sample import can_be_sampled
from tile_eg.simulator.watch import ALL, PLACES, Record, Watch

Arrays = Mapping[str, np.ndarray]
NOWHERE = -1, -1
"""The tile and the block of an element that no store of the run has written."""
MOST_TILES = 8
"""Tiles of the grid with wrong outputs that are looked into."""
TOO_MUCH = "what is computed in this tile is too much to be kept: values behind the first 1000 MiB are not compared"
OF_EACH = "each vector core has a tile of its own here: what is stored is compared, and not what is computed for it"


class Run(Protocol):
    """What a run gave: its outputs, and masks of what it did not compute of them."""

    @property
    def outputs(self) -> Arrays: ...

    @property
    def not_computed(self) -> Arrays: ...


class Planned(Protocol):
    """A program that can be run."""

    @property
    def program(self) -> Program: ...

    def with_program(self, program: Program) -> Planned:
        """The same launch of another program."""

    def run(
        self, arrays: Arrays, *, strict: bool, memory: int = ..., seconds: float = ..., confined: bool = ...,
        blocks: Sequence[int] = ..., watch: Watch | None = ...,
    ) -> Run: ...  # fmt: skip


@record
class Subject:
    """A planned kernel, and the schedule that its program is of."""

    kernel: Kernel
    planned: Planned
    schedule: Schedule

    @property
    def phases(self) -> list[Values]:
        """What each phase of the launch computes."""
        return [s.graph.values for s in self.schedule.phases]


def located(
    subject: Subject, arrays: Arrays, run: Run, meant: Mapping[str, Expected], among: str, how: Mapping[str, Any]
) -> Located:
    """The first value of a run that differs from the kernel's meaning, inside the kernel where that can be seen.

    `run` is the kernel's on these arrays, `meant` its outputs' meaning, `how` arguments of `Planned.run`. Tiles of the grid are
    looked into in its order, as far as their outputs are wrong; in a tile, values in the order in which they were computed.
    """
    wrong = _wrong(run, meant)
    source = subject.kernel.source
    if not wrong:
        return Located(None, among, source=source)
    stores = stores_in(subject.planned, arrays, how)
    each = any(v.tile_each for v in subject.phases)
    remarks = [OF_EACH] * each
    for tile in () if each else stores.tiles_with(wrong)[:MOST_TILES]:
        comparers, stopped = compared(subject, arrays, tile, stores, how)
        remarks = [TOO_MUCH] * stopped
        for values, comparer in comparers:
            if comparer.first is not None:
                first = _difference(subject.kernel, values, comparer.first, tile, arrays)
                return Located(first, among, comparer.before, remarks, source)
    first = _at_the_store(subject.kernel, stores, wrong, run, meant, subject.phases[-1].blocks)
    return Located(first, among, 0, remarks, source)


def located_outside(
    planned: Planned, arrays: Arrays, run: Run, expected: Mapping[str, Expected], among: str, how: Mapping[str, Any],
    source: str = "", remarks: Sequence[str] = (),
) -> Located:  # fmt: skip
    """The first element of a run's outputs that differs from what is expected, with the tile of the grid and the store."""
    wrong = _wrong(run, expected)
    if not wrong:
        return Located(None, among, remarks=remarks, source=source)
    stores = stores_in(planned, arrays, how)
    form = getattr(planned, "form", None)
    first = _at_the_store(getattr(planned, "kernel", None), stores, wrong, run, expected, form.values.blocks if form else 0)
    return Located(first, among, 0, remarks, source)


def _wrong(run: Run, meant: Mapping[str, Expected]) -> dict[str, np.ndarray]:
    """Masks of the wrong elements, of outputs that have some."""
    none = np.False_
    masks = {name: wrong_elements(run.outputs[name], e) & ~run.not_computed.get(name, none) for name, e in meant.items()}
    return {name: mask for name, mask in masks.items() if mask.any()}


def _watching(planned: Planned, results: bool) -> tuple[Planned, list[Watched]]:
    program, watched = with_watches(planned.program, results)
    return planned.with_program(program), watched


def _run(planned: Planned, arrays: Arrays, how: Mapping[str, Any], watch: Watch, blocks: Sequence[int] = ()) -> list[Record]:
    """A run in the order of the program; what it prints was printed before."""
    given = {name: how[name] for name in ("memory", "seconds", "confined") if name in how}
    with redirect_stdout(io.StringIO()):
        planned.run(arrays, strict=False, watch=watch, blocks=blocks, **given)
    return list(watch.records())


def stores_in(planned: Planned, arrays: Arrays, how: Mapping[str, Any]) -> Stores:
    """Which store of a run came last for each element of the outputs."""
    text, watched = _watching(planned, results=False)
    with Watch(PLACES) as watch:
        records = _run(text, arrays, how, watch, how.get("blocks", ()))
    return stores_of(planned.program, watched, records)


def compared(
    subject: Subject, arrays: Arrays, tile: int, stores: Stores, how: Mapping[str, Any]
) -> tuple[list[tuple[Values, Comparer]], bool]:
    """The values of one tile of the grid, compared, by the phases of the launch; and whether they were too many.

    Where one phase goes on with what all blocks of the one before have computed, all of that is compared first.
    """
    phases = subject.phases
    text, watched = _watching(subject.planned, results=True)
    out: list[tuple[Values, Comparer]] = []
    with Watch(tile if len(phases) == 1 else ALL) as watch:
        blocks = _alone(subject.planned, tile, stores) if len(phases) == 1 else ()
        records = _run(text, arrays, how, watch, blocks)
        shared: dict[str, Version] = {}
        for n, values in enumerate(phases):
            meaning = Meaning(values, subject.kernel, arrays, shared)
            last = n == len(phases) - 1
            for each in [tile] if last else range(values.blocks):
                comparer = Comparer(watch, watched, records, meaning, each)
                if comparer.records or not last:
                    meaning.observe(each, comparer)
                out.append((values, comparer))
                if comparer.first is not None:
                    return out, watch.stopped
            shared |= meaning.stored
        return out, watch.stopped


def _alone(planned: Planned, tile: int, stores: Stores) -> tuple[int, ...]:
    """The block of the program that does a tile, where it can run without the others."""
    p = planned.program
    each = 2 if p.halves and p.kernel_type == "AIV_ONLY" else 1
    blocks = tuple({s.record.block // each for s in stores.each if s.tile == tile})
    return blocks if can_be_sampled(p) else ()


def _difference(kernel: Kernel, values: Values, wrong: Wrong, tile: int, arrays: Arrays) -> Difference:
    term, (i, j) = wrong.watched.held.term, wrong.first
    assert term is not None and wrong.watched.buffer is not None
    row, col = wrong.window.row + i, wrong.window.col + j
    name, _ = values.buffers.get(term, (wrong.watched.buffer.name, ""))
    span = values.spans.get(term) or wrong.watched.instr.span
    return Difference(
        name, (row, col) if term.rows > 1 else (col,), float(wrong.got[i, j]), float(wrong.want.value[i, j]),
        float(wrong.want.allowed[i, j]), int(wrong.mask.sum()), wrong.mask.size, tile, wrong.record.block,
        _point(kernel, values.blocks, tile), dict(wrong.trips), span,
        shape=f"{term.dtype}[{term.rows}, {term.cols}]", place=_loaded_from(values, term, wrong, tile, (row, col), arrays),
        buffer=wrong.watched.buffer.name, core=_core(wrong.watched, wrong.record), **named(wrong.watched),
    )  # fmt: skip


def _loaded_from(
    values: Values, term: Term, wrong: Wrong, tile: int, at: tuple[int, int], arrays: Arrays
) -> tuple[str, tuple[int, ...]] | None:
    """The element of a tensor that a load brings."""
    if term.op != "load" or (elements_in(term.args[1]) and not arrays):
        return None
    version, offset, stride = term.args
    tensor = first_version(version).args[0]
    env: dict[str, Any] = {BLOCK: tile, **dict(wrong.trips), EACH: at[0], READ: lambda name, n: int(arrays[name].reshape(-1)[n])}
    place = evaluate(offset, env) + at[1] + (0 if EACH in variables(offset) else stride * at[0])
    if not 0 <= place < prod(tensor.shape):
        return None
    return tensor.name, tuple(int(n) for n in np.unravel_index(place, tensor.shape))


def _at_the_store(
    kernel: object, stores: Stores, wrong: Arrays, run: Run, meant: Mapping[str, Expected], total: int
) -> Difference:
    """The first wrong element of the outputs: in the first of the `total` tiles that stored one, else the first of all."""
    found = next((f for tile in stores.tiles_with(wrong) if (f := stores.first_of(wrong, tile))), None)
    if found is None:
        name = next(iter(wrong))
        return _element((name, int(np.argmax(wrong[name]))), wrong, run, meant, NOWHERE)
    stored, *element = found
    first = _element(element, wrong, run, meant, (stored.tile, stored.record.block))
    return _stored_difference(kernel, stored, first, total)


def _element(
    element: Sequence[Any], wrong: Arrays, run: Run, meant: Mapping[str, Expected], where: tuple[int, int]
) -> Difference:
    name, place = element
    mask = wrong[name]
    got, want, allowed = (float(a.reshape(-1)[place]) for a in (run.outputs[name], meant[name].value, meant[name].allowed))
    index = tuple(int(n) for n in np.unravel_index(place, mask.shape))
    return Difference(name, index, got, want, allowed, int(mask.sum()), mask.size, *where, stored=True)


def _stored_difference(kernel: object, stored: Stored, first: Difference, total: int) -> Difference:
    """The difference with what is known of the store that left it, in one of `total` tiles."""
    grid = _point(kernel, total, stored.tile) if isinstance(kernel, Kernel) else {}
    span = _store_of(kernel, first.name) if isinstance(kernel, Kernel) else None
    where = {"grid": grid, "trips": stored.trips, "span": span or stored.watched.instr.span}
    return replace(first, core=_core(stored.watched, stored.record), **where, **named(stored.watched))  # type: ignore[arg-type]


def _store_of(kernel: Kernel, tensor: str) -> Span | None:
    """The only statement that stores to a tensor; None where there are several."""
    found = [s.span or s.target.span for s in assigns(kernel.body) if s.target.name == tensor]
    return found[0] if len(found) == 1 else None


def _point(kernel: Kernel, tiles: int, tile: int) -> dict[str, int]:
    """The grid's variables in a tile; none where the form of the kernel has other tiles than its source."""
    if prod(e for _, e in kernel.grid) != tiles:
        return {}
    out = {}
    for name, extent in kernel.grid:
        tile, out[name] = divmod(tile, extent)
    return out


def _core(watched: Watched, record: Record) -> str:
    return f"vector core {max(0, record.core - 1)}" if watched.instr.core == AIV else "the cube core"
