"""The rows of the table: a kernel at a size, our own schedule of its natural source, the expert's, and the machine's bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from benchmarks.experts import rowwise
from benchmarks.experts.attention import attention
from benchmarks.experts.attention import expert as expert_attention
from benchmarks.experts.epilogue import gemm_exp, matmul_add
from benchmarks.experts.gemm import expert as expert_gemm
from benchmarks.experts.gemm import gemm
from benchmarks.experts.rowwise import Rowwise
from benchmarks.families import families
from benchmarks.families.example import Example
from benchmarks.targets import bounds
from benchmarks.targets.bounds import FLOAT, HALF, Bound
from benchmarks.targets.catlass import timed
from benchmarks.targets.literal import literal
from tile_eg.chips import DEFAULT_CHIP, Chip
from tile_eg.errors import TileError
from tile_eg.frontend.text import Template, load_text
from tile_eg.ir.open_kernel import AUTO
from tile_eg.ir.program import Program
from tile_eg.search.compiler import Planned, lower, plan

TILE_SIZES = ("BM", "BN", "BK")
EQUAL = 1.002  # two times that a table would print alike
EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Row:
    """`example` at `sizes` on a chip, in microseconds. `experts` build the programs of published schedules.

    Where there is such a target, ours may take `slack` times the bound, and is to be `faster` times as fast as the literal one.
    A target holds where the source reaches it with the sizes of its tiles as given or left open. The literal schedule is left out
    where nobody asks: it has no form for every kernel. `catlass` is CATLASS' example of the same kernel, if there is one.
    """

    family: str
    size: str
    example: str
    sizes: Mapping[str, int]
    chip: Chip
    bound: Bound
    experts: Mapping[str, Callable[[], Program]]
    slack: float | None = None
    faster: float | None = None
    leave_open: bool = True
    ask_literal: bool = True
    catlass: str = ""

    @cached_property
    def template(self) -> Template:
        return load_text((EXAMPLES / f"{self.example}.tile").read_text("utf-8"), f"{self.example}.tile")

    @property
    def ours(self) -> float:
        """What the compiler makes of the source with the tiles that a user would write."""
        return self._given.timeline.microseconds

    @property
    def open(self) -> float | None:
        """What it makes of the source that leaves the sizes of its tiles open; None where none fit, or nobody asks."""
        return self._opened.timeline.microseconds if self._opened else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the better of the two, with all that the chip's tables assume at the quick and at the slow end of its range."""
        found = [planned for planned in (self._given, self._opened) if planned]
        return min(found, key=lambda planned: planned.timeline.microseconds).cost.interval

    @cached_property
    def _given(self) -> Planned:
        return lower(self.template.instantiate(self.sizes), self.chip.name)

    @cached_property
    def _opened(self) -> Planned | None:
        if not self.leave_open:
            return None
        tiles = dict.fromkeys((t for t in TILE_SIZES if t in self.template.sizes), AUTO)
        try:
            return lower(self.template.instantiate({**self.sizes, **tiles}), self.chip.name)
        except TileError:
            return None

    @cached_property
    def literal(self) -> float | None:
        """The literal schedule of the source; None where nobody asks."""
        if not self.ask_literal:
            return None
        return literal(self.template.instantiate(self.sizes), self.chip.name).timeline.microseconds

    @cached_property
    def rivals(self) -> dict[str, float]:
        """Every expert's program; the fastest one is to be reached."""
        return {name: plan(build(), self.chip.name).timeline.microseconds for name, build in self.experts.items()}

    def of_catlass(self, checkout: Path | None) -> float | None:
        """CATLASS' text of the same kernel at the same size; None where there is none, nobody asks, or it is too large to run."""
        sizes = [self.sizes[name] for name in ("M", "N", "K")] if self.catlass and checkout else []
        found = timed(checkout, self.catlass, sizes, self.chip.name) if checkout and sizes else None
        return found.microseconds if found else None

    def missed(self) -> list[str]:
        """The targets that ours does not reach, in words."""
        ours, out = min(self.ours, self.open or self.ours), []
        if self.rivals and ours > EQUAL * min(self.rivals.values()):
            out.append("slower than the expert")
        if self.slack and ours > self.slack * self.bound.microseconds:
            out.append(f"more than {self.slack - 1:.0%} from the bound")
        if self.faster and self.literal and ours * self.faster > self.literal:
            out.append(f"not {self.faster:g} times as fast as literal")
        return out


GEMM = [
    (512, 512, 512), (1024, 1024, 1024), (4096, 4096, 4096), (8192, 8192, 8192), (16, 5120, 5120), (1024, 576, 6144),
    (20, 6144, 16384), (2048, 4096, 4000),
]  # fmt: skip
NEAR = 1.1
TILES = {"gelu_mul": (64, 64)}
LENGTHS, WIDTHS, HEADS = (1024, 4096, 16384, 32768), (64, 128), 16
MANY = 4096  # keys from which on a trip takes 256, as the expert's; of fewer 128, so that a tile has trips to run ahead


def _gemm(chip: Chip) -> Iterator[Row]:
    for m, n, k in GEMM:
        best = partial(gemm, expert_gemm(m, n, k, chip.cube_cores))
        yield Row(
            "gemm", f"{m} x {n} x {k}", "gemm", {"M": m, "N": n, "K": k}, chip, bounds.gemm(chip, m, n, k),
            {"128 x 256": best}, 1.05 if m == 8192 else None, catlass="00_basic_matmul",
        )  # fmt: skip


def _attention(chip: Chip) -> Iterator[Row]:
    for head in WIDTHS:
        for length in LENGTHS:
            sizes = {"B": 1, "H": HEADS, "S": length, "D": head, "BM": 128, "BN": 128 if length < MANY else 256}
            bound = bounds.attention(chip, HEADS, length, length, head)
            rival = expert_attention(length, length, head, HEADS, chip.cube_cores)
            best = {f"128 x {tile}": partial(attention, replace(rival, tile=tile)) for tile in (128, 256)}
            yield Row("attention", f"S {length}, D {head}, {HEADS} heads", "flash_attention", sizes, chip, bound, best, faster=2)


def _epilogue(chip: Chip) -> Iterator[Row]:
    m, n, k = 4096, 4096, 4096
    g = expert_gemm(m, n, k, chip.cube_cores)
    sizes = {"M": m, "N": n, "K": k, "BM": 128, "BN": 256, "BK": 64}
    bound, best = bounds.epilogue(chip, m, n, k, HALF * m * n, HALF * m * n), {"128 x 256": partial(matmul_add, g)}
    yield Row(
        "epilogue", f"matmul_add {m} x {n} x {k}", "matmul_add", sizes, chip, bound, best, NEAR,
        catlass="03_matmul_add",
    )  # fmt: skip
    m, n, k = 8192, 8192, 512
    g = replace(expert_gemm(m, n, k, chip.cube_cores), out="f32")
    sizes = {"M": m, "N": n, "K": k, "BM": 128, "BN": 256}
    bound, best = bounds.epilogue(chip, m, n, k, 0, 2 * FLOAT * m * n), {"128 x 256": partial(gemm_exp, g)}
    yield Row("epilogue", f"gemm_exp {m} x {n} x {k}", "gemm_exp", sizes, chip, bound, best, NEAR)


def _softmax(chip: Chip) -> Iterator[Row]:
    for m, n, rows in ((65536, 1024, 16), (32768, 2048, 8)):
        yield _rows(chip, "softmax", "softmax", {"M": m, "N": n, "BM": rows}, rowwise.softmax, FLOAT, FLOAT)
    sizes = {"M": 4096, "N": 32768, "BM": 32, "BN": 256}
    yield _rows(chip, "softmax", "online_softmax", sizes, rowwise.softmax, FLOAT, FLOAT)


def _norm(chip: Chip) -> Iterator[Row]:
    for example, expert in (("rms_norm", rowwise.rms_norm), ("layer_norm", rowwise.layer_norm)):
        for m, n, rows in ((65536, 1024, 16), (32768, 4096, 4)):
            yield _rows(chip, "norm", example, {"M": m, "N": n, "BM": rows}, expert, HALF, HALF)


def _gate(chip: Chip) -> Iterator[Row]:
    yield _rows(chip, "gate", "gelu_mul", {"M": 16384, "N": 4096}, rowwise.gelu_mul, 2 * FLOAT, FLOAT)


def _rows(
    chip: Chip, family: str, example: str, sizes: dict[str, int], expert: Callable[[Rowwise], Program], read: int, written: int
) -> Row:
    """A kernel of vector cores that reads and writes so many bytes for each of M x N elements."""
    m, n = sizes["M"], sizes["N"]
    bound = bounds.streaming(chip, read * m * n, written * m * n)
    shape = TILES.get(example, (16, 512))
    best = {f"{shape[0]} x {shape[1]}": partial(expert, Rowwise(m, n, *shape, chip.vector_cores))}
    return Row(family, f"{example} {m} x {n}", example, sizes, chip, bound, best, NEAR)


def _of_examples(examples: list[Example], chip: Chip) -> Iterator[Row]:
    """The sizes of real models of a family's kernels; one that another chip alone can run has none here."""
    for e in (e for e in examples if e.chip in (DEFAULT_CHIP, chip.name)):
        for label, sizes in e.real.items():
            yield Row(
                e.family, f"{e.path.stem}: {label}", e.file, sizes, chip, e.bound(chip, sizes), e.experts.get(label, {}), e.slack,
                leave_open=False, ask_literal=False,
            )  # fmt: skip


BESIDE_EXPERTS: dict[str, Callable[[Chip], Iterator[Row]]] = {
    "gemm": _gemm, "attention": _attention, "epilogue": _epilogue, "softmax": _softmax, "norm": _norm, "gate": _gate,
}  # fmt: skip
AT_REAL_SIZES: dict[str, Callable[[Chip], Iterator[Row]]] = {
    f"{name} of models": partial(_of_examples, examples) for name, examples in families().items()
}
FAMILIES = BESIDE_EXPERTS | AT_REAL_SIZES
