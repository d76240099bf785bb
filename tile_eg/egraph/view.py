"""Reads a saturated e-graph into a `Graph`: its physical nodes that can take part in a schedule, in an order that stays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tile_eg.egraph.encode import Encoder
from tile_eg.egraph.graph import Demand, Graph, Node, Tile, Unpacked
from tile_eg.egraph.not_implementable import not_implementable
from tile_eg.egraph.placed import as_placed, misplaced
from tile_eg.ir.index import EACH, SUB, const, variables
from tile_eg.ir.values import Place, Term, Values
from tile_eg.ops.physical import LOADS, MOVES, TERMS
from tile_eg.ops.types import VALUE_TYPES, Level
from tile_eg.rules import Rule, native
from tile_eg.transforms.packed_operand import with_strips

WRITES = ["Store", "Accumulate"]
GRID = ["Blocks", "Persistent", "Parts", "Added", "Strips"]
CLASS_SORTS = {"P", "PT", "Cfg", "PStt", "PSt", "PL", "Outs"}
DEMANDS = {
    "at": (0, 1, 2), "into": (1, 2, 3), "nxt": (2, 3, 0), "stays": (0, 1, 2), "lines": (0, 1, 2), "begun": (1, 2, 3),
    "beside": (1, 4, 5),
}  # fmt: skip
"""Where value, memory and region stand in each kind of demand."""
IN_PART = ("begun", "beside")
"""Demands that a part of their value answers."""
RECORDS = ("byP", "byPT", "byCfg", "byPStt", "byPSt", "byPL")
REGION_AT = {"L0": 1, "Buffers": 2}
"""Where in the payload of a decision its region stands."""
WHOLE = None
FROM_STRIPS = "GmToL1Strips"


class _Reader:
    """Decodes the rows of a frozen e-graph."""

    def __init__(self, egraph: Any, encoder: Encoder, values: Values, rules: Mapping[str, Rule]) -> None:
        self.egraph, self.encoder, self.values, self.rules = egraph, encoder, values, rules
        self.functions = native.functions(egraph)
        self.total = sum(len(f.rows) for f in self.functions.values())
        i64, string = egraph.value_to_i64, egraph.value_to_string
        self.share = {r.output: WHOLE for r in self.of("Whole")} | {r.output: i64(r.inputs[0]) for r in self.of("Split")}
        self.memory = {r.output: (Level(m), None) for m in ("WS", "L1", "L0C") for r in self.of(m)}
        self.memory |= {r.output: (Level.WS, None) for r in self.of("WV")}
        self.memory |= {r.output: (Level.UB, self.share[r.inputs[0]]) for r in self.of("UB")}
        self.index = {r.output: const(i64(r.inputs[0])) for r in self.of("IC")}
        self.index |= {r.output: encoder.index[string(r.inputs[0])] for r in self.of("Ix")}
        self.passed = {r.output: encoder.passed[string(r.inputs[0])] for r in self.of("Nm")}
        self.tensor = self._tensors()
        self.tile = self._tiles()
        in_memory = {r.inputs[0]: r.output for r in self.of("gm")}
        # by the version and where the one before it is: a row may be stored whole, or its last part behind the others
        self.version = {
            (r.output, in_memory.get(t)): (
                self.tensor[t], self.index[offset], i64(stride), self.index[rows], self.index[cols],
                "add" if write == "Accumulate" else "",
            )
            for write in WRITES
            for r in self.of(write)
            for t, offset, stride, _, rows, cols in [r.inputs]
        }  # fmt: skip
        self.decode: dict[str, Callable[[Any], Any]] = {
            "i64": i64,
            "String": string,
            "f64": egraph.value_to_f64,
            "Mem": self.memory.get,
            "Sh": self.share.get,
            "V": self.tile.get,
            "I": self.index.get,
            "Num": self.passed.get,
        }

    def of(self, name: str) -> Iterable[Any]:
        return self.functions[name].rows if name in self.functions else ()

    def table(self, name: str, decode: Callable[[Any], Any]) -> dict[Any, Any]:
        return {r.inputs[0]: decode(r.output) for r in self.of(name)}

    def _tensors(self) -> dict[Any, str]:
        """The name of the tensor that each version belongs to."""
        i64 = self.egraph.value_to_i64
        out = {r.output: self.egraph.value_to_string(r.inputs[0]) for r in self.of("Given")}
        state = {(i64(r.inputs[0]), i64(r.inputs[1])): r.inputs[2] for r in self.of("StTElem")}
        args = [(r.output, state[i64(r.inputs[0]), i64(r.inputs[1])]) for r in self.of("TArg")]
        loop = {r.output: i64(r.inputs[0]) for r in self.of("Loop")}
        results = [(r.output, state[loop[r.inputs[1]], i64(r.inputs[0])]) for r in self.of("TProj")]
        links = [(r.output, r.inputs[0]) for write in WRITES for r in self.of(write)] + args + results
        while pending := [(t, u) for t, u in links if t not in out and u in out]:
            out |= {t: out[u] for t, u in pending}
        return out

    def _tiles(self) -> dict[Any, Tile]:
        i64 = self.egraph.value_to_i64
        rows, cols = self.table("rows", i64), self.table("cols", i64)
        dtypes = self.table("dt", lambda v: VALUE_TYPES[self.egraph.value_to_string(v)])
        vr, vc = self.table("vr", self.index.get), self.table("vc", self.index.get)
        fills: dict[Any, Any] = {r.output: self.egraph.value_to_f64(r.inputs[0]) for r in self.of("Fill")}
        fills |= {r.output: self.passed[r.inputs[0]] for r in self.of("FillN")}
        ramps = {r.output: (i64(r.inputs[2]), i64(r.inputs[3])) for r in self.of("Ramp")}
        ramps |= {r.output: ramps[r.inputs[1]] for r in self.of("Cast") if r.inputs[1] in ramps}
        products = {r.output: (bool(i64(r.inputs[2])), bool(i64(r.inputs[3]))) for r in self.of("MatMul")}
        factors = {r.output: (dtypes[r.inputs[0]], dtypes[r.inputs[1]]) for r in self.of("MatMul")}
        depth, terms, rules = self.table("depth", i64), self._terms(), self._made_by(("byV",))
        places, strips = self._places(), {r.output for r in self.of("StripsOf")}
        return {
            v: Tile(
                rows[v], cols[v], dtypes[v], vr[v], vc[v],
                fills.get(v), products.get(v), depth.get(v, 0), factors.get(v, ()), terms.get(v),
                tuple(sorted(rules.get(v, ()))), ramps.get(v), places.get(v, ()), v in strips,
            )
            for v in rows
            if v in cols and v in dtypes and v in vr and v in vc
        }  # fmt: skip

    def _terms(self) -> dict[Any, Term]:
        """The first term of the kernel that each value stands for."""
        out: dict[Any, Term] = {}
        numbered = [(self.egraph.value_to_i64(r.inputs[1]), r.inputs[0]) for r in self.of("Source")]
        for i, v in sorted(numbered, key=lambda p: p[0]):
            out.setdefault(v, self.encoder.numbered[i])
        return out

    def _places(self) -> dict[Any, tuple[tuple[str, Place], ...]]:
        """What the author says of the buffers that hold each value."""
        known, out = self.values.places, dict[Any, dict[str, Place]]()
        for r in self.of("Source") if known else ():
            name, _ = self.values.buffers.get(self.encoder.numbered[self.egraph.value_to_i64(r.inputs[1])], ("", ""))
            if name in known:
                out.setdefault(r.inputs[0], {})[name] = known[name]
        return {v: tuple(sorted(found.items())) for v, found in out.items()}

    def demands(self) -> dict[Any, Demand]:
        i64, out = self.egraph.value_to_i64, {}
        apart = self.values.tile_each and self._of_each()
        for name, (value, memory, region) in DEMANDS.items():
            for r in self.of(name):
                if r.inputs[value] in self.tile:
                    level, share = self.memory[r.inputs[memory]]
                    whole = self.tile[r.inputs[value]]
                    tile = replace(whole, term=None) if name in IN_PART else whole
                    tiles = 2 if apart and level is not Level.UB and apart(r.inputs[value], level) else 1
                    out[r.output] = Demand(tile, level, share, i64(r.inputs[region]), tiles)
        return out

    def _of_each(self) -> Callable[[Any, Level], bool]:
        """Whether each vector core has a tile of its own of a value in a level: not of what is loaded to L1 for both."""
        where = {r.output: (r.inputs[1], *r.inputs[5:7]) for r in self.of("Load")}  # its offset, and how much of it is valid
        both = {v for v, of in where.items() if not any(SUB in variables(self.index[x]) for x in of)}
        return lambda value, level: level is not Level.L1 or value not in both

    def region_of_versions(self) -> dict[Any, int]:
        region = self.table("treg", self.egraph.value_to_i64)
        return {r.output: region[r.inputs[0]] for r in self.of("gm")}

    def forms(self) -> dict[int, tuple[str, ...]]:
        """The rules behind each loop that the source does not have."""
        made, deep = self._made_by(("byLp",)), {t.deep for t in self.encoder.tilings}
        numbers = ((self.egraph.value_to_i64(r.inputs[0]), r.output) for r in self.of("Loop"))
        return {loop: tuple(sorted(made.get(cls, ()))) for loop, cls in numbers if loop in deep}

    def _made_by(self, records: Iterable[str]) -> dict[Any, set[str]]:
        """The rules that put something into each class."""
        out: dict[Any, set[str]] = defaultdict(set)
        for name in records:
            for r in self.of(name):
                out[r.inputs[0]].add(self.egraph.value_to_string(r.inputs[1]))
        return out

    def nodes(self, where: dict[Any, Demand], ops: Iterable[str] = TERMS) -> list[Node]:
        made, versions = self._made_by(RECORDS), self.region_of_versions()
        out = []
        for op in ops:
            if op not in self.functions:
                continue
            sorts = self.functions[op].input_sorts
            for r in self.of(op):
                children = tuple(x for x, s in zip(r.inputs, sorts, strict=True) if s in CLASS_SORTS)
                payload: tuple[Any, ...] = tuple(
                    self.version.get((x, children[0])) if s == "T" else self.decode[s](x)
                    for x, s in zip(r.inputs, sorts, strict=True)
                    if s not in CLASS_SORTS and s != "Cell"
                )
                rules = tuple(sorted(n for n in made.get(r.output, ()) if op in self.rules[n].makes))
                region = where[r.output].region if r.output in where else versions.get(r.output, 0)
                if op in REGION_AT:
                    region = payload[REGION_AT[op]]
                if op != "FixToGM" or EACH not in variables(payload[-1][1]):  # a fixpipe's rows are a stride apart
                    out.append(Node(0, op, r.output, children, payload, region, rules))
        return out


def _answerable(nodes: list[Node]) -> set:
    """Classes that some finite choice of nodes can produce."""
    waiting: dict[Any, list[Node]] = defaultdict(list)
    missing = {n: len(set(n.children)) for n in nodes}
    done: set = set()
    ready = [n for n in nodes if not missing[n]]
    for n in nodes:
        for c in set(n.children):
            waiting[c].append(n)
    while ready:
        n = ready.pop()
        if n.cls in done:
            continue
        done.add(n.cls)
        for m in waiting[n.cls]:
            missing[m] -= 1
            if not missing[m]:
                ready.append(m)
    return done


def _reachable(root: Any, by_class: dict[Any, list[Node]], answerable: set) -> list[Node]:
    seen, stack, out = set(), [root], []
    while stack:
        c = stack.pop()
        if c in seen:
            continue
        seen.add(c)
        for n in by_class[c]:
            if all(k in answerable for k in n.children):
                out.append(n)
                stack.extend(n.children)
    return out


def pruned(nodes: list[Node], root: Any) -> list[Node]:
    """The nodes that can take part in a finite choice for the root; none where there is no such choice."""
    by_class: dict[Any, list[Node]] = defaultdict(list)
    for n in nodes:
        by_class[n.cls].append(n)
    answerable = _answerable(nodes)
    return _reachable(root, by_class, answerable) if root in answerable else []


def view(egraph: Any, encoder: Encoder, values: Values, rules: Mapping[str, Rule]) -> Graph:
    """The physical nodes that can take part in a schedule, numbered in an order that does not depend on the process.

    Loads of operands that may be packed are for `packed` graphs.
    """
    reader = _Reader(egraph, encoder, values, rules)
    where = reader.demands()
    found = reader.nodes(where)
    all_nodes = [n for n in found if n.op != FROM_STRIPS]
    nodes = [n for n in all_nodes if as_placed(n, where, values)] if values.places else all_nodes
    answerable = _answerable(nodes)
    inner = {r.inputs[1] for r in reader.of("OCons")}
    root = next(r.output for r in reader.of("OCons") if r.output not in inner)
    kept = pruned(nodes, root)
    stuck = not_implementable(where, answerable, encoder.numbered)
    graph = Graph(values, [], {}, 0, {}, reader.total, frozenset(encoder.met), stuck, grids=_grids(reader))
    graph.forms = reader.forms()
    if len(found) > len(all_nodes):
        graph.unpacked = Unpacked(encoder.values, tuple(map(replace, found)), root, where)
    if not kept:
        graph.misplaced = misplaced(values, all_nodes, where, lambda some: bool(pruned(some, root)))
    return numbered(kept, root, where, graph)


def packed(graph: Graph, tensors: str, without: Collection[str] = ()) -> Graph:
    """The view of the same e-graph in which operands that a rule offers are loaded from their strips, `without` some nodes."""
    one = graph.unpacked
    assert one is not None
    values = with_strips(graph.values, one.values, tensors)
    mine = [replace(n) for n in one.nodes if n.op not in without and _from_strips(n, values.strips)]
    nodes = [n for n in mine if as_placed(n, one.where, values)] if values.places else mine
    grids = tuple(g for g in graph.grids if g.op in ("Blocks", "Persistent"))
    out = replace(graph, values=values, grids=grids, unpacked=None)
    return numbered(pruned(nodes, one.root), one.root, one.where, out)


def _from_strips(n: Node, strips: Mapping[str, str]) -> bool:
    """Whether a node, if it loads one of these tensors as an operand of a product, does so from its strips."""
    if n.op == FROM_STRIPS:
        return n.payload[0] in strips.values()
    return n.op not in LOADS or MOVES[n.op].target != "L1" or n.payload[-5] not in strips


def _grids(reader: _Reader) -> tuple[Node, ...]:
    found = sorted(reader.nodes({}, GRID), key=lambda n: (n.op, n.payload))
    return tuple(replace(n, index=i, cls=-1) for i, n in enumerate(found))


def numbered(kept: list[Node], root: Any, where: dict[Any, Demand], graph: Graph) -> Graph:
    """The graph with these nodes, and their classes numbered in the nodes' order."""
    number: dict[Any, int] = {}
    for i, n in enumerate(kept):
        number.setdefault(n.cls, len(number))
        n.index = i
    for n in kept:
        n.cls, n.children = number[n.cls], tuple(number[c] for c in n.children)
    graph.nodes = kept
    graph.classes = defaultdict(list)
    for n in kept:
        graph.classes[n.cls].append(n)
    graph.root = number.get(root, -1)
    graph.demands = {number[c]: w for c, w in where.items() if c in number}
    return graph
