"""The kernels that people come for: what each becomes computes what NumPy computes, at whole tiles and at tails.

Two yardsticks: the kernel's own sequential meaning with its roundings, and plain NumPy in double precision, which knows nothing
of tiles.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from benchmarks.families import EXAMPLES
from benchmarks.families.__main__ import with_sections
from benchmarks.families.example import FOLDER, Example
from tile_eg.inputs import drawn_sets
from tile_eg.jit.any_size import AnySizeKernel
from tile_eg.report.compare import absolute_error, compare

ROUNDED_TWICE = 1e-7
"""The formulas in NumPy take constants as they are written; a kernel has them in f32."""
ALL = [pytest.param(e, id=e.file) for e in EXAMPLES]


def marks(example: Example, number: int) -> list[pytest.MarkDecorator]:
    """Every run tries the second of a kernel's sizes, which has tails; `make long` tries the others."""
    usual = min(1, len(example.tried) - 1)
    return [pytest.mark.long] if example.lengthy or number != usual else []


CASES = [
    pytest.param(e, sizes, id=f"{e.file}-{'x'.join(map(str, sizes.values()))}", marks=marks(e, n))
    for e in EXAMPLES
    for n, sizes in enumerate(e.tried)
]


def numbers(array: np.ndarray) -> np.ndarray:
    """In double precision; whole numbers as they are."""
    return array if array.dtype.kind in "iu" else array.astype(np.float64)


@pytest.mark.few(30)
@pytest.mark.slow
@pytest.mark.parametrize(("example", "sizes"), CASES)
def test_a_kernel_computes_what_was_meant(example: Example, sizes: Mapping[str, int]) -> None:
    kernel = example.template.instantiate(sizes)
    (drawn,) = drawn_sets(kernel, ("uniform",), seed=1, given=example.drawn(sizes, seed=1))
    got = example.compiled(sizes, example.chip).run(drawn.arrays).outputs
    meant = drawn.meant or {}
    assert [c for c in compare(got, meant) if not c.good] == []
    exact = example.meant({name: numbers(array) for name, array in drawn.arrays.items()})
    assert set(exact) == set(meant)
    for name, want in meant.items():
        far = absolute_error(numbers(got[name]), exact[name])
        assert (far <= 2 * want.allowed + ROUNDED_TWICE).all(), name


@pytest.mark.slow
@pytest.mark.parametrize("example", ALL)
def test_both_spellings_are_one_kernel(example: Example) -> None:
    template, python = example.template, factory(example)
    tried = {**template.sizes, **example.tried[0]}
    sizes = {n: v for n, v in tried.items() if v is not None and n in inspect.signature(python).parameters}
    made = python(**sizes)
    kernel = made.tree(example.tried[0]) if isinstance(made, AnySizeKernel) else made.kernel
    assert kernel == template.instantiate(example.tried[0])


def factory(example: Example) -> Any:
    name = example.path.stem
    spec = importlib.util.spec_from_file_location(f"example_{name}", example.path.with_suffix(".py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_every_file_in_a_folder_of_a_family_is_in_the_list() -> None:
    kept = {e.file for e in EXAMPLES}
    folders = {e.family for e in EXAMPLES if not e.of}
    found = {str(p.relative_to(FOLDER).with_suffix("")) for f in folders for p in (FOLDER / f).iterdir() if p.is_file()}
    assert found <= kept


def test_a_section_of_the_page_is_written_by_its_name() -> None:
    page = "<!-- a -->\nold\n<!-- end -->\n\n<!-- b -->\nkept\n<!-- end -->\n<!-- c -->\n<!-- end -->\n"
    want = page.replace("old", "new").replace("<!-- c -->\n", "<!-- c -->\none\n")
    assert with_sections(page, {"a": "new\n", "c": "one\n"}) == want
