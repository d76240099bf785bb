"""Split-K: long sums of few tiles in parts for idle cores, added by a second phase or where they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tile_eg.errors import PlanError, TileError, attempted, plannable
from tile_eg.extract.parts import least_cycles
from tile_eg.search.bounds import timing
from tile_eg.search.candidates import Candidate, Dropped, plan_each, ranked, written
from tile_eg.search.form import Form, Setting, extraction_of
from tile_eg.search.moves import MOVES
from tile_eg.search.planned import Planned
from tile_eg.search.queue import Made, Offer

if TYPE_CHECKING:
    from tile_eg.egraph import Node
    from tile_eg.extract.schedule import Schedule
    from tile_eg.ir.values import Values

WAYS = {"Parts": "split-k", "Added": "split-k-atomic"}


def offers(form: Form) -> Iterator[Offer]:
    """A kernel's long sums in as many parts as the rules offer, each with the least that its launch takes."""
    offered = [g for g in form.grids if g.op in WAYS]
    if not offered or not form.candidates:
        return
    from tile_eg.transforms.split_k import cores_for_parts, in_parts

    chip, best = form.setting.chip, form.candidates[0]
    cores = cores_for_parts(form.values, chip.cube_cores, chip.vector_cores)
    time = timing(best)
    one = in_parts(form.values, 1).bytes
    for node in offered:
        if node.op == "Added" and form.values.blocks * node.payload[0] > cores:
            continue
        cycles = least_cycles(node, form.values.blocks, cores, time.cycles, time.hbm_cycles, one, chip)
        bound = best.microseconds * (time.launch_us + chip.microseconds(cycles)) / time.microseconds
        yield Offer(MOVES[WAYS[node.op]], f"{node.payload[0]} parts", bound, partial(made_of, node, form), form)


def made_of(node: Node, form: Form) -> Made:
    """A kernel's long sum in as many parts as `node` says: the best schedule of each phase as one launch; and what failed."""
    return _added_up(node, form) if node.op == "Added" else _in_two_phases(node, form)


def _in_two_phases(node: Node, form: Form) -> Made:
    from tile_eg.emit.phases import one_launch
    from tile_eg.sizing.phases import best_parts

    setting = form.setting
    parts, _ = best_parts(form.values, node.payload[0], setting.chip)
    phases = [phase(values, setting) for values in (parts.first, parts.second)]
    dropped = tuple(d for _, failed in phases for d in failed)
    if not all(found for found, _ in phases):
        return Made((), dropped)
    first, second = (found[0] for found, _ in phases)
    first.schedule.graph.grids = form.grids  # what could be decided of the kernel, not of the phase
    schedule = replace(first.schedule, parts=node, second=second.schedule)
    program = plannable(lambda: one_launch(first.planned.program, second.planned.program, setting.chip))
    if isinstance(program, PlanError):
        return Made((), (*dropped, (schedule, program)))
    return Made(ranked([(schedule, Planned(program, setting.chip))], setting.model), dropped)


def _added_up(node: Node, form: Form) -> Made:
    """A kernel whose blocks add up parts of its sums in GM."""
    from tile_eg.transforms.split_k import added

    setting = form.setting
    schedules = schedules_of(added(form.values, node.payload[0]), setting)
    for s in schedules:
        s.graph.grids = form.grids
    planned, dropped = plan_each([replace(s, parts=node) for s in schedules], setting.chip)
    return Made(written(ranked(planned, setting.model))[:1], dropped)


def schedules_of(values: Values, setting: Setting) -> list[Schedule]:
    """The schedules that the search keeps for a phase; none where there are none."""
    from tile_eg.egraph import saturate

    options = setting.options
    graph = attempted(lambda: saturate(values, setting.chip, options.budget, options.theories))
    return [] if isinstance(graph, TileError) else extraction_of(graph, setting).schedules


def phase(values: Values, setting: Setting) -> tuple[tuple[Candidate, ...], Dropped]:
    """One phase of a launch, ranked: its blocks all run at a time."""
    planned, dropped = planned_phase(values, setting)
    return written(ranked(planned, setting.model)), dropped


def planned_phase(values: Values, setting: Setting) -> tuple[list[tuple[Schedule, Planned]], Dropped]:
    """One phase of a launch with its plans, as the search model has them."""
    from tile_eg.extract.grid import orders, with_grid
    from tile_eg.timeline.works import blocks_at_once

    chip = setting.chip
    planned, dropped = plan_each(schedules_of(values, setting), chip)
    cores = [blocks_at_once(p.program, chip) for _, p in planned]
    over = [(s, n) for (s, p), n in zip(planned, cores, strict=True) if p.program.blocks > n]
    if over:
        planned, dropped = plan_each([with_grid(s, g, chip) for s, n in over for g in orders(s, chip, n, 1)], chip)
    return planned, dropped
