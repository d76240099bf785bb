"""A matrix in strips of 32 bytes: the vector cores' copy of it, and what of it a product finds where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.extract.kernels import CHIP
from tile_eg.chips import load_chip
from tile_eg.emit.packed_operand import copy_in_strips
from tile_eg.emit.phases import CannotMeet, beside
from tile_eg.ir.index import BLOCK, const, div, var
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Buffer, CrossSet, CrossWait, Instr, PipeBarrier, Program, SetFlag, Tasks, Tile, walk
from tile_eg.ir.program.parser import parse_program
from tile_eg.ir.program.tasks import inlined
from tile_eg.ops.types import F16, F32, DType, Level
from tile_eg.search.planned import Planned
from tile_eg.timeline.accesses import accesses, sharing
from tile_eg.timeline.engine import run
from tile_eg.transforms.packed_operand import Matrices

CHIP950 = load_chip("950")


def copy(rows: int, cols: int, blocks: int = 2, dtype: DType = F16) -> Program:
    wide = 32 // dtype.bytes
    strips = Tensor("S", dtype, (-(-cols // wide), rows * wide), True)
    return copy_in_strips(Tensor("B", dtype, (rows, cols), False), strips, Matrices(1, rows, cols), blocks, CHIP)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize(
    ("rows", "cols"), [(256, 256), (130, 128), (200, 384), (16, 512), (130, 544), (64, 48), (130, 270), (40, 9)]
)
@pytest.mark.parametrize("dtype", [F16, F32], ids=str)
def test_strips_hold_what_the_matrix_holds(rows, cols, dtype):
    made, wide = copy(rows, cols, dtype=dtype), 32 // dtype.bytes
    alone = replace(made, tensors=(*made.tensors, *made.shared), shared=())
    b = np.random.default_rng(3).standard_normal((rows, cols)).astype(dtype.numpy)
    ran, filled = Planned(alone, CHIP).run({"B": b}), np.pad(b, ((0, 0), (0, -cols % wide)))
    assert np.array_equal(ran["S"].reshape(-1, rows, wide), filled.reshape(rows, -1, wide).transpose(1, 0, 2))


@pytest.mark.slow
def test_of_several_matrices_each_has_strips_of_its_own():
    source, strips = Tensor("B", F16, (3, 130, 40), False), Tensor("S", F16, (3, 3, 130 * 16), True)
    made = copy_in_strips(source, strips, Matrices(3, 130, 40), 2, CHIP)
    b = np.random.default_rng(3).standard_normal(source.shape).astype(np.float16)
    ran = Planned(replace(made, tensors=(*made.tensors, *made.shared), shared=()), CHIP).run({"B": b})["S"]
    filled = np.pad(b, ((0, 0), (0, 0), (0, 8))).reshape(3, 130, 3, 16)
    assert np.array_equal(ran.reshape(3, 3, 130, 16), filled.transpose(0, 2, 1, 3))


def test_a_copy_reads_back_as_it_was_printed():
    assert parse_program(str(copy(256, 256))) == copy(256, 256)


def test_a_copy_moves_each_byte_once_in_and_out():
    moved = run(copy(4096, 4096, 16), CHIP).bytes
    assert moved == {"GM->UB": 2 * 4096 * 4096, "UB->GM": 2 * 4096 * 4096}


def test_a_copy_is_bound_by_hbm():
    timeline = run(copy(8192, 8192, 24), CHIP)
    assert timeline.bound == "HBM" and timeline.cycles < 1.02 * timeline.hbm_cycles


def mixed(*vector, kind: str = "MIX_AIC_1_2") -> Program:
    return replace(copy(256, 256), kernel_type=kind, vector=vector, buffers=(), shared=())


def test_what_the_vector_cores_tell_the_cube_core_ahead_comes_before_the_copy():
    own = SetFlag("V", "MTE2", const(5)), CrossSet("MTE2", 0), *copy(256, 256).vector, CrossWait(1)
    both = beside(mixed(*own), copy(256, 256), CHIP)
    assert isinstance(both.vector[0], CrossSet) and not any(isinstance(n, CrossSet) for n in both.vector[1:])


def test_all_pipes_are_done_with_the_copy_before_the_kernels_own_work():
    both = beside(mixed(*copy(256, 256).vector), copy(256, 256), CHIP)
    barrier = both.vector.index(PipeBarrier("ALL"))
    own, after = (sum(isinstance(n, Tasks) for n in part) for part in (both.vector[:barrier], both.vector[barrier:]))
    assert (own, after) == (1, 1)


def test_a_kernel_without_vector_work_gets_the_copy_alone():
    made = copy(256, 256)
    assert beside(mixed(kind="AIC_ONLY"), made, CHIP).vector == made.vector


def test_one_vector_core_beside_a_cube_core_cannot_copy_halves():
    with pytest.raises(CannotMeet, match="one vector core"):
        beside(mixed(kind="MIX_AIC_1_1"), copy(256, 256), CHIP)


def test_the_copy_lies_behind_what_the_cube_core_writes_into_ub():
    place = Buffer("c", Level.UB, F16, 64, 256, 256, slots=2, addresses=(0, 32768))
    to = Instr("fixpipe", Tile("c", const(0)), (Tile("l0c", const(0)),), const(64), const(256))
    both = beside(replace(mixed(), buffers=(place,), cube=(to,)), copy(256, 256), CHIP950)
    copied = [b for b in both.buffers if b.name != "c"]
    assert copied and min(min(b.addresses) for b in copied) == 65536


def test_a_copy_that_ub_has_no_room_for_is_refused():
    place = Buffer("c", Level.UB, F16, 256, 256, 256, slots=2, addresses=(0, 131072))
    to = Instr("fixpipe", Tile("c", const(0)), (Tile("l0c", const(0)),), const(256), const(256))
    with pytest.raises(CannotMeet, match="no room"):
        beside(replace(mixed(), buffers=(place,), cube=(to,)), copy(256, 256), CHIP950)


def test_both_vector_cores_copy():
    offsets = {str(n.srcs[0].offset) for n in walk(copy(256, 256).vector) if isinstance(n, Instr) and n.op == "gm_to_ub"}
    assert all("sub" in o for o in offsets)


def test_what_cores_read_at_one_time_is_asked_of_those_that_have_a_task_alone():
    of_three = copy(256, 256, 3)
    nowhere = div(const(64), const(2) - var(BLOCK))  # the third block has none of the two windows
    (load,) = (replace(a, window=replace(a.window, offset=nowhere)) for a in accesses(inlined(of_three)) if a.reads)
    assert sharing([load], 3) == {id(load.instr): 2 / 2 * 2}
