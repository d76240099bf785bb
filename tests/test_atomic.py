"""Kernels whose blocks add to the same elements: compiled, run in any order, and called from Python."""

from __future__ import annotations

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.frontend.test_atomic import IN_A_LOOP, SUMS
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir.program import Instr, walk
from tile_eg.ir.program.parser import parse_program
from tile_eg.search.compiler import lower, meaning

pytestmark = pytest.mark.slow(but=1)

SPLIT_K = """
kernel split_k[M=100, N=80, K=512, S=4, BM=64, BN=64, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid (bx, by, bz) = (ceildiv(M, BM), ceildiv(N, BN), S)
  shared a: f16[BM, BK], b: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(K // S // BK) {
    a = A[bx*BM, bz*(K//S) + k*BK]
    b = B[bz*(K//S) + k*BK, by*BN]
    c += a @ b
  }
  atomic C[bx*BM, by*BN] += c
}
"""
RELU = SPLIT_K.replace("+= c", "+= relu(c)")
EXP = SPLIT_K.replace("+= c", "+= exp(c * 0.01)")
MANY = SUMS.replace("M=40", "M=1000")
HALVES = SPLIT_K.replace("C: f32", "C: f16")
SHORT = SUMS.replace("S: f32", "S: bf16")


def compiled(text):
    k = load_text(text).instantiate()
    return k, lower(k)


def numbers(k):
    random = np.random.default_rng(4)
    return {t.name: random.integers(-2, 3, t.shape).astype(t.dtype.numpy) for t in k.tensors if not t.output}


def added(low):
    return {n.op for core in ("AIC", "AIV") for n in walk(low.program.core(core)) if isinstance(n, Instr) and n.atomic}


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("text", [SPLIT_K, RELU, EXP, SUMS, MANY, IN_A_LOOP, HALVES])
@pytest.mark.parametrize("order", [None, 3])
def test_sums_are_those_of_the_source(text, order):
    k, low = compiled(text)
    given = numbers(k)
    (name,) = (t.name for t in k.tensors if t.output)
    assert np.allclose(low.run(given, order=order)[name], meaning(k, given)[name], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "op"), [(SPLIT_K, "fixpipe"), (RELU, "fixpipe"), (EXP, "ub_to_gm"), (SUMS, "ub_to_gm")])
def test_the_instruction_that_stores_adds(text, op):
    assert added(compiled(text)[1]) == {op}


@pytest.mark.parametrize(("text", "dtype"), [(SPLIT_K, "float"), (HALVES, "half"), (SHORT, "bfloat16_t")])
def test_additions_are_switched_on_around_the_store_only(text, dtype):
    lines = str(compiled(text)[1].source).splitlines()
    on, off = (next(i for i, line in enumerate(lines) if word in line) for word in (f"SetAtomicAdd<{dtype}>", "SetAtomicNone"))
    assert 0 < off - on <= 3


def test_the_host_says_which_outputs_count_before_the_launch():
    assert "added to what it holds" in str(compiled(SUMS)[1].host)


def test_what_a_call_passes_in_is_added_to():
    k, low = compiled(SUMS)
    given = numbers(k)
    begun = np.full(24, 7, np.float32)
    assert np.array_equal(low.run(given | {"S": begun})["S"], 7 + given["X"].sum(axis=0))


def test_an_output_that_is_stored_takes_no_array():
    k, low = compiled(SUMS.replace("atomic S[0] +=", "S[0] =").replace("M=40", "M=16"))
    with pytest.raises(TileError, match="the kernel has no input 'S'"):
        low.run(numbers(k) | {"S": np.zeros(24, np.float32)})


def test_a_program_that_adds_reads_back_as_it_was_printed():
    program = compiled(SPLIT_K)[1].program
    assert parse_program(str(program)) == program


def test_a_product_cannot_add_in_a_program_that_a_person_wrote():
    text = str(compiled(SPLIT_K)[1].program)
    line = next(line for line in text.splitlines() if line.strip().startswith("mmad"))
    with pytest.raises(TileError, match="mmad cannot add atomically here"):
        parse_program(text.replace(line, line.replace(" by ", " atomic by ", 1)))


@tile_eg.jit
def column_sums(M: int, N: int, BM: int = 16):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), S: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(M, BM), is_npu=True) as (bx, _):
            x = T.alloc_shared((BM, N), "float32")
            s = T.alloc_fragment((N,), "float32")
            T.copy(X[bx * BM, 0], x)
            T.reduce_sum(x, s, dim=0)
            T.tile.atomic_add(S[0], s)

    return main


@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_a_call_from_python_adds_to_the_array_that_it_passes():
    x, s = np.arange(40 * 24, dtype=np.float32).reshape(40, 24), np.ones(24, np.float32)
    column_sums(40, 24)(x, s)
    assert np.array_equal(s, 1 + 2 * x.sum(axis=0))  # (bx, _): by both vector cores
