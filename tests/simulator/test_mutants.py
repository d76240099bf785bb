"""What is wrong with a kernel does not get away: mutants of every example, each caught or shown to be harmless."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulator.mutants import (
    EXAMPLES,
    FINDING,
    HARMLESS,
    KINDS,
    MISSED,
    NONE,
    NUMBERS,
    PERSISTENT,
    SIZES,
    Mutant,
    census,
    example,
    fate,
    found_at_once,
    mutants_of,
    subject,
    with_another_unit_flag,
    without_a_barrier,
    without_one_flag,
)

SAMPLE = 24


def sample(name: str) -> list[Mutant]:
    """Mutants spread evenly over all kinds."""
    found = mutants_of(subject(name))
    return found[:: max(1, len(found) // SAMPLE)]


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_an_unchanged_example_is_not_blamed(name: str) -> None:
    assert subject(name).right.ok


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["vector_add", "softmax", "gemm", "gemm_exp", pytest.param("flash_attention", marks=pytest.mark.long)]
)
def test_a_wrong_kernel_is_caught(name: str) -> None:
    kernel = subject(name)
    missed = [mutant for mutant in sample(name) if fate(kernel, mutant) == MISSED]
    assert not missed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemm", "flash_attention", PERSISTENT])
def test_every_kind_of_mutant_is_there(name: str) -> None:
    kernel = subject(name)
    missing = {kind for kind in KINDS if not any(True for _ in kind(kernel))}
    assert missing <= ({without_a_barrier} if name == PERSISTENT else {with_another_unit_flag})


@pytest.mark.slow
def test_every_unit_flag_that_is_not_as_it_was_emitted_is_found() -> None:
    kernel = subject(PERSISTENT)
    assert kernel.right.ok
    fates = {mutant.where: fate(kernel, mutant) for mutant in with_another_unit_flag(kernel)}
    assert Counter(fates.values()) == {FINDING: 6, NONE: 2}  # of Mmad 2 and 3, of Fixpipe 3


BARRIERS = "flash_attention", "flash_attention_causal", "online_softmax"


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", BARRIERS)
def test_every_barrier_of_an_example_at_its_own_size_is_needed(name: str) -> None:
    kernel = example(name)
    assert [m.where for m in without_a_barrier(kernel) if not found_at_once(kernel, m)] == []


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", [file.stem for file in sorted(EXAMPLES.glob("*.tile"))])
def test_every_flag_of_an_example_at_its_own_size_is_needed(name: str) -> None:
    kernel = example(name)
    assert [m.where for m in without_one_flag(kernel) if not found_at_once(kernel, m)] == []


@pytest.mark.slow
def test_a_change_that_applies_to_nothing_is_no_mutant() -> None:
    assert fate(subject("vector_add"), Mutant("", "", ("drop:1",))) == NONE


@pytest.mark.slow
def test_a_buffer_that_moves_to_free_memory_is_harmless() -> None:
    assert fate(subject("vector_add"), Mutant("", "", ("shift:0:-1:UB:0:196608:32",))) == HARMLESS


@pytest.mark.slow
def test_wrong_numbers_are_told_from_findings() -> None:
    kernel = subject("softmax")
    shifts = [m for m in mutants_of(kernel) if m.kind == "operand shifted by 32 bytes"]
    assert {fate(kernel, m) for m in shifts} >= {FINDING, NUMBERS}


LONG = ("flash_attention", "flash_attention_rows")  # minutes each


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in SIZES])
def test_no_mutant_of_an_example_gets_away(name: str) -> None:
    fates = Counter(census(subject(name)).values())
    could_change_a_result = fates[FINDING] + fates[NUMBERS] + fates[MISSED]
    assert fates[MISSED] <= 0.02 * could_change_a_result, fates
