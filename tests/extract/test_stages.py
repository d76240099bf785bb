"""`stages=` is a constraint: what a loop loads has that many slots, in the loop as it is written; what cannot be kept is told."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.extract.kernels import graph_of
from tile_eg.emit import sync
from tile_eg.emit.sync.trace import FlagsRunOut
from tile_eg.errors import TileError
from tile_eg.explore import why_not
from tile_eg.extract.flags import shallower
from tile_eg.extract.schedule import Schedule
from tile_eg.frontend.text import load_text
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.search import search_options
from tile_eg.search.compiler import Lowered, check_kernel, lower, meaning

GEMM = """
kernel gemm[M=256, N=256, K=512, BM=128, BN=256, BK=64](A: f16[M, K], B: f16[K, N]) -> C: f16[M, N] {
  grid (bx, by) = (ceildiv(M, BM), ceildiv(N, BN))
  shared a: f16[BM, BK], b: f16[BK, BN]
  fragment c: f32[BM, BN] = 0
  for k in pipelined(ceildiv(K, BK)STAGES) {
    a = A[bx*BM, k*BK]
    b = B[k*BK, by*BN]
    c += a @ b
  }
  C[bx*BM, by*BN] = c
}
"""
IN_PLACE = """
kernel in_place[M=1024, N=1024, BM=32, BN=128](X: f32[M, N], W: f32[N]) -> (Y: f32[M, N], Z: f32[M]) {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, BN], w: f32[BN]
  fragment s: f32[BM] = 0
  for j in pipelined(ceildiv(N, BN)STAGES) {
    x = X[bx*BM, j*BN]
    w = W[j*BN]
    x = x * w[None, :]
    x = x + 1
    s = s + rowsum(x)
    Y[bx*BM, j*BN] = x
  }
  Z[bx*BM] = s
}
"""
ATTENTION = """
kernel attention[S=256, D=64, BM=64, BN=64](Q: f16[S, D], K: f16[S, D], V: f16[S, D]) -> O: f16[S, D] {
  grid bx = ceildiv(S, BM)
  shared q: f16[BM, D], k: f16[BN, D], v: f16[BN, D], p: f16[BM, BN]
  fragment s: f32[BM, BN], o: f32[BM, D] = 0, l: f32[BM] = 0
  q = Q[bx*BM, 0]
  for j in pipelined(ceildiv(S, BN)STAGES) {
    k = K[j*BN, 0]
    s = q @ k.T
    s = exp(s * 0.125)
    l = l + rowsum(s)
    p = s
    v = V[j*BN, 0]
    o = o + p @ v
  }
  O[bx*BM, 0] = o / l[:, None]
}
"""
TWICE = """
kernel twice[M=256, N=2048, BM=32, BN=256](X: f32[M, N]) -> Y: f32[M, N] {
  grid bx = ceildiv(M, BM)
  shared x: f32[BM, BN]
  fragment l: f32[BM] = 0
  for j in pipelined(ceildiv(N, BN)STAGES) {
    x = X[bx*BM, j*BN]
    l = l + rowsum(exp(x))
  }
  for j in pipelined(ceildiv(N, BN)STAGES) {
    x = X[bx*BM, j*BN]
    Y[bx*BM, j*BN] = exp(x) / l[:, None]
  }
}
"""
KEYS_AS_VALUES = ATTENTION.replace("    v = V[j*BN, 0]\n", "").replace("p @ v", "p @ k").replace(", V: f16[S, D]", "")
"""One tile is an operand of both products of a trip, between which the vector cores work."""
LOADED = {GEMM: {"a", "b"}, IN_PLACE: {"x", "w"}, ATTENTION: {"k", "v"}}
NAMES = {GEMM: "gemm", IN_PLACE: "in place", ATTENTION: "attention"}


@cache
def made(text: str, stages: int) -> Lowered:
    source = text.replace("STAGES", f", stages={stages}" if stages else "")
    return lower(load_text(source, "k.tile").instantiate())


def slots(schedule: Schedule) -> dict[str, set[int]]:
    """How many slots the buffers have that loops load from tensors."""
    found: dict[str, set[int]] = {}
    for step, around in schedule.walk():
        if around and step.node.op.startswith("GmTo"):
            storage = schedule.storages[step.dst]  # type: ignore[index]
            found.setdefault(storage.name, set()).add(storage.slots)
    return found


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("text", LOADED, ids=NAMES.get)
def test_what_a_loop_loads_has_as_many_slots_as_its_author_says(text: str, stages: int) -> None:
    for candidate in made(text, stages).candidates:
        assert slots(candidate.schedule) == dict.fromkeys(LOADED[text], {stages})


@pytest.mark.slow
def test_the_text_has_the_slots_too() -> None:
    program = str(made(GEMM, 4).program).splitlines()
    assert [line.split("slots ")[1][0] for line in program if line.startswith(("buffer a_l1", "buffer b_l1"))] == ["4", "4"]


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(("text", "stages"), [(GEMM, 1), (GEMM, 4), (IN_PLACE, 3), (ATTENTION, 2)])
def test_the_numbers_are_right(text: str, stages: int) -> None:
    lowered = made(text, stages)
    rng = np.random.default_rng(0)
    given = [t for t in lowered.kernel.tensors if not t.output]
    arrays = {t.name: rng.uniform(-1, 1, t.shape).astype(numpy_dtype(t.dtype)) for t in given}
    run, meant = lowered.run(arrays, order=1), meaning(lowered.kernel, arrays)
    assert all(np.allclose(run[name].astype(float), meant[name].astype(float), rtol=4e-3, atol=4e-3) for name in meant)


@pytest.mark.slow
def test_without_stages_the_search_loads_deeper_tiles_than_the_loop_as_written() -> None:
    assert "GmToL1Coarsened" in str(made(GEMM, 0).schedule) and "Coarsened" not in str(made(GEMM, 2).schedule)


@pytest.mark.slow
def test_one_stage_is_no_overlap() -> None:
    graph = graph_of(ATTENTION.replace("STAGES", ", stages=1"))
    assert {n.payload[-1] for n in graph.nodes if n.op in ("Skew", "Buffers")} == {0, 1}


def test_a_part_of_a_long_sum_has_trips_for_all_its_stages() -> None:
    """A loop of eight trips: with three slots, parts of two trips and of one are not offered."""
    graph = graph_of(GEMM.replace("STAGES", ", stages=3"))
    assert {g.payload[0] for g in graph.grids if g.op in ("Parts", "Added")} == {2}


@pytest.mark.slow
def test_explain_says_whose_depth_it_is() -> None:
    shown = str(made(GEMM, 4).explanation)
    assert "for k in 8, stages=4 as written" in shown
    assert "buffers of a in L1  4, as written" in shown and "buffers of b in L1  4, as written" in shown


def test_why_not_names_the_author() -> None:
    assert "not offered: the loop is written with stages=4" in str(why_not(made(GEMM, 4), "buffers=2"))


def test_fewer_trips_than_stages_get_a_note() -> None:
    kernel = load_text(GEMM.replace("STAGES", ", stages=4"), "k.tile").instantiate({"BK": 256})
    (note,) = check_kernel(kernel)
    assert note.text == "this loop has 2 trips, so that 2 of its 4 stages are used"
    assert note.span is not None and note.span.line == 6


@pytest.mark.slow
def test_where_flags_run_out_a_note_says_so_in_bytes() -> None:
    """Two loops of six slots each: the vector core has six ids for each direction, and what is stored takes one."""
    lowered = made(TWICE, 6)
    assert len(lowered.notes) == 2
    assert "`x` has 5 slots of 16,384 bytes, not the 6 that the source asks for: flag ids run out" in lowered.notes[0].text


@pytest.mark.slow
def test_loops_one_behind_the_other_share_their_flags() -> None:
    assert not made(TWICE, 3).notes


def test_slots_that_were_asked_for_go_only_from_a_schedule_that_yields() -> None:
    schedule = made(GEMM, 4).candidates[0].schedule
    assert not shallower(schedule)
    schedule.yielding = True
    assert shallower(schedule) and sorted(map(max, slots(schedule).values())) == [3, 4]
    made.cache_clear()


@pytest.mark.slow
def test_where_memory_is_too_small_the_error_says_the_bytes() -> None:
    kernel = load_text(GEMM.replace("STAGES", ", stages=4"), "k.tile").instantiate({"K": 1024, "BK": 256})
    with pytest.raises(TileError) as error:
        lower(kernel)
    assert error.value.message.startswith("the tiles need 786,432 bytes of L1 at once")
    assert ("loop k is written with stages=4: each tile that it loads has 4 slots", None) in error.value.notes
    assert error.value.help.endswith("or give fewer stages")


@pytest.mark.slow
def test_sizes_that_are_found_leave_room_for_the_stages() -> None:
    template = load_text(GEMM.replace("STAGES", ", stages=4"), "k.tile")
    found = lower(template.instantiate({"K": 2048, "BK": "auto"}), search=search_options(effort="none"))
    assert slots(found.candidates[0].schedule) == {"a": {4}, "b": {4}}


@pytest.mark.slow
def test_where_no_flags_are_found_at_all_the_stages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def synchronise(*_: object) -> None:
        raise sync.SyncError("flag ids run out")

    monkeypatch.setattr(sync, "synchronise", synchronise)
    with pytest.raises(TileError, match="no schedule of this kernel can be carried out: flag ids run out") as error:
        lower(load_text(GEMM.replace("STAGES", ", stages=4"), "k.tile").instantiate())
    assert "give fewer stages, or none" in error.value.help and "k (stages=4)" in error.value.help


@pytest.mark.slow
def test_where_no_flags_are_left_the_way_out_is_two_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    def synchronise(*_: object) -> None:
        raise FlagsRunOut("flag ids run out: no sharing was found")

    monkeypatch.setattr(sync, "synchronise", synchronise)
    with pytest.raises(TileError, match="no schedule of this kernel can be carried out: flag ids run out") as error:
        lower(load_text(GEMM.replace("STAGES", ""), "k.tile").instantiate())
    assert "part the kernel into two launches" in error.value.help


@pytest.mark.slow
def test_a_skew_that_needs_more_slots_than_are_written_leaves_the_others() -> None:
    assert slots(made(KEYS_AS_VALUES, 2).candidates[0].schedule) == {"k": {2}}
