"""Bank groups of UB: what an instruction reads at a time starts in different ones, where that takes nothing from others."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extract.kernels import CHIP, graph_of
from tile_eg.extract import Schedule, extract
from tile_eg.extract.banks import Banks, _grouped, _join_in_place, _Sides, banks_of
from tile_eg.extract.memory import lifetimes
from tile_eg.extract.packing import Life, Rivals, packed
from tile_eg.extract.placing import pack_apart, pack_level, rivals_of
from tile_eg.extract.schedule import Storage
from tile_eg.ir.machine import BANK_BYTES
from tile_eg.ops.types import F32, Level

SUM = """
kernel added[M=64, N=256, BM=16](A: f32[M, N], B: f32[M, N], W: f32[N]) -> C: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared a: f32[BM, N], b: f32[BM, N], w: f32[N]
  a = A[bx*BM, 0]
  b = B[bx*BM, 0]
  w = W[0]
  C[bx*BM, 0] = exp(a + b) * w[None, :]
}
"""

TURNED = (Path(__file__).parents[2] / "examples/rope/rope_halves.tile").read_text("utf-8")
LONG = """
kernel less[M=64, N=1024, BM=16](A: f32[M, N], V: f32[M]) -> C: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared a: f32[BM, N], v: f32[BM]
  a = A[bx*BM, 0]
  v = V[bx*BM]
  C[bx*BM, 0] = a - v[:, None]
}
"""


@lru_cache
def best(text: str) -> Schedule:
    return extract(graph_of(text), CHIP, k=1).best


def groups(schedule: Schedule, op: str) -> list[set[int]]:
    """For each instruction, the groups in which its operands start."""
    size = CHIP.vector.repeat_bytes
    return [{schedule.addresses[s][0] // size % 2 for s in step.srcs} for step, _ in schedule.walk() if step.node.op == op]


@pytest.mark.slow
@given(st.integers(0, 1), st.integers(0, 4096))
def test_an_address_moves_to_the_next_place_in_its_group(group, address):
    found = Banks({0: group}, 256).at(0, address)
    assert address <= found < address + 512 and found // 256 % 2 == group


def test_a_storage_without_a_group_stays_where_it_is():
    assert Banks({0: 1}, 256).at(1, 96) == 96


def test_what_fills_a_round_starts_one_so_that_results_are_not_in_the_way_of_what_is_read():
    size = CHIP.vector.repeat_bytes
    for text in (SUM, LONG):
        in_ub = [s for s in best(text).storages.values() if s.level is Level.UB]
        assert all(at % size == 0 for s in in_ub if s.slot_bytes >= size for at in best(text).addresses[s.id])


def test_two_tiles_that_are_added_start_in_different_groups():
    assert groups(best(SUM), "VBin") == [{0, 1}]


def test_a_tile_and_the_row_that_it_is_multiplied_by_start_in_different_groups():
    assert groups(best(SUM), "VBinC") == [{0, 1}]


def test_long_rows_and_the_two_copies_of_what_is_taken_from_them_start_a_bank_group():
    s = best(LONG)
    read = [step.srcs for step, _ in s.walk() if step.node.op == "VBinR"]
    assert read and all(s.addresses[x][0] % CHIP.vector.repeat_bytes == 0 for sources in read for x in sources)


def test_a_result_in_the_place_of_an_operand_shares_its_group():
    s = best(SUM)
    ids = sorted(i for i, storage in s.storages.items() if storage.level is Level.UB)
    (found,) = banks_of(s, CHIP, [p for p in combinations(ids, 2) if s.addresses[p[0]] == s.addresses[p[1]]])
    assert all(found.groups.get(a) == found.groups.get(b) for a, b in combinations(ids, 2) if s.addresses[a] == s.addresses[b])


def test_what_is_read_together_lies_apart_though_results_could_have_the_place_of_operands():
    assert set(map(frozenset, groups(best(TURNED), "VBin"))) == {frozenset({0, 1})}


@pytest.mark.slow
@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda p: p[0] < p[1]), max_size=8))
def test_groups_are_found_where_there_are_any(apart):
    groups, at_odds = _grouped([], sorted(apart), roomy=True)
    two_sided = any(all(side[a] != side[b] for a, b in apart) for side in product((0, 1), repeat=6))
    assert at_odds is not two_sided
    assert at_odds or all(groups[a] != groups[b] for a, b in apart)


def test_operands_lie_close_where_there_is_no_room_between_them():
    s = best(SUM)
    close = pack_level(s, lifetimes(s), Level.UB, 32, rivals_of(s, lifetimes(s), Level.UB))
    assert pack_apart(s, lifetimes(s), Level.UB, CHIP, close[1]) == close
    assert pack_apart(s, lifetimes(s), Level.UB, CHIP, close[1] + 1024) != close


def test_a_block_for_each_row_lies_in_another_part_of_ub_than_what_is_written_with_it():
    sizes = 64, BANK_BYTES // 2, BANK_BYTES // 2, BANK_BYTES // 2, 64
    storages = [Storage(i, f"s{i}", Level.UB, 1, n // 4, F32, None, slot_bytes=n) for i, n in enumerate(sizes)]
    early = Life(0, 3)
    group = list(zip(range(5), (early, Life(2, 9), early, early, Life(5, 6)), storages, strict=True))
    banks = Banks(results={4: {1: 100}})
    near, used = packed(group, 32, Rivals(group), banks)
    assert near[4] // BANK_BYTES == near[1] // BANK_BYTES and banks.waits(near, dict(enumerate(storages))) == 100
    far, more = packed(group, 32, Rivals(group), banks, aside=True)
    assert far[4] // BANK_BYTES != far[1] // BANK_BYTES and banks.waits(far, dict(enumerate(storages))) == 0
    assert more == used


def test_a_packing_is_taken_in_which_fewer_results_are_in_the_way_of_what_rows_are_subtracted_by():
    s = best(LONG)
    close = pack_level(s, lifetimes(s), Level.UB, 32, rivals_of(s, lifetimes(s), Level.UB))
    limit = CHIP.level_bytes(Level.UB)
    places, used, _ = pack_apart(s, lifetimes(s), Level.UB, CHIP, limit)
    (banks,) = banks_of(s, CHIP, [])
    assert used <= limit and banks.waits(places, s.storages) <= banks.waits(close[0], s.storages)


PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda p: p[0] != p[1]), max_size=10)


@given(PAIRS, PAIRS)
def test_pairs_in_place_share_a_group_unless_some_that_lie_apart_stand_as_they_do(pairs, apart):
    slow, quick = _Sides(), _Sides()
    for a, b in pairs:
        if not any({slow.of(a)[0], slow.of(b)[0]} == {slow.of(c)[0], slow.of(d)[0]} for c, d in apart):
            slow.join(a, b, False)
    _join_in_place(quick, pairs, apart)
    assert [slow.of(s) for s in range(10)] == [quick.of(s) for s in range(10)]
