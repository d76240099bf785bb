"""Random kernels, all the way: the numbers are right and nothing is found in the text, or a limit is told that is one."""

from __future__ import annotations

import pytest

from tests.fuzz.generator import random_kernel
from tests.fuzz.outcome import outcome

FIRST, MORE, MANY = range(16), range(16, 40), range(40, 90)
FEW_ARE_LEGAL = (129, 627, 755, 858)
"""States that swap, in loops in loops: most choices overwrite something that is still needed."""


def check(seed: int) -> None:
    text = random_kernel(seed)
    found = outcome(text)
    assert found.kind in ("good", "limit", "blurred"), f"{found.kind}: {found.what}\n{text}"


def test_a_seed_gives_one_kernel():
    assert random_kernel(5) == random_kernel(5) != random_kernel(6)


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("seed", FIRST)
def test_a_random_kernel_computes_what_was_meant(seed):
    check(seed)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("seed", [*(pytest.param(n, marks=pytest.mark.long) for n in MORE), *FEW_ARE_LEGAL])
def test_more_random_kernels_compute_what_was_meant(seed):
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", MANY)
def test_many_random_kernels_compute_what_was_meant(seed):
    check(seed)


@pytest.mark.long
def test_most_random_kernels_have_numbers_to_compare():
    kinds = [outcome(random_kernel(seed)).kind for seed in range(6)]
    assert kinds.count("good") > len(kinds) // 2
