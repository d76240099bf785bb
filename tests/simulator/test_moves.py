"""Instructions that move, order and convert elements of UB, against NumPy. One kernel picks the instruction at run time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import gm, kernel, run_vector

N = 512
CASES = {
    "gather": "Gather(fd, fa, offsets, 0u, 512u);",
    "gather rounds": "Gather(fd, fa, offsets, 64u, 40, 4, 8);",
    "pattern": "GatherMask(fd, fa, uint8_t(5), false, 0u, {1, 8, 8, 0}, kept);",
    "bits": "GatherMask(fd, fa, offsets, true, 70u, {1, 3, 10, 2}, kept);",
    "sort": "Sort32(fd, fa, offsets, 8);",
    "merge": """Sort32(fb, fa, offsets, 4); PipeBarrier<PIPE_V>();
MrgSort4Info info; for (int i = 0; i < 4; ++i) info.elementLengths[i] = 32; info.validBit = 15;
MrgSort(fd, MrgSortSrcList<float>(fb, fb[64], fb[128], fb[192]), info);""",
    "transpose": "Transpose(hd, ha);",
    "5hd": """LocalTensor<float> to[16], from[16];
for (int i = 0; i < 16; ++i) { to[i] = fd[i * 8]; from[i] = fa[i * 16]; }
TransDataTo5HD(to, from, TransDataTo5HDParams(false, false, 2, 16, 1));""",
    "index": "CreateVecIndex(fd, 3.0f, 512u);",
    "pairs": "ReducePairElem<ReduceType::SUM, float, float>(fd, fa, 64, 8, 1, 1, 8);",
    "compare": "Compare(bd, fa, fb, CMPMODE::LT, 64, 8, BinaryRepeatParams(1, 1, 1, 8, 8, 0));",
    "select": "Select(fd, offsets, fa, fb, SELMODE::VSEL_CMPMASK_SPR, 512);",
    "select masked": "Select(fd, offsets, fa, 2.5f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 40, 8, {1, 1, 1, 8, 8, 8});",
    "to bytes": "Cast(bd, ha, RoundMode::CAST_ROUND, 512);",
    "to nibbles": "Cast(bd.ReinterpretCast<int4b_t>(), ha, RoundMode::CAST_RINT, 512);",
    "deq": "SetDeqScale(half(0.5f)); Cast(hd, wa, RoundMode::CAST_NONE, 512);",
    "add relu cast": "AddReluCast(hd, fa, fb, 512);",
}  # fmt: skip
SOURCE = kernel(
    "A B O P D",
    "AIV_ONLY",
    f"""{gm("A B D", "float", N)} {gm("O", "uint32_t", N)} {gm("P", "int32_t", 8)}
LocalTensor<float> fd(TPosition::VECCALC, 0, {N}), fa(TPosition::VECCALC, 8192, {N}), fb(TPosition::VECCALC, 16384, {N});
LocalTensor<uint32_t> offsets(TPosition::VECCALC, 24576, {N});
auto hd = fd.ReinterpretCast<half>(), ha = fa.ReinterpretCast<half>(); auto bd = fd.ReinterpretCast<uint8_t>();
auto wa = fa.ReinterpretCast<int32_t>(); uint64_t kept = 0;
DataCopy(fd, gmD, {N}); DataCopy(fa, gmA, {N}); DataCopy(fb, gmB, {N}); DataCopy(offsets, gmO, {N}); ORDER(MTE2_V);
switch (gmP.GetValue(0)) {{
{"".join(f"case {i}: {{ {text} break; }}" + chr(10) for i, text in enumerate(CASES.values()))}}}
if (kept) {{ ORDER(V_S); fd.SetValue({N - 1}, float(kept)); ORDER(S_MTE3); }}
ORDER(V_MTE3); DataCopy(gmD, fd, {N});
""",
)
RNG = np.random.default_rng(0)
A, B = ((RNG.standard_normal(N) * 40).astype(np.float32) for _ in range(2))
BEFORE = np.full(N, -1, np.float32)


def run(case: str, offsets: np.ndarray | None = None, a: np.ndarray = A) -> np.ndarray:
    where = np.arange(N, dtype=np.uint32) if offsets is None else offsets.astype(np.uint32)
    p = np.array([list(CASES).index(case)] + [0] * 7, np.int32)
    done = run_vector(SOURCE, np.ascontiguousarray(a).view(np.float32), B, where, p, BEFORE, inout=True)
    assert done.ok, done
    return done.outputs[0]


def halves() -> np.ndarray:
    return (RNG.standard_normal(2 * N) * 100).astype(np.float16)


@pytest.mark.slow
def test_gather_takes_byte_offsets() -> None:
    picked = RNG.integers(0, N, N)
    np.testing.assert_array_equal(run("gather", picked * 4), A[picked])


@pytest.mark.slow
def test_gather_in_rounds_takes_offsets_one_round_after_the_other() -> None:
    picked = RNG.integers(0, N - 16, N)
    result = run("gather rounds", picked * 4)
    expected = BEFORE.copy().reshape(8, 64)
    expected[:4, :40] = A[picked + 16].reshape(8, 64)[:4, :40]
    np.testing.assert_array_equal(result, expected.ravel())


def test_a_fixed_pattern_packs_one_lane_of_four() -> None:
    result = run("pattern")
    np.testing.assert_array_equal(result[:128], A[2::4])
    assert result[-1] == 128


def test_a_pattern_in_ub_is_used_up_bit_by_bit() -> None:
    words = RNG.integers(0, 2**32, N, np.uint64).astype(np.uint32)
    result, bits = run("bits", words), np.unpackbits(words.view(np.uint8), bitorder="little")
    expected = np.concatenate([A[80 * r : 80 * r + 70][bits[512 * r : 512 * r + 70] == 1] for r in range(3)])
    np.testing.assert_array_equal(result[: len(expected)], expected)
    assert result[-1] == len(expected)


def test_32_scores_are_sorted_downwards_with_their_indices() -> None:
    result = run("sort").reshape(-1, 2)
    scores = A[:256].reshape(8, 32)
    order = np.argsort(-scores, axis=1, kind="stable")
    np.testing.assert_array_equal(result[:, 0].reshape(8, 32), np.take_along_axis(scores, order, 1))
    np.testing.assert_array_equal(
        np.ascontiguousarray(result[:, 1]).view(np.uint32).reshape(8, 32), order + 32 * np.arange(8)[:, None]
    )


def test_four_sorted_lists_become_one() -> None:
    np.testing.assert_array_equal(run("merge").reshape(-1, 2)[:128, 0], np.sort(A[:128])[::-1])


def test_a_square_of_16_is_transposed() -> None:
    a = halves()
    np.testing.assert_array_equal(run("transpose", a=a).view(np.float16)[:256].reshape(16, 16), a[:256].reshape(16, 16).T)


def test_sixteen_blocks_become_rows_of_sixteen() -> None:
    result = run("5hd").reshape(-1, 16)[:16]
    np.testing.assert_array_equal(result, A[:256].reshape(16, 16).T)


def test_an_index_counts_up() -> None:
    np.testing.assert_array_equal(run("index"), np.arange(3, 3 + N, dtype=np.float32))


def test_neighbours_are_added() -> None:
    np.testing.assert_array_equal(run("pairs")[:256], A[0::2] + A[1::2])


def test_a_comparison_against_one_round_for_all() -> None:
    bits = np.unpackbits(run("compare").view(np.uint8)[:64], bitorder="little")
    np.testing.assert_array_equal(bits, (A.reshape(8, 64) < B[:64]).ravel())


def test_select_by_register_uses_the_same_bits_each_round() -> None:
    words = RNG.integers(0, 2**32, N, np.uint64).astype(np.uint32)
    bits = np.unpackbits(words.view(np.uint8)[:8], bitorder="little").astype(bool)
    np.testing.assert_array_equal(run("select", words), np.where(np.tile(bits, 8), A, B))


def test_select_with_a_mask_leaves_other_lanes() -> None:
    words = RNG.integers(0, 2**32, N, np.uint64).astype(np.uint32)
    bits = np.unpackbits(words.view(np.uint8)[:64], bitorder="little").astype(bool).reshape(8, 64)
    expected = np.where(np.arange(64) < 40, np.where(bits, A.reshape(8, 64), np.float32(2.5)), -1)
    np.testing.assert_array_equal(run("select masked", words).reshape(8, 64), expected)


def test_halves_become_bytes_and_saturate() -> None:
    a = halves()
    rounded = np.floor(np.abs(a[:N].astype(np.float64)) + 0.5) * np.sign(a[:N])
    np.testing.assert_array_equal(run("to bytes", a=a).view(np.uint8)[:N], np.clip(rounded, 0, 255).astype(np.uint8))


def test_halves_become_nibbles_two_a_byte() -> None:
    a = (RNG.standard_normal(2 * N) * 6).astype(np.float16)
    packed, values = (
        run("to nibbles", a=a).view(np.uint8)[: N // 2],
        np.clip(np.rint(a[:N].astype(np.float64)), -8, 7).astype(int) & 15,
    )
    np.testing.assert_array_equal(packed, values[0::2] | values[1::2] << 4)


def test_whole_numbers_become_halves_by_the_deq_scale() -> None:
    whole = RNG.integers(-100000, 100000, N, np.int32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run("deq", a=whole).view(np.float16)[:N], (whole * 0.5).astype(np.float16))


def test_a_sum_is_cut_at_zero_and_narrowed() -> None:
    np.testing.assert_array_equal(run("add relu cast").view(np.float16)[:N], np.maximum(A + B, 0).astype(np.float16))


@pytest.mark.parametrize(
    ("call", "wanted"), [("Add(d, d, d, 8)", "Add does not take"), ("Duplicate(d, uint8_t(0), 8)", "Duplicate takes 16-bit")]
)
def test_an_element_type_that_the_chip_has_not_is_refused_by_name(call: str, wanted: str) -> None:
    source = kernel("A", "AIV_ONLY", f"LocalTensor<uint8_t> d(TPosition::VECCALC, 0, 64); {call};")
    with pytest.raises(Exception, match=wanted):
        run_vector(source, A)
