"""Parts of L0C that are stored: an Mmad packs its result by its own rows, and a part of it lies between the others' elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tile_eg.errors import TileError
from tile_eg.frontend.expert.places import Held
from tile_eg.ir import index as ix
from tile_eg.ir.index import Expr
from tile_eg.ir.machine import FRACTAL
from tile_eg.ir.program import Instr, Loop, Node, Tile, When, walk


def with_products(nodes: tuple[Node, ...], held: Mapping[str, Held]) -> tuple[Node, ...]:
    """The cube core's stream with the rows of the products that each Fixpipe stores in its `depth`, where it had the rows of its
    window; one that stores several products becomes several. TileError for a part that no Fixpipe takes."""
    products: dict[str, list[Instr]] = {}
    for n in walk(nodes):
        if isinstance(n, Instr) and n.op == "mmad":
            products.setdefault(_tile(n.dst).buffer, []).append(n)
    return _stored(nodes, products, held)


def _stored(nodes: Iterable[Node], products: Mapping[str, Sequence[Instr]], held: Mapping[str, Held]) -> tuple[Node, ...]:
    out: list[Node] = []
    for n in nodes:
        if isinstance(n, Loop | When):
            out.append(replace(n, body=_stored(n.body, products, held)))
        elif isinstance(n, Instr) and n.op == "fixpipe":
            out += _parts(n, products.get(_tile(n.srcs[0]).buffer, ()), held)
        else:
            out.append(n)
    return tuple(out)


def _parts(store: Instr, products: Sequence[Instr], held: Mapping[str, Held]) -> list[Instr]:
    """A store of each product that lies in its window."""
    window, rows = _tile(store.srcs[0]), store.depth.value
    assert rows is not None
    _check_columns(store, window)
    packed = _packed(store, window, rows, products)
    first = window.row % packed
    if held[window.buffer].rows <= packed or _inside(window.row, rows, packed):
        return [replace(store, depth=ix.const(packed))]
    if first.value != 0 or store.rows.value is None:
        what = f"rows of {window.buffer} that products of {packed} rows each have written are stored across them"
        raise TileError(what, store.span, help=f"store the {packed} rows of each product with a copy of their own")
    return [_below(store, at, min(packed, rows - at), packed) for at in range(0, store.rows.value, packed)]


def _packed(store: Instr, window: Tile, rows: int, products: Sequence[Instr]) -> int:
    """The rows that an Mmad into this window packed, in whole fractals: of the same window, or of any where all are alike."""
    same = [p for p in products if _tile(p.dst).row == window.row and p.rows.value == rows]
    found = {FRACTAL * -(-p.rows.value // FRACTAL) for p in same or products if p.rows.value}
    if len(found) > 1:
        sizes = " and of ".join(map(str, sorted(found)))
        what = f"a part of {window.buffer} is stored, into which products of {sizes} rows are written"
        raise TileError(what, store.span, help="give products of other sizes buffers of their own")
    return next(iter(found), FRACTAL * -(-rows // FRACTAL))


def _inside(row: Expr, rows: int, packed: int) -> bool:
    """Whether a window of rows lies within one product."""
    first = (row % packed).value
    if first is not None:
        return first + rows <= packed
    return packed % rows == 0 and (row % rows).value == 0


def _below(store: Instr, at: int, rows: int, packed: int) -> Instr:
    """The rows of a store from `at` on."""
    window, to = _tile(store.srcs[0]), store.dst
    moved = replace(to, row=to.row + at) if isinstance(to, Tile) else replace(to, offset=to.offset + to.stride * at)
    source = replace(window, row=window.row + at)
    return replace(store, dst=moved, srcs=(source,), rows=ix.const(rows), depth=ix.const(packed))


def _check_columns(store: Instr, window: Tile) -> None:
    if (window.col % FRACTAL).value != 0:
        what = f"a part of {window.buffer} in L0C is stored from column {window.col} on"
        help = "let it always begin at a multiple of 16, or copy all columns to UB and take these there"
        raise TileError(what, store.span, help=help)


def _tile(operand: object) -> Tile:
    assert isinstance(operand, Tile)
    return operand
