"""The machine contract as data: consistent in itself, with docs/machine.md, and with what the simulator checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tile_eg
from tile_eg.chips import known_chips, load_chip
from tile_eg.ir.machine import (
    CORE_LEVELS,
    CORE_PIPES,
    CROSS_IDS,
    CROSS_SET_PIPES,
    EVENTS,
    FIELD_LIMITS,
    KERNEL_TYPES,
    SCALAR_PIPE,
    USABLE_EVENT_IDS,
    cores,
    fits,
    has_cross_flags,
    needs_barrier,
    valid_event,
)
from tile_eg.ir.program import AIC, AIV, PIPES
from tile_eg.ops.types import Level

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "machine.md").read_text("utf-8")
CLAUSES = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^## )", PAGE, re.M | re.S)
TESTS = {
    name
    for file in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.M)
}
HEADERS = sorted((Path(tile_eg.__file__).parent / "simulator" / "include").rglob("*.h"))


def test_clauses_are_numbered_without_gaps() -> None:
    assert [int(number) for number, _ in CLAUSES] == list(range(1, len(CLAUSES) + 1))


@pytest.mark.parametrize(("number", "text"), CLAUSES, ids=[number for number, _ in CLAUSES])
def test_a_clause_rests_on_a_page_or_is_assumed(number: str, text: str) -> None:
    assert re.search(r"[Pp]age: \S", text) or "*Assumed*" in text


@pytest.mark.parametrize(("number", "text"), CLAUSES, ids=[number for number, _ in CLAUSES])
def test_a_clause_names_litmus_tests_that_exist(number: str, text: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", text))
    assert named
    assert named <= TESTS


# ---- events and pipes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("core", [AIC, AIV])
def test_events_join_pipes_of_their_core(core: str) -> None:
    pipes = {*CORE_PIPES[core], SCALAR_PIPE}
    assert all(set(event.split("_")) <= pipes for event in EVENTS[core])


@pytest.mark.parametrize("core", [AIC, AIV])
def test_no_event_joins_a_pipe_with_itself(core: str) -> None:
    assert all(len(set(event.split("_"))) == 2 for event in EVENTS[core])


@pytest.mark.parametrize("core", [AIC, AIV])
def test_what_can_be_set_can_be_given_back(core: str) -> None:
    one_way = {"FIX_MTE3"} if core == AIC else set()
    assert {e for e in EVENTS[core] if "_".join(reversed(e.split("_"))) not in EVENTS[core]} - one_way == set()


def test_the_cube_core_has_no_flags_of_the_scalar_unit() -> None:
    assert not any(SCALAR_PIPE in event.split("_") for event in EVENTS[AIC])


def test_an_event_of_the_other_core_is_not_valid() -> None:
    assert valid_event(AIC, "MTE1", "M")
    assert not valid_event(AIV, "MTE1", "M")


def test_every_instruction_runs_on_a_pipe_of_its_core() -> None:
    assert all(pipe in (*CORE_PIPES[core], SCALAR_PIPE) for core, pipe in PIPES.values())
    assert {op for op, (_, pipe) in PIPES.items() if pipe == SCALAR_PIPE} == {"store_element"}


def test_moves_exist_for_the_paths_of_the_architectures_only() -> None:
    everywhere, direct = {"gm_to_l1", "l1_to_l0a", "l1_to_l0b", "gm_to_ub", "ub_to_gm"}, {"ub_to_l1", "l1_to_ub"}
    assert {op for op in PIPES if "_to_" in op} == everywhere | direct
    assert Level.UB not in CORE_LEVELS[AIC]
    assert Level.L1 not in CORE_LEVELS[AIV]


def test_every_pipe_of_a_core_can_raise_a_cross_flag() -> None:
    assert {core: set(pipes) for core, pipes in CROSS_SET_PIPES.items()} == {core: set(p) for core, p in CORE_PIPES.items()}


def test_usable_ids() -> None:
    assert (list(USABLE_EVENT_IDS), list(CROSS_IDS)) == ([0, 1, 2, 3, 4, 5], list(range(11)))


# ---- barriers ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pipe", ["V", "MTE1", "MTE2", "MTE3", "FIX"])
def test_dependent_instructions_of_a_pipe_need_a_barrier(pipe: str) -> None:
    assert needs_barrier(pipe)


@pytest.mark.parametrize(("m", "n", "needed"), [(16, 144, True), (16, 160, False), (48, 48, True), (64, 64, False)])
def test_products_need_one_below_ten_fractals(m: int, n: int, needed: bool) -> None:
    assert needs_barrier("M", m, n) is needed


def test_a_row_below_a_fractal_counts_as_none() -> None:
    assert needs_barrier("M", 15, 4080)


def test_the_scalar_unit_needs_none() -> None:
    assert not needs_barrier("S")


# ---- kernel types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel_type", "has"), [("AIC_ONLY", (1, 0)), ("AIV_ONLY", (0, 1)), ("MIX_AIC_1_1", (1, 1)), ("MIX_AIC_1_2", (1, 2))]
)
def test_a_kernel_type_has_its_cores(kernel_type: str, has: tuple[int, int]) -> None:
    assert cores(kernel_type) == has


@pytest.mark.parametrize("kernel_type", KERNEL_TYPES)
def test_mixed_types_have_flags_between_cores(kernel_type: str) -> None:
    assert has_cross_flags(kernel_type) is kernel_type.startswith("MIX")


# ---- fields -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", FIELD_LIMITS)
def test_a_field_holds_its_limits_and_no_more(field: str) -> None:
    low, high = FIELD_LIMITS[field]
    assert fits(field, low)
    assert fits(field, high)
    assert not fits(field, low - 1)
    assert not fits(field, high + 1)


def test_the_simulator_checks_the_same_fields() -> None:
    checks = re.findall(r'checked\([^,]+,\s*(\d+),\s*(\d+),\s*"(\w+\.\w+)"', "".join(h.read_text("utf-8") for h in HEADERS))
    known = {field: int(high) for _, high, field in checks if field in FIELD_LIMITS}
    assert len(known) > 20
    assert known == {field: FIELD_LIMITS[field][1] for field in known}


def test_the_simulator_knows_every_event() -> None:
    text = "".join(h.read_text("utf-8") for h in HEADERS)
    spelt = {f"{a}_{b}" for a, b in re.findall(r"X\((\w+), (\w+)\)", text)}
    assert {event for events in EVENTS.values() for event in events} <= spelt


@pytest.mark.parametrize("name", known_chips())
def test_the_simulator_has_the_memories_of_the_chips(name: str) -> None:
    from tile_eg.simulator.run import CAPACITIES

    assert {level: load_chip(name).memories[Level(level)].bytes for level in CAPACITIES} == dict(CAPACITIES)
