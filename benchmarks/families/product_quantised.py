"""Products of bytes and of numbers of four bits, and what makes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.families.example import Arrays, Example, Sizes
from benchmarks.families.product_bounds import product
from benchmarks.families.product_epilogues import MEET
from benchmarks.families.product_gemms import ROUND, SQUARE
from benchmarks.targets.bounds import FLOAT, HALF, Bound, hbm, moved, streaming
from tile_eg.chips import Chip

UNPACK = (
    "nine vector instructions for two numbers, the trip of their bytes through the workspace, and a launch of 7 us; more rows "
    "for each unpacked tile hide it"
)
QUANTISE = (
    "a dozen instructions on one tile of rows wait for one another, four of them casts between f32, 16 bits, halves and bytes: "
    "V is busy for 74 % and MTE2 for 87 % of the larger one; the launch is 9 us"
)
SCALES = (
    "a load for the scales of eight trips, three buffers of both operands in L1; persistent cores take a tile after the other"
)
ROWS = (
    "a depth of 4096 on the 950: 256 rows of scales take 632 cycles however short they are, and come for four of eight trips at "
    "a time, so that MTE2 takes a tenth longer than the cube; one load for all eight would mend that"
)
CUBED = {"M": 8192, "N": 8192, "K": 8192}
UP = {"M": 4096, "N": 28672, "K": 4096}
SMALL = [{"M": 128, "N": 256, "K": 128}, {"M": 100, "N": 90, "K": 96}]


def _signed(w: np.ndarray) -> np.ndarray:
    """The numbers of 4 bits in bytes, the lower ones first."""
    return (np.stack([w & 15, w >> 4], axis=-1).reshape(len(w), -1) ^ 8).astype(np.int64) - 8


def _blocks(x: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Small floats times the scales of their blocks of 32; bytes hold two of 4 bits, the lower one first."""
    if x.dtype == np.uint8:
        x = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])[np.stack([x & 7, x >> 4 & 7], axis=-1)] * np.where(
            np.stack([x & 8, x & 128], axis=-1) > 0, -1, 1
        )
    return x.reshape(len(scales), -1) * np.repeat(scales, 32, axis=1)


def _scaled(dtype: str) -> Callable[[Chip, Sizes], Bound]:
    def bound(chip: Chip, s: Sizes) -> Bound:
        m, n, k = s["M"], s["N"], s["K"]
        return product(chip, m, n, k, dtype=dtype, read=(m + n) * k / 32)

    return bound


def _bytes(chip: Chip, s: Sizes) -> Bound:
    return product(chip, s["M"], s["N"], s["K"], dtype="i8", vectors=True)


def _four_bits(chip: Chip, s: Sizes) -> Bound:
    """As a product of bytes, of which the weights come as half as many from HBM."""
    m, n, k = s["M"], s["N"], s["K"]
    times = product(chip, m, n, k, dtype="i8").times | {"HBM": hbm(chip, m * k + n * k / 2, HALF * m * n)}
    across = {} if "ub_to_l1" in chip.paths else {"MTE3": moved(chip, "ub_to_gm", n * k)}
    return Bound(times | across)


def _quantise(x: Arrays) -> Arrays:
    s = np.maximum(np.abs(x["X"]).max(axis=1), 1e-5) / 127
    return {"Q": np.clip(np.rint(x["X"] / s[:, None]), -128, 127), "s": s}


QUANTISED = [
    Example(
        "quantised/w4a8",
        lambda x: {"C": x["A"].astype(np.int64) @ _signed(x["W"]).T * 2.0**-10},
        [{"M": 64, "N": 64, "K": 256}, {"M": 20, "N": 50, "K": 128}],
        {"Llama 8B gate and up, 16 tokens": {"M": 16, "N": 28672, "K": 4096, "BM": 16, "BN": 128, "BK": 512}},
        _four_bits,
        "vector cores unpack two numbers a lane and interleave them, the cube cores multiply bytes",
        1.25,
        held=UNPACK,
    ),
    Example(
        "quantised/unpack4",
        lambda x: {"Y": _signed(x["W"])},
        [{"N": 64, "K": 512}, {"N": 50, "K": 1024}],
        {"Llama 8B gate and up": {"N": 28672, "K": 4096}},
        lambda chip, s: streaming(chip, s["N"] * s["K"] / 2, s["N"] * s["K"]),
        "vector cores unpack two numbers a lane and interleave them",
        1.1,
        held="ten vector instructions on a tile of 32 rows wait for one another, so that V is busy for 76 %; the launch is 9 of "
        "79 us; tiles of 512 rows take 74",
    ),
    Example(
        "quantised/w8a8",
        lambda x: {"C": (x["A"].astype(np.int64) @ x["W"].T.astype(np.int64)) * x["s"][:, None] * x["t"]},
        SMALL,
        {"Llama 8B gate and up, 4096 tokens": UP, "4096 cubed": SQUARE},
        _bytes,
        MEET,
        1.1,
        held=ROUND,
    ),
    Example(
        "quantised/mxfp8",
        lambda x: {"C": _blocks(x["A"], x["SA"]) @ _blocks(x["B"], x["SB"]).T},
        [{"M": 128, "N": 256, "K": 512}, {"M": 100, "N": 90, "K": 192}],
        {"8192 cubed": CUBED, "Llama 8B gate and up, 4096 tokens": UP},
        _scaled("mxf8e4m3"),
        SCALES,
        1.1,
        chip="950",
    ),
    Example(
        "quantised/mxfp4",
        lambda x: {"C": _blocks(x["A"], x["SA"]) @ _blocks(x["B"], x["SB"]).T},
        [{"M": 128, "N": 256, "K": 512}, {"M": 100, "N": 90, "K": 192}],
        {"8192 cubed": CUBED, "Llama 8B gate and up, 4096 tokens": UP},
        _scaled("mxf4e2m1"),
        SCALES,
        1.1,
        held=ROWS,
        chip="950",
    ),
    Example(
        "quantised/quantise",
        _quantise,
        [{"M": 32, "N": 256}, {"M": 20, "N": 90}, {"M": 1, "N": 1}],
        {
            "Llama 8B, 4096 tokens": {"M": 4096, "N": 4096, "BM": 16},
            "DeepSeek V3, 16384 tokens": {"M": 16384, "N": 7168, "BM": 8},
        },
        lambda chip, s: streaming(chip, HALF * s["M"] * s["N"], s["M"] * (s["N"] + FLOAT)),
        "one pass, rows stay in UB between maximum and rounding",
        1.1,
        held=QUANTISE,
    ),
    Example(
        "quantised/quantising",
        lambda x: {"Q": np.clip(np.rint(x["A"] @ x["W"] * x["scale"]), -128, 127)},
        SMALL,
        {"4096 cubed": SQUARE},
        lambda chip, s: product(chip, s["M"], s["N"], s["K"], out=1, vectors=True),
        MEET,
        1.1,
        held=ROUND,
    ),
]
