"""A call on arrays that lie on an NPU builds the kernel, loads it, launches it; the stand-in's ACL runs it in the simulator."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import tile_eg
from tests.npu.cann import StandIn
from tests.npu.kernels import any_rows, doubled, doubled_by, matrix, scaled_product
from tile_eg.errors import TileError, TileWarning
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


class Strided(NpuArray):
    """An array whose elements do not lie one behind the other."""

    def is_contiguous(self) -> bool:
        return False

    def contiguous(self) -> NpuArray:
        return self.new_empty(self.shape).copy_from(self.numpy())


def test_an_input_that_is_not_contiguous_is_copied_and_that_is_said(npu: StandIn) -> None:
    x = matrix(64, 96)
    strided = Strided(x.shape, x.dtype, 0, array(x).launcher).copy_from(x)
    with pytest.warns(TileWarning, match="X is not contiguous, and is copied") as told:
        y = doubled()(strided)
    assert told[0].filename == __file__
    assert np.array_equal(y.synchronize().numpy(), x + x)


def test_an_output_that_is_not_contiguous_is_refused(npu: StandIn) -> None:
    from tile_eg.jit import CompiledKernel

    kernel, x = CompiledKernel(doubled().kernel), array(matrix(64, 96))
    with pytest.raises(TileError, match="Y is not contiguous, and the kernel writes it"):
        kernel(x, Strided(x.shape, x.dtype, 0, x.launcher))


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
