"""What is wrong with a kernel does not get away: mutants of every example, each caught or shown to be harmless."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulator.mutants import (
    FINDING,
    HARMLESS,
    KINDS,
    MISSED,
    NONE,
    NUMBERS,
    SIZES,
    Mutant,
    census,
    fate,
    mutants_of,
    subject,
)

SAMPLE = 24


def sample(name: str) -> list[Mutant]:
    """Mutants spread evenly over all kinds."""
    found = mutants_of(subject(name))
    return found[:: max(1, len(found) // SAMPLE)]


@pytest.mark.parametrize("name", SIZES)
def test_an_unchanged_example_is_not_blamed(name: str) -> None:
    assert subject(name).right.ok


@pytest.mark.parametrize("name", ["vector_add", "softmax", "gemm", "gemm_exp", "flash_attention"])
def test_a_wrong_kernel_is_caught(name: str) -> None:
    kernel = subject(name)
    missed = [mutant for mutant in sample(name) if fate(kernel, mutant) == MISSED]
    assert not missed


@pytest.mark.parametrize("name", ["gemm", "flash_attention"])
def test_every_kind_of_mutant_is_there(name: str) -> None:
    kernel = subject(name)
    assert all(any(True for _ in kind(kernel)) for kind in KINDS)


def test_a_change_that_applies_to_nothing_is_no_mutant() -> None:
    assert fate(subject("vector_add"), Mutant("", "", ("drop:1",))) == NONE


def test_a_buffer_that_moves_to_free_memory_is_harmless() -> None:
    assert fate(subject("vector_add"), Mutant("", "", ("shift:0:-1:UB:0:196608:32",))) == HARMLESS


def test_wrong_numbers_are_told_from_findings() -> None:
    kernel = subject("softmax")
    shifts = [m for m in mutants_of(kernel) if m.kind == "operand shifted by 32 bytes"]
    assert {fate(kernel, m) for m in shifts} >= {FINDING, NUMBERS}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_no_mutant_of_an_example_gets_away(name: str) -> None:
    fates = Counter(census(subject(name)).values())
    could_change_a_result = fates[FINDING] + fates[NUMBERS] + fates[MISSED]
    assert fates[MISSED] <= 0.02 * could_change_a_result, fates
