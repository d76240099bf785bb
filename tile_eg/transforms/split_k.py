"""Split-K: a long loop of sums in parts, each for a block of its own, and a second phase that adds what the parts give.

An equality of values, up to the order of additions: a sum over all trips is the sum of the sums over parts of them, and maxima
and minima likewise. The rules `split-depth` and `split-folds` (`rules/60_grid.egg`) offer it. The first phase writes its sums to
a tensor that all blocks share; when all cores have met, the second adds them in the order of the parts, so that the result is the
same in every run. What the trips of the loop store, the first phase stores; another loop that only stores is the second's blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from tile_eg.ir.index import BLOCK, Expr, const, minimum, substitute, var
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program.tasks import free_names
from tile_eg.ir.values import VERSIONS, Builder, Term, Values, reachable
from tile_eg.ops.records import record
from tile_eg.transforms.folds import OF, is_neutral, loops_of_folds
from tile_eg.transforms.k_tiling import loops_of_products
from tile_eg.transforms.rewriter import Rewriter
from tile_eg.transforms.row_panels import in_blocks
from tile_eg.transforms.stores_of_trips import loop_of_stores, trips_as_blocks

COUNTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48)
"""How many parts the rules offer (`PartOpt`), as far as there are cores for them."""
PANELS = (1, 2, 4, 8, 16, 32)
"""Into how many panels of rows each tile of sums may go in the second phase, a block for each."""


@record
class Tiles:
    """Some blocks of a kernel, each a tile: so many, and which one comes at number BLOCK of them."""

    count: int
    block: Expr

    @staticmethod
    def all(values: Values) -> Tiles:
        return Tiles(values.blocks, var(BLOCK))


@record
class Parts:
    """A kernel as two phases: the second begins when all blocks of the first have ended."""

    count: int
    first: Values
    second: Values

    @property
    def bytes(self) -> int:
        """Bytes of what is shared."""
        return sum(t.dtype.bytes * prod(t.shape) for t in self.first.shared)


def divisible(values: Values) -> int | None:
    """The trips of the one loop that may be done in parts; None where there is no such loop."""
    loop = _loop_of_parts(values)
    return loop.args[1] if loop else None


def cores_for_parts(values: Values, cube: int, vector: int) -> int:
    """How many of a chip's cores have a part each: cube cores where there are products, else vector cores."""
    return cube if any(t.op == "matmul" for t in reachable(values)) else vector


def least_trips(values: Values) -> int:
    """The trips that a part has at least: as many as the author gave slots to what the loop loads, so that it fills them."""
    loop = _loop_of_parts(values)
    return max(1, values.stages.get(loop.args[0], 1)) if loop else 1


def in_parts(values: Values, count: int, panels: int = 1, tiles: Tiles | None = None) -> Parts:
    """The kernel, or some `tiles` of it, with its loop of sums in `count` parts; the last one may be shorter (`fits`). In the
    second phase each tile is so many `panels` of rows, a block for each, where its rows can be told apart."""
    loop, of = _loop_of_parts(values), tiles or Tiles.all(values)
    assert loop is not None and fits(loop.args[1], count)
    shared = tuple(_tensor(values, count * of.count, n, init) for n, (_, (init, _)) in enumerate(folded(loop)))
    return Parts(count, _first(values, loop, count, of, shared), _second(values, loop, count, of, shared, panels))


def fits(trips: int, count: int) -> bool:
    """Whether so many trips are `count` parts of which only the last one may be shorter."""
    return (count - 1) * -(-trips // count) < trips


def loop_of_sums(values: Values) -> Term | None:
    """A loop of products at the top, from zero on, with no other one around or behind it, whose results are stored."""
    return _only(values, loops_of_products(values), None)


def _loop_of_parts(values: Values) -> Term | None:
    """That loop; in a kernel without products, one of sums, maxima and minima."""
    return loop_of_sums(values) or _only(values, loops_of_folds(values), loop_of_stores(values))


def _only(values: Values, loops: Collection[int], stores: Term | None) -> Term | None:
    """The one of some loops whose results are stored, if it is at the top and nothing else of the kernel loops, but for one that
    `stores`: each of its trips can be a block of a second phase."""
    terms = reachable(values)
    found = [t for t in terms if t.op == "loop" and t.args[0] in loops]
    if len(found) != 1 or values.parents[found[0].args[0]] != 0:
        return None
    loop, read = found[0], {t.args[1] for t in terms if t.op == "proj" and t.args[0] is found[0]}
    neutral = all(is_neutral(state) for _, state in folded(loop))
    all_read = len(read) == len(folded(loop))
    others = (t for t in outside(values, loop) if t not in _stored_in(values, loop))
    return loop if neutral and all_read and not any(_holds_back(t, stores) for t in others) else None


def folded(loop: Term) -> list[tuple[int, tuple[Term, Term]]]:
    """The states of a loop that are sums, maxima or minima, by their numbers; the others are tensors."""
    return [(k, state) for k, state in enumerate(loop.args[2]) if state[0].op not in VERSIONS]


def outside(values: Values, loop: Term) -> Iterator[Term]:
    """What the outputs are made of besides the loop."""
    inside = Rewriter({}, {loop: loop})
    for o in values.outputs:
        inside.term(o)
    return (t for t in inside.terms if t is not loop)


def _holds_back(t: Term, stores: Term | None) -> bool:
    """Whether a second phase cannot do this: more products, loops, and reads of what is stored."""
    if t.op in ("loop", "tproj") and stores in (t, *t.args):
        return False
    if t.op == "targ" and stores is not None and t.args[0] == stores.args[0]:
        return False
    return t.op in ("matmul", "loop", "targ", "tproj") or (t.op == "load" and t.args[0].op != "given")


def _tensor(values: Values, tiles: int, k: int, state: Term) -> Tensor:
    name = free_names(("sums",), {t.name for t in values.tensors})["sums"] + (str(k + 1) if k else "")
    assert state.dtype is not None
    return Tensor(name, state.dtype, (tiles * state.rows, state.cols), True)


def addable(values: Values) -> bool:
    """Whether the sums of products are stored as they are, so that parts of them may be added up where they are stored."""
    loop = loop_of_sums(values)
    return loop is not None and all(_stores_sums(o, loop) for o in values.outputs)


def _stores_sums(version: Term, loop: Term) -> bool:
    if version.op != "store" or version.args[0].op != "given":
        return False
    value = version.args[3]
    return value.op == "proj" and value.args[0] is loop


def added(values: Values, count: int) -> Values:
    """The kernel (`addable`) with its loop of products in `count` parts: each block adds the sums over its part to the output."""
    loop = loop_of_sums(values)
    assert loop is not None and loop.args[1] % count == 0
    of = Tiles.all(values)
    again, _ = _shorter(values, loop, count, of)
    outputs = []
    for o in values.outputs:
        again.terms[o] = again.builder.make("accumulate", *map(again.anything, o.args))
        outputs.append(again.terms[o])
    return _over_parts(again, values, loop, count, of, tuple(outputs))


def _shorter(values: Values, loop: Term, count: int, of: Tiles) -> tuple[Rewriter, list[Term]]:
    """What builds a block's terms for its part of the trips, and the sums over them."""
    number, trips, _, *rest = loop.args
    variable, part, share = values.variables[number], _part(of), -(-trips // count)
    block = substitute(of.block, {BLOCK: var(BLOCK) % of.count})
    again = Rewriter({BLOCK: block, variable: var(variable) + part * share})
    shorter = again.builder.make("loop", number, share, again.term(loop).args[2], *rest)
    sums = [again.builder.make("proj", shorter, k, **_shape(again.term(state))) for k, (state, _) in folded(loop)]
    for (k, _), one in zip(folded(loop), sums, strict=True):
        again.terms |= dict.fromkeys(results(values, loop, k), one)
    again.terms |= {o: again.builder.make("tproj", shorter, o.args[1]) for o in _stored_in(values, loop)}
    return again, sums


def _stored_in(values: Values, loop: Term) -> list[Term]:
    """The outputs that the trips of a loop store."""
    return [o for o in values.outputs if o.op == "tproj" and o.args[0] is loop]


def _part(of: Tiles) -> Expr:
    """Which part a block does: the first parts of all tiles come first."""
    return var(BLOCK) // of.count


def _over_parts(
    again: Rewriter, values: Values, loop: Term, count: int, of: Tiles, outputs: tuple[Term, ...], **changed: Any
) -> Values:
    """The kernel with as many blocks for each of its tiles, the first parts first."""
    number, trips = loop.args[:2]
    share = -(-trips // count)
    if trips % count:
        left = minimum(share, trips - _part(of) * share)
        changed |= {"counts": {number: left}, "fewest": {number: trips - (count - 1) * share}}
    grid = values.grid if of == Tiles.all(values) else (of.count,)
    changed |= {"blocks": of.count * count, "grid": (*grid, count), "trips": values.trips | {number: share}}
    return again.values(values, outputs, **changed)


def _first(values: Values, loop: Term, count: int, of: Tiles, shared: tuple[Tensor, ...]) -> Values:
    """Each block: the sums over its part of the trips."""
    again, sums = _shorter(values, loop, count, of)
    stores = []
    for tensor, one in zip(shared, sums, strict=True):
        start = var(BLOCK) * (one.rows * one.cols)
        stores.append(again.builder.make("store", again.builder.make("given", tensor), start, one.cols, one))
    stores += map(again.term, _stored_in(values, loop))
    return _over_parts(again, values, loop, count, of, tuple(stores), shared=shared)


def _second(values: Values, loop: Term, count: int, of: Tiles, shared: tuple[Tensor, ...], panels: int) -> Values:
    """Each block: the sums of the parts, and what is done with them; by panels of rows, or a trip that stores in each."""
    again, name = Rewriter({BLOCK: of.block}), free_names(("part",), set(values.variables.values()))["part"]
    of_states = zip(folded(loop), shared, strict=True)
    joins = [_Join(again.builder, k, state, tensor, _zero(values, loop, k, state[0], again)) for (k, state), tensor in of_states]
    looped = [j for j in joins if of.count > 1 or j.zero.rows * j.zero.cols > 1]
    pairs = tuple(j.pair(of.count, loop.args[0], n, name) for n, j in enumerate(looped))
    sums = again.builder.make("loop", loop.args[0], count, pairs, 0)
    for j in joins:
        result = again.builder.make("proj", sums, looped.index(j), **_shape(j.zero)) if j in looped else j.of_row(count)
        again.terms |= dict.fromkeys(results(values, loop, j.state), result)
    whole = again.values(values, _left(values, loop, again), shared=shared, **_with_loop(values, of, loop.args[0], count, name))
    for j, (init, after) in zip(looped, pairs, strict=True):
        called = values.buffers.get(j.pairs[0], (j.tensor.name, "fragment"))
        whole.buffers |= {init: called, after: called, after.args[1]: called, after.args[2]: (j.tensor.name, "shared")}
    return trips_as_blocks(whole) if loop_of_stores(values) else in_blocks(whole, panels) or whole


def _zero(values: Values, loop: Term, k: int, init: Term, again: Rewriter) -> Term:
    """What a sum begins with, for as many rows and columns as there are of what it comes to."""
    ends = next((_shape(again.term(t)) for t in results(values, loop, k)), {})
    return again.builder.make(init.op, *map(again.anything, init.args), **_shape(init) | ends)


def _left(values: Values, loop: Term, again: Rewriter) -> tuple[Term, ...]:
    """The outputs that the trips of a loop do not store."""
    return tuple(again.term(o) for o in values.outputs if o not in _stored_in(values, loop))


def _with_loop(values: Values, of: Tiles, number: int, count: int, name: str) -> dict[str, Any]:
    """What is known of the second phase's loops and blocks: one loop goes over the parts, another one may store."""
    stores = loop_of_stores(values)
    kept = {stores.args[0]} if stores else set[int]()
    known = {"parents": 0, "trips": count, "variables": name}
    left = {field: {n: x for n, x in getattr(values, field).items() if n in kept} for field in known}
    grid = values.grid if of == Tiles.all(values) else (of.count,)
    return {"blocks": of.count, "grid": grid, **{field: left[field] | {number: new} for field, new in known.items()}}


@dataclass(eq=False)
class _Join:
    """What the parts of one sum come to: its number and terms among a loop's states, where these lie, and what it begins with."""

    builder: Builder
    state: int
    pairs: tuple[Term, Term]
    tensor: Tensor
    zero: Term

    def pair(self, tiles: int, loop: int, k: int, variable: str) -> tuple[Term, Term]:
        """A state of a loop over the parts: what it begins with, and one more part in each trip."""
        shape, zero = _shape(self.zero), self.zero
        start = (var(variable) * tiles + var(BLOCK)) * (zero.rows * zero.cols)
        one = self.builder.make("load", self.builder.make("given", self.tensor), start, zero.cols, **shape)
        state = self.builder.make("arg", loop, k, **shape)
        return zero, self.builder.make("binary", self.pairs[1].args[0], state, one, **shape)

    def of_row(self, count: int) -> Term:
        """Parts of one number, which lie in a row."""
        row = _shape(self.zero) | {"cols": count, "vcols": const(count)}
        parts = self.builder.make("load", self.builder.make("given", self.tensor), const(0), count, **row)
        return self.builder.make("reduce", 1, OF[self.pairs[1].args[0]].name, parts, **_shape(self.zero))


def results(values: Values, loop: Term, k: int) -> list[Term]:
    return [t for t in reachable(values) if t.op == "proj" and t.args == (loop, k)]


def _shape(t: Term) -> dict:
    return {"rows": t.rows, "cols": t.cols, "dtype": t.dtype, "vrows": t.vrows, "vcols": t.vcols}
