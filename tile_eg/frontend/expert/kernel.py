"""A function under `@T.prim_func` with flags, barriers or scopes -> its two streams of instructions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from tile_eg.errors import Note, NotSearched, ReadFirst, Span, TileError, together
from tile_eg.frontend.expert.between_cores import with_free_numbers
from tile_eg.frontend.expert.bools import check_bools
from tile_eg.frontend.expert.branches import SCALAR_UNIT
from tile_eg.frontend.expert.changing import begun_again, changing
from tile_eg.frontend.expert.cross_numbers import cross_numbered
from tile_eg.frontend.expert.element_sums import parallel
from tile_eg.frontend.expert.ends import Ends
from tile_eg.frontend.expert.meetings import check_given_once, read_first, with_meetings
from tile_eg.frontend.expert.modes import with_modes
from tile_eg.frontend.expert.nodes import TripByTrip
from tile_eg.frontend.expert.numbers_for_both import read_by_both
from tile_eg.frontend.expert.parallel import branch
from tile_eg.frontend.expert.parts_of_results import with_products
from tile_eg.frontend.expert.pipelined import prefetched
from tile_eg.frontend.expert.places import same_memory
from tile_eg.frontend.expert.printing import launched
from tile_eg.frontend.expert.reader import ExpertReader, Misplaced, On
from tile_eg.frontend.expert.settled_branches import settled
from tile_eg.frontend.expert.streams import numbered, stream
from tile_eg.frontend.expert.whole_buffers import store
from tile_eg.frontend.expert.words import EXPERT
from tile_eg.frontend.nibbles import KEPT, whole_bytes
from tile_eg.frontend.python.expressions import evaluate
from tile_eg.frontend.python.function import _argument, _grid_names, _number, _tensor, _text_of, with_texts
from tile_eg.frontend.python.source import FunctionSource, read_function
from tile_eg.frontend.python.values import Launch
from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, SUB
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.open_kernel import NoBlocks
from tile_eg.ir.program import AIC, AIV, Buffer, Gm, Instr, Loop, Node, Scalar, Tile, walk
from tile_eg.language.kernels import PrimFunc
from tile_eg.ops.types import Level

STREAMS = "cube core and vector cores are two streams, each of which does its own statements in their order"
"""How a note begins that a kernel is read so."""
BEGUN_AGAIN = "begins each trip with its value before the loop: T.alloc_var keeps a number from trip to trip"


def kept_kernel(
    function: PrimFunc,
    barriers: str = "vendor",
    sizes: Mapping[str, Any] | None = None,
    meet: bool = False,
    streams: bool = False,
) -> KeptKernel:
    """The kernel as it is written, at the sizes, and with the numbers, of a call; with meetings of its cores where they hand
    something over, if these are to be found. `streams`: a core may read what the other one writes further down.

    Raises TileError at the user's line, `NoBlocks` where the sizes leave no block to run.
    """
    found = read_function(function.function, function.names)
    try:
        made = _read_in_levels(found, prefetched, sizes, barriers, meet, streams, function.once)
    except TileError as e:
        with_texts(e, found)
        raise
    again = tuple(Note(f"`{n}` {BEGUN_AGAIN}", found.source.span(at)) for n, at in begun_again(found.node.body).items())
    return replace(made, notes=(*made.notes, *again))


def in_order(function: PrimFunc, sizes: Mapping[str, Any] | None, why: TileError, streams: bool) -> KeptKernel:
    """A kernel without flags of its own, done in the order of its statements: each instruction waits for what it meets.

    Raises `why`, the reason for which it is not searched, where there is a statement that cannot be done so either.
    """
    found = read_function(function.function, function.names)
    try:
        made = _read_in_levels(found, _one_by_one, sizes, "all", meet=True, streams=streams, once=function.once)
    except TileError as e:
        alike = (e.message, e.span)
        if isinstance(why, NotSearched) and why.asked and all((o.message, o.span) == alike for o in why.others):
            raise _beside(e, why, found) from e
        why.source = why.source or _text_of(why, found)
        if (e.message, e.span) != (why.message, why.span):
            why.notes = (*why.notes, (f"in the order of its statements it cannot be done either: {e.message}", e.span))
        why.help = "; or ".join(dict.fromkeys(h for h in (e.help, why.help) if h))
        raise why from e
    if isinstance(why, ReadFirst):
        if not any(n.text.startswith(STREAMS) for n in made.notes):
            raise why
        return replace(made, in_order=True)
    note = Note(f"{why.message}; the kernel is done in the order of its statements, and nothing of it is searched", why.span)
    return replace(made, in_order=True, notes=(*made.notes, note))


def _beside(e: TileError, why: NotSearched, found: FunctionSource) -> NotSearched:
    """What is wrong with a kernel that a word wants done in the order of its statements."""
    note = f"{why.message}, so statements are done in their order", why.span
    made = NotSearched(e.message, e.span, help=e.help, notes=(*e.notes, note))
    made.source, made.others = _text_of(e, found), e.others
    return made


def _one_by_one(r: ExpertReader, loop: Loop, stages: int) -> list[On]:
    """A pipelined loop whose loads are not done ahead."""
    r.notes.append(Note(f"num_stages={stages} is not kept: the trips of this loop follow one another", loop.span))
    return [On(None, loop)]


def _read_in_levels(
    found: FunctionSource, ahead: Callable[..., list[On]], sizes: Mapping[str, Any] | None, barriers: str, meet: bool,
    streams: bool, once: bool,
) -> KeptKernel:  # fmt: skip
    """The kernel, read again where a statement further down tells in which memory a buffer is. `ahead` does a pipelined loop."""
    levels: dict[str, Level] = {}
    by_trips: set[Span] = set()
    elements = (parallel, branch), SCALAR_UNIT
    while True:
        reader = ExpertReader(found.source, found.names, dict(levels), EXPERT, store, ahead, *elements, sizes)
        reader.once = once
        reader.by_trips = by_trips
        if ahead is _one_by_one:
            reader.ends, reader.changing = Ends(), {name: set() for name in changing(settled(found.node, found.names))}
        try:
            return _read(reader, found, barriers, meet, streams)
        except Misplaced as found_in:
            levels[found_in.name] = found_in.level
        except TripByTrip as found_at:
            by_trips.add(found_at.loop)


def _read(r: ExpertReader, found: FunctionSource, barriers: str, meet: bool = False, streams: bool = False) -> KeptKernel:
    r.drains = barriers == "vendor"
    _arguments(r, found)
    launch, after = launched(r, found.node)
    blocks = _grid(r, launch)
    r.run([*launch.body, *after])
    if r.told:
        raise together(r.told)
    if r.half_used is not None:
        check_given_once(r.statements, r.views)
    if meet:
        given: Any = r.statements
        seen_twice = {*r.views, *r.views.values()}
        alone = {h.name: h.buffer() for h in r.held.values() if h.name not in seen_twice}
        r.statements[:] = read_by_both(given, alone, r.stored)  # type: ignore[assignment]
        _meet(r, streams)
    cube, vector = _streams(r)
    cube = with_products(cube, r.held)
    check_bools(r, (*cube, *vector))
    _check_looked_up(r)
    for t in r.tensors.values():
        whole_bytes(t.dtype, KEPT, t.span)
    tensors = tuple(replace(t, output=t.name in r.stored) for t in r.tensors.values())
    return KeptKernel(
        found.node.name, tensors, blocks, r.half_used is not None, _buffers(r, (*cube, *vector)), cube, vector, barriers,
        frozenset(r.own), tuple((h.name, h.span) for h in r.held.values()), found.source.text, found.source.file, tuple(r.notes),
        shared=tuple(r.shared.items()), views=tuple(r.views.items()),
    )  # fmt: skip


def _grid(r: ExpertReader, launch: ast.With) -> int:
    """The number of blocks; binds the grid's names, each as what it is of the block's number."""
    if len(launch.items) != 1 or not isinstance(over := evaluate(r, launch.items[0].context_expr), Launch):
        raise r.error("a kernel's body is `with T.Kernel(...)`", launch)
    if 0 in over.extents:
        raise NoBlocks(tuple(r.tensors.values()))
    names, half = _grid_names(r, launch.items[0].optional_vars, len(over.extents))
    blocks, rest = prod(over.extents), ix.var(BLOCK)
    r.grid = {BLOCK: (0, blocks - 1), SUB: (0, 1)}
    for k, (name, n) in enumerate(zip(names, over.extents, strict=True)):
        r.local[name] = rest if k == len(names) - 1 else rest % n
        rest = rest // n
    if half is not None:
        r.local[half] = r.half = ix.var(SUB)
    return blocks


def _meet(r: ExpertReader, streams: bool) -> None:
    """Puts the meetings of the cores in their places."""
    _check_sums(r)
    _check_kinds(r)
    if streams and (late := read_first(r.statements)):
        r.notes.append(Note(f"{STREAMS}: {late.message}", late.span))
    r.statements[:] = with_meetings(r.statements, r.half_used is not None, r.ranges, r.views, streams)


def _streams(r: ExpertReader) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """What the cube core does, and what the vector cores do, with the numbers of flags that the author left open."""
    both = with_free_numbers([stream(r.statements, core) for core in (AIC, AIV)], r.ranges)
    cube, vector = (numbered(with_modes(nodes, r.ranges), r.ranges, r.notes) for nodes in both)
    return cross_numbered((cube, vector), r.ranges, r.notes)


def _buffers(r: ExpertReader, nodes: tuple[Node, ...]) -> tuple[Buffer, ...]:
    """The buffers that are used, those with an address where they are."""
    used, found = same_memory(r.views, _named(nodes)), [h.buffer() for h in r.held.values()]
    slots = lambda b: tuple(r.addresses[b.name] + n * b.slot_bytes for n in range(b.slots))  # noqa: E731
    placed = (replace(b, addresses=slots(b)) if b.name in r.addresses else b for b in found)
    return tuple(b for b in (*placed, *r.own.values()) if b.name in used)


def _check_sums(r: ExpertReader) -> None:
    """TileError for what both vector cores would add to one place: here one of them does."""
    if r.half is None or r.half_used is not None:
        return
    for n in walk(stream(r.statements, AIV)):
        if isinstance(n, Instr) and n.atomic == "add":
            what = "both vector cores of a block add this: not supported in the order of the statements"
            raise TileError(what, n.span, help="with T.Kernel(n) as cid: adds it once; or each adds its half, by vid")


def _check_kinds(r: ExpertReader) -> None:
    """TileError where blocks change a tensor atomically in several ways: what comes out depends on who is first."""
    first: dict[str, Instr] = {}
    for n in (n for core in (AIC, AIV) for n in walk(stream(r.statements, core))):
        if isinstance(n, Instr) and isinstance(n.dst, Gm) and n.atomic:
            before = first.setdefault(n.dst.tensor, n)
            if before.atomic != n.atomic:
                what = f"`{n.dst.tensor}` is changed by T.atomic_{before.atomic}, and by T.atomic_{n.atomic} here"
                raise TileError(what, n.span, help="blocks run in no order: a tensor for each of these")


def _check_looked_up(r: ExpertReader) -> None:
    """TileError where the scalar unit reads elements of a tensor that the kernel writes: its data cache might not have them."""
    for name in sorted(r.looked_up.keys() & r.stored):
        raise TileError(
            f"an element of {name} is read, which the kernel writes: the scalar unit might not see it", r.looked_up[name],
            help="T.copy what is needed to a buffer in UB, and read it there",
        )  # fmt: skip


def _arguments(r: ExpertReader, found: FunctionSource) -> None:
    """The tensors, and the numbers of the call."""
    for a in found.node.args.args:
        argument = _argument(r, a)
        if argument.shape is None:
            r.local[argument.name] = _number(r, argument)
            continue
        t = _tensor(r, argument)
        r.tensors[t.name] = t
        r.taken.add(t.name)
    r.taken |= {BLOCK, SUB}


def _named(nodes: tuple) -> set[str]:
    found = set()
    for n in walk(nodes):
        if isinstance(n, Instr | Scalar):
            operands = (*n.reads(), *n.writes()) if isinstance(n, Instr) else n.value.elements()
            found |= {o.buffer for o in operands if isinstance(o, Tile)}
    return found
