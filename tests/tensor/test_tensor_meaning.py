"""An expression of whole tensors means what NumPy computes of the same expression: at any sizes of tiles, and as it runs."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.reference import run_kernel

Array = Any
NUMBERS = count()


class WithTransposes(np.ndarray):
    """NumPy's array with `.mT`, which older versions lack."""

    @property
    def mT(self) -> Array:  # noqa: N802
        return self.swapaxes(-1, -2)


def softmax(x: Array) -> Array:
    """Written out, so that it means the same on arrays and on the values of a kernel."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(q: Array, k: Array, v: Array) -> Array:
    return softmax(q @ k.mT * 0.125) @ v


def masked(q: Array, k: Array, v: Array, far: int = 1000) -> Array:
    i, j = positions(q)[:, None], positions(q)
    return softmax(np.where((i >= j) & (i - j < far), q @ k.mT * 0.125, -np.inf)) @ v


def positions(x: Array) -> Array:
    return np.arange(x.shape[-2]) if isinstance(x, np.ndarray) else T.arange(x.shape[-2])


def rms(x: Array) -> Array:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def layer_norm(x: Array) -> Array:
    x = x - np.mean(x, axis=-1, keepdims=True)
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def shared_keys(q: Array, k: Array, v: Array) -> Array:
    heads = np.reshape(q, (2, 3, 40, 32))
    return np.reshape(softmax(heads @ k.mT[:, None] * 0.125) @ v[:, None], (6, 40, 32))


def heads_behind_tokens(q: Array, k: Array, v: Array) -> Array:
    q, k, v = (np.transpose(x, (0, 2, 1, 3)) for x in (q, k, v))
    return np.transpose(softmax(q @ k.mT * 0.125) @ v, (0, 2, 1, 3))


S, L = (40, 48), (48,)
Q, K, V = (50, 32), (70, 32), (70, 48)
FORMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "vectors": (lambda x, y: x * 2 + y, [(300,), (300,)]),
    "softmax of a vector": (softmax, [(300,)]),
    "sums of rows": (lambda x: np.sum(x, axis=1), [S]),
    "sums of columns": (lambda x: np.sum(x, axis=0), [(100, 48)]),
    "a mean over all": (lambda x: x - np.mean(x), [S]),
    "a mean over columns": (lambda x: x - np.mean(x, axis=0), [(100, 48)]),
    "a sum over planes": (lambda x: np.sum(x, axis=0), [(3, *S)]),
    "a sum over two axes": (lambda x: np.sum(x, axis=(1, 2)), [(3, *S)]),
    "a vector of rows": (lambda x, v: x + v, [S, L]),
    "a vector of columns": (lambda x, v: x * v[:, None], [S, (40,)]),
    "an outer product": (lambda u, v: u[:, None] * v, [(40,), L]),
    "the mean of an image before a product": (lambda x, w: np.mean(x, axis=(2, 3)) @ w, [(3, 16, 5, 7), (16, 9)]),
    "channels that products of means weigh": (
        lambda x, a, b: x * (np.maximum(np.mean(x, axis=(2, 3)) @ a, 0) @ b)[:, :, None, None],
        [(3, 16, 4, 4), (16, 5), (5, 16)],
    ),
    "one number of a tensor": (lambda x, v: x * v[:, None, None], [(3, *S), (3,)]),
    "a transpose": (lambda x, y: x.T + y, [(48, 40), S]),
    "a transposed result": (lambda x: softmax(x).T, [S]),
    "axes in another order": (lambda x: np.transpose(x, (2, 0, 1)), [(3, 20, 24)]),
    "a column": (lambda x, y: x[:, 3:4] * y, [S, S]),
    "halves of rows": (lambda x: x[:, :20] * x[:, 20:], [(40, 40)]),
    "rows in parts": (lambda x: softmax(np.reshape(x, (40, 3, 16))), [S]),
    "parts of rows in another order": (lambda x: np.swapaxes(np.reshape(x, (40, 3, 16)), 1, 2) + 1, [S]),
    "parts of rows that change places": (lambda x: np.reshape(np.swapaxes(np.reshape(x, (40, 3, 16)), 1, 2), S) + 1, [S]),
    "a sum over parts of rows": (lambda x: np.sum(np.swapaxes(np.reshape(x, (40, 3, 16)), 1, 2), axis=-1), [S]),
    "planes turned and laid in rows": (lambda x: np.reshape(np.swapaxes(x, 1, 2), (3, 640)) + 1, [(3, 20, 32)]),
    "planes as rows": (lambda x: np.reshape(x, (60, 20)) * 2, [(3, 20, 20)]),
    "layer norm": (layer_norm, [S]),
    "a product": (lambda a, b: a @ b, [(50, 64), (64, 40)]),
    "a product and its transposed operand": (lambda a: a @ a + a.T, [(37, 37)]),
    "a product beside itself turned": (lambda a, b: a @ b + (a @ b).T, [(37, 64), (64, 37)]),
    "sums of what lies turned": (lambda x, y: np.sum(x.T * y, axis=1), [(48, 40), S]),
    "a sum of all that lies turned": (lambda x, y: np.sum(x.T * y), [(48, 40), S]),
    "the largest of all that lies turned": (lambda x, y: np.max(x.T * y), [(48, 40), S]),
    "a sum of all of a product less another": (lambda a, b, c: np.mean((a @ b - c) ** 2), [(50, 64), (64, 40), (50, 40)]),
    "heads with their tokens along rows": (lambda x: np.transpose(x, (1, 2, 0)), [(40, 3, 20)]),
    "a product turned": (lambda a, b: (a @ b).T, [(50, 64), (64, 40)]),
    "a matrix by itself": (lambda a: a @ a.T, [(50, 64)]),
    "a matrix by a vector": (lambda a, v: a @ v, [(50, 64), (64,)]),
    "a vector by a matrix": (lambda v, a: v @ a, [(50,), (50, 64)]),
    "a batch of products": (lambda a, b: a @ b, [(2, 3, 33, 64), (2, 1, 64, 40)]),
    "a product and a bias": (lambda a, b, c: np.maximum(a @ b + c, 0), [(50, 64), (64, 40), (40,)]),
    "a computed right operand": (lambda a, b, s: a @ (np.exp(b) * s[:, None]), [(50, 64), (64, 40), (64,)]),
    "two layers": (lambda x, a, b: np.maximum(x @ a, 0) @ b, [(50, 64), (64, 70), (70, 40)]),
    "softmax of a product": (lambda a, b: softmax(a @ b), [(50, 64), (64, 300)]),
    "norm of a product": (lambda a, b: rms(a @ b), [(50, 64), (64, 100)]),
    "product of a norm": (lambda a, b: rms(a) @ b, [(50, 100), (100, 64)]),
    "product of a layer norm": (lambda a, b: layer_norm(a) @ b, [(50, 100), (100, 64)]),
    "attention": (attention, [Q, K, V]),
    "attention of heads": (attention, [(2, *Q), (2, *K), (2, *V)]),
    "attention without softmax": (lambda q, k, v: (q @ k.T * 0.125) @ v, [Q, K, V]),
    "attention with a bias": (lambda q, k, v, b: softmax(q @ k.T * 0.125 + b) @ v, [Q, K, V, (50, 70)]),
    "attention with a mask of its own": (lambda q, k, v, b: softmax(np.where(b > 0, q @ k.T, -1e4)) @ v, [Q, K, V, (50, 70)]),
    "causal attention": (masked, [K, K, V]),
    "attention in a window": (lambda q, k, v: masked(q, k, v, 20), [K, K, V]),
    "attention with slopes": (
        lambda q, k, v, s: softmax(q @ k.mT + s[:, None, None] * (positions(q) - positions(q)[:, None])) @ v,
        [(2, *K), (2, *K), (2, *V), (2,)],
    ),
    "attention with shared keys": (shared_keys, [(6, 40, 32), (2, 50, 32), (2, 50, 32)]),
    "attention with keys that are repeated": (
        lambda q, k, v: softmax(q @ np.reshape(np.broadcast_to(k[:, None], (2, 3, 50, 32)), (6, 50, 32)).mT * 0.125) @ v,
        [(6, 40, 32), (2, 50, 32), (50, 32)],
    ),
    "a choice by what a mask leaves": (
        lambda x: np.where(np.where(positions(x)[:, None] >= positions(x), x, 0) != 0, x, 2), [(37, 37)],
    ),
    "a choice by scaled positions": (lambda x, v: np.where(x > v[:, None] * positions(x), x, 2), [(37, 37), (37,)]),
    "attention of one query": (attention, [(3, 1, 32), (3, 70, 32), (3, 70, 48)]),
    "two layers of one row": (lambda x, a, b: np.maximum(x @ a, 0) @ b, [(1, 64), (64, 70), (70, 40)]),
    "a product written out": (lambda a, b: np.sum(a[:, :, None] * b, axis=1), [(50, 33), (33, 49)]),
    "products with vectors written out": (lambda a, v: np.sum(a * v[:, None], axis=-1), [(3, 30, 40), (3, 40)]),
    "heads behind tokens": (heads_behind_tokens, [(2, 40, 3, 32)] * 3),
}
CASES = [pytest.param(*form, id=name) for name, form in FORMS.items()]


def kernel_of(form: Callable[..., Any], shapes: list[tuple[int, ...]], dtype: str | list[str]) -> Any:
    """A function that returns the form of tensors of these shapes, as if it stood in a file."""
    names = [f"x{n}" for n in range(len(shapes))]
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else dtype
    given = ", ".join(f'{n}: T.Tensor({s}, "{d}")' for n, s, d in zip(names, shapes, dtypes, strict=True))
    text = f"def kernel({given}):\n    return form({', '.join(names)})\n"
    file = f"<form {next(NUMBERS)}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    made = {"T": T, "form": form}
    exec(compile(text, file, "exec"), made)
    return tile_eg.jit(made["kernel"])


def drawn(shapes: list[tuple[int, ...]], dtype: str) -> list[Array]:
    rng = np.random.default_rng(7)
    return [rng.uniform(-1, 1, s).astype(dtype) for s in shapes]


def in_numpy(form: Callable[..., Any], arrays: list[Array]) -> Array:
    """What the form gives in double precision."""
    return np.asarray(form(*(a.astype(np.float64).view(WithTransposes) for a in arrays)))


def assert_near(got: Array, want: Array, tolerance: float) -> None:
    """A number is an array without dimensions, and in a kernel's tensor one of a single element."""
    got, want = np.atleast_1d(got), np.atleast_1d(want)
    assert got.shape == want.shape
    assert np.abs(got.astype(np.float64) - want).max() <= tolerance * max(1, np.abs(want).max())


@pytest.mark.slow
@pytest.mark.parametrize(("form", "shapes"), CASES)
def test_the_kernel_tree_means_what_numpy_computes_at_any_tiles(form: Callable[..., Any], shapes: list[tuple[int, ...]]) -> None:
    arrays = drawn(shapes, "float32")
    kernel = kernel_of(form, shapes, "float32").kernel
    want = in_numpy(form, arrays)
    names = kernel.open if isinstance(kernel, OpenKernel) else ()
    for sizes in (16, 32), (64, 16), (512, 512):
        built = kernel.build(dict(zip(names, sizes * 2, strict=False))) if names else kernel
        out = run_kernel(built, {t.name: a for t, a in zip(kernel.tensors, arrays, strict=False)})
        assert_near(out[kernel.tensors[-1].name], want, 1e-5)


@pytest.mark.few(11)
@pytest.mark.slow
@pytest.mark.parametrize(("form", "shapes"), CASES)
def test_the_emitted_kernel_computes_what_numpy_does(form: Callable[..., Any], shapes: list[tuple[int, ...]]) -> None:
    arrays = drawn(shapes, "float16")
    assert_near(kernel_of(form, shapes, "float16")(*arrays), in_numpy(form, arrays), 5e-3)
