"""A number of a kernel that differs from size to size, as an expression of the sizes: found from a few, true at all others.

Frontends compute such numbers from sizes by products, sums with numbers, and quotients by the edges of tiles, rounded up or down.
What gives the number at every one of several sets of sizes, which are primes that have nothing to do with one another, is how it
was computed: a wrong expression would have to meet all of them by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING

from tile_eg.ir.index import Expr, const, maximum, minimum, mul
from tile_eg.ir.sizes import size
from tile_eg.ops.records import record

if TYPE_CHECKING:
    import numpy as np

MOST_FACTORS = 3
Sizes = Mapping[str, int]


@record
class Atom:
    """A size, or its quotient by the edge of a tile."""

    name: str
    edge: int = 1
    up: bool = False

    def at(self, sizes: Sizes) -> int:
        return (sizes[self.name] + (self.edge - 1 if self.up else 0)) // self.edge

    def expr(self, usual: Sizes) -> Expr:
        return (size(self.name, usual[self.name]) + (self.edge - 1 if self.up else 0)) // self.edge


class Numbers:
    """Expressions for the numbers that a kernel has at each of several `sets` of sizes. `edges` are those of tiles.

    Primes do not tell a quotient that is rounded up from one that is rounded down and one more: `up` says which is meant.
    """

    def __init__(self, sets: Sequence[Sizes], edges: Sequence[int], usual: Sizes, up: bool = True) -> None:
        self.sets, self.usual, self.up = sets, usual, up
        self.edges = sorted(set(edges))
        self.known: dict[tuple[int, ...], Expr | None] = {}

    def expr(self, values: Sequence[int]) -> Expr | None:
        """The expression that has these values at the sets; None where none is found."""
        key = tuple(values)
        if len(set(key)) == 1:
            return const(key[0])
        if key not in self.known:
            self.known[key] = self._single(key) or self._sum_of_two(key) or self._of_two(key)
        return self.known[key]

    def among(self, places: Sequence[int], values: Sequence[int]) -> Iterator[Expr]:
        """The expressions that have these values at the sets at these places: of one size, then of all. Few sets have several."""
        for names in (*((name,) for name in self.sets[0]), tuple(self.sets[0])):
            sets = [{name: self.sets[n][name] for name in names} for n in places]
            found = Numbers(sets, self.edges, self.usual, self.up).expr(values)
            if found is not None:
                yield found

    @cached_property
    def atoms(self) -> dict[str, list[tuple[Atom, tuple[int, ...]]]]:
        """Those of each size with their values, the simplest first."""
        out: dict[str, list[tuple[Atom, tuple[int, ...]]]] = {}
        for name in self.sets[0]:
            found = [Atom(name), *(Atom(name, e, self.up) for e in self.edges)]
            out[name] = [(a, tuple(a.at(s) for s in self.sets)) for a in found]
        return out

    @cached_property
    def products(self) -> list[tuple[list[tuple[Atom, ...]], np.ndarray]]:
        """Products of one atom of each of several sizes, by how many there are; a row of values for each product."""
        import numpy as np

        out = []
        for count in range(1, min(MOST_FACTORS, len(self.atoms)) + 1):
            chosen = [c for names in combinations(self.atoms, count) for c in product(*(self.atoms[n] for n in names))]
            rows = [[v for _, v in c] for c in chosen]
            out.append(([tuple(a for a, _ in c) for c in chosen], np.array(rows, np.int64).prod(axis=1)))
        return out

    def _single(self, values: tuple[int, ...]) -> Expr | None:
        """factor * product + number, of the simplest product."""
        import numpy as np

        wanted = np.array(values, np.int64)
        for atoms, rows in self.products:
            steps = rows - rows[:, :1]
            at = (steps != 0).argmax(axis=1)
            step = np.take_along_axis(steps, at[:, None], 1)[:, 0]
            factor = (wanted[at] - wanted[0]) // np.where(step == 0, 1, step)
            good = (step != 0) & (factor != 0) & (factor[:, None] * steps == wanted - wanted[0]).all(axis=1)
            if good.any():
                n = int(good.argmax())
                return self._times(atoms[n], int(factor[n])) + int(wanted[0] - factor[n] * rows[n, 0])
        return None

    def _sum_of_two(self, values: tuple[int, ...]) -> Expr | None:
        """factor * size + factor * another size + number, as where one sequence ends later than another."""
        for one, other in combinations(self.atoms, 2):
            (a, x), (b, y) = self.atoms[one][0], self.atoms[other][0]
            if (found := _plane(values, x, y)) is not None:
                return self._times((a,), found[0]) + self._times((b,), found[1]) + found[2]
        return None

    def _of_two(self, values: tuple[int, ...]) -> Expr | None:
        """The smaller, or the larger, of two sizes or of their quotients by one edge."""
        for one, other in combinations(self.atoms, 2):
            for (a, x), (b, y) in product(self.atoms[one], self.atoms[other]):
                for op, build in ((min, minimum), (max, maximum)):
                    if a.edge == b.edge and values == tuple(map(op, x, y)):
                        return build(a.expr(self.usual), b.expr(self.usual))
        return None

    def _times(self, atoms: Sequence[Atom], factor: int) -> Expr:
        out = atoms[0].expr(self.usual)
        for atom in atoms[1:]:
            out = mul(out, atom.expr(self.usual))
        return mul(out, const(factor))


def _plane(values: Sequence[int], x: Sequence[int], y: Sequence[int]) -> tuple[int, int, int] | None:
    """a, b and c with values = a * x + b * y + c everywhere, all whole."""
    steps = [(v - values[0], p - x[0], q - y[0]) for v, p, q in zip(values, x, y, strict=True)]
    pairs = ((s, t) for s, t in combinations(steps, 2) if s[1] * t[2] != t[1] * s[2])
    (v1, x1, y1), (v2, x2, y2) = next(pairs, ((0, 0, 0), (0, 0, 0)))
    det = x1 * y2 - x2 * y1
    if not det or (v1 * y2 - v2 * y1) % det or (x1 * v2 - x2 * v1) % det:
        return None
    a, b = (v1 * y2 - v2 * y1) // det, (x1 * v2 - x2 * v1) // det
    c = values[0] - a * x[0] - b * y[0]
    same = all(v == a * p + b * q + c for v, p, q in zip(values, x, y, strict=True))
    return (a, b, c) if same and a and b else None
