"""The race detector against every legal order: random programs of one vector core, with and without the flags that they need.

The kernel is compiled once; it reads the program that it runs from GM, one row of four numbers for each instruction.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.kernels import UB, gm, kernel
from tile_eg.simulator.run import Simulation, simulate

EVENTS = ("MTE2_V", "V_MTE2", "V_MTE3", "MTE3_V", "MTE3_MTE2", "MTE2_MTE3")
PIPES = ("MTE2", "V", "MTE3")
LOAD, LOAD_BACK, COMPUTE, STORE, BARRIER, SET, WAIT = range(7)
SLOTS = 3
ROWS = 12


def choices(values: tuple[str, ...], text: str) -> str:
    return " ".join(f"if (p == {i}) {text.format(value)};" for i, value in enumerate(values))


INTERPRETER = kernel(
    "X Y program",
    "AIV_ONLY",
    f"""{gm("X Y", elements=256)} {UB}
GlobalTensor<int32_t> rows; rows.SetGlobalBuffer((__gm__ int32_t*)program);
auto all = ub.GetWithOffset<float>(256, 0);
Duplicate(all, 1.0f, 256);
PipeBarrier<PIPE_ALL>();
for (int i = 0; i < {ROWS}; ++i) {{
  const int p = rows.GetValue(4 * i + 1), q = rows.GetValue(4 * i + 2), r = rows.GetValue(4 * i + 3);
  switch (rows.GetValue(4 * i)) {{
    case {LOAD}: DataCopy(all[64 * p], gmX[64 * q], 64); break;
    case {LOAD_BACK}: DataCopy(all[64 * p], gmY[64 * q], 64); break;
    case {COMPUTE}: Add(all[64 * p], all[64 * q], all[64 * r], 64); break;
    case {STORE}: DataCopy(gmY[64 * q], all[64 * p], 64); break;
    case {BARRIER}: {choices(PIPES, "PipeBarrier<PIPE_{}>()")} break;
    case {SET}: {choices(EVENTS, "SetFlag<HardEvent::{}>(q)")} break;
    case {WAIT}: {choices(EVENTS, "WaitFlag<HardEvent::{}>(q)")} break;
  }}
}}
PipeBarrier<PIPE_ALL>();
""",
)
slot = st.integers(0, SLOTS - 1)
instruction = st.one_of(
    st.tuples(st.sampled_from((LOAD, LOAD_BACK, STORE)), slot, st.integers(0, 1), st.just(0)),
    st.tuples(st.just(COMPUTE), slot, slot, slot),
    st.tuples(st.just(BARRIER), st.integers(0, len(PIPES) - 1), st.just(0), st.just(0)),
)
Row = tuple[int, int, int, int]


@st.composite
def programs(draw: st.DrawFn) -> list[Row]:
    """Instructions, and flags with an id of their own each, whose wait comes some time after the set."""
    rows: list[Row] = draw(st.lists(instruction, min_size=2, max_size=6))
    for number in range(draw(st.integers(0, 3))):
        event = draw(st.integers(0, len(EVENTS) - 1))
        first = draw(st.integers(0, len(rows)))
        second = draw(st.integers(first, min(len(rows), first + 2)))
        rows.insert(second, (WAIT, event, number, 0))
        rows.insert(first, (SET, event, number, 0))
    return rows


def run(rows: list[Row], order: int | None = None) -> Simulation:
    program = np.full((ROWS, 4), -1, np.int32)
    program[: len(rows)] = rows
    x, y = np.arange(256, dtype=np.float32), -np.arange(256, dtype=np.float32)
    return simulate(
        INTERPRETER, "k", [x, y, program], kernel_type="AIV_ONLY", launch=1, outputs=[1], inout=[1], order=order
    )  # fmt: skip


def met_in_any_order(rows: list[Row]) -> set[str]:
    """What the accesses meet, with each of the instructions held back, and in other orders."""
    count = run(rows, 0).delays.instructions
    return {run(rows, order).delays.fingerprint for order in (*range(-count, 0), *range(4))}


@settings(max_examples=30, deadline=None)
@given(programs())
def test_there_is_a_race_just_where_orders_differ(rows: list[Row]) -> None:
    check(rows)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(programs())
def test_there_is_a_race_just_where_orders_differ_in_many_programs(rows: list[Row]) -> None:
    check(rows)


def check(rows: list[Row]) -> None:
    found = {f.kind for f in run(rows).findings}
    assert found <= {"race"}
    assert bool(found) == (len(met_in_any_order(rows)) > 1)
