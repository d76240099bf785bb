"""The statements of a kept kernel as two streams: what runs on the cube core, and what runs on the vector cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tile_eg.ir.index import Interval, bounds, const, variables
from tile_eg.ir.machine import CORE_PIPES, SCALAR_PIPE, USABLE_EVENT_IDS
from tile_eg.ir.program import AIV, CrossSet, Instr, Loop, Node, PipeBarrier, Print, SetFlag, SyncAll, WaitFlag, When, walk

FREE = ("free", "free_too")
"""Numbers of flags that stand for one that the author does not use for this pair of pipes."""


def stream(statements: Sequence[Any], core: str) -> tuple[Node, ...]:
    """The nodes of one core; none where it would have barriers and meetings alone."""
    nodes = tuple(_of(statements, core))
    return nodes if _works(nodes) else ()


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
        elif not isinstance(n, PipeBarrier | SyncAll | SetFlag | WaitFlag | Print):
            return True
    return False




def mapped(node: Any, change: Callable[[Instr], Instr]) -> Any:
    """A node with each instruction in it changed; the nodes of a body may have their core with them."""
    if isinstance(node, Loop | When):
        within: tuple[Any, ...] = node.body
        return replace(node, body=tuple(replace(on, node=mapped(on.node, change)) for on in within))
    return change(node) if isinstance(node, Instr) else node


def numbered(nodes: tuple[Node, ...], ranges: Mapping[str, Interval]) -> tuple[Node, ...]:
    """The nodes with numbers for the flags of gemm_v0 and of padding: the first that the author does not use for their pipes."""
    taken: dict[tuple[str, str], set[int]] = {}
    for n in walk(nodes):
        if isinstance(n, SetFlag | WaitFlag) and not variables(n.id) & set(FREE):
            low, high = bounds(n.id, ranges)
            taken.setdefault((n.src, n.dst), set()).update(range(low, high + 1))
    return tuple(_numbered(n, taken) for n in nodes)


def _numbered(n: Node, taken: Mapping[tuple[str, str], set[int]]) -> Node:
    if isinstance(n, Loop | When):
        return replace(n, body=tuple(_numbered(x, taken) for x in n.body))
    if isinstance(n, SetFlag | WaitFlag) and variables(n.id) & set(FREE):
        free = [k for k in USABLE_EVENT_IDS if k not in taken.get((n.src, n.dst), set())]
        free = [*free, *USABLE_EVENT_IDS]
        return replace(n, id=const(free[FREE.index(n.id.args[0])]))
    return n
