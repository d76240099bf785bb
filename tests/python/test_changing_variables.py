"""Numbers that change with what a loop loads or reads: the kernel is done in the order of its statements."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.frontend.expert.changing import changing
from tile_eg.frontend.expert.settled_branches import settled

X = np.random.default_rng(0).uniform(-1, 1, (8, 64)).astype(np.float32)


@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_it_may_be_a_factor_of_the_tile_that_it_was_computed_from() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def decayed(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1):
            row = T.alloc_shared((1, 64), "float32")
            acc = T.alloc_var("float32", init=1.0)
            for i in T.serial(8):
                T.copy(X[i, 0], row)
                acc = acc * 0.5 + row[0, 0]
                for j, k in T.Parallel(1, 64):
                    row[j, k] = row[j, k] * acc
                T.copy(row, Y[i, 0])

    wanted, acc = [], np.float32(1)
    for row in X:
        acc = acc * np.float32(0.5) + row[0]
        wanted.append(row * acc)
    np.testing.assert_allclose(decayed(X), wanted, rtol=1e-6, atol=1e-7)


FLAGS = np.array([1, 5, 2, 7, 0, 9], np.int32)


@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
def test_a_plain_number_that_a_branch_by_data_changes_is_a_variable() -> None:
    @tile_eg.jit(effort="none")
    @T.prim_func
    def scaled(F: T.Tensor((6,), "int32"), X: T.Tensor((8, 64), "float32"), Y: T.Tensor((7, 64), "float32")):
        with T.Kernel(1):
            row = T.alloc_shared((1, 64), "float32")
            last, rate, count = 7, 1.0, 0
            for i in T.serial(6):
                if F[i] > 3:
                    last = i
                    rate = rate * 0.5
                    count += 1
                T.copy(X[last, 0], row)
                T.tile.mul(row, row, rate)
                T.copy(row, Y[i, 0])
            T.copy(X[count, 0], row)
            T.copy(row, Y[6, 0])

    found, wanted, last, rate = np.zeros((7, 64), np.float32), [], 7, np.float32(1)
    scaled(FLAGS, X, found)
    for i, flag in enumerate(FLAGS):
        last, rate = (i, rate / 2) if flag > 3 else (last, rate)
        wanted.append(X[last] * rate)
    np.testing.assert_array_equal(found, [*wanted, X[3]])


def test_a_whole_number_that_becomes_another_one_is_refused() -> None:
    @T.prim_func
    def halved(F: T.Tensor((6,), "int32"), X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(1):
            row, rate = T.alloc_shared((1, 64), "float32"), 1
            for i in T.serial(6):
                if F[i] > 3:
                    rate = rate * 0.5
                T.copy(X[i, 0], row)
                T.tile.mul(row, row, rate)
                T.copy(row, Y[i, 0])

    with pytest.raises(tile_eg.TileError, match="`rate` began as a whole number"):
        tile_eg.jit(effort="none")(halved)


def test_which_names_change() -> None:
    body = """
for i in s:
    a = i; b = c; c = a
    if i: d = 1; e = 2; f += 1
    while g < 3: g = g + 1
use(d)
"""
    assert changing(ast.parse(body).body) == {"c", "d", "f", "g"}


def test_branches_by_what_is_known_change_nothing() -> None:
    text = """
def kernel(k):
    n = heads // 4
    if n != 2: h = 1
    else: h = 0
    if rest: h = 2
    if n > LEAST: h = 3
    use(h)
"""
    given = ast.parse(text).body[0]
    assert isinstance(given, ast.FunctionDef)
    assert changing(settled(given, {"heads": 8, "rest": False, "LEAST": 9})) == set()
    assert changing(settled(given, {"heads": 8, "rest": False})) == {"h"}
    assert changing(settled(ast.parse(text.replace("LEAST", "k")).body[0], {"heads": 8, "rest": False, "k": 9})) == {"h"}
    assert ast.unparse(given) == ast.unparse(ast.parse(text))


def test_a_kept_kernel_tells_which_names_begin_again() -> None:
    @tile_eg.jit(out_idx=[-1])
    @T.prim_func
    def kept(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x, n = T.alloc_ub((64,), "float32"), 1
            kept = T.alloc_var("int32", init=0)
            T.copy(X, x)
            T.barrier_all()
            for i in T.serial(4):
                x[n] = 2.0
                n = n + i
                kept = kept + 1
            T.barrier_all()
            T.copy(x, Y)

    with pytest.warns(Warning, match="`n` begins each trip with its value before the loop") as told:
        found = kept(X[0])
    wanted = X[0].copy()
    wanted[1] = 2
    np.testing.assert_array_equal(found, wanted)
    assert not any("`kept`" in str(w.message) for w in told)


@T.macro
def doubled(y, k, total):
    total = total * 2.0
    y[k] = total


@T.macro
def positive(X, y, n):
    for k in T.serial(8):
        if X[k, 0] > 0:
            y[n] = X[k, 0]
            n += 1


def with_macros(variable: bool):
    @tile_eg.jit(effort="none")
    @T.prim_func
    def made(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            y = T.alloc_shared((64,), "float32")
            T.clear(y)
            total = T.alloc_var("float32", init=1.0) if variable else 1.0
            for k in T.serial(4):
                doubled(y, k, total)
                total = total + X[k, 0]
            positive(X, y, 4)
            T.copy(y, Y)

    return made


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::tile_eg.errors.TileWarning")
@pytest.mark.parametrize("variable", [False, True])
def test_a_macro_has_numbers_of_its_own_but_for_variables_that_it_is_given(variable: bool) -> None:
    y, wanted, total = np.zeros(64, np.float32), np.zeros(64, np.float32), np.float32(1)
    for k in range(4):
        wanted[k] = 2 * total
        total = (wanted[k] if variable else total) + X[k, 0]
    above = X[X[:, 0] > 0, 0]
    wanted[4 : 4 + len(above)] = above
    with_macros(variable)(X, y)
    np.testing.assert_array_equal(y, wanted)
