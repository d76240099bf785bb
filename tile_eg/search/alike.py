"""Whether a kernel is one and the same at all sizes: its values at a few, side by side."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, permutations
from math import inf, isqrt, prod
from types import MappingProxyType
from typing import Any, TypeVar

from tile_eg.errors import NotSearched, TileError, attempted
from tile_eg.frontend.checks import check
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.index import ANY
from tile_eg.ir.kernel import Assign, For, If, Kernel, Parallel, Stmt
from tile_eg.ir.open_kernel import NoBlocks
from tile_eg.ir.passed import EXAMPLE, WHOLE_EXAMPLE
from tile_eg.ir.same_values import same_values
from tile_eg.ir.strided import memory_of
from tile_eg.ir.values import Values, reachable
from tile_eg.transforms.any_size import NotAlike, at, of_any_size

Build = Callable[[Mapping[str, int]], Kernel]
Made = TypeVar("Made")

ANY_NUMBER: Mapping[str, int] = MappingProxyType({})
SETS, GROWTH = 10, 1.3
FEW_SETS = 2
"""Sets of one size that are looked at before all others: a kernel that is another one already there is none at all sizes."""
LEAST_PRIME = 3
Order = tuple[str, str] | None
"""A size, and one that is never smaller."""
FAR = 1 << 17
"""A size at which positions have no room in whole numbers of 16 bits, and wrap."""
TILES = 4
"""Times its largest tile that a size is at the least at which a kernel is looked at."""
FIRST_PRIMES = (1009, 307, 4099, 101)
"""Where the primes of a set begin, one scale after the other, until the kernel is the same one at all sizes of a scale."""
SMALL = (1, 2, 3, 5), (2, 1, 7, 3), (7, 5, 2, 1), (3, 3, 3, 3)
SOME, MOST_SOME = (67,), 12
"""Sizes at which the meaning of what was found is compared with that of the kernel: all small; one that is not; one that is just
a tile, or as large as another dimension, which primes never are."""
MOST_COPIED, MOST_COPIED_FIRST = 1 << 27, 1 << 32
"""Elements that are copied in such a comparison at sizes that are not small, and at small multiples of large tiles, of which the
least are always compared: each store of a block makes a version of its output."""
CLOSE = 1e-2
"""By how much outputs may differ, relative to themselves and to 1: f16 rounds to a tenth of it, and sums do so often."""


def which_are_open(build: Build, names: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The sizes of which one kernel serves all, and of each other one what differs with it: all, or those that may vary alone."""
    if isinstance(_joined(build, tuple(names), {}), Values):
        return tuple(names), {}
    why: dict[str, str] = {}
    for name in names:
        others = {n: _prime(FIRST_PRIMES[1]) for n in names if n != name}
        if isinstance(found := _joined(build, (name,), others), NotAlike):
            why[name] = found.why
    return _together(build, [n for n in names if n not in why], names, why), why


def _together(build: Build, found: list[str], names: Sequence[str], why: dict[str, str]) -> tuple[str, ...]:
    """As many of the sizes that vary alone as vary together, the first ones first."""
    while found:
        others = {n: _prime(FIRST_PRIMES[1]) for n in names if n not in found}
        joined = _joined(build, tuple(found), others)
        if isinstance(joined, Values):
            break
        why[found.pop()] = joined.why
    return tuple(found)


def _joined(build: Build, names: tuple[str, ...], others: Mapping[str, int]) -> Values | NotAlike:
    return _at_scale(lambda sizes: build({**others, **sizes}), dict.fromkeys(names, 4096))


def values_of_any_size(build: Build, usual: Mapping[str, int], multiples: Mapping[str, int] = ANY_NUMBER) -> Values | NotAlike:
    """What a kernel means at any sizes, with the `usual` ones for numbers. NotAlike where it is not one kernel at all sizes.

    `multiples`: at sizes that are multiples of these numbers, and no others.
    """
    return _first_alike(_meant(build, usual, up, multiples) for up in (True, False))


def _first_alike(found: Iterable[Values | NotAlike]) -> Values | NotAlike:
    """The first values; where there are none, why the first were not alike."""
    why: NotAlike | None = None
    for values in found:
        if isinstance(values, Values):
            return values
        why = why or values
    assert why is not None
    return why


def _meant(build: Build, usual: Mapping[str, int], up: bool, multiples: Mapping[str, int]) -> Values | NotAlike:
    """The values with quotients rounded `up` or down, if they mean at small sizes what the kernel does."""
    values = _at_scale(build, usual, up, multiples)
    if isinstance(values, NotAlike):
        return values
    assert values.sizes is not None
    other = _differing(build, values, tuple(usual), multiples)
    return other or replace(values, sizes=replace(values.sizes, multiples=tuple(multiples.items())))


def _at_scale(
    build: Build, usual: Mapping[str, int], up: bool = True, multiples: Mapping[str, int] = ANY_NUMBER
) -> Values | NotAlike:
    """The values at sizes of which any may be the larger one of two. Where the kernel has a fault at such, as its windows have to
    lie inside of a tensor: at those where one size is no larger than another one, which `order` then says of the sizes."""
    return _first_alike(_by_order(build, usual, up, multiples))


def _by_order(build: Build, usual: Mapping[str, int], up: bool, multiples: Mapping[str, int]) -> Iterator[Values | NotAlike]:
    for order in (None, *permutations(usual, 2)):
        values = _in_order(build, usual, up, multiples, order)
        if isinstance(values, Values):
            assert values.sizes is not None
            values = replace(values, sizes=replace(values.sizes, order=order))
        yield values
        if not isinstance(values, Faulty):
            return


def _in_order(build: Build, usual: Mapping[str, int], up: bool, multiples: Mapping[str, int], order: Order) -> Values | NotAlike:
    """The values by the first scale of primes at which they are alike; the last one is beyond the largest tile."""
    return _first_alike(_by_scale(build, usual, up, multiples, order))


def _by_scale(
    build: Build, usual: Mapping[str, int], up: bool, multiples: Mapping[str, int], order: Order
) -> Iterator[Values | NotAlike]:
    largest = 1
    for first in (*FIRST_PRIMES, None):
        sets = list(_sets(tuple(usual), first or TILES * largest, multiples, order))
        looked = _Looked(build, sets)
        found = looked.join(usual, up, multiples, order)
        yield found
        if isinstance(found, NotAlike) and found.everywhere:
            return
        largest = max(largest, looked.largest)


class _Looked:
    """A kernel at sets of sizes. `largest` is the extent of its largest tile; 1 where it has a fault at some of them."""

    def __init__(self, build: Build, sets: list[dict[str, int]]) -> None:
        self.build, self.sets, self.found, self.largest = build, sets, list[Values](), 1

    def join(self, usual: Mapping[str, int], up: bool, multiples: Mapping[str, int], order: Order) -> Values | NotAlike:
        """What the values are at any sizes."""
        if len(usual) == 1 and (other := self._parted(usual, up)):
            return other
        if other := self._look(SETS):
            return other
        self.largest = _largest_tile(self.found[0])
        large = list(_with_one_large(self.sets, self.found[0], multiples, order))
        far = _with_one_large([*self.sets, *large], self.found[0], multiples, order, FAR)
        self.sets += large
        if other := self._look(len(self.sets)):
            return other
        self._look_far(far)
        return of_any_size(self.found, self.sets, usual, up)

    def _parted(self, usual: Mapping[str, int], up: bool) -> NotAlike | None:
        """What differs already between a few sets, which tells it sooner than all of them."""
        if other := self._look(FEW_SETS):
            return other
        self.largest = _largest_tile(self.found[0])
        joined = of_any_size(self.found, self.sets[:FEW_SETS], usual, up)
        return joined if isinstance(joined, NotAlike) else None

    def _look(self, sets: int) -> NotAlike | None:
        """Looks at the kernel with so many of the sets."""
        for sizes in self.sets[len(self.found) : sets]:
            values = _values(self.build, sizes)
            if isinstance(values, NotAlike):
                return values
            self.found.append(values)
        return None

    def _look_far(self, sets: Iterable[dict[str, int]]) -> None:
        """Looks at the kernel with those of these sets at which it has no fault, as tensors that are too large for a launch."""
        for sizes in sets:
            if isinstance(values := _values(self.build, sizes), Values):
                self.sets.append(sizes)
                self.found.append(values)


class Faulty(NotAlike):
    """A kernel cannot be built at some sizes."""


def at_sizes(way: Callable[[], Made]) -> Made | TileError | None:
    """What `way` gives of a kernel at some sizes; the mistake that it has there, or None where it has no blocks."""
    try:
        return attempted(way)
    except NoBlocks:
        return None


def checked(build: Build, sizes: Mapping[str, int]) -> Kernel | TileError | None:
    """The kernel at some sizes; the mistake that it has there, or None where it has no blocks."""
    return at_sizes(lambda: _checked(build(sizes)))


def _values(build: Build, sizes: Mapping[str, int]) -> Values | NotAlike:
    """The values at some sizes. NotAlike where the kernel cannot be built there."""
    found = at_sizes(lambda: _values_of(build(sizes)))
    if found is None or isinstance(found, TileError):
        return Faulty(f"it has a fault at {_shown(sizes)}: {found.message if found else 'it has no blocks'}")
    return found


def _values_of(kernel: Kernel) -> Values | NotAlike:
    if not isinstance(kernel, Kernel):
        return NotAlike("it is kept as it is written")
    check(kernel)
    return to_values(kernel)


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{n}={v}" for n, v in sizes.items())


def _sets(names: Sequence[str], first: int, multiples: Mapping[str, int], order: Order) -> Iterator[dict[str, int]]:
    """Sets of sizes that are primes, or primes times what they are multiples of, all different, each set larger than the last."""
    used: set[int] = set()
    for turn in range(SETS):
        found = {}
        for name in names[:: -1 if turn % 2 else 1]:  # any of two may be the larger one
            by = multiples.get(name, 1)
            prime = _prime(int(max(LEAST_PRIME, first // by) * GROWTH**turn), used)
            used.add(prime)
            found[name] = prime * by
        yield {name: found[name] for name in names} | _swapped(found, order, multiples)


def _swapped(sizes: Mapping[str, int], order: Order, multiples: Mapping[str, int]) -> dict[str, int]:
    """The two sizes of an order in this order."""
    if order is None or sizes[order[0]] <= sizes[order[1]]:
        return {}
    low, high = (multiples.get(n, 1) for n in order)
    return {order[0]: sizes[order[1]] // high * low, order[1]: sizes[order[0]] // low * high}


def _prime(least: int, used: Collection[int] = ()) -> int:
    """The first prime from there on that was not used."""
    return next(n for n in count(least) if n not in used and all(n % d for d in range(2, isqrt(n) + 1)))


def _largest_tile(values: Values) -> int:
    return max((n for t in reachable(values) for n in (t.rows, t.cols)), default=1)


def _with_one_large(
    sets: Sequence[dict[str, int]], values: Values, multiples: Mapping[str, int], order: Order, least: int = 1
) -> Iterator[dict[str, int]]:
    """The first set with each size as large as several of the largest tiles: so no tile holds all of a size everywhere. Such a
    size is the `least` or more."""
    largest = _largest_tile(values)
    for name in sets[0]:
        out = dict(sets[0])
        for other in order if order and name == order[0] else (name,):
            by = multiples.get(other, 1)
            out[other] = by * _prime(max(least, TILES * largest, *(s[other] for s in sets), *out.values()) // by + 1)
        yield out


def _differing(build: Build, values: Values, names: Sequence[str], multiples: Mapping[str, int]) -> NotAlike | None:
    """Where the values that were found mean something else at small sizes than the kernel does there; None where nowhere.

    Sizes at which the kernel has a fault of its own, or no blocks, are none that it is launched at; where it is only not
    searched, it is launched, and done in the order of its statements.
    """
    assert values.sizes is not None
    order = values.sizes.order
    by = {name: multiples.get(name, 1) for name in names}
    few = [{name: small[n % len(small)] * by[name] for n, name in enumerate(names)} for small in SMALL]
    known = {n for t in reachable(values) for n in (t.rows, t.cols)}
    known |= {e.value for shape in values.sizes.shapes for e in shape if e.value}
    some = sorted({*SOME, *(n for n in known if n > 1)})[:MOST_SOME]
    least = list(_least(build, few[0], by))
    more = ({**base, name: by[name] * max(1, n // by[name])} for base in (few[0], *least) for name in names for n in some)
    for sizes in (*few, *least, *(sizes for sizes in more if sizes not in (*few, *least))):
        if order and sizes[order[0]] > sizes[order[1]]:
            continue
        most = inf if sizes == few[0] else MOST_COPIED_FIRST if sizes in few else MOST_COPIED
        own = at_sizes(partial(_to_compare, build, sizes, most))
        if isinstance(own, NotSearched):
            return NotAlike(f"at {_shown(sizes)} it is not searched: {own.message}")
        if isinstance(own, tuple) and not _mean_the_same(*own, at(values, sizes)):
            return NotAlike(f"at {_shown(sizes)} it computes something else than at large sizes")
    return None


def _least(build: Build, small: dict[str, int], by: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The least sizes at which the kernel has no fault, where the small ones are too small for its windows: there tensors end
    within the last of them. Each size is made less while the others stay; none where it has a fault at all of them."""
    sizes = {name: by[name] * _prime(FIRST_PRIMES[1]) for name in small}
    if not _is_faulty(build, small) or _is_faulty(build, sizes):
        return
    for name in small:
        tries = range(1, sizes[name] // by[name] + 1)
        place = bisect_left(tries, True, key=lambda n: not _is_faulty(build, {**sizes, name: by[name] * n}))
        sizes[name] = by[name] * tries[min(place, len(tries) - 1)]
    yield sizes


def _is_faulty(build: Build, sizes: Mapping[str, int]) -> bool:
    found = checked(build, sizes)
    return isinstance(found, TileError) and not isinstance(found, NotSearched)


def _checked(kernel: Kernel) -> Kernel:
    """The kernel. TileError for a fault; what is kept as it is written at these sizes has been checked."""
    if isinstance(kernel, Kernel):
        check(kernel)
    return kernel


def _to_compare(build: Build, sizes: Mapping[str, int], most: float) -> tuple[Kernel, Values] | None:
    """The kernel and its values at these sizes; None where its outputs' versions have more elements than this."""
    kernel = build(sizes)
    if not isinstance(kernel, Kernel) or copied(kernel) > most:
        return None
    check(kernel)
    return kernel, to_values(kernel)


def copied(kernel: Kernel) -> int:
    """The elements of the outputs' versions, one for each store of each block."""
    sizes = {t.name: prod(t.shape) for t in kernel.tensors if t.output}
    return prod(extent for _, extent in kernel.grid) * max(sum(sizes.values()), _stored(kernel.body, sizes))


def _stored(body: Iterable[Stmt], sizes: Mapping[str, int]) -> int:
    """The elements of the versions that statements make, as often as they are done."""
    out = 0
    for s in body:
        match s:
            case For():
                out += s.extent * _stored(s.body, sizes)
            case If():
                out += _stored((*s.then, *s.otherwise), sizes)
            case Parallel():
                out += s.extents[0] * _stored(s.body, sizes)
            case Assign():
                out += sizes.get(s.target.name, 0)
    return out


def _mean_the_same(kernel: Kernel, own: Values, found: Values) -> bool:
    """Whether both compute the same numbers; False where no indices were found that lie in their tensors."""
    import numpy as np

    from tile_eg.ir.reference_indices import most_of_indices
    from tile_eg.ir.reference_values import run_values

    most = most_of_indices(kernel)
    if not most and same_values(own, found):
        return True
    for within, number in ((most, WHOLE_EXAMPLE), (dict.fromkeys(most, 0), 0)):
        inputs = _inputs(kernel, within, number)
        try:
            theirs = run_values(own, inputs)
        except IndexError:  # sums of indices, or what a number keeps inside
            continue
        try:
            ours = run_values(found, inputs)
        except IndexError:  # it reads, or writes, beyond the end of a tensor
            return False
        pairs = ((np.asarray(ours[name], np.float64), np.asarray(x, np.float64)) for name, x in theirs.items())
        return all(np.allclose(x, y, rtol=CLOSE, atol=CLOSE, equal_nan=True) for x, y in pairs)
    return False


def _inputs(kernel: Kernel, most: Mapping[str, int], number: int) -> dict[str, Any]:
    """Random tensors, with indices from 0 to the `most` that those of a tensor may be, and a number for each of a call, the whole
    ones from this `number` on, or all of them 0."""
    import numpy as np

    from tile_eg.inputs import draw

    drawn = draw([t for t in kernel.tensors if not t.output], "uniform", seed=0)
    drawn |= {n: drawn[n] % (m + 1) for n, m in most.items() if n in drawn and m < ANY}
    numbers: dict[str, Any] = {name: EXAMPLE + n for n, name in enumerate(kernel.numbers)}
    numbers |= {name: np.int32(number and number + n) for n, name in enumerate(kernel.numbers) if name in kernel.wholes}
    return {t.name: memory_of(t, drawn[t.name]) for t in kernel.tensors if t.name in drawn} | numbers
