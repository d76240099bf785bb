"""Flags and barriers: where a dependence needs one and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tile_eg.emit.sync.check import races
from tile_eg.emit.sync.planning import SyncError, synchronise
from tile_eg.ir.index import bounds, const
from tile_eg.ir.program import CrossSet, CrossWait, Instr, Loop, Node, PipeBarrier, Program, SetFlag, Tile, WaitFlag, When, walk
from tile_eg.ir.program.parser import parse_program
from tile_eg.ir.program.text import node_text

from .random_programs import fused_programs, vector_programs

FLAGS = (SetFlag, WaitFlag, PipeBarrier, CrossSet, CrossWait)
RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def example(name: str) -> Program:
    return parse_program((Path(__file__).parent / "programs" / f"{name}.program").read_text(), f"{name}.program")


def vector(body: str, buffers: str = "") -> Program:
    """A vector kernel over buffers a, b, c of 8 x 8 f32 at addresses of their own."""
    text = "program k on 910B2 as AIV_ONLY, blocks 1, workspace 0\ntensor A: f32[64, 8]\ntensor C: f32[64, 8] output\n"
    for n, name in enumerate("abc"):
        text += f"buffer {name}: UB f32 8 x 8 nd, pitch 8, slots 1 at {n * 256}\n"
    return parse_program(f"{text}{buffers}\ncube {{ }}\nvector {{ {body} }}", "k.program")


def cube(body: str, m: int, n: int) -> Program:
    text = f"""program k on 910B2 as AIC_ONLY, blocks 1, workspace 0
buffer a: L0A f16 {m} x 16 zz, pitch 16, slots 1 at 0
buffer b: L0B f16 16 x {n} zn, pitch {n}, slots 1 at 0
buffer c: L0C f32 {m} x {n} nz, pitch {n}, slots 1 at 0
"""
    return parse_program(f"{text}cube {{ {body} }}\nvector {{ }}", "k.program")


def shown(p: Program, core: str = "vector") -> list[str]:
    """The flags, barriers and ops of a stream, one short text each."""
    return [n.op if isinstance(n, Instr) else node_text(n) for n in walk(getattr(p, core)) if not isinstance(n, Loop | When)]


def without_one(nodes: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    """The stream with one flag or barrier left out, for each of them."""
    for k, n in enumerate(nodes):
        if isinstance(n, Loop | When):
            yield from ((*nodes[:k], replace(n, body=b), *nodes[k + 1 :]) for b in without_one(n.body))
        elif isinstance(n, FLAGS):
            yield (*nodes[:k], *nodes[k + 1 :])


NAMES = ["gemm", "vector_add_exp", "flash_attention", "softmax_rows"]


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_no_race(name: str) -> None:
    assert races(example(name)) != []
    assert races(synchronise(example(name))) == []


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", NAMES)
def test_every_flag_and_barrier_of_an_example_is_needed(name: str) -> None:
    p = synchronise(example(name))
    for core in ("cube", "vector"):
        for nodes in without_one(getattr(p, core)):
            assert races(replace(p, **{core: nodes})) != []


@pytest.mark.slow
@RELAXED
@given(vector_programs())
def test_any_program_of_one_core_can_be_ordered(p: Program) -> None:
    try:
        made = synchronise(p)
    except SyncError as error:
        assume("ids" not in str(error))
        raise
    assert races(made) == []


@pytest.mark.slow
@RELAXED
@given(fused_programs())
def test_any_ring_between_the_cores_can_be_ordered(p: Program) -> None:
    assert races(synchronise(p)) == []


@pytest.mark.slow
@RELAXED
@given(fused_programs(), st.data())
def test_no_flag_of_a_ring_between_the_cores_is_left_over(p: Program, data: st.DataObject) -> None:
    made = synchronise(p)
    core = data.draw(st.sampled_from(["cube", "vector"]))
    rest = list(without_one(getattr(made, core)))
    assume(rest)
    assert races(replace(made, **{core: data.draw(st.sampled_from(rest))})) != []


def test_synchronising_keeps_the_instructions_and_their_order() -> None:
    p = example("flash_attention")
    kept = [n for n in walk(synchronise(p).vector) if isinstance(n, Instr)]
    assert kept == [n for n in walk(p.vector) if isinstance(n, Instr)]


def test_a_flag_stands_behind_the_producer_and_before_the_consumer() -> None:
    p = synchronise(
        vector("gm_to_ub a <- A{0 : 8} : 8 x 8 gm_to_ub b <- A{64 : 8} : 8 x 8 vexp c <- a : 8 x 8 vexp c <- b : 8 x 8")
    )
    assert shown(p) == [
        "gm_to_ub", "set MTE2 -> V id 0", "gm_to_ub", "set MTE2 -> V id 1",
        "wait MTE2 -> V id 0", "vexp", "wait MTE2 -> V id 1", "barrier V", "vexp",
    ]  # fmt: skip


def test_a_later_flag_serves_an_earlier_producer_where_the_consumer_needs_both() -> None:
    p = synchronise(vector("gm_to_ub a <- A{0 : 8} : 8 x 8 gm_to_ub b <- A{64 : 8} : 8 x 8 vadd c <- a, b : 8 x 8"))
    assert shown(p) == ["gm_to_ub", "gm_to_ub", "set MTE2 -> V id 0", "wait MTE2 -> V id 0", "vadd"]


def test_independent_vector_instructions_have_no_barrier() -> None:
    p = synchronise(vector("vdup a : 8 x 8 vdup b : 8 x 8 vdup c : 8 x 8"))
    assert shown(p) == ["vdup", "vdup", "vdup"]


def test_one_barrier_serves_several_dependences() -> None:
    p = synchronise(vector("vdup a : 8 x 8 vdup b : 8 x 8 vadd c <- a, b : 8 x 8"))
    assert shown(p) == ["vdup", "vdup", "barrier V", "vadd"]


def test_a_dependence_round_the_back_edge_has_its_barrier_in_the_loop() -> None:
    p = synchronise(vector("vdup a : 8 x 8 for i in 4 { vexp a <- a : 8 x 8 }"))
    assert shown(p) == ["vdup", "barrier V", "vexp"]


def test_a_ring_lets_the_loads_run_ahead_by_its_slots() -> None:
    ring = "buffer r: UB f32 8 x 8 nd, pitch 8, slots 3 at 1024, 1280, 1536"
    body = "for i in 9 { gm_to_ub r[i % 3] <- A{i * 64 : 8} : 8 x 8 vexp a <- r[i % 3] : 8 x 8 }"
    p = synchronise(vector(body, ring))
    assert [n.id.value for n in p.vector if isinstance(n, SetFlag)] == [0, 1, 2]
    assert [n.id.value for n in p.vector if isinstance(n, WaitFlag)] == [0, 1, 2]
    assert "wait V -> MTE2 id (i % 3)" in shown(p)


def test_a_ring_that_never_comes_round_needs_no_flag_back() -> None:
    ring = "buffer r: UB f32 8 x 8 nd, pitch 8, slots 3 at 1024, 1280, 1536"
    body = "for i in 3 { gm_to_ub r[i % 3] <- A{i * 64 : 8} : 8 x 8 vexp a <- r[i % 3] : 8 x 8 }"
    assert not [n for n in walk(synchronise(vector(body, ring)).vector) if isinstance(n, SetFlag) and n.src == "V"]


def test_buffers_that_share_addresses_are_ordered_like_one() -> None:
    p = synchronise(
        vector("vexp b <- a : 8 x 8 gm_to_ub r <- A{0 : 8} : 8 x 8", "buffer r: UB f32 8 x 8 nd, pitch 8, slots 1 at 128")
    )
    assert shown(p) == ["vexp", "set V -> MTE2 id 0", "wait V -> MTE2 id 0", "gm_to_ub"]


def test_stores_to_different_rows_need_no_order_and_stores_to_the_same_do() -> None:
    apart = vector("for i in 4 { ub_to_gm C{i * 64 : 8} <- a : 8 x 8 }")
    same = vector("for i in 4 { ub_to_gm C{0 : 8} <- a : 8 x 8 }")
    assert shown(synchronise(apart)) == ["ub_to_gm"]
    assert shown(synchronise(same)) == ["barrier MTE3", "ub_to_gm"]


def bytes_of(stores: str) -> list[str]:
    text = f"""program k on 910B2 as AIV_ONLY, blocks 2, workspace 0
tensor C: i8[64, 8] output
buffer a: UB i8 1 x 32 nd, pitch 32, slots 1 at 0

cube {{ }}
vector {{ {stores} }}"""
    return shown(synchronise(parse_program(text, "k.program")))


def test_stores_of_the_two_bytes_of_a_pair_have_an_order() -> None:
    store = "ub_to_gm C{block * 8 + %d : 8} <- a : 1 x %d"
    assert bytes_of(f"{store % (0, 1)} {store % (1, 1)}") == ["ub_to_gm", "barrier MTE3", "ub_to_gm"]


def test_stores_of_whole_pairs_of_bytes_need_no_order() -> None:
    store = "ub_to_gm C{block * 8 + %d : 8} <- a : 1 x %d"
    assert bytes_of(f"{store % (0, 2)} {store % (2, 3)}") == ["ub_to_gm", "ub_to_gm"]


def test_a_load_waits_for_the_store_to_the_same_tensor() -> None:
    p = synchronise(vector("ub_to_gm C{0 : 8} <- a : 8 x 8 gm_to_ub b <- C{0 : 8} : 8 x 8"))
    assert shown(p) == ["ub_to_gm", "set MTE3 -> MTE2 id 0", "wait MTE3 -> MTE2 id 0", "gm_to_ub"]


ACCUMULATE = "for k in 4 { mmad c <- a, b : %s x %s x 16 init k < 1 }"


def test_small_accumulating_products_need_a_barrier_and_large_ones_do_not() -> None:
    assert shown(synchronise(cube(ACCUMULATE % (16, 64), 16, 64)), "cube") == ["barrier M", "mmad"]
    assert shown(synchronise(cube(ACCUMULATE % (160, 16), 160, 16)), "cube") == ["mmad"]


def test_a_tail_that_may_be_small_counts_as_small() -> None:
    assert shown(synchronise(cube(ACCUMULATE % ("min(160, 200 - k * 160)", 16), 160, 16)), "cube") == ["barrier M", "mmad"]


def test_products_into_different_windows_of_an_accumulator_are_independent() -> None:
    p = cube("mmad c <- a, b : 16 x 16 x 16 mmad c[0; 0, 16] <- a, b : 16 x 16 x 16", 16, 32)
    assert shown(synchronise(p), "cube") == ["mmad", "mmad"]


def test_flags_of_a_guarded_instruction_stand_in_its_guard() -> None:
    ring = "buffer r: UB f32 8 x 8 nd, pitch 8, slots 2 at 1024, 1280"
    body = """for i in 6 { if i < 5 { gm_to_ub r[i % 2] <- A{i * 64 : 8} : 8 x 8 }
                           if 0 < i { vexp a <- r[(i - 1) % 2] : 8 x 8 } }"""
    loop = next(n for n in synchronise(vector(body, ring)).vector if isinstance(n, Loop))
    load, use = loop.body
    assert isinstance(load, When)
    assert isinstance(use, When)
    assert [type(n) for n in load.body] == [WaitFlag, Instr, SetFlag]
    assert [type(n) for n in use.body] == [WaitFlag, PipeBarrier, Instr, SetFlag]


def test_a_guard_that_only_the_block_decides_keeps_its_flags_outside() -> None:
    p = synchronise(vector("if block < 1 { gm_to_ub a <- A{0 : 8} : 8 x 8 } vexp b <- a : 8 x 8"))
    assert [type(n) for n in p.vector] == [When, SetFlag, WaitFlag, Instr]


def test_no_barrier_stops_all_pipes() -> None:
    for name in NAMES:
        p = synchronise(example(name))
        assert all(n.pipe != "ALL" for n in (*walk(p.cube), *walk(p.vector)) if isinstance(n, PipeBarrier))


def test_attention_needs_no_flag_for_a_free_slot_between_the_cores() -> None:
    """The vector core read S before it made P, and the cube core waits for P before it writes that slot of S again."""
    p = synchronise(example("flash_attention"))
    counts = [sum(isinstance(n, kind) for n in (*walk(p.cube), *walk(p.vector))) for kind in (CrossSet, CrossWait)]
    assert counts == [3, 3]


def test_a_ring_that_nothing_else_orders_has_a_flag_for_free_slots() -> None:
    text = """program k on 910B2 as MIX_AIC_1_2, blocks 1, workspace 4096
buffer c: L0C f32 16 x 16 nz, pitch 16, slots 1 at 0
buffer w: WS f32 16 x 16 nd, pitch 16, slots 2 at 0, 1024
buffer u: UB f32 16 x 16 nd, pitch 16, slots 2 at 0, 1024
cube { for i in 6 { fixpipe w[i % 2] <- c : 16 x 16 } }
vector { for i in 6 { gm_to_ub u[i % 2] <- w[i % 2] : 16 x 16 } }"""
    p = synchronise(parse_program(text, "k"))
    assert [node_text(n) for n in p.vector if isinstance(n, CrossSet)] == ["cross_set MTE2 1"] * 2
    assert [node_text(n) for n in p.cube if isinstance(n, CrossWait)] == ["cross_wait 1"] * 2
    assert races(p) == []


def test_uses_of_a_ring_that_do_not_pair_off_meet_around_the_whole_loop() -> None:
    text = """program k on 910B2 as MIX_AIC_1_2, blocks 1, workspace 4096
buffer c: L0C f32 16 x 16 nz, pitch 16, slots 1 at 0
buffer w: WS f32 16 x 16 nd, pitch 16, slots 2 at 0, 1024
buffer u: UB f32 16 x 16 nd, pitch 16, slots 1 at 0
cube { for i in 2 { fixpipe w[i % 2] <- c : 16 x 16 } }
vector { gm_to_ub u <- w[0] : 16 x 16 gm_to_ub u <- w[1] : 16 x 16 gm_to_ub u <- w[0] : 16 x 16 }"""
    assert races(synchronise(parse_program(text, "k"))) == []


def test_a_slot_that_is_filled_again_before_the_other_core_reads_it_has_no_order() -> None:
    text = """program k on 910B2 as MIX_AIC_1_2, blocks 1, workspace 4096
buffer c: L0C f32 16 x 16 nz, pitch 16, slots 1 at 0
buffer w: WS f32 16 x 16 nd, pitch 16, slots 1 at 0
buffer u: UB f32 16 x 16 nd, pitch 16, slots 1 at 0
cube { for i in 2 { fixpipe w <- c : 16 x 16 } }
vector { for i in 3 { gm_to_ub u <- w : 16 x 16 } }"""
    with pytest.raises(SyncError, match="the cube core fills a slot of w again before the vector core reads it"):
        synchronise(parse_program(text, "k"))


def test_a_slot_that_a_buffer_has_not_is_a_fault() -> None:
    p = vector("gm_to_ub a <- A{0 : 8} : 8 x 8")
    wrong = replace(p, vector=(replace(p.vector[0], dst=Tile("a", const(1))),))
    with pytest.raises(ValueError, match="slot 1 of a is used, which has 1"):
        synchronise(wrong)


def test_more_edges_than_ids_share_ids() -> None:
    body = " ".join(f"gm_to_ub a <- A{{{n} : 8}} : 8 x 8 vexp b <- a : 8 x 8" for n in range(10))
    p = synchronise(vector(body))
    assert {n.id.value for n in p.vector if isinstance(n, SetFlag) and n.dst == "V"} <= set(range(6))
    assert races(p) == []


def test_ids_that_are_shared_while_nothing_orders_their_uses_get_an_edge_back() -> None:
    buffers = "".join(f"buffer r{n}: UB f32 8 x 8 nd, pitch 8, slots 1 at {1024 + 512 * n}\n" for n in range(20))
    body = " ".join(f"gm_to_ub r{n} <- A{{{n} : 8}} : 8 x 8 vexp r{n} <- r{n} : 8 x 8" for n in range(20))
    p = synchronise(vector(body, buffers))
    assert races(p) == []
    assert any(isinstance(n, SetFlag) and n.src == "V" for n in p.vector)


def test_what_follows_in_a_guard_of_unknown_outcome_is_ordered_before_the_guard() -> None:
    body = """for i in 3 { if (0 < block) {
      gm_to_ub a <- A{(i * 64) : 8} : 8 x 8
      if (i < 1) { ub_to_gm C{(i * 64) : 8} <- a : 8 x 8 }
    } }"""
    assert races(synchronise(vector(body))) == []


def test_one_flag_serves_for_several_loads_where_ids_run_out() -> None:
    names = [f"u{n}" for n in range(10)]
    buffers = "".join(f"buffer {u}: UB f32 8 x 8 nd, pitch 8, slots 1 at {1024 + 256 * n}\n" for n, u in enumerate(names))
    loads = "".join(f"gm_to_ub {u} <- A{{{64 * n} : 8}} : 8 x 8\n" for n, u in enumerate(names))
    made = synchronise(vector(loads + "".join(f"vexp {u} <- {u} : 8 x 8\n" for u in names), buffers))
    assert races(made) == []
    assert len({n.id for n in walk(made.vector) if isinstance(n, SetFlag)}) <= 6


@pytest.mark.slow
@RELAXED
@given(st.lists(st.integers(0, 9), min_size=1, max_size=25))
def test_many_loads_and_their_readers_in_any_order_can_be_ordered(readers: list[int]) -> None:
    buffers = "".join(f"buffer u{n}: UB f32 8 x 8 nd, pitch 8, slots 1 at {1024 + 256 * n}\n" for n in range(10))
    loads = "".join(f"gm_to_ub u{n} <- A{{{64 * n} : 8}} : 8 x 8\n" for n in range(10))
    body = loads + "".join(f"vexp a <- u{n} : 8 x 8\nub_to_gm C{{{64 * n} : 8}} <- a : 8 x 8\n" for n in readers)
    assert races(synchronise(vector(body, buffers))) == []


def rings(slots: list[int], ahead: int) -> Program:
    """A loop in which each ring is read once the `ahead` rings behind it are loaded."""
    starts = [1024 + 256 * sum(slots[:n]) for n in range(len(slots))]
    places = [", ".join(str(start + 256 * k) for k in range(s)) for start, s in zip(starts, slots, strict=True)]
    buffers = "".join(f"buffer r{n}: UB f32 8 x 8 nd, pitch 8, slots {s} at {places[n]}\n" for n, s in enumerate(slots))
    ring = [f"r{n}[i % {s}]" if s > 1 else f"r{n}" for n, s in enumerate(slots)]
    load = [f"gm_to_ub {r} <- A{{(i * 64) : 8}} : 8 x 8\n" for r in ring]
    read = [f"vexp a <- {r} : 8 x 8\n" for r in ring]
    pairs = zip([*load, *[""] * ahead], [*[""] * ahead, *read], strict=True)
    body = "".join(loaded + used for loaded, used in pairs)
    return synchronise(vector(f"for i in 8 {{ {body} }}", buffers))


def ids_of(p: Program) -> int:
    """How many ids the event that has most of them uses."""
    used: dict[tuple[str, str], set[int]] = {}
    for n in walk(p.vector):
        if isinstance(n, SetFlag):
            low, high = bounds(n.id, {"i": (0, 7)})
            used.setdefault((n.src, n.dst), set()).update(range(low, high + 1))
    return max(map(len, used.values()))


def test_rings_that_are_loaded_side_by_side_have_one_flag_where_ids_run_out() -> None:
    made = rings([2, 2, 2, 2], ahead=2)
    assert races(made) == []
    assert ids_of(made) == 6


def test_rings_of_loops_one_behind_the_other_share_ids() -> None:
    """What frees the slots of one loop's rings is drained before the same ids are set ahead of the next loop."""
    slots = ", ".join(str(4096 + 256 * k) for k in range(2)), ", ".join(str(8192 + 256 * k) for k in range(2))
    buffers = "".join(f"buffer r{n}: UB f32 8 x 8 nd, pitch 8, slots 2 at {at}\n" for n, at in enumerate(slots))
    ring = "gm_to_ub r{n}[i % 2] <- A{{(i * 64) : 8}} : 8 x 8 vexp {to} <- r{n}[i % 2] : 8 x 8"
    loops = [" ".join(ring.format(n=n, to="abc"[loop]) for n in range(2)) for loop in range(3)]
    made = synchronise(vector("".join(f"for i in 8 {{ {body} }}" for body in loops), buffers))
    assert races(made) == []
    assert ids_of(made) <= 6


@pytest.mark.slow
@settings(RELAXED, max_examples=25)
@given(st.integers(1, 3), st.integers(3, 12), st.integers(1, 4))
def test_twice_as_many_slots_as_ids_can_be_ordered(slots: int, many: int, ahead: int) -> None:
    made = rings([slots] * min(many, 12 // slots), ahead)
    assert races(made) == []
    assert ids_of(made) <= 6


STEPPED = """buffer x: UB f32 16 x 128 nd, pitch 128, slots 1 at 4096
buffer t: UB f32 1 x 512 nd, pitch 512, slots 1 at 16384
buffer r: UB f32 1 x 16 nd, pitch 16, slots 1 at 0
"""
REDUCED = "vrowsum r <- x : 16 x 128 form rows scratch t"


def test_a_barrier_within_an_instruction_orders_what_comes_before_it_and_its_last_step() -> None:
    """r lies where a does, and is written behind a barrier of the reduction's own."""
    assert shown(synchronise(vector(f"vexp b <- a : 8 x 8 {REDUCED}", STEPPED))) == ["vexp", "vrowsum"]


def test_and_its_first_step_and_what_comes_behind_it() -> None:
    assert shown(synchronise(vector(f"{REDUCED} vdup x : 16 x 128", STEPPED))) == ["vrowsum", "vdup"]


def test_and_what_stands_on_both_sides_of_it() -> None:
    p = synchronise(vector(f"vexp b <- c : 8 x 8 {REDUCED} vexp c <- b : 8 x 8", STEPPED))
    assert shown(p) == ["vexp", "vrowsum", "vexp"]


def test_its_first_step_needs_one_as_ever() -> None:
    assert shown(synchronise(vector(f"vdup x : 16 x 128 {REDUCED}", STEPPED))) == ["vdup", "barrier V", "vrowsum"]
    assert shown(synchronise(vector(f"{REDUCED} vexp b <- r : 1 x 8", STEPPED))) == ["vrowsum", "barrier V", "vexp"]
