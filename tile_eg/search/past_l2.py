"""Past L2: inputs of which L2 serves little leave it out as they are loaded (SetL2CacheHint): it keeps what is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tile_eg.chips import Chip
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.program import Gm, Instr, Node, Program, Scalar, walk
from tile_eg.search.bounds import floor, timing
from tile_eg.search.candidates import Candidate, ranked
from tile_eg.search.form import Form
from tile_eg.search.moves import MOVES
from tile_eg.search.planned import Planned
from tile_eg.search.queue import Made, Offer

if TYPE_CHECKING:
    from tile_eg.extract.schedule import Schedule

GAIN = 1.01
"""How many times faster a schedule has to become to be worth the hint (assumed): it takes what is read from later launches."""


def offers(form: Form) -> Iterator[Offer]:
    """One for each form: of what are its best schedules once all else was tried."""
    if form.candidates:
        yield Offer(MOVES["past-l2"], "the best schedules", 0.0, partial(_made, form), form, closer=partial(_bound, form))


def _bound(form: Form) -> float:
    return GAIN * _least(form.best, form.setting.chip) if form.best else float("inf")


def _least(candidate: Candidate, chip: Chip) -> float:
    """What its busiest pipe and HBM take of a candidate with loads past L2; without end where none is worth it."""
    from tile_eg.timeline.streams import streams

    found, time = streams(candidate.planned.program, chip), timing(candidate)
    if not found.names:
        return float("inf")
    hbm = candidate.microseconds * (time.launch_us + found.microseconds) / time.microseconds
    return max(floor(candidate, chip), hbm)


def _made(form: Form) -> Made:
    """The best of the form's schedules with loads past L2; each is tried whose bound is better than what was found before it."""
    chip, best, found = form.setting.chip, form.microseconds / GAIN, list[Candidate]()
    for candidate in form.launchable:
        if _least(candidate, chip) < best and (made := _fastest(form, candidate)) and made.microseconds < best:
            best, found = made.microseconds, [made]
    return Made(tuple(found), why="" if found else "what is written stays in L2 no longer")


def _fastest(form: Form, candidate: Candidate) -> Candidate | None:
    """A candidate with as many of its inputs past L2 as make it faster, those first of which L2 serves least."""
    from tile_eg.timeline.streams import streams

    program, best = candidate.planned.program, None
    found, scalars = streams(program, form.setting.chip), _read_by_scalars(program)
    for n in range(max(1, found.unserved), len(found.names) + 1):
        names = [name for name in found.names[:n] if name not in scalars]
        (made,) = ranked([with_loads_past_l2(candidate.schedule, candidate.planned, names)], form.setting.model)
        if best and made.microseconds >= best.microseconds:
            break
        best = made
    return best


def with_loads_past_l2(schedule: Schedule, planned: Planned, names: Iterable[str]) -> tuple[Schedule, Planned]:
    """A planned schedule whose loads of these tensors leave L2 out; flags, buffers and order stay as they are."""
    past = frozenset(names)
    tensors = tuple(replace(t, past_l2=t.past_l2 or t.name in past) for t in planned.program.tensors)
    return replace(schedule, past_l2=past), planned.with_program(replace(planned.program, tensors=tensors))


def _read_by_scalars(program: Program) -> set[str]:
    """The tensors of which the scalar units read elements, which have a cache of their own."""
    from tile_eg.emit.ascend_c.used import expressions_of

    nodes = [*walk(program.cube), *walk(program.vector)]
    places = [let.value for let in program.lets] + [e for n in nodes for e in expressions_of(n)]
    return {e.args[0] for place in places for e in all_elements_in(place)} | {o.tensor for n in nodes for o in _elements(n)}


def _elements(node: Node) -> Iterator[Gm]:
    """The elements of tensors in what a node computes by the scalar unit."""
    if isinstance(node, Instr | Scalar) and node.value:
        yield from (o for o in node.value.operands() if isinstance(o, Gm))
