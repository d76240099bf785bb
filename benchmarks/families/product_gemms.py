"""Plain products: types, transposes, batches, groups, open sizes, few rows."""

from __future__ import annotations

import numpy as np

from benchmarks.families.example import Arrays, Example, Sizes
from benchmarks.families.product_bounds import product
from benchmarks.targets.bounds import FLOAT, HALF, Bound
from tile_eg.chips import Chip

SMALL = [{"M": 256, "N": 512, "K": 128}, {"M": 130, "N": 90, "K": 70}, {"M": 1, "N": 1, "K": 1}]
SQUARE = {"M": 4096, "N": 4096, "K": 4096}
PREFILL = {
    "4096 cubed": SQUARE,
    "Llama 8B gate and up, 4096 tokens": {"M": 4096, "N": 28672, "K": 4096},
    "Llama 70B QKV, 4096 tokens": {"M": 4096, "N": 10240, "K": 8192},
}
ROUND = (
    "the launch is 2 %; what else is above the bound are the tiles before the copy is made, among them those that fill no turn "
    "and go to all cores in parts: their loads come from HBM beside the copy's; a copy in pieces gained 0.4 % by hand, sums "
    "of these parts from strips would mend the rest"
)
TWO_COPIES = ROUND + "; two operands are copied here, which takes twice as long"
LAUNCH = (
    "a launch of 24 cores is 4 to 6 us beside these bounds, which count 1.62 TB/s where copies that make NZ get 1.41; what is "
    "left are a core's first loads and its store, with nothing beside them; larger sizes hide all three"
)


def dense(dtype: str = "f16", out: int = HALF):  # noqa: ANN201
    """The bound of M x N x K."""
    return lambda chip, s: product(chip, s["M"], s["N"], s["K"], dtype=dtype, out=out)


def _batched(chip: Chip, s: Sizes) -> Bound:
    return product(chip, s["M"], s["N"], s["K"], count=s["Z"])


def _gemv(chip: Chip, s: Sizes) -> Bound:
    """Rows in vector cores: the weights once."""
    return Bound({"HBM": product(chip, 1, s["N"], s["K"]).times["HBM"]})


def _grouped(chip: Chip, s: Sizes) -> Bound:
    """Groups of rows as equal as they can be."""
    return product(chip, -(-s["M"] // s["G"]), s["N"], s["K"], count=s["G"])


def tiles_of(groups: int, rows: int, tiles: int, tile: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Group, first row and rows of so many tiles, of up to `tile` rows each, that cover all rows in random parts."""
    cuts = np.sort(rng.choice(np.arange(1, rows), tiles - 1, replace=False)) if tiles > 1 else np.zeros(0, int)
    first = np.concatenate([[0], cuts])
    sizes = np.diff(np.append(first, rows))
    while (sizes > tile).any():  # what is too long goes to the shortest
        sizes[sizes.argmin()] += sizes.max() - tile
        sizes[sizes.argmax()] = tile
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    group = np.sort(rng.integers(0, groups, tiles))
    return tuple(a.astype(np.int32) for a in (group, first, sizes))


def _groups(s: Sizes, rng: np.random.Generator) -> Arrays:
    return dict(zip(("group", "row", "rows"), tiles_of(s["G"], s["M"], s["TILES"], s.get("BM", 64), rng), strict=True))


def _by_group(x: Arrays) -> Arrays:
    tiles = zip(x["group"], x["row"], x["rows"], strict=True)
    return {"C": np.concatenate([x["A"][r : r + n] @ x["B"][g] for g, r, n in tiles])}


TURNS = (
    "persistent cores take tiles in bands, and tiles that fill no turn go to all cores in parts; the right operand is copied "
    "into strips by the vector cores beside the first turns"
)

GEMM = [
    Example("gemm", lambda x: {"C": x["A"] @ x["B"]}, SMALL, PREFILL, dense(), TURNS, 1.05, held=ROUND, of="gemm"),
    Example("gemm/gemm_bf16", lambda x: {"C": x["A"] @ x["B"]}, SMALL, {"4096 cubed": SQUARE}, dense(), TURNS, 1.05, held=ROUND),
    Example(
        "gemm/gemm_f32",
        lambda x: {"C": x["A"] @ x["B"]},
        SMALL,
        {"4096 cubed": SQUARE},
        dense("f32", FLOAT),
        "three buffers of both operands in L1, sums in L0C; tiles that fill no turn go to all cores in parts",
        1.05,
    ),
    Example(
        "gemm_int8",
        lambda x: {"C": x["A"].astype(np.int64) @ x["W"].T.astype(np.int64) * 2.0**-16},
        [{"M": 128, "N": 256, "K": 128}, {"M": 100, "N": 90, "K": 64}],
        {"4096 cubed": SQUARE},
        dense("i8"),
        TURNS + "; the scale is applied on the way out of L0C",
        1.05,
        held=ROUND,
        of="gemm",
    ),
    Example("gemm/linear", lambda x: {"C": x["A"] @ x["W"].T}, SMALL, PREFILL, dense(), TURNS, 1.05, held=ROUND),
    Example(
        "gemm/left_transposed",
        lambda x: {"C": x["A"].T @ x["B"]},
        SMALL,
        {"4096 cubed": SQUARE},
        dense(),
        TURNS,
        1.05,
        held=TWO_COPIES,
    ),
    Example(
        "gemm_transposed",
        lambda x: {"C": x["A"].T @ x["B"].T},
        SMALL,
        {"4096 cubed": SQUARE},
        dense(),
        TURNS,
        1.05,
        held=TWO_COPIES,
        of="gemm",
    ),
    Example(
        "gemm/batched",
        lambda x: {"C": x["A"] @ x["B"]},
        [{"Z": 3, **SMALL[0]}, {"Z": 2, **SMALL[1]}],
        {"scores of 32 heads, 4096 tokens, as a product": {"Z": 32, "M": 4096, "N": 4096, "K": 128}},
        _batched,
        "persistent cores go through the tiles of all matrices",
        1.05,
    ),
    Example(
        "gemm/grouped",
        _by_group,
        [
            {"G": 3, "M": 128, "N": 128, "K": 128, "TILES": 2},
            {"G": 4, "M": 130, "N": 90, "K": 70, "TILES": 5},
            {"G": 1, "M": 1, "N": 1, "K": 1, "TILES": 1},
        ],
        {
            "DeepSeek V3 experts down, 4096 tokens, 8 of 256": {
                "G": 256,
                "M": 32768,
                "N": 7168,
                "K": 2048,
                "TILES": 256,
                "BM": 128,
                "BN": 256,
            }
        },
        _grouped,
        "each tile loads, multiplies and stores as many rows as its group has there",
        1.25,
        _groups,
    ),
    Example(
        "gemm/split_k",
        lambda x: {"C": x["A"] @ x["B"]},
        [{"M": 128, "N": 256, "K": 1024}, {"M": 100, "N": 90, "K": 1024}],
        {"128 x 2048 x 12288": {"M": 128, "N": 2048, "K": 12288, "S": 3}},
        dense("f16", FLOAT),
        "a block a part of a tile's sum, added in GM by the fixpipe; each begins its sum elsewhere",
        1.25,
        held=LAUNCH,
    ),
    Example("gemm/persistent", lambda x: {"C": x["A"] @ x["B"]}, SMALL, {"4096 cubed": SQUARE}, dense(), TURNS, 1.05, held=ROUND),
    Example(
        "gemm/open_sizes",
        lambda x: {"C": x["A"] @ x["W"].T},
        SMALL,
        {"Llama 8B O, 4096 tokens": SQUARE},
        dense(),
        TURNS,
        1.05,
        held=ROUND,
    ),
    Example(
        "gemm/gemv",
        lambda x: {"y": x["W"] @ x["x"]},
        [{"N": 512, "K": 512}, {"N": 100, "K": 70}, {"N": 1, "K": 1}],
        {"Llama 8B gate and up": {"N": 28672, "K": 4096}, "Llama 8B head": {"N": 128256, "K": 4096}},
        _gemv,
        "vector cores stream the rows, products are summed in UB",
        1.25,
    ),
    Example(
        "gemm/decode",
        lambda x: {"C": x["A"] @ x["W"].T},
        [{"M": 16, "N": 512, "K": 256}, {"M": 20, "N": 90, "K": 70}, {"M": 1, "N": 1, "K": 1}],
        {
            "Llama 8B gate and up, 1 token": {"M": 1, "N": 28672, "K": 4096},
            "Llama 8B gate and up, 16 tokens": {"M": 16, "N": 28672, "K": 4096, "BM": 16},
            "Llama 8B head, 32 tokens": {"M": 32, "N": 128256, "K": 4096},
            "Llama 8B O, 16 tokens": {"M": 16, "N": 4096, "K": 4096, "BM": 16, "BN": 176},
        },
        dense(),
        "each core keeps all rows of A and streams its rows of W, so that HBM is busy from end to end",
        1.25,
        held=LAUNCH,
    ),
]
