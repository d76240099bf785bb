"""Launches of two phases: the quick estimates of long sums of few tiles in parts, and of operands that are made first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import takewhile

from tile_eg.chips import Chip
from tile_eg.ir.values import Values, reachable
from tile_eg.sizing.estimate import Estimate, estimate
from tile_eg.timeline.meetings import meeting
from tile_eg.transforms.deeper_trips import in_deeper_trips
from tile_eg.transforms.k_tiling import FACTORS
from tile_eg.transforms.operand_first import Operand, behind, made, operand_of
from tile_eg.transforms.operand_rows import computed_operand, rows_made
from tile_eg.transforms.split_k import (
    COUNTS,
    PANELS,
    Parts,
    Tiles,
    cores_for_parts,
    divisible,
    fits,
    in_parts,
    least_trips,
    loop_of_sums,
)

TRIED = 2


def with_moves(values: Values, chip: Chip, moves: Collection[str]) -> Estimate:
    """The estimate of a kernel; of a launch of two phases where that is better and these moves make them."""
    operand = first_operand(values) if "operand-first" in moves else None
    if operand:
        return _with_operand(estimate(values, chip), operand, chip)
    return with_parts(values, chip) if "split-k" in moves else estimate(values, chip)


def _with_operand(whole: Estimate, operand: Operand, chip: Chip) -> Estimate:
    """The estimate of a kernel, or of its two phases where it takes longer than these, or does not fit."""
    below = whole.cycles if whole.excess(chip) <= 1 else float("inf")
    found = operand_first(operand, chip, below)
    if found is None:
        return whole
    *phases, cycles = found
    each = [estimate(v, chip) for v in phases]
    levels = {level for e in each for level in e.bytes}
    return replace(each[1], cycles=cycles, bytes={level: max(e.bytes.get(level, 0) for e in each) for level in sorted(levels)})


def with_parts(values: Values, chip: Chip) -> Estimate:
    """The estimate of a kernel; of the better form, where its sums may be done in parts (`parts`: how many)."""
    whole, cores = estimate(values, chip), cores_for_parts(values, chip.cube_cores, chip.vector_cores)
    if values.blocks >= 2 * cores:
        return whole
    turns = {n: -(-values.blocks * n // cores) / n for n in (1, *COUNTS) if n <= cores}
    met = meeting(chip)
    shorter = [n for n in turns if n > 1 and whole.cycles * turns[n] / turns[1] + met + chip.least_ub_pass < whole.cycles]
    trips = divisible(values) if shorter else None
    even = loop_of_sums(values) is not None
    able = [n for n in shorter if trips and (trips % n == 0 if even else fits(trips, n))]
    forms = sorted(able, key=lambda n: (turns[n], n))[:TRIED]
    times = {n: best_parts(values, n, chip)[1] + met for n in forms}
    best = min(times, key=lambda n: times[n], default=1)
    return replace(whole, cycles=times[best], parts=best) if best > 1 and times[best] < whole.cycles else whole


def first_operand(values: Values) -> Operand | None:
    """The operand of a kernel that a phase of its own may make, where several blocks would."""
    return operand_of(values) or computed_operand(values)


def operand_first(operand: Operand, chip: Chip, below: float = float("inf")) -> tuple[Values, Values, float] | None:
    """A kernel as two phases, the first of which makes an operand, and the cycles of a launch of both by the quick estimate; None
    where a phase does not fit, or both take no fewer cycles than `below`."""
    second = behind(operand)
    after = estimate(second, chip)
    found = _phase_of(operand, chip) if after.excess(chip) <= 1 and after.cycles < below else None
    if found is None:
        return None
    first, before = found
    cycles = before.cycles + after.cycles - min(before.launch, after.launch) + meeting(chip)
    return (first, second, cycles) if cycles < below else None


def _phase_of(operand: Operand, chip: Chip) -> tuple[Values, Estimate] | None:
    """The phase that makes an operand with its quick estimate; of whole rows the best number of them, from the fewest on to those
    that do not fit."""
    ways = iter([made(operand)]) if operand.of_products else rows_made(operand, reversed(PANELS))
    fitting = takewhile(lambda found: found[1].excess(chip) <= 1, ((v, estimate(v, chip)) for v in ways))
    return min(fitting, key=lambda found: found[1].cycles, default=None)


def best_parts(values: Values, count: int, chip: Chip) -> tuple[Parts, float]:
    """The kernel with its sums in `count` parts and the panels of the second phase that take least; cycles of both phases.

    Cores that the first phase started are there for the second.
    """
    forms = [in_parts(values, count, n) for n in PANELS if n == 1 or values.blocks * n <= chip.vector_cores]
    first = estimate(forms[0].first, chip)
    cycles = []
    for parts in forms:
        second = estimate(parts.second, chip)
        cycles.append(first.cycles + second.cycles - min(first.launch, second.launch))
    best = min(range(len(forms)), key=cycles.__getitem__)
    return forms[best], cycles[best]


def best_rest(values: Values, tiles: Tiles, chip: Chip) -> tuple[Parts | None, float]:
    """Some tiles of a kernel, fewer than there are cores, with their sums in as many parts as take least, and what that takes of
    a turn of whole sums; None where it is no less."""
    loop = loop_of_sums(values)
    if loop is None:
        return None, 1.0
    trips = loop.args[1]
    shares = {n: -(-tiles.count * n // chip.cube_cores) * -(-trips // n) for n in COUNTS if n <= min(trips, chip.cube_cores)}
    counts = sorted(shares, key=lambda n: (shares[n], n))[:TRIED]
    forms = [(v, n) for v in _deeper(values) for n in counts if _may_be_in_parts(v, n, values)]
    cycles = [_cycles_of_sums(in_parts(v, n, 1, tiles), chip) for v, n in forms]
    least, turn = min(cycles, default=float("inf")), _cycles_of_sums(in_parts(values, 1, 1, tiles), chip)
    if least >= turn:
        return None, 1.0
    v, n = forms[cycles.index(least)]
    return in_parts(v, n, max(p for p in PANELS if tiles.count * p <= chip.vector_cores), tiles), least / turn


def _cycles_of_sums(parts: Parts, chip: Chip) -> float:
    """Cycles of the sums of parts, without the launch; without end where they do not fit."""
    found = estimate(parts.first, chip)
    return found.cycles - found.launch if found.excess(chip) <= 1 else float("inf")


def _deeper(values: Values) -> Iterator[Values]:
    """The kernel, and with deeper trips: of trips that are not the same in all parts there are no other forms."""
    yield values
    loops = [t for t in reachable(values) if t.op == "loop"]
    if not values.stages and not any(p.slots for p in values.places.values()):
        yield from (deep for factor in FACTORS if (deep := in_deeper_trips(values, factor, loops)) is not None)


def _may_be_in_parts(form: Values, count: int, source: Values) -> bool:
    """Whether a form's trips are so many parts; where these are equal, rules make its trips deeper."""
    trips = divisible(form)
    return (
        trips is not None
        and fits(trips, count)
        and -(-trips // count) >= least_trips(form)
        and (form is source or trips % count > 0)
    )
