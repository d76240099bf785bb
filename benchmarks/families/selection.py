"""Selections: sorting, the largest numbers and where they are, the lightning indexer."""

from __future__ import annotations

import numpy as np

from benchmarks.families.example import Arrays, Example, Sizes
from benchmarks.targets import bounds
from benchmarks.targets.bounds import FLOAT, HALF, Bound, vector
from tile_eg.chips import Chip
from tile_eg.ops.whole_tiles import SORTED

MERGED = 4
"""Lists that one instruction merges."""


def _first(x: np.ndarray, count: int) -> np.ndarray:
    """The places of the largest numbers of each row, equal ones in their order."""
    return np.argsort(-x, axis=1, kind="stable")[:, :count]


def _selected(chip: Chip, s: Sizes) -> Bound:
    """Runs of 32 are sorted, and merged four at a time until they have as many as are kept: pairs of a value and an index, twice
    as many numbers. Longer lists are not counted, of which parts could be left out; no branch depends on the data."""
    m, n, kept = s["M"], s["N"], s.get("K", s["N"])
    found = bounds.streaming(chip, FLOAT * m * n, 2 * FLOAT * m * kept)
    merges = next(rounds for rounds in range(n) if SORTED * MERGED**rounds >= kept)
    return Bound(found.times | {"sorts": vector(chip, m * n, "sort") + merges * vector(chip, 2 * m * n, "mrgsort")})


def _scored(chip: Chip, s: Sizes) -> Bound:
    m, n, h, d = s["M"], s["N"], s["H"], s["D"]
    scores = m * n * h
    return Bound({
        "cube": bounds.cube(chip, m * h, n, d), "FIX": bounds.moved(chip, "l0c_to_gm", FLOAT * scores),
        "MTE2": bounds.moved(chip, "gm_to_ub", FLOAT * scores), "V": vector(chip, scores, "muls", "add"),
        "HBM": bounds.hbm(chip, HALF * d * (m * h + n) + FLOAT * m * h, FLOAT * m * n),
    })  # fmt: skip


def _scores(a: Arrays) -> np.ndarray:
    found = np.maximum(np.einsum("mhd,nd->mhn", a["Q"], a["K"]), 0)
    return np.einsum("mhn,mh->mn", found, a["W"])


def _indexer(a: Arrays, count: int) -> Arrays:
    return {"I": _first(_scores(a), count)}


def _whole(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    """Small whole numbers: scores are exact, so that equal ones are."""
    m, n, h, d = (sizes[name] for name in "MNHD")
    q, k = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, h, d), (n, d)))
    return {"Q": q, "K": k, "W": rng.integers(-4, 5, (m, h)).astype(np.float32)}


def _topk(a: Arrays, count: int) -> Arrays:
    places = _first(a["X"], count)
    return {"V": np.take_along_axis(a["X"], places, 1), "I": places}


SORTS = (
    "the launch is 9 us, and V is busy for all of the rest, 93 % of it with the sort itself, which numbers the places of each "
    "row anew, and has a barrier before each of its steps"
)
EXAMPLES: list[Example] = [
    Example(
        "selection/topk", lambda a: _topk(a, 64), [{"M": 3, "N": 1000, "K": 64}, {"M": 1, "N": 96, "K": 64}],
        {"1024 rows of 4096, the first 2048": {"M": 1024, "N": 4096, "K": 2048}}, _selected,
        "a row at a time is sorted in UB by runs of 32 and merges of four", 1.5,
        held=f"{SORTS}; its last merge makes all pairs, of which half are kept",
    ),
    Example(
        "selection/topk_long", lambda a: _topk(a, 64),
        [{"M": 2, "N": 2500, "K": 64, "BN": 1024}, {"M": 1, "N": 1024, "K": 64, "BN": 512}],
        {"128 rows of 131072, the first 2048": {"M": 128, "N": 131072, "K": 2048, "BN": 4096}}, _selected,
        "parts of a row are sorted in UB one after the other, and the best of each are merged with those so far", 1.5,
        held="V is busy from end to end; parts with nothing above the least that is kept are sorted as well, as no branch "
        "depends on data",
    ),
    Example(
        "selection/sort", lambda a: _topk(a, a["X"].shape[1]), [{"M": 2, "N": 1000}, {"M": 1, "N": 32}],
        {"1024 rows of 2048": {"M": 1024, "N": 2048}}, _selected,
        "a row at a time is sorted in UB by runs of 32 and merges of four", 1.5, held=SORTS,
    ),
    Example(
        "selection/argmax", lambda a: {"I": a["X"].argmax(axis=1)}, [{"M": 37, "N": 96, "BM": 8}, {"M": 1, "N": 256, "BM": 8}],
        {"16384 rows of 4096": {"M": 16384, "N": 4096}},
        lambda chip, s: bounds.streaming(chip, FLOAT * s["M"] * s["N"], FLOAT * s["M"]),
        "the maximum of a row, then the least place of what equals it, on rows that are in UB", 1.5,
    ),
    Example(
        "selection/index_scores", lambda a: {"S": _scores(a)},
        [{"M": 64, "N": 256, "H": 4, "D": 64}, {"M": 33, "N": 100, "H": 3, "D": 128}, {"M": 1, "N": 130, "H": 8, "D": 64}],
        {
            "DeepSeek V3.2, 4096 queries and keys": {"M": 4096, "N": 4096, "H": 64, "D": 128, "BM": 128},
            "DeepSeek V3.2, 128 queries, 131072 keys": {"M": 128, "N": 131072, "H": 64, "D": 128, "BM": 128},
        }, _scored,
        "a head a trip: the product goes to the vector cores by the workspace, half of the rows to each", 1.75,
        held="the products of all heads cross L2 as floats, which bounds it: sums over heads on the cube (W @ f16(relu(Q K))) "
        "would keep them on the core, and round them",
    ),
    Example(
        "selection/lightning_indexer", lambda a: _indexer(a, 64),
        [{"M": 3, "N": 512, "H": 16, "D": 64, "TOPK": 64}, {"M": 1, "N": 1000, "H": 64, "D": 128, "TOPK": 64, "BN": 200}],
        {"DeepSeek V3.2, 4096 keys, 128 queries": {"M": 128, "N": 4096, "H": 64, "D": 128, "TOPK": 2048}}, _scored,
        "the heads of a query are the rows of a product, and each vector core has a query; its scores stay in UB until they are "
        "sorted", 1.75, _whole,
    ),
]  # fmt: skip
