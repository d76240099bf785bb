"""What a physical node costs: its instructions as works, each on one pipe of one core."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from tile_eg.chips import Chip
from tile_eg.cost_models import SearchModel, node_cost
from tile_eg.egraph import Graph, Node, Where
from tile_eg.extract.masks import share
from tile_eg.extract.selection import trips_ahead
from tile_eg.ir.program import AIC, AIV, PIPES
from tile_eg.ir.types import F32
from tile_eg.timeline.instruction import Work

PAIRS = ("VBin", "VBinR", "VBinC", "VAxpy")  # their operands are put into different bank groups (extract/banks.py)
ONE_BY_ONE = ("VMask", "VMaskI", "VMaskOn")  # they read one operand after the other


@dataclass(frozen=True)
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


def choice_form(compared: Where, chosen: Where) -> str:
    """How a choice runs: flat over whole rounds of 256 bytes of what is compared, else row by row under a mask.

    A comparison into UB takes no mask on this architecture, and reads and writes whole rounds.
    """
    rows, cols = chosen.shape
    tile, size = chosen.tile, compared.tile.dtype.bytes
    dense = all(cols * w.tile.dtype.bytes % 32 == 0 for w in (compared, chosen)) and tile.vcols.value == tile.cols
    whole = tile.vrows.value == tile.rows
    return "flat" if dense and (cols * size % 256 == 0 or (whole and rows * cols * size % 256 == 0)) else "rows"


def bit_elements(compared: Where, chosen: Where) -> int:
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
        """In which part of their trips masks in place are made, and the positions that they look at in the same loop."""
        out: dict[int, float] = {}
        for n in self.graph.nodes:
            if n.op == "VMaskOn":
                out[n.index] = share(self.graph, n)
                positions = (m for m in self.graph.classes[n.children[0]] if m.op == "VRamp" and m.region == n.region)
                out |= {m.index: max(out[n.index], out.get(m.index, 0.0)) for m in positions}
        return out

    def price(self, node: Node) -> Price:
        counted = Counter(self.works(node))
        out: dict[str, float] = {}
        for work, n in counted.items():
            for pipe, c in self._of(work).items():
                out[pipe] = out.get(pipe, 0.0) + n * c * self.shares.get(node.index, 1.0) / trips_ahead(node)
        return Price({p: max(1, round(c)) for p, c in out.items() if c > 0}, tuple(counted.items()))

    def _of(self, work: Work) -> dict[str, float]:
        if work not in self.known:
            self.known[work] = node_cost(self.model, work)
        return self.known[work]

    def works(self, node: Node) -> list[Work]:
        maker = _WORKS.get(node.op)
        return maker(self, node) if maker else []

    def where(self, cls: int) -> Where:
        return self.graph.where[cls]

    def pitch(self, place: Where) -> int:
        """Elements between rows in UB: the columns in whole 32-byte blocks."""
        block = 32 // place.tile.dtype.bytes
        return ceil_div(place.shape[1], block) * block

    def vector(self, op: str, node: Node, form: str, source: int | None = None) -> Work:
        here = self.where(node.cls)
        src = self.where(source).tile.dtype if source is not None else here.tile.dtype
        r, c = here.shape
        meet = node.op not in (*PAIRS, *ONE_BY_ONE) or len(set(node.children)) < len(node.children)
        return Work(op, r, c, dtype=here.tile.dtype, src_dtype=src, form=form, pitch=self.pitch(here), conflict=meet)


def _gm_move(op: str) -> Callable[[Pricer, Node], list[Work]]:
    def works(p: Pricer, n: Node) -> list[Work]:
        here = p.where(n.cls)
        r, c = here.shape
        stride = n.payload[-3] * here.tile.dtype.bytes
        return [
            Work(op, r, c, dtype=here.tile.dtype, src_dtype=here.tile.dtype, stride_bytes=stride, cores=p.cores[PIPES[op][0]])
        ]

    return works


def _ahead(p: Pricer, n: Node) -> list[Work]:
    """A load that brings the tiles of several trips side by side."""
    return [replace(w, cols=w.cols * trips_ahead(n)) for w in _gm_move("gm_to_l1")(p, n)]


def _workspace_in(op: str) -> Callable[[Pricer, Node], list[Work]]:
    def works(p: Pricer, n: Node) -> list[Work]:
        here = p.where(n.cls)
        r, c = here.shape
        return [Work(op, r, c, dtype=here.tile.dtype, src_dtype=here.tile.dtype, other="WS", cores=p.cores[PIPES[op][0]])]

    return works


def _out(op: str, child: int, other: str) -> Callable[[Pricer, Node], list[Work]]:
    """A move out of L0C or UB: to a tensor (its dtype and stride), to the workspace or to L1 (the class's own dtype)."""

    def works(p: Pricer, n: Node) -> list[Work]:
        src = p.where(n.children[child])
        stride, dtype = 0, src.tile.dtype
        if other == "GM":
            tensor, _, stride, *_ = n.payload[-1]
            dtype = next(t.dtype for t in p.graph.values.in_gm if t.name == tensor)
        else:
            dtype = p.where(n.cls).tile.dtype
        r, c = src.shape
        return [
            Work(op, r, c, dtype=dtype, src_dtype=src.tile.dtype, stride_bytes=stride * dtype.bytes, other=other,
                 cores=p.cores[PIPES[op][0]])
        ]  # fmt: skip

    return works


def _across(op: str) -> Callable[[Pricer, Node], list[Work]]:
    """What the cube core writes into UB: half of the rows for each vector core, or all of them."""

    def works(p: Pricer, n: Node) -> list[Work]:
        here = p.where(n.cls)
        form, dtype = "flat" if here.share is None else "dual", here.tile.dtype
        other = "UB" if op == "fixpipe" else "L1"
        return [Work(op, here.tile.rows, here.tile.cols, dtype=dtype, src_dtype=dtype, form=form, other=other)]

    return works


def _product(p: Pricer, n: Node) -> list[Work]:
    """The L0 cut carries the price of its product: every step loads both operands and multiplies."""
    tile, _, m, k_n, k = n.payload
    dtype = tile.operand
    out = []
    for r in _parts(tile.rows, m):
        for c in _parts(tile.cols, k_n):
            for d in _parts(tile.depth, k):
                out += [
                    Work("l1_to_l0a", r, c, d, dtype, dtype),
                    Work("l1_to_l0b", r, c, d, dtype, dtype),
                    Work("mmad", r, c, d, F32, dtype),
                ]
    return out


def _parts(n: int, step: int) -> list[int]:
    """The sizes of the steps that cover n."""
    return [min(step, n - i) for i in range(0, n, step)]


def _reduce(p: Pricer, n: Node) -> list[Work]:
    axis, op = n.payload
    return _reduction(p, axis, op, n.children[0])


def _reduction(p: Pricer, axis: int, op: str, source: int) -> list[Work]:
    src = p.where(source)
    r, c = src.shape
    return [
        Work(f"v{'row' if axis == 1 else 'col'}{op}", r, c, dtype=src.tile.dtype, src_dtype=src.tile.dtype, pitch=p.pitch(src))
    ]


def _block_reduce(p: Pricer, n: Node) -> list[Work]:
    return [replace(w, form="blocks") for w in _reduction(p, 1, n.payload[0], n.children[0])]


def _sum_of_products(p: Pricer, n: Node) -> list[Work]:
    r, c = p.where(n.children[0]).shape
    return [Work("vrowdot", r, c, pitch=p.pitch(p.where(n.children[0])), conflict=n.children[0] == n.children[1])]


def _choice(kind: str) -> Callable[[Pricer, Node], list[Work]]:
    def works(p: Pricer, n: Node) -> list[Work]:
        compared = n.children[0]
        return [p.vector(f"v{kind}_{n.payload[0]}", n, choice_form(p.where(compared), p.where(n.cls)), compared)]

    return works


_SCALAR = {"add": "adds", "mul": "muls", "max": "maxs", "min": "mins"}
_WORKS: dict[str, Callable[[Pricer, Node], list[Work]]] = {
    "GmToL1": _gm_move("gm_to_l1"),
    "GmToL1Ahead": _ahead,
    "GmToL1Strips": lambda p, n: [replace(w, form="strips") for w in _gm_move("gm_to_l1")(p, n)],
    "GmToUB": _gm_move("gm_to_ub"),
    "WsToL1": _workspace_in("gm_to_l1"),
    "WsToUB": _workspace_in("gm_to_ub"),
    "FixToGM": _out("fixpipe", 1, "GM"),
    "FixToWS": _out("fixpipe", 0, "WS"),
    "FixToL1": _out("fixpipe", 0, "L1"),
    "FixToUB": _across("fixpipe"),
    "L1ToUB": _across("l1_to_ub"),
    "UBToL1": _out("ub_to_l1", 0, "L1"),
    "UBToGM": _out("ub_to_gm", 1, "GM"),
    "UBToWS": _out("ub_to_gm", 0, "WS"),
    "L0": _product,
    "VUn": lambda p, n: [p.vector(f"v{n.payload[1]}", n, n.payload[0])],
    "VBin": lambda p, n: [p.vector(f"v{n.payload[1]}", n, n.payload[0])],
    "VBinS": lambda p, n: [p.vector(f"v{_SCALAR[n.payload[1]]}", n, n.payload[0])],
    "VAddI": lambda p, n: [p.vector("vadds", n, n.payload[0])],
    "VBinR": lambda p, n: [p.vector(f"v{n.payload[1]}_rows", n, n.payload[0])],
    "VBinC": lambda p, n: [p.vector(f"v{n.payload[1]}_cols", n, "rows")],
    "VCast": lambda p, n: [p.vector("vcast", n, n.payload[0], n.children[0])],
    "VRed": _reduce,
    "VRedBlock": _block_reduce,
    "VRedMul": _sum_of_products,
    "VBrcb": lambda p, n: [p.vector("vbrcb", n, "flat")],
    "VBrcbTwice": lambda p, n: [p.vector("vbrcb", n, "apart")],
    "VDup": lambda p, n: [p.vector("vdup", n, "flat")],
    "VDupIn": lambda p, n: [p.vector("vdup", n, "flat")],
    "VAxpy": lambda p, n: [p.vector("vaxpy", n, n.payload[0])],
    "VMulAdd": lambda p, n: [p.vector("vmuladd", n, n.payload[0])],
    "VCho": _choice("choose"),
    "VChoS": _choice("chooses"),
    "VChoI": _choice("chooses"),
    "VMask": _choice("mask"),
    "VMaskI": _choice("mask"),
    "VMaskOn": _choice("mask"),
    "VRamp": lambda p, n: [p.vector("vramp", n, "flat")],
    "VCopy": lambda p, n: [p.vector("vcopy", n, "flat")],
    "NextCp": lambda p, n: [p.vector("vcopy", n, "flat")],
}
