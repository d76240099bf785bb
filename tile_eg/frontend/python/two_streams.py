"""A kernel whose author wrote the cube core's statements and the vector cores' as two streams, in an order in which all is there.

The equality: each kind of core does its own statements in their order, and waits for what the other one hands it. So every
order of all statements that keeps these two, with each load behind its store and each store behind the loads of what was there
before, gives the same values. Two loops, one of either kind of core, that hand something to each other trip by trip are one loop.
How many tiles a loop loads ahead is then the search's to find: `num_stages` was said of the streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tile_eg.frontend.checks.definite import Definite
from tile_eg.frontend.python.temporaries import uses_of
from tile_eg.frontend.python.tile_loops import substituted
from tile_eg.frontend.python.values import nodes, regions_in
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.kernel import Alloc, Assign, Cast, For, If, Kernel, MatMul, Parallel, Region, Stmt
from tile_eg.ops.records import record

CUBE, VECTOR = "cube", "vector"


class _NoOrder(Exception):
    """There is no order that keeps both streams, or it is not known which is meant."""


def in_one_order(kernel: Kernel) -> Kernel | None:
    """The kernel with its statements in an order in which all that is read was written; None where there is none, or where its
    statements stand in such an order."""
    if not _reads_first(kernel):
        return None
    try:
        made = replace(kernel, body=_Level(_CubeBuffers.of(kernel.body)).body(kernel.body, frozenset()))
    except _NoOrder:
        return None
    return None if _reads_first(made) else made


def _reads_first(kernel: Kernel) -> bool:
    """Whether a buffer or a workspace is read before it is written."""
    known: dict[str, object] = {s.name: s for s in nodes(kernel.body) if isinstance(s, Alloc)}
    known |= {t.name: t for t in kernel.tensors if t.output and "workspace" in t.name.lower()}
    definite = Definite(known)  # type: ignore[arg-type]
    definite.run(kernel.body, frozenset(), {name: (0, n - 1) for name, n in kernel.grid})
    return bool(definite.told)


@record
class _CubeBuffers:
    """The buffers that products read, and that they add up in; and all buffers."""

    names: frozenset[str]
    buffers: frozenset[str]

    @classmethod
    def of(cls, body: Sequence[Stmt]) -> _CubeBuffers:
        found = set[str]()
        for s in nodes(tuple(body)):
            if isinstance(s, Assign) and (products := [n for n in nodes(s.value) if isinstance(n, MatMul)]):
                found |= {s.target.name, *(r.name for m in products for r in regions_in(m))}
        return cls(frozenset(found), frozenset(s.name for s in nodes(tuple(body)) if isinstance(s, Alloc)))

    def cores(self, s: Stmt) -> set[str]:
        """Which kinds of cores do a statement: a copy is done by the one that has its source, or its target where that is GM."""
        match s:
            case Assign():
                return {CUBE if self._on_cube(s) else VECTOR}
            case For() | Parallel():
                return set().union(*map(self.cores, s.body)) if s.body else set()
            case If():
                return set().union(*map(self.cores, (*s.then, *s.otherwise)))
        return set()

    def _on_cube(self, s: Assign) -> bool:
        if any(isinstance(n, MatMul) for n in nodes(s.value)):
            return True
        value = s.value.x if isinstance(s.value, Cast) else s.value
        if not isinstance(value, Region):
            return False
        return (value.name if value.name in self.buffers else s.target.name) in self.names


@dataclass(eq=False)
class _Item:
    """A statement of a body: its place in the stream of each kind of core that does it, and what it reads and writes."""

    statement: Stmt
    places: dict[str, int]
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for s in nodes(self.statement):
            if isinstance(s, Assign):
                self.writes.add(s.target.name)
                self.reads |= uses_of(s.value).keys() | _read_in_indices(s.target.starts)
            elif isinstance(s, If):
                self.reads |= _read_in_indices((s.condition,))

    @property
    def core(self) -> str:
        """The kind of core that does all of it; "" where both do some."""
        return next(iter(self.places)) if len(self.places) == 1 else ""


@record
class _Level:
    cube: _CubeBuffers

    def body(self, body: Sequence[Stmt], written: frozenset[str]) -> tuple[Stmt, ...]:
        """The statements of a body in order; `written` is what was written around it before. _NoOrder where there is none."""
        allocs = [s for s in body if isinstance(s, Alloc)]
        rest = [(k, s) for k, s in enumerate(body) if not isinstance(s, Alloc)]
        items = self._joined([_Item(s, dict.fromkeys(sorted(self.cube.cores(s)) or [VECTOR], k)) for k, s in rest])
        done: list[Stmt] = []
        for item in _ordered(items, written):
            done.append(item.statement if item.core else self._inside(item, written))
            written |= item.writes
        return (*allocs, *done)

    def _inside(self, item: _Item, written: frozenset[str]) -> Stmt:
        s = item.statement
        if isinstance(s, For):
            return replace(s, body=self.body(s.body, written), stages=0)
        if isinstance(s, If):
            return replace(s, then=self.body(s.then, written), otherwise=self.body(s.otherwise, written))
        raise _NoOrder

    def _joined(self, items: list[_Item]) -> list[_Item]:
        """The items, with loops of either kind of core that hand something to each other as one."""
        for c in (i for i in items if i.core == CUBE):
            for v in (i for i in items if i.core == VECTOR and _as_long(c, i) and _hand_over(c, i)):
                one, other = c.statement, v.statement
                assert isinstance(one, For) and isinstance(other, For)
                loop = replace(other, body=(*substituted(one.body, {one.var: ix.var(other.var)}), *other.body))
                joined = _Item(loop, {**c.places, **v.places})
                return self._joined([joined if i is v else i for i in items if i is not c])
        return items


def _ordered(items: Sequence[_Item], written: frozenset[str]) -> Iterator[_Item]:
    """The items in an order that keeps both streams, the first of the text first where there is a choice."""
    streams = [_stream(items, core) for core in (CUBE, VECTOR)]
    needs = _needs(streams, written)
    done = set[int]()
    while any(streams):
        heads = [stream[0] for stream in streams if stream]
        able = [h for h in heads if h.core and all(id(n) in done for n in needs.get(id(h), ()))]
        if not able and not (len(heads) == 2 and heads[0] is heads[1]):
            raise _NoOrder
        item = min(able, key=lambda h: h.places[h.core], default=heads[0])
        streams = [stream[1:] if stream and stream[0] is item else stream for stream in streams]
        done.add(id(item))
        yield item


def _stream(items: Sequence[_Item], core: str) -> list[_Item]:
    return sorted((i for i in items if core in i.places), key=lambda i: i.places[core])


def _needs(streams: Sequence[Sequence[_Item]], written: frozenset[str]) -> dict[int, list[_Item]]:
    """What has to be done before an item, for what one kind of core hands to the other."""
    needs: dict[int, list[_Item]] = {}
    own = [[i for i in stream if i.core] for stream in streams]
    for name in sorted({name for i in (*own[0], *own[1]) for name in i.writes}):
        for (here, there) in (own, own[::-1]):
            stores, loads = [i for i in here if name in i.writes], [i for i in there if name in i.reads]
            if not stores or not loads:
                continue
            if name in written or any(name in i.writes for i in there):
                raise _NoOrder
            turns = [([a], [b]) for a, b in zip(stores, loads, strict=True)] if len(stores) == len(loads) else [(stores, loads)]
            before: list[_Item] = []
            for storing, loading in turns:
                for i in storing:
                    needs.setdefault(id(i), []).extend(before)
                for i in loading:
                    needs.setdefault(id(i), []).extend(storing)
                before = loading
    return needs


def _as_long(a: _Item, b: _Item) -> bool:
    one, other = a.statement, b.statement
    return (
        isinstance(one, For) and isinstance(other, For) and one.count is None is other.count
        and (one.start, one.extent) == (other.start, other.extent)
    )  # fmt: skip


def _hand_over(a: _Item, b: _Item) -> bool:
    return bool(a.writes & b.reads or b.writes & a.reads)


def _read_in_indices(indices: Sequence[Expr]) -> set[str]:
    return {r.args[0] for e in indices for r in all_elements_in(e)}
