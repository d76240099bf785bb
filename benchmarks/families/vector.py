"""Elementwise kernels, softmax, norms and rotary embedding."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from benchmarks.families.example import Arrays, Example, Sizes
from benchmarks.targets import bounds
from benchmarks.targets.bounds import FLOAT, HALF, Bound
from tile_eg.chips import Chip

NEAR = 1.1
LLAMA_FFN = {"Llama 8B, 4096 tokens": {"M": 4096, "N": 14336}, "Llama 70B, 32768 tokens": {"M": 32768, "N": 28672}}
HIDDEN = {
    "Llama 8B, 32768 tokens": {"M": 32768, "N": 4096}, "Llama 70B, 32768 tokens": {"M": 32768, "N": 8192},
    "DeepSeek V3, 32768 tokens": {"M": 32768, "N": 7168}, "Llama 8B, 4096 tokens": {"M": 4096, "N": 4096},
}  # fmt: skip
TRIED = ({"M": 32, "N": 1024}, {"M": 33, "N": 1100}, {"M": 1, "N": 1})


def streamed(read: int, written: int, does: str = "", axes: str = "M N") -> Callable[[Chip, Sizes], Bound]:
    """So many bytes read and written for each element, on which vector instructions do what is named."""

    def bound(chip: Chip, sizes: Sizes) -> Bound:
        elements = prod(sizes[a] for a in axes.split())
        work = {"V": bounds.vector(chip, elements, *does.split())} if does else {}
        return Bound(_streaming(chip, elements, read, written).times | work)

    return bound


def _streaming(chip: Chip, elements: int, read: float, written: float) -> Bound:
    return bounds.streaming(chip, read * elements, written * elements)


def hashed(chip: Chip, sizes: Sizes) -> Bound:
    """Dropout: beside its bytes, the instructions of its hash, of 64 elements a cycle: three rounds of a shift and an exclusive
    or of three instructions, one more of the seed, two products, a sum; a shift, two casts, two products, a choice of two."""
    n = sizes["M"] * sizes["N"]
    whole = chip.microseconds(n * (3 * 4 + 3 + 2 + 1 + 7) / 64 / chip.vector_cores)
    return Bound(_streaming(chip, n, HALF, HALF).times | {"V": whole})


def elementwise(f: Callable[[np.ndarray], np.ndarray]) -> Callable[[Arrays], Arrays]:
    return lambda x: {"Y": f(x["X"])}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def swiglu(x: Arrays) -> Arrays:
    gate, up = np.split(x["X"], 2, axis=1)
    return {"Y": gate * sigmoid(gate) * up}


def gelu_mul(x: Arrays) -> Arrays:
    a, b = x["A"][:, 0], x["A"][:, 1]
    return {"Y": a * sigmoid(1.5957691 * (a + 0.044715 * a**3)) * b}


def dropout(x: Arrays) -> Arrays:
    shape = x["X"].shape
    h = np.arange(prod(shape), dtype=np.uint32).reshape(shape) ^ x["SEED"].astype(np.uint32)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(2146121005)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(2221713035)
    h = h ^ (h >> np.uint32(16))
    return {"Y": np.where((h >> np.uint32(8)) / 2**24 < np.float32(0.1), 0, x["X"] / 0.9)}


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(x: np.ndarray) -> np.ndarray:
    c = x - x.max(-1, keepdims=True)
    return c - np.log(np.exp(c).sum(-1, keepdims=True))


def rms_norm(x: Arrays) -> Arrays:
    return {"Y": _rms(x["X"], 1e-5) * x["W"]}


def _rms(x: np.ndarray, epsilon: float) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)


def _centred(x: np.ndarray) -> np.ndarray:
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c**2).mean(-1, keepdims=True) + 1e-5)


def layer_norm(x: Arrays) -> Arrays:
    return {"Y": _centred(x["X"]) * x["W"] + x["B"]}


def group_norm(groups: int) -> Callable[[Arrays], Arrays]:
    def meant(x: Arrays) -> Arrays:
        rows = x["X"].reshape(x["X"].shape[0], groups, -1)
        return {"Y": _centred(rows).reshape(x["X"].shape) * x["W"][:, None] + x["BIAS"][:, None]}

    return meant


def cross_entropy(x: Arrays) -> Arrays:
    rows = np.arange(len(x["X"]))
    return {"LOSS": -log_softmax(x["X"])[rows, x["TARGET"]]}


def targets(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    return {"TARGET": rng.integers(0, sizes["N"], sizes["M"]).astype(np.int32)}


def rope_halves(x: Arrays) -> Arrays:
    a, b = np.split(x["X"], 2, axis=-1)
    c, s = x["COS"][:, None], x["SIN"][:, None]
    return {"Y": np.concatenate([a * c - b * s, b * c + a * s], axis=-1)}


def rope_pairs(x: Arrays) -> Arrays:
    a, b = x["X"][..., ::2], x["X"][..., 1::2]
    c, s = x["COS"][:, None], x["SIN"][:, None]
    return {"Y": np.stack([a * c - b * s, b * c + a * s], axis=-1).reshape(x["X"].shape)}


def rms_norm_rope(x: Arrays) -> Arrays:
    return rope_halves({**x, "X": _rms(x["X"], 1e-6) * x["W"]})


def qkv_rope(x: Arrays) -> Arrays:
    half = x["COS"].shape[1]
    y = (x["X"] @ x["W"]).reshape(len(x["X"]), -1, 2 * half)
    plain = y.shape[1] // 4  # as many values as keys, and half as many as queries, at the sizes that are tried
    y[:, :-plain] = rope_halves({**x, "X": y[:, :-plain]})["Y"]
    return {"Y": y.reshape(len(y), -1)}


def projected(chip: Chip, sizes: Sizes) -> Bound:
    """The product of all heads, and its results over the vector cores, beside the cosines and sines."""
    s, d = sizes["S"], sizes.get("D", 128)
    n = (sizes["H"] + 2 * sizes["HKV"]) * d
    return bounds.epilogue(chip, s, n, sizes["K"], FLOAT * s * d, HALF * s * n)


def heads(chip: Chip, sizes: Sizes) -> Bound:
    """Heads of halves, read and written, beside a row of cosines and sines for each position."""
    n = sizes["S"] * sizes["H"] * sizes["D"]
    return bounds.streaming(chip, HALF * n + FLOAT * sizes["S"] * sizes["D"], HALF * n)


HEADS = {
    "Llama 8B, 32768 tokens": {"S": 32768, "H": 40, "D": 128}, "Llama 70B, 32768 tokens": {"S": 32768, "H": 72, "D": 128},
    "Llama 8B, 4096 tokens": {"S": 4096, "H": 40, "D": 128},
}  # fmt: skip
POSITIONS = {"S": 64, "H": 2, "D": 128}, {"S": 37, "H": 3, "D": 64}, {"S": 1, "H": 1, "D": 64}
SIGMOID = "cast muls exp adds div cast"
DIVIDED = "4096 tokens: the launch is 9 us; V, of whose ten cycles for 64 elements the division takes four, is busy for 87 %"
RMS = "cast mul blocksum mul mul cast"
SQUARED = (
    "4096 tokens: the launch is 9 of 42 us; V is busy for 75 % of the rest, as a square meets itself in its bank, and a sum "
    "takes two cycles for 64 elements, each twice what they could"
)
CENTRED = "cast blocksum add mul blocksum mul mul add cast"
ONE_PASS = "one pass, a persistent block on each vector core, loads in turns beside the arithmetic"
ROWS = "whole rows while they fit UB beside the next ones, else tiles of columns in a pass for the sums and a pass for the result"

EXAMPLES: list[Example] = [
    Example(
        "vector_add", lambda x: {"C": x["A"] + x["B"]}, [{"M": 64, "N": 128}, {"M": 3, "N": 7}],
        {"Llama 8B, 4096 tokens": {"M": 4096, "N": 4096}, "Llama 70B, 32768 tokens": {"M": 32768, "N": 8192}},
        streamed(2 * FLOAT, FLOAT), ONE_PASS, NEAR, of="elementwise",
        held="4096 tokens: the launch is 9 of 101 us, and MTE2 is busy for all of the rest",
    ),
    Example(
        "elementwise/add", lambda x: {"Z": x["X"] + x["Y"]}, TRIED, HIDDEN,
        streamed(2 * HALF, HALF), f"{ONE_PASS}, in tiles that are found; bf16 is added in f32", NEAR,
        held="4096 tokens: the launch is 9 of 55 us, and MTE2 is busy for all of the rest",
    ),
    Example(
        "elementwise/silu", elementwise(lambda x: x * sigmoid(x)), TRIED, LLAMA_FFN, streamed(HALF, HALF, SIGMOID), ONE_PASS,
        NEAR, held=DIVIDED,
    ),
    Example(
        "elementwise/swiglu", swiglu, TRIED, LLAMA_FFN, streamed(2 * HALF, HALF, f"cast mul {SIGMOID}"), ONE_PASS, NEAR,
        held="4096 tokens on the 950: V is busy for 87 %, and MTE2 for 89 %; each waits for the other where the work begins and "
        "ends, which larger launches hide",
    ),
    Example(
        "gelu_mul", gelu_mul, [{"M": 64, "N": 64}, {"M": 5, "N": 70}],
        {"16384 tokens": {"M": 16384, "N": 4096}, "Llama 70B, 4096 tokens": {"M": 4096, "N": 28672}},
        streamed(2 * FLOAT, FLOAT), ONE_PASS, NEAR, of="elementwise",
    ),
    Example(
        "elementwise/sigmoid", elementwise(sigmoid), TRIED, LLAMA_FFN, streamed(HALF, HALF, SIGMOID), ONE_PASS, NEAR,
        held=DIVIDED,
    ),
    Example("elementwise/tanh", elementwise(np.tanh), TRIED, LLAMA_FFN, streamed(FLOAT, FLOAT), ONE_PASS, NEAR),
    Example(
        "elementwise/softplus", elementwise(lambda x: np.logaddexp(x, 0)), TRIED, LLAMA_FFN, streamed(FLOAT, FLOAT), ONE_PASS,
        NEAR,
    ),
    Example(
        "elementwise/dropout", dropout, TRIED, LLAMA_FFN, hashed,
        f"{ONE_PASS}; an element's number is a ramp that is made once, plus that of the tile's first one", 1.35,
        inputs=lambda sizes, rng: {"SEED": rng.integers(0, 2**32, 1, dtype=np.uint32)},
        held="V: the start of each of 25 instructions, which waits for the one before; the choice takes two of them, and casts "
        "1.25 cycles for 64 elements",
    ),
    Example(
        "softmax", lambda x: {"Y": softmax(x["X"])}, [{"M": 33, "N": 17}],
        {"attention scores, 65536 x 1024": {"M": 65536, "N": 1024, "BM": 4}},
        streamed(FLOAT, FLOAT), f"{ROWS}; the sum goes along with the maximum", NEAR, of="norms",
    ),
    Example(
        "online_softmax", lambda x: {"Y": softmax(x["X"])}, [{"M": 33, "N": 300}],
        {f"4096 x {n}": {"M": 4096, "N": n, "BM": 1, "BN": n // 4} for n in (32768, 16384)}, streamed(FLOAT, FLOAT),
        "a row a core, in tiles that stay in UB from the first pass to the second, which hands their places to the next row",
        NEAR, of="norms",
        held="32768: MTE2 waits while the last tile of a row is summed, as four tiles and the work on one take 166 of UB's 184 "
        "KiB; a fifth buffer, which shorter rows have, would mend it: work on halves of what is loaded would leave room for that",
    ),
    Example(
        "norms/log_softmax", elementwise(log_softmax), [{"M": 16, "N": 512}, {"M": 9, "N": 300}, {"M": 1, "N": 7}],
        {"65536 x 1024": {"M": 65536, "N": 1024}, "Llama logits, 4096 tokens": {"M": 4096, "N": 128256}},
        streamed(HALF, FLOAT), f"{ROWS}; the sum goes along with the maximum", NEAR,
        held="logits: the second pass reads its row again, from L2",
    ),
    Example(
        "rms_norm", rms_norm, [{"M": 21, "N": 300}], {k: {**s, "BM": 4} for k, s in HIDDEN.items()}, streamed(HALF, HALF, RMS),
        ROWS, NEAR, of="norms", held=SQUARED,
    ),
    Example(
        "norms/rms_norm_bf16", rms_norm, [{"M": 16, "N": 512}, {"M": 9, "N": 300}, {"M": 1, "N": 64}], HIDDEN,
        streamed(HALF, HALF, RMS), ROWS, NEAR, held=SQUARED,
    ),
    Example(
        "layer_norm", layer_norm, [{"M": 21, "N": 300}], {k: {**s, "BM": 4} for k, s in HIDDEN.items()},
        streamed(HALF, HALF, CENTRED), ROWS, NEAR, of="norms",
        held="V: ten cycles for 64 elements, of which a square that meets itself in its bank takes two, are 2,560 of the 3,370 "
        "that a tile of four rows takes, the pauses between instructions that need each other the rest, where its load takes "
        "1,900; sums of rows on the cube, which is idle, would take two of the ten from V. 4096 tokens: the launch is 9 of 52 us",
    ),
    Example(
        "norms/group_norm", group_norm(8), [{"B": 2, "C": 16, "G": 8, "S": 64}, {"B": 1, "C": 24, "G": 8, "S": 49}],
        {"images of 64 x 64, 320 channels": {"B": 8, "C": 320, "G": 32, "S": 4096}}, streamed(HALF, HALF, CENTRED, "B C S"),
        "two channels a trip: a pass over a group for the mean, one for the variance, one for the result", NEAR,
        held="the launch is 9 us, 256 groups are 5.3 for each core and take 6 turns, and V works for 29 us, as a group is cast "
        "three times and centred twice; the rest are pauses between instructions that need each other, and the first loads of a "
        "pass. A mean and a variance in one pass, or a group that stays in UB as floats, would mend a part of it",
    ),
    Example(
        "norms/cross_entropy", cross_entropy, [{"M": 16, "N": 2048}, {"M": 9, "N": 1100}, {"M": 1, "N": 3}],
        {
            "Llama logits, 4096 tokens": {"M": 4096, "N": 128256, "BM": 8, "BN": 4096},
            "131072 columns, 4096 tokens": {"M": 4096, "N": 131072, "BM": 4, "BN": 4096},
        },
        streamed(HALF, 0),
        "one pass over the columns with a running maximum and sum, whose last trip stands behind it where it is short; each "
        "target's logit is a load of its own", NEAR, inputs=targets,
        held="V: the barriers behind the instructions on vectors of one number a row, and two cycles for each 64 elements of a "
        "reduction",
    ),
    Example(
        "rope/rope_halves", rope_halves, POSITIONS,
        HEADS, heads, "heads of a tile of positions one after the other; its cosines and sines stay in UB", NEAR,
        held="4096 tokens: the launch is 9 of 57 us, and 128 tiles of 32 positions take three turns of 48 cores, where 2.7 would "
        "do; some heads of a tile each would mend the last turn. 32768 tokens of 8B: MTE2, for which rows of 64 halves take "
        "longer than their bytes",
    ),
    Example(
        "rope/rope_pairs", rope_pairs, POSITIONS, HEADS, heads,
        "each head as it is, and with the elements of its pairs in each other's place; cosines and sines, each twice, are "
        "gathered once for the heads of a tile of positions", NEAR,
        held="4096 tokens: the launch is 9 of 58 us, and 128 tiles of 32 positions take three turns of 48 cores, where 2.7 would "
        "do; some heads of a tile each would mend the last turn",
    ),
    Example(
        "rope/qkv_rope", qkv_rope,
        [{"S": 128, "K": 128, "H": 2, "HKV": 1, "D": 128}, {"S": 100, "K": 100, "H": 2, "HKV": 1, "D": 64}],
        {"Llama 8B, 4096 tokens": {"S": 4096, "K": 4096, "H": 32, "HKV": 8}}, projected,
        "two products of half a head's columns share X in L1; the vector cores turn their results on the way out", NEAR,
        held="910B2: MTE2 and MTE1 of the cube core, which X passes for each head and each half of one, are as busy as its "
        "products; one load of X into L0A for both halves would mend it. 950: MTE2, with two heads a block",
    ),
    Example(
        "rope/rms_norm_rope", rms_norm_rope, POSITIONS,
        HEADS, heads,
        "heads of a tile of positions one after the other, read once; the scale times cosines and sines stays in UB",
        NEAR,
        held="32768 tokens of 8B: MTE2 is busy for 90 %, for which rows of 64 halves take longer than their bytes; 4096 tokens: "
        "the launch is 9 of 69 us, and V is busy for 76 % of the rest: squares that meet themselves in their bank, and sums of "
        "both halves of a row, where one of the halves' sum would do, are more than a third of its work",
    ),
]  # fmt: skip
