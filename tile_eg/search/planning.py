"""From a schedule to a planned program: its instructions, flags and addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from math import prod

from tile_eg.chips import Chip
from tile_eg.errors import PlanError, plannable
from tile_eg.extract.schedule import IN_TURN, Rest, Schedule
from tile_eg.ir.program import AIC, AIV, Instr, Loop, Program, SyncAll, walk
from tile_eg.ir.sharing import once
from tile_eg.search.planned import Planned

PATIENCE = 3
"""Depths that are looked at before the shallowest (assumed: most schedules find their flags within three)."""


def plan_schedule(schedule: Schedule, chip: Chip) -> Planned:
    """A schedule with its flags and text, those of its second phase too.

    PlanError where no flags are found, an instruction has no text, or two phases cannot be one launch.
    """
    planned = synchronised(schedule, chip)
    if planned.unwritable:
        raise planned.unwritable
    return planned


def synchronised(schedule: Schedule, chip: Chip) -> Planned:
    """As `plan_schedule`, without its text: that may turn out to be `unwritable`."""
    from tile_eg.emit.phases import added_up, one_launch

    if schedule.parted == IN_TURN and schedule.behind is not None:
        return in_turn([synchronised(s, chip).program for s in schedule.in_turn], schedule, chip)
    if schedule.behind is not None:
        sums, rows = (synchronised(s, chip).program for s in (replace(schedule, behind=None), schedule.behind))
        return with_rows_behind(sums, rows, chip)
    first, second, rest = _plan_phase(schedule, chip), schedule.second, schedule.rest
    if second is None and schedule.in_strips:
        return _roomy(_behind_copies(first.program, schedule, rest, chip), chip)
    if schedule.parts is not None and schedule.parts.op == "Added":
        return _roomy(added_up(first.program, schedule.graph.values.blocks // schedule.parts.payload[0]), chip)
    if second is None and rest is None:
        return first
    if rest is not None:
        return _roomy(_with_rest(first.program, second, rest, chip), chip)
    assert second is not None
    return _roomy(one_launch(_beside_copies(first.program, second, chip), _plan_phase(second, chip).program, chip), chip)


def in_turn(programs: Sequence[Program], schedule: Schedule, chip: Chip) -> Planned:
    """One launch of programs for outputs, one behind the other, of this schedule, which then knows where it `meets`. The cores
    that have fewer tiles of one begin with the next."""
    from tile_eg.emit.phases import in_turn

    made, start = programs[0], 0
    for program in programs[1:]:
        assert schedule.behind is not None
        alike = replace(schedule, behind=None).one_phase and schedule.persistent
        start = (start + schedule.graph.values.blocks) % made.blocks if alike else 0
        met = _meetings(made) + _meetings(program)
        made = in_turn(made, program, start, chip)
        schedule.meets, schedule = _meetings(made) > met, schedule.behind
    return _roomy(made, chip)


def _meetings(program: Program) -> int:
    return sum(isinstance(n, SyncAll) for n in program.cube)


def with_rows_behind(sums: Program, rows: Program, chip: Chip) -> Planned:
    """One launch that makes the tiles of a product, and behind a meeting of all cores does what needs whole rows of it. What the
    first one stores is then shared."""
    from tile_eg.emit.phases import one_launch, without_names

    sums = replace(sums, tensors=rows.tensors, shared=(*sums.shared, *rows.shared))
    return _roomy(one_launch(sums, without_names(rows), chip), chip)


def _with_rest(program: Program, second: Schedule | None, rest: Rest, chip: Chip) -> Program:
    """A launch whose cube cores do parts of some tiles' sums before all cores meet, and whose vector cores add them behind it.

    Where there is a `second` phase, what comes before it is followed by these parts.
    """
    from tile_eg.emit.phases import behind, beside, one_launch, without_names

    sums, added = (_plan_phase(s, chip).program for s in (rest.sums, rest.added))
    if second is None:
        return one_launch(without_names(sums), beside(program, added, chip), chip)
    first = _beside_copies(behind(program, sums), second, chip)
    return one_launch(first, beside(_plan_phase(second, chip).program, added, chip), chip)


def _behind_copies(program: Program, schedule: Schedule, rest: Rest | None, chip: Chip) -> Program:
    """A launch that loads from copies in strips from its first tile on: cube cores do sums of the rest meanwhile, or nothing."""
    from tile_eg.emit.packed_operand import nothing
    from tile_eg.emit.phases import beside, one_launch, without_names

    if rest is None:
        made = one_launch(_beside_copies(nothing(program, chip), schedule, chip), program, chip)
        return replace(made, lets=program.lets)
    sums, added = (_plan_phase(s, chip).program for s in (rest.sums, rest.added))
    return one_launch(_beside_copies(without_names(sums), schedule, chip), beside(program, added, chip), chip)


def _beside_copies(program: Program, second: Schedule, chip: Chip) -> Program:
    """A phase whose vector cores make the copies in strips that a second one reads."""
    from tile_eg.emit.packed_operand import copies
    from tile_eg.emit.phases import beside

    for copy in copies(second.graph.values, program.blocks, chip):
        program = beside(program, copy, chip)
    return program


def _plan_phase(schedule: Schedule, chip: Chip) -> Planned:
    """A phase with its flags; its rings are made shallower where flag ids would run out, unless they are to keep their slots."""
    from tile_eg.emit.sync.trace import FlagsRunOut, SyncError
    from tile_eg.extract.flags import shallower
    from tile_eg.extract.memory import assign

    own_storages(schedule)  # schedules made of one choice share them
    schedule.fuller = None
    for tried in count(1):
        planned = _planned_or_why(schedule, chip)
        if isinstance(planned, Planned):
            return planned
        ran_out = planned if isinstance(planned, FlagsRunOut) else None
        keeps, fuller = ran_out and schedule.few_ids and not schedule.ahead, own_storages(replace(schedule))
        hopeless = tried == PATIENCE and _refused_where_shallowest(fuller, planned, chip)
        if keeps or hopeless or not isinstance(planned, SyncError) or not shallower(schedule, ran_out.at if ran_out else None):
            raise planned.with_traceback(None)
        if ran_out and not schedule.few_ids:
            schedule.fuller = schedule.fuller or fuller
        assign(schedule, chip)
    raise AssertionError("a schedule has so many slots, and no more")


def _planned_or_why(schedule: Schedule, chip: Chip) -> Planned | PlanError:
    from tile_eg.emit import lower as lowering

    program = lowering.plan(schedule, chip)
    made = partial(_with_flags, program, chip, schedule.few_ids)
    return once("plan", (program, chip, schedule.few_ids, _spans(program)), made)


def _refused_where_shallowest(schedule: Schedule, why: PlanError, chip: Chip) -> bool:
    """Whether even with the fewest slots there are too few ids: then no depth between is worth a look."""
    from tile_eg.emit.sync.trace import FlagsRunOut
    from tile_eg.extract.flags import shallower
    from tile_eg.extract.memory import assign

    if not isinstance(why, FlagsRunOut):
        return False
    shallowest = own_storages(replace(schedule))
    while shallower(shallowest, why.at):
        pass
    assign(shallowest, chip)
    return isinstance(_planned_or_why(shallowest, chip), FlagsRunOut)


def own_storages(schedule: Schedule) -> Schedule:
    """The schedule itself, now with storages and places that no other one shares."""
    schedule.storages = {sid: replace(s) for sid, s in schedule.storages.items()}
    schedule.peaks, schedule.addresses = dict(schedule.peaks), dict(schedule.addresses)
    return schedule


def _with_flags(program: Program, chip: Chip, fewer: bool) -> Planned | PlanError:
    """The program with its flags, `fewer` as in `synchronise`; or why there is none."""
    from tile_eg.emit.sync import synchronise

    return plannable(lambda: _roomy(synchronise(program, fewer), chip))


def _spans(program: Program) -> tuple[object, ...]:
    """The places in the source, and what results hold: programs may be equal that differ in them."""
    nodes = [n for core in (AIC, AIV) for n in walk(program.core(core)) if isinstance(n, Instr | Loop)]
    return *(n.span for n in nodes), *(n.held for n in nodes if isinstance(n, Instr))


def _roomy(program: Program, chip: Chip) -> Planned:
    """The program; PlanError where the chip has no room for its workspace."""
    from tile_eg.emit.host import workspace_bytes

    tensors, workspace = sum(t.dtype.bytes * prod(t.shape) for t in program.tensors), workspace_bytes(program)
    if tensors + workspace <= chip.hbm_bytes:
        return Planned(program, chip)
    raise PlanError(f"tensors of {tensors} bytes and a workspace of {workspace} do not fit the {chip.hbm_bytes} bytes of HBM")
