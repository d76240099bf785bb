"""One engine for the text and for the Program: what ran, timed from the simulator's trace, takes what the plan takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from benchmarks.families import EXAMPLES as FAMILIES
from tile_eg.chips import load_chip
from tile_eg.emit.host import launch_blocks, workspace_bytes
from tile_eg.emit.names import kernel_symbol
from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.search.compiler import Lowered, lower
from tile_eg.simulator.findings import TraceRow
from tile_eg.simulator.run import simulate
from tile_eg.timeline.engine import run
from tile_eg.timeline.replay.launches import RanLaunch, timed_launches

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.tile"))
CHIP = load_chip()


SIZES = [
    ("gemm", {"M": 128, "N": 256, "K": 4096}),  # sums in parts: all cores meet, a third of them has nothing to do before
    ("gemm", {"M": 640, "N": 1280, "K": 128}),  # more tiles than cores
    ("softmax", {"M": 800, "N": 512}),
    ("vector_add", {"M": 1024, "N": 1024}),
]

CUT = [
    ("vector_add", {"M": 100, "N": 300}),
    ("softmax", {"M": 40, "N": 500}),
    ("rms_norm", {"M": 21, "N": 300}),
    ("elementwise/add", {"M": 33, "N": 1100}),
    ("elementwise/swiglu", {"M": 33, "N": 1100}),
    ("gemm/grouped", {"G": 3, "M": 128, "N": 128, "K": 128, "TILES": 2}),
    ("layout/transpose", {"M": 64, "N": 128}),
    ("layout/stencil3x3", {"M": 37, "N": 200}),
    ("rope/rope_halves", {"S": 37, "H": 3, "D": 64}),
]
"""Where tensors end within tiles, tables count rows, and instructions are written as several."""


def timed_as_it_ran(
    low: Lowered, given: Mapping[str, np.ndarray] = MappingProxyType({}), architecture: int = 2201
) -> RanLaunch:
    p = low.program
    arrays = {t.name: np.ones(t.shape, numpy_dtype(t.dtype)) for t in p.tensors} | dict(given)
    written = [i for i, t in enumerate(p.tensors) if t.output]
    done = simulate(
        low.source, kernel_symbol(p), list(arrays.values()), kernel_type=p.kernel_type, launch=launch_blocks(p),
        workspace=-(-workspace_bytes(p) // launch_blocks(p)), outputs=written, trace=True,
        architecture=architecture, capacities={str(level): m.bytes for level, m in low.chip.memories.items()},
    )  # fmt: skip
    assert done.ok
    return timed_launches(done.trace, low.chip)[0]


@pytest.mark.few(7)
@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.stem)
def test_text_and_program_take_the_same_time(example: Path) -> None:
    low = lower(load_text(example.read_text(), example.name).instantiate())
    text, program = timed_as_it_ran(low).timeline, run(low.program, low.chip, exact=True)
    assert text.cycles == pytest.approx(program.cycles, rel=0.02)
    assert text.microseconds == pytest.approx(program.microseconds, rel=0.02)


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "sizes"), CUT, ids=lambda v: v if isinstance(v, str) else "x".join(map(str, v.values())))
def test_they_take_the_same_time_where_tensors_end_within_tiles(name: str, sizes: dict[str, int]) -> None:
    example = next(e for e in FAMILIES if e.file == name)
    low = example.compiled(sizes, CHIP.name)
    text, program = timed_as_it_ran(low, example.drawn(sizes, seed=1)).timeline, run(low.program, low.chip, exact=True)
    assert program.cycles == pytest.approx(text.cycles, rel=0.05)


@pytest.mark.slow
def test_a_product_goes_to_both_vector_cores_at_once_in_a_text_as_in_its_program() -> None:
    source = EXAMPLES[0].with_name("gemm_exp.tile")
    low = lower(load_text(source.read_text(), source.name).instantiate({"M": 64, "N": 128, "K": 64}), "950")
    text, program = timed_as_it_ran(low, architecture=3510).timeline, run(low.program, low.chip, exact=True)
    assert text.cycles == pytest.approx(program.cycles, rel=0.01)


@pytest.mark.slow
def test_rows_that_are_written_one_by_one_hold_back_the_next_load_of_the_program_too() -> None:
    source = EXAMPLES[0].with_name("layer_norm.tile")
    low = lower(load_text(source.read_text(), source.name).instantiate({"M": 2048, "N": 1024}))
    assert timed_as_it_ran(low).timeline.cycles == pytest.approx(run(low.program, low.chip, exact=True).cycles, rel=0.04)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "sizes"), SIZES, ids=lambda v: v if isinstance(v, str) else "x".join(map(str, v.values())))
def test_a_text_that_fills_the_chip_moves_the_bytes_of_its_program_and_is_not_quicker(name: str, sizes: dict[str, int]) -> None:
    source = EXAMPLES[0].with_name(f"{name}.tile")
    low = lower(load_text(source.read_text(), source.name).instantiate(sizes))
    text, program = timed_as_it_ran(low).timeline, run(low.program, low.chip, exact=True)
    assert text.hbm_cycles == pytest.approx(program.hbm_cycles, rel=0.02)
    assert text.microseconds >= 0.98 * program.microseconds


# ---- rows of a trace --------------------------------------------------------------------------------------------------------

Sizes = tuple[int, int, int, int]
UB = (("UB", 0, 256, 0), ("UB", 256, 512, 1))


def row(name: str, pipe: str = "V", path: str = "vector", sizes: Sizes = (16, 4, 0, 0), **more: Any) -> TraceRow:
    return TraceRow(**{"block": 0, "core": "AIV", "line": 7, "bytes": 256, **more}, pipe=pipe, name=name, path=path, sizes=sizes)


def flag(name: str, pipe: str, **more: Any) -> TraceRow:
    return row(name, pipe, "", (0, 0, 0, 0), **more)


def cross(word: str, number: int, core: str, pipe: str = "S", mode: int = 2) -> TraceRow:
    return row(f"CrossCore{word}Flag {number}", pipe, "", (mode, 0, 0, 0), core=core)


def mark(kernel: str, kind: int, blocks: int) -> TraceRow:
    return row(kernel, "S", "launch", (kind, blocks, 0, 0), line=20)


def launches(*rows: TraceRow, auto_sync: bool = False) -> list[RanLaunch]:
    return timed_launches(rows, CHIP, auto_sync=auto_sync)


def cycles(*rows: TraceRow, auto_sync: bool = False) -> float:
    return launches(*rows, auto_sync=auto_sync)[0].timeline.block_cycles


LOAD = row("DataCopy", "MTE2", "GM->UB", (1, 4096, 4096, 4), bytes=4096, tensor="x", touched=[("UB", 0, 4096, 1)])
EXP = row("Exp", touched=UB)
WORD = CHIP.vector.ops["exp", 4]


def test_instructions_of_a_trace_have_the_prices_of_the_tables() -> None:
    assert cycles(row("Exp", sizes=(64 * 16, 4, 0, 0))) == 1 + 64 * WORD.slope + WORD.fixed


def test_sources_in_one_bank_group_are_seen() -> None:
    quick, half, slow = (cycles(row("Add", sizes=(64 * 16, 4, meet, 0))) for meet in (0, 8, 16))
    assert (half - quick, slow - quick) == (32, 64)


def test_flags_of_a_trace_order_pipes() -> None:
    flags = [flag("SetFlag MTE2_V, 0", "MTE2"), flag("WaitFlag MTE2_V, 0", "V")]
    assert cycles(LOAD, *flags, EXP) > cycles(LOAD, EXP)


def test_a_scalar_access_holds_the_issue() -> None:
    read = row("GetValue", "S", "scalar")
    assert cycles(read, read, EXP) - cycles(EXP) == 2 * CHIP.sync.scalar_access


def test_blocks_of_a_mixed_launch_that_stopped_before_their_vector_core_began_are_timed() -> None:
    one = row("Mmad", "M", "cube", core="AIC")
    both, stopped = (one, row("Exp", core="AIV0")), replace(one, block=1)
    assert launches(mark("k", 2, 2), *both, stopped)[0].timeline.block_cycles > 0


def test_an_instruction_that_the_tables_lack_is_named_and_counted_as_one_of_its_kind() -> None:
    launch = launches(row("Sigmoid", sizes=(64 * 16, 4, 0, 0)))[0]
    assert launch.unknown == {"Sigmoid": ("a vector instruction", [7])}
    assert launch.timeline.busy["AIV", "V"] == 64 * CHIP.vector.ops["other", 4].slope


def test_a_move_that_the_tables_lack_is_named_and_counted_as_one_of_its_kind() -> None:
    launch = launches(row("InitConstValue", "MTE2", "fill", (0, 0, 0, 0), core="AIC", bytes=6400))[0]
    assert launch.unknown == {"InitConstValue": ("a move inside of the core", [7])}
    assert launch.timeline.busy["AIC", "MTE2"] == CHIP.paths["other"].cycles(6400, 1, False)


def test_the_compiler_orders_instructions_that_meet_in_ub() -> None:
    after = row("Exp", touched=[("UB", 256, 512, 0), ("UB", 512, 768, 1)])
    assert cycles(EXP, after, auto_sync=True) - cycles(EXP, after) == WORD.fixed - 1 + 1
    apart = row("Exp", touched=[("UB", 1024, 1280, 0), ("UB", 2048, 2304, 1)])
    assert cycles(EXP, apart, auto_sync=True) == cycles(EXP, apart)


def test_a_fixpipe_without_a_flag_waits_for_the_product_that_it_carries_out() -> None:
    cell = ("L0C", 0, 65536)
    product = row("Mmad", "M", "macs", (128, 128, 128, 2), core="AIC", touched=[(*cell, 1)])
    out = row("Fixpipe", "FIX", "L0C->GM", (128, 512, 512, 4), core="AIC", bytes=65536, tensor="y", touched=[(*cell, 0)])
    timeline = launches(product, out)[0].timeline
    done = {s.instr.op: s.complete for s in timeline.spans}
    assert next(s.start for s in timeline.spans if s.instr.op == "Fixpipe") >= done["Mmad"]


# ---- launches ---------------------------------------------------------------------------------------------------------------


def test_launches_follow_one_another() -> None:
    first, second = launches(mark("one", 1, 1), EXP, mark("two", 1, 1), EXP, EXP)
    assert (first.kernel, second.kernel, first.start, first.line) == ("one", "two", 0.0, 20)
    assert second.start == first.timeline.microseconds


def test_the_slowest_block_of_a_launch_is_shown() -> None:
    launch = launches(mark("k", 1, 3), EXP, *[row("Exp", block=1)] * 3, row("Exp", block=2))[0]
    assert launch.block == 1
    assert launch.timeline.cycles == cycles(EXP, EXP, EXP)


def test_more_blocks_than_cores_come_in_waves() -> None:
    blocks = CHIP.vector_cores + 1
    launch = launches(mark("k", 1, blocks), *(row("Exp", block=b) for b in range(blocks)))[0]
    assert (launch.timeline.waves, launch.used) == (2, CHIP.vector_cores)
    assert launch.timeline.cycles == 2 * launch.timeline.block_cycles


def test_all_blocks_wait_for_the_slowest_one_where_they_meet() -> None:
    meet = flag("SyncAll", "S")
    long, short = [EXP] * 40, [EXP]
    rows = [[*long, meet, *short], [*short, meet, *long]]
    both = launches(mark("k", 1, 2), *(replace(r, block=b) for b, each in enumerate(rows) for r in each))[0]
    assert both.timeline.cycles == pytest.approx(cycles(*long, meet, *long), rel=0.05)


def test_what_a_launch_wrote_the_next_one_reads_out_of_l2() -> None:
    store = row("DataCopy", "MTE3", "UB->GM", (1, 4096, 4096, 4), bytes=4096, tensor="x")
    cold, warm = launches(mark("a", 1, 1), LOAD)[0], launches(mark("a", 1, 1), store, mark("b", 1, 1), LOAD)[1]
    assert warm.timeline.busy["AIV", "MTE2"] < cold.timeline.busy["AIV", "MTE2"]


def test_a_launch_of_cores_that_wait_for_each_other_has_a_range() -> None:
    pair = [cross("Set", 0, "AIC", "FIX"), cross("Wait", 0, "AIV0"), cross("Wait", 0, "AIV1")]
    launch = launches(mark("k", 3, 1), *pair)[0]
    assert launch.range_us is not None
    low, high = launch.range_us
    assert low < launch.timeline.microseconds < high


LATE = [replace(EXP, core="AIV1")] * 40
LONG = cycles(*[EXP] * 40)
LATENCY = CHIP.sync.cross_latency


def test_the_cube_core_waits_for_both_vector_cores() -> None:
    sets = [cross("Set", 0, core, "V") for core in ("AIV0", "AIV1")]
    timeline = launches(mark("k", 3, 1), sets[0], *LATE, sets[1], cross("Wait", 0, "AIC"))[0].timeline
    assert timeline.block_cycles >= LONG + LATENCY


def test_a_flag_of_mode_1_is_between_the_vector_cores_of_a_block() -> None:
    rows = [*LATE, *(cross(word, 3, core, pipe, 1) for word, pipe in (("Set", "V"), ("Wait", "S")) for core in ("AIV0", "AIV1"))]
    timeline = launches(mark("k", 3, 1), *rows, EXP_0 := replace(EXP, core="AIV0"))[0].timeline
    assert next(s.start for s in timeline.spans if s.core == EXP_0.core) >= LONG + LATENCY


def test_a_flag_of_mode_4_holds_one_pipe_for_one_vector_core() -> None:
    chip = load_chip("950")
    exp, load = (replace(r, core="AIV1") for r in (EXP, LOAD))
    rows = [
        replace(EXP, core="AIC", pipe="FIX", path="L0C->UB", bytes=1 << 16), cross("Set", 16, "AIC", "FIX", 4),
        cross("Wait", 0, "AIV1", "V", 4), exp, load,
    ]  # fmt: skip
    timeline = timed_launches([mark("k", 3, 1), *rows], chip)[0].timeline
    start = {s.instr.op: s.start for s in timeline.spans if s.core == "AIV1"}
    assert start["Exp"] > chip.sync.cross_latency > start["DataCopy"]


def test_a_flag_of_mode_0_lets_all_blocks_meet() -> None:
    meet = [cross("Set", 0, "AIV", "V", 0), cross("Wait", 0, "AIV", "S", 0)]
    rows = [[*[EXP] * 40, *meet, EXP], [EXP, *meet, *[EXP] * 40]]
    both = launches(mark("k", 1, 2), *(replace(r, block=b) for b, each in enumerate(rows) for r in each))[0]
    assert both.timeline.cycles == pytest.approx(cycles(*[EXP] * 40, *meet, *[EXP] * 40), rel=0.05)


def test_a_wait_between_blocks_that_is_not_followed_is_named() -> None:
    assert "IBWait 0, 1" in launches(mark("k", 1, 1), flag("IBWait 0, 1", "S"), EXP)[0].unknown


def test_paths_of_the_950_inside_of_a_core_have_their_own_prices() -> None:
    chip = load_chip("950")
    for path, core, pipe in (("L0C->UB", "AIC", "FIX"), ("UB->L1", "AIV", "MTE3"), ("L1->UB", "AIC", "MTE1")):
        name = path.lower().replace("->", "_to_")
        launch = timed_launches([row("DataCopy", pipe, path, (0, 0, 0, 0), core=core, bytes=12800)], chip)[0]
        assert launch.timeline.busy[core, pipe] == chip.paths[name].cycles(12800, 1, False)
        assert not launch.unknown
