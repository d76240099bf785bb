"""Edges between the cube and the vector cores: a full and a free counter for each buffer in which they meet.

That is a buffer in the workspace; on architecture 3510 also one in UB that the Fixpipe fills, or in L1 that a vector core fills.

The j-th time that one core fills a slot answers the j-th time that the other core reads one, so both ends are lifted to items
that run equally often. A free edge is a candidate only: where the streams' order already implies it, it is left out, since a
cross-core wait stops all issue behind it.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Mapping

from tile_eg.emit.sync.edges import Stream
from tile_eg.emit.sync.needed import Pair
from tile_eg.emit.sync.trace import Access, Path, Site, SyncError
from tile_eg.ir.program import AIC, AIV, Loop, Tile
from tile_eg.ops.records import record
from tile_eg.ops.types import Level

FILLS = {Level.UB: AIC, Level.L1: AIV}  # who fills a buffer on chip in which the cores meet; the other may overwrite it then


@record
class CrossEdge:
    """A counter: set by `pipe` of core `src` at one site, waited for by the other core. `ahead` sets stand before everything.

    Edges with one number as `counter` share theirs (None: an edge has its own).
    """

    buffer: str
    free: bool
    src: str
    pipe: str
    set_at: Site
    wait_at: Site
    ahead: int = 0
    counter: int | None = None

    @property
    def dst(self) -> str:
        return AIV if self.src == AIC else AIC



@record
class _Side:
    """How one core uses a workspace buffer: the items, and for each of their visits the instances inside."""

    stream: Stream
    items: tuple[Path, ...]
    visits: tuple[tuple[int, ...], ...]

    @property
    def pipes(self) -> tuple[str, ...]:
        instances = self.stream.trace.instances
        return tuple(dict.fromkeys(instances[n].pipe for visit in self.visits for n in visit))


def _accesses(s: Stream, named: frozenset[str]) -> dict[str, dict[int, bool]]:
    """By buffer, of those that are named, the instances that touch it, in program order, and whether each writes."""
    out: defaultdict[str, dict[int, bool]] = defaultdict(dict)
    apart = {path for path, names in _by_path(s).items() if named.isdisjoint(names)}
    for n, i in enumerate(s.trace.instances):
        if i.path in apart:
            continue
        for a in i.accesses:
            held = s.layout.held.get(a.buffer, a.buffer)
            if held in named:
                out[held][n] = a.write or out[held].get(n, False)
    return out


def _by_path(s: Stream) -> dict[Path, frozenset[str]]:
    """The buffers that each instruction touches, by its place."""
    held, touched = s.layout.held, {i.path: i.instr for i in s.trace.instances}
    tiles = {path: (o.buffer for o in (*i.reads(), *i.writes()) if isinstance(o, Tile)) for path, i in touched.items()}
    return {path: frozenset(held.get(b, b) for b in found) for path, found in tiles.items()}


def _chain(s: Stream, path: Path) -> dict[int, Path]:
    """How often it runs -> the smallest item around `path` that runs so often; nothing inside a guard of unknown outcome."""
    hidden = s.hidden(path)
    out: dict[int, Path] = {}
    for depth in range(1, len(path) + 1):
        out[len(s.visits[("pre", path[:depth])])] = path[:depth]
        if hidden[depth - 1]:
            break
    return out


def _counts(s: Stream, paths: list[Path]) -> set[int]:
    return set.intersection(*(set(_chain(s, p)) for p in paths))


def _side(s: Stream, instances: list[int], count: int) -> _Side:
    paths = list(dict.fromkeys(s.trace.instances[n].path for n in instances))
    items = tuple(dict.fromkeys(_chain(s, p)[count] for p in paths))
    begins = {item: [at for at, _ in s.visits["pre", item]] for item in items}
    around = {path: next(begins[i] for i in items if path[: len(i)] == i) for path in paths}
    visits: list[list[int]] = [[] for _ in range(count)]
    for n in instances:
        visits[bisect(around[s.trace.instances[n].path], s.runs[n]) - 1].append(n)
    return _Side(s, items, tuple(map(tuple, visits)))


def _first(side: _Side) -> Path:
    return min(side.items, key=lambda i: side.stream.visits[("pre", i)][0][0])


def _last(side: _Side) -> Path:
    return max(side.items, key=lambda i: side.stream.visits[("post", i)][-1][0])


def _cells(side: _Side, visit: int, buffer: str) -> frozenset:
    held, instances = side.stream.layout.held, side.stream.trace.instances
    return frozenset(a.cell for n in side.visits[visit] for a in instances[n].accesses if held.get(a.buffer) == buffer)


def _pairs(writer: _Side, reader: _Side, buffer: str) -> list[Pair]:
    """What must be ordered: the j-th fill before the j-th reads, and those before the next fill of the same slot."""
    w, r = writer.stream.core, reader.stream.core
    out: list[Pair] = []
    held: dict[object, int] = {}
    for j in range(len(writer.visits)):
        cells = _cells(writer, j, buffer)
        if not _cells(reader, j, buffer) <= cells:
            raise SyncError(f"the {r} core's use number {j} of {buffer} reads a slot that the {w} core has not filled then")
        if _overwritten(writer, j, buffer):
            raise SyncError(f"the {_named(w)} fills a slot of {buffer} again before the {_named(r)} reads it")
        out += [((w, a), (r, b)) for a in writer.visits[j] for b in reader.visits[j]]
        for k in sorted({held[c] for c in cells if c in held}):
            out += [((r, b), (w, a)) for b in reader.visits[k] for a in writer.visits[j]]
        held |= dict.fromkeys(cells, j)
    return out


def _named(core: str) -> str:
    return "cube core" if core == AIC else "vector core"


def _overwritten(side: _Side, visit: int, buffer: str) -> bool:
    """Whether an instruction writes over what it wrote in an earlier trip of the same visit, and nobody has read: of both, only
    the second would be handed over."""
    held, instances = side.stream.layout.held, side.stream.trace.instances
    unread: dict[tuple, list[Access]] = {}
    for n in side.visits[visit]:
        for a in (a for a in instances[n].accesses if held.get(a.buffer) == buffer):
            if not a.write:
                unread = {key: of for key, of in unread.items() if key[0] != a.cell}
            elif any(a.window.covers(b.window) for b in unread.setdefault((a.cell, instances[n].path), [])):
                return True
            else:
                unread[a.cell, instances[n].path].append(a)
    return False


def _edges(writer: _Side, reader: _Side, buffer: str, slots: int) -> list[CrossEdge]:
    w, r = writer.stream.core, reader.stream.core
    full = CrossEdge(buffer, False, w, writer.pipes[0], ("post", _last(writer)), ("pre", _first(reader)))
    if len(writer.visits) == 1 or not any(isinstance(n, Loop) for n in writer.stream.nodes):
        return [full]
    ahead = min(slots, len(writer.visits))
    ends = ("post", _last(reader)), ("pre", _first(writer))
    return [full, *(CrossEdge(buffer, True, r, pipe, *ends, ahead) for pipe in reader.pipes)]


def _finest(w: Stream, r: Stream, uses: Mapping[str, dict[int, bool]], common: set[int]) -> tuple[_Side, _Side]:
    """Both sides at the finest count at which every visit touches the buffer: a guard that is passed by is no visit."""
    for count in sorted(common, reverse=True):
        sides = tuple(_side(s, list(uses[s.core]), count) for s in (w, r))
        if all(v for side in sides for v in side.visits):
            break
    return sides[0], sides[1]


def cross_edges(streams: Mapping[str, Stream]) -> tuple[list[CrossEdge], list[Pair]]:
    """Candidates for every workspace buffer through which the cores meet, and what they have to order."""
    edges: list[CrossEdge] = []
    pairs: list[Pair] = []
    if len(streams) < 2:
        return edges, pairs
    layout = streams[AIC].layout
    both = frozenset[str].intersection(*(frozenset[str]().union(*_by_path(s).values()) for s in streams.values()))
    touched = {core: _accesses(s, both) for core, s in streams.items()}
    for b in layout.program.buffers:
        if not all(b.name in of for of in touched.values()):
            continue
        uses = {core: of[b.name] for core, of in touched.items()}
        writers = [FILLS[b.level]] if b.level in FILLS else [core for core, u in uses.items() if any(u.values())]
        if len(writers) != 1:
            raise SyncError(f"both cores write the workspace buffer {b.name}")
        w, r = streams[writers[0]], streams[AIV if writers[0] == AIC else AIC]
        paths = {s.core: [s.trace.instances[n].path for n in uses[s.core]] for s in (w, r)}
        common = _counts(w, list(dict.fromkeys(paths[w.core]))) & _counts(r, list(dict.fromkeys(paths[r.core])))
        if not common:
            raise SyncError(f"the two cores use the workspace buffer {b.name} a different number of times")
        writer, reader = _finest(w, r, uses, common)
        pairs += _pairs(writer, reader, b.name)
        edges += _edges(writer, reader, b.name, b.slots)
    _refuse_shared_tensors(streams)
    return edges, pairs


def _refuse_shared_tensors(streams: Mapping[str, Stream]) -> None:
    touched: dict[str, dict[str, bool]] = {}
    for core, s in streams.items():
        for accesses in {id(i.accesses): i.accesses for i in s.trace.instances}.values():
            for a in accesses:
                if a.cell[0] == "GM":
                    both = touched.setdefault(a.cell[1], {})
                    both[core] = both.get(core, False) or a.write
    for tensor, cores in touched.items():
        if len(cores) == 2:
            raise SyncError(f"tensor {tensor} is written by one core and touched by the other: only the workspace may be shared")
