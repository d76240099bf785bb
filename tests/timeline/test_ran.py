"""One engine for the text and for the Program: what ran, timed from the simulator's trace, takes what the plan takes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tile_eg.chips import load_chip
from tile_eg.compiler import Lowered, lower
from tile_eg.emit.host import launch_blocks
from tile_eg.emit.names import kernel_symbol
from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.simulator.findings import TraceRow
from tile_eg.simulator.run import simulate
from tile_eg.timeline.cores import StreamError
from tile_eg.timeline.engine import run
from tile_eg.timeline.ran import ran_cycles

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.tile"))
CHIP = load_chip()


@cache
def lowered(example: Path) -> Lowered:
    return lower(load_text(example.read_text(), example.name).instantiate())


def timed_as_it_ran(low: Lowered) -> float:
    p = low.program
    arrays = {t.name: np.ones(t.shape, numpy_dtype(t.dtype)) for t in p.tensors}
    written = [i for i, t in enumerate(p.tensors) if t.output]
    done = simulate(
        low.source, kernel_symbol(p), list(arrays.values()), kernel_type=p.kernel_type, launch=launch_blocks(p),
        workspace=p.workspace, outputs=written, trace=True,
    )  # fmt: skip
    return ran_cycles(done.trace, low.chip, {name: a.nbytes for name, a in arrays.items()})


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.stem)
def test_text_and_program_take_the_same_time(example: Path) -> None:
    low = lowered(example)
    assert timed_as_it_ran(low) == pytest.approx(run(low.program, low.chip, exact=True).block_cycles, rel=0.02)


def row(name: str, pipe: str = "V", path: str = "vector", sizes: tuple[int, ...] = (16, 4, 0, 0), core: str = "AIV") -> TraceRow:
    return TraceRow(0, core, pipe, name, 7, 256, path, sizes=sizes)


def test_instructions_of_a_trace_have_the_prices_of_the_tables() -> None:
    exp = CHIP.vector.ops["exp", 4]
    assert ran_cycles([row("Exp", sizes=(64 * 16, 4, 0, 0))], CHIP, {}) == 1 + 64 * exp.slope + exp.fixed


def test_sources_in_one_bank_group_are_seen() -> None:
    quick, slow = (ran_cycles([row("Add", sizes=(64 * 16, 4, meet, 0))], CHIP, {}) for meet in (0, 1))
    assert slow - quick == 64


def test_flags_of_a_trace_order_pipes() -> None:
    load = row("DataCopy", "MTE2", "GM->UB", (1, 4096, 4096, 4))
    flags = [row("SetFlag MTE2_V, 0", "MTE2", ""), row("WaitFlag MTE2_V, 0", "V", "")]
    exp = row("Exp")
    assert ran_cycles([load, *flags, exp], CHIP, {}) > ran_cycles([load, exp], CHIP, {})


def test_an_instruction_without_a_price_is_named_with_its_line() -> None:
    with pytest.raises(StreamError, match="line 7: Sort32 has no price"):
        ran_cycles([row("Sort32")], CHIP, {})
