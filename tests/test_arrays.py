"""An array that does not fit its tensor is refused by name, with what would fit."""

from __future__ import annotations

import sys
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest

from tile_eg.errors import TileError
from tile_eg.ir.arrays import check_arguments, numpy_dtype, signature
from tile_eg.ir.kernel import Tensor
from tile_eg.jit.arrays import knows_torch
from tile_eg.ops.types import BF16, E8M0, F16, F32, I8

A, B, C = Tensor("A", F16, (4, 2), False), Tensor("B", BF16, (2,), False), Tensor("C", F32, (4,), True)
GOOD = {"A": np.zeros((4, 2), np.float16), "B": np.zeros(2, ml_dtypes.bfloat16)}


@pytest.mark.parametrize(("dtype", "numpy"), [(F16, "float16"), (F32, "float32"), (I8, "int8"), (BF16, "bfloat16")])
def test_every_element_type_has_its_numpy_form(dtype, numpy: str) -> None:
    assert numpy_dtype(dtype).name == numpy


def test_arrays_that_fit_are_taken_and_outputs_need_none() -> None:
    check_arguments((A, B, C), GOOD)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"A": GOOD["A"]}, "no array for input 'B'"),
        (GOOD | {"D": np.zeros(4)}, "no input 'D'.*A: f16\\[4, 2\\]"),
        (GOOD | {"C": np.zeros(4, np.float32)}, "no input 'C'"),
        (GOOD | {"A": GOOD["A"].T}, "shape \\(2, 4\\), not \\(4, 2\\)"),
        (GOOD | {"A": GOOD["A"].astype(np.float64)}, "type float64, not float16.*astype\\('float16'\\)"),
        (GOOD | {"B": np.zeros(2, np.float16)}, "not bfloat16.*ml_dtypes"),
        (GOOD | {"A": [[0, 0]] * 4}, "no array but of type list"),
    ],
)
def test_what_does_not_fit_is_said(arrays: dict, words: str) -> None:
    with pytest.raises(TileError, match=f"(?s){words}"):
        check_arguments((A, B, C), arrays)


def test_bytes_for_floats_of_8_bits_are_offered_to_be_seen_as_these() -> None:
    with pytest.raises(TileError) as caught:
        check_arguments((Tensor("S", E8M0, (4, 2), False),), {"S": np.zeros((4, 2), np.uint8)})
    assert "S.view(ml_dtypes.float8_e8m0fnu)" in caught.value.help


def test_a_signature_reads_like_the_source() -> None:
    assert signature([A, C]) == "A: f16[4, 2], C: f32[4]"


def test_a_module_knows_torch_where_one_of_its_names_is_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert knows_torch({"np": np, "th": torch}) and not knows_torch({"np": np})
