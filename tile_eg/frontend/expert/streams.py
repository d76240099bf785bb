"""The statements of a kept kernel as two streams: what runs on the cube core, and what runs on the vector cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tile_eg.errors import Note, TileError
from tile_eg.ir.index import ONE, Expr, Interval, bounds, const, variables
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.machine import CORE_PIPES, EVENT_IDS, SCALAR_PIPE, USABLE_EVENT_IDS
from tile_eg.ir.program import (
    AIV,
    CrossSet,
    Instr,
    Loop,
    Node,
    PipeBarrier,
    Print,
    Scalar,
    SetFlag,
    SyncAll,
    WaitFlag,
    When,
    walk,
)
from tile_eg.ir.program.tasks import with_indices

FREE = ("free", "free_too")
"""Numbers of flags that stand for one that the author does not use for this pair of pipes."""


def stream(statements: Sequence[Any], core: str) -> tuple[Node, ...]:
    """The nodes of one core; none where it would have barriers and meetings alone."""
    nodes = tuple(_of(statements, core))
    return _without_unused(nodes, core) if _works(nodes) else ()


def _without_unused(nodes: tuple[Node, ...], core: str) -> tuple[Node, ...]:
    """The nodes without the numbers that nothing of this core needs. TileError for one that it needs and does not have."""
    kept = {n.name for n in walk(nodes) if isinstance(n, Scalar)}
    nodes = tuple(_without_checks_of_others(nodes, kept))
    while unused := kept - {name for n in walk(nodes) if not (isinstance(n, Scalar) and n.name not in kept)
                            for name in numbers(n) - ({n.name} if isinstance(n, Scalar) else set())}:  # fmt: skip
        kept -= unused
        nodes = tuple(_dropped(nodes, unused))
    for n in walk(nodes):
        if missing := sorted(name for name in numbers(n) - kept if name):
            unit = "cube core" if core != AIV else "vector cores"
            message = f"the {unit} needs a number that is read from a buffer of the other core: {missing[0]}"
            raise TileError(message, getattr(n, "span", None), help="read it from a tensor, which both see")
    return nodes


def _without_checks_of_others(nodes: Sequence[Node], kept: set[str]) -> Iterator[Node]:
    """The nodes without what tells that a number is wrong which the other core alone has."""
    for n in nodes:
        if isinstance(n, Loop | When):
            if body := tuple(_without_checks_of_others(n.body, kept)):
                yield replace(n, body=body)
        elif not (isinstance(n, Print) and n.holds != ONE and _asked(n) - kept):
            yield n


def _asked(n: Print) -> set[str]:
    """The kept numbers that a check is about."""
    return {e.args[0] for e in all_elements_in(n.holds)}.union(*(a.scalars() for a in n.args))


def numbers(n: Node) -> set[str]:
    """The kept numbers that a node needs."""
    found: set[str] = set()

    def seen(e: Expr) -> Expr:
        found.update(read.args[0] for read in all_elements_in(e))
        return e

    if isinstance(n, Loop | When):
        seen(n.condition if isinstance(n, When) else n.until or ONE)
    else:
        with_indices(n, seen)
    if isinstance(n, Instr | Scalar) and n.value:
        found.update(n.value.scalars())
    return found | _asked(n) if isinstance(n, Print) else found


def _dropped(nodes: Sequence[Node], unused: set[str]) -> Iterator[Node]:
    for n in nodes:
        if isinstance(n, Loop | When):
            if body := tuple(_dropped(n.body, unused)):
                yield replace(n, body=body)
        elif not (isinstance(n, Scalar) and n.name in unused):
            yield n


def _of(statements: Sequence[Any], core: str) -> list[Node]:
    out: list[Node] = []
    for on in statements:
        node = on.node
        if isinstance(node, Loop | When):
            body = tuple(_of(node.body, core))
            out += [replace(node, body=body)] if body else []
        elif on.core in (None, core) and (on.core == core or _possible(node, core)):
            out.append(node)
    return out


def _possible(node: Node, core: str) -> bool:
    """Whether a node that stands in no scope can be meant for this core."""
    pipes = (*CORE_PIPES[core], *((SCALAR_PIPE,) if core == AIV else ()))
    match node:
        case SetFlag() | WaitFlag():
            return node.src in pipes and node.dst in pipes
        case PipeBarrier() | CrossSet():
            return node.pipe == "ALL" or node.pipe in pipes
    return True


def _works(nodes: tuple[Node, ...]) -> bool:
    for n in nodes:
        if isinstance(n, Loop | When):
            if _works(n.body):
                return True
        elif not isinstance(n, PipeBarrier | SyncAll | SetFlag | WaitFlag | Scalar | Print):
            return True
    return False




def mapped(node: Any, change: Callable[[Instr], Instr]) -> Any:
    """A node with each instruction in it changed; the nodes of a body may have their core with them."""
    if isinstance(node, Loop | When):
        within: tuple[Any, ...] = node.body
        return replace(node, body=tuple(replace(on, node=mapped(on.node, change)) for on in within))
    return change(node) if isinstance(node, Instr) else node


def numbered(nodes: tuple[Node, ...], ranges: Mapping[str, Interval], notes: list[Note]) -> tuple[Node, ...]:
    """The nodes with numbers for the flags of gemm_v0 and of padding: the first that the author does not use for their pipes.

    So it is with numbers of the author's that a core does not have, or that belong to the framework; `notes` tell of them.
    TileError where there is no other number.
    """
    numbers = _Numbers({}, {}, {}, notes)
    for n in walk(nodes):
        if isinstance(n, SetFlag | WaitFlag) and not variables(n.id) & set(FREE):
            low, high = bounds(n.id, {**ranges, **dict.fromkeys(FREE, (0, 0))})
            numbers.taken.setdefault((n.src, n.dst), set()).update(range(low, high + 1))
            if n.id.value is None and high not in USABLE_EVENT_IDS:
                numbers.moved.setdefault((n.src, n.dst), 0)
    numbers.move()
    return tuple(map(numbers.node, nodes))


@dataclass
class _Numbers:
    """The numbers of flags that are `taken` by pair of pipes, `others` for those that cannot be used, and how far all of a pair
    are `moved` down, where some that are computed cannot be used."""

    taken: dict[tuple[str, str], set[int]]
    others: dict[tuple[str, str, int], int]
    moved: dict[tuple[str, str], int]
    notes: list[Note]

    def move(self) -> None:
        """Gives the pairs whose numbers are computed, and too large, the first ones, as far apart as they are."""
        for pair in self.moved:
            first, last = min(self.taken[pair]), max(self.taken[pair])
            if last - first in USABLE_EVENT_IDS:
                self.moved[pair], self.taken[pair] = first, {k - first for k in self.taken[pair]}
                what = f"flags {first} to {last} from {pair[0].lower()} to {pair[1].lower()}"
                why = f"{USABLE_EVENT_IDS.stop} and more are the framework's"
                self.notes.append(Note(f"{what} are numbers 0 to {last - first} instead: {why}"))

    def node(self, n: Node) -> Node:
        if isinstance(n, Loop | When):
            return replace(n, body=tuple(map(self.node, n.body)))
        if not isinstance(n, SetFlag | WaitFlag):
            return n
        if (down := self.moved.get((n.src, n.dst), 0)) and not variables(n.id) & set(FREE):
            return replace(n, id=n.id - down)
        if variables(n.id) & set(FREE):
            free = [*self.free(n), *USABLE_EVENT_IDS]
            return replace(n, id=const(free[FREE.index(n.id.args[0])]))
        if n.id.value is None or n.id.value in USABLE_EVENT_IDS:
            return n
        return replace(n, id=const(self.other(n, n.id.value)))

    def free(self, n: SetFlag | WaitFlag) -> list[int]:
        return [k for k in USABLE_EVENT_IDS if k not in self.taken.get((n.src, n.dst), set())]

    def other(self, n: SetFlag | WaitFlag, number: int) -> int:
        key = n.src, n.dst, number
        if key not in self.others:
            pair = f"{n.src.lower()} to {n.dst.lower()}"
            why = "is the framework's" if number in EVENT_IDS else "does not exist"
            if not (free := self.free(n)):
                help = f"flags are numbered {USABLE_EVENT_IDS.start} to {USABLE_EVENT_IDS.stop - 1}"
                raise TileError(f"flag {number} {why}, and all others from {pair} are used", n.span, help=help)
            self.others[key] = free[0]
            self.taken.setdefault(key[:2], set()).add(free[0])
            self.notes.append(Note(f"flag {number} {why}: from {pair} it is number {free[0]} instead", n.span))
        return self.others[key]
