"""A kernel as torch's operator: called, traced, exported, differentiated."""

from __future__ import annotations

from typing import Any

import pytest

import tile_eg
import tile_eg.language as T
from tile_eg.errors import TileError

torch = pytest.importorskip("torch")

from tile_eg.torch import register  # noqa: E402

M, N = T.symbolic("M"), T.symbolic("N")


@tile_eg.jit
def doubled_and_sum(X: T.Tensor((M, N), "float32"), s: T.float32):
    return X * 2 * s, X + 1


@tile_eg.jit
@T.prim_func
def add_in_place(X: T.Tensor((64, 32), "float32"), Y: T.Tensor((64, 32), "float32")):
    with T.Kernel(2) as b:
        x, y = T.alloc_shared((32, 32), "float32"), T.alloc_shared((32, 32), "float32")
        T.copy(X[b * 32, 0], x)
        T.copy(Y[b * 32, 0], y)
        for i, j in T.Parallel(32, 32):
            y[i, j] = y[i, j] + x[i, j]
        T.copy(y, Y[b * 32, 0])


def halves(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).half()


def product(grad_C: Any, A: Any, B: Any) -> tuple[Any, Any]:
    return grad_C @ B.T, A.T @ grad_C


def test_the_operator_computes_what_the_kernel_does(gemm: Any, fresh: str) -> None:
    op = register(gemm, fresh)
    a, b = halves(48, 32), halves(32, 64)
    assert torch.equal(op(a, b), gemm(a, b))


def test_the_operator_is_found_under_its_name(gemm: Any, fresh: str) -> None:
    space, _, name = fresh.partition("::")
    op = register(gemm, fresh)
    assert op is getattr(getattr(torch.ops, space), name)


def test_sizes_of_tiles_are_given_by_keyword(gemm: Any, fresh: str) -> None:
    a, b = halves(48, 32), halves(32, 64)
    assert torch.equal(register(gemm, fresh)(a, b, BM=16, BN=32), gemm(a, b))


def test_torch_finds_no_fault_in_the_operator(gemm: Any, fresh: str) -> None:
    op = register(gemm, fresh, backward=product)
    torch.library.opcheck(op.default, (halves(32, 16).requires_grad_(), halves(16, 32)))


def test_several_outputs_are_a_tuple_and_numbers_are_passed(fresh: str) -> None:
    op = register(doubled_and_sum, fresh)
    x = halves(7, 9).float()
    twice, more = op(x, 3.0)
    assert torch.equal(twice, x * 6)
    assert torch.equal(more, x + 1)


def test_shapes_are_known_without_running(gemm: Any, fresh: str) -> None:
    op = register(gemm, fresh)
    with torch._subclasses.FakeTensorMode():
        assert op(torch.empty(48, 32).half(), torch.empty(32, 64).half()).shape == (48, 64)


def test_a_compiled_function_keeps_the_operator_at_all_sizes(gemm: Any, fresh: str) -> None:
    op = register(gemm, fresh)
    function = torch.compile(lambda a, b: torch.relu(op(a, b)), fullgraph=True, backend="aot_eager", dynamic=True)
    b = halves(32, 64)
    for rows in (48, 33):
        assert torch.equal(function(halves(rows, 32), b), torch.relu(gemm(halves(rows, 32), b)))


def test_an_exported_program_keeps_the_operator_and_its_open_size(gemm: Any, fresh: str) -> None:
    op = register(gemm, fresh)

    class Product(torch.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return op(a, b)

    given = halves(48, 32), halves(32, 64)
    program = torch.export.export(Product(), given, dynamic_shapes=({0: torch.export.Dim("m")}, None))
    assert fresh in {str(n.target).rpartition(".")[0].replace(".", "::") for n in program.graph.nodes}
    a = halves(20, 32)
    assert torch.equal(program.module()(a, given[1]), gemm(a, given[1]))


def test_a_formula_is_the_gradient(gemm: Any, fresh: str) -> None:
    op = register(gemm, fresh, backward=product)
    a, b = halves(32, 16).requires_grad_(), halves(16, 32).requires_grad_()
    op(a, b).sum().backward()
    ones = torch.ones(32, 32).half()
    assert torch.equal(a.grad, ones @ b.detach().T)
    assert torch.equal(b.grad, a.detach().T @ ones)


def test_a_kernel_is_the_gradient(fresh: str) -> None:
    @tile_eg.jit
    def square(X: T.Tensor((M, N), "float32")):
        Y = X * X
        return Y  # noqa: RET504

    @tile_eg.jit
    def of_square(grad_Y: T.Tensor((M, N), "float32"), X: T.Tensor((M, N), "float32")):
        return grad_Y * X * 2

    op = register(square, fresh, backward=of_square)
    x = halves(8, 16).float().requires_grad_()
    op(x).sum().backward()
    assert torch.equal(x.grad, 2 * x.detach())


def test_what_is_written_in_place_is_said_to_torch(fresh: str) -> None:
    op = register(add_in_place, fresh)
    x, y = halves(64, 32).float(), halves(64, 32).float()
    want = x + y
    assert op(x, y) is None
    assert torch.equal(y, want)
    assert op.default._schema.is_mutable
    torch.library.opcheck(op.default, (x, y), test_utils=("test_schema", "test_faketensor"))


# ---- mistakes ----------------------------------------------------------------------------------------------------------------


def test_a_gradient_that_nobody_gave_is_an_error(gemm: Any, fresh: str) -> None:
    op = register(gemm, fresh)
    with pytest.raises(TileError, match="A requires a gradient, and gemm has none"):
        op(halves(16, 16).requires_grad_(), halves(16, 16))


def test_a_gradient_is_not_lost_in_a_tensor_that_is_written(fresh: str) -> None:
    op = register(add_in_place, fresh)
    with pytest.raises(TileError, match="X requires a gradient"):
        op(torch.zeros(64, 32, requires_grad=True), torch.zeros(64, 32))


def test_without_a_gradient_to_keep_none_is_asked_for(gemm: Any, fresh: str) -> None:
    op = register(gemm, fresh)
    with torch.no_grad():
        assert op(halves(16, 16).requires_grad_(), halves(16, 16)).shape == (16, 16)


def test_a_gradient_of_tensors_written_in_place_is_refused(fresh: str) -> None:
    with pytest.raises(TileError, match="writes Y in place"):
        register(add_in_place, fresh, backward=lambda X, Y: X)


def test_a_parameter_of_the_gradient_that_names_nothing_is_an_error(gemm: Any, fresh: str) -> None:
    with pytest.raises(TileError, match="the parameter grad of backward is named after no tensor of gemm"):
        register(gemm, fresh, backward=lambda grad, A: A)


def test_too_few_gradients_are_an_error(gemm: Any, fresh: str) -> None:
    op = register(gemm, fresh, backward=lambda grad_C, A, B: grad_C @ B.T)
    with pytest.raises(TileError, match="gave 1 gradients, not 2"):
        op(halves(16, 16).requires_grad_(), halves(16, 16)).sum().backward()


@pytest.mark.parametrize("name", ["gemm", "a::", "::a", "a::b-c"])
def test_what_is_no_name_of_an_operator_is_refused(gemm: Any, name: str) -> None:
    with pytest.raises(TileError, match="an operator is called like mylib::gemm"):
        register(gemm, name)


def test_a_name_is_taken_once(gemm: Any, fresh: str) -> None:
    register(gemm, fresh)
    with pytest.raises(TileError, match="there is an operator"):
        register(gemm, fresh)


def test_a_function_of_sizes_is_no_kernel_yet(fresh: str) -> None:
    with pytest.raises(TileError, match="an operator is made of a kernel, not of a Factory"):
        register(tile_eg.jit(lambda M: None), fresh)
