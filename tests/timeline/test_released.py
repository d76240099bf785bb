"""What a block held while it ran is gone when it has run, and not left to Python's collector."""

from __future__ import annotations

import gc

import pytest
from timeline_programs import gemm_program

from tile_eg.chips import load_chip
from tile_eg.timeline.cores import Core
from tile_eg.timeline.engine import run


@pytest.mark.slow
def test_nothing_of_a_block_that_has_run_waits_for_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        run(gemm_program(8, 2), load_chip("910B2"))
        assert not any(isinstance(o, Core) for o in gc.get_objects())
    finally:
        gc.enable()
