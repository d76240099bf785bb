"""Results apart: outputs that have nothing but inputs in common, each in tiles of its own, one behind the other in one launch.

An operand of their products that all of them need, as a normalised row is, may come before them: all cores meet behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial

from tile_eg.chips import Chip
from tile_eg.errors import PlanError, plannable
from tile_eg.extract.schedule import IN_TURN, Schedule
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.search.candidates import Candidate, Dropped, ranked, written
from tile_eg.search.form import Form, Setting
from tile_eg.search.moves import MOVES
from tile_eg.search.open_sizes import SURE, OpenSizes
from tile_eg.search.planned import Planned
from tile_eg.search.planning import in_turn
from tile_eg.search.queue import Made, Offer
from tile_eg.search.rows_behind import of_phases
from tile_eg.sizing.candidates import Candidate as Sized

Search = Callable[[OpenSizes], tuple[Form | None, tuple[Candidate, ...]]]
"""Gives the best form of a kernel at some sizes, and its candidates, fastest first."""


def offers(
    kernel: OpenKernel, setting: Setting, sizes: Callable[[OpenKernel, Setting], OpenSizes], search: Search
) -> Iterator[Offer]:
    """One for a kernel whose outputs do not need each other. `sizes` are those at which a part may be compiled."""
    parts = kernel.parts() if IN_TURN in setting.options.moves else ()
    able = [sizes(p, of_phases(setting)) for p in parts if isinstance(p, OpenKernel)]
    if parts and len(able) == len(parts):
        bound = _bound([each.found for each in able], setting.chip)
        yield Offer(MOVES[IN_TURN], f"{len(parts)} results", bound, partial(_made, kernel, able, setting, search))


def _bound(found: Sequence[Sequence[Sized]], chip: Chip) -> float:
    """Microseconds that a launch takes at the least by the quick estimates of its parts."""
    if not all(found):
        return float("inf")
    least = [min(c.estimate.cycles - c.estimate.launch for c in sizes) for sizes in found]
    return chip.launch_us(0, mixed=False) + SURE * chip.microseconds(sum(least))


def _made(kernel: OpenKernel, parts: Sequence[OpenSizes], setting: Setting, search: Search) -> Made:
    found = [search(p) for p in parts]
    first = found[0][0]
    if first is None or not all(candidates for _, candidates in found):
        return Made(why="an output has no schedule by itself")
    outputs = {t.name for t in kernel.tensors if t.output}
    needed = [] if outputs & {t.name for t in parts[0].kernel.tensors if t.output} else [0]  # it makes an operand of the others
    joined, dropped = _joined([_few(candidates) for _, candidates in found], needed, setting)
    if not joined:
        return Made(dropped=dropped, why="no schedules of the outputs can be one launch")
    whole = Kernel(**{f.name: getattr(kernel, f.name) for f in fields(Kernel)})
    form = replace(first, setting=replace(setting, at=""), kernel=whole, moves=(IN_TURN,), candidates=(), dropped=())
    form.add(ranked(joined, setting.model), dropped)
    return Made(form=form)


def _few(candidates: tuple[Candidate, ...]) -> tuple[Candidate, Candidate]:
    """The fastest schedule, and the fastest that cube cores carry out alone; the fastest of all where there is none."""
    able = written(candidates) or candidates
    return able[0], next((c for c in able if _on_cubes_alone(c)), able[0])


def _on_cubes_alone(c: Candidate) -> bool:
    return c.schedule.one_phase and not c.planned.program.vector


def _joined(
    choices: Sequence[tuple[Candidate, Candidate]], needed: Sequence[int], setting: Setting
) -> tuple[list[tuple[Schedule, Planned]], Dropped]:
    """One launch of one schedule for each output: the fastest ones, those on cube cores alone, and these with one of the fastest.

    What the others need comes first, and what cube cores do alone at the end, where it needs no meeting.
    """
    alone = [c for _, c in choices]
    tried = [[c for c, _ in choices], alone, *([*alone[:n], c, *alone[n + 1 :]] for n, (c, _) in enumerate(choices))]
    joined: list[tuple[Schedule, Planned]] = []
    dropped: list[tuple[Schedule, Exception]] = []
    for chosen in dict.fromkeys(map(tuple, tried)):
        places = sorted(range(len(chosen)), key=lambda n: (n not in needed, _on_cubes_alone(chosen[n])))  # noqa: B023
        schedule, planned = _one_launch([chosen[n] for n in places], setting)
        if isinstance(planned, PlanError):
            dropped.append((schedule, planned))
        else:
            joined.append((schedule, planned))
    return joined, tuple(dropped)


def _one_launch(order: Sequence[Candidate], setting: Setting) -> tuple[Schedule, Planned | PlanError]:
    """The schedules as one, and its plan, or why there is none."""
    *others, schedule = (c.schedule for c in order)
    for before in reversed(others):
        schedule = replace(before, behind=schedule, parted=IN_TURN)
    programs = [c.planned.program for c in order]
    planned = plannable(lambda: in_turn(programs, schedule, setting.chip))
    return schedule, planned
