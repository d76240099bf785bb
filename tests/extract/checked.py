"""Compiles a kernel by one extractor, runs it in the simulator, and compares with the reference meaning."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tests.extract.kernels import CHIP
from tile_eg.chips import Chip
from tile_eg.cost_models import search_model
from tile_eg.egraph import Graph, Node, saturate
from tile_eg.extract.base import Extractor
from tile_eg.extract.build_schedule import build_schedule
from tile_eg.extract.grid import with_grid
from tile_eg.extract.pricing import Pricer
from tile_eg.frontend.ssa import to_values
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.kernel import Kernel, Tensor
from tile_eg.ops.types import E8M0, I8
from tile_eg.search.compiler import Run, meaning, plan_schedule
from tile_eg.transforms.epilogue_panels import epilogue_in_panels
from tile_eg.transforms.tile_each import tile_each


def arrays_for(k: Kernel) -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    numbers = {name: np.float32(0.75) for name in k.numbers}
    return {t.name: _drawn(random, t) for t in k.tensors if not t.output} | numbers


def _drawn(random: np.random.Generator, t: Tensor) -> np.ndarray:
    if t.dtype is I8:
        return random.integers(-128, 128, t.shape, np.int8)
    if t.dtype is E8M0:
        return np.exp2(random.integers(-4, 5, t.shape).astype(np.float32)).astype(numpy_dtype(E8M0))
    return random.uniform(-1, 1, t.shape).astype(numpy_dtype(t.dtype))


@lru_cache(maxsize=2)
def _graph(k: Kernel, chip: Chip, panels: int, each: bool) -> Graph:
    """Of a kernel that many extractors are tried on, one behind the other; all of them only read it."""
    values = to_values(k) if panels == 1 else epilogue_in_panels(to_values(k), panels)
    values = tile_each(values) if each and values else values
    assert values is not None
    return saturate(values, chip)


@lru_cache(maxsize=2)
def _wanted(k: Kernel) -> dict[str, np.ndarray]:
    return meaning(k, arrays_for(k))


def check_numbers(
    k: Kernel, extractor: Extractor, order: tuple[int, int, int] | None = None, chip: Chip = CHIP, panels: int = 1,
    steady: bool = False, grouped: bool = False, each: bool = False,
) -> None:  # fmt: skip
    """Fails where the extractor finds nothing, the simulator minds something, or a number is off by more than 0.4 %.

    `order` is that of a persistent kernel: its blocks, the width of its bands and the dimension that they cut. What follows
    its products is done in so many `panels`. `steady`: skewed loops are ordered for trips that run while they are full.
    `grouped`: what V does is ordered in groups that do not need each other. `each`: each vector core has a tile of its own.
    """
    graph = _graph(k, chip, panels, each)
    pricer = Pricer(graph, chip, search_model("analytic", chip))
    found = extractor.extract(graph, chip, pricer, 1)
    assert found.schedules, [str(r) for _, r in found.refused]
    arrays, best = arrays_for(k), found.best
    if steady or grouped:
        prices = [pricer.price(n) for n in graph.nodes]
        best = build_schedule(graph, best.nodes, prices, chip, steady=steady, grouped=grouped)
    best = with_grid(best, Node(0, "Persistent", -1, (), order, 0, ()), chip) if order else best
    planned = plan_schedule(best, chip)
    for seed in (None, 1) if order else (None,):  # a seed: pipes in an unfavourable order
        run = planned.run(arrays, strict=False, order=seed).as_meant(k, arrays)
        assert not run.findings, [str(f) for f in run.findings]
        _compare(run, _wanted(k))


def _compare(run: Run, wanted: dict[str, np.ndarray]) -> None:
    """What is small beside the sums that it is the rest of is as exact as these: that depends on the processor's own sums."""
    for name, want in wanted.items():
        want = want.astype(np.float32)
        atol = max(4e-3, 1e-5 * float(np.abs(want).max(initial=0.0, where=np.isfinite(want))))
        np.testing.assert_allclose(run[name].astype(np.float32), want, rtol=4e-3, atol=atol)
