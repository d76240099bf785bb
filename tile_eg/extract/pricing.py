"""What a physical node costs: its instructions as works, each on one pipe of one core."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from tile_eg.chips import Chip
from tile_eg.cost_models import SearchModel, node_cost
from tile_eg.egraph import Demand, Graph, Node
from tile_eg.extract.masks import share
from tile_eg.extract.selection import trips_ahead
from tile_eg.ir.index import EACH, Expr, variables
from tile_eg.ir.machine import FRACTAL, strip
from tile_eg.ir.program import AIC, AIV, BY_BLOCKS, REDUCE
from tile_eg.ops.physical import TERMS, Move, Vector
from tile_eg.ops.records import changed, record
from tile_eg.ops.types import F32
from tile_eg.ops.whole_tiles import WHOLE_TILES
from tile_eg.timeline.work import ANYWHERE, HALF_OF_ROUNDS, Work


@record
class Price:
    """Busy cycles by pipe ("AIC.MTE2"), and the works they come from with their counts."""

    cycles: dict[str, int]
    works: tuple[tuple[Work, int], ...]

    @property
    def total(self) -> int:
        return sum(self.cycles.values())

    @property
    def pipe(self) -> str:
        """Where the node's last instruction runs, whatever a cost model says of it; empty where it has none."""
        return self.works[-1][0].pipe if self.works else ""


def choice_form(compared: Demand, chosen: Demand) -> str:
    """How a choice runs: flat over whole rounds of 256 bytes of what is compared, else row by row under a mask.

    A comparison into UB takes no mask on this architecture, and reads and writes whole rounds.
    """
    rows, cols = chosen.shape
    tile, size = chosen.tile, compared.tile.dtype.bytes
    dense = all(cols * w.tile.dtype.bytes % 32 == 0 for w in (compared, chosen)) and tile.vcols.value == tile.cols
    whole = tile.vrows.value == tile.rows
    return "flat" if dense and (cols * size % 256 == 0 or (whole and rows * cols * size % 256 == 0)) else "rows"


def bit_elements(compared: Demand, chosen: Demand) -> int:
    """Elements as wide as those compared that hold a bit for each of them; for a choice row by row two blocks of 32 bytes."""
    rows, cols = chosen.shape
    flat = choice_form(compared, chosen) == "flat"
    return max(64, ceil_div(rows * cols, 8) if flat else 0) // compared.tile.dtype.bytes


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


class Pricer:
    """Works and prices of a graph's nodes on a chip, by a search model; all blocks that run at once share the memory system."""

    def __init__(self, graph: Graph, chip: Chip, model: SearchModel) -> None:
        self.graph, self.chip, self.model = graph, chip, model
        blocks = graph.values.blocks
        self.cores = {AIC: min(blocks, chip.cube_cores), AIV: min(2 * blocks, chip.vector_cores)}
        self.known: dict[Work, dict[str, float]] = {}
        self.shares = self._shares()

    def _shares(self) -> dict[int, float]:
        """In which part of their trips masks in place are made, or what is beyond a tile is written, and the positions that masks
        look at in the same loop."""
        out: dict[int, float] = {}
        for n in self.graph.nodes:
            if n.op in ("VMaskOn", "VBeyond"):
                out[n.index] = share(self.graph, n)
            if n.op == "VMaskOn":
                positions = (m for m in self.graph.classes[n.children[0]] if m.op == "VRamp" and m.region == n.region)
                out |= {m.index: max(out[n.index], out.get(m.index, 0.0)) for m in positions}
        return out

    def price(self, node: Node) -> Price:
        counted = self.works(node)
        out: dict[str, float] = {}
        for work, n in counted.items():
            for pipe, c in self._of(work).items():
                out[pipe] = out.get(pipe, 0.0) + n * c * self.shares.get(node.index, 1.0) / trips_ahead(node)
        return Price({p: max(1, round(c)) for p, c in out.items() if c > 0}, tuple(counted.items()))

    def _of(self, work: Work) -> dict[str, float]:
        if work not in self.known:
            self.known[work] = node_cost(self.model, work)
        return self.known[work]

    def works(self, node: Node) -> dict[Work, int]:
        """The instructions of a node, and how many there are of each."""
        term = TERMS[node.op]
        if isinstance(term, Move):
            return {_moved(self, node, term): 1}
        if isinstance(term, Vector):
            return {_KINDS.get(term.kind, _whole)(self, node, term): 1}
        return _product(node) if node.op == "L0" else {}

    def demand(self, cls: int) -> Demand:
        return self.graph.demands[cls]

    def pitch(self, place: Demand) -> int:
        """Elements between rows in UB: the columns in whole 32-byte blocks."""
        block = 32 // place.tile.dtype.bytes
        return ceil_div(place.shape[1], block) * block + place.gap

    def vector(self, term: Vector, node: Node, form: str, source: int | None = None) -> Work:
        """An instruction over all of its result; `source` is the class whose element type it reads, where that is another one."""
        here = self.demand(node.cls)
        src = self.demand(source).tile.dtype if source is not None else here.tile.dtype
        r, c = here.shape
        meet = term.banks is False or len(set(node.children)) < len(node.children)
        op = term.instruction(node.payload)
        alike = HALF_OF_ROUNDS if op.endswith(BY_BLOCKS) and form != "apart" and term.banks else float(meet)
        return Work(op, r, c, dtype=here.tile.dtype, src_dtype=src, form=form, pitch=self.pitch(here), conflict=alike)


def _moved(p: Pricer, n: Node, term: Move) -> Work:
    """A move: by the tile that arrives, or, out of L0C and UB, by the one that leaves."""
    if term.source in ("GM", "WS"):
        return _in(p, n, term)
    if term.target == "UB" or term.source == "L1":
        return _across(p, n, term)
    return _out(p, n, term)


def _in(p: Pricer, n: Node, term: Move) -> Work:
    """A load from a tensor, whose rows lie a stride apart, or from the workspace."""
    here = p.demand(n.cls)
    r, c = _known(here)
    dtype, cols = here.tile.dtype, c * trips_ahead(n)
    made = Work(term.instruction, r, cols, dtype=dtype, src_dtype=dtype, cores=p.cores[term.core])
    if term.source == "WS":
        strips = r * strip(dtype) * dtype.bytes if term.strips else 0
        return changed(made, other="WS", stride_bytes=strips, form="strips" if strips else "flat")
    form = "strips" if term.strips else _form(n.payload[-4])
    return changed(made, stride_bytes=n.payload[-3] * dtype.bytes, form=form)


def _known(place: Demand) -> tuple[int, int]:
    """The rows and columns of a tile that exist, where that is known and one core has all of it; else those that have room."""
    rows, cols = place.shape
    if place.share is not None:
        return rows, cols
    return _valid(place.tile.vrows, rows), _valid(place.tile.vcols, cols)


def _valid(extent: Expr, size: int) -> int:
    return min(size, max(1, extent.value)) if extent.value is not None else size


def _form(offset: Expr) -> str:
    """Of a move from or to a tensor whose first element has this offset."""
    return ANYWHERE if EACH in variables(offset) else "flat"


def _out(p: Pricer, n: Node, term: Move) -> Work:
    """A move out of L0C or UB: to a tensor (its dtype and stride), to the workspace or to L1 (the class's own dtype)."""
    src = p.demand(n.children[term.operand])
    stride, form = 0, "flat"
    if term.target == "GM":
        tensor, offset, stride, *_ = n.payload[-1]
        form = _form(offset)
        dtype = next(t.dtype for t in p.graph.values.in_gm if t.name == tensor)
    else:
        dtype = p.demand(n.cls).tile.dtype
    r, c = _known(src)
    return Work(
        term.instruction, r, c, dtype=dtype, src_dtype=src.tile.dtype, stride_bytes=stride * dtype.bytes, other=term.target,
        cores=p.cores[term.core], form=form,
    )  # fmt: skip


def _across(p: Pricer, n: Node, term: Move) -> Work:
    """What the cube core writes into UB: half of the rows for each vector core, or all of them."""
    here = p.demand(n.cls)
    form, dtype = "flat" if here.share is None else "dual", here.tile.dtype
    other = "L1" if term.source == "L1" else "UB"
    return Work(term.instruction, here.tile.rows, here.tile.cols, dtype=dtype, src_dtype=dtype, form=form, other=other)


def _product(n: Node) -> dict[Work, int]:
    """The L0 cut carries the price of its product: every step loads both operands and multiplies."""
    tile, _, m, k_n, k = n.payload
    left, right = tile.factors
    rows, cols = (-(-_valid(*x) // FRACTAL) * FRACTAL for x in ((tile.vrows, tile.rows), (tile.vcols, tile.cols)))
    sizes = (_parts(min(rows, tile.rows), m), _parts(min(cols, tile.cols), k_n), _parts(tile.depth, k))
    out: dict[Work, int] = {}
    for (r, rows), (c, cols), (d, depths) in product(*(s.items() for s in sizes)):
        for op, made in (("l1_to_l0a", left), ("l1_to_l0b", right), ("mmad", F32)):
            out[Work(op, r, c, d, made, left)] = rows * cols * depths
    return out


def _parts(n: int, step: int) -> dict[int, int]:
    """The sizes of the steps that cover n, and how many there are of each."""
    whole, rest = divmod(n, step)
    return {size: count for size, count in ((step, whole), (rest, 1)) if size and count}


def _whole(p: Pricer, n: Node, term: Vector) -> Work:
    """An instruction over its result; a cast reads another element type."""
    return p.vector(term, n, term.form(n.payload), n.children[0] if n.op == "VCast" else None)


def _reduction(p: Pricer, n: Node, term: Vector) -> Work:
    """An instruction over its operand."""
    src = p.demand(n.children[0])
    (r, c), dtype = src.shape, src.tile.dtype
    op, form = term.instruction(n.payload), term.form(n.payload)
    meet = HALF_OF_ROUNDS if op in _FOLDS else float(len(n.children) < 2 or n.children[0] == n.children[1])
    return Work(op, r, c, dtype=dtype, src_dtype=dtype, form=form, pitch=p.pitch(src), conflict=meet)


def _strips(p: Pricer, n: Node, term: Vector) -> Work:
    """A cast over its operand, to strips."""
    here, src = p.demand(n.cls), p.demand(n.children[0])
    made = Work(term.instruction(n.payload), *src.shape, dtype=here.tile.dtype, src_dtype=src.tile.dtype)
    return changed(made, form=term.form(n.payload), pitch=p.pitch(here))


def _all(p: Pricer, n: Node, term: Vector) -> Work:
    """An operation on whole tiles, by the elements that it works through."""
    here, (op, i, j) = p.demand(n.cls), n.payload[:3]
    count, dtype = WHOLE_TILES[op].worked(here.shape[0] * here.shape[1], (i, j)), here.tile.dtype
    rows, cols = (i, j) if WHOLE_TILES[op].by_rows else (1, count)
    return Work(term.instruction(n.payload), rows, cols, dtype=dtype, src_dtype=dtype, pitch=count)


def _put(p: Pricer, n: Node, term: Vector) -> Work:
    """A copy of what is put, and of what it is put into, which a schedule may do without."""
    made = p.demand(n.children[1])
    dtype = made.tile.dtype
    return Work(term.instruction(n.payload), *made.shape, dtype=dtype, src_dtype=dtype, form="rows", pitch=p.pitch(made))


def _in_window(p: Pricer, n: Node, term: Vector) -> Work:
    """An instruction over the window that it writes."""
    _, rows, cols = term.window(n.payload)
    return changed(p.vector(term, n, term.form(n.payload)), rows=rows, cols=cols)


def _choice(p: Pricer, n: Node, term: Vector) -> Work:
    compared = n.children[0]
    return p.vector(term, n, choice_form(p.demand(compared), p.demand(n.cls)), compared)


_FOLDS = frozenset(f"vrow{name}" for name in REDUCE)
_KINDS: dict[str, Callable[[Pricer, Node, Vector], Work]] = {
    "reduction": _reduction, "choice": _choice, "whole": _all, "put": _put, "in_window": _in_window, "strips": _strips,
}  # fmt: skip
