"""Bounds of products in any element type: those of `benchmarks.targets.bounds`, which are of halves, in general."""

from __future__ import annotations

from itertools import product as pairs

from benchmarks.targets.bounds import FLOAT, HALF, SIDES, Bound, hbm, moved
from tile_eg.chips import Chip
from tile_eg.ops.types import Level

BYTES = {"f16": HALF, "bf16": HALF, "f32": FLOAT, "i8": 1, "mxf8e4m3": 1, "mxf4e2m1": 0.5}


def product(
    chip: Chip, m: int, n: int, k: int, *, count: int = 1, dtype: str = "f16", out: int = HALF,
    read: float = 0, written: float = 0, vectors: bool = False,
) -> Bound:  # fmt: skip
    """`count` products of m x k by k x n elements of `dtype`, with results of `out` bytes each; `read` and `written` are bytes
    besides.

    `vectors`: vector cores go on with the sums of four bytes, which cross GM where a chip has no other way.
    """
    size = BYTES[dtype]
    operands, result = count * size * (m * k + k * n), count * out * m * n
    loads = _loads(chip, m, n, k, size)
    times = {
        "cube": cube(chip, m, n, k, dtype) * count, "HBM": hbm(chip, operands + read, result + written),
        "L2": loads[0] * count, "MTE2": loads[1] * count,
    }  # fmt: skip
    if not vectors:
        return Bound(times | {"FIX": moved(chip, "l0c_to_gm", result)})
    sums = count * FLOAT * m * n
    across = {} if "l0c_to_ub" in chip.paths else {"FIX": moved(chip, "l0c_to_gm", sums)}
    loaded = moved(chip, "gm_to_ub", read + (sums if across else 0))
    return Bound(times | across | {"MTE2": max(times["MTE2"], loaded), "MTE3": moved(chip, "ub_to_gm", result + written)})


def cube(chip: Chip, m: int, n: int, k: int, dtype: str) -> float:
    """Microseconds of a product on all cube cores, each dimension padded to its fractal of 16 x 16 elements x 32 bytes."""
    depth = int(32 / BYTES[dtype])
    each = chip.cube.fractal * (16 * 16 * depth) / chip.cube.macs[dtype]
    return chip.microseconds(-(-m // 16) * -(-n // 16) * -(-k // depth) * each / chip.cube_cores)


def _loads(chip: Chip, m: int, n: int, k: int, size: float) -> tuple[float, float]:
    """Microseconds of L2 and of all MTE2 to load the panels of every tile of the best tiles that L0C holds."""
    path = chip.path("gm_to_l1")
    tiles = [(tm, tn) for tm, tn in pairs(SIDES, SIDES) if tm * tn * FLOAT <= chip.level_bytes(Level.L0C)]
    least = min(size * k * (-(-n // tn) * m + -(-m // tm) * n) for tm, tn in tiles)
    return chip.microseconds(least / path.shared), chip.microseconds(least / path.peak / chip.cube_cores)


__all__ = ["BYTES", "cube", "product"]
