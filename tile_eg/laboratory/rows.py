"""One schedule as a row of a dataset: who drew it, what it decides, what it is made of, and how long it takes."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

from tile_eg.cost_models.context import context
from tile_eg.cost_models.counted import counted
from tile_eg.extract import Schedule
from tile_eg.ops.records import record
from tile_eg.report.decisions import choices
from tile_eg.search.compiler import Planned


@record
class Row:
    """A schedule of a kernel (`case`: its name and sizes) on a chip, the `number`-th of its case that is distinct.

    `way` is how it was drawn. `decisions` are options by what they are about, `instructions` how often each is issued in a launch
    block, `features` as in `cost_models.context.FEATURES`, `bytes` those of the launch by path ("GM->L1"), `program` its text.
    `microseconds` is its time, `timed_by` "timeline" or "npu"; `predicted` is the timeline's.
    """

    case: str
    kernel: str
    chip: str
    number: int
    way: str
    microseconds: float
    timed_by: str
    predicted: float
    bound: str
    decisions: dict[str, str]
    instructions: dict[str, float]
    features: dict[str, float]
    bytes: dict[str, float]
    program: str

    @property
    def key(self) -> str:
        """Equal for schedules that have one program."""
        return hashlib.sha256(self.program.encode()).hexdigest()

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def row_of(case: str, way: str, schedule: Schedule, planned: Planned, npu: float | None = None) -> Row:
    """The row of a planned schedule, not yet numbered. `npu` are measured microseconds, where there are some."""
    from tile_eg.timeline import engine

    program, chip = planned.program, planned.chip
    timeline = engine.run(program, chip, record=False)
    ops: dict[str, float] = {}
    for work, times in counted(program, chip):
        ops[work.op] = ops.get(work.op, 0.0) + times
    return Row(
        case, program.name, chip.name, 0, way,
        timeline.microseconds if npu is None else npu, "timeline" if npu is None else "npu",
        timeline.microseconds, timeline.bound, decided(schedule), dict(sorted(ops.items())),
        context(program, chip).features, dict(sorted(timeline.bytes.items())), str(program),
    )  # fmt: skip


def decided(schedule: Schedule) -> dict[str, str]:
    """The options of a schedule by what each is about; a second decision about one thing has a number behind it."""
    out: dict[str, str] = {}
    for _, about, chosen, _ in choices(schedule):
        seen = sum(1 for name in out if name == about or name.startswith(f"{about} #"))
        out[f"{about} #{seen + 1}" if seen else about] = chosen
    return out
