"""Tensors whose memory does not hold their elements as they are: each is refused with the call that makes a plain one of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tile_eg
from tile_eg import language as T
from tile_eg.errors import TileError
from tile_eg.jit.on_npu import _check_torch

torch = pytest.importorskip("torch")


@tile_eg.jit
def doubled(X: T.Tensor((16, 64), "float32")):
    return X + X


def quantised() -> Any:
    return torch.quantize_per_tensor(torch.ones(16, 64), 0.1, 0, torch.qint8)


def negated() -> Any:
    return torch.complex(torch.ones(16, 64), torch.ones(16, 64)).conj().imag


KINDS: dict[str, tuple[Callable[[], Any], str, Callable[[Any], Any]]] = {
    "negated": (negated, "resolve_neg", torch.Tensor.resolve_neg),
    "quantised": (quantised, "dequantize", torch.Tensor.dequantize),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(64)] * 16), "to_padded_tensor", lambda x: x.to_padded_tensor(0)),
    "sparse": (lambda: torch.ones(16, 64).to_sparse(), "to_dense", torch.Tensor.to_dense),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_that_is_not_plain_is_refused_with_what_makes_it_so(kind: str) -> None:
    make, way, plain = KINDS[kind]
    for call in (doubled, lambda x: _check_torch(x, "X")):
        with pytest.raises(TileError) as caught:
            call(make())
        assert way in caught.value.help
    x = plain(make())
    assert torch.equal(doubled(x), x + x)
