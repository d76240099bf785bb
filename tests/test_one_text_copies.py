"""A text for all sizes whose operands are copied into strips first: the launches that make up for it take that kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import cast

import pytest

from tests.transforms.test_packed_operand import GEMM
from tile_eg.emit.any_size_host import Picked
from tile_eg.emit.ascend_c import kernel_text
from tile_eg.emit.host import shared_at
from tile_eg.frontend.text import load_text
from tile_eg.inputs import draw
from tile_eg.ir.index import MOST_SIZE, evaluate
from tile_eg.ir.kernel import Kernel
from tile_eg.report.compare import compare
from tile_eg.search import search_options
from tile_eg.search.any_size import AnySize, AtSizes, Variant
from tile_eg.search.compiler import expected
from tile_eg.search.off_bursts import off_bursts, on_bursts, steps
from tile_eg.search.one_text import OneText
from tile_eg.search.result import Lowered
from tile_eg.search.text_kernels import TextKernels, least_sizes, most_sizes, time_at

NAMES = ("M", "N", "K")
WEIGHTS = {"N": 300, "K": 250}
"""Rows off a burst, and N that is no whole tiles."""


def built(known: Mapping[str, int], sizes: Mapping[str, int]) -> Kernel:
    made = load_text(GEMM, "gemm.tile").instantiate({**known, **sizes})
    assert isinstance(made, Kernel)
    return made


@cache
def text(*known: tuple[str, int]) -> AnySize:
    names = tuple(n for n in NAMES if n not in dict(known))
    priced = {"M": (512,)} if len(names) > 1 else {}
    options = search_options(without=("deeper-trips", "split-result", "tile-order"))
    made = OneText(partial(built, dict(known)), names, "910B2", options, priced).text({})
    assert isinstance(made, AnySize), made
    return made


def of_tokens() -> AnySize:
    return text(*WEIGHTS.items())


def copying(one: AnySize) -> Variant:
    """The kernel that copies both operands."""
    return next(v for v in one.variants if len(v.program.shared) == 2)


def is_right(one: AnySize, kernel: Kernel, sizes: dict[str, int], order: int) -> bool:
    """Whether the kernel that copies operands computes what it should at these sizes."""
    variant = copying(one)
    assert not variant.why_not(sizes)
    inputs = draw([t for t in kernel.tensors if not t.output], "uniform", seed=1)
    at = AtSizes(variant.at(sizes), one.chip, kernel, kernel_text(variant.program))
    ran = at.run(inputs, order=order)
    return not ran.findings and all(c.good for c in compare(ran.outputs, expected(kernel, inputs)))


@pytest.mark.slow
def test_many_tokens_make_up_for_a_copy_of_the_weights_and_few_do_not() -> None:
    one = of_tokens()
    ((((name, least, most, by),), place),) = one.picked.first
    assert (name, most, by) == ("M", MOST_SIZE, 1) and 16 < least < 1024
    assert one.programs[place].shared and f"if (M >= {least})\n        return {place};" in one.host
    for m, shared in ((1, False), (least - 1, False), (least, True), (4096, True)):
        assert bool(one.programs[one.picked.at({"M": m})].shared) == shared


@pytest.mark.slow
def test_a_kernel_that_copies_its_weights_is_faster_than_one_that_does_not() -> None:
    plain, packed = of_tokens().found
    assert not plain.chosen.schedule.in_strips and packed.chosen.schedule.in_strips
    assert packed.chosen.microseconds < 0.5 * plain.chosen.microseconds


@pytest.mark.slow
@pytest.mark.parametrize("m, order", [(1, 2), (13, 1), (129, 3), (300, None)])
def test_with_weights_copied_any_number_of_tokens_is_right(m: int, order: int) -> None:
    assert is_right(of_tokens(), built(WEIGHTS, {"M": m}), {"M": m}, order)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "m, n, k, order", [(1, 130, 257, 2), (127, 128, 17, 1), (65, 2, 300, 3), (130, 129, 64, None), (16, 1, 1, 2), (300, 7, 65, 1)]
)
def test_operands_of_any_size_are_copied(m: int, n: int, k: int, order: int) -> None:
    sizes = {"M": m, "N": n, "K": k}
    assert is_right(text(), built({}, sizes), sizes, order)


@pytest.mark.slow
def test_all_cores_are_launched_as_they_meet_however_few_tiles_there_are() -> None:
    variant = copying(of_tokens())
    assert variant.at({"M": 1}).blocks == variant.at({"M": 4096}).blocks == 24
    assert "return 24;" in of_tokens().host


@pytest.mark.slow
def test_the_workspace_is_as_large_as_the_copies_at_the_sizes_of_a_launch() -> None:
    program = copying(of_tokens()).program
    of_weights, of_tokens_ = 19 * 250 * 32, lambda m: 16 * m * 32
    starts, end = shared_at(program)
    assert {t.name for t in program.shared} == {"A_strips", "B_strips"} == set(starts)
    assert evaluate(end, {"M": 1000}) - of_weights - of_tokens_(1000) in range(512)
    assert evaluate(end, {"M": 77}) - of_weights - of_tokens_(77) in range(512)


@pytest.mark.slow
def test_strips_of_more_rows_than_a_field_holds_are_loaded_one_by_one() -> None:
    assert "if (M <= 65535) {" in of_tokens().source and "for (int32_t strip = 0;" in of_tokens().source


@pytest.mark.slow
def test_it_can_be_switched_off() -> None:
    options = search_options(without=("packed-operand",))
    one = OneText(partial(built, WEIGHTS), ("M",), "910B2", options).text({})
    assert isinstance(one, AnySize) and not any(p.shared for p in one.programs)


@pytest.mark.slow
def test_each_kernel_of_the_text_is_explained() -> None:
    shown = str(of_tokens().explanation)
    assert "for all other sizes" in shown and "in strips of 32 bytes" in shown
    assert f"for M from {of_tokens().picked.first[0][0][0][1]} on" in shown


# ---- rows off bursts ----


@pytest.mark.slow
def test_where_sizes_put_rows_off_bursts_launches_take_a_kernel_that_copies_all_operands() -> None:
    one, both = text(), copying(text()).program
    near = {"M": 512, "N": 4000, "K": 4000}
    assert one.programs[one.picked.at(near)] is both
    assert one.programs[one.picked.at(dict.fromkeys(near, 1))] is one.program
    assert one.microseconds(near) < 0.5 * time_at(one.variants[0], one.found[0].chip, near)


@pytest.mark.slow
def test_where_rows_begin_on_bursts_larger_launches_make_up_for_the_copies() -> None:
    one = text()
    assert on_bursts([(one.lowered, dict.fromkeys(NAMES, 512))], NAMES) == {"N": 256, "K": 256}
    copies = {n: bool(one.programs[one.picked.at({"M": 128, "N": n, "K": n})].shared) for n in (760, 768, 4096)}
    assert copies == {760: True, 768: False, 4096: True}
    assert "N % 256 == 0" in one.host


@pytest.mark.slow
def test_a_size_that_is_named_off_bursts_is_weighed_as_it_is() -> None:
    sizes = {"M": 512, "N": 512, "K": 500}
    assert on_bursts([(text().lowered, sizes)], {"N"}) == {}
    assert on_bursts([(text().lowered, sizes)], NAMES) == on_bursts([(text().lowered, sizes | {"K": 512})], {}) != {}


class Taken(TextKernels):
    """Kernels by name, of which each is the faster the more pluses it has."""

    @staticmethod
    def time(kernel: Lowered, sizes: Mapping[str, int]) -> float:
        return 1 / (1 + str(kernel.program).count("+"))


def called(name: str) -> Lowered:
    return cast(Lowered, SimpleNamespace(program=name))


def test_launches_on_bursts_take_what_they_would_take_without_the_kernel_for_others() -> None:
    kernels, bursts = Taken([called("few"), called("many")]), {"N": 256}
    kernels.add_off_bursts([(called("many+"), {"M": 4096, "N": 4096}, {})], bursts)
    kernels.add_copying(called("many++"), {"M": 4096, "N": 4096}, by={"N": 256})
    kernels.first[0] = ((("M", 1000, MOST_SIZE, 1), ("N", 1, MOST_SIZE, 256)), 3)
    picked = Picked.of({"M": (16, 256), "N": (4096,)}, (0, 1), kernels.first)
    taken = {at: picked.at({"M": at[0], "N": at[1]}) for at in ((16, 512), (512, 512), (512, 513), (4096, 512), (4096, 513))}
    assert taken == {(16, 512): 0, (512, 512): 1, (512, 513): 2, (4096, 512): 3, (4096, 513): 2}
    assert "N a multiple of 256, sizes near M=256, N=4096" in picked.shown(1)


def test_launches_on_and_off_bursts_may_take_the_same_kernel() -> None:
    """What launches on bursts take is weighed against what they take so far, not against the kernel for others."""
    kernels, bursts = Taken([called("plain")]), {"N": 256}
    kernels.add_off_bursts([(called("copying+"), {"M": 4096, "N": 4096}, {})], bursts)
    assert kernels.add_copying(called("copying+"), {"M": 4096, "N": 4096}, by=bursts)
    picked = Picked.of({"M": (4096,), "N": (4096,)}, (0,), kernels.first)
    assert [k.program for k in kernels.found] == ["plain", "copying+"]
    assert [picked.at({"M": 4096, "N": n}) for n in (4096, 4095)] == [1, 1]


@pytest.mark.slow
def test_where_starts_cut_no_rows_there_is_no_such_kernel() -> None:
    lowered = text().lowered
    paths = {name: replace(path, request=0) for name, path in lowered.chip.paths.items()}
    assert on_bursts([(replace(lowered, chip=replace(lowered.chip, paths=paths)), {})], NAMES) == {}


def test_rows_begin_off_a_burst_by_an_eighth_of_one_at_all_sizes_that_are_asked() -> None:
    bursts = {"N": 256, "K": 512}
    assert off_bursts({"M": 4096, "N": 4096, "K": 4096}, bursts) == {"M": 4096, "N": 4096 - 32, "K": 4096 - 64}
    assert steps(bursts) == {"N": 32, "K": 64}
    assert off_bursts({"N": 1, "K": 64}, bursts) == {"N": 1, "K": 1}


# ---- from which sizes on ----


def test_the_least_sizes_are_found_between_halves() -> None:
    asked: list[dict[str, int]] = []

    def faster(at: Mapping[str, int]) -> bool:
        asked.append(dict(at))
        return at["M"] >= 300

    found = least_sizes(faster, {"M": 4096}, {"M": 1})
    assert 300 <= found["M"] <= 300 * 9 / 8 and len(asked) <= 8


def test_sizes_become_smaller_together_and_stay_multiples() -> None:
    found = least_sizes(lambda at: at["M"] * at["N"] > 2**16, {"M": 4096, "N": 1024}, {"M": 128, "N": 64})
    assert found["M"] * found["N"] > 2**16 and (found["M"] % 128, found["N"] % 64) == (0, 0)


def test_where_it_is_always_faster_all_sizes_take_it() -> None:
    assert least_sizes(lambda at: True, {"M": 4096, "N": 3}, {"M": 1, "N": 1}) == {"M": 1, "N": 1}


def test_a_choice_reaches_up_to_sizes_that_are_nearer_to_a_larger_one() -> None:
    points = {"M": (16, 1024), "N": (64,)}
    assert most_sizes(points, {"M": 16, "N": 64}) == {"M": 128, "N": MOST_SIZE}
    assert most_sizes(points, {"M": 1024, "N": 64}) == {"M": MOST_SIZE, "N": MOST_SIZE}
