"""Collecting by blocks and by patterns, whole tensors transposed, and indices, in all their forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulator.forms import READ, SET_REGISTER, Form
from tests.simulator.kernels import gm, kernel, run_vector

few = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
N = 4096
UNSIGNED = {"uint16_t": np.uint16, "uint32_t": np.uint32}
NUMBERS = {"half": np.float16, "float": np.float32, "int16_t": np.int16, "int32_t": np.int32}


def source(dtype: str, body: str) -> str:
    text = f"""{gm("A C", dtype, N)} {gm("O", "uint32_t", N)} {gm("P", "int32_t", 32)} {READ}
LocalTensor<{dtype}> d(TPosition::VECCALC, 0, {N}), a(TPosition::VECCALC, 32768, {N});
LocalTensor<uint32_t> o(TPosition::VECCALC, 65536, {N});
DataCopy(d, gmC, {N}); DataCopy(a, gmA, {N}); DataCopy(o, gmO, {N}); ORDER(MTE2_V);
{body}
SetMaskNorm(); ResetMask(); ORDER(V_MTE3); DataCopy(gmC, d, {N});
"""
    return kernel("A O P C", "AIV_ONLY", text)


def run(text: str, words: list[int], a: np.ndarray, offsets: np.ndarray, before: np.ndarray) -> np.ndarray:
    p = np.array([*words, *[0] * (32 - len(words))], np.int64).astype(np.int32)
    done = run_vector(text, a, np.resize(offsets.astype(np.uint32), N), p, before, inout=True)
    assert done.ok, done
    return done.outputs[0]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", UNSIGNED)
@few
@given(repeat=st.integers(0, 6), block=st.integers(0, 2), more=st.integers(0, 3), seed=st.integers(0, 99))
def test_blocks_are_collected_by_byte_offsets(dtype: str, repeat: int, block: int, more: int, seed: int) -> None:
    """A block stride of 0 is one of 1."""
    rng, kind = np.random.default_rng(seed), UNSIGNED[dtype]
    a, before = (rng.integers(0, 60000, N).astype(kind) for _ in range(2))
    size = 32 // a.itemsize
    picked = rng.integers(0, N // size, 8 * repeat + 8)
    pitch = 8 * max(block, 1) + more
    expected = before.copy()
    for i in range(8 * repeat):
        to = (i // 8 * pitch + i % 8 * max(block, 1)) * size
        expected[to : to + size] = a[picked[i] * size : (picked[i] + 1) * size]
    text = source(dtype, "Gatherb(d, a, o, p[0], GatherRepeatParams(p[1], p[2]));")
    np.testing.assert_array_equal(run(text, [repeat, block, pitch], a, picked * 32, before), expected)


PATTERNS = {1: [0, 2], 2: [1, 3], 3: [0], 4: [1], 5: [2], 6: [3], 7: [0, 1, 2, 3]}  # lanes of each four
PACK = """uint64_t kept = 0; GatherMaskParams params(p[3], p[4], p[5], p[6]);
if (p[0]) { GatherMask(d, a, uint8_t(p[0]), bool(p[1]), p[2], params, kept); }
else { auto pattern = o.ReinterpretCast<UNSIGNED>(); GatherMask(d, a, pattern, bool(p[1]), p[2], params, kept); }
SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0); d.SetValue(4095, DTYPE(kept)); ORDER(S_MTE3);"""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["half", "float"])
@few
@given(
    fixed=st.integers(0, 7), counts=st.booleans(), lanes=st.integers(1, 300), block=st.integers(1, 2), repeat=st.integers(0, 4),
    stride=st.integers(0, 24), pattern_stride=st.integers(0, 8), seed=st.integers(0, 99),
)  # fmt: skip
def test_a_pattern_packs_the_lanes_that_it_names(
    dtype: str, fixed: int, counts: bool, lanes: int, block: int, repeat: int, stride: int, pattern_stride: int, seed: int
) -> None:
    """Whole rounds of 256 bytes, or the first `lanes` of each; a pattern of UB goes on by its own stride."""
    rng, kind = np.random.default_rng(seed), NUMBERS[dtype]
    a, before = (rng.integers(0, 2000, N).astype(kind) for _ in range(2))
    words, size = rng.integers(0, 2**32, N, np.uint64).astype(np.uint32), 32 // a.itemsize
    bits = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
    lane = np.arange(lanes if counts else 8 * size)
    kept = []
    for r in range(repeat):
        here = np.isin(lane % 4, PATTERNS[fixed]) if fixed else bits[r * pattern_stride * 256 + lane]
        kept.append(a[((r * stride + lane // size * block) * size + lane % size)[here]])
    packed = np.concatenate([*kept, np.zeros(0, kind)])
    expected = before.copy()
    expected[: len(packed)], expected[-1] = packed, len(packed)
    text = source(dtype, PACK.replace("UNSIGNED", "uint16_t" if a.itemsize == 2 else "uint32_t").replace("DTYPE", dtype))
    result = run(text, [fixed, int(counts), lanes, block, repeat, stride, pattern_stride], a, words, before)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "kind"), [("half", np.float16), ("float", np.float32), ("int8_t", np.int8)])
@pytest.mark.parametrize("to_nhwc", [True, False])
@pytest.mark.parametrize("shape", [(1, 3, 4, 8), (2, 5, 2, 16), (2, 1, 1, 32)])
def test_planes_become_pixels_and_back(dtype: str, kind: type, to_nhwc: bool, shape: tuple[int, int, int, int]) -> None:
    n, c, h, w = shape
    way = "TRANSPOSE_NCHW2NHWC" if to_nhwc else "TRANSPOSE_NHWC2NCHW"
    body = f"""LocalTensor<uint8_t> scratch(TPosition::VECCALC, 131072, 32768);
Transpose(d, a, scratch, TransposeParamsExt({n}, {c}, {h}, {w}, TransposeType::{way}));"""
    a = np.random.default_rng(0).integers(-100, 100, N).astype(kind)
    result = run(source(dtype, body), [], a, np.zeros(N), np.zeros(N, kind))
    held = a[: n * c * h * w].reshape((n, c, h, w) if to_nhwc else (n, h, w, c))
    wanted = held.transpose(0, 2, 3, 1) if to_nhwc else held.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(result[: held.size], wanted.ravel())


INDEX = """if (p[1] == 0) { CreateVecIndex(d, DTYPE(p[14]), uint32_t(p[2])); }
else if (p[1] == 2) { CreateVecIndex(d, DTYPE(p[14]), bits, p[7], p[8], p[11]); }
else { CreateVecIndex(d, DTYPE(p[14]), p[2], p[7], p[8], p[11]); }"""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", NUMBERS)
@few
@given(data=st.data(), first=st.integers(-20, 20))
def test_indices_count_on_from_round_to_round(dtype: str, data: st.DataObject, first: int) -> None:
    kind = NUMBERS[dtype]
    lanes, block = 256 // np.dtype(kind).itemsize, data.draw(st.integers(1, 2))
    way = data.draw(st.sampled_from(("count", "lanes", "bits", "counter")))
    count = data.draw(st.integers(1, lanes if way in ("lanes", "bits") else 3 * lanes))
    rounds = (8 * block + data.draw(st.integers(0, 2)), 8, 8)
    form = Form(way, count, data.draw(st.integers(1, 2**lanes - 1)), data.draw(st.integers(0, 3)), (block, 1, 1), rounds)
    expected = np.full(N, -7, kind)
    active = np.arange(count) if way == "count" else form.active(lanes)
    expected[form.elements(np.dtype(kind).itemsize)[0]] = first + active
    text = source(dtype, SET_REGISTER.replace("TYPE", dtype) + INDEX.replace("DTYPE", dtype))
    result = run(text, [*form.words(0), first], np.zeros(N, kind), np.zeros(N), np.full(N, -7, kind))
    np.testing.assert_array_equal(result, expected, err_msg=str(form))
