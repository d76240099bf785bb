"""Scans: cumulative sums, linear attention, the gated delta rule, state spaces."""

from __future__ import annotations

import numpy as np

from benchmarks.families.example import Arrays, Example, Sizes
from benchmarks.targets import bounds
from benchmarks.targets.bounds import FLOAT, HALF, Bound, vector
from tile_eg.chips import Chip

CHUNK = 64


def _streamed(chip: Chip, s: Sizes) -> Bound:
    size = FLOAT * s["M"] * s["N"]
    return bounds.streaming(chip, size, size)


def _chunked(chip: Chip, s: Sizes, products: list[tuple[int, int, int]], read: float, written: float) -> Bound:
    """These products for each chunk of each head, and so many bytes of HBM in all."""
    length = s.get("L", s.get("S", 0))
    chunks = s["H"] * -(-length // CHUNK)
    return Bound({"cube": sum(bounds.cube(chip, *p, chunks) for p in products), "HBM": bounds.hbm(chip, read, written)})


def _linear(chip: Chip, s: Sizes) -> Bound:
    d, e, rows = s["D"], s["E"], s["H"] * s["S"]
    products = [(CHUNK, CHUNK, d), (CHUNK, e, CHUNK), (CHUNK, e, d), (d, e, CHUNK)]
    return _chunked(chip, s, products, HALF * rows * (2 * d + e), HALF * rows * e)


def _linear_attention(a: Arrays) -> Arrays:
    return {"O": np.tril(a["Q"] @ a["K"].swapaxes(1, 2)) @ a["V"]}


def _scanned(chip: Chip, s: Sizes) -> Bound:
    length, d, n = s["L"], s["D"], s["N"]
    found = bounds.streaming(chip, FLOAT * length * (2 * d + 2 * n), FLOAT * length * d)
    return Bound(found.times | {"V": vector(chip, length * d * n, "mul", "exp", "mul", "mul", "add", "mul", "add")})


def _selective_scan(a: Arrays) -> Arrays:
    state, out = np.zeros(a["A"].shape), []
    for x, dt, b, c in zip(a["X"], a["DT"], a["B"], a["C"], strict=True):
        state = np.exp(dt * a["A"]) * state + b[:, None] * (dt * x)
        out.append((state * c[:, None]).sum(axis=0))
    return {"Y": np.array(out)}


def _decaying(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    length, d, n = sizes["L"], sizes["D"], sizes["N"]
    return {"DT": rng.uniform(0, 1, (length, d)).astype(np.float32), "A": -rng.uniform(0.5, 8, (n, d)).astype(np.float32)}


def _states(chip: Chip, s: Sizes) -> Bound:
    length, h, p, n = s["L"], s["H"], s["P"], s["N"]
    products = [(CHUNK, CHUNK, n), (CHUNK, p, CHUNK), (CHUNK, p, n), (n, p, CHUNK)]
    return _chunked(chip, s, products, length * (HALF * (h * p + 2 * n) + FLOAT * h), HALF * length * h * p)


def _ssd(a: Arrays) -> Arrays:
    state, out = np.zeros((a["X"].shape[1], a["B"].shape[1], a["X"].shape[2])), []
    for x, dt, b, c in zip(a["X"], a["DT"], a["B"], a["C"], strict=True):
        state = np.exp(dt * a["A"])[:, None, None] * state + dt[:, None, None] * b[:, None] * x[:, None, :]
        out.append(np.einsum("hnp,n->hp", state, c))
    return {"Y": np.array(out)}


def _steps(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    length, h = sizes["L"], sizes["H"]
    return {"DT": rng.uniform(0, 0.1, (length, h)).astype(np.float32), "A": -rng.uniform(1, 16, h).astype(np.float32)}


def _solved(chip: Chip, s: Sizes) -> Bound:
    d, e, rows = s["D"], s["E"], s["H"] * s["L"]
    products = [(CHUNK, CHUNK, d), (CHUNK, d, CHUNK), (CHUNK, e, CHUNK)]
    found = _chunked(chip, s, products, rows * (HALF * (d + e) + 2 * FLOAT), rows * (HALF * (d + e) + FLOAT))
    return Bound(found.times | {"V": vector(chip, rows * CHUNK * CHUNK / 2, "mul", "add")})


def _chunks(a: Arrays) -> Arrays:
    k, v, g, b = (a[name] for name in "KVGB")
    sums, w, u = np.zeros(g.shape), np.zeros(k.shape), np.zeros(v.shape)
    for h, at in np.ndindex(len(k), -(-k.shape[1] // CHUNK)):
        rows = (h, slice(at * CHUNK, (at + 1) * CHUNK))
        s = sums[rows] = np.cumsum(g[rows])
        t = np.linalg.inv(np.eye(len(s)) + np.tril(b[rows][:, None] * np.exp(s[:, None] - s) * (k[rows] @ k[rows].T), -1))
        w[rows], u[rows] = t @ (k[rows] * (b[rows] * np.exp(s))[:, None]), t @ (v[rows] * b[rows][:, None])
    return {"W": w, "U": u, "S": sums}


def _keys(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    """Keys of length 1, decays below 1, beta between 0 and 1."""
    h, length = sizes["H"], sizes["L"]
    k = rng.standard_normal((h, length, sizes["D"]))
    k = (k / np.linalg.norm(k, axis=2, keepdims=True)).astype(np.float16)
    g = -rng.uniform(0, 0.1, (h, length)).astype(np.float32)
    return {"K": k, "G": g, "B": rng.uniform(0, 1, (h, length)).astype(np.float32)}


def _handed_on(chip: Chip, s: Sizes) -> Bound:
    d, e, rows = s["D"], s["E"], s["H"] * s["L"]
    written = HALF * rows * e + HALF * s["H"] * -(-s["L"] // CHUNK) * d * e
    return _chunked(chip, s, [(CHUNK, e, d), (d, e, CHUNK)], rows * (HALF * (2 * d + e) + FLOAT), written)


def _between_chunks(a: Arrays) -> Arrays:
    k, w, u, g = (a[name] for name in "KWUG")
    states, new = np.zeros((len(k), -(-k.shape[1] // CHUNK), k.shape[2], u.shape[2])), np.zeros(u.shape)
    for h in range(len(k)):
        state = np.zeros(states.shape[2:])
        for c in range(states.shape[1]):
            rows = (h, slice(c * CHUNK, (c + 1) * CHUNK))
            last, states[h, c] = g[rows][-1], state
            new[rows] = u[rows] - w[rows] @ state
            state = np.exp(last) * state + (k[rows] * np.exp(last - g[rows])[:, None]).T @ new[rows]
    return {"S": states, "N": new}


def _small(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    """Sums of decays that fall along a chunk."""
    g = -np.sort(rng.uniform(0, 2, (sizes["H"], sizes["L"])), axis=1).astype(np.float32)
    k, w = (rng.uniform(-0.2, 0.2, (sizes["H"], sizes["L"], sizes["D"])).astype(np.float16) for _ in range(2))
    return {"G": g, "K": k, "W": w}


def _falling(sizes: Sizes, rng: np.random.Generator) -> Arrays:
    return {"G": _small(sizes, rng)["G"]}


def _joined(chip: Chip, s: Sizes) -> Bound:
    d, e, rows = s["D"], s["E"], s["H"] * s["L"]
    read = rows * (HALF * (2 * d + e) + FLOAT) + HALF * s["H"] * -(-s["L"] // CHUNK) * d * e
    return _chunked(chip, s, [(CHUNK, CHUNK, d), (CHUNK, e, d), (CHUNK, e, CHUNK)], read, HALF * rows * e)


def _token_by_token(a: Arrays) -> Arrays:
    q, k, v, g, b = (a[name] for name in "QKVGB")
    state, out = np.zeros((len(k), k.shape[2], v.shape[2])), np.zeros(v.shape)
    for i in range(k.shape[1]):
        state = np.exp(g[:, i])[:, None, None] * state
        left = b[:, i, None] * (v[:, i] - np.einsum("hd,hde->he", k[:, i], state))
        state = state + k[:, i, :, None] * left[:, None]
        out[:, i] = np.einsum("hd,hde->he", q[:, i], state)
    return {"O": out}


def _in_one_launch(chip: Chip, s: Sizes) -> Bound:
    d, e, rows = s["D"], s["E"], s["H"] * s["L"]
    products = [(CHUNK, CHUNK, d), (CHUNK, CHUNK, d), (CHUNK, d, CHUNK), (CHUNK, e, CHUNK), (CHUNK, e, CHUNK)]
    products += [(CHUNK, e, d), (CHUNK, e, d), (d, e, CHUNK)]
    found = _chunked(chip, s, products, rows * (HALF * (2 * d + e) + 2 * FLOAT), HALF * rows * e)
    return Bound(found.times | {"V": vector(chip, rows * CHUNK * CHUNK / 2, "mul", "add")})


def _outputs(a: Arrays) -> Arrays:
    q, k, n, s, g = (a[name] for name in "QKNSG")
    out = np.zeros(n.shape)
    for h, c in np.ndindex(s.shape[:2]):
        rows = (h, slice(c * CHUNK, (c + 1) * CHUNK))
        p = np.tril(np.exp(np.minimum(g[rows][:, None] - g[rows], 0)) * (q[rows] @ k[rows].T))
        out[rows] = (q[rows] * np.exp(g[rows])[:, None]) @ s[h, c] + p @ n[rows]
    return {"O": out}


QWEN = {"Qwen3-Next, 32 heads of 128, 4096 tokens": {"H": 32, "L": 4096, "D": 128, "E": 128}}
DELTA = [{"H": 2, "L": 128, "D": 64, "E": 64}, {"H": 1, "L": 100, "D": 64, "E": 128}]
TURNS = "each chunk waits for the one before, and crosses from core to core several times: one head a core cannot fill the pipes"
EXAMPLES: list[Example] = [
    Example(
        "scans/cumsum_rows", lambda a: {"Y": np.cumsum(a["X"], axis=1)},
        [{"M": 7, "N": 256}, {"M": 4, "N": 96}, {"M": 1, "N": 1024}],
        {"16384 rows of 1024": {"M": 16384, "N": 1024}}, _streamed,
        "groups of 16 elements become columns and are summed down; sums of their totals go along the row", 1.5,
        held="V: each of four steps down the columns copies the rows that it keeps, and a dozen short instructions on the totals "
        "wait for one another; a product with a triangle of ones on the cube would do without",
    ),
    Example(
        "scans/cumsum_columns", lambda a: {"Y": np.cumsum(a["X"], axis=0)},
        [{"M": 64, "N": 256}, {"M": 50, "N": 200}, {"M": 1, "N": 8}],
        {"4096 x 8192": {"M": 4096, "N": 8192}}, _streamed,
        "sums of 2, 4, 8 rows and so on of windows read where they lie, made in their places; the last row goes on to the next "
        "tile", 1.5,
        held="64 blocks of 128 columns take two turns of 48 cores on the 910B2, where narrower ones load shorter rows",
    ),
    Example(
        "scans/linear_attention", _linear_attention,
        [{"H": 2, "S": 128, "D": 64, "E": 64}, {"H": 1, "S": 100, "D": 64, "E": 128}],
        {"32 heads of 128, 4096 tokens": {"H": 32, "S": 4096, "D": 128, "E": 128}}, _linear,
        "a head a block; scores and state go to the vector cores and back through the workspace in each trip", 1.5, held=TURNS,
    ),
    Example(
        "scans/selective_scan", _selective_scan,
        [{"L": 32, "D": 128, "N": 16}, {"L": 37, "D": 150, "N": 16}, {"L": 1, "D": 64, "N": 8}],
        {"Mamba, 8192 channels, 2048 tokens": {"L": 2048, "D": 8192, "N": 16, "BD": 176}}, _scanned,
        "the states of a block's channels stay in UB for all tokens; each token's row is put into its place", 1.75, _decaying,
        held="a dozen short instructions a token wait for one another, and starting them takes as long as their work; "
        "each token is a load of its own",
    ),
    Example(
        "scans/ssd", _ssd, [{"L": 128, "H": 2, "P": 64, "N": 64}, {"L": 100, "H": 1, "P": 64, "N": 128}],
        {"Mamba-2, 128 heads of 64, state 128, 4096 tokens": {"L": 4096, "H": 128, "P": 64, "N": 128}}, _states,
        "a head a block; decays are sums of each chunk on the vector cores, which scale what the four products take", 1.5, _steps,
        held="V, and MTE2 of the cube core, which brings B, C, X and four tiles from the workspace for each chunk; a fourth of "
        "V's work are running sums, short instructions that wait for one another, of which zeros in front would spare three "
        "masks, and 128 heads are six turns of 24 cores, where 5.3 would do",
        lengthy=True,
    ),
    Example(
        "scans/gated_delta_chunks", _chunks, DELTA, QWEN, _solved,
        "a chunk a vector core; the triangular system is solved by columns in UB: each row that is done is taken off those "
        "behind it, and read where it lies", 1.5, _keys,
        held="each row of the solution waits for the one before, so that V is busy for 63 % on the 910B2 and for 58 % on the "
        "950, and all rows are gone through for each, of which half are done: blocks of 16 rows that are joined by products "
        "would leave a fourth, two chunks side by side on a vector core would wait at the same time",
    ),
    Example(
        "scans/gated_delta_states", _between_chunks, DELTA, QWEN, _handed_on,
        "two halves of a head's columns side by side in a block, their states in UB; new values go to L1 for the second product "
        "through the workspace", 1.5, _small,
        held="each chunk waits for the one before, and crosses from core to core four times: it takes 6,000 cycles on "
        "the 910B2, in which no pipe is busy for half of the time, and 32 heads are two waves of 24 cores",
    ),
    Example(
        "scans/gated_delta_output", _outputs, DELTA, QWEN, _joined,
        "a chunk a block; scores pass the vector cores for their decays, and both products add up in L0C", 1.5, _falling,
        held="the loads of a chunk wait for the block before: chunks of one core overlap where it goes through several of them",
    ),
    Example(
        "scans/gated_delta", _token_by_token, DELTA[:1], {}, _in_one_launch,
        "a head a block, the state in UB; what passes between cube and vector cores in one order shares counters", 1.5, _keys,
        held="as `gated_delta_chunks`, whose solution by rows is most of it: a head a core, all chunks wait for one another",
        lengthy=True,
    ),
]  # fmt: skip
