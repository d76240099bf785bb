"""From schedules to instructions: every half, step and trip does its part of the work, once."""

from __future__ import annotations

from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extract.kernels import CHIP, kernel
from tile_eg.emit.lower.cuts import part
from tile_eg.emit.lower.storages import half
from tile_eg.ir import index as ix
from tile_eg.ir.program import Instr, Loop, Program, Tile, When, walk
from tile_eg.search import search_options
from tile_eg.search.compiler import lower

FLASH = """
kernel flash[S=256, D=64, BM=64, BN=64](Q: f16[S, D], K: f16[S, D], V: f16[S, D]) -> O: f16[S, D] {
  grid bx = ceildiv(S, BM)
  shared   q: f16[BM, D], k: f16[BN, D], v: f16[BN, D], p: f16[BM, BN]
  fragment s: f32[BM, BN], o: f32[BM, D] = 0
  fragment m: f32[BM] = -inf, l: f32[BM] = 0, m_old: f32[BM], r: f32[BM]
  q = Q[bx*BM, 0]
  for j in pipelined(ceildiv(S, BN)) {
    k = K[j*BN, 0]
    s = (q @ k.T) * 0.125
    m_old = m
    m = max(m, rowmax(s))
    r = exp(m_old - m)
    s = exp(s - m[:, None])
    l = l * r + rowsum(s)
    p = s
    v = V[j*BN, 0]
    o = o * r[:, None] + p @ v
  }
  O[bx*BM, 0] = o / l[:, None]
}
"""

GEMM = """
kernel gemm[M=100, N=300, K=600, BM=128, BN=256, BK=256](A: f16[M, K], B: f16[K, N]) -> C: f32[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, BK], b: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }
  C[bx*BM, by*BN] = c
}
"""


@lru_cache
def program(text: str) -> Program:
    """A block does all of its sums, of operands as they are."""
    return lower(kernel(text), CHIP.name, search=search_options(without=["split-k", "split-k-atomic", "packed-operand"])).program


@given(st.integers(1, 64), st.data())
def test_two_halves_are_the_whole(rows, data):
    size = 2 * rows
    valid = data.draw(st.integers(0, size))
    first, second = (ix.evaluate(half(ix.var("valid"), size), {"valid": valid, ix.SUB: sub}) for sub in (0, 1))
    assert first == min(valid, rows) and first + second == valid


@pytest.mark.slow
@given(st.integers(1, 300), st.integers(1, 64), st.data())
def test_the_steps_of_a_product_cover_what_is_valid_and_no_more(size, step, data):
    valid = data.draw(st.integers(0, size))
    steps = -(-size // step)
    index = ix.var("i") if steps > 1 else ix.ZERO
    parts = [ix.evaluate(part(ix.var("valid"), index, step, size), {"valid": valid, "i": i}) for i in range(steps)]
    assert sum(parts) == valid and all(0 <= p <= step for p in parts)


def guards(p: Program) -> list[tuple[Loop, ix.Expr]]:
    """Every guarded piece of a skewed loop with the loop around it."""
    loops = [n for core in (p.cube, p.vector) for n in walk(core) if isinstance(n, Loop)]
    return [(loop, n.condition) for loop in loops for n in loop.body if isinstance(n, When)]


@pytest.mark.slow
def test_every_part_of_a_skewed_loop_runs_once_a_trip():
    found = guards(program(FLASH))
    runs = {sum(ix.evaluate(condition, {loop.var: t}) for t in range(loop.trips)) for loop, condition in found}
    assert found and runs == {4}


@pytest.mark.slow
def test_a_skewed_loop_runs_longer_than_its_trips():
    assert {loop.trips > 4 for loop, _ in guards(program(FLASH))} == {True}


def products(p: Program) -> list[Instr]:
    return [n for n in walk(p.cube) if isinstance(n, Instr) and n.op == "mmad"]


def steps_of(p: Program) -> list[dict[str, int]]:
    """The values of all loop variables at every Mmad, in the order in which they run."""
    out: list[dict[str, int]] = []

    def run(nodes, env):
        for n in nodes:
            if isinstance(n, Loop):
                for t in range(n.trips):
                    run(n.body, {**env, n.var: t})
            elif isinstance(n, Instr) and n.op == "mmad":
                out.append(env)

    run(p.cube, {})
    return out


@pytest.mark.slow
def test_an_accumulator_is_overwritten_by_its_first_product_and_added_to_after():
    p = program(GEMM)
    (mmad,) = products(p)
    assert isinstance(mmad.dst, Tile)
    begun: dict[tuple[int, int], int] = {}
    for env in steps_of(p):
        place = ix.evaluate(mmad.dst.row, env), ix.evaluate(mmad.dst.col, env)
        assert ix.evaluate(mmad.init, env) == (place not in begun)
        begun[place] = 1


@pytest.mark.slow
def test_steps_of_a_product_take_turns_in_l0():
    p = program(GEMM)
    (mmad,) = products(p)
    left = mmad.srcs[0]
    assert isinstance(left, Tile)
    turns = [ix.evaluate(left.slot, env) for env in steps_of(p)]
    assert turns == [i % 2 for i in range(len(turns))]


@pytest.mark.slow
def test_the_depth_of_all_steps_is_all_of_k():
    p = program(GEMM)
    (mmad,) = products(p)
    depth: dict[tuple[int, int], int] = {}
    for env in steps_of(p):
        place = ix.evaluate(mmad.dst.row, env), ix.evaluate(mmad.dst.col, env)
        depth[place] = depth.get(place, 0) + ix.evaluate(mmad.depth, env | {ix.BLOCK: 0})
    assert set(depth.values()) == {600}


@pytest.mark.slow
def test_instructions_know_the_rules_that_made_them():
    instrs = [n for core in (program(FLASH).cube, program(FLASH).vector) for n in walk(core) if isinstance(n, Instr)]
    assert instrs and all(i.rules for i in instrs)


@pytest.mark.slow
def test_buffers_have_names_of_their_own():
    names = [b.name for b in program(FLASH).buffers]
    assert len(names) == len(set(names))


WHOLE_AND_HALF = """
kernel both[M=128, N=128](X: f32[8, N], W: f32[M, N]) -> (Y: f32[M, N], Z: f32[N]) {
  grid bx = 1
  shared x: f32[8, N], w: f32[M, N]
  x = X[0, 0]
  Z[0] = colsum(x)
  w = W[0, 0]
  Y[0, 0] = exp(w)
}
"""


def test_what_both_vector_cores_hold_is_stored_by_one():
    p = program(WHOLE_AND_HALF)
    stores = {n.dst.tensor: n.when for n in walk(p.vector) if isinstance(n, Instr) and n.op == "ub_to_gm"}
    assert stores["Y"] == ix.ONE
    assert [ix.evaluate(stores["Z"], {ix.SUB: sub}) for sub in (0, 1)] == [1, 0]
