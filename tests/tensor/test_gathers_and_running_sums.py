"""Rows and elements at indices that are read, and running sums, of whole tensors: what NumPy computes, or a reason why not."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tests.tensor.test_tensor_meaning import WithTransposes, assert_near, softmax
from tile_eg.errors import TileError
from tile_eg.frontend.text import load_text
from tile_eg.ir import kernel as kn
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.reference import run_kernel
from tile_eg.search.compiler import lower

Array = Any
Form = tuple[Callable[..., Any], list[Array]]
FILES = count()
EXAMPLES = Path(__file__).parents[2] / "examples"
RNG = np.random.default_rng(1)


def f(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def i(below: int, *shape: int) -> Array:
    return RNG.integers(0, below, shape).astype(np.int32)


def at(n: int, x: Array) -> Array:
    return np.arange(n) if isinstance(x, np.ndarray) else T.arange(n)


def causal(q: Array, k: Array, v: Array, g: Array) -> Array:
    """Linear attention with decays."""
    p, total = at(80, q), np.cumsum(g * 0.1, axis=0)
    return np.where(p[:, None] >= p, (q @ k.mT) * np.exp(total[:, None] - total), 0) @ v


GATHERS: dict[str, Form] = {
    "rows": (lambda w, t: w[t] * 2, [f(50, 48), i(50, 37)]),
    "planes of rows": (lambda w, t: w[t], [f(50, 48), i(50, 5, 37)]),
    "columns": (lambda w, t: w[:, t], [f(50, 48), i(48, 37)]),
    "an element of each row": (lambda w, t: w[at(50, w), t], [f(50, 48), i(48, 50)]),
    "elements of each row": (lambda w, t: w[at(20, w)[:, None], t], [f(20, 50), i(50, 20, 37)]),
    "elements of a vector": (lambda w, t: w[t] + 1, [f(50), i(50, 37)]),
    "one row": (lambda w, t: w[t[3]] + 1, [f(50, 48), i(50, 37)]),
    "a loss": (lambda w, t: np.mean(np.log(np.sum(np.exp(w), axis=-1)) - w[at(50, w), t]), [f(50, 48), i(48, 50)]),
    "a sum of rows": (lambda w, t: np.sum(w[t], axis=0), [f(50, 48), i(50, 37)]),
    "weighted sums": (lambda w, t, g: np.sum(w[t] * g[:, :, None], axis=1), [f(50, 48), i(50, 37, 3), f(37, 3)]),
    "blocks": (lambda q, k, t: softmax(q @ np.reshape(k[t], (-1, 32)).mT), [f(20, 32), f(9, 16, 32), i(9, 5)]),
    "keys and values": (lambda q, k, v, t: softmax(q @ k[t].mT) @ v[t], [f(20, 32), f(60, 32), f(60, 48), i(60, 35)]),
    "keys of a batch": (lambda q, k, t: softmax(q @ k[at(2, q)[:, None], t].mT), [f(2, 20, 32), f(2, 60, 32), i(60, 2, 35)]),
    "rows of a product": (lambda a, b, t: (a @ b)[t], [f(50, 32), f(32, 40), i(50, 35)]),
    "rows of a softmax": (lambda a, t: softmax(a)[t], [f(50, 32), i(50, 35)]),
    "rows of two axes": (lambda w, t: np.reshape(w, (50, 24))[t], [f(10, 5, 24), i(50, 35)]),
    "indices of indices": (lambda w, p, t: w[p[t // 8] * 8 + t % 8], [f(56, 24), i(7, 7), i(56, 35)]),
    "a sum of rows at rests": (lambda w, t: np.sum(w[t % 20], axis=0), [f(20, 24), i(100, 37)]),
    "a sum of rows at quotients": (lambda w, t: np.sum(w[t // 20], axis=0), [f(5, 24), i(100, 37)]),
    "backwards": (lambda w: w[36 - at(37, w)], [f(37, 24)]),
    "windows that slide": (lambda w, g: np.sum(w[at(20, w)[:, None] + at(3, w)] * g[:, None], axis=1), [f(22, 24), f(3)]),
    "less a diagonal": (lambda w: w - w[at(20, w), at(20, w)][:, None], [f(20, 20)]),
    "turned": (lambda w, t: w[t, :24].mT, [f(50, 48), i(50, 37)]),
    "an axis between": (lambda w, t, u: w[t, :, u], [f(30, 20, 48), i(30, 37), i(48, 37)]),
    "a number beside it": (lambda w, t: w[1, :, t], [f(3, 50, 48), i(48, 37)]),
    "new axes": (lambda w, t: w[None, t, :, None], [f(30, 20), i(30, 37)]),
    "whole numbers": (lambda w, t: w[t] + 1, [i(100, 50, 48), i(50, 37)]),
    "a choice": (lambda w, t: np.where(t[:, None] > 20, w[t], 0), [f(50, 48), i(50, 37)]),
}
SCANS: dict[str, Form] = {
    "rows": (lambda x: np.cumsum(x, axis=1), [f(37, 90)]),
    "columns": (lambda x: np.cumsum(x, axis=0), [f(90, 37)]),
    "a vector": (lambda x: np.cumsum(x) * 2, [f(700)]),
    "a long vector": (lambda x: np.cumsum(x, axis=0), [f(5000)]),
    "long rows": (lambda x: np.cumsum(x, axis=1), [f(3, 4300)]),
    "planes": (lambda x: np.cumsum(x, axis=0), [f(5, 20, 24)]),
    "columns of planes": (lambda x: np.cumsum(x, axis=1) + 1, [f(3, 70, 24)]),
    "products of rows": (lambda x: np.cumprod(x * 0.1 + 1, axis=1), [f(37, 90)]),
    "decays": (lambda x, y: np.exp(-np.cumsum(x * x, axis=-1) / 90) * y, [f(37, 90), f(37, 90)]),
    "sums of a softmax": (lambda x: np.cumsum(softmax(x), axis=0), [f(90, 37)]),
    "a softmax of sums": (lambda x: softmax(np.cumsum(x, axis=-1)), [f(37, 90)]),
    "a mean of sums": (lambda x: np.mean(np.cumsum(x, axis=0), axis=0), [f(90, 37)]),
    "all sums": (lambda x: np.sum(np.cumsum(x, axis=0)), [f(90, 37)]),
    "a sum of planes": (lambda x: np.sum(np.cumsum(x, axis=1), axis=0), [f(5, 20, 24)]),
    "along both axes": (lambda x: np.cumsum(np.cumsum(x, axis=0), axis=1), [f(90, 37)]),
    "turned": (lambda x: np.cumsum(x, axis=0).T, [f(90, 37)]),
    "of what is turned": (lambda x: np.cumsum(x.T, axis=0), [f(90, 37)]),
    "an operand": (lambda x, w: np.cumsum(x, axis=0) @ w, [f(90, 37), f(37, 40)]),
    "of a product": (lambda x, w: np.cumsum(x @ w, axis=0), [f(90, 37), f(37, 40)]),
    "rows of a product": (lambda x, w: np.cumsum(x @ w, axis=1), [f(90, 37), f(37, 80)]),
    "attention with decays": (causal, [f(80, 32), f(80, 32), f(80, 32), f(80)]),
    "beside a sum": (lambda x: x / np.sum(x * x, axis=0) + np.cumsum(x, axis=0), [f(90, 37)]),
    "gathered rows": (lambda x, t: np.cumsum(x[t], axis=0), [f(50, 24), i(50, 37)]),
}
FORMS = {f"gather {n}": x for n, x in GATHERS.items()} | {f"scan {n}": x for n, x in SCANS.items()}


def kernel_of(form: Callable[..., Any], arrays: Sequence[Array]) -> Any:
    names = [f"x{n}" for n in range(len(arrays))]
    given = ", ".join(f'{n}: T.Tensor({a.shape}, "{a.dtype}")' for n, a in zip(names, arrays, strict=True))
    text = f"def kernel({given}):\n    return form({', '.join(names)})\n"
    file = f"<gathers {next(FILES)}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    made: dict[str, Any] = {"T": T, "form": form}
    exec(compile(text, file, "exec"), made)
    return tile_eg.jit(made["kernel"], effort="none")


def meant(form: Callable[..., Any], arrays: Sequence[Array]) -> Array:
    exact = [(a.astype(np.float64) if a.dtype.kind == "f" else a).view(WithTransposes) for a in arrays]
    return np.atleast_1d(np.asarray(form(*exact)))


@pytest.mark.slow(but=6)
@pytest.mark.parametrize("name", FORMS)
def test_the_kernel_tree_means_what_numpy_computes(name: str) -> None:
    form, arrays = FORMS[name]
    kernel, want = kernel_of(form, arrays).kernel, meant(form, arrays)
    names = kernel.open if isinstance(kernel, OpenKernel) else ()
    for sizes in (16, 32), (512, 512):
        built = kernel.build(dict(zip(names, sizes * 2, strict=False))) if names else kernel
        out = run_kernel(built, {t.name: a for t, a in zip(kernel.tensors, arrays, strict=False)})
        assert_near(out[kernel.tensors[-1].name], want, 1e-5)


USUAL = ("gather an element of each row", "gather keys and values", "scan columns", "scan a mean of sums",
         "scan attention with decays")  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", USUAL)
def test_the_text_computes_it(name: str) -> None:
    form, arrays = FORMS[name]
    assert_near(kernel_of(form, arrays)(*arrays), meant(form, arrays), 1e-5)


@pytest.mark.long
@pytest.mark.parametrize("name", [n for n in FORMS if n not in USUAL])
def test_so_does_that_of_the_others(name: str) -> None:
    form, arrays = FORMS[name]
    assert_near(kernel_of(form, arrays)(*arrays), meant(form, arrays), 1e-5)


@pytest.mark.slow
def test_an_index_outside_is_told_with_its_value() -> None:
    w, t = f(50, 16), i(50, 8)
    t[3] = 77
    with pytest.raises(TileError, match="an index of `x0` that is read is 77: dimension 0 has 50 elements"):
        kernel_of(lambda w, t: w[t], [w, t])(w, t)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [{"BM": 16, "BN": 24}, {"BM": 8, "BN": 16}])
def test_several_indices_a_row_end_with_their_tensor(sizes: dict[str, int]) -> None:
    text = "kernel k(W: f32[50, 24], t: i32[20, 4]) -> O: f32[20, 24] { O = sum(W[t], axis=1) }"
    w, t = f(50, 24), i(50, 20, 4)
    got = lower(load_text(text).instantiate(sizes)).run({"W": w, "t": t})["O"]
    assert_near(got, w[t].astype(np.float64).sum(axis=1), 1e-5)


@pytest.mark.slow
def test_text_gathers_and_adds_up_too() -> None:
    text = "kernel k(W: f32[50, 24], t: i32[37]) -> O: f32[37, 24] { O = cumsum(W[t], axis=0) }"
    w, t = f(50, 24), i(50, 37)
    got = lower(load_text(text).instantiate({"BM": 16, "BK": 16})).run({"W": w, "t": t})["O"]
    assert_near(got, np.cumsum(w[t].astype(np.float64), axis=0), 1e-5)


SAME = {
    "scans/cumsum_rows": "(X: f32[M, N]) -> Y: f32[M, N] { Y = cumsum(X, axis=-1) }",
    "scans/cumsum_columns": "(X: f32[M, N]) -> Y: f32[M, N] { Y = cumsum(X, axis=0) }",
    "moe/embedding": "(W: f16[V, N], token: i32[R]) -> Y: f16[R, N] { Y = W[token] }",
    "sparse/sparse_mla": """(Q: f16[B, S, H, C + R], KV: f16[B, N, C + R], at: i32[B, S, K]) -> O: f16[B, S, H, C] {
      kv = KV[arange(B)[:, None, None], at]
      O = softmax(Q @ kv.mT / sqrt(C + R)) @ kv[:, :, :, 0:C]
    }""",
}
"""Examples as whole tensors."""
LARGE = {
    "scans/cumsum_rows": {"M": 4096}, "scans/cumsum_columns": {"M": 2048, "N": 4096},
    "moe/embedding": {"R": 4096, "V": 32000, "N": 4096},
    "sparse/sparse_mla": {"S": 64, "H": 64, "N": 4096, "K": 512, "C": 512, "R": 64},
}  # fmt: skip


def no_slower(name: str, sizes: dict[str, int]) -> None:
    source = load_text((EXAMPLES / f"{name}.tile").read_text())
    tiles: dict[str, Any] = {n: "auto" for n in source.sizes if n in ("BM", "BN")}
    given = {n: sizes.get(n, default) for n, default in source.sizes.items() if n not in tiles}
    head = ", ".join(f"{n}={size}" for n, size in given.items())
    whole = lower(load_text(f"kernel k[{head}]{SAME[name]}").instantiate()).cost.microseconds
    assert whole <= 1.1 * min(lower(source.instantiate({**sizes, **t})).cost.microseconds for t in ({}, tiles))


@pytest.mark.parametrize("rows, reduced", [(2048, False), (2040, True)])
def test_the_sum_of_whole_tiles_so_far_is_their_last_row(rows: int, reduced: bool) -> None:
    kernel = load_text(f"kernel k(X: f32[{rows}, 64]) -> Y: f32[{rows}, 64] {{ Y = cumsum(X, axis=0) }}").instantiate()
    assert isinstance(kernel, OpenKernel)
    body = str(kernel.build(dict.fromkeys(kernel.open, 32)).body)
    assert ("Reduce(" in body) is reduced


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["scans/cumsum_columns", "moe/embedding"])
def test_it_is_no_slower_than_tiles_and_loops(name: str) -> None:
    no_slower(name, {})


@pytest.mark.long
@pytest.mark.parametrize("name", SAME)
def test_nor_is_it_on_large_tensors(name: str) -> None:
    no_slower(name, LARGE[name])


def test_rows_that_are_gathered_for_a_product_are_a_load_of_the_product() -> None:
    """The rows are read where the product takes them: no second buffer holds them."""
    form, arrays = GATHERS["keys and values"]
    kernel = kernel_of(form, arrays).kernel
    loops = [s for s in kernel.build(dict.fromkeys(kernel.open, 16)).body if isinstance(s, kn.For)]
    assert sum(isinstance(s, kn.Parallel) for loop in loops for s in loop.body) == 2


REFUSED: dict[str, tuple[Form, str, str]] = {
    "computed": ((lambda w, t: w[np.argmax(t, axis=1)], [f(50, 24), f(20, 50)]), "is read from an input", "an output of"),
    "floats": ((lambda w, t: w[t], [f(50, 24), f(20)]), "an index is i32, not f32", "int32"),
    "a condition": ((lambda w, t: w[t > 0], [f(50, 24), f(50)]), "no elements at a condition", "T.where"),
    "too many": ((lambda w, t: w[t, t, t], [f(50, 24), i(20, 20)]), "has 2 axes, not 3", ""),
    "shapes": ((lambda w, t, u: w[t, u], [f(50, 24), i(20, 20), i(20, 21)]), "do not broadcast", "or are 1"),
    "columns": ((lambda q, w, t: q @ w[:, t], [f(20, 32), f(32, 60), i(60, 40)]), "of one row at a time", "rows of it"),
    "a diagonal of rows": ((lambda w: w[at(20, w), at(20, w)], [f(20, 24, 32)]), "of a diagonal single", "reshape the array"),
    "a window's": ((lambda w, t: w[2:10][t], [f(20, 24), i(8, 20)]), "pick elements of a window", "idx + 2"),
    "from the end": ((lambda w: w[at(20, w) - 1], [f(20, 24)]), "from -1 to 18, of an axis of 20", "a slice"),
    "alike": ((lambda x: np.cumprod(T.broadcast_to(x[:, None], 37, 90), axis=1), [f(37)]), "elements are the same", "arange"),
    "no axis": ((lambda x: np.cumsum(x), [f(20, 24)]), "goes along an axis", "cumsum(x, axis=-1)"),
    "sums of i32": ((lambda x: np.cumsum(x, axis=0), [i(20, 24)]), "`cumsum` takes floats", "float32"),
    "a part": ((lambda x: np.cumsum(x, axis=1)[:, 1:], [f(20, 24)]), "no part of it alone", "an output of a kernel"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_there_is_told_with_a_way_out(name: str) -> None:
    (form, arrays), message, help = REFUSED[name]
    with pytest.raises(TileError, match=message) as caught:
        kernel_of(form, arrays).kernel  # noqa: B018
    assert help in str(caught.value.help)
