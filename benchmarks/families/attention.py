"""Attention: forward, backward, decoding, sparse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.families.example import Arrays, Example, Sizes
from benchmarks.targets import bounds
from benchmarks.targets.bounds import FLOAT, HALF, Bound, cube, hbm, moved
from tile_eg.chips import Chip

FORWARD, BACKWARD, DECODE, GATHER, NEAR = 1.6, 2, 1.25, 1.5, 1.1
"""How far from its bound a schedule may be, by what it does."""

# ---- what the kernels mean --------------------------------------------------------------------------------------------------


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])


def causal(s: np.ndarray) -> np.ndarray:
    return np.where(np.tri(s.shape[-1], dtype=bool), s, -np.inf)


def window(width: int) -> Callable[[Arrays], Arrays]:
    """Attention to so many keys, the own one the last."""

    def meant(x: Arrays) -> Arrays:
        s = causal(scores(x["Q"], x["K"]))
        return {"O": softmax(np.where(np.tri(s.shape[-1], k=-width, dtype=bool), -np.inf, s)) @ x["V"]}

    return meant


def grouped_query(x: Arrays) -> Arrays:
    shared = x["Q"].shape[2] // x["K"].shape[2]
    q, k, v = (x[n].swapaxes(1, 2) for n in "QKV")
    k, v = np.repeat(k, shared, axis=1), np.repeat(v, shared, axis=1)
    s = causal(scores(q, k))
    m = s.max(-1, keepdims=True)
    return {"O": (softmax(s) @ v).swapaxes(1, 2), "L": (m + np.log(np.exp(s - m).sum(-1, keepdims=True)))[..., 0]}


def variable_lengths(x: Arrays) -> Arrays:
    o = np.zeros(x["Q"].shape)
    for first, end in zip(x["starts"][:-1], x["starts"][1:], strict=True):
        if first < end:
            q, k, v = (x[n][first:end].swapaxes(0, 1) for n in "QKV")
            o[first:end] = (softmax(scores(q, k)) @ v).swapaxes(0, 1)
    return {"O": o}


def paged_decode(x: Arrays) -> Arrays:
    q, shared = x["Q"], x["Q"].shape[1] // x["K"].shape[2]
    o = np.zeros(q.shape)
    for b, length in enumerate(x["lengths"]):
        k, v = (np.repeat(np.concatenate(x[n][x["table"][b]])[:length], shared, axis=1).swapaxes(0, 1) for n in "KV")
        o[b] = (softmax(scores(q[b][:, None], k)) @ v)[:, 0]
    return {"O": o}


def split_decode(parts: int, tile: int = 64) -> Callable[[Arrays], Arrays]:
    def meant(x: Arrays) -> Arrays:
        shared, size = x["Q"].shape[1] // x["K"].shape[1], -(-x["K"].shape[2] // (parts * tile)) * tile
        k, v = (np.repeat(x[n], shared, axis=1) for n in "KV")
        o, logs = [], []
        for at in range(0, parts * size, size):
            s = scores(x["Q"][:, :, None], k[:, :, at : at + size])
            m = s.max(-1, keepdims=True, initial=-1e30)
            total = np.maximum(np.exp(s - m).sum(-1, keepdims=True), 1e-30)
            o.append((np.exp(s - m) / total @ v[:, :, at : at + size])[:, :, 0])
            logs.append((m + np.log(total))[:, :, 0, 0])
        return {"O": np.stack(o, axis=1), "L": np.stack(logs, axis=1)}

    return meant


def combine(x: Arrays) -> Arrays:
    return {"out": (softmax(x["L"].swapaxes(1, 2)).swapaxes(1, 2)[..., None] * x["O"]).sum(1)}


def row_products(x: Arrays) -> Arrays:
    return {"out": (x["dO"] * x["O"]).sum(-1)}


def gradients(x: Arrays) -> dict[str, np.ndarray]:
    """What the scores' gradients are at any L and Z that the kernels are given."""
    q, k, v, do = (x[n] for n in ("Q", "K", "V", "dO"))
    p = np.exp(causal(scores(q, k)) - x["L"][..., None])
    ds = p * (do @ v.swapaxes(-1, -2) - x["Z"][..., None]) / np.sqrt(q.shape[-1])
    return {"dQ": ds @ k, "dK": ds.swapaxes(-1, -2) @ q, "dV": p.swapaxes(-1, -2) @ do}


def mla_decode(x: Arrays) -> Arrays:
    q, k = np.concatenate([x["Q"], x["QR"]], -1), np.concatenate([x["KV"], x["KR"]], -1)
    return {"O": softmax(scores(q, k)) @ x["KV"]}


def sparse_mla(width: int) -> Callable[[Arrays], Arrays]:
    """Of a row that is picked so many numbers are its value."""

    def meant(x: Arrays) -> Arrays:
        rows = np.stack([kv[at] for kv, at in zip(x["KV"], x["at"], strict=True)])
        return {"O": softmax(scores(x["Q"], rows)) @ rows[..., :width]}

    return meant


# ---- arrays that are not any numbers ----------------------------------------------------------------------------------------


def starts(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    """Where sequences begin that fill all rows, none longer than L; the first is empty where there are enough of them."""
    count, rows, most = sizes["B"], sizes["S"], sizes["L"]
    lengths, left = [], rows
    for behind in reversed(range(count)):
        least, longest = max(0, left - behind * most), min(most, left)
        lengths.append(least if not lengths else int(rng.integers(least, longest + 1)))
        left -= lengths[-1]
    return {"starts": np.cumsum([0, *lengths]).astype(np.int32)}


def pages(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    batch, most = sizes["B"], sizes["P"]
    table = rng.permutation(sizes["N"])[: batch * most].reshape(batch, most)
    lengths = np.append(rng.integers(1, most * sizes["PAGE"] + 1, batch - 1), most * sizes["PAGE"] - 3)
    return {"table": table.astype(np.int32), "lengths": lengths.astype(np.int32)}


def rows(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    return {"at": rng.integers(0, sizes["N"], (sizes["B"], sizes["S"], sizes["K"])).astype(np.int32)}


# ---- bounds -----------------------------------------------------------------------------------------------------------------


def dense(chip: Chip, heads: int, pairs: float, wide: int, products: int, crossing: int, read: float, written: float) -> Bound:
    """`products` between rows of `wide` numbers for each of `pairs` of a query and a key a head, of which `crossing` go to the
    vector cores as floats, and half as many come back as halves, at least one; bytes read and written once."""
    count, back = heads * pairs, max(1, crossing // 2)
    side = pairs**0.5
    return Bound({
        "cube": cube(chip, round(side), round(side), wide, heads) * products,
        "HBM": hbm(chip, read, written),
        "FIX": moved(chip, "l0c_to_gm", FLOAT * count * crossing),
        "MTE2": max(moved(chip, "gm_to_ub", FLOAT * count * crossing), moved(chip, "gm_to_l1_nd2nz", HALF * count * back)),
        "MTE3": moved(chip, "ub_to_gm", HALF * count * back),
    })  # fmt: skip


def triangle(length: int, width: int | None = None) -> float:
    """Pairs of a query and a key that it sees: those up to its own, of these the last `width`."""
    short = min(length, width or length)
    return length * short - short * (short - 1) / 2


def tensors(sizes: Sizes, *heads: int) -> float:
    """Bytes of tensors in halves of so many heads each."""
    return HALF * sizes["B"] * sizes["S"] * sizes["D"] * sum(heads)


def forward(chip: Chip, s: Sizes) -> Bound:
    h, g = s["H"], s.get("G", s["H"])
    pairs = triangle(s["S"], s.get("W"))
    return dense(chip, s["B"] * h, pairs, s["D"], 2, 1, tensors(s, h, 2 * g), tensors(s, h))


def gradient(products: int, out: int) -> Callable[[Chip, Sizes], Bound]:
    def bound(chip: Chip, s: Sizes) -> Bound:
        h = s["H"]
        return dense(chip, s["B"] * h, triangle(s["S"]), s["D"], products, 2, tensors(s, 4 * h), tensors(s, out * h))

    return bound


def ragged(chip: Chip, s: Sizes) -> Bound:
    """Sequences as long as they may be, as the timeline has them."""
    return bounds.attention(chip, s["B"] * s["H"], s["L"], s["L"], s["D"])


def decoding(chip: Chip, heads: int, groups: int, keys: int, wide: int, value: int, read: float) -> Bound:
    """One query a head: keys are read once; scores and products of a group of heads fill fractals of 16 rows."""
    shared, batch = heads // groups, groups
    crossing = FLOAT * heads * keys
    return Bound({
        "cube": cube(chip, shared, keys, wide, batch) + cube(chip, shared, value, keys, batch),
        "HBM": hbm(chip, read, 0), "FIX": moved(chip, "l0c_to_gm", crossing), "MTE2": moved(chip, "gm_to_l1_nd2nz", read),
    })  # fmt: skip


def split_bound(chip: Chip, s: Sizes) -> Bound:
    heads, groups = s["B"] * s["H"], s["B"] * s["G"]
    return decoding(chip, heads, groups, s["S"], s["D"], s["D"], HALF * groups * s["S"] * 2 * s["D"])


def paged_bound(chip: Chip, s: Sizes) -> Bound:
    """Sequences of all their pages, as the timeline has them."""
    return split_bound(chip, {**s, "S": s["P"] * s["PAGE"]})


def mla_bound(chip: Chip, s: Sizes) -> Bound:
    wide = s["C"] + s["R"]
    return decoding(chip, s["B"] * s["H"], s["B"], s["S"], wide, s["C"], HALF * s["B"] * s["S"] * wide)


def sparse_bound(chip: Chip, s: Sizes) -> Bound:
    """Each row that a token picks is moved to a core by an instruction of its own, all cores at it; HBM has each row once."""
    wide, tokens = s["C"] + s["R"], s["B"] * s["S"]
    found = decoding(chip, tokens * s["H"], tokens, s["K"], wide, s["C"], HALF * s["B"] * s["N"] * wide)
    picked = tokens * s["K"] * HALF * wide
    return Bound(found.times | {"MTE2": moved(chip, "gm_to_ub", picked), "L2": moved(chip, "gm_to_l1", picked)})


def combine_bound(chip: Chip, s: Sizes) -> Bound:
    values = s["B"] * s["P"] * s["H"] * (s["D"] + 1)
    return bounds.streaming(chip, FLOAT * values, HALF * s["B"] * s["H"] * s["D"])


def row_products_bound(chip: Chip, s: Sizes) -> Bound:
    return bounds.streaming(chip, tensors(s, 2 * s["H"]), FLOAT * s["B"] * s["H"] * s["S"])


# ---- sizes of models --------------------------------------------------------------------------------------------------------

TILES = {"BM": 128, "BN": 128}
LLAMA_8B = {"B": 1, "H": 32, "D": 128, **TILES}


def llama(*lengths: int, **more: int) -> dict[str, Sizes]:
    """Prompts of so many tokens in Llama 8B."""
    return {f"Llama 8B, {n // 1024}K tokens": {**LLAMA_8B, "S": n, **more} for n in lengths}


MLA = {"C": 512, "R": 64}
EXAMPLES: list[Example] = [
    Example(
        "attention/sliding_window", window(100),
        tried=[{"B": 1, "H": 2, "S": 256, "W": 100, "D": 64}, {"B": 1, "H": 1, "S": 200, "W": 100, "D": 80},
               {"B": 1, "H": 1, "S": 1, "W": 100, "D": 64}],
        real=llama(4096, 32768, W=1024), bound=forward, slack=FORWARD,
        schedule="one loop over the tiles of keys that a window reaches; masks are made in the tiles at its two ends alone",
        held="what a tile begins with, 4,400 cycles from its first product to the vector cores and back, is paid for each tile"
        " of queries where these do not go on as one loop; on the 910B2 they do, with 10 trips for 9. On the 950, where no flags"
        " are found for that loop, V is busy for 81 %",
    ),
    Example(
        "attention/grouped_query", grouped_query,
        tried=[{"B": 1, "S": 128, "H": 4, "G": 2, "D": 64}, {"B": 2, "S": 72, "H": 2, "G": 1, "D": 128},
               {"B": 1, "S": 1, "H": 2, "G": 1, "D": 64}],
        real=llama(4096, 32768, G=8) | {"Llama 8B, 4K tokens, 256 keys a trip": {**LLAMA_8B, "S": 4096, "G": 8, "BN": 256}},
        bound=forward, slack=FORWARD,
        schedule="cube and vector cores meet in rings in the workspace, scores some trips ahead of products with V",
        held="the fixpipe brings scores and products to the vector cores as floats, 1,780 cycles a trip where the cube needs "
        "1,020; 256 keys a trip in parts bring products less often: such a trip takes 3,100 cycles, for which V and MTE2 of the "
        "cube core are busy, where the cube needs 2,040 (38.9 ms at 32K tokens on the 910B2, 1.57 of the bound). At 4K tokens a "
        "tile goes through whole rounds of the loop's rings, 10 trips for 8.5 with 256 keys: rings that go on from tile to tile "
        "would mend that. On the 950 V is busy for 88 %",
    ),
    Example(
        "attention/variable_lengths", variable_lengths, inputs=starts,
        tried=[{"B": 3, "S": 200, "L": 128, "H": 1, "D": 64}, {"B": 2, "S": 130, "L": 129, "H": 2, "D": 64}],
        real={"8 prompts of up to 4K tokens, Llama 8B": {"B": 8, "S": 32768, "L": 4096, "H": 32, "D": 128, **TILES}},
        bound=ragged, slack=FORWARD,
        schedule="as attention of one length; each core reads from GM where its sequence begins and how many tiles it has",
        held="the fixpipe is busy for 92 % on the 910B2, V for 82 % on the 950; what lies beyond the end of a sequence is "
        "written in the tiles that end alone. As a sequence may have no trip, tiles do not go on as one loop, and each pays what "
        "`sliding_window` says",
    ),
    Example(
        "attention/paged_decode", paged_decode, inputs=pages,
        tried=[{"B": 2, "H": 8, "G": 2, "D": 64, "N": 16, "PAGE": 64, "P": 4},
               {"B": 3, "H": 4, "G": 4, "D": 128, "N": 9, "PAGE": 32, "P": 3}],
        real={"Llama 8B, 32 sequences of 4K tokens":
              {"B": 32, "H": 32, "G": 8, "D": 128, "N": 1024, "PAGE": 128, "P": 32}},
        bound=paged_bound, slack=DECODE,
        schedule="the cube core reads the number of a page from GM and loads the page to L1",
    ),
    Example(
        "attention/split_decode", split_decode(4),
        tried=[{"B": 2, "H": 8, "G": 2, "S": 500, "D": 64, "P": 4}, {"B": 1, "H": 4, "G": 4, "S": 130, "D": 128, "P": 4}],
        real={"Llama 8B, 32 sequences of 4K tokens": {"B": 32, "H": 32, "G": 8, "S": 4096, "D": 128, "P": 1, "BN": 256},
              "Llama 8B, one of 160K tokens": {"B": 1, "H": 32, "G": 8, "S": 163840, "D": 128, "P": 12, "BN": 256}},
        bound=split_bound, slack=DECODE,
        schedule="a block a part of the keys of a group of heads, which fill the 16 rows of a fractal",
    ),
    Example(
        "attention/combine", combine,
        tried=[{"B": 2, "P": 4, "H": 8, "D": 64}, {"B": 1, "P": 3, "H": 5, "D": 80}],
        real={"Llama 8B, 32 sequences in 4 parts": {"B": 32, "P": 4, "H": 32, "D": 128}},
        bound=combine_bound, slack=DECODE,
        schedule="one pass over the parts with a running maximum and sum",
        held="the launch is 7 of 9 us; in the rest each of 32 blocks waits for its first loads, and for a dozen short "
        "instructions on them",
    ),
    Example(
        "attention/row_products", row_products,
        tried=[{"B": 1, "H": 2, "S": 200, "D": 64}, {"B": 2, "H": 1, "S": 33, "D": 128}],
        real={"Llama 8B, 4K tokens": {"B": 1, "H": 32, "S": 4096, "D": 128}}, bound=row_products_bound, slack=NEAR,
        schedule="tiles of rows, the next one loaded meanwhile",
        held="the launch is 9 of 55 us, and MTE2 is busy for all of the rest",
    ),
    Example(
        "attention/backward_dq", lambda x: {"dQ": gradients(x)["dQ"]},
        tried=[{"B": 1, "H": 2, "S": 128, "D": 64}, {"B": 1, "H": 1, "S": 72, "D": 128}],
        real=llama(4096, 16384), bound=gradient(3, 1), slack=BACKWARD,
        schedule="both products of scores run ahead of the one with K, whose sum stays in L0C",
        held="each of the three products of a trip takes the same slot of L0A and L0B as the one before it, so that its operands "
        "wait until that is done; slots in the order of issue alone do not mend it, as they take longer in the skewed loop",
    ),
    Example(
        "attention/backward_dkv", lambda x: {n: gradients(x)[n] for n in ("dK", "dV")},
        tried=[{"B": 1, "H": 2, "S": 128, "D": 64}, {"B": 1, "H": 1, "S": 72, "D": 128}],
        real=llama(4096, 16384, BM=128, BN=64), bound=gradient(4, 2), slack=BACKWARD,
        schedule="scores with queries as rows; the sums of both products with their transposes stay in L0C; "
        "Q and dO are loaded ahead of the later trips that read them",
        held="on the 950 loads do not run ahead (more slots make its tiles slower): L0C holds two sums of 64 x 128 and two tiles "
        "of scores of 128 x 64, and is full, so that Q and dO are loaded anew for each 64 keys",
    ),
    Example(
        "attention/mla_decode", mla_decode,
        tried=[{"B": 2, "H": 32, "S": 96, **MLA}, {"B": 1, "H": 16, "S": 130, "C": 128, "R": 64}],
        real={"DeepSeek V3, 32 sequences of 4K tokens": {"B": 32, "H": 128, "S": 4096, **MLA, "BM": 64, "BN": 128},
              "DeepSeek V3, 32 of 160K tokens": {"B": 32, "H": 128, "S": 163840, **MLA, "BM": 64, "BN": 128}},
        bound=mla_bound, slack=DECODE,
        schedule="a tile of KV, in halves on the 910B2, is in L1 once for both products; each vector core has "
        "half of the sum in UB",
        held="L1 has room for three tiles of KV, which a trip and the two before it hold, so that few loads run ahead; with the "
        "sum in halves of 256 columns, which leave L0C in turns, MTE2 of the cube core is the busiest pipe of the 910B2 (338 us "
        "with the whole one, which fills L0C). 64 keys a trip take 201 us on the 950",
    ),
    Example(
        "sparse/sparse_mla", sparse_mla(64), inputs=rows,
        tried=[{"B": 1, "S": 3, "H": 16, "N": 128, "K": 64, "C": 64, "R": 16},
               {"B": 2, "S": 2, "H": 32, "N": 90, "K": 40, "C": 64, "R": 64}],
        real={"DeepSeek V3.2, 1K tokens of 32K, 64 heads":
              {"B": 1, "S": 1024, "H": 64, "N": 32768, "K": 2048, **MLA, "BN": 96}},
        bound=sparse_bound, slack=GATHER,
        schedule="the cube core reads the indices and copies each row to L1 once; the second product reads a part of that tile",
        held="MTE2 takes 36 cycles for each row that it copies to L1, and is busy nearly all of the time: rows that vector cores "
        "gather into the workspace would leave it a load of a tile, for which UB has no room beside the sums of 64 x 512",
    ),
]
