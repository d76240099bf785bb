"""Pipes in the least favourable order that flags allow: what is right computes the same, what is wrong shows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.simulator.kernels import VECTOR_ADD, gemm_blocked, run_vector, vector
from tests.simulator.mutants import (
    SIZES,
    Mutant,
    Subject,
    subject,
    with_a_smaller_ring,
    with_an_early_set,
    without_a_barrier,
    without_a_pair,
)
from tile_eg import simulator
from tile_eg.simulator.run import Simulation, simulate

pytestmark = pytest.mark.slow(but=4)

FEW = range(8)


def keeps_its_numbers(kernel: Subject, order: int) -> bool:
    done = kernel.run(order=order)
    return done.ok and kernel.same(done)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_an_example_computes_the_same_in_any_order(name: str) -> None:
    wrong = [order for order in FEW if not keeps_its_numbers(subject(name), order)]
    assert not wrong, f"these orders give other numbers: {wrong}"


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_an_example_computes_the_same_in_a_hundred_orders(name: str) -> None:
    wrong = [order for order in range(8, 108) if not keeps_its_numbers(subject(name), order)]
    assert not wrong, f"these orders give other numbers: {wrong}"


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", ["vector_add", "softmax", "gemm"])
def test_holding_back_any_one_instruction_changes_nothing(name: str) -> None:
    kernel = subject(name)
    first = kernel.run(order=0).delays
    met = {kernel.run(order=-n).delays.fingerprint for n in range(1, first.instructions + 1)}
    assert met == {first.fingerprint}


def races(kernel: Subject) -> Iterator[Mutant]:
    """Mutants in which nothing but an order is missing."""
    for kind in (without_a_pair, without_a_barrier, with_an_early_set, with_a_smaller_ring):
        yield from (m for m in kind(kernel) if {f.kind for f in kernel.run(m.entries).findings} == {"race"})


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "gemm", "matmul_add", "flash_attention"])
def test_a_race_gives_wrong_numbers_in_some_order(name: str) -> None:
    kernel = subject(name)
    found = list(races(kernel))
    assert found
    harmless = [m for m in found if all(kernel.same(kernel.run(m.entries, order=order)) for order in range(60))]
    assert not harmless, "no order shows these races"


def orders(run: Callable[[int], Simulation]) -> set[bytes]:
    return {run(order).outputs[0].tobytes() for order in range(16)}


def run_vector_add(source: str, order: int) -> Simulation:
    a, b = (np.arange(8192, dtype=np.float32) * scale for scale in (1, 3))
    return simulate(source, "k", [a, b, a], kernel_type="AIV_ONLY", launch=1, outputs=[2], order=order)


@pytest.mark.slow
def test_a_ring_without_its_flag_back_computes_something_else_in_some_order() -> None:
    broken = "\n".join(line for line in VECTOR_ADD.splitlines() if "MTE3_MTE2" not in line)
    assert len(orders(lambda order: run_vector_add(VECTOR_ADD, order))) == 1
    assert len(orders(lambda order: run_vector_add(broken, order))) > 1


def test_a_later_copy_of_one_pipe_may_land_first() -> None:
    twice = "DataCopy(x, gmX, 64); DataCopy(x, gmX[64], 64); SetFlag<HardEvent::MTE2_MTE3>(0); "
    source = vector("X Y", twice + "WaitFlag<HardEvent::MTE2_MTE3>(0); DataCopy(gmY, x, 64);")
    x = np.arange(256, dtype=np.float32)

    def first(order: int) -> float:
        done = simulate(source, "k", [x, x], kernel_type="AIV_ONLY", launch=1, outputs=[1], order=order)
        return float(done.outputs[0][0])

    assert {first(order) for order in range(16)} == {0.0, 64.0}


def test_the_scalar_unit_may_read_before_a_result_is_there() -> None:
    body = "Duplicate(x, 1.0f, 64); if (x.GetValue(0) == 1.0f) { Duplicate(y, 2.0f, 64); } else { Duplicate(y, 3.0f, 64); } "
    source = vector("Y", body + "SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0); DataCopy(gmY, y, 64);")
    y = np.zeros(256, np.float32)

    def result(order: int) -> float:
        return float(simulate(source, "k", [y], kernel_type="AIV_ONLY", launch=1, outputs=[0], order=order).outputs[0][0])

    assert {result(order) for order in range(16)} == {2.0, 3.0}


def test_products_that_the_hardware_guards_stay_in_their_order() -> None:
    source = gemm_blocked(64, 64, 128, 64, 64, 32)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 128), (128, 64)))
    arguments = [a, b, np.zeros((64, 64), np.float32)]
    results = orders(lambda order: simulate(source, "k", arguments, kernel_type="AIC_ONLY", launch=1, outputs=[2], order=order))
    assert len(results) == 1


def test_an_order_finds_what_the_program_order_finds() -> None:
    broken = "\n".join(line for line in VECTOR_ADD.splitlines() if "MTE3_MTE2" not in line)
    a = np.ones(8192, np.float32)
    plain = {(f.kind, f.line, f.other_line) for f in run_vector(broken, a, a, a).findings}
    assert all({(f.kind, f.line, f.other_line) for f in run_vector_add(broken, order).findings} >= plain for order in FEW)


def test_an_order_is_the_same_each_time() -> None:
    broken = "\n".join(line for line in VECTOR_ADD.splitlines() if "MTE3_MTE2" not in line)
    assert run_vector_add(broken, 2).delays == run_vector_add(broken, 2).delays


RUNTIME = Path(simulator.__file__).parent / "include" / "runtime"
INSTRUCTIONS = re.findall(r"^void (\w+)\((?=[^)]*(?:Operand|VectorSide))", (RUNTIME / "interface.h").read_text(), re.M)
TEXT = "\n".join(file.read_text() for file in sorted(RUNTIME.glob("*.cpp")))
# These take addresses from data, keep a register, or get arrays: they run when all that was issued before has run. `watched` is
# no instruction: runs that are watched keep to the order of the text.
AT_ONCE = {
    "vector_gather", "vector_gather_blocks", "vector_merge", "vector_to_5hd", "vector_transpose_nd",
    "vector_compare_register", "vector_select_register_scalar", "get_compare_mask", "set_compare_mask", "scalar_write",
    "write_past_cache", "clean_cache", "watched",
}  # fmt: skip


def can_be_delayed(name: str) -> bool:
    body = re.search(rf"^void {name}\([^)]*\)\n\{{\n(.*?)^\}}", TEXT, re.M | re.S)
    assert body, f"the runtime does not define {name}"
    return "if (queued(line, " in body[1]


def test_every_instruction_can_be_delayed_but_those_that_are_known() -> None:
    assert {name for name in INSTRUCTIONS if not can_be_delayed(name)} <= AT_ONCE
