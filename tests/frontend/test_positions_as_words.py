"""A position beside whole numbers of 32 bits is one of them: f32, in which it is computed otherwise, does not hold all."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tile_eg
from tests.python.written import prim_func
from tile_eg.frontend.text import load_text
from tile_eg.ir.kept import KeptKernel
from tile_eg.search.compiler import meaning

ODD = 2**24 + 1 + np.arange(16 * 32, dtype=np.int64).reshape(16, 32)
"""Of these f32 holds every second one."""
ROW, COL = np.indices((16, 32))
WORDS = {
    "q[i, j] + i * 3": ODD + ROW * 3, "q[i, j] * 3 - (i + j)": ODD * 3 - ROW - COL, "T.max(q[i, j], j)": ODD,
    "(q[i, j] + i) & 255": (ODD + ROW) & 255, "q[i, j] & i": ODD & ROW, "i | q[i, j]": ODD | ROW,
    "T.if_then_else(q[i, j] > i, q[i, j], i)": ODD,
}  # fmt: skip


AUTO = {tile_eg.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}


@cache
def kernel(loop: str, dtype: str = "int32") -> tile_eg.jit.CompiledKernel:
    return tile_eg.jit(out_idx=[-1], pass_configs=AUTO)(prim_func(f"""
@T.prim_func
def f(Q: T.Tensor((16, 32), "{dtype}"), Z: T.Tensor((16, 32), "{dtype}")):
    with T.Kernel(1) as b:
        q = T.alloc_shared((16, 32), "{dtype}")
        T.copy(Q[0, 0], q)
        {loop}
        T.copy(q, Z[0, 0])
"""))  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize("value", WORDS)
def test_in_an_element_loop(value: str) -> None:
    made = kernel(f"for i, j in T.Parallel(16, 32): q[i, j] = {value}")
    assert np.array_equal(meaning(made.kernel, {"Q": ODD.astype(np.int32)})["Z"], WORDS[value])


@pytest.mark.slow
def test_the_emitted_text_computes_the_same() -> None:
    made = kernel("for i, j in T.Parallel(16, 32): q[i, j] = (q[i, j] + i) & 255")
    assert np.array_equal(made(ODD.astype(np.int32)), (ODD + ROW) & 255)


@pytest.mark.slow
def test_numbers_without_a_sign() -> None:
    made = kernel("for i, j in T.Parallel(16, 32): q[i, j] = q[i, j] + i", "uint32")
    assert np.array_equal(made((ODD + 2**31).astype(np.uint32)), ODD + 2**31 + ROW)


def test_beside_a_whole_tile() -> None:
    made = kernel("for n in T.serial(3): q[:, :] = q + n")
    assert np.array_equal(meaning(made.kernel, {"Q": ODD.astype(np.int32)})["Z"], ODD + 3)


def test_in_text() -> None:
    text = """
kernel f(Q: i32[16, 32]) -> Z: i32[16, 32] {
  grid b = 1
  shared q: i32[16, 32]
  q = Q[0, 0]
  parallel (i, j) in (16, 32) { q[i, j] = q[i, j] + i * 2 + j }
  Z[0, 0] = q + (b + 1)
}
"""
    found = meaning(load_text(text).instantiate(), {"Q": ODD.astype(np.int32)})["Z"]
    assert np.array_equal(found, ODD + ROW * 2 + COL + 1)


@pytest.mark.slow
def test_in_a_kernel_that_is_kept() -> None:
    with_flags = kernel("T.barrier_all()\n        for i, j in T.Parallel(16, 32): q[i, j] = q[i, j] + i\n        T.barrier_all()")
    assert isinstance(with_flags.kernel, KeptKernel)
    assert np.array_equal(with_flags(ODD.astype(np.int32)), ODD + ROW)


@pytest.mark.slow
def test_in_an_expression_of_whole_tensors() -> None:
    made = tile_eg.jit(prim_func("""
@T.prim_func
def f(Q: T.Tensor((16, 32), "int32")):
    return Q + T.arange(32)
"""))  # fmt: skip
    assert np.array_equal(made(ODD.astype(np.int32)), ODD + COL)
