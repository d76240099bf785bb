"""The comparison sees every example that computes a little less than it should, or something else."""

from __future__ import annotations

import pytest

from tests.report.number_mutants import SIZES, Mutant, Subject, subject

SUBTRAHEND = ("BlockReduceMax", "WholeReduceMax", "Max")
"""Of a softmax's rows: exp(x - m) over the sum of exp(x - m) is the same for every m that is near enough to the maximum, so one
that misses an element, or is the running maximum of before, means the same until the missed one is larger by 88."""
SOFTMAXES = ("softmax", "online_softmax", "flash_attention", "flash_attention_causal", "flash_attention_rows")


def means_the_same(name: str, m: Mutant) -> bool:
    return name in SOFTMAXES and m.kind == "63 of 64 lanes" and m.before.startswith(tuple(f"AscendC::{op}(" for op in SUBTRAHEND))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vector_add", "gemm"])
def test_the_text_with_all_mutants_computes_what_the_kernel_means(name: str) -> None:
    assert subject(name).caught_by(0) == ""


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_every_mutant_has_wrong_numbers_on_one_of_the_sets(name: str) -> None:
    s: Subject = subject(name)
    assert s.caught_by(0) == ""
    got_away = [m for i, m in enumerate(s.mutants, 1) if not s.caught_by(i)]
    assert [str(m) for m in got_away if not means_the_same(name, m)] == []


@pytest.mark.slow
def test_every_example_is_mutated_in_all_ways_that_it_has() -> None:
    kinds = {kind: {n for n in SIZES if any(m.kind == kind for m in subject(n).mutants)} for kind in KINDS}
    assert kinds == KINDS


PRODUCTS = {n for n in SIZES if n.startswith(("gemm", "matmul", "flash"))}
CUBE_ALONE = {"gemm", "gemm_transposed", "gemm_int8"}
KINDS = {"one product less": PRODUCTS, "max to min": set(SOFTMAXES), "63 of 64 lanes": SIZES.keys() - CUBE_ALONE}
