"""The rows of the table: a kernel at a size, our own schedule of its natural source, the expert's, and the machine's bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from benchmarks.experts.attention import attention
from benchmarks.experts.gemm import expert, gemm
from benchmarks.targets import bounds
from benchmarks.targets.bounds import Bound
from tile_eg.chips import Chip
from tile_eg.compiler import Planned, lower, plan
from tile_eg.frontend.text import load_text
from tile_eg.ir.program import Program

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Row:
    """`example` at `sizes` on a chip. `expert` builds the expert's program; ours may take `slack` times the bound."""

    family: str
    size: str
    example: str
    sizes: Mapping[str, int]
    chip: Chip
    bound: Bound
    expert: Callable[[], Program] | None = None
    slack: float | None = None

    @cached_property
    def ours(self) -> Planned:
        text = (EXAMPLES / f"{self.example}.tile").read_text("utf-8")
        return lower(load_text(text, f"{self.example}.tile").instantiate(self.sizes), self.chip.name)

    @cached_property
    def best(self) -> Planned | None:
        """The expert's."""
        return plan(self.expert(), self.chip.name) if self.expert else None

    def missed(self) -> list[str]:
        """The targets that ours does not reach, in words."""
        ours, out = self.ours.timeline.microseconds, []
        if self.best and ours > self.best.timeline.microseconds:
            out.append("slower than the expert")
        if self.slack and ours > self.slack * self.bound.microseconds:
            out.append(f"more than {self.slack - 1:.0%} from the bound")
        return out


GEMM = [
    (512, 512, 512), (1024, 1024, 1024), (4096, 4096, 4096), (8192, 8192, 8192), (16, 5120, 5120), (1024, 576, 6144),
    (20, 6144, 16384), (2048, 4096, 4000),
]  # fmt: skip
LENGTHS, WIDTHS, HEADS = (1024, 4096, 16384, 32768), (64, 128), 16


def _expert_gemm(m: int, n: int, k: int, cores: int) -> Program:
    return gemm(expert(m, n, k, cores))


def _gemm(chip: Chip) -> Iterator[Row]:
    for m, n, k in GEMM:
        yield Row(
            "gemm", f"{m} x {n} x {k}", "gemm", {"M": m, "N": n, "K": k}, chip, bounds.gemm(chip, m, n, k),
            partial(_expert_gemm, m, n, k, chip.cube_cores), 1.05 if m == 8192 else None,
        )  # fmt: skip


def _attention(chip: Chip) -> Iterator[Row]:
    for head in WIDTHS:
        for length in LENGTHS:
            sizes = {"B": 1, "H": HEADS, "S": length, "D": head, "BM": 128, "BN": 128}
            bound = bounds.attention(chip, HEADS, length, length, head)
            best = partial(attention, HEADS * length, length) if head == 128 else None
            yield Row("attention", f"S {length}, D {head}, {HEADS} heads", "flash_attention", sizes, chip, bound, best)


FAMILIES: dict[str, Callable[[Chip], Iterator[Row]]] = {"gemm": _gemm, "attention": _attention}
