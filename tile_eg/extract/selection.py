"""A choice of nodes as a linked structure: who makes a value, who reads it, and which cell it lies in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from tile_eg.egraph import Graph, Node
from tile_eg.ops.physical import AIV, ALIASES, MOVES, OVERWRITES, STORES, STRUCTURE, TOUCHES, VECTOR


def tensor_of(node: Node) -> str:
    """The name of the tensor that a node of TOUCHES stores to or loads from."""
    return node.payload[-1][0] if node.op in STORES else node.payload[-5]


def trips_ahead(node: Node) -> int:
    """How many trips' tiles a load brings at once, every so many trips."""
    return node.payload[0] if node.op in MOVES and MOVES[node.op].several_trips else 1


def is_half(graph: Graph, node: Node) -> bool:
    """Whether each vector core does one half of what the node does."""
    where = graph.demands.get(node.cls)
    return node.payload[0] is not None if node.op == "UBToGM" else where is not None and where.share is not None


def touches_whole(graph: Graph, node: Node) -> bool:
    """Whether a vector core touches all of a window in a tensor in which the two would meet."""
    return TOUCHES.get(node.op) == AIV and tensor_of(node) in graph.met and not is_half(graph, node)


def gone_before(graph: Graph, writer: Node, aliases: Sequence[Node]) -> bool:
    """Whether an instruction that writes a window of a tile, or reads a row again for each that it writes, would write over what
    it reads of that tile by these `aliases`, and reads later: a part that overlaps with the window, and is not just it."""
    if VECTOR[writer.op].rereads:
        return bool(aliases)
    parts = [n for n in aliases if n.op == "Part"]
    if len(parts) > 1 or any(n.op not in ("Part", "Lies") for n in aliases):
        return True
    at, rows, cols = VECTOR[writer.op].window(writer.payload)
    row, col = divmod(at, graph.demands[writer.cls].tile.cols)
    down, along = (abs(a - b) for a, b in zip((row, col), parts[0].payload[:2] if parts else (0, 0), strict=True))
    return (down, along) != (0, 0) and down < rows and along < cols


class Selection:
    """Look-ups over chosen nodes. An item is a class (an instruction) or the negated id of a loop; it stands in one region."""

    def __init__(self, graph: Graph, nodes: Iterable[Node]) -> None:
        self.graph = graph
        self.nodes = sorted(nodes, key=lambda n: n.index)
        self.pick = {n.cls: n for n in self.nodes}
        self.states = {n.payload[:2]: n for n in self.nodes if n.op == "State"}
        self.tensor_states: dict[int, dict[int, Node]] = defaultdict(dict)
        for n in self.nodes:
            if n.op == "PTCons":
                self.tensor_states[n.payload[0]][n.payload[1]] = n
        self.loops = {n.payload[0]: n for n in self.nodes if n.op == "PLoop"}
        self.skews = {n.payload[0]: n.payload[1] for n in self.nodes if n.op == "Skew"}
        self.instructions = [n for n in self.nodes if n.op not in ALIASES and n.op not in STRUCTURE]
        self.readers = self._readers()
        self.cells = _Cells(self)

    def base(self, cls: int) -> int:
        """The class whose node made the value that `cls` stands for."""
        while self.pick[cls].op in ALIASES:
            cls = self.pick[cls].children[0]
        return cls

    def chain(self, cls: int) -> list[Node]:
        """The nodes from `cls` down to the one that made its value."""
        out = [self.pick[cls]]
        while out[-1].op in ALIASES:
            out.append(self.pick[out[-1].children[0]])
        return out

    def stays(self, cls: int) -> tuple[int, int] | None:
        """Of a tile that stays from an earlier loop to this one: both loops, this one first."""
        return next((n.payload for n in self.chain(cls) if n.op == "Stays" and n.payload[0] != n.payload[1]), None)

    def sources(self, node: Node) -> list[int]:
        """The classes of data that a node reads: its decisions left out."""
        return [c for c in node.children if self.pick[c].op not in ("L0", "Buffers", "Alone")]

    def producer(self, cls: int) -> tuple[int, int] | None:
        """(item, region) that makes the value of `cls`, or None where it is there from the start of its region."""
        made = self.pick[self.base(cls)]
        if made.op in ("PProj", "PTProj"):
            loop = made.payload[0]
            return -loop, self.graph.parents[loop]
        if made.op in ("PArg", "PTArg", "GM0"):
            return None
        return made.cls, made.region

    def lift(self, item: int, region: int, to: int) -> int:
        """The item of region `to` that contains `item` of `region`."""
        while region != to:
            item, region = -region, self.graph.parents[region]
        return item

    def items(self) -> dict[int, list[int]]:
        """Items by region."""
        out: dict[int, list[int]] = defaultdict(list)
        for n in self.instructions:
            out[n.region].append(n.cls)
        for loop in self.loops:
            out[self.graph.parents[loop]].append(-loop)
        return out

    def state_reads(self, loop: int, k: int) -> Iterator[Node]:
        """The nodes that stand for state k inside its loop."""
        return (n for n in self.nodes if n.op == "PArg" and n.payload[:2] == (loop, k))

    def after(self, state: Node) -> Node:
        """How a state gets its next value: NextIn or NextCp."""
        return self.pick[state.children[1]]

    def _readers(self) -> dict[int, set[tuple[int, int]]]:
        out: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for n in self.instructions:
            for c in self.sources(n):
                out[self.base(c)].add((n.cls, n.region))
        return out


class _Cells:
    """Union-find over classes, state cells and tensors: what shares one storage."""

    def __init__(self, chosen: Selection) -> None:
        self.up: dict = {}
        self.tensor: dict = {}
        for n in chosen.nodes:
            self._join_node(chosen, n)
        for n in chosen.nodes:
            if n.op == "GM0":
                self.tensor[self.find(n.cls)] = n.payload[0]

    def find(self, x: object) -> object:
        self.up.setdefault(x, x)
        while self.up[x] != x:
            self.up[x] = self.up[self.up[x]]
            x = self.up[x]
        return x

    def join(self, a: object, b: object) -> None:
        self.up[self.find(a)] = self.find(b)

    def _join_node(self, chosen: Selection, n: Node) -> None:
        if n.op in ALIASES:
            self.join(n.cls, n.children[0])
        elif n.op in OVERWRITES:
            self.join(n.cls, n.children[OVERWRITES[n.op]])
        elif n.op in ("PArg", "PProj"):
            self.join(n.cls, ("cell", *n.payload[:2]))
        elif n.op == "State":
            self.join(("cell", *n.payload[:2]), n.children[0])
            if chosen.after(n).op == "NextIn":
                self.join(("cell", *n.payload[:2]), n.children[1])
        elif n.op == "GM0":
            self.join(n.cls, ("gm", n.payload[0]))
        elif n.op in STORES:
            self.join(n.cls, n.children[0])
        elif n.op in ("PTArg", "PTProj"):
            self.join(n.cls, ("tensor", *n.payload[:2]))
        elif n.op == "PTCons":
            self.join(("tensor", *n.payload[:2]), n.children[0])
            self.join(n.children[1], n.children[0])
