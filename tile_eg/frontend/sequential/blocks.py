"""The blocks for which the statements of a kernel are gone through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import Any

from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.sequential.parts import Mark
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr, Interval
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import For, If

FIRST = 3
MOST = 4096
"""Blocks that are looked at, and values of what decides in one of them, at most."""
Block = Mapping[str, int]


def some_blocks(ranges: Mapping[str, Interval], body: Sequence[Any]) -> list[Block]:
    """The first blocks of a grid and its last one; and one of each kind where branches, trips or flags differ among blocks.
    Of more than `MOST` blocks so many are looked at that lie equally far apart."""
    found: list[Block] = [{name: min(low + n, high) for name, (low, high) in ranges.items()} for n in range(FIRST)]
    found.append({name: high for name, (_, high) in ranges.items()})
    kinds: dict[Any, Block] = {}
    if deciding := [e for e in _deciding(body) if ix.variables(e) & ranges.keys()]:
        loops = {n.var: range(n.start, n.start + n.extent) for n in nodes(tuple(body)) if isinstance(n, For)}
        for block in _all(ranges):
            kinds.setdefault(tuple(_values(e, block, loops) for e in deciding), block)
    found += kinds.values()
    return [b for k, b in enumerate(found) if b not in found[:k]]


def _all(ranges: Mapping[str, Interval]) -> Iterator[Block]:
    apart = -(-prod(high - low + 1 for low, high in ranges.values()) // MOST)
    for block in islice(product(*(range(low, high + 1) for low, high in ranges.values())), None, None, apart):
        yield dict(zip(ranges, block, strict=True))


def _deciding(body: Sequence[Any]) -> Iterator[Expr]:
    """What says which statements are done, how often, and at which flags."""
    for n in nodes(tuple(body)):
        match n:
            case If():
                yield n.condition
            case For() if n.count is not None:
                yield n.count
            case Mark():
                yield n.number


def _values(e: Expr, block: Block, loops: Mapping[str, range]) -> Any:
    """What an index is in a block, in all trips; the block itself where these are too many, nothing where it is not known."""
    inner = sorted(ix.variables(e) - block.keys())
    if not set(inner) <= loops.keys() or elements_in(e):
        return None
    if prod(len(loops[v]) for v in inner) > MOST:
        return tuple(block.values())
    return tuple(ix.evaluate(e, {**block, **dict(zip(inner, at, strict=True))}) for at in product(*(loops[v] for v in inner)))
