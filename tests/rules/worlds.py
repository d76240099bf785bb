"""A kernel's e-graph in numbers: its tables of facts beside its values in a few places.

A world is the e-graph after its phases of values, with every class in numbers in a few places: blocks, and trips of loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tile_eg.egraph import Phase
from tile_eg.egraph.audit import places
from tile_eg.egraph.encode import Encoder
from tile_eg.egraph.members import VALUES, Class, Member, Members, read_members
from tile_eg.egraph.numbers import Numbers, Unbound
from tile_eg.egraph.saturate import with_values
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.index import BLOCK, SUB, const
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.values import Values
from tile_eg.rules import Theory, native, theories
from tile_eg.rules.theory import Rule
from tile_eg.transforms.k_tiling import Tiling

Row = tuple[Any, ...]
HELD = {*VALUES, "P", "PT", "Outs"}


@dataclass
class World:
    """`tables` are the rows of facts: the arguments, and the value of a function at the end."""

    kernel: Kernel
    members: Members
    tables: dict[str, list[Row]]
    phases: list[Phase] = field(default_factory=list)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """Small whole numbers: sums of their products are exact in any order."""
        random = np.random.default_rng(3)
        tensors = {t.name: random.integers(1, 4, t.shape).astype(numpy_dtype(t.dtype)) for t in self.kernel.tensors}
        return tensors | {name: np.float32(2) for name in self.kernel.numbers}

    @cached_property
    def blocks(self) -> list[int]:
        return sorted({0, self.members.encoder.values.blocks - 1})

    @cached_property
    def places(self) -> list[Numbers]:
        """Blocks, and the first two and the last trip of every loop in them."""
        starts = [Numbers(self.members, self.arrays, {BLOCK: block, SUB: 0}) for block in self.blocks]
        with np.errstate(all="ignore"):
            return [n for start in starts for _, n in places(self.members, start, "")]

    def terms(self) -> Iterator[tuple[Numbers, Class, Member]]:
        """Every term of every class of tiles, versions and loops, in each place where it is known."""
        for n in self.places:
            for cls, members in self.members.classes.items():
                for m in members if cls[0] in ("V", "T", "Lp") and len(members) > 1 else ():
                    if known_at(n, cls) and known_at(n, cls, m):
                        yield n, cls, m

    def differing(self) -> list[tuple[Member, Member]]:
        """Terms of one class that differ in a bit."""
        return [(m, self.members.chosen[c]) for n, c, m in self.terms() if not _equal(n.member(c, m), n.of(c))]

    def matched(self) -> set[str]:
        """The rules that matched."""
        return {r for p in self.phases for r, n in p.matches.items() if n}

    def of(self, name: str) -> dict[Any, Any]:
        """A function of one argument."""
        return {row[0]: row[1] for row in self.tables[name]}

    def holding(self, name: str) -> set[Any]:
        """A relation of one argument."""
        return {row[0] for row in self.tables[name]}

    def tiling(self, deep: int) -> Tiling:
        return next(t for t in self.members.encoder.tilings if t.deep == deep)

    def groups(self, t: Tiling) -> Iterator[tuple[Numbers, list[Numbers]]]:
        """Each trip of a deeper loop, with the trips of the loop that it stands for; no states are bound."""
        values = self.members.encoder.values
        for start in self.places:
            if bound(start) != around(values, values.parents[t.loop]):
                continue
            for trip in range(t.trips):
                few = range(trip * t.factor, min((trip + 1) * t.factor, t.before))
                yield start.inside(t.deep, trip, ()), [start.inside(t.loop, k, ()) for k in few]


def world(kernel: Kernel, held: tuple[Theory, ...] | None = None, values: Values | None = None) -> World:
    """The world of a kernel, in another form by its `values`, under these rules (None: the project's)."""
    found = values or to_values(kernel)
    made, phases = with_values(found, held or theories(), lambda egraph, encoder: _read(kernel, egraph, encoder))
    made.phases = phases
    return made


def changed(rule: str, old: str, new: str) -> tuple[Theory, ...]:
    """The theories with one rule's text changed."""

    def text(line: str) -> str:
        if not line.endswith(f':name "{rule}")'):
            return line
        assert old in line
        return line.replace(old, new)

    def anywhere(held: Rule) -> Rule:
        return replace(held, needs=frozenset()) if held.name == rule else held

    return tuple(replace(t, text=tuple(map(text, t.text)), rules=tuple(map(anywhere, t.rules))) for t in theories())


def nothing(_: Any) -> None:
    """What a row of a relation is at its end."""


def _read(kernel: Kernel, egraph: Any, encoder: Encoder) -> World:
    functions = native.functions(egraph)
    i64, string = egraph.value_to_i64, egraph.value_to_string
    index = {r.output: const(i64(r.inputs[0])) for r in functions["IC"].rows} if "IC" in functions else {}
    if "Ix" in functions:
        index |= {r.output: encoder.index[string(r.inputs[0])] for r in functions["Ix"].rows}
    shares = {r.output: None for r in functions["Whole"].rows} if "Whole" in functions else {}
    shares |= {r.output: i64(r.inputs[0]) for r in functions["Split"].rows} if "Split" in functions else {}
    decode: dict[str, Callable[[Any], Any]] = {
        "i64": i64, "String": string, "f64": egraph.value_to_f64, "I": index.__getitem__, "Sh": shares.__getitem__,
        "LS": lambda s: frozenset(i64(x) for x in egraph.value_to_set(s)),
        **{sort: lambda x, sort=sort: (sort, x) for sort in VALUES},
    }  # fmt: skip
    tables = {}
    for name, f in functions.items():
        sorts = (*f.input_sorts, f.output_sort)
        if f.is_let_binding or f.output_sort in HELD:
            continue
        rows = ((*r.inputs, r.output) for r in f.rows)
        tables[name] = [tuple(decode.get(s, nothing)(x) for s, x in zip(sorts, row, strict=True)) for row in rows]
    return World(kernel, read_members(egraph, encoder), tables)


def around(values: Values, region: int) -> set[str]:
    """The variables of a loop and of those around it."""
    names = set()
    while region:
        names.add(values.variables[region])
        region = values.parents[region]
    return names


def bound(n: Numbers) -> set[str]:
    """The variables of the loops that are running."""
    return n.indices.keys() - {BLOCK, SUB}


def known_at(n: Numbers, cls: Class, term: Member | None = None) -> bool:
    """Whether a class, or this term of it, belongs to a trip that is running."""
    try:
        n.member(cls, term) if term else n.of(cls)
    except Unbound:
        return False
    return True


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return all(map(_equal, one, other))
    return np.array_equal(one, other, equal_nan=True)


def loops(w: World, loop: int) -> list:
    return [m for c, ms in w.members.classes.items() if c[0] == "Lp" for m in ms if m.args[0] == loop]
