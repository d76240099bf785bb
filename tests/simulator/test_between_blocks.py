"""Blocks that wait for one another: each way to meet, right, and broken so that it must be found."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import UB, gm, kernel
from tile_eg.simulator.run import Simulation, simulate

pytestmark = pytest.mark.slow(but=3)

EACH = 64  # elements of a vector core


def exchange(meet: str, *, before: str = "", kernel_type: str = "MIX_AIV_1_0") -> str:
    """Every vector core stores its number, meets the others, and copies what the next one stored. S: a zeroed workspace."""
    aic = "if ASCEND_IS_AIC { return; }" if kernel_type.startswith("MIX_AIC") else ""
    return kernel(
        "S X Y",
        kernel_type,
        f"""{aic} {gm("X Y", elements=4096)} {gm("S", "int32_t", 4096)} {UB}
auto x = ub.GetWithOffset<float>({EACH}, 0), y = ub.GetWithOffset<float>({EACH}, 1024); 
auto work = ub.GetWithOffset<int32_t>(1024, 4096);
const int me = GetBlockIdx(), all = GetBlockNum() * GetTaskRation(), next = (me + 1) % all, last = all - 1;
{before}
Duplicate(x, float(me), {EACH}); ORDER(V_MTE3);
DataCopy(gmX[me * {EACH}], x, {EACH}); /*store*/
{meet}
DataCopy(y, gmX[next * {EACH}], {EACH}); /*load*/
ORDER(MTE2_MTE3);
DataCopy(gmY[me * {EACH}], y, {EACH});
""",
    )


def run(source: str, blocks: int = 3, *, kernel_type: str = "MIX_AIV_1_0", zero: int = 0, order: int | None = None) -> Simulation:
    x = np.zeros(4096, np.float32)
    arguments = [np.full(4096, zero, np.int32), x, x]
    return simulate(
        source, "k", arguments, kernel_type=kernel_type, launch=blocks, outputs=[1, 2], inout=[0, 1], order=order
    )  # fmt: skip


def right(done: Simulation, cores: int = 3) -> bool:
    wanted = np.repeat([*range(1, cores), 0], EACH)
    return done.ok and np.array_equal(done.outputs[1][: cores * EACH], wanted)


def kinds(done: Simulation) -> set[str]:
    return {f.kind for f in done.findings}


def line(source: str, mark: str) -> int:
    return next(i for i, text in enumerate(source.splitlines(), 1) if mark in text)


SET, WAIT = "CrossCoreSetFlag<0, PIPE_MTE3>(0);", "CrossCoreWaitFlag(0); /*wait*/"
SIGNALS = "IBSet(gmS, work, me, 0); IBWait(gmS, work, next, 0);"
TURNS = "InitDetermineComputeWorkspace(gmS, work);"
GROUP = "GroupBarrier<PipeMode::MTE3_MODE> group(S, all, all);"

MEETINGS = {
    "a flag in mode 0": exchange(SET + WAIT),
    "SyncAll": exchange("SyncAll();"),
    "SyncAll by memory": exchange("SyncAll(gmS, work);"),
    "IBSet and IBWait": exchange(SIGNALS),
    "a group": exchange("group.Arrive(me); group.Wait(me);", before=GROUP),
    "a flag in mode 0 twice": exchange(SET + WAIT + SET + WAIT),
}


@pytest.mark.parametrize("name", MEETINGS)
def test_blocks_meet_and_see_what_the_others_wrote(name: str) -> None:
    assert right(run(MEETINGS[name]))


@pytest.mark.parametrize("name", MEETINGS)
def test_blocks_meet_in_any_order_of_pipes_and_blocks(name: str) -> None:
    assert all(right(run(MEETINGS[name], order=order)) for order in range(6))


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (exchange(SET), {"block_race", "leftover_flag"}),
        (exchange("CrossCoreSetFlag<0, PIPE_V>(0);" + WAIT), {"block_race"}),
        (exchange(f"if (me) {SET} {WAIT}"), {"deadlock"}),
        (exchange("if (me) SyncAll();"), {"block_race", "deadlock"}),
        (exchange("if (me) SyncAll(gmS, work);"), {"block_race", "deadlock"}),
        (exchange("SyncAll(gmS, work, 2);"), {"block_race", "wrong_core"}),
        (exchange("IBSet(gmS, work, me, 0);"), {"block_race", "leftover_flag"}),
        (exchange("IBSet(gmS, work, me, 0); IBWait(gmS, work, next, 1);"), {"deadlock"}),
        (exchange("IBWait(gmS, work, next, 0); IBSet(gmS, work, me, 0);"), {"deadlock"}),
        (exchange("group.Wait(me);", before=GROUP), {"deadlock"}),
        (exchange("group.Arrive(me);", before=GROUP), {"block_race"}),
    ],
)
def test_a_meeting_that_is_broken_is_found(source: str, wanted: set[str]) -> None:
    assert kinds(run(source)) == wanted


def test_a_flag_in_mode_0_says_how_many_cores_have_not_set_it() -> None:
    source = exchange(f"if (me != 1) {SET} {WAIT}")
    found = {f.core + str(f.block): f for f in run(source).findings}
    assert {f.line for f in found.values()} == {line(source, "/*wait*/")}
    assert "1 of the 3 cores that have to (AIV of block 1" in found["AIV0"].message


def test_a_set_before_other_blocks_begin_reaches_them() -> None:
    assert right(run(exchange(SET + WAIT), blocks=20), cores=20)


def test_what_one_block_knows_it_tells_the_next() -> None:
    relay = "if (me == 0) IBSet(gmS, work, 0, 0); if (me == 1) { IBWait(gmS, work, 0, 0); IBSet(gmS, work, 1, 0); }\n"
    load = "if (me == 2) IBWait(gmS, work, 1, 0); else return;"
    assert run(exchange(relay + load)).ok
    assert kinds(run(exchange(relay.replace("IBWait(gmS, work, 0, 0);", "") + load))) == {"block_race", "leftover_flag"}


@pytest.mark.parametrize("meet", ["IBSet(gmS, work, me, 0);", "SyncAll(gmS, work);", "group.Arrive(me);"])
def test_a_workspace_has_to_be_zero(meet: str) -> None:
    found = run(exchange(meet, before=GROUP if "group" in meet else ""), zero=7).findings[0]
    assert found.kind == "uninitialised" and "holds 7" in found.message


def test_a_workspace_has_to_be_large_enough() -> None:
    found = run(exchange("IBSet(gmS, work, me, 1000);")).findings[0]
    assert found.kind == "out_of_bounds" and "bytes of workspace in GM" in found.message


def test_more_blocks_than_cores_never_meet() -> None:
    found = run(exchange("SyncAll();"), blocks=49).findings[0]
    assert found.kind == "deadlock" and "49 blocks wait for one another, and the chip runs 48 at a time" in found.message


def test_the_flags_of_sync_all_are_not_the_kernels() -> None:
    found = run(exchange("CrossCoreSetFlag<0, PIPE_MTE3>(12); CrossCoreWaitFlag(12);\nSyncAll();")).findings[0]
    assert found.kind == "flag_id" and "11 to 14 are used by SyncAll" in found.message
    assert right(run(exchange("CrossCoreSetFlag<0, PIPE_MTE3>(12); CrossCoreWaitFlag(12);")))


CUBES = kernel(
    "S X Y",
    "MIX_AIC_1_0",
    f"""{gm("X Y", elements=4096)} TPipe pipe; TBuf<TPosition::A1> l1; pipe.InitBuffer(l1, 4096);
auto a = l1.GetWithOffset<float>({EACH}, 0), b = l1.GetWithOffset<float>({EACH}, 1024);
const int me = GetBlockIdx(), next = (me + 1) % GetBlockNum();
DataCopy(a, gmX[me * {EACH}], {EACH}); ORDER(MTE2_MTE3);
DataCopy(gmX[me * {EACH} + 2048], a, {EACH});
CrossCoreSetFlag<0, PIPE_MTE3>(0); CrossCoreWaitFlag(0);
DataCopy(b, gmX[next * {EACH} + 2048], {EACH}); SetFlag<HardEvent::MTE2_MTE3>(1); WaitFlag<HardEvent::MTE2_MTE3>(1);
DataCopy(gmY[me * {EACH}], b, {EACH});
""",
)


def test_cube_cores_meet_by_a_flag_in_mode_0() -> None:
    x = np.arange(4096, dtype=np.float32)
    arguments = [np.zeros(8, np.int32), x, np.zeros_like(x)]
    done = simulate(CUBES, "k", arguments, kernel_type="MIX_AIC_1_0", launch=3, outputs=[2], inout=[1])
    assert done.ok
    np.testing.assert_array_equal(done.outputs[0][: 3 * EACH], np.roll(x[: 3 * EACH], -EACH))
    broken = CUBES.replace("CrossCoreWaitFlag(0);", "")
    done = simulate(broken, "k", arguments, kernel_type="MIX_AIC_1_0", launch=3, outputs=[2], inout=[1])
    assert kinds(done) == {"block_race", "leftover_flag"}


# ---- turns --------------------------------------------------------------------------------------------------------------------

IN_TURN = kernel(
    "S X Y",
    "AIV_ONLY",
    f"""{gm("X Y", elements=4096)} {gm("S", "int32_t", 4096)} {UB}
auto x = ub.GetWithOffset<float>({EACH}, 0), sum = ub.GetWithOffset<float>({EACH}, 1024); 
auto work = ub.GetWithOffset<int32_t>(1024, 4096);
InitDetermineComputeWorkspace(gmS, work);
for (int round = 0; round < 2; ++round) {{
  WaitPreBlock(gmS, work); /*wait*/
  DataCopy(sum, gmY, {EACH}); ORDER(MTE2_V); /*load*/
  Muls(sum, sum, 2.0f, {EACH}); PipeBarrier<PIPE_V>(); Adds(sum, sum, float(GetBlockIdx()), {EACH}); ORDER(V_MTE3);
  DataCopy(gmY, sum, {EACH}); ORDER(MTE3_V); ORDER(V_MTE2);
  NotifyNextBlock(gmS, work); /*notify*/
}}
""",
)


@pytest.mark.parametrize("order", [None, 1, 2, 3])
def test_blocks_take_turns_in_their_order(order: int | None) -> None:
    done = simulate(
        IN_TURN, "k", [np.full(4096, 9, np.int32), *[np.zeros(4096, np.float32)] * 2], kernel_type="AIV_ONLY", launch=3,
        outputs=[2], inout=[0, 2], order=order,
    )  # fmt: skip
    total = 0
    for core in (0, 1, 2, 0, 1, 2):
        total = 2 * total + core
    assert done.ok and (done.outputs[0][:EACH] == total).all()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (("WaitPreBlock(gmS, work); /*wait*/", ""), "leftover_flag"),
        (("NotifyNextBlock(gmS, work); /*notify*/", ""), "deadlock"),
        (("InitDetermineComputeWorkspace(gmS, work);", ""), "leftover_flag"),
        (("NotifyNextBlock(gmS, work); /*notify*/", "if (round == 0) NotifyNextBlock(gmS, work);"), "deadlock"),
    ],
)
def test_turns_that_are_not_passed_on_are_found(change: tuple[str, str], kind: str) -> None:
    x = np.zeros(4096, np.float32)
    arguments = [np.zeros(4096, np.int32), x, x]
    done = simulate(IN_TURN.replace(*change), "k", arguments, kernel_type="AIV_ONLY", launch=3, outputs=[2], inout=[0, 2])
    assert kind in kinds(done)


# ---- the two vector cores of a block ------------------------------------------------------------------------------------------

PAIR_SET, PAIR_WAIT = "CrossCoreSetFlag<1, PIPE_MTE3>(3);", "CrossCoreWaitFlag(3); /*wait*/"


def pair(meet: str, *, order: int | None = None) -> Simulation:
    return run(exchange(meet, kernel_type="MIX_AIC_1_2"), blocks=1, kernel_type="MIX_AIC_1_2", order=order)


@pytest.mark.parametrize("meet", [PAIR_SET + PAIR_WAIT, "SyncAll();"])
def test_the_vector_cores_of_a_block_meet(meet: str) -> None:
    assert right(pair(meet), cores=2)
    assert all(right(pair(meet, order=order), cores=2) for order in range(6))


@pytest.mark.parametrize(
    ("meet", "wanted"),
    [
        (PAIR_SET, {"race", "leftover_flag"}),
        ("CrossCoreSetFlag<1, PIPE_V>(3);" + PAIR_WAIT, {"race"}),
        (f"if (me) {PAIR_SET} {PAIR_WAIT}", {"deadlock"}),
        (f"{PAIR_SET} CrossCoreSetFlag<0, PIPE_MTE3>(3); {PAIR_WAIT}", {"cross_flag"}),
    ],
)
def test_a_broken_meeting_of_two_vector_cores_is_found(meet: str, wanted: set[str]) -> None:
    assert kinds(pair(meet)) == wanted


def test_mode_1_does_not_order_other_blocks() -> None:
    source = exchange(PAIR_SET + PAIR_WAIT, kernel_type="MIX_AIC_1_2")
    assert kinds(run(source, blocks=2, kernel_type="MIX_AIC_1_2")) == {"block_race"}


# ---- polls --------------------------------------------------------------------------------------------------------------------


def test_a_core_that_polls_by_copies_lets_the_others_go_on() -> None:
    """The copy itself meets the store that it waits for: that is told, and the run ends."""
    source = kernel(
        "S X Y",
        "AIV_ONLY",
        f"""{gm("S", "int32_t", 4096)} {UB} auto x = ub.GetWithOffset<int32_t>(8, 0);
if (GetBlockIdx() == 0) {{
  do {{ DataCopy(x, gmS, 8); ORDER(MTE2_S); }} while (x.GetValue(0) != 5); /*poll*/
}} else {{ Duplicate(x, 5, 8); ORDER(V_MTE3); DataCopy(gmS, x, 8); }}
""",
    )
    done = run(source, blocks=2, kernel_type="AIV_ONLY")
    assert {(f.kind, f.line) for f in done.findings} >= {("block_race", line(source, "/*poll*/"))}
    assert kinds(done) == {"block_race"}


def test_a_copy_that_is_made_again_a_few_times_is_no_poll() -> None:
    source = kernel(
        "S X Y",
        "AIV_ONLY",
        f"""{gm("S", "int32_t", 4096)} {UB} auto x = ub.GetWithOffset<int32_t>(8, 0);
for (int i = 0; i < 1500; ++i) {{ DataCopy(x, gmS, 8); ORDER(MTE2_S); if (x.GetValue(0) == 5) break; }}
""",
    )
    assert run(source, blocks=2, kernel_type="AIV_ONLY").ok
