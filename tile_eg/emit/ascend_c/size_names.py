"""Names for what a text of any size computes from its sizes again and again: quotients by tiles, and the indices of a tile.

More is known of some of these than follows from the intervals of variables: an index stays below its extent of the grid, there
are no more tiles than a launch may have (`search.any_size.serves`), and a window begins inside of its tensor, so that at least
one of its rows and columns is there (`frontend.checks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from tile_eg.emit.ascend_c.index import Scope
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.sizes import sizes_in

KINDS = ("div", "mod", "min", "max", "mul")
AXES = "xyzuvw"


def learn(s: Scope, found: Iterable[Expr]) -> None:
    """Notes what is known of the expressions of a stream."""
    assert s.program.sizes is not None
    grid, launched = s.program.sizes.grid, s.program.sizes.blocks
    for e in _parts(found):
        if e == prod(grid, start=ix.ONE) and sizes_in(e):
            s.cpp.known[e] = (0, min(ix.MOST_SIZE, s.high(e)))
        if e.op == "min" and sizes_in(e) and (most := next((a.value for a in e.args if a.value), None)):
            s.cpp.known[e] = (1, most)
        if e.op == "div" and e.args[1] == launched and sizes_in(launched):  # the tasks of a block, which is one of so many
            s.cpp.known[e.args[0]] = (0, s.high(e.args[0]))
        if e.op == "div" and e.args[0].op == "var" and sizes_in(e.args[1]):
            for n in range(1, len(grid)):
                if e.args[1] == prod(grid[:n], start=ix.ONE):
                    s.cpp.known[e] = (0, min(ix.MOST_SIZE, s.high(prod(grid[n:], start=ix.ONE)) - 1))


def sizes_named(s: Scope, found: Iterable[Expr]) -> list[str]:
    """The declarations of what follows from sizes alone; it is called by its name from here on."""
    assert s.program.sizes is not None
    wishes = {prod(s.program.sizes.grid, start=ix.ONE): "tiles", s.program.sizes.blocks: "launched"}
    out = []
    for e in _parts(found):
        if e.op in KINDS and not ix.variables(e) and _worth_it(e) and e not in s.cpp.named:
            name = s.fresh(_wish(e) if e.op == "div" else wishes.get(e, _wish(e)))
            out.append(s.cpp.declared(name, e, s.bounds(e)))
            s.cpp.named[e] = name
    return out


def indices_named(s: Scope, found: Iterable[Expr], variable: str) -> list[str]:
    """The declarations of the indices of a tile, which is what the variable counts."""
    out: list[str] = []
    for e in _parts(found):
        if e.op in ("div", "mod") and ix.variables(e) == {variable} and sizes_in(e.args[1]) and e not in s.cpp.named:
            name = s.fresh(f"{variable}_{AXES[min(len(out), len(AXES) - 1)]}")
            out.append(s.cpp.declared(name, e, s.bounds(e)))
            s.cpp.named[e] = name
    return out


def _worth_it(e: Expr) -> bool:
    """Whether it follows from sizes alone and is more than one times a number."""
    scaled = e.op == "mul" and (e.args[1].value is not None or not sizes_in(e.args[0]))
    return bool(sizes_in(e)) and not elements_in(e) and not scaled


def _wish(e: Expr) -> str:
    if e.op == "div" and len(sizes_in(e)) == 1 and e.args[1].value:
        return f"{next(iter(sizes_in(e))).args[0]}_by_{e.args[1].value}"
    return {"mul": "product", "min": "least", "max": "most"}.get(e.op, "quotient")


def _parts(found: Iterable[Expr]) -> Iterator[Expr]:
    """All that expressions are made of, parts before the whole, each once."""
    seen: set[Expr] = set()

    def inside(e: Expr) -> Iterator[Expr]:
        if e in seen:
            return
        seen.add(e)
        for a in e.args:
            if isinstance(a, Expr):
                yield from inside(a)
        yield e

    for e in found:
        yield from inside(e)
