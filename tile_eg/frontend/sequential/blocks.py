"""The blocks for which the statements of a kernel are gone through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.sequential.parts import Mark
from tile_eg.ir import index as ix
from tile_eg.ir.index import Interval
from tile_eg.ir.kernel import For, If

FIRST = 3
MOST = 64


def some_blocks(ranges: Mapping[str, Interval], body: Sequence[Any]) -> list[dict[str, int]]:
    """The first blocks of a grid and its last one; where what is done differs from block to block all of them, and of more than
    `MOST` so many that lie equally far apart."""
    names = list(ranges)
    found = [[min(low + n, high) for low, high in ranges.values()] for n in range(FIRST)]
    found.append([high for _, high in ranges.values()])
    if _deciding(tuple(body)) & ranges.keys():
        every = product(*(range(low, high + 1) for low, high in ranges.values()))
        apart = -(-prod(high - low + 1 for low, high in ranges.values()) // MOST)
        found += [list(block) for n, block in enumerate(every) if n % apart == 0]
    return [dict(zip(names, block, strict=True)) for k, block in enumerate(found) if block not in found[:k]]


def _deciding(tree: Any) -> frozenset[str]:
    """The variables that say which statements are done, how often, and at which flags."""
    found = set[str]()
    for n in nodes(tree):
        match n:
            case If():
                found |= ix.variables(n.condition)
            case For() if n.count is not None:
                found |= ix.variables(n.count)
            case Mark():
                found |= ix.variables(n.number)
    return frozenset(found)
