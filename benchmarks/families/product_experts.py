"""Mixtures of experts, and embeddings: rows gathered, multiplied in groups, scattered."""

from __future__ import annotations

import numpy as np

from benchmarks.families.example import Arrays, Example, Sizes
from benchmarks.families.product_bounds import product
from benchmarks.families.product_epilogues import silu
from benchmarks.families.product_gemms import tiles_of
from benchmarks.targets.bounds import FLOAT, HALF, Bound, streaming
from tile_eg.chips import Chip

V3 = {"M": 4096, "N": 7168, "R": 32768}


def _rows(chip: Chip, s: Sizes) -> Bound:
    return streaming(chip, HALF * s["R"] * s["N"], HALF * s["R"] * s["N"])


def _permuted(chip: Chip, s: Sizes) -> Bound:
    """Each token once in HBM, as often as it is wanted to the cores."""
    return Bound(_rows(chip, s).times | {"HBM": streaming(chip, HALF * s["M"] * s["N"], HALF * s["R"] * s["N"]).times["HBM"]})


def _tokens(of: str, count: str = "R"):  # noqa: ANN202
    return lambda s, rng: {"token": rng.integers(0, s[of], s[count]).astype(np.int32)}


def _places(s: Sizes, rng: np.random.Generator) -> Arrays:
    return {"place": rng.integers(0, s["R"], (s["K"], s["M"])).astype(np.int32)}


def _scattered(x: Arrays, rows: int) -> Arrays:
    g = np.zeros((rows, x["X"].shape[1]))
    np.add.at(g, x["token"], x["X"])
    return {"G": g}


def _tiles(s: Sizes, rng: np.random.Generator) -> Arrays:
    return dict(zip(("expert", "row", "rows"), tiles_of(s["E"], s["M"], s["TILES"], s.get("BM", 64), rng), strict=True))


def _by_expert(x: Arrays) -> Arrays:
    tiles = zip(x["expert"], x["row"], x["rows"], strict=True)
    parts = ((x["X"][r : r + n], x["G"][e], x["U"][e]) for e, r, n in tiles)
    return {"Y": np.concatenate([silu(a @ g.T) * (a @ u.T) for a, g, u in parts])}


def _experts(chip: Chip, s: Sizes) -> Bound:
    rows = -(-s["M"] // s["E"])
    both = product(chip, rows, 2 * s["N"], s["K"], count=s["E"], vectors=True)
    kept = product(chip, rows, s["N"], s["K"], count=s["E"], vectors=True).times["MTE3"]
    return Bound(both.times | {"MTE3": kept})


MOE = [
    Example(
        "moe/permute",
        lambda x: {"Y": x["X"][x["token"]]},
        [{"M": 16, "N": 128, "R": 64}, {"M": 5, "N": 90, "R": 50}, {"M": 1, "N": 1, "R": 1}],
        {"DeepSeek V3, 4096 tokens, 8 of 256": {**V3, "BM": 8}},
        _permuted,
        "vector cores load row by row and store tiles",
        1.5,
        _tokens("M"),
    ),
    Example(
        "moe/experts",
        _by_expert,
        [{"E": 3, "M": 128, "N": 128, "K": 128, "TILES": 2}, {"E": 4, "M": 130, "N": 90, "K": 70, "TILES": 5}],
        {"DeepSeek V3, 4096 tokens, 8 of 256": {"E": 256, "M": 32768, "N": 2048, "K": 7168, "TILES": 256, "BM": 128, "BN": 128}},
        _experts,
        "each tile loads, multiplies and stores as many rows as its expert has there",
        1.25,
        _tiles,
    ),
    Example(
        "moe/unpermute",
        lambda x: {"Y": (x["X"][x["place"]] * x["w"][:, :, None]).sum(axis=0)},
        [{"M": 32, "N": 128, "R": 64, "K": 4}, {"M": 20, "N": 90, "R": 50, "K": 2}],
        {"DeepSeek V3, 4096 tokens, 8 of 256": {**V3, "K": 8, "BM": 4}},
        lambda chip, s: streaming(chip, HALF * s["K"] * s["M"] * s["N"], HALF * s["M"] * s["N"]),
        "each core keeps the sums of its tokens in UB while their rows come one by one",
        1.5,
        _places,
    ),
    Example(
        "moe/embedding",
        lambda x: {"Y": x["W"][x["token"]]},
        [{"R": 32, "N": 128, "V": 100}, {"R": 20, "N": 90, "V": 7}],
        {
            "Llama 8B, 4096 tokens": {"R": 4096, "N": 4096, "V": 128256},
            "Llama 70B, 16384 tokens": {"R": 16384, "N": 8192, "V": 128256, "BM": 8},
        },
        _rows,
        "vector cores load row by row and store tiles",
        1.5,
        _tokens("V"),
    ),
    Example(
        "moe/scatter_add",
        lambda x: _scattered(x, 100),
        [{"R": 32, "N": 128, "V": 100}, {"R": 20, "N": 90, "V": 100}],
        {"Llama 8B, 4096 tokens": {"R": 4096, "N": 4096, "V": 128256, "BM": 8}},
        lambda chip, s: streaming(chip, FLOAT * s["R"] * s["N"], FLOAT * s["R"] * s["N"]),
        "vector cores load tiles, and add them row by row in GM",
        1.5,
        _tokens("V"),
    ),
]
