"""Functions of torch and of torch.nn.functional in functions of whole tensors compute what torch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tensor.test_tensor_meaning import kernel_of
from tile_eg.errors import TileError
from tile_eg.ir.open_kernel import OpenKernel
from tile_eg.ir.reference import run_kernel

torch = pytest.importorskip("torch")
F = torch.nn.functional
SHAPE = (12, 16)


def attention(x: Any) -> Any:
    q = x.view(12, 2, 8).transpose(0, 1)
    return F.scaled_dot_product_attention(q, q, q, is_causal=True)


def masked(x: Any) -> Any:
    s = (x @ x.t()).masked_fill(torch.tril(torch.ones(12, 12)) == 0, float("-inf"))
    return torch.einsum("ij,jk->ik", F.softmax(s, dim=-1, dtype=torch.float32), x)


def activations(x: Any) -> Any:
    a, b = x.chunk(2, dim=-1)
    smooth = F.elu(a) + F.mish(b) - F.hardswish(a) + F.logsigmoid(b) + F.softplus(a) + F.gelu(a, approximate="tanh")
    return smooth + F.leaky_relu(a, 0.1) + F.relu6(b * 9) + F.silu(a) * b


def joined(x: Any) -> Any:
    a, b = torch.split(x, [4, 12], dim=1)
    return torch.cat((torch.add(a, a, alpha=2), torch.where(b > 0, b, 0.5)), dim=1)


def norms(x: Any) -> Any:
    return F.layer_norm(x, (16,), x[0], x[1], 1e-5) + F.rms_norm(x, (16,), None, 1e-6) + F.normalize(x, dim=-1)


def losses(x: Any) -> Any:
    y = torch.roll(x, 1, 0)
    found = F.mse_loss(x, y) + F.smooth_l1_loss(x, y, beta=0.5) + F.huber_loss(x, y, delta=0.5) + F.l1_loss(x, y)
    return found + F.binary_cross_entropy_with_logits(x, torch.sigmoid(y)) + F.cosine_similarity(x, y, dim=1).sum()


def extremes(x: Any) -> Any:
    values, places = torch.max(x, dim=1)
    return values + places + torch.var(x, 1) + torch.std(x, dim=1, correction=0)


def moved(x: Any) -> Any:
    wide = x.repeat_interleave(2, dim=0).unflatten(1, (4, 4)).flatten(1)
    return wide + torch.repeat_interleave(x, 2, dim=0).view_as(wide) + x[:1].expand_as(wide)


def pooled(x: Any) -> Any:
    planes = x.view(2, 3, 4, 8)
    least = F.avg_pool2d(planes, 2) + F.adaptive_avg_pool2d(planes, 1)
    return F.max_pool2d(planes, 2) + least + F.avg_pool2d(planes[..., :5], 2, stride=(2, 1))


def normed(x: Any) -> Any:
    planes = x.view(2, 6, 2, 8)
    given = F.batch_norm(planes, x[0, :6], torch.abs(x[1, :6]), x[2, :6], x[3, :6])
    kept = F.dropout(x, training=False).view_as(planes)
    return given + F.group_norm(planes, 2, x[2, :6]) + F.batch_norm(planes, None, None, training=True) + kept


FORMS: list[Callable[[Any], Any]] = [attention, masked, activations, joined, norms, losses, extremes, moved, pooled, normed]


@pytest.mark.parametrize("form", FORMS)
def test_what_they_compute(form: Callable[[Any], Any]) -> None:
    x = torch.rand(SHAPE, generator=torch.Generator().manual_seed(5)) * 2 - 1
    got, want = kernel_of(form, [SHAPE], "float32")(x), form(x)
    torch.testing.assert_close(got, want.float(), rtol=1e-4, atol=1e-4)


def test_classes_in_a_tensor_of_whole_numbers() -> None:
    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(x, y) + F.nll_loss(F.log_softmax(x, dim=1), y, reduction="sum")

    x, y = torch.rand(SHAPE), torch.arange(12, dtype=torch.int32)
    got = kernel_of(loss, [SHAPE, (12,)], ["float32", "int32"])(x, y)
    torch.testing.assert_close(got, loss(x, y.long()), rtol=1e-4, atol=1e-4)


def test_elements_at_places() -> None:
    def picked(x: Any, i: Any) -> Any:
        return torch.gather(x, 1, i) + x.index_select(1, i[0])

    x, i = torch.rand(SHAPE), torch.randint(0, 16, (12, 5))
    got = kernel_of(picked, [SHAPE, (12, 5)], ["float32", "int32"])(x, i.int())
    torch.testing.assert_close(got, picked(x, i))


def test_convolutions_by_arguments_in_their_places() -> None:
    image, weight, bias = torch.rand(1, 4, 6, 8), torch.rand(6, 2, 3, 3), torch.rand(6)
    conv = lambda x, w, b: F.relu(F.conv2d(x, w, b, 2, (1, 1), 1, 2))  # noqa: E731
    torch.testing.assert_close(meant(conv, image, weight, bias), conv(image, weight, bias), rtol=1e-4, atol=1e-4)


def meant(form: Callable[..., Any], *given: Any) -> Any:
    """What the tree of a kernel computes."""
    dtypes = [str(x.dtype).removeprefix("torch.") for x in given]
    kernel = kernel_of(form, [tuple(x.shape) for x in given], dtypes).kernel
    built = kernel.build(dict.fromkeys(kernel.open, 16)) if isinstance(kernel, OpenKernel) else kernel
    out = run_kernel(built, {t.name: x.numpy().reshape(t.shape) for t, x in zip(kernel.tensors, given, strict=False)})
    result = kernel.tensors[-1]
    return torch.from_numpy(out[result.name].reshape(() if result.alone else result.shape))


X = torch.rand(SHAPE, generator=torch.Generator().manual_seed(5)) * 8 - 4
TARGETS = torch.tensor([3, -100, 0, 15, 1, -100, 5, 6, 7, 3, 9, 10], dtype=torch.int32)
OF_CLASSES: list[Callable[..., Any]] = [
    F.cross_entropy, F.nll_loss, lambda x, y: F.cross_entropy(x, y, reduction="sum", label_smoothing=0.3),
    lambda x, y: F.cross_entropy(x, y, label_smoothing=0.3), lambda x, y: F.cross_entropy(x, y, ignore_index=3),
    lambda x, y: F.nll_loss(x, y, ignore_index=3, reduction="none"),
]  # fmt: skip


@pytest.mark.parametrize("loss", OF_CLASSES)
def test_targets_that_are_ignored_are_left_out_of_the_mean(loss: Callable[..., Any]) -> None:
    targets = TARGETS if loss in OF_CLASSES[:4] else TARGETS.clamp(min=0)
    torch.testing.assert_close(meant(loss, X, targets), loss(X, targets.long()), rtol=1e-4, atol=1e-4)


def test_a_mean_over_no_targets_is_nan() -> None:
    assert meant(F.cross_entropy, X, TARGETS * 0 - 100).isnan()


@pytest.mark.parametrize("target", [16, -1])
def test_a_target_that_is_no_class_is_not_overlooked(target: int) -> None:
    assert meant(F.cross_entropy, X, TARGETS.clamp(min=0) * 0 + target).isposinf()


@pytest.mark.parametrize("shape", [(4, 4, 4), (2, 5, 3), (9,)])
def test_classes_lie_behind_the_batch(shape: tuple[int, ...]) -> None:
    x = torch.rand(shape, generator=torch.Generator().manual_seed(5)) * 8
    without = [n for a, n in enumerate(shape) if a != min(1, len(shape) - 1)]
    y = torch.arange(4 * 4).reshape(4, 4)[: without[0], : without[-1]] % 4 if without else torch.tensor(3)
    torch.testing.assert_close(meant(F.cross_entropy, x, y.int()), F.cross_entropy(x, y), rtol=1e-4, atol=1e-4)


def test_probabilities_of_classes_are_smoothed() -> None:
    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(x, y, label_smoothing=0.5)

    y = torch.softmax(X.flip(0), 1)
    torch.testing.assert_close(meant(loss, X, y), loss(X, y), rtol=1e-4, atol=1e-4)


MASK = torch.ones(12, 12).tril().bool()
OTHERS: list[Callable[[Any], Any]] = [
    lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=MASK), lambda x: F.smooth_l1_loss(x, x * x, beta=0.0),
    lambda x: torch.transpose(x, 0, 1) + torch.transpose(x, dim0=1, dim1=0), lambda x: F.rms_norm(x * 1e-3, (16,)),
]  # fmt: skip


@pytest.mark.parametrize("form", OTHERS)
def test_what_their_options_mean(form: Callable[[Any], Any]) -> None:
    torch.testing.assert_close(meant(form, X), form(X), rtol=1e-4, atol=1e-4)


def test_a_norm_of_halves_adds_the_step_of_floats() -> None:
    x = (X * 1e-3).half()
    torch.testing.assert_close(meant(lambda x: F.rms_norm(x, (16,)), x), F.rms_norm(x, (16,)), rtol=1e-2, atol=1e-2)


def test_rows_of_a_table() -> None:
    at = TARGETS.clamp(min=0) % 12
    torch.testing.assert_close(meant(F.embedding, at, X), F.embedding(at.long(), X))


def test_a_number_of_torch_leaves_the_type_as_it_is() -> None:
    assert kernel_of(lambda x: x * torch.tensor(2.0), [SHAPE], "float16").kernel.tensors[-1].dtype.numpy == "float16"


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (lambda x: F.softmax(x), "`softmax` is not told along which axis it goes"),
        (lambda x: F.glu(x[:, :3]), "`glu` halves an axis, which 3 elements are not"),
        (lambda x: F.cross_entropy(x, x[:5, 0].int()), "the shape (12,), not (5,)"),
    ],
)
def test_what_is_refused(form: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TileError) as raised:
        kernel_of(form, [SHAPE], "float32")
    assert message in str(raised.value)


@pytest.mark.parametrize("form", [lambda x: F.dropout(x, 0.5), lambda x: torch.add(x, x, out=x), lambda x: x @ torch.rand(16, 3)])
def test_the_error_is_at_the_line_of_the_author(form: Callable[[Any], Any]) -> None:
    with pytest.raises(TileError) as raised:
        kernel_of(form, [SHAPE], "float32")(np.zeros(SHAPE, np.float32))
    assert raised.value.span is not None and raised.value.span.file == __file__
