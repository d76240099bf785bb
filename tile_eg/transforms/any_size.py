"""The values of a kernel at any sizes, from its values at a few: terms that all have, with expressions for their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, ONE, Expr, const, evaluate
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.sizes import Sizes, sizes_in, usual
from tile_eg.ir.values import Builder, Term, Values, reachable
from tile_eg.ops.records import record
from tile_eg.transforms.size_numbers import Numbers

MOST_EDGES = 8  # numbers beside the extents of tiles
STRIDE_AT = {"load": 2, "store": 2, "accumulate": 2}
"""Where in the arguments of a term its row stride stands."""


@record
class NotAlike:
    """That a kernel's values are not the same ones at different sizes, and `why`: what differs, in an author's words.

    `everywhere`: they are not at any other sizes either.
    """

    why: str
    everywhere: bool = False


class _Differs(Exception):
    """What differs was found somewhere in the terms. It goes no further than `of_any_size`."""

    def __init__(self, why: str, everywhere: bool = False) -> None:
        super().__init__(why)
        self.found = NotAlike(why, everywhere)


def of_any_size(
    found: Sequence[Values], sets: Sequence[Mapping[str, int]], sizes: Mapping[str, int], up: bool = True
) -> Values | NotAlike:
    """The values that these are at their `sets` of sizes, with `sizes` as the numbers for those that are known at run time.

    `up`: quotients by tiles are taken to be rounded up.

    NotAlike where the kernel is another one at other sizes, or a number in it has no expression.
    """
    try:
        return _Joined(found, Numbers(sets, _edges(found), sizes, up), sizes).values()
    except _Differs as differs:
        return differs.found


def _loops(v: Values) -> tuple[Any, ...]:
    return v.name, v.parents, v.variables, v.shared, v.strips, len(v.grid), set(v.trips)


class _Joined:
    """Values at several sizes, gone through side by side."""

    def __init__(self, found: Sequence[Values], numbers: Numbers, sizes: Mapping[str, int]) -> None:
        self.found, self.sizes, self.numbers = found, sizes, numbers
        if any(_loops(v) != _loops(found[0]) for v in found):
            raise _Differs("it has other loops at other sizes")
        self.builder = Builder()
        self.made: dict[tuple[int, ...], Term] = {}
        self.strides: dict[tuple[str, int], Expr] = {}
        self.tensors = tuple(self._tensor(alike) for alike in zip(*(v.tensors for v in found), strict=True))
        self.by_name = {t.name: t for t, _ in self.tensors}
        self.trips = {loop: self._trips(loop) for loop in found[0].trips}

    def values(self) -> Values:
        first = self.found[0]
        outputs = tuple(self._term(alike) for alike in zip(*(v.outputs for v in self.found), strict=True))
        grid = tuple(self._number(alike, "the grid") for alike in zip(*(v.grid for v in self.found), strict=True))
        blocks = prod(grid, start=ONE)
        strides = tuple((name, n, e) for (name, n), e in self.strides.items() if sizes_in(e))
        counts = {loop: count for loop, (_, count) in self.trips.items() if count is not None}
        return replace(
            first, tensors=tuple(t for t, _ in self.tensors), blocks=usual(blocks), outputs=outputs, grid=tuple(map(usual, grid)),
            trips={loop: most for loop, (most, _) in self.trips.items()}, counts=counts, fewest=self._fewest(counts),
            spans=self._of_terms("spans"), buffers=self._of_terms("buffers"),
            sizes=Sizes(tuple(self.sizes.items()), blocks, grid, tuple(shape for _, shape in self.tensors), strides),
        )  # fmt: skip

    def _of_terms(self, what: str) -> dict[Term, Any]:
        held = getattr(self.found[0], what)
        by_id = {id(t): x for t, x in held.items()}
        return {term: by_id[ids[0]] for ids, term in self.made.items() if ids[0] in by_id}

    # ---- numbers ----

    def _number(self, alike: Sequence[int], what: str) -> Expr:
        found = self.numbers.expr(alike)
        if found is None:
            raise _Differs(f"{what} follows from the sizes in no way that is known: {', '.join(map(str, alike))}")
        return found

    def _tensor(self, alike: Sequence[Tensor]) -> tuple[Tensor, tuple[Expr, ...]]:
        shape = tuple(self._number(dims, f"the shape of {alike[0].name}") for dims in zip(*(t.shape for t in alike), strict=True))
        return replace(alike[0], shape=tuple(map(usual, shape))), shape

    def _trips(self, loop: int) -> tuple[int, Expr | None]:
        """The most trips of a loop at the usual sizes, and how many there are where sizes or blocks decide it."""
        name = self.found[0].variables[loop]
        most = self._number([v.trips[loop] for v in self.found], f"the trips of loop {name}")
        count: Expr | None = most if sizes_in(most) else None
        if any(loop in v.counts for v in self.found):
            count = self._expr([v.counts.get(loop, const(v.trips[loop])) for v in self.found], f"the trips of loop {name}")
        return max(2, usual(most)), count

    def _fewest(self, counts: Mapping[int, Expr]) -> dict[int, int]:
        """The least trips: none where a block may have none at the sizes that were looked at, else one for what sizes decide."""
        out = {}
        for loop, most in self.found[0].fewest.items():
            sized = loop in counts and sizes_in(counts[loop])
            least = min(v.fewest[loop] for v in self.found)
            out[loop] = min(1, least) if sized else most
        return out

    def _expr(self, alike: Sequence[Expr], what: str) -> Expr:
        """An index expression with an expression of sizes in place of each number that differs."""
        first = alike[0]
        if all(e == first for e in alike):
            return first
        if any(e.op != first.op or len(e.args) != len(first.args) for e in alike):
            if (least := self._least(alike, what)) is not None:
                return least
            raise _Differs(f"{what} is another expression at other sizes: {', '.join(map(str, dict.fromkeys(alike)))}")
        if first.op == "const":
            return self._number([e.args[0] for e in alike], what)
        if first.op == "var":
            raise _Differs(f"{what} depends on other loops at other sizes")
        if first.op == "read":
            return self._read(alike, what)
        args = [self._expr(parts, what) for parts in zip(*(e.args for e in alike), strict=True)]
        if first.op == "mul" and args[1].value is None:
            return _times(args[0], args[1])
        return ix.with_operands(first, args)

    def _least(self, alike: Sequence[Expr], what: str) -> Expr | None:
        """A minimum with a number that was left out at sizes at which it decides nothing; None where it is none."""
        there = [n for n, e in enumerate(alike) if e.op == "min"]
        sides = [s for s in (0, 1) if len({e.args[s].op if e.op == "min" else e.op for e in alike}) == 1]
        if not there or not sides or any(alike[n].args[1 - sides[0]].op != "const" for n in there):
            return None
        side = sides[0]
        left = {n: e for n, e in enumerate(alike) if n not in there}
        found = self.numbers.among(there, [alike[n].args[1 - side].args[0] for n in there])
        most = next((e for e in found if all(self._at_most(n, alike[n], e) for n in left)), None)
        if most is None:
            return None
        return ix.minimum(self._expr([e.args[side] if e.op == "min" else e for e in alike], what), most)

    def _at_most(self, n: int, e: Expr, limit: Expr) -> bool:
        """Whether an expression is no more than the limit in all blocks and trips of the values at one of the sets."""
        v, most = self.found[n], evaluate(limit, self.numbers.sets[n])
        most_of = {BLOCK: v.blocks, **{v.variables[loop]: trips for loop, trips in v.trips.items()}}
        ranges = {name: (0, max(0, count - 1)) for name, count in most_of.items()}
        return ix.variables(e) <= ranges.keys() and ix.bounds(e, ranges)[1] <= most

    def _read(self, alike: Sequence[Expr], what: str) -> Expr:
        """An element of a tensor; how large it may be is not known where that depends on sizes."""
        name, most = alike[0].args[0], {e.args[2] for e in alike}
        if len({e.args[0] for e in alike}) > 1:
            raise _Differs(f"{what} is read from other tensors at other sizes")
        place = self._expr([e.args[1] for e in alike], what)
        return ix.read(name, place, most.pop() if len(most) == 1 else ix.ANY - 1)

    # ---- terms ----

    def _term(self, alike: Sequence[Term]) -> Term:
        key = tuple(map(id, alike))
        if key not in self.made:
            self.made[key] = self._joined(alike)
        return self.made[key]

    def _joined(self, alike: Sequence[Term]) -> Term:
        first = alike[0]
        if any((t.op, t.rows, t.cols, t.dtype, len(t.args)) != (first.op, first.rows, first.cols, first.dtype, len(first.args))
               for t in alike):  # fmt: skip
            if tile := next((t for t in alike if (t.rows, t.cols) != (first.rows, first.cols)), None):
                shapes = f"{first.rows} x {first.cols} and {tile.rows} x {tile.cols}"
                raise _Differs(f"a tile has another shape at other sizes: {shapes}", everywhere=True)
            raise _Differs("it computes other things at other sizes")
        if first.op == "given":
            return self.builder.make("given", self.by_name[first.args[0].name])
        args = [self._argument(first, n, [t.args[n] for t in alike]) for n in range(len(first.args))]
        shape: dict[str, Any] = {}
        if first.rows or first.dtype is not None or first.vrows is not None:
            shape = {"rows": first.rows, "cols": first.cols, "dtype": first.dtype, "vrows": None, "vcols": None}
        for extent in ("vrows", "vcols"):
            if getattr(first, extent) is not None:
                shape[extent] = self._expr([getattr(t, extent) for t in alike], f"how much of a tile is there ({extent[1:]})")
        return self.builder.make(first.op, *args, **shape)

    def _argument(self, term: Term, n: int, alike: list[Any]) -> Any:
        first = alike[0]
        if STRIDE_AT.get(term.op) == n:
            return self._stride(term, alike)
        if term.op == "loop" and n == 1:
            return self.trips[term.args[0]][0]
        if isinstance(first, Term):
            return self._term(alike)
        if isinstance(first, Expr):
            return self._expr(alike, "where a tile begins")
        if isinstance(first, tuple):
            if len({len(a) for a in alike}) > 1:
                raise _Differs("its loops carry other things at other sizes")
            return tuple(self._argument(term, -1, list(parts)) for parts in zip(*alike, strict=True))
        if any(a != first and not (a != a and first != first) for a in alike):
            raise _Differs(f"it computes with a number that follows from the sizes: {', '.join(map(str, alike))}")
        return first

    def _stride(self, term: Term, alike: Sequence[int]) -> int:
        """The number at the usual sizes, which tells the expression."""
        found = self._number(alike, "how far the rows of a window lie apart")
        key = tensor_of(term, self.found[0]), usual(found)
        if self.strides.setdefault(key, found) != found:
            raise _Differs("rows of one tensor lie apart in several ways that are the same at the usual sizes")
        return key[1]


def _times(e: Expr, by: Expr) -> Expr:
    """e * by, with its number outermost."""
    if by.op == "mul" and by.args[1].op == "const":
        return ix.mul(ix.mul(e, by.args[0]), by.args[1])
    return ix.mul(e, by)


def row_stride(term: Term, values: Values) -> Expr | int:
    """The elements between two rows of the window of a load or a store, at any sizes."""
    number: int = term.args[STRIDE_AT[term.op]]
    return values.sizes.stride(tensor_of(term, values), number) if values.sizes else number


def tensor_of(term: Term, values: Values) -> str:
    """The name of the tensor that a load or a store is of."""
    loops = {t.args[0]: t for t in reachable(values) if t.op == "loop"}
    version = term.args[0]
    while version.op != "given":
        if version.op in STRIDE_AT:
            version = version.args[0]
        else:
            loop = version.args[0] if version.op == "tproj" else loops[version.args[0]]
            version = loop.args[2][version.args[1]][0]
    return version.args[0].name  # type: ignore[no-any-return]


def _edges(found: Sequence[Values]) -> list[int]:
    """What sizes may have been divided by: the extents of tiles, and numbers in index expressions that all have in common."""
    extents = {n for t in reachable(found[0]) for n in (t.rows, t.cols)}
    same = set[int].intersection(*({n for e in _expressions(v) for n in _constants(e)} for v in found))
    plain = sorted(same - extents, key=lambda n: (n & (n - 1) != 0, n))
    return [n for n in (*sorted(extents), *plain[:MOST_EDGES]) if n > 1]


def _expressions(values: Values) -> Iterator[Expr]:
    for t in reachable(values):
        yield from (e for e in (*t.args, t.vrows, t.vcols) if isinstance(e, Expr))


def _constants(e: Expr) -> list[int]:
    if e.op == "const":
        return [abs(e.args[0])]
    return [n for a in e.args if isinstance(a, Expr) for n in _constants(a)]


def at(values: Values, sizes: Mapping[str, int]) -> Values:
    """The values with other numbers for their sizes: what they mean at these."""
    assert values.sizes is not None
    return _At(values, sizes).values()


class _At:
    """Values of any size, written anew with other numbers for the sizes."""

    def __init__(self, values: Values, sizes: Mapping[str, int]) -> None:
        assert values.sizes is not None
        self.held, self.sizes = values, dict(sizes)
        self.new = values.sizes.at(sizes)
        self.meaning = values.sizes.meaning(sizes)
        self.builder, self.made = Builder(), dict[Term, Term]()
        shapes = zip(values.tensors, self.new.shapes, strict=True)
        self.tensors = {t.name: replace(t, shape=tuple(map(usual, shape))) for t, shape in shapes}
        self.trips = {loop: self._trips(loop) for loop in values.trips}

    def values(self) -> Values:
        counts = {loop: self._expr(e) for loop, e in self.held.counts.items()}
        return replace(
            self.held, tensors=tuple(self.tensors.values()), blocks=usual(self.new.blocks), sizes=self.new,
            grid=tuple(map(usual, self.new.grid)), outputs=tuple(map(self._term, self.held.outputs)), trips=self.trips,
            counts=counts, spans={}, buffers={},
        )  # fmt: skip

    def _trips(self, loop: int) -> int:
        count = self.held.counts.get(loop)
        if count is None:
            return self.held.trips[loop]
        blocks = {evaluate(self._expr(count), {BLOCK: b}) for b in range(usual(self.new.blocks))}
        return max(2, *blocks) if blocks else 2

    def _expr(self, e: Expr) -> Expr:
        return ix.substitute(e, self.meaning)

    def _term(self, t: Term) -> Term:
        if t not in self.made:
            self.made[t] = self._again(t)
        return self.made[t]

    def _again(self, t: Term) -> Term:
        if t.op == "given":
            return self.builder.make("given", self.tensors[t.args[0].name])
        args = [self._argument(t, n, a) for n, a in enumerate(t.args)]
        vrows, vcols = (None if e is None else self._expr(e) for e in (t.vrows, t.vcols))
        return self.builder.make(t.op, *args, rows=t.rows, cols=t.cols, dtype=t.dtype, vrows=vrows, vcols=vcols)

    def _argument(self, t: Term, n: int, a: Any) -> Any:
        if STRIDE_AT.get(t.op) == n:
            assert self.held.sizes is not None
            stride = self.held.sizes.stride(tensor_of(t, self.held), a)
            return evaluate(stride, self.sizes) if isinstance(stride, Expr) else stride
        if t.op == "loop" and n == 1:
            return self.trips[t.args[0]]
        if isinstance(a, tuple):
            return tuple(self._argument(t, -1, x) for x in a)
        return self._term(a) if isinstance(a, Term) else self._expr(a) if isinstance(a, Expr) else a
