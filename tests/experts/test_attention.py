"""Expert attention is a real program: it computes the softmax of every head and breaks none of the machine's rules."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experts.attention import Attention, attention, expert

from .running import halves, ran


def close(a: Attention, order: int | None = None) -> bool:
    shapes = {"Q": a.queries, "K": a.keys, "V": a.keys}
    given = {name: halves(a.heads * rows, a.head, seed=i) for i, (name, rows) in enumerate(shapes.items())}
    q, k, v = (x.astype(np.float32).reshape(a.heads, -1, a.head) for x in given.values())
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(a.head)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    expected = e / e.sum(-1, keepdims=True) @ v
    return np.allclose(ran(attention(a), given, order), expected.reshape(-1, a.head), atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("head", [64, 128])
def test_the_expert_s_attention_is_right(head: int) -> None:
    assert close(expert(128, 1280, head, heads=3, cores=2))


@pytest.mark.slow
def test_tiles_of_256_keys_are_right() -> None:
    assert close(Attention(256, 512, 256, 1))


@pytest.mark.slow
def test_an_unfavourable_order_gives_the_same_numbers() -> None:
    assert close(expert(128, 512, 64, heads=3, cores=2), order=1)


def test_a_length_that_would_need_tails_is_refused() -> None:
    with pytest.raises(ValueError, match="no tails"):
        Attention(128, 200)
