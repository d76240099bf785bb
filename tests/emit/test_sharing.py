"""What candidates of one compilation have in common is made once: plans, flags, times, and what L2 keeps of loads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.emit.test_tasks import KERNELS, best, grid
from tests.extract.kernels import CHIP
from tile_eg.emit import lower as lowering
from tile_eg.emit.sync import planning, walk
from tile_eg.emit.sync.edges import along
from tile_eg.emit.sync.placed import decided_by, outlined
from tile_eg.emit.sync.planning import synchronise
from tile_eg.emit.sync.tasks import with_tiles
from tile_eg.emit.sync.trace import FlagsRunOut, SyncError, Trace
from tile_eg.emit.sync.walk import Walks
from tile_eg.extract.grid import with_grid, with_grids
from tile_eg.frontend.text import load_text
from tile_eg.ir import sharing as sharing_module
from tile_eg.ir.program import AIC, AIV, Instr, Loop, Node, Program
from tile_eg.ir.program.parser import parse_program
from tile_eg.ir.sharing import forget, kept, once, sharing
from tile_eg.search import search_options
from tile_eg.search.compiler import lower, plan_schedule
from tile_eg.timeline import engine

EXAMPLES = Path(__file__).parents[2] / "examples"
COPY = """program k on 910B2 as AIV_ONLY, blocks 1, workspace 0
tensor A: f32[64, 8]
tensor C: f32[64, 8] output
buffer a: UB f32 8 x 8 nd, pitch 8, slots 1 at 0
cube { }
vector {
  gm_to_ub a <- A{0 : 8} : 8 x 8
  ub_to_gm C{0 : 8} <- a : 8 x 8
}
"""


def plain(name: str, blocks: int, window: int = 0) -> Program:
    """A persistent program without its flags."""
    return lowering.plan(with_grid(best(name), grid(blocks, window), CHIP), CHIP)


def in_strips(node: Node) -> Node:
    """The same, with loads from GM that read strips."""
    if isinstance(node, Loop):
        return replace(node, body=tuple(map(in_strips, node.body)))
    return replace(node, form="strips") if isinstance(node, Instr) and node.op == "gm_to_l1" else node


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """How often flags were looked for, and how many instructions that walked along."""
    forget()
    counted: Counter = Counter()
    find = planning._found

    def found(*arguments: object) -> object:
        counted["found"] += 1
        return find(*arguments)

    def walked(walker: walk._Walker, *arguments: object) -> None:
        counted["walked"] += 1
        usual(walker, *arguments)

    usual = walk._Walker.instr
    monkeypatch.setattr(planning, "_found", found)
    monkeypatch.setattr(walk._Walker, "instr", walked)
    return counted


# ---- once -------------------------------------------------------------------------------------------------------------------


def test_a_thing_is_made_once_for_equal_keys():
    made = []
    with sharing():
        assert [once("a", (1, "x"), lambda: made.append(0) or len(made)) for _ in range(3)] == [1, 1, 1]


def test_two_kinds_of_things_may_have_one_key():
    with sharing():
        assert (once("a", 1, lambda: "one"), once("b", 1, lambda: "other")) == ("one", "other")


def test_nothing_is_kept_from_one_compilation_to_the_next():
    with sharing():
        once("a", 1, lambda: "before")
    with sharing():
        assert once("a", 1, lambda: "now") == "now"
    assert once("a", 1, lambda: "outside") == "outside"


def test_what_is_kept_is_found_by_the_next_compilation():
    with sharing():
        kept("a", "before", lambda: "found")
    with sharing():
        assert kept("a", "before", lambda: "made again") == "found"


def test_what_was_not_asked_for_lately_is_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sharing_module, "KEPT", 2)
    with sharing():
        for key in ("old", "used", "new", "used", "newer"):
            kept("lately", key, lambda key=key: key)
        assert [kept("lately", key, lambda: "made again") for key in ("used", "newer", "old")] == ["used", "newer", "made again"]


def test_an_inner_compilation_shares_with_the_outer_one():
    with sharing():
        with sharing():
            once("a", 1, lambda: "inner")
        assert once("a", 1, lambda: "again") == "inner"


def test_where_ids_run_out_that_is_kept_and_told_with_the_line_of_each_program(monkeypatch):
    forget()
    program, asked, path = plain("gemm", 24), [], [0]
    while not isinstance(at := along(program.cube, tuple(path))[-1], Instr):
        path.append(0)

    def found(*_):
        asked.append(1)
        error = FlagsRunOut("too few ids")
        error.at, error.place = (AIC, "MTE2", "MTE1"), (AIC, tuple(path))
        raise error

    monkeypatch.setattr(planning, "_found", found)
    for _ in range(2):
        with sharing(), pytest.raises(FlagsRunOut, match=rf"too few ids \(.*:{at.span.line}\)") as raised:
            synchronise(program)
        assert raised.value.at == (AIC, "MTE2", "MTE1")
    forget()
    assert len(asked) == 1


def test_an_error_is_not_kept():
    def fails() -> str:
        raise SyncError("no ids")

    with sharing():
        with pytest.raises(SyncError):
            once("a", 1, fails)
        assert once("a", 1, lambda: "found") == "found"


# ---- flags ------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_flags_do_not_depend_on_how_many_tiles_a_block_has(name: str):
    program = plain(name, 2)
    assert decided_by(with_tiles(program, 50)) == decided_by(with_tiles(program, 60))


def test_flags_do_not_depend_on_how_many_blocks_share_the_tiles():
    assert decided_by(with_tiles(plain("gemm", 2), 20)) == decided_by(with_tiles(plain("gemm", 4), 20))


def test_that_some_blocks_have_a_tile_less_matters(analysed: Counter):
    with sharing():
        for blocks in (2, 3):
            synchronise(with_tiles(plain("gemm", blocks), 2))
    assert analysed["found"] == 2


def test_flags_do_not_depend_on_how_an_operand_lies_in_gm(analysed: Counter):
    program = plain("gemm", 3)
    with sharing():
        for nodes in (program.cube, tuple(in_strips(n) for n in program.cube)):
            synchronise(replace(program, cube=nodes))
    assert analysed["found"] == 1


def test_flags_do_not_depend_on_where_a_tile_stores_what_nothing_else_touches():
    program = plain("gemm", 3)
    wider = parse_program(str(program).replace("C{", "C{64 + "), "k.program")
    assert str(wider) != str(program) and decided_by(outlined(wider)) == decided_by(outlined(program))


def test_where_a_tensor_is_stored_decides_flags():
    program = parse_program(COPY.replace("output", "output\ntensor D: f32[64, 8] output"), "k.program")
    stored = program.vector[1]
    again = [replace(stored, dst=replace(stored.dst, tensor=t)) for t in "CD"]
    one, other = (outlined(replace(program, vector=(*program.vector, store))) for store in again)
    assert decided_by(one) != decided_by(other)


def test_flags_do_not_depend_on_the_order_of_tiles():
    assert decided_by(plain("gemm", 3)) == decided_by(plain("gemm", 3, 2))


def test_programs_of_other_numbers_of_tiles_share_their_flags(analysed: Counter):
    with sharing():
        for tiles in (20, 30, 40):
            synchronise(with_tiles(plain("gemm", 3), tiles))
    assert analysed["found"] == 1


def test_flags_are_looked_for_once_by_compilations_that_follow_one_another(analysed: Counter):
    for tiles in (20, 30):
        with sharing():
            synchronise(with_tiles(plain("gemm", 3), tiles))
    assert analysed["found"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_shared_flags_are_those_that_a_program_gets_alone(name: str):
    program = plain(name, 2)
    many = [with_tiles(program, tiles) for tiles in (20, 21, 40)]
    with sharing():
        shared = [synchronise(p) for p in many]
    assert shared == [synchronise(p) for p in many]


def test_programs_of_few_tiles_have_flags_of_their_own(analysed: Counter):
    with sharing():
        for tiles in (1, 2, 20):
            synchronise(with_tiles(plain("gemm", 3), tiles))
    assert analysed["found"] == 3


def test_other_addresses_are_other_flags():
    one = parse_program(COPY, "k.program")
    other = replace(one, buffers=tuple(replace(b, addresses=(512,)) for b in one.buffers))
    assert decided_by(one) != decided_by(other)


# ---- traces -----------------------------------------------------------------------------------------------------------------


def told(trace: Trace) -> tuple:
    runs = [(i.path, i.pipe, i.number, i.env, i.accesses, i.stepped) for i in trace.instances]
    return trace.steps, runs, trace.dependences


@pytest.mark.parametrize("name", KERNELS)
def test_fewer_tiles_are_the_first_part_of_more(name: str):
    program, walks = plain(name, 2), Walks(plain(name, 2))
    for core in (c for c in (AIC, AIV) if program.core(c)):
        for tiles in (3, 1, 2):
            alone = Walks(program).trace(core, tiles, {})
            assert told(walks.trace(core, tiles, {})) == told(alone)


def test_a_stream_is_walked_once_for_all_numbers_of_tiles(monkeypatch: pytest.MonkeyPatch):
    counted: Counter = Counter()
    walker = walk._Walker

    def counting(*arguments: object) -> object:
        counted["walks"] += 1
        return walker(*arguments)

    monkeypatch.setattr(walk, "_Walker", counting)
    synchronise(with_tiles(plain("gemm", 3), 20))
    assert counted["walks"] == 1


# ---- a compilation ----------------------------------------------------------------------------------------------------------


def test_schedules_with_one_program_share_its_text_and_flags(analysed: Counter):
    schedule = with_grid(best("gemm"), grid(3), CHIP)
    with sharing():
        first, second = (plan_schedule(schedule, CHIP) for _ in range(2))
    assert first is second and analysed["found"] == 1


def test_a_program_is_timed_once(monkeypatch: pytest.MonkeyPatch):
    counted: Counter = Counter()
    run = engine._run

    def timed(*arguments: object) -> object:
        counted["runs"] += 1
        return run(*arguments)

    monkeypatch.setattr(engine, "_run", timed)
    program = synchronise(plain("gemm", 3))
    with sharing():
        times = {engine.run(program, CHIP, record=False).cycles for _ in range(3)}
    assert len(times) == 1 and counted["runs"] == 1


def test_a_kernel_without_anything_in_ub_has_one_persistent_form():
    assert len(with_grids(best("gemm"), grid(3), CHIP)) == 1


@pytest.mark.slow
def test_a_larger_matrix_takes_no_more_work_for_its_flags(analysed: Counter):
    found = []
    for n in (4096, 8192):
        analysed.clear()
        lower(load_text((EXAMPLES / "gemm.tile").read_text(), "gemm.tile").instantiate({"M": n, "N": n, "K": n}))
        found.append((analysed["found"], analysed["walked"]))
    assert found[1][0] <= found[0][0] + 1 and found[1][1] < 1.3 * found[0][1]


@pytest.mark.slow
def test_for_a_large_matrix_flags_are_looked_for_twice_as_often_at_the_most(analysed: Counter):
    found = []
    for n in (512, 8192):
        analysed.clear()
        text, search = (EXAMPLES / "gemm.tile").read_text(), search_options(without=["rest-in-parts"])
        lower(load_text(text, "gemm.tile").instantiate({"M": n, "N": n, "K": n}), search=search)
        found.append(analysed["found"])
    assert found[1] <= 2 * found[0]


def test_a_plan_is_shared_on_its_own_chip_alone():
    schedule, other = with_grid(best("gemm"), grid(3), CHIP), replace(CHIP, clock_mhz=2 * CHIP.clock_mhz)
    with sharing():
        assert [plan_schedule(schedule, chip).chip for chip in (CHIP, other)] == [CHIP, other]
