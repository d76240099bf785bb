"""ListTensorDesc: a pointer to a list of tensors, with their shapes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.kernels import kernel, run_vector

WORDS = [5 * 8, 3 | 0 << 32, 4, 5, 6]  # one tensor, of three dimensions; its pointer follows
BODY = """GlobalTensor<uint64_t> list; list.SetGlobalBuffer((__gm__ uint64_t*)A, 6); list.SetValue(5, (uint64_t)B);
ListTensorDesc desc((__gm__ void*)A, 48, 1); TensorDesc<int32_t> one; uint64_t shape[3]; one.SetShapeAddr(shape);
desc.GetDesc(one, 0);
auto out = one.GetDataObj(); out.SetValue(0, int32_t(desc.GetSize()));
for (int i = 0; i < 3; ++i) out.SetValue(1 + i, int32_t(one.GetShape(i)));
out.SetValue(4, int32_t(desc.GetDataPtr<int32_t>(0) == (int32_t*)B));
"""


def source(body: str) -> str:
    return '#include "kernel_operator_list_tensor_intf.h"\n' + kernel("A B", "AIV_ONLY", body)


@pytest.mark.slow
def test_a_list_tells_the_shapes_and_the_pointers_of_its_tensors() -> None:
    done = run_vector(source(BODY), np.array([*WORDS, 0], np.uint64).view(np.int32), np.zeros(5, np.int32))
    assert done.ok, done
    assert done.outputs[0].tolist() == [1, 4, 5, 6, 1]


@pytest.mark.slow
def test_an_index_that_the_list_does_not_describe_is_refused() -> None:
    body = "ListTensorDesc desc((__gm__ void*)A); TensorDesc<int32_t> one; desc.GetDesc(one, 3);"
    done = run_vector(source(body), np.array([*WORDS, 0], np.uint64).view(np.int32), np.zeros(5, np.int32))
    assert [f.kind for f in done.findings] == ["field"]
