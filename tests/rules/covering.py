"""The tests of each rule's law, as pytest names them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.rules.instances import laws_of_values
from tests.rules.test_facts import KERNELS, PLACED, world_of
from tests.rules.test_facts import QUICK as QUICK_FACTS
from tests.rules.test_implements import GRIDS, USES
from tile_eg.rules import registry

LAWS = "tests/rules/test_laws.py"
INSTRUCTIONS = "tests/rules/test_implements.py"
PRODUCTS = "tests/rules/test_tiling.py"
PARTS = "tests/search/test_split_k.py"
STRIPS = "tests/search/test_packed_operand.py"
EPILOGUES = "tests/search/test_epilogue_panels.py"
STORED = "tests/rules/test_stored_parts.py"
WHOLE = "tests/rules/test_whole_rows.py"
ELSEWHERE = {
    "k-tiling": (f"{PRODUCTS}::test_every_form_of_a_loop_of_products_has_the_same_sums",),
    "whole-panels": (f"{PRODUCTS}::test_every_form_of_a_loop_of_products_has_the_same_sums",),
    **dict.fromkeys(
        ("product-in-two", "product-in-two-tb"),
        (
            f"{PRODUCTS}::test_a_product_in_two_halves_has_the_same_sums",
            f"{PRODUCTS}::test_a_product_in_two_halves_is_within_its_bound",
        ),
    ),
    "split-depth": (f"{PARTS}::test_the_result_is_right_and_the_same_in_every_order",),
    "split-folds": (f"{PARTS}::test_sums_and_extremes_of_what_vector_cores_compute_go_to_all_cores",),
    "split-depth-added": (f"{PARTS}::test_they_are_right_in_any_order",),
    "operand-in-strips": (f"{STRIPS}::test_numbers_are_those_of_the_source",),
    "gm-l1-strips": (f"{STRIPS}::test_numbers_are_those_of_the_source",),
    **dict.fromkeys(("stored-beside", "stored-alone"), (f"{STORED}::test_the_numbers_are_those_of_the_whole",)),
    **dict.fromkeys(("whole-rows", "whole-tiles", "rows-of-put"), (f"{WHOLE}::test_all_terms_agree",)),
    **dict.fromkeys(("workspace-panel", "workspace-ub-panel"), (f"{EPILOGUES}::test_every_choice_computes_them",)),
}
"""Rules that rewrite loops, or long products, and those of two phases."""


def named_tests(rule: str) -> list[str]:
    """The tests of a rule's law; of a fact's, those of the first kernel in which it speaks. None where there is none."""
    return [*_of_values(rule), *_of_instructions(rule), *ELSEWHERE.get(rule, ()), *_of_facts(rule)]


def _of_values(rule: str) -> Iterator[str]:
    if rule in laws_of_values():
        exact = registry()[rule].law == "equal"
        yield f"{LAWS}::test_both_sides_are_{'equal_bit_for_bit' if exact else 'within_a_few_roundings'}[{rule}]"


def _of_instructions(rule: str) -> Iterator[str]:
    for use in USES:
        if use[0] == rule:
            yield f"{INSTRUCTIONS}::test_what_a_rule_makes_computes_what_it_stands_for[{'-'.join(use)}]"
    if rule in GRIDS:
        yield f"{INSTRUCTIONS}::test_every_order_of_tiles_computes_all_of_them[{rule}]"
    if rule in PLACED:
        yield f"{INSTRUCTIONS}::test_loops_are_skewed_just_where_the_cores_meet"


def _of_facts(rule: str) -> Iterator[str]:
    if registry()[rule].law != "fact" or rule in PLACED:
        return
    for name in dict.fromkeys((*QUICK_FACTS, *KERNELS)):
        if rule in world_of(name).matched():
            yield f"tests/rules/test_facts.py::test_all_facts_about_a_kernel_are_so[{name}]"
            return
