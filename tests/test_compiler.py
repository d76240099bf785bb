"""The driver tells a user's mistake from a fault of its own, whatever a room raises."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from tile_eg.emit import ascend_c, sync
from tile_eg.errors import InternalError, PlanError, Span, TileError
from tile_eg.extract import flags
from tile_eg.frontend.text import load_text
from tile_eg.ir.kernel import Kernel
from tile_eg.ir.program import Program
from tile_eg.search.collector import rare_collections
from tile_eg.search.compiler import Lowered, lower, stage


def test_a_users_error_learns_the_source_that_it_points_into() -> None:
    with pytest.raises(TileError) as caught, stage("check", "first\nsecond line"):
        raise TileError("no", Span("f.tile", 2, 1, 2, 7))
    assert "second line" in str(caught.value)


def test_a_source_that_is_known_already_stays() -> None:
    with pytest.raises(TileError) as caught, stage("outer", "outer text"), stage("inner", "inner text"):
        raise TileError("no", Span("f.tile", 1, 1, 1, 2))
    assert caught.value.source == "inner text"


class Panic(BaseException):
    """What a fault in native code looks like from Python: no Exception."""


@pytest.mark.parametrize("fault", [ValueError("x"), KeyError("x"), Panic("x")])
def test_anything_unforeseen_is_our_fault_and_names_its_stage(fault: BaseException) -> None:
    with pytest.raises(InternalError, match="'saturate'.*x") as caught, stage("saturate"):
        raise fault
    assert caught.value.__cause__ is fault


def test_the_innermost_stage_is_named() -> None:
    with pytest.raises(InternalError) as caught, stage("outer"), stage("inner"):
        raise ValueError
    assert caught.value.stage == "inner"


def test_an_interrupt_is_nobodys_fault() -> None:
    with pytest.raises(KeyboardInterrupt), stage("extract"):
        raise KeyboardInterrupt


def test_seconds_add_up_by_stage() -> None:
    timings: dict[str, float] = {"a": 100.0}
    with stage("a", timings=timings), stage("b", timings=timings):
        pass
    assert timings["a"] > 100 > timings["b"] > 0


# ---- schedules that cannot be planned --------------------------------------------------------------------------------------


@pytest.fixture
def kernel() -> Kernel:
    file = Path(__file__).parent.parent / "examples" / "vector_add.tile"
    return load_text(file.read_text(), file.name).instantiate({"M": 64, "N": 64})


OUT_OF_IDS = PlanError("flag ids run out")


def failing(times: int, fault: Exception = OUT_OF_IDS) -> Callable[..., Program]:
    """A `synchronise` that fails for the first few programs."""
    left, real = [times], sync.synchronise

    def synchronise(program: Program, fewer: bool = False) -> Program:
        if left[0]:
            left[0] -= 1
            raise fault
        return real(program, fewer)

    return synchronise


@pytest.mark.slow
def test_a_schedule_that_cannot_be_planned_makes_room_for_the_next(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    usual: Lowered = lower(kernel)
    monkeypatch.setattr(sync, "synchronise", failing(1))
    low = lower(kernel)
    assert len(low.candidates) == len(usual.candidates) - 1
    assert "refused\n  " in str(low.explanation)
    assert "flag ids run out" in str(low.explanation)


@pytest.mark.slow
def test_where_rings_have_no_flags_a_schedule_without_rings_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sync.synchronise

    def synchronise(program: Program, fewer: bool = False) -> Program:
        if any(b.slots > 1 for b in program.buffers):
            raise OUT_OF_IDS
        return real(program, fewer)

    file = Path(__file__).parent.parent / "examples" / "online_softmax.tile"
    kernel = load_text(file.read_text(), file.name).instantiate({"M": 16, "N": 512, "BM": 16, "BN": 128})
    monkeypatch.setattr(sync, "synchronise", synchronise)
    monkeypatch.setattr(flags, "shallower", lambda schedule: False)
    low = lower(kernel)
    assert len(low.dropped) >= len(low.extraction.schedules)
    assert {b.slots for b in low.program.buffers} == {1}


@pytest.mark.slow
def test_where_no_schedule_can_be_planned_the_fault_is_ours(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "synchronise", failing(99))
    with pytest.raises(InternalError, match="'plan'.*flag ids run out"):
        lower(kernel)


@pytest.mark.slow
def test_a_text_that_cannot_be_written_makes_room_for_the_next(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, left = ascend_c.kernel_text, [True]

    def kernel_text(program: Program) -> str:
        if left.pop() if left else False:
            raise PlanError("its field holds 255")
        return usual(program)

    monkeypatch.setattr(ascend_c, "kernel_text", kernel_text)
    assert "its field holds 255" in str(lower(kernel).explanation)


def test_a_fault_in_planning_is_ours_and_names_the_schedule(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "synchronise", failing(1, KeyError("step")))
    with pytest.raises(InternalError, match=r"'plan': KeyError: 'step'\nin schedule 1 of \d: \d+ cycles; .*store to C: UBToGM"):
        lower(kernel)


@pytest.mark.slow
def test_one_kernel_gives_one_text(kernel: Kernel) -> None:
    assert lower(kernel).source == lower(kernel).source


def test_the_collector_is_as_it_was_after_a_compilation(kernel: Kernel) -> None:
    before = gc.get_threshold()
    lower(kernel)
    assert gc.get_threshold() == before


def test_a_collector_that_is_switched_off_stays_so() -> None:
    usual = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with rare_collections():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*usual)
