"""A call on arrays that lie on an NPU builds the kernel, loads it, launches it; the stand-in's ACL runs it in the simulator."""

from __future__ import annotations

import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import tile_eg
from tests.npu.cann import StandIn
from tests.npu.kernels import any_rows, doubled, doubled_by, in_two_launches, matrix, scaled_product
from tile_eg.errors import TileError, TileWarning
from tile_eg.ir.strided import dense
from tile_eg.npu.arrays import NpuArray, array

pytestmark = pytest.mark.slow(but=4)


def test_a_vector_kernel_gives_on_the_npu_what_it_gives_in_the_simulator(npu: StandIn) -> None:
    x = matrix(64, 96)
    y = doubled()(array(x))
    assert isinstance(y, NpuArray) and str(y.device) == "npu:0"
    assert np.array_equal(y.synchronize().numpy(), doubled()(x))


@pytest.mark.slow
def test_a_mixed_kernel_has_its_workspace_and_where_its_cores_meet(npu: StandIn) -> None:
    a, b = matrix(64, 64, dtype="float16"), matrix(64, 64, dtype="float16", seed=1)
    d = scaled_product()(array(a), array(b))
    assert np.array_equal(d.synchronize().numpy(), scaled_product()(a, b))


@pytest.mark.slow
def test_one_object_serves_all_sizes_that_a_call_tells(npu: StandIn) -> None:
    loads = npu.calls("aclrtBinaryLoadFromData")
    for rows in (16, 50, 130):
        x = matrix(rows, 64)
        assert np.array_equal(any_rows()(array(x)).synchronize().numpy(), any_rows()(x))
    assert npu.calls("aclrtBinaryLoadFromData") - loads == 1


@pytest.mark.slow
def test_launches_in_a_row_share_what_the_call_makes(npu: StandIn) -> None:
    x = matrix(16, 64)
    assert np.array_equal(in_two_launches()(array(x)).synchronize().numpy(), in_two_launches()(x))


def test_a_call_neither_copies_nor_waits(npu: StandIn) -> None:
    x = array(matrix(64, 96))
    doubled()(x)
    watched = ("aclrtMemcpy", "aclrtSynchronizeStream", "aclrtMemsetAsync", "aclrtBinaryLoadFromData")
    before = [npu.calls(name) for name in watched]
    doubled()(x)
    assert [npu.calls(name) for name in watched] == before
    x.synchronize()


def test_an_output_that_is_passed_in_is_written_in_place(npu: StandIn) -> None:
    from tile_eg.jit import CompiledKernel

    kernel, x = CompiledKernel(doubled().kernel), matrix(64, 96)
    y = array(np.zeros((64, 96), np.float32))
    assert kernel(array(x), y) is None
    assert np.array_equal(y.synchronize().numpy(), x + x)


def test_numpy_arrays_still_go_to_the_simulator(npu: StandIn) -> None:
    before = npu.calls("aclrtLaunchKernelWithHostArgs")
    assert isinstance(doubled()(matrix(64, 96)), np.ndarray)
    assert npu.calls("aclrtLaunchKernelWithHostArgs") == before


def test_the_launch_goes_on_the_stream_that_torch_npu_names(npu: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    x = array(matrix(64, 96))
    stream, asked = x.launcher.stream(0), []
    raw = SimpleNamespace(_npu_getCurrentRawStream=lambda device: asked.append(device) or stream)
    monkeypatch.setitem(sys.modules, "torch_npu", SimpleNamespace(_C=raw))
    y = doubled()(x)
    x.launcher.wait(0, stream)
    assert asked == [0] and np.array_equal(y.numpy(), x.numpy() * 2)


def test_the_second_device_has_its_own_copy_of_the_kernel(npu: StandIn) -> None:
    x = matrix(64, 96)
    y = doubled()(array(x, device=1))
    assert str(y.device) == "npu:1" and np.array_equal(y.synchronize().numpy(), x + x)


def test_arrays_of_several_devices_are_refused(npu: StandIn) -> None:
    a, b = matrix(64, 64, dtype="float16"), array(matrix(64, 64, dtype="float16"))
    with pytest.raises(TileError, match="A on cpu, B on npu:0"):
        scaled_product()(a, b)
    with pytest.raises(TileError, match="A on npu:1, B on npu:0"):
        scaled_product()(array(a, device=1), b)


def test_a_wrong_shape_or_dtype_is_refused_as_it_is_in_the_simulator(npu: StandIn) -> None:
    for wrong in (matrix(64, 95), matrix(64, 96, dtype="float16")):
        with pytest.raises(TileError) as on_host:
            doubled()(wrong)
        with pytest.raises(TileError) as on_npu:
            doubled()(array(wrong))
        assert on_npu.value.message == on_host.value.message


class View(NpuArray):
    """A view of an array: its first elements, that lie so far from one another."""

    def __init__(self, held: NpuArray, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.held, self.shape, self.strides, self.dtype, self.device = held, shape, strides, held.dtype, held.device
        self.launcher = held.launcher

    def __del__(self) -> None:
        """The memory is the other array's."""

    def data_ptr(self) -> int:
        return self.held.data_ptr()

    def stride(self) -> tuple[int, ...]:
        return self.strides

    def is_contiguous(self) -> bool:
        return self.strides == dense(self.shape)

    def numpy(self) -> np.ndarray:
        whole = self.held.synchronize().numpy()
        return as_strided(whole, self.shape, [n * whole.itemsize for n in self.strides])

    def contiguous(self) -> NpuArray:
        return self.new_empty(self.shape).copy_from(self.numpy())


def columns(rows: int, cols: int, of: int) -> View:
    """The first columns of a matrix with so many."""
    return View(array(matrix(rows, of)), (rows, cols), (of, 1))


def test_the_columns_of_a_larger_matrix_are_read_where_they_lie(npu: StandIn) -> None:
    x = columns(64, 96, of=130)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = doubled()(x)
    assert np.array_equal(y.synchronize().numpy(), x.numpy() * 2)


def test_views_of_one_shape_in_several_layouts_are_not_taken_for_one_another(npu: StandIn) -> None:
    for x in (columns(64, 96, of=130), columns(64, 96, of=100), array(matrix(64, 96))):
        assert np.array_equal(doubled()(x).synchronize().numpy(), x.numpy() * 2)


def test_one_object_serves_all_numbers_of_rows_with_a_gap(npu: StandIn) -> None:
    assert npu.loads(lambda: [any_rows()(columns(rows, 64, of=192)) for rows in (16, 50, 130)]) == 1


def test_rows_with_a_gap_are_right_at_any_number_of_rows(npu: StandIn) -> None:
    for rows in (16, 50):
        x = columns(rows, 64, of=192)
        assert np.array_equal(any_rows()(x).synchronize().numpy(), x.numpy() * 3)


def test_a_transposed_operand_of_a_product_is_read_where_it_lies(npu: StandIn) -> None:
    a, b = matrix(64, 64, dtype="float16"), View(array(matrix(64, 64, dtype="float16", seed=1)), (64, 64), (1, 64))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d = scaled_product()(array(a), b)
    assert np.array_equal(d.synchronize().numpy(), scaled_product()(a, np.ascontiguousarray(b.numpy())))


def test_an_input_that_is_transposed_is_copied_and_that_is_said(npu: StandIn) -> None:
    x = View(array(matrix(96, 64)), (64, 96), (1, 64))
    with pytest.warns(TileWarning, match="X is not contiguous, and is copied") as told:
        y = doubled()(x)
    assert told[0].filename == __file__
    assert np.array_equal(y.synchronize().numpy(), x.numpy() * 2)


def test_beyond_some_layouts_inputs_are_copied(npu: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["tile_eg.jit.on_npu"], "MOST_LAYOUTS", 0)
    x = columns(64, 96, of=110)
    with pytest.warns(TileWarning, match="X is not contiguous, and is copied"):
        y = doubled()(x)
    assert np.array_equal(y.synchronize().numpy(), x.numpy() * 2)


def test_an_output_that_is_not_contiguous_is_refused(npu: StandIn) -> None:
    from tile_eg.jit import CompiledKernel

    kernel, x = CompiledKernel(doubled().kernel), array(matrix(64, 96))
    with pytest.raises(TileError, match="Y is not contiguous, and the kernel writes it"):
        kernel(x, columns(64, 96, of=130))


def test_a_number_among_the_arguments_is_taken_from_each_call() -> None:
    import tile_eg
    from tile_eg import language as T

    @tile_eg.jit(out_idx=[1])
    def kernel():
        M = T.symbolic("M")

        @T.prim_func
        def added(X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M, 64), "float32"), by: T.float32):
            with T.Kernel(T.ceildiv(M, 16)) as b:
                x = T.alloc_shared((16, 64), "float32")
                T.copy(X[b * 16, 0], x)
                for i, j in T.Parallel(16, 64):
                    x[i, j] = x[i, j] + by
                T.copy(x, Y[b * 16, 0])

        return added

    made, x = kernel(), matrix(16, 64)
    for number in (np.float32(1), np.float32(2)):
        assert np.array_equal(made(x, number), x + number)


def test_calls_of_the_same_shapes_are_checked_each_time(npu: StandIn) -> None:
    kernel, x = any_rows(), matrix(32, 64)
    assert np.array_equal(kernel(x), x * 3) and np.array_equal(kernel(array(x)).synchronize().numpy(), x * 3)
    with pytest.raises(TileError, match="float16"):
        kernel(x.astype(np.float16))


def test_autotune_measures_its_configurations(npu: StandIn) -> None:
    recorded = npu.calls("aclrtRecordEvent")
    tuned = tile_eg.autotune(configs=[{"rows": 16}, {"rows": 32}], warmup=1, rep=3)(doubled_by)(64, 96)
    assert npu.calls("aclrtRecordEvent") - recorded == 2 * 3 * 2
    assert tuned.config in ({"rows": 16}, {"rows": 32}) and tuned.get_tuner_result()["latency"] != tuned.predicted_ms
