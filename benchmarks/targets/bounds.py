"""What no schedule can be faster than on a chip: the largest of the times of its cube cores, of HBM, of L2, and of the moves.

Only what cannot be avoided is counted, at the rates of the chip's tables: what is read once in HBM, and what is written as far as
L2 has no room for it, each fractal once, and what has to pass between GM and the cores when all of them share it evenly. The
launch is not part of a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tile_eg.chips import Chip
from tile_eg.ops.types import F16, F32, Level
from tile_eg.timeline.reuse import hbm_seconds

HALF, FLOAT = F16.bytes, F32.bytes
SIDES = range(16, 513, 16)


@dataclass(frozen=True)
class Bound:
    """Microseconds by what takes them."""

    times: dict[str, float]

    @property
    def microseconds(self) -> float:
        return max(self.times.values())

    @property
    def by(self) -> str:
        return max(self.times, key=lambda name: self.times[name])


def cube(chip: Chip, m: int, n: int, k: int, count: int = 1) -> float:
    """Microseconds of `count` products of halves, each dimension padded to its fractal of 16."""
    fractals = -(-m // 16) * -(-n // 16) * -(-k // 16)
    return chip.microseconds(count * fractals * chip.cube.fractal / chip.cube_cores)


def hbm(chip: Chip, read: float, written: float) -> float:
    """Microseconds for bytes that each cross once; what is written stays in L2 as far as it has room."""
    return hbm_seconds(chip, read, max(0.0, written - chip.l2_written)) * 1e6


def moved(chip: Chip, path: str, size: float) -> float:
    """Microseconds to move `size` bytes along a path of all cores that have it, at its peak and within what they share."""
    cores = chip.vector_cores if "ub" in path else chip.cube_cores
    return chip.microseconds(size / (chip.path(path).rate(cores) * cores))


def gemm(chip: Chip, m: int, n: int, k: int) -> Bound:
    """C = A @ B in halves, row-major.

    A tile of C stays in L0C while its panels pass, so each load serves at most one side of a tile that L0C holds: the best such
    tile counts. Panels are runs of bytes: operands may be copied into the order of L1 first. What the copy costs is not counted.
    """
    tiles = [(tm, tn) for tm, tn in product(SIDES, SIDES) if tm * tn * FLOAT <= chip.level_bytes(Level.L0C)]
    loads = min((_tile_loads(chip, m, n, k, *tile) for tile in tiles), key=max)
    times = {"cube": cube(chip, m, n, k), "HBM": hbm(chip, HALF * (m * k + k * n), HALF * m * n)}
    return Bound(times | dict(zip(("L2", "MTE2"), loads, strict=True)) | {"FIX": moved(chip, "l0c_to_gm", HALF * m * n)})


def _tile_loads(chip: Chip, m: int, n: int, k: int, tm: int, tn: int) -> tuple[float, float]:
    """Microseconds of L2 and of all MTE2 to load the panels of every tile."""
    path = chip.path("gm_to_l1")
    size = HALF * k * (-(-n // tn) * m + -(-m // tm) * n)
    return chip.microseconds(size / path.shared), chip.microseconds(size / path.peak / chip.cube_cores)


def epilogue(chip: Chip, m: int, n: int, k: int, read: int, written: int) -> Bound:
    """A product that vector cores go on with: it crosses GM as floats, meets `read` bytes, and becomes `written` bytes."""
    times, c = gemm(chip, m, n, k).times, FLOAT * m * n
    return Bound(times | {
        "HBM": hbm(chip, HALF * (m * k + k * n) + read, written), "FIX": moved(chip, "l0c_to_gm", c),
        "MTE2": max(times["MTE2"], moved(chip, "gm_to_ub", c + read)), "MTE3": moved(chip, "ub_to_gm", written),
    })  # fmt: skip


def attention(chip: Chip, heads: int, queries: int, keys: int, head: int) -> Bound:
    """softmax(Q @ K.T) @ V in halves; scores are floats that cross to the vector cores through GM, and come back as halves."""
    scores, tensor = heads * queries * keys, HALF * heads * head
    return Bound({
        "cube": cube(chip, queries, keys, head, heads) + cube(chip, queries, head, keys, heads),
        "HBM": hbm(chip, tensor * (queries + 2 * keys), tensor * queries),
        "FIX": moved(chip, "l0c_to_gm", FLOAT * scores),
        "MTE2": max(moved(chip, "gm_to_ub", FLOAT * scores), moved(chip, "gm_to_l1_nd2nz", HALF * scores)),
        "MTE3": moved(chip, "ub_to_gm", HALF * scores),
        "V": vector(chip, scores, "max", "add", "exp", "add", "cast"),
    })  # fmt: skip


def vector(chip: Chip, elements: float, *operations: str) -> float:
    """Microseconds of all vector cores for these operations on each of so many floats, without start-up or bank conflicts."""
    cycles = sum(chip.vector.ops[name, FLOAT].free for name in operations)
    return chip.microseconds(elements * cycles / chip.vector.lanes(F32) / chip.vector_cores)


def streaming(chip: Chip, read: float, written: float) -> Bound:
    """A kernel of vector cores that reads and writes so many bytes."""
    return Bound({
        "HBM": hbm(chip, read, written), "MTE2": moved(chip, "gm_to_ub", read), "MTE3": moved(chip, "ub_to_gm", written)
    })  # fmt: skip
