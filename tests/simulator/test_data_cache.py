"""The scalar unit's data cache before GM: what it holds back, does not see and writes over; and cores that agree by GM."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import kernel
from tile_eg.simulator.run import Simulation, simulate

pytestmark = pytest.mark.slow(but=3)

SETUP = """GlobalTensor<int32_t> g; g.SetGlobalBuffer((__gm__ int32_t*)A, 256);
LocalTensor<int32_t> x(TPosition::VECCALC, 0, 64); int me = GetBlockIdx();
"""
CLEAN = "DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>"
BEFORE = np.arange(256, dtype=np.int32)


def run(body: str, blocks: int = 1) -> Simulation:
    source = kernel("A", "AIV_ONLY", SETUP + body.replace("CLEAN", CLEAN))
    return simulate(source, "k", [BEFORE.copy()], kernel_type="AIV_ONLY", launch=blocks, outputs=[0], inout=[0])


def kinds(body: str, blocks: int = 1) -> list[str]:
    return [f.kind for f in run(body, blocks).findings]


def test_a_scalar_write_is_in_gm_when_the_kernel_ends() -> None:
    done = run("g.SetValue(3, 77);")
    assert done.ok, done
    assert done.outputs[0].tolist() == [0, 1, 2, 77, *range(4, 256)]


def test_a_scalar_read_sees_the_scalar_write_before_it() -> None:
    done = run("g.SetValue(3, 77); g.SetValue(4, g.GetValue(3) + 1);")
    assert done.ok, done
    assert done.outputs[0][4] == 78


LOAD = "SetFlag<HardEvent::S_MTE2>(0); WaitFlag<HardEvent::S_MTE2>(0); DataCopy(x, g, 16);"


def test_a_copy_reads_a_scalar_write_only_after_it_is_cleaned() -> None:
    assert kinds("g.SetValue(3, 77);" + LOAD) == ["cache"]
    assert kinds("g.SetValue(3, 77); CLEAN(g);" + LOAD) == []


def test_a_copy_may_read_the_other_bytes_of_a_line_that_is_not_cleaned() -> None:
    assert kinds("g.SetValue(12, 77);" + LOAD.replace("16", "8")) == []


STORE = "Duplicate(x, 5, 64); ORDER(V_MTE3); DataCopy(g, x, 16); ORDER(MTE3_S);"


def test_the_cache_does_not_see_what_a_copy_writes() -> None:
    stale = run(f"int a = g.GetValue(0); {STORE} g.SetValue(32, g.GetValue(1));")
    assert [f.kind for f in stale.findings] == ["cache"]
    fresh = run(f"int a = g.GetValue(0); {STORE} CLEAN(g); g.SetValue(32, g.GetValue(1));")
    assert fresh.ok, fresh
    assert fresh.outputs[0][32] == 5


def test_a_copy_into_a_line_that_the_cache_writes_back_later_is_lost() -> None:
    assert "cache" in kinds(f"g.SetValue(15, 1); {STORE.replace('16', '8')}")
    assert kinds(f"g.SetValue(15, 1); CLEAN(g[15]); {STORE.replace('16', '8')}") == []


def test_two_blocks_that_set_values_need_a_line_each() -> None:
    assert kinds("g.SetValue(me, 1);", blocks=2) == ["block_race"]
    apart = run("g.SetValue(me * 16, 1000 + me);", blocks=3)
    assert apart.ok, apart
    assert apart.outputs[0][[0, 16, 32]].tolist() == [1000, 1001, 1002]


@pytest.mark.parametrize("first", [0, 1])
def test_a_copy_beside_another_blocks_value_may_be_lost(first: int) -> None:
    body = f"if (me == {first}) g.SetValue(12, 1); else {{ Duplicate(x, 5, 64); ORDER(V_MTE3); DataCopy(g, x, 8); }}"
    assert kinds(body, blocks=2) == ["block_race"]


def test_blocks_may_share_a_line_past_the_cache() -> None:
    done = run("WriteGmByPassDCache((__gm__ int32_t*)A + me, 500 + me);", blocks=4)
    assert done.ok, done
    assert done.outputs[0][:5].tolist() == [500, 501, 502, 503, 4]


def test_what_is_read_past_the_cache_must_not_be_held_back_by_it() -> None:
    assert kinds("g.SetValue(0, 9); int a = ReadGmByPassDCache((__gm__ int32_t*)A);") == ["cache"]


POLL = """if (me == 1) {{ Duplicate(x, 5, 64); ORDER(V_MTE3); DataCopy(g[64], x, 64); {order} {tell} }}
else {{ while (true) {{ {ask} if (flag == 99) break; }} ORDER(S_MTE2);
DataCopy(x, g[64], 64); ORDER(MTE2_MTE3); DataCopy(g[128], x, 64); }}"""
PAST = {
    "tell": "WriteGmByPassDCache((__gm__ int32_t*)A, 99);",
    "ask": "int flag = ReadGmByPassDCache((__gm__ int32_t*)A);",
}
CACHED = {"tell": "g.SetValue(0, 99); CLEAN(g);", "ask": "CLEAN(g); int flag = g.GetValue(0);"}


@pytest.mark.parametrize("way", [PAST, CACHED])
def test_a_block_that_waits_for_a_value_in_gm_knows_what_its_writer_knew(way: dict[str, str]) -> None:
    done = run(POLL.format(order="ORDER(MTE3_S);", **way), blocks=2)
    assert done.ok, done
    assert (done.outputs[0][128:192] == 5).all()


@pytest.mark.parametrize("way", [PAST, CACHED])
def test_a_value_in_gm_says_nothing_of_a_store_that_may_not_have_finished(way: dict[str, str]) -> None:
    assert kinds(POLL.format(order="", **way), blocks=2) == ["block_race"]


def test_a_value_that_nobody_writes_is_waited_for_in_vain() -> None:
    assert kinds(POLL.format(order="ORDER(MTE3_S);", tell="", ask=PAST["ask"]), blocks=2) == ["deadlock"]


def test_a_loop_of_reads_that_ends_by_itself_is_no_deadlock() -> None:
    done = run("int s = 0; for (int i = 0; i < 300; ++i) s += ReadGmByPassDCache((__gm__ int32_t*)A + 1); g.SetValue(0, s);")
    assert done.ok, done
    assert done.outputs[0][0] == 300
