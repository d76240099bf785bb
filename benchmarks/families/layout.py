"""What lies elsewhere or beside: transposes, stencils, convolutions, Hadamard."""

from __future__ import annotations

import numpy as np

from benchmarks.families.example import Arrays, Example, Sizes
from benchmarks.targets import bounds
from benchmarks.targets.bounds import FLOAT, HALF, Bound, vector
from tile_eg.chips import Chip


def _floats(chip: Chip, s: Sizes) -> Bound:
    size = FLOAT * s["M"] * s["N"]
    return bounds.streaming(chip, size, size)


def _halves(chip: Chip, s: Sizes) -> Bound:
    size = HALF * int(np.prod([n for name, n in s.items() if len(name) == 1]))
    return bounds.streaming(chip, size, size)


def _hadamard(a: Arrays) -> Arrays:
    h = np.ones((1, 1))
    while len(h) < a["X"].shape[1]:
        h = np.block([[h, h], [h, -h]])
    return {"Y": a["X"] @ h / np.sqrt(len(h))}


def _stencil5(a: Arrays) -> Arrays:
    p = np.pad(a["X"], 1)
    return {"Y": (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] + p[1:-1, 1:-1]) * 0.2}


def _stencil3x3(a: Arrays) -> Arrays:
    p, (m, n) = np.pad(a["X"], 1), a["X"].shape
    return {"Y": sum(a["W"][3 * i + j] * p[i : i + m, j : j + n] for i in range(3) for j in range(3))}


def _conv1d(a: Arrays) -> Arrays:
    p = np.pad(a["X"], ((3, 0), (0, 0)))
    y = sum(p[i : i + len(a["X"])] * a["W"][i] for i in range(4)) + a["B"]
    return {"Y": y / (1 + np.exp(-y))}


def _channels(chip: Chip, s: Sizes) -> Bound:
    count = s["L"] * s["D"]
    work = vector(chip, count, "cast", *["mul"] * 4, *["add"] * 4, "muls", "exp", "adds", "div", "cast")
    return Bound(bounds.streaming(chip, HALF * count, HALF * count).times | {"V": work})


def _conv2d(a: Arrays) -> Arrays:
    x, f = a["X"], a["F"]
    (kh, kw), (_, h, w, _) = f.shape[:2], x.shape
    p = np.pad(x, ((0, 0), (kh // 2, kh // 2), (kw // 2, kw // 2), (0, 0)))
    return {"Y": sum(p[:, i : i + h, j : j + w] @ f[i, j] for i in range(kh) for j in range(kw))}


def _pictures(chip: Chip, s: Sizes) -> Bound:
    points, shifts = s["B"] * s["H"] * s["W"], s.get("KH", 3) * s.get("KW", 3)
    moved = HALF * (points * s["C"] + shifts * s["C"] * s["O"]), HALF * points * s["O"]
    return Bound({"cube": bounds.cube(chip, points, s["O"], shifts * s["C"]), "HBM": bounds.hbm(chip, *moved)})


WINDOWS = (
    "MTE2: the columns of a tile are loaded anew for each place that they are shifted by, out of L2, which takes as long as HBM "
    "takes for the first time, and V is as busy on the 950, where windows of rows are copied; where a tile is turned in UB, "
    "columns are rows, which are read where they lie: one load would do"
)
EXAMPLES: list[Example] = [
    Example(
        "layout/transpose", lambda a: {"Y": a["X"].T}, [{"M": 64, "N": 128}, {"M": 100, "N": 33}, {"M": 1, "N": 70}],
        {"8192 x 8192": {"M": 8192, "N": 8192}}, _halves, "squares of 64 x 64 are turned in UB, 16 rows of 32 bytes at once", 1.1,
        held="the launch is 9 of 102 us",
    ),
    Example(
        "layout/permute", lambda a: {"Y": a["X"].transpose(0, 2, 1, 3)},
        [{"B": 2, "S": 64, "H": 3, "D": 64}, {"B": 1, "S": 70, "H": 2, "D": 80}],
        {"Llama 8B, 4096 tokens": {"B": 1, "S": 4096, "H": 32, "D": 128}}, _halves,
        "rows of a head are loaded a stride apart and stored in one run", 1.5,
    ),
    Example(
        "layout/hadamard", _hadamard, [{"M": 9, "N": 256, "STEPS": 8}, {"M": 3, "N": 64, "STEPS": 6}],
        {"32 heads of 128, 4096 tokens": {"M": 131072, "N": 128, "STEPS": 7, "BM": 64}}, _floats,
        "a tile is turned, so that neighbours are rows for all steps, and turned back; the steps take turns with two places", 1.5,
        held="the launch is 9 us; MTE2 is busy for 84 % of the rest, and V for 80 %, of which both turns take 37 %; a product "
        "with the matrix would be bound by HBM",
    ),
    Example(
        "layout/stencil5", _stencil5, [{"M": 32, "N": 128}, {"M": 37, "N": 200}, {"M": 1, "N": 9}],
        {"8192 x 8192": {"M": 8192, "N": 8192, "BM": 16, "BN": 256}}, _floats,
        "three loads, shifted by the DMA, of which one has the rows above and below; what is missing on the left of a row is its "
        "left padding", 1.5,
    ),
    Example(
        "layout/stencil3x3", _stencil3x3, [{"M": 16, "N": 128}, {"M": 37, "N": 200}, {"M": 1, "N": 9}],
        {"8192 x 8192": {"M": 8192, "N": 8192, "BM": 16, "BN": 128}}, _floats,
        "three loads of all rows, shifted by the DMA, and copies of their windows of rows", 1.5, held=WINDOWS,
    ),
    Example(
        "layout/conv1d", _conv1d, [{"L": 32, "D": 128}, {"L": 37, "D": 200}, {"L": 1, "D": 64}],
        {"Mamba-2, 8192 channels, 4096 tokens": {"L": 4096, "D": 8192, "BL": 32, "BD": 256}}, _channels,
        "a tile with three rows before it is loaded and cast once; its four windows are read where they lie", 1.5,
    ),
    Example(
        "layout/conv2d", _conv2d, [{"B": 1, "H": 4, "W": 32, "C": 32, "O": 64}, {"B": 2, "H": 3, "W": 40, "C": 16, "O": 48}],
        {"ResNet-50, 56 x 56, 64 channels, batch 8": {"B": 8, "H": 56, "W": 56, "C": 64, "O": 64, "BW": 56}}, _pictures,
        "all nine shifts in one trip: products read them in L1 where they begin, in rows that are loaded "
        "with their zeros; the filter stays in L1", 2.0,
        held="MTE1 brings a window and a part of the filter to L0 for each product of 56 rows, which takes longer "
        "than the product; tiles of several rows of the image, with a window of 58 columns that also "
        "computes what lies between two rows, would bring the filter less often. On the 950 four rows of the "
        "image share the loads of the filter, and MTE2 is busy with the shifts",
    ),
]  # fmt: skip
