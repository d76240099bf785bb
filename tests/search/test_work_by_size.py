"""What a compilation does depends on the kernel and hardly on its sizes: neither blocks nor trips are gone through one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tile_eg.emit.sync import planning
from tile_eg.extract.solver import Searches
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import lower
from tile_eg.timeline import engine
from tile_eg.timeline.cores import Pipe

EXAMPLES = Path(__file__).parents[2] / "examples"
COUNTED = {
    "flags found": (planning, "_found"), "solves": (Searches, "least"), "blocks timed": (engine, "run_block"),
    "instructions timed": (Pipe, "run"),
}  # fmt: skip


@cache
def work(example: str, **sizes: int) -> Counter[str]:
    """How often what takes the time is done when an example is compiled."""
    done: Counter[str] = Counter()

    def counting(name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            done[name] += 1
            return do(*arguments, **options)

        return counted

    file = EXAMPLES / f"{example}.tile"
    with pytest.MonkeyPatch.context() as patch:
        for name, (where, what) in COUNTED.items():
            patch.setattr(where, what, counting(name, getattr(where, what)))
        lower(load_text(file.read_text(encoding="utf-8"), str(file)).instantiate(sizes))
    return done


LARGE = {
    "gemm of 4096 cubed": ("gemm", {"M": 4096, "N": 4096, "K": 4096}), "gemm of 8192 cubed": ("gemm", dict.fromkeys("MNK", 8192)),
    "attention of 4096 rows": ("flash_attention", {"S": 4096}), "attention of 8192 rows": ("flash_attention", {"S": 8192}),
}  # fmt: skip
MOST = {"flags found": 42, "solves": 28, "blocks timed": 80}
"""The tiles that fill no turn of the cores are two kernels more, their parts and what adds these up, and larger tiles one more:
each is searched by itself."""


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("case", LARGE.values(), ids=LARGE)
def test_large_sizes_ask_for_a_few_plans_and_timelines(case: tuple[str, dict[str, int]]) -> None:
    """A block for each tile, a few persistent grids and what is made of these: not one more for more tiles or trips."""
    example, sizes = case
    done = work(example, **sizes)
    assert {name: done[name] for name, most in MOST.items() if done[name] > most} == {}


@pytest.mark.slow
def test_timelines_do_not_grow_with_tiles_and_trips() -> None:
    """Of a product eight times as large, and of attention with four times as much to do."""
    for example, large, small in (("gemm", dict.fromkeys("MNK", 8192), dict.fromkeys("MNK", 4096)),
                                  ("flash_attention", {"S": 8192}, {"S": 4096})):  # fmt: skip
        assert work(example, **large)["instructions timed"] <= 2 * work(example, **small)["instructions timed"]
