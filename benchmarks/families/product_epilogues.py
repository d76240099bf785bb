"""Products with an epilogue, and gated MLPs."""

from __future__ import annotations

import numpy as np

from benchmarks.families.example import Arrays, Example, Sizes
from benchmarks.families.product_bounds import product
from benchmarks.families.product_gemms import ROUND, SQUARE
from benchmarks.targets.bounds import FLOAT, HALF, Bound
from tile_eg.chips import Chip

SMALL = [{"M": 128, "N": 256, "K": 128}, {"M": 130, "N": 90, "K": 70}, {"M": 1, "N": 1, "K": 1}]
LATENT = {"DeepSeek V3 latent of keys, 4096 tokens": {"M": 4096, "N": 512, "K": 7168, "BM": 64}}
ROWS = (
    "the product alone takes 118 us on the 910B2: its 64 tiles are three turns of 24 cores, and loads bound it; the norm takes 7 "
    "more, behind a meeting of all cores; a norm that begins with the rows that are done would mend that"
)
BEHIND = "all cores make tiles of the product, meet, and each vector core has its share of the rows of the norm"
SHARES = (
    "loads of three weights are 87 % of it, and wait while a block's hidden layer is made and its shares are added; the loads of "
    "its next part meanwhile would mend it"
)
GATED = "both weights are copied into strips beside the first turns; the vector cores take both sums from the workspace"
GATED_HELD = (
    "the copies of two weights take some of the turns, in which short rows bound the loads, and with 16 tokens the launch is 5 % "
    "of it; weights that are packed before would mend the first"
)
MEET = "the cube cores run a tile ahead of the vector cores, which take its sums from the workspace"


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def _vectors(chip: Chip, s: Sizes) -> Bound:
    return product(chip, s["M"], s["N"], s["K"], vectors=True)


def _added(chip: Chip, s: Sizes) -> Bound:
    return product(chip, s["M"], s["N"], s["K"], read=HALF * s["M"] * s["N"], vectors=True)


def _exp(chip: Chip, s: Sizes) -> Bound:
    return product(chip, s["M"], s["N"], s["K"], out=FLOAT, written=FLOAT * s["M"] * s["N"], vectors=True)


def _norm(chip: Chip, s: Sizes) -> Bound:
    size = HALF * s["M"] * s["N"]
    return product(chip, s["M"], s["N"], s["K"], read=size, written=size, vectors=True)


def _gated(chip: Chip, s: Sizes) -> Bound:
    """Both products as one of twice the columns, of which half are stored."""
    both = product(chip, s["M"], 2 * s["N"], s["K"], vectors=True)
    kept = product(chip, s["M"], s["N"], s["K"], vectors=True).times["MTE3"]
    return Bound(both.times | {"MTE3": kept})


def _mlp(chip: Chip, s: Sizes) -> Bound:
    """Three products, their weights once; the hidden layer stays where it is."""
    m, n, h = s["M"], s["N"], s["H"]
    up, down = product(chip, m, 2 * h, n), product(chip, m, n, h)
    weights = product(chip, m, 3 * h, n, out=0, written=FLOAT * m * n).times["HBM"]
    return Bound({"cube": up.times["cube"] + down.times["cube"], "HBM": weights})


def _gelu(x: Arrays) -> Arrays:
    c = x["A"] @ x["W"] + x["bias"]
    return {"Y": 0.5 * c * (1 + np.tanh(0.7978845608028654 * (c + 0.044715 * c**3)))}


def _residual(x: Arrays) -> Arrays:
    h = x["A"] @ x["W"] + x["R"]
    return {"H": h, "Y": h / np.sqrt((h * h).mean(axis=1, keepdims=True) + 1e-5) * x["g"]}


def _exponential(x: Arrays) -> Arrays:
    c = x["A"] @ x["B"]
    return {"C": c, "D": np.exp(c)}


EPILOGUES = [
    Example(
        "matmul_add",
        lambda x: {"E": x["A"] @ x["B"] + x["D"]},
        SMALL,
        {"4096 cubed": {**SQUARE, "BN": 256}},
        _added,
        MEET,
        1.1,
        held=f"{ROUND}. On the 950 MTE2 is busy for 99 %",
        of="epilogues",
    ),
    Example(
        "gemm_exp",
        _exponential,
        [{"M": 64, "N": 128, "K": 64}, {"M": 70, "N": 90, "K": 40}],
        {"8192 x 8192 x 512": {"M": 8192, "N": 8192, "K": 512, "BM": 128, "BN": 256}},
        _exp,
        MEET,
        1.1,
        of="epilogues",
    ),
    Example(
        "epilogues/bias_gelu",
        _gelu,
        SMALL[:2],
        {"4096 x 16384 x 4096": {"M": 4096, "N": 16384, "K": 4096, "BN": 256}},
        _vectors,
        "the cube cores run a tile ahead of the vector cores, which take its sums from the workspace in panels of rows",
        1.1,
        held=ROUND,
    ),
    Example(
        "epilogues/relu",
        lambda x: {"Y": np.maximum(x["A"] @ x["W"], 0)},
        SMALL,
        {"4096 cubed": SQUARE},
        lambda c, s: product(c, s["M"], s["N"], s["K"]),
        "the fixpipe applies it on the way out of L0C",
        1.05,
        held=ROUND,
    ),
    Example(
        "epilogues/residual_norm",
        _residual,
        [{"M": 32, "N": 256, "K": 128}, {"M": 20, "N": 90, "K": 70}],
        LATENT,
        _norm,
        BEHIND,
        1.1,
        held=ROWS,
    ),
    Example(
        "epilogues/residual_norm_first",
        _residual,
        [{"M": 32, "N": 256, "K": 128}, {"M": 20, "N": 90, "K": 70}],
        LATENT,
        _norm,
        BEHIND,
        1.1,
        held=ROWS,
    ),
    Example(
        "epilogues/gated_mlp",
        lambda x: {"Y": silu(x["X"] @ x["G"].T) * (x["X"] @ x["U"].T)},
        SMALL,
        {
            "Llama 8B, 4096 tokens": {"M": 4096, "N": 14336, "K": 4096},
            "DeepSeek V3 dense, 4096 tokens": {"M": 4096, "N": 18432, "K": 7168},
            "Llama 8B, 16 tokens": {"M": 16, "N": 14336, "K": 4096, "BM": 16},
        },
        _gated,
        GATED,
        1.1,
        held=GATED_HELD,
    ),
    Example(
        "epilogues/mlp",
        lambda x: {"Y": (silu(x["X"] @ x["G"].T) * (x["X"] @ x["U"].T)) @ x["D"].T},
        [{"M": 32, "N": 128, "H": 128}, {"M": 20, "N": 90, "H": 70}],
        {"Llama 8B, 16 tokens": {"M": 16, "N": 4096, "H": 14336, "BM": 16, "BH": 128, "BN": 256, "BK": 256}},
        _mlp,
        "each core keeps its part of the hidden layer in L1, and adds its share of the result in GM",
        1.25,
        held=SHARES,
    ),
]
