"""What a kernel's values do, without a schedule: which core computes each, in which loop, and how large its tile is."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from math import prod

from tile_eg.ir.index import BLOCK, SUB, Expr, evaluate, variables
from tile_eg.ir.values import Term, Values, reachable

SCALAR = (
    "elem", "elem_row", "elem_col", "number", "s_index", "s_unary", "s_binary", "s_reduce", "s_cast", "s_choose", "s_choose_at",
)  # fmt: skip
COMPUTED = (
    "unary", "binary", "reduce", "cast", "choose", "choose_at", "choose_bits", "bytes", "nibbles", "pack", "whole", "piece",
    "put", "nest",
)  # fmt: skip


def source(t: Term) -> Term:
    """What an element loop copies that does nothing else: a gather; any other term itself."""
    return source(t.args[0].args[0]) if t.op == "nest" and t.args[0].op == "elem" else t


class Anatomy:
    """Look-ups over a kernel's terms, without element loops that only copy. `cube` are the values that lie in L0C: products, and
    sums of products. Products read what their operands with scales are made of.
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self.terms = [t for t in reachable(values) if source(t) is t and t.op != "scaled"]
        self.loops = {t.args[0]: t for t in self.terms if t.op == "loop"}
        self.loop_of = {name: loop for loop, name in values.variables.items()}
        self.known: dict[Term, frozenset[int]] = {}
        self.first = dict.fromkeys((BLOCK, SUB, *values.variables.values()), 0)

    @cached_property
    def users(self) -> dict[Term, list[Term]]:
        """Who reads a value; an operation of a nest counts as the nest."""
        out: dict[Term, list[Term]] = defaultdict(list)
        for t in self.terms:
            if t.op not in SCALAR and t.op != "loop":
                for x in self.operands(t):
                    out[x].append(t)
        return out

    def operands(self, t: Term) -> list[Term]:
        """The values that a term is made of."""
        found = [source(x) for x in t.args if isinstance(x, Term)]
        return [y for x in found for y in (self.operands(x) if x.op in (*SCALAR, "scaled") else [x])]

    def scalar_operations(self, nest: Term) -> int:
        """How many operations a nest does on each element."""
        stack, n = [nest.args[0]], 0
        while stack:
            s = stack.pop()
            n += s.op.startswith("s_")
            stack += [x for x in s.args if isinstance(x, Term) and x.op in SCALAR]
        return max(1, n)

    @cached_property
    def cube(self) -> set[Term]:
        out = {t for t in self.terms if t.op == "matmul"}
        while True:
            more = {t for t in self.terms if t not in out and self._on_cube(t, out)}
            if not more:
                return out
            out |= more

    def _on_cube(self, t: Term, cube: set[Term]) -> bool:
        if t.op == "binary" and t.args[0] == "add":
            pair = {x.op for x in t.args[1:]}
            return pair in ({"arg", "matmul"}, {"fill", "matmul"})
        if t.op == "proj":
            return t.args[0].args[2][t.args[1]][1] in cube
        return t.op == "arg" and self.loops[t.args[0]].args[2][t.args[1]][1] in cube

    def on_the_way_out(self, t: Term) -> bool:
        """A cast or ReLU of a product, which the fixpipe does."""
        return (t.op == "cast" and t.args[0] in self.cube) or (t.op == "unary" and t.args[0] == "relu" and t.args[1] in self.cube)

    @cached_property
    def halves(self) -> bool:
        """Whether the two vector cores of a block can share its tiles: by rows, two or more for each, or along vectors."""
        tiles = [t for t in self.terms if t.rows and t.op in ("load", *COMPUTED)]
        rows = [t.rows for t in tiles if t.rows > 1]
        along = any(t.op == "reduce" and t.args[0] == 1 for t in tiles)
        return all(n % 4 == 0 for n in rows) if rows else not along

    # ---- loops ----

    def depth(self, region: int) -> int:
        return 1 + self.depth(self.values.parents[region]) if region else 0

    def region(self, t: Term) -> int:
        """The innermost loop that a value varies with; 0: the block."""
        return max(self.varies(t), key=self.depth, default=0)

    def varies(self, t: Term) -> frozenset[int]:
        if t not in self.known:
            self.known[t] = self._varies(t)
        return self.known[t]

    def _varies(self, t: Term) -> frozenset[int]:
        if t.op in ("arg", "targ"):
            return self.inside(t.args[0])
        if t.op in ("proj", "tproj"):
            return self.inside(self.values.parents[t.args[0].args[0]])
        at = [e for e in (*t.args, t.vrows, t.vcols) if isinstance(e, Expr)]
        own = {self.loop_of[v] for e in at for v in variables(e) if v in self.loop_of}
        return frozenset(own).union(*(self.varies(x) for x in t.args if isinstance(x, Term)))

    def inside(self, region: int) -> frozenset[int]:
        out = set()
        while region:
            out.add(region)
            region = self.values.parents[region]
        return frozenset(out)

    def trips(self, region: int) -> float:
        """How often something in a loop is done in one block, on average."""
        return prod(self.values.mean_trips(loop) for loop in self.inside(region))

    # ---- sizes ----

    def valid(self, t: Term) -> tuple[int, int]:
        """The valid rows and columns of the first block's first tile."""
        return self._at_first(t.vrows, t.rows), self._at_first(t.vcols, t.cols)

    def _at_first(self, e: Expr | None, whole: int) -> int:
        return whole if e is None else max(1, min(whole, evaluate(e, self.first)))
