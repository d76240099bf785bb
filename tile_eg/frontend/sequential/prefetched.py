"""Slots that one trip of a loop fills for another: what was loaded ahead may as well be loaded when it is read.

Where all that is ever written to a buffer of slots is loaded from tensors that the kernel does not write, a slot holds what the
last of these loads brought. Which one that was is found by going through the trips; where it is the same function of the loops in
each of them, `A[k*64]` for a slot that was filled by `A[(k + 1)*64]` a trip before, the load stands there instead. How far it
is done ahead is then the search's to find.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tile_eg.frontend.python.slots import as_tile
from tile_eg.frontend.python.temporaries import uses_of
from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.sequential.blocks import some_blocks
from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO, Interval
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Alloc, Assign, For, If, Parallel, Region, Stmt

Env = Mapping[str, int]
MOST = 100_000
"""Uses of a buffer that are gone through, at most."""


def without_prefetch(body: tuple[Stmt, ...], grid: Mapping[str, Interval]) -> tuple[Stmt, ...]:
    """The statements with loads where they are read; buffers that are used otherwise stay as they are."""
    for alloc in [s for s in nodes(body) if isinstance(s, Alloc) and len(s.shape) > 1]:
        body = _loaded_where_read(body, alloc, grid)
    return body


@dataclass
class _Uses:
    """What each window of a buffer's slots reads, by the place of its statement and what its loops stand at."""

    alloc: Alloc
    held: dict[int, tuple[Assign, Env]] = field(default_factory=dict)
    found: list[tuple[Assign, Env, Assign, Env]] = field(default_factory=list)
    steps: int = 0

    def run(self, body: Sequence[Stmt], env: Env) -> bool:
        return all(self.statement(s, env) for s in body)

    def statement(self, s: Stmt, env: Env) -> bool:
        if not uses_of(s)[self.alloc.name]:
            return True
        self.steps += 1
        match s:
            case For():
                count = s.extent if s.count is None else ix.evaluate(s.count, env)
                return self.steps < MOST and all(self.run(s.body, {**env, s.var: s.start + v}) for v in range(count))
            case If():
                if ix.variables(s.condition) - env.keys() or elements_in(s.condition):
                    return False
                return self.run(s.then if ix.evaluate(s.condition, env) else s.otherwise, env)
            case Assign():
                return self.assign(s, env)
        return isinstance(s, Alloc)

    def assign(self, s: Assign, env: Env) -> bool:
        for r in _reads(s, self.alloc.name):
            slot = ix.evaluate(r.starts[0], env)
            if slot not in self.held:
                return False
            self.found.append((s, env, *self.held[slot]))
        if s.target.name == self.alloc.name:
            self.held[ix.evaluate(s.target.starts[0], env)] = (s, env)
        return True


def _reads(s: Assign, name: str) -> list[Region]:
    return [r for r in nodes(s.value) if isinstance(r, Region) and r.name == name]


def _loaded_where_read(body: tuple[Stmt, ...], alloc: Alloc, grid: Mapping[str, Interval]) -> tuple[Stmt, ...]:
    name = alloc.name
    windows = [r for r in nodes(body) if isinstance(r, Region) and r.name == name]
    written = {s.target.name for s in nodes(body) if isinstance(s, Assign)}
    fills = [s for s in nodes(body) if isinstance(s, Assign) and s.target.name == name]
    if any(isinstance(s, Parallel) and uses_of(s)[name] for s in nodes(body)):
        return body
    if any(r.extents[0] is not None or ix.variables(r.starts[0]) & grid.keys() for r in windows):
        return body
    if not fills or not all(_loads(s, alloc, written) for s in fills):
        return body
    if len({(s.value.name, s.value.extents, s.value.step) for s in fills if isinstance(s.value, Region)}) > 1:
        return body
    sources: dict[int, Region] = {}
    for at in some_blocks(grid, body):
        uses = _Uses(alloc)
        if not uses.run(body, at) or not _same_source(uses, sources, at):
            return body
    return tuple(_moved(_without(body, fills, name, alloc), sources, name, alloc))


def _loads(s: Assign, alloc: Alloc, written: set[str]) -> bool:
    """Whether a statement fills a slot, all of it, with what it loads from a tensor that nothing writes."""
    whole = s.target.starts[1:] == (ZERO,) * (len(alloc.shape) - 1) and s.target.extents[1:] == alloc.shape[1:]
    return whole and isinstance(s.value, Region) and s.value.name not in written and not s.atomic and not any(
        elements_in(x) for x in s.value.starts
    )


def _same_source(uses: _Uses, sources: dict[int, Region], at: Env) -> bool:
    """Notes for each statement that reads what it reads, as a function of its own loops; False where it is none."""
    by_statement: dict[int, list[tuple[Env, Assign, Env]]] = {}
    for s, env, load, then in uses.found:
        by_statement.setdefault(id(s), []).append((env, load, then))
    for key, found in by_statement.items():
        guesses = [sources[key]] if key in sources else [_guess(*one, at) for one in _one_of_each(found)]
        source = next((g for g in guesses if all(_is_read(g, *one) for one in found)), None)
        if source is None:
            return False
        sources[key] = source
    return True


def _one_of_each(found: list[tuple[Env, Assign, Env]]) -> list[tuple[Env, Assign, Env]]:
    """The last use of each load."""
    return list({id(load): (env, load, then) for env, load, then in found}.values())


def _guess(env: Env, load: Assign, then: Env, at: Env) -> Region:
    """What a load of an earlier trip loads, as a function of the trip in which it is read."""
    assert isinstance(load.value, Region)
    ahead = {v: ix.var(v) + (then[v] - env[v]) for v in then if v in env and v not in at}
    own = {v: ix.const(then[v]) for v in then if v not in env}
    return replace(load.value, starts=tuple(ix.substitute(x, {**ahead, **own}) for x in load.value.starts))


def _is_read(source: Region, env: Env, load: Assign, then: Env) -> bool:
    assert isinstance(load.value, Region)
    return all(ix.evaluate(a, env) == ix.evaluate(b, then) for a, b in zip(source.starts, load.value.starts, strict=True))


def _without(body: Sequence[Stmt], fills: Sequence[Assign], name: str, alloc: Alloc) -> tuple[Stmt, ...]:
    """The statements without the loads of a buffer."""
    out: list[Stmt] = []
    for s in body:
        match s:
            case For():
                inner = _without(s.body, fills, name, alloc)
                out += [s if inner == s.body else replace(s, body=inner)] if inner else []
            case If():
                then, otherwise = (_without(arm, fills, name, alloc) for arm in (s.then, s.otherwise))
                out += [replace(s, then=then, otherwise=otherwise)] if then or otherwise else []
            case _ if not any(s is f for f in fills):
                out.append(s)
    return tuple(out)


def _moved(body: Sequence[Stmt], sources: Mapping[int, Region], name: str, alloc: Alloc) -> Iterator[Stmt]:
    """The statements with what they read of the buffer loaded before them, in the innermost loop that says what it is."""
    for s in body:
        match s:
            case Alloc() if s.name == name:
                yield replace(s, shape=s.shape[1:])
            case For() if (here := _loaded_before(s, sources)) is not None:
                yield _load(here, alloc)
                yield _read_as_tile(s, name)
            case For():
                yield replace(s, body=tuple(_moved(s.body, sources, name, alloc)))
            case If():
                then, otherwise = (tuple(_moved(arm, sources, name, alloc)) for arm in (s.then, s.otherwise))
                yield replace(s, then=then, otherwise=otherwise)
            case Assign() if id(s) in sources:
                yield _load(sources[id(s)], alloc)
                yield _read_as_tile(s, name)
            case _:
                yield s


def _loaded_before(s: For, sources: Mapping[int, Region]) -> Region | None:
    """The one window that all statements of a loop read, where it does not change in it, and none of them stands in a branch:
    where that is not taken, the window may lie outside of its tensor."""
    if any(id(n) in sources for branch in nodes(s.body) if isinstance(branch, If) for n in nodes(branch)):
        return None
    inside = [n for n in nodes(s) if id(n) in sources]
    windows = {sources[id(n)] for n in inside}
    variables = {n.var for n in nodes(s) if isinstance(n, For)}
    if len(windows) != 1 or any(variables & ix.variables(x) for x in next(iter(windows)).starts):
        return None
    return next(iter(windows))


def _load(source: Region, alloc: Alloc) -> Assign:
    shape = alloc.shape[1:]
    return Assign(Region(alloc.name, (ZERO,) * len(shape), shape, source.span), source, source.span)


def _read_as_tile(s: Stmt, name: str) -> Stmt:
    (found,) = as_tile((s,), name)
    return found
