"""Instructions of several steps: what `steps` says of their barriers is what their text does when it runs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tile_eg.emit.ascend_c.kernel import kernel_text
from tile_eg.emit.host import launch_blocks
from tile_eg.emit.sync.planning import synchronise
from tile_eg.emit.sync.steps import ends, steps
from tile_eg.ir.index import var
from tile_eg.ir.program import Buffer, Instr, Program, Tile
from tile_eg.ops.types import F16, F32
from tile_eg.simulator.findings import TraceRow
from tile_eg.simulator.run import simulate

from .vector_cases import Case, _Builder

ROOM = 24576  # bytes of UB for each case, so that its instructions are known by what they touch
CASES = {
    "rows of one chunk": Case("vrowsum", F32, 4, 64),
    "rows of two chunks": Case("vrowsum", F32, 4, 128),
    "rows of many chunks": Case("vrowmax", F16, 3, 300),
    "rows by blocks": Case("vrowsum", F32, 16, 128, blocks=True),
    "products of rows": Case("vrowdot", F32, 16, 64),
    "columns": Case("vcolmax", F32, 4, 64),
    "columns of one row": Case("vcolmax", F32, 1, 64),
    "a choice in one run": Case("vchoose_lt", F32, 4, 64),
    "a choice row by row": Case("vchoose_lt", F32, 3, 70),
    "a choice by a number in one run": Case("vchooses_lt", F32, 4, 64),
    "a choice by a number row by row": Case("vchooses_lt", F32, 3, 70),
    "a mask in one run": Case("vmask_lt", F32, 4, 64),
    "a mask row by row": Case("vmask_lt", F32, 3, 70),
    "positions": Case("vramp", F32, 3, 70),
    "positions of one row": Case("vramp", F32, 1, 64),
    "positions of one row, three apart": Case("vramp", F32, 1, 64, swap=True),
    "an exponential": Case("vexp", F32, 4, 64),
}
STEPPED = {*CASES} - {"rows of one chunk", "columns of one row", "positions of one row", "an exponential"}


@cache
def ran(part: int) -> tuple[list[_Builder], list[TraceRow]]:
    """The cases of a part, each in its own room of UB, and the trace of their kernel."""
    builders = []
    for n, case in enumerate([*CASES.values()][part * 7 : part * 7 + 7]):
        b = _Builder(case, n)
        b.top = n * ROOM
        b.build()
        builders.append(b)
    tensors, buffers = (tuple(x for b in builders for x in getattr(b, name)) for name in ("tensors", "buffers"))
    nodes = tuple(node for b in builders for node in b.nodes)
    p = synchronise(Program("k", "910B2", "AIV_ONLY", tensors, 1, False, 0, buffers, (), nodes))
    arrays = [np.ones(t.shape, np.float16 if t.dtype is F16 else np.float32) for t in p.tensors]
    done = simulate(
        kernel_text(p), p.name, arrays, kernel_type=p.kernel_type, launch=launch_blocks(p), workspace=p.workspace, trace=True,
        outputs=[n for n, t in enumerate(p.tensors) if t.output],
    )  # fmt: skip
    assert done.ok, done
    return builders, [row for row in done.trace if row.pipe == "V" and (row.touched or row.name == "PipeBarrier")]


def touches(row: TraceRow, b: Buffer) -> bool:
    return any(begin < b.addresses[0] + b.slot_bytes and b.addresses[0] < end for _, begin, end, _ in row.touched)


def case_of(name: str) -> tuple[Instr, dict[str, Buffer], list[list[TraceRow]]]:
    """The instruction, its buffers, and its rows of the trace between one barrier and the next."""
    part, n = divmod(list(CASES).index(name), 7)
    builders, trace = ran(part)
    buffers = {b.name: b for b in builders[n].buffers}
    mine = [k for k, row in enumerate(trace) if any(touches(row, b) for b in buffers.values())]
    groups: list[list[TraceRow]] = [[]]
    for row in trace[mine[0] : mine[-1] + 1]:
        groups = [*groups, []] if row.name == "PipeBarrier" else [*groups[:-1], [*groups[-1], row]]
    (instr,) = (i for i in builders[n].nodes if isinstance(i, Instr) and i.pipe == "V")
    return instr, buffers, groups


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_an_instruction_has_steps_where_its_text_has_barriers(name: str) -> None:
    instr, buffers, groups = case_of(name)
    assert (len(groups) > 1) == (name in STEPPED) == (steps(instr, buffers) is not None)


@pytest.mark.parametrize("name", sorted(STEPPED))
def test_operands_of_one_end_are_touched_there_only(name: str) -> None:
    instr, buffers, groups = case_of(name)
    found = steps(instr, buffers)
    assert found is not None
    parts = [(o, groups[-1]) for o in found.first] + [(o, groups[0]) for o in found.last]
    assert not [o for o, group in parts for row in group if isinstance(o, Tile) and touches(row, buffers[o.buffer])]


def test_under_a_condition_an_instruction_keeps_its_ends_and_is_no_barrier_for_others() -> None:
    instr, buffers, _ = case_of("a mask in one run")
    guarded = replace(instr, when=var("b"))
    assert steps(guarded, buffers) is None and ends(guarded, buffers) == steps(instr, buffers)
