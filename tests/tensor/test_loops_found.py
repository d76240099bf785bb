"""What becomes of an expression: which loops there are, what they share, which tiles they leave out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tile_eg.frontend.text import load_text
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import evaluate
from tile_eg.ir.open_kernel import OpenKernel

ATTENTION = "kernel k[S=256, D=64](Q: f16[S, D], K: f16[S, D], V: f16[S, D]) -> O: f16[S, D] { %s }"
CAUSAL = "i = arange(S)\n O = softmax(where(%s, Q @ K.T, -inf)) @ V"


def built(source: str, **sizes: int) -> kn.Kernel:
    """The kernel with tiles of 64, or of these sizes."""
    kernel = load_text(source).instantiate()
    assert isinstance(kernel, OpenKernel)
    return kernel.build({**dict.fromkeys(kernel.open, 64), **sizes})


def loops(body: tuple[kn.Stmt, ...]) -> list[kn.For]:
    return [s for s in body if isinstance(s, kn.For)]


def nodes(x: object) -> Iterator[object]:
    yield x
    for part in x if isinstance(x, tuple) else vars(x).values() if hasattr(x, "__dataclass_fields__") else ():
        yield from nodes(part)


def products(kernel: kn.Kernel) -> int:
    return sum(isinstance(n, kn.MatMul) for n in nodes(kernel.body))


def test_attention_is_one_loop_with_a_running_maximum() -> None:
    kernel = built(ATTENTION % "O = softmax(Q @ K.T / sqrt(D)) @ V")
    assert len(loops(kernel.body)) == 1
    assert products(kernel) == 2


@pytest.mark.slow
def test_a_softmax_that_is_written_out_is_the_same() -> None:
    apart = "s = Q @ K.T / sqrt(D)\n e = exp(s - max(s, axis=-1, keepdims=1))\n O = (e / sum(e, axis=-1, keepdims=1)) @ V"
    behind = "s = Q @ K.T / sqrt(D)\n e = exp(s - max(s, axis=-1, keepdims=1))\n O = e @ V / sum(e, axis=-1, keepdims=1)"
    want = built(ATTENTION % "O = softmax(Q @ K.T / sqrt(D)) @ V")
    assert built(ATTENTION % apart) == want
    assert built(ATTENTION % behind) == want


DECODE = "kernel k[B=4, S=256, D=64](Q: f16[B, 1, D], K: f16[B, S, D], V: f16[B, S, D]) -> O: f16[B, 1, D] { %s }"


def test_one_query_is_multiplied_by_tiles_of_keys_and_values() -> None:
    kernel = built(DECODE % "O = softmax(Q @ K.mT / sqrt(D)) @ V")
    assert len(loops(kernel.body)) == 1
    assert products(kernel) == 2


def test_a_sum_of_products_of_two_matrices_is_their_product() -> None:
    kernel = built("kernel k(A: f16[64, 96], B: f16[96, 128]) -> C: f16[64, 128] { C = sum(A[:, :, None] * B, axis=1) }")
    assert products(kernel) == 1


def test_a_sum_of_products_of_whole_numbers_stays_a_sum() -> None:
    kernel = built("kernel k(A: i32[64, 96], B: i32[96, 128]) -> C: i32[64, 128] { C = sum(A[:, :, None] * B, axis=1) }")
    assert products(kernel) == 0


def test_a_sum_of_products_of_one_element_each_stays_a_sum() -> None:
    kernel = built("kernel k(A: f16[64, 96], B: f16[64, 96]) -> C: f16[64] { C = sum(A * B, axis=1) }")
    assert products(kernel) == 0


def test_a_softmax_that_is_rounded_before_the_product_takes_a_second_loop() -> None:
    kernel = built(ATTENTION % "O = f16(softmax(Q @ K.T)) @ V")
    assert len(loops(kernel.body)) == 2


def test_keys_in_one_tile_take_no_loop() -> None:
    kernel = built(ATTENTION % "O = softmax(Q @ K.T) @ V", BK=256)
    assert loops(kernel.body) == []


@pytest.mark.parametrize(
    ("mask", "trips"),
    [
        ("i[:, None] >= i", [1, 2, 3, 4]),
        ("i[:, None] > i", [1, 2, 3, 4]),
        ("i <= i[:, None]", [1, 2, 3, 4]),
        ("(i[:, None] >= i) & (i[:, None] - i < 64)", [1, 2, 2, 2]),
        ("i >= i[:, None]", [4, 3, 2, 1]),
        ("i >= 128", [2, 2, 2, 2]),
    ],
)
def test_tiles_that_a_mask_leaves_nothing_of_are_not_computed(mask: str, trips: list[int]) -> None:
    (loop,) = loops(built(ATTENTION % (CAUSAL % mask)).body)
    assert [loop.extent if loop.count is None else evaluate(loop.count, {"bx": bx}) for bx in range(4)] == trips


def test_a_mask_by_values_leaves_no_tile_out() -> None:
    (loop,) = loops(built(ATTENTION % "O = softmax(where(Q @ K.T > 0, Q @ K.T, -inf)) @ V").body)
    assert loop.count is None


def test_a_norm_before_a_product_is_a_factor_behind_it() -> None:
    source = "kernel k[M=128, K=256, N=64](X: f16[M, K], W: f16[K, N]) -> Y: f16[M, N] { %s }"
    kernel = built(source % "Y = (X / sqrt(mean(X * X, axis=-1, keepdims=1) + 1e-5)) @ W")
    assert len(loops(kernel.body)) == 1


def test_rows_of_vector_cores_lie_in_tiles_whole() -> None:
    kernel = built("kernel k[M=128, N=8192](X: f32[M, N]) -> Y: f32[M, N] { Y = softmax(X) }")
    assert loops(kernel.body) == []
    assert {s.shape for s in kernel.body if isinstance(s, kn.Alloc)} == {(64, 8192), (64,)}


def test_the_sizes_of_tiles_can_be_given() -> None:
    template = load_text("kernel k[M=128, N=256](A: f32[M, N], v: f32[N]) -> B: f32[M, N] { B = A + v }")
    assert isinstance(template.instantiate(), OpenKernel)
    assert template.instantiate({"BM": 32, "BN": 64}).grid == (("bx", 4), ("by", 4))


def test_the_text_is_the_same_every_time() -> None:
    source = ATTENTION % (CAUSAL % "i[:, None] >= i")
    assert built(source) == built(source)
