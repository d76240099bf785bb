"""The race detector against every legal order: random programs, with and without the flags that they need.

Two kernels, one for a vector core, one for a cube core with its vector cores. Each is compiled once, and reads the program that
it runs from GM, one row of four numbers for each instruction.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.simulator.kernels import CUBE, UB, gm, kernel
from tile_eg.simulator.run import Simulation, simulate

EVENTS = ("MTE2_V", "V_MTE2", "V_MTE3", "MTE3_V", "MTE3_MTE2", "MTE2_MTE3")
PIPES = ("MTE2", "V", "MTE3")
LOAD, LOAD_BACK, COMPUTE, STORE, BARRIER, SET, WAIT = range(7)
SLOTS = 3
ROWS = 12
CUBE_EVENTS = ("FIX_MTE2", "MTE2_FIX")
VECTOR_EVENTS = ("MTE2_MTE3", "MTE3_MTE2")
CUBE_PIPES, VECTOR_PIPES = ("MTE2", "FIX"), ("MTE2", "MTE3")
CROSS_SET, CROSS_WAIT = range(7, 9)


def choices(values: tuple[str, ...], text: str) -> str:
    return " ".join(f"if (p == {i}) {text.format(value)};" for i, value in enumerate(values))


def flags(events: tuple[str, ...], pipes: tuple[str, ...]) -> str:
    """The cases of barriers, sets and waits; p is the event or the pipe, q the id."""
    return f"""case {BARRIER}: {choices(pipes, "PipeBarrier<PIPE_{}>()")} break;
    case {SET}: {choices(events, "SetFlag<HardEvent::{}>(q)")} break;
    case {WAIT}: {choices(events, "WaitFlag<HardEvent::{}>(q)")} break;
    case {CROSS_SET}: {choices(pipes, "CrossCoreSetFlag<2, PIPE_{}>(q)")} break;
    case {CROSS_WAIT}: CrossCoreWaitFlag(q); break;"""


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
    {flags(EVENTS, PIPES)}
  }}
}}
PipeBarrier<PIPE_ALL>();
""",
)
MIXED = kernel(
    "X Y program",
    "MIX_AIC_1_2",
    f"""{gm("Y", elements=512)} GlobalTensor<half> halves; halves.SetGlobalBuffer((__gm__ half*)Y, 1024);
GlobalTensor<int32_t> rows; rows.SetGlobalBuffer((__gm__ int32_t*)program);
if ASCEND_IS_AIC {{
  {CUBE} auto to = l1.Get<half>(); auto left = l0a.Get<half>(), right = l0b.Get<half>(); auto c = l0c.Get<float>();
  DataCopy(to, halves, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0)); PipeBarrier<PIPE_ALL>();
  LoadData(left, to, LoadData2DParams(0, 1, 1, 0, 0, false, 0)); LoadData(right, to, LoadData2DParams(0, 1, 1, 0, 0, true, 0));
  PipeBarrier<PIPE_ALL>(); Mmad(c, left, right, MmadParams(16, 16, 16, 0, false, true)); PipeBarrier<PIPE_ALL>();
  for (int i = 0; i < {ROWS}; ++i) {{
    const int p = rows.GetValue(4 * i + 1), q = rows.GetValue(4 * i + 2);
    switch (rows.GetValue(4 * i)) {{
      case {LOAD}: DataCopy(to[256 * p], halves[512 * q], Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0)); break;
      case {STORE}: Fixpipe(gmY[256 * q], c, FixpipeParamsV220(16, 16, 16, 16, false)); break;
      {flags(CUBE_EVENTS, CUBE_PIPES)}
    }}
  }}
}}
if ASCEND_IS_AIV {{
  {UB} auto all = ub.GetWithOffset<float>(256, 0); const int part = GetSubBlockIdx() * 64;
  Duplicate(all, 1.0f, 256); PipeBarrier<PIPE_ALL>();
  for (int i = {ROWS}; i < {2 * ROWS}; ++i) {{
    const int p = rows.GetValue(4 * i + 1), q = rows.GetValue(4 * i + 2);
    switch (rows.GetValue(4 * i)) {{
      case {LOAD}: DataCopy(all[64 * p], gmY[256 * q + part], 64); break;
      case {STORE}: DataCopy(gmY[256 * q + part], all[64 * p], 64); break;
      {flags(VECTOR_EVENTS, VECTOR_PIPES)}
    }}
  }}
}}
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
        insert_flag(draw, rows, len(EVENTS), number)
    return rows


def insert_flag(draw: st.DrawFn, rows: list[Row], events: int, number: int) -> None:
    event = draw(st.integers(0, events - 1))
    first = draw(st.integers(0, len(rows)))
    second = draw(st.integers(first, min(len(rows), first + 2)))
    rows.insert(second, (WAIT, event, number, 0))
    rows.insert(first, (SET, event, number, 0))


@st.composite
def mixed_programs(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """Loads and stores of the cube core and of its vector cores; flags inside of a core, and flags from one side to the other."""
    access = st.tuples(st.sampled_from((LOAD, STORE)), st.integers(0, 1), st.integers(0, 1), st.just(0))
    streams = draw(st.lists(access, min_size=1, max_size=3)), draw(st.lists(access, min_size=1, max_size=3))
    for number in range(draw(st.integers(0, 3))):
        insert_flag(draw, streams[draw(st.integers(0, 1))], len(CUBE_EVENTS), number)
    for number in range(draw(st.integers(0, 3))):
        giver = draw(st.integers(0, 1))
        streams[giver].insert(draw(st.integers(0, len(streams[giver]))), (CROSS_SET, draw(st.integers(0, 1)), number, 0))
        streams[1 - giver].insert(draw(st.integers(0, len(streams[1 - giver]))), (CROSS_WAIT, 0, number, 0))
    return streams


def run(kernel_type: str, *streams: list[Row], order: int | None = None) -> Simulation:
    program = np.full((2 * ROWS, 4), -1, np.int32)
    for i, rows in enumerate(streams):
        program[i * ROWS : i * ROWS + len(rows)] = rows
    x, y = np.arange(256, dtype=np.float32), np.arange(512, dtype=np.float32) / 64
    source = INTERPRETER if kernel_type == "AIV_ONLY" else MIXED
    return simulate(source, "k", [x, y, program], kernel_type=kernel_type, launch=1, outputs=[1], inout=[1], order=order)


def met_in_any_order(kernel_type: str, *streams: list[Row]) -> set[str]:
    """What the accesses meet, with each of the instructions held back, and in other orders."""
    count = run(kernel_type, *streams, order=0).delays.instructions
    return {run(kernel_type, *streams, order=order).delays.fingerprint for order in (*range(-count, 0), *range(4))}


def check(kernel_type: str, *streams: list[Row]) -> None:
    found = {f.kind for f in run(kernel_type, *streams).findings}
    assume(found <= {"race"})
    assert bool(found) == (len(met_in_any_order(kernel_type, *streams)) > 1)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(programs())
def test_there_is_a_race_just_where_orders_differ(rows: list[Row]) -> None:
    check("AIV_ONLY", rows)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(mixed_programs())
def test_there_is_a_race_between_cores_just_where_orders_differ(streams: tuple[list[Row], list[Row]]) -> None:
    check("MIX_AIC_1_2", *streams)


@pytest.mark.long
@settings(max_examples=500, deadline=None)
@given(programs())
def test_there_is_a_race_just_where_orders_differ_in_many_programs(rows: list[Row]) -> None:
    check("AIV_ONLY", rows)


@pytest.mark.long
@settings(max_examples=500, deadline=None)
@given(mixed_programs())
def test_there_is_a_race_between_cores_just_where_orders_differ_in_many_programs(streams: tuple[list[Row], list[Row]]) -> None:
    check("MIX_AIC_1_2", *streams)
