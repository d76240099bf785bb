"""Products and copies: their Ascend C computes what they mean, for any shape, cut, type and transpose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tile_eg.emit.ascend_c.index import EmitError
from tile_eg.emit.ascend_c.kernel import kernel_text
from tile_eg.emit.sync.planning import synchronise
from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.program import Buffer, Gm, Instr, Program, Tile
from tile_eg.ops.types import BF16, F16, F32, Level

from .cube_programs import Product, product_program
from .simulated import numpy_type, simulated

pytestmark = pytest.mark.slow(but=1)


def check(p: Product) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.uniform(-1, 1, shape).astype(numpy_type(p.dtype)) for shape in (p.shape_a(), p.shape_b()))
    got = simulated(product_program(p), {"A": a, "B": b})["C"].astype(np.float64)
    left, right = a.astype(np.float64), b.astype(np.float64)
    want = (left.T if p.transpose_a else left) @ (right.T if p.transpose_b else right)
    want = np.maximum(want, 0) if p.relu else want
    unit = {F32: 2**-20, F16: 2**-10, BF16: 2**-7}[p.out]
    assert (np.abs(got - want) / (1 + np.abs(want))).max() < unit * 4


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [F16, BF16, F32], ids=str)
@pytest.mark.parametrize("transposed", [(a, b) for a in (False, True) for b in (False, True)])
def test_a_product_of_odd_sizes_with_every_cut(dtype: object, transposed: tuple[bool, bool]) -> None:
    check(Product(50, 70, 90, dtype, transpose_a=transposed[0], transpose_b=transposed[1], cut=(32, 48, 64)))  # type: ignore[arg-type]


PRODUCTS = {
    "one row": Product(1, 40, 33),
    "one column": Product(40, 1, 16),
    "an inner size of one": Product(17, 18, 1),
    "rows that only run time knows": Product(48, 32, 32, tail=1, cut=(32, 32, 32)),
    "a second block with half the windows": Product(96, 80, 64, tail=40, cut=(32, 32, 64)),
    "a transposed tail": Product(48, 32, 32, tail=20, transpose_a=True, cut=(32, 32, 32)),
    "relu and a cast": Product(64, 64, 64, out=F16, relu=True),
    "bfloat16 out": Product(33, 20, 48, BF16, BF16),
    "ten fractals and more": Product(128, 128, 128, cut=(128, 128, 64)),
}


@pytest.mark.parametrize("p", PRODUCTS.values(), ids=PRODUCTS)
def test_a_product_with(p: Product) -> None:
    check(p)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_products(data: st.DataObject) -> None:
    size = st.integers(1, 100)
    step = st.sampled_from([16, 32, 64])
    check(
        Product(
            data.draw(size), data.draw(size), data.draw(size), data.draw(st.sampled_from([F16, F32])), F32,
            data.draw(st.booleans()), data.draw(st.booleans()), (data.draw(step), data.draw(step), data.draw(step)),
        )
    )  # fmt: skip


def copied(rows: int, cols: int, wide: int, dtype: object = F16) -> None:
    """rows x cols out of a matrix `wide` columns wide, through UB, into a matrix of the same shape."""
    b = Buffer("u", Level.UB, dtype, rows, cols, -(-cols // 16) * 16, "nd", 1, (0,))  # type: ignore[arg-type]
    tensors = (Tensor("A", dtype, (rows, wide), False), Tensor("C", dtype, (rows, cols), True))  # type: ignore[arg-type]
    size = (ix.const(rows), ix.const(cols))
    nodes = (
        Instr("gm_to_ub", Tile("u"), (Gm("A", ix.const(2), wide),), *size),
        Instr("ub_to_gm", Gm("C", ZERO, cols), (Tile("u"),), *size),
    )
    a = np.random.default_rng(0).integers(-1000, 1000, (rows, wide)).astype(np.float16)
    got = simulated(Program("k", "910B2", "AIV_ONLY", tensors, 1, False, 0, (b,), (), nodes), {"A": a})["C"]
    assert (got == a[:, 2 : 2 + cols]).all()


@pytest.mark.parametrize(("rows", "cols", "wide"), [(5, 7, 30), (1, 1, 9), (4100, 3, 8), (12, 48, 70000)])
def test_a_copy_through_ub_of(rows: int, cols: int, wide: int) -> None:
    copied(rows, cols, wide)


def test_a_matrix_wider_than_the_stride_field_is_copied_row_by_row() -> None:
    p = Product(20, 16, 16)
    program = product_program(p)
    wide = Tensor("A", F16, (20, 70_000), False)
    cube = (Instr("gm_to_l1", Tile("a"), (Gm("A", ZERO, 70_000),), ix.const(20), ix.const(16)), *program.cube[1:])
    program = Program("k", "910B2", "AIC_ONLY", (wide, *program.tensors[1:]), 1, False, 0, program.buffers, cube, ())
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (20, 70_000)).astype(np.float16), rng.uniform(-1, 1, (16, 16)).astype(np.float16)
    got = simulated(program, {"A": a, "B": b})["C"]
    assert np.allclose(got, a[:, :16].astype(np.float32) @ b.astype(np.float32), atol=1e-4)


def test_a_product_whose_result_goes_back_to_l1_feeds_the_next_one() -> None:
    sixteen = ix.const(16)
    size = (sixteen, sixteen)
    l1 = [Buffer(n, Level.L1, F16, 16, 16, 16, "nz", 1, (512 * i,)) for i, n in enumerate(("a", "b", "p"))]
    l0 = [Buffer("la", Level.L0A, F16, 16, 16, 16, "zz", 1, (0,)), Buffer("lb", Level.L0B, F16, 16, 16, 16, "zn", 1, (0,))]
    c = Buffer("c", Level.L0C, F32, 16, 16, 16, "nz", 1, (0,))

    def product(left: str) -> tuple[Instr, ...]:
        return (
            Instr("l1_to_l0a", Tile("la"), (Tile(left),), rows=sixteen, depth=sixteen),
            Instr("l1_to_l0b", Tile("lb"), (Tile("b"),), cols=sixteen, depth=sixteen),
            Instr("mmad", Tile("c"), (Tile("la"), Tile("lb")), *size, sixteen),
        )

    cube = (
        Instr("gm_to_l1", Tile("a"), (Gm("A", ZERO, 16),), *size),
        Instr("gm_to_l1", Tile("b"), (Gm("B", ZERO, 16),), *size),
        *product("a"),
        Instr("fixpipe", Tile("p"), (Tile("c"),), *size),
        *product("p"),
        Instr("fixpipe", Gm("C", ZERO, 16), (Tile("c"),), *size),
    )
    tensors = (*(Tensor(n, F16, (16, 16), False) for n in "AB"), Tensor("C", F32, (16, 16), True))
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (16, 16)).astype(np.float16) for _ in range(2))
    got = simulated(Program("k", "910B2", "AIC_ONLY", tensors, 1, False, 0, (*l1, *l0, c), cube, ()), {"A": a, "B": b})["C"]
    first = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    assert np.allclose(got, first.astype(np.float32) @ b.astype(np.float32), atol=1e-3)


def test_a_size_that_its_field_cannot_hold_is_an_error_and_never_cut() -> None:
    b = Buffer("u", Level.L1, F16, 20_000, 16, 16, "nz", 1, (0,))
    load = Instr("gm_to_l1", Tile("u"), (Gm("A", ZERO, 16),), ix.const(20_000), ix.const(16))
    program = Program("k", "910B2", "AIC_ONLY", (Tensor("A", F16, (20_000, 16), False),), 1, False, 0, (b,), (load,), ())
    with pytest.raises(EmitError, match="nValue|dstNzC0Stride"):
        kernel_text(synchronise(program))
