"""A random choice and the worst one of each kernel of the families compute what it means, and the simulator minds nothing.

The search's own choice is tried at all sizes beside this file; this is at the second of them, at which tiles are cut off.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.families import EXAMPLES
from benchmarks.families.example import Example
from tile_eg.chips import Chip, load_chip
from tile_eg.cost_models import search_model
from tile_eg.egraph import saturate
from tile_eg.errors import PlanError
from tile_eg.extract.base import Extractor
from tile_eg.extract.chaos import Random, Worst
from tile_eg.extract.pricing import Pricer
from tile_eg.frontend.ssa import to_values
from tile_eg.inputs import drawn_sets
from tile_eg.ir.kernel import Kernel
from tile_eg.report.compare import compare
from tile_eg.search.compiler import Planned, plan_schedule

IN_THE_SUITE = ("norms/group_norm", "rope/rope_pairs", "layout/stencil3x3", "moe/unpermute")
"""The others are run in the long suite."""
KERNELS = [pytest.param(e, id=e.file, marks=[] if e.file in IN_THE_SUITE else pytest.mark.long) for e in EXAMPLES]


SIDE = 64
"""Tiles of products have at most so many rows and columns, so that what is far from the best has room, too."""
SMALLER = {
    "attention/backward_dkv": {"B": 1, "H": 1, "S": 72, "D": 64, "BM": 32, "BN": 32},
    "scans/ssd": {"L": 100, "H": 1, "P": 32, "N": 32},
}
"""As the sizes of these kernels leave a choice that is far from the best no room, or not flags enough."""
EXTRACTORS = [[Random(seed) for seed in range(4)], [Worst()]]


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("extractors", EXTRACTORS, ids=["random", "worst"])
@pytest.mark.parametrize("example", KERNELS)
def test_any_choice_computes_what_the_kernel_means(example: Example, extractors: Sequence[Extractor]) -> None:
    sizes = SMALLER.get(example.file) or {**small_tiles(example), **example.tried[min(1, len(example.tried) - 1)]}
    kernel = example.template.instantiate(sizes)
    (drawn,) = drawn_sets(kernel, ("uniform",), seed=2, given=example.drawn(sizes, seed=2))
    run = chosen(kernel, load_chip(example.chip), extractors).run(drawn.arrays, strict=False).as_meant(kernel, drawn.arrays)
    assert [str(f) for f in run.findings] == []
    assert [c for c in compare(run.outputs, drawn.meant or {}) if not c.good] == []


def small_tiles(example: Example) -> dict[str, int]:
    return {name: SIDE for name in ("BM", "BN") if (example.template.sizes.get(name) or 0) > SIDE}


def chosen(kernel: Kernel, chip: Chip, extractors: Sequence[Extractor]) -> Planned:
    """The first schedule that fits and has flags enough."""
    graph, why = saturate(to_values(kernel), chip), []
    for extractor in extractors:
        found = extractor.extract(graph, chip, Pricer(graph, chip, search_model("analytic", chip)), 2)
        why += [str(reason) for _, reason in found.refused]
        for schedule in found.schedules:
            try:
                return plan_schedule(schedule, chip)
            except PlanError as error:
                why.append(str(error))
    raise AssertionError(why)
