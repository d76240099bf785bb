"""Losses of torch.nn.functional, of whole tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_eg import language as T
from tile_eg.errors import TileError


def _reduced(loss: Any, reduction: str) -> Any:
    if reduction not in ("mean", "sum", "none"):
        raise TileError(f"a loss is reduced by mean, sum or none, not by {reduction!r}")
    return loss if reduction == "none" else getattr(T, reduction)(loss)


def _loss(of: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def loss(x: Any, target: Any, *, reduction: str = "mean") -> Any:
        return _reduced(of(x, target), reduction)

    return loss


def _smooth(x: Any, y: Any, *, beta: float = 1.0, delta: float = 1.0, reduction: str = "mean") -> Any:
    """Huber's loss, of `beta` over it."""
    edge, d = beta * delta, T.abs(x - y)
    if not beta:
        return _reduced(d, reduction)
    return _reduced(T.where(d < edge, 0.5 * d * d / beta, (d - 0.5 * edge) * (edge / beta)), reduction)


def _with_logits(x: Any, y: Any) -> Any:
    return T.maximum(x, 0) - x * y + T.log1p(T.exp(-T.abs(x)))


def _of_classes(x: Any) -> int:
    """The axis of the classes: the only one, or the one behind the batch."""
    return min(1, len(x.shape) - 1)


def _at_targets(x: Any, target: Any) -> Any:
    """What x has at each target, -inf at one that is no class. x: [N, C, ...] or [C]; target: x less the axis of classes."""
    axis = _of_classes(x)
    without = (*x.shape[:axis], *x.shape[axis + 1 :])
    if tuple(target.shape) != without:
        raise TileError(f"targets of classes of {tuple(x.shape)} have the shape {without}, not {tuple(target.shape)}")
    classes = T.reshape(T.arange(x.shape[axis]), [-1, *[1] * (len(x.shape) - 1 - axis)])
    found = T.sum(T.where(T.expand_dims(target, axis) == classes, x, 0), axis=axis)
    return T.where((target >= 0) & (target < x.shape[axis]), found, float("-inf"))


def _of_kept(loss: Any, kept: Any, reduction: str) -> Any:
    """A loss whose mean is over the targets that are kept; the others count nothing."""
    loss = T.where(kept, loss, 0)
    if reduction != "mean":
        return _reduced(loss, reduction)
    return (T.sum(loss) / T.sum(kept).astype("float32")).astype(loss.dtype)


def _nll(x: Any, target: Any, *, reduction: str = "mean", ignore_index: int = -100) -> Any:
    """Less the logarithm of what each row has at its target."""
    return _of_kept(-_at_targets(x, target), target != ignore_index, reduction)


def _cross_entropy(
    x: Any, target: Any, *, reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0
) -> Any:
    """Of classes, or of the probabilities of each class."""
    axis = _of_classes(x)
    logs = T.log_softmax(x, axis=axis)
    if target.shape == x.shape:
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / x.shape[axis]
        return _reduced(-T.sum(logs * target, axis=axis), reduction)
    loss = -_at_targets(logs, target)
    if label_smoothing:
        loss = (1 - label_smoothing) * loss - label_smoothing * T.mean(logs, axis=axis)
    return _of_kept(loss, target != ignore_index, reduction)


LOSSES: dict[str, Callable[..., Any]] = {
    "mse_loss": _loss(lambda x, y: (x - y) * (x - y)), "l1_loss": _loss(lambda x, y: T.abs(x - y)), "smooth_l1_loss": _smooth,
    "huber_loss": _smooth, "binary_cross_entropy_with_logits": _loss(_with_logits), "nll_loss": _nll,
    "cross_entropy": _cross_entropy,
}  # fmt: skip
"""The losses by torch's names."""
