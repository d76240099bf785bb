"""What the scalar unit computes: the vendor's own examples."""

from __future__ import annotations

import numpy as np

from tests.simulator.kernels import kernel, run_vector

CALLS = {
    "GetBitCount<1>(0xF0Full)": 8,
    "ScalarGetCountOfValue<0>(0xFull)": 60,
    "CountLeadingZero(0xFFFull)": 52,
    "GetSFFValue<1>(0x1000000000000100ull)": 8,
    "GetSFFValue<0>(~0ull)": -1,
    "CountBitsCntSameAsSignBit(0x0100000000000020ll)": 6,
    "CountBitsCntSameAsSignBit(-1)": -1,
    "Cast<float, int32_t, RoundMode::CAST_RINT>(2.5f)": 2,
    "Cast<float, int32_t, RoundMode::CAST_CEIL>(-2.5f)": -2,
    "Cast<float, int32_t, RoundMode::CAST_ROUND>(3e9f)": 2**31 - 1,
    "Std::min(3, 7)": 3,
}


def test_scalar_functions_give_what_their_pages_say() -> None:
    stores = "\n".join(f"x.SetValue({i}, int32_t({call}));" for i, call in enumerate(CALLS))
    source = kernel(
        "A",
        "AIV_ONLY",
        "GlobalTensor<int32_t> gmA; gmA.SetGlobalBuffer((__gm__ int32_t*)A, 16);\n"
        f"LocalTensor<int32_t> x(TPosition::VECCALC, 0, 16);\nfor (int i = 0; i < 16; ++i) x.SetValue(i, 0);\n{stores}\n"
        "ORDER(S_MTE3); DataCopy(gmA, x, 16);",
    )
    done = run_vector(source, np.zeros(16, np.int32))
    assert done.ok, done.findings
    np.testing.assert_array_equal(done.outputs[0][: len(CALLS)], list(CALLS.values()))
