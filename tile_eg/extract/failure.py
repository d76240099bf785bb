"""Why a kernel has no legal schedule, in its author's terms: bytes, buffers, lines, and a size that would fit."""

from __future__ import annotations

from collections.abc import Iterator

from tile_eg.chips import Chip
from tile_eg.egraph import Graph
from tile_eg.errors import TileError
from tile_eg.extract.base import Extraction, Overflow, Refused
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.model import Model
from tile_eg.extract.pricing import Pricer
from tile_eg.extract.schedule import Storage
from tile_eg.extract.solver import Bounds, least_bounded
from tile_eg.ops.types import Level

ROLE = {
    Level.L1: "operands of matrix products",
    Level.UB: "what the vector cores work on",
    Level.L0C: "results of matrix products",
}
WORK = 5.0  # of a solve


def no_schedule(graph: Graph, chip: Chip, pricer: Pricer, found: Extraction) -> tuple[TileError, Level | None]:
    """The error for a graph without a legal schedule, and the memory that is too small for the one that would be best."""
    first = _without_bounds(graph, chip, pricer)
    overflows = [first] if first else [r.overflow for _, r in found.refused if r.overflow]
    if overflows:
        error = _too_large(overflows[0], chip)
        given = tuple(_given_depths(graph))
        error.notes += given
        error.help += f", or give fewer {'stages' if graph.values.stages else 'slots'}" if given else ""
        return error, Level(overflows[0].level)
    reasons = sorted({str(r) for _, r in found.refused})
    why = "; ".join(reasons[:3]) or "this is a limit of the rules; please report it"
    return TileError("no legal schedule was found", help=why, notes=tuple(_given_depths(graph))), None


def _given_depths(graph: Graph) -> Iterator[tuple[str, None]]:
    """That the author's own depths are part of what does not fit."""
    for buffer, place in sorted(graph.values.places.items()):
        if place.slots > 1:
            yield f"`{buffer}` is written with {place.slots} slots: each of them holds a tile", None
    for loop, stages in sorted(graph.values.stages.items()):
        if stages > 1:
            name = graph.values.variables[loop]
            yield f"loop {name} is written with stages={stages}: each tile that it loads has {stages} slots", None


def _without_bounds(graph: Graph, chip: Chip, pricer: Pricer) -> Overflow | None:
    """The overflow of the best schedule that ignores capacity."""
    model = Model(graph, chip, pricer, capacity=False)
    model.minimise_time()
    bounds = Bounds(model.cp, model.parts())
    for _ in range(8):
        values = least_bounded(model.cp, WORK, bounds).values
        if values is None:
            return None
        nodes = [n for n in graph.nodes if values[model.chosen[n.index].index]]
        try:
            build_schedule(graph, nodes, model.prices, chip)
        except Refused as r:
            if r.overflow:
                return r.overflow
            model.forbid(r.cut or nodes)
        else:
            return None
    return None


def _too_large(over: Overflow, chip: Chip) -> TileError:
    storages = [s for _, _, s in over.live if isinstance(s, Storage)]
    large = [s for s in storages if s.bytes * 50 >= over.bytes]
    small = over.bytes - sum(s.bytes for s in large)
    notes = tuple((f"{s.name}: {_size(s)}", s.span) for s in large)
    if small:
        count = len(storages) - len(large)
        notes += ((f"and {'a smaller one' if count == 1 else f'{count} smaller ones'}: {small:,} bytes", None),)
    largest = storages[0]
    what = ROLE[Level(over.level)]
    message = f"the tiles need {over.bytes:,} bytes of {over.level} at once; {chip.name} has {over.capacity:,} for {what}"
    if over.bytes <= over.capacity:
        message += ", in which no place was found for each of them as long as it is in use"
    return TileError(
        message,
        next((s.span for s in storages if s.span), None),
        help=_advice(over, largest),
        notes=notes,
    )


def _size(s: Storage) -> str:
    slots = f"{s.slots} x " if s.slots > 1 else ""
    half = " (half of it, on each vector core)" if s.share is not None else ""
    return f"{slots}{s.rows}x{s.cols} {s.dtype} = {s.bytes:,} bytes in {s.level}{half}"


def _advice(over: Overflow, largest: Storage) -> str:
    """Sizes of the largest tile at which everything would fit: fewer rows, or fewer of both."""
    spare = over.capacity - (over.bytes - largest.bytes)
    each = largest.dtype.bytes * largest.slots
    fits = [s for s in (_halved(largest, each, spare, only_rows=True), _halved(largest, each, spare, only_rows=False)) if s]
    if not fits or spare >= largest.bytes:
        return "make the tiles smaller"
    sizes = " or ".join(dict.fromkeys(f"{r * 2 if largest.share == 0 else r}x{c}" for r, c in fits))
    return f"make the tiles smaller: with '{largest.name}' at {sizes}, for example, they would fit"


def _halved(tile: Storage, each: int, spare: int, only_rows: bool) -> tuple[int, int] | None:
    rows, cols = tile.rows, tile.cols
    while rows * cols * each > spare:
        if rows > 8 and (only_rows or rows >= cols):
            rows //= 2
        elif cols > 16 and not only_rows:
            cols //= 2
        else:
            return None
    return rows, cols
