"""Graphs of torch's become kernels: which operators are one kernel, what it computes, and what is left to torch."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any

import pytest

from tile_eg.errors import TileError

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tile_eg.errors import InternalError  # noqa: E402
from tile_eg.torch.backend import backend  # noqa: E402

WIDTH = 32


class Block(nn.Module):
    """A layer of a transformer with causal attention."""

    def __init__(self, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(WIDTH, 48, False), nn.Linear(WIDTH, 48, False), nn.Linear(48, WIDTH, False)

    def forward(self, x: Any) -> Any:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Heads(nn.Module):
    """Queries, keys and values of one value, each by a product of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(WIDTH, 64), nn.Linear(WIDTH, 16, False), nn.Linear(WIDTH, 16, False)

    def forward(self, x: Any) -> Any:
        return self.q(x), self.k(x), torch.relu(self.v(x))


def attention(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v


def drawn(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[list[str]]]:
    """What each kernel computes, as the log of the compilation says."""
    caplog.set_level(logging.INFO, logger="tile_eg.torch")
    return lambda: [m[1].split(", ") for r in caplog.records if (m := re.match(r"kernel\d+: (.*), predicted", r.getMessage()))]


def compiled(function: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    torch.manual_seed(0)
    return torch.compile(function() if isinstance(function, type) else function, backend=backend, **options)


def close(function: Any, given: Sequence[Any]) -> None:
    """A compiled function gives what it gives in eager mode, to the roundings of float32."""
    with torch.no_grad():
        torch.testing.assert_close(function(*given), function._torchdynamo_orig_callable(*given), rtol=1e-5, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "shapes", "kernels"),
    [
        (Gated, [(20, WIDTH)], [["mm", "silu", "mm", "mul"], ["mm"]]),
        (Heads, [(20, WIDTH)], [["addmm", "mm", "mm", "relu"]]),
        (attention, [(2, 20, 32)] * 3, [["bmm", "mul", "_softmax", "bmm"]]),
        (
            Block,
            [(2, 20, WIDTH)],
            [
                ["native_layer_norm"], ["addmm"], ["_scaled_dot_product_flash_attention_for_cpu"], ["addmm", "add"],
                ["addmm", "gelu"], ["addmm", "add"],
            ],
        ),
    ],
)  # fmt: skip
def test_a_layer_is_a_few_kernels_that_are_right(function: Any, shapes: Any, kernels: Any, told: Any) -> None:
    close(compiled(function), [drawn(*s) for s in shapes])
    assert told() == kernels


def test_a_batch_of_any_size_is_one_compilation(told: Any) -> None:
    function = compiled(lambda x: torch.relu(x * 2 - x.mean(-1, keepdim=True)), dynamic=True)
    for rows in (5, 17):
        close(function, [drawn(rows, 24)])
    assert len(told()) == 1


class Grouped(nn.Module):
    """Causal attention of 4 heads that share 2 of keys and values, with a mask of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv = nn.Linear(WIDTH, 4 * 16), nn.Linear(WIDTH, 2 * 2 * 16)

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        q = self.q(x).view(batch, length, 4, 16).transpose(1, 2)
        k, v = self.kv(x).view(batch, length, 2, 2, 16).permute(2, 0, 3, 1, 4).repeat_interleave(2, 2)
        s = q @ k.transpose(-1, -2) / 4
        s = s.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        return s.softmax(-1) @ v


@pytest.mark.slow
def test_heads_that_share_keys_are_one_kernel_with_their_mask_at_all_sizes(told: Any) -> None:
    function = compiled(Grouped)
    for shape in ((2, 20, WIDTH), (3, 33, WIDTH)):
        close(function, [drawn(*shape)])
    assert [k for k in told() if "bmm" in k] == [["bmm", "div", "where", "_softmax", "bmm"]] * 2


def test_a_norm_behind_a_sum_squares_it_itself_as_that_moves_less(told: Any) -> None:
    norm, linear = nn.RMSNorm(32), nn.Linear(32, 32)

    def residual(x: Any) -> Any:
        y = x + linear(x)
        return y + norm(y)

    close(compiled(residual), [drawn(20, 32)])
    assert told() == [["addmm", "add"], ["pow", "mean", "add", "rsqrt", "mul", "mul", "add"]]


def test_backward_operators_are_kernels_in_torch_s_own_words(told: Any, caplog: pytest.LogCaptureFixture) -> None:
    function = compiled(lambda x: nn.functional.gelu(nn.functional.layer_norm(x, (24,))).sum(-1))
    x, y = (drawn(8, 24).requires_grad_() for _ in range(2))
    function(x).sum().backward()
    nn.functional.gelu(nn.functional.layer_norm(y, (24,))).sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-4, atol=1e-5)
    assert caplog.text.count("left to torch: nothing") == 2 and len(told()) >= 2


def test_the_norm_of_an_evaluated_batch_is_part_of_a_kernel(told: Any) -> None:
    norm = nn.BatchNorm2d(3).eval()
    close(compiled(lambda x: torch.relu(norm(x))), [drawn(2, 3, 8, 16)])
    assert told() == [["_native_batch_norm_legit_no_training", "relu"]]


@pytest.mark.parametrize(("shape", "affine"), [((2, 16, 6, 5), True), ((3, 16, 24), False), ((5, 16), True)])
def test_a_group_norm_is_one_kernel_with_what_follows(shape: tuple[int, ...], affine: bool, told: Any) -> None:
    norm = nn.GroupNorm(4, 16, affine=affine)
    for weight in norm.parameters():
        nn.init.normal_(weight)
    close(compiled(lambda x: nn.functional.silu(norm(x))), [drawn(*shape)])
    assert told() == [["native_group_norm", "silu"]]


def test_a_gradient_goes_through_kernels() -> None:
    function = compiled(lambda x, w: torch.softmax(x @ w, -1).square().sum())
    x, w = drawn(8, 16), drawn(16, 24).requires_grad_()
    (got,) = torch.autograd.grad(function(x, w), w)
    (want,) = torch.autograd.grad(torch.softmax(x @ w, -1).square().sum(), w)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


def turned_halves(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def turned_pairs(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


@pytest.mark.parametrize(
    ("function", "shapes", "kernel"),
    [
        (turned_halves, [(2, 3, 8, 32), (8, 32), (8, 32)], ["mul", "neg", "cat", "mul", "add"]),
        (turned_pairs, [(3, 8, 16), (8, 8), (8, 8)], ["mul", "mul", "sub", "mul", "mul", "add", "stack"]),
        (lambda x, y: torch.relu(torch.cat([x, y * 2, x + 1], 0)), [(5, 16), (7, 16)], ["mul", "add", "cat", "relu"]),
        (lambda x: torch.roll(x, 1, 0) - x, [(8, 16)], ["roll", "sub"]),
        (lambda x: x.flip(-1) * 2, [(8, 16)], ["flip", "mul"]),
        (lambda x: x[:, -3:] * x[-1, :3], [(8, 16)], ["mul"]),
        (lambda x: torch.cumsum(x.exp(), -1) * 2, [(8, 16)], ["exp", "cumsum", "mul"]),
    ],
)
def test_parts_and_joins_are_in_one_kernel(function: Any, shapes: Any, kernel: list[str], told: Any) -> None:
    close(compiled(function), [drawn(*s) for s in shapes])
    assert told() == [kernel]


@pytest.mark.parametrize(
    ("function", "kernel"),
    [
        (nn.functional.mse_loss, ["sub", "pow", "mean"]),
        (nn.functional.binary_cross_entropy_with_logits, None),
        (lambda x, y: (x - x.max()).exp() * y, ["max", "sub", "exp", "mul"]),
        (lambda x, y: x / x.norm() + y, ["pow", "sum", "pow", "div", "add"]),
        (lambda x, y: (x - x.mean(0)) / x.std(0) + y.var(), None),
        (lambda x, y: (x.sum() * y)[None].squeeze(0).mean((0, 1)), None),
    ],
)  # fmt: skip
def test_a_number_of_everything_is_part_of_a_kernel(function: Any, kernel: list[str] | None, told: Any, caplog: Any) -> None:
    close(compiled(function), [drawn(12, 24), drawn(12, 24).flip(0)])
    assert "left to torch: nothing" in caplog.text
    assert kernel is None or told() == [kernel]


@pytest.mark.filterwarnings("ignore:var")
def test_a_variance_over_fewer_than_no_elements_is_infinite() -> None:
    close(compiled(lambda x: torch.var(x, 1, correction=20) + x[:, 0]), [drawn(8, 16)])


def test_layers_that_say_the_same_are_compiled_once(caplog: Any, told: Any) -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(3)))
    close(compiled(model), [drawn(8, 16)])
    assert told() == [["addmm", "relu"]]
    assert ", 3 times" in caplog.text
    assert "3 kernels; left to torch: nothing" in caplog.text


def test_a_text_that_two_regions_share_takes_each_one_s_own_inputs(caplog: Any, told: Any) -> None:
    def both(x: Any, y: Any) -> Any:
        return (x - y.sum(1, keepdim=True)) * 2, (y - x.sum(1, keepdim=True)) * 2

    close(compiled(both), [drawn(8, 16), drawn(8, 16).flip(0)])
    assert told() == [["sum", "sub", "mul"]]
    assert ", 2 times" in caplog.text


def test_a_number_of_torch_s_is_passed_to_a_kernel(told: Any) -> None:
    close(compiled(lambda x, s: torch.relu(x * s)), [drawn(12, 24), torch.tensor(-2.0)])
    assert told() == [["mul", "relu"]]


def test_a_step_of_training_is_kernels(caplog: Any, told: Any) -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
    x, y = drawn(8, 16), drawn(8, 4)
    want = torch.autograd.grad(nn.functional.mse_loss(model(x), y), list(model.parameters()))
    got = torch.autograd.grad(compiled(lambda: nn.functional.mse_loss(model(x), y))(), list(model.parameters()))
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
    assert caplog.text.count("left to torch: nothing") == 2
    assert told()[:3] == [["addmm", "gelu"], ["addmm"], ["sub", "pow", "mean"]]


def test_what_is_joined_and_used_elsewhere_too_is_right() -> None:
    close(compiled(lambda x: torch.cat((y := -x, x), -1) * y.sum()), [drawn(8, 16)])


def test_rows_of_a_table_are_taken_in_the_kernel_that_uses_them(told: Any) -> None:
    table, norm = nn.Embedding(50, 32), nn.LayerNorm(32)
    close(compiled(lambda i: norm(table(i))), [torch.tensor([[3, 49, 0], [7, 7, 1]])])
    assert told() == [["embedding", "native_layer_norm"]]


def test_columns_at_indices_are_taken_in_the_kernel_that_uses_them(told: Any) -> None:
    close(compiled(lambda x, i: x.index_select(1, i) * 2), [drawn(8, 16), torch.tensor([15, 0, 3])])
    assert told() == [["index_select", "mul"]]


@pytest.mark.parametrize("index", [50, 2**32, -1])
def test_a_row_that_a_table_lacks_is_an_error_of_torch_s(index: int) -> None:
    function = compiled(nn.Embedding(50, 32))
    with torch.no_grad(), pytest.raises(IndexError):
        function(torch.tensor([0, index]))


def test_what_no_kernel_says_is_left_to_torch(told: Any, caplog: pytest.LogCaptureFixture) -> None:
    function = compiled(lambda x, m: torch.sort(x[m], 0)[0].exp() + 1)
    close(function, [drawn(8, 16), torch.arange(8) > 3])
    assert "left to torch: sort" in caplog.text


def test_elements_at_indices_are_taken_in_the_kernel_that_uses_them(told: Any) -> None:
    close(compiled(lambda x, i, j: x[i, j] * 2), [drawn(8, 16), torch.tensor([7, 0, 3]), torch.tensor([15, 2, 2])])
    assert told() == [["index", "mul"]]


def test_indices_that_count_from_the_end_are_torch_s() -> None:
    close(compiled(lambda x, i: x[:, i] * 2), [drawn(8, 16), torch.tensor([-1, 3])])


def test_a_value_that_a_kernel_cannot_hold_stays_where_it_is_used(told: Any) -> None:
    close(compiled(lambda x, y: torch.where(x > y, x, y * 2)), [drawn(8, 16), drawn(8, 16).flip(0)])
    assert told() == [["mul", "where"]]


def test_a_condition_that_is_given_back_is_left_to_torch() -> None:
    close(compiled(lambda x: x > 0), [drawn(8, 16)])


def test_no_value_leaves_a_kernel_and_comes_back_to_it() -> None:
    close(compiled(lambda x: (y := x.exp()) + torch.sort(y, 0)[0] * y), [drawn(8, 16)])


def test_fewer_kernels_take_less_time_than_one_for_each_operator(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="tile_eg.torch")
    close(compiled(lambda x: torch.relu(x * 2) + 1, options={"compare": True}), [drawn(64, 128)])
    m = re.search(r"(\d+) kernels take ([\d.]+) us; operator by operator (\d+) kernels take ([\d.]+) us", caplog.text)
    assert m
    assert (int(m[1]), int(m[3])) == (1, 3)
    assert float(m[2]) < float(m[4])


def test_what_a_kernel_gives_lies_in_memory_as_views_of_it_expect() -> None:
    close(compiled(lambda x: (x.t() * 2).t().view(-1).sort()[0]), [drawn(8, 16)])


def test_a_view_with_open_sizes_is_part_of_a_kernel(told: Any) -> None:
    function = compiled(lambda x: torch.relu(x).view(x.shape[0], 4, 8).sum(-1), dynamic=True)
    for rows in (5, 17):
        close(function, [drawn(rows, 32)])
    assert told() == [["relu"], ["sum"]]


def test_parts_of_what_torch_computes_are_inputs_of_a_kernel(told: Any) -> None:
    close(compiled(lambda x: (p := x.split(8))[0] * p[1] + 1), [drawn(16, 16)])
    assert told() == [["mul", "add"]]


@pytest.mark.parametrize("error", [TileError("too large"), InternalError("plan", "a fault"), KeyError("x0")])
def test_what_fails_while_it_is_compiled_is_left_to_torch(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tile_eg.torch")
    monkeypatch.setattr("tile_eg.torch.backend.load_text", raising(error))
    close(compiled(lambda x: torch.relu(x * 2)), [drawn(8, 16)])
    assert "0 kernels; left to torch: mul, relu" in caplog.text


@pytest.mark.parametrize("error", [TileError("too large"), InternalError("run", "a fault"), KeyError(1)])
def test_a_call_that_a_kernel_refuses_is_done_by_torch(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    function = compiled(lambda x: torch.relu(x * 2).view(4, -1).t() + 1, dynamic=True)
    close(function, [drawn(8, 16)])
    monkeypatch.setattr("tile_eg.jit.TileKernel.__call__", raising(error))
    close(function, [drawn(12, 16)])
    assert "is done by torch at these sizes: " in caplog.text


def raising(error: Exception) -> Callable[..., Any]:
    def call(*_: Any) -> Any:
        raise error

    return call


def test_a_chip_that_is_none_is_an_error() -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="910X") as raised:
        compiled(lambda x: x + 1, options={"chip": "910X"})(drawn(8, 16))
    assert isinstance(raised.value.inner_exception, TileError)


def test_an_unknown_option_is_an_error() -> None:
    function = compiled(lambda x: x + 1, options={"compere": True})
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="no option compere") as raised:
        function(drawn(8, 16))
    assert isinstance(raised.value.inner_exception, TileError)


def test_torch_finds_the_backend_by_its_name() -> None:
    (found,) = (e for e in entry_points(group="torch_dynamo_backends") if e.name == "tile_eg")
    assert found.load() is backend
