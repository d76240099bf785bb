"""Tensors that a chip's HBM cannot hold are refused at their line, with the bytes."""

from __future__ import annotations

import pytest

from tile_eg.errors import TileError
from tile_eg.frontend.checks.room import sized
from tile_eg.frontend.text import load_text
from tile_eg.search.compiler import check_kernel, lower

ADD = """\
kernel add[M=128, N=128](A: f32[M, N], B: f32[M, N]) -> C: f32[M, N] {
  grid (bx) = (1)
  shared a: f32[64, 64], b: f32[64, 64]
  a = A[0, 0]
  b = B[0, 0]
  C[0, 0] = a + b
}
"""


def refusal(chip: str = "910B2", **sizes: int) -> str:
    with pytest.raises(TileError) as caught:
        check_kernel(load_text(ADD).instantiate(sizes), chip)
    return str(caught.value)


def test_a_tensor_larger_than_the_memory_is_refused_at_its_line() -> None:
    said = refusal(M=2**20, N=2**20)
    assert "`A` needs 4,398,046,511,104 bytes (4 TiB), and the HBM of 910B2 has 68,719,476,736 bytes (64 GiB)" in said
    assert "1 | kernel add" in said and "^" in said and "no known chip has as much" in said


def test_tensors_that_are_too_large_together_are_refused() -> None:
    said = refusal(M=2**16, N=2**17)
    assert "the tensors need 103,079,215,104 bytes (96 GiB), of them `A` 34,359,738,368 bytes (32 GiB)" in said
    assert "a chip with more: 950" in said


def test_each_chip_has_its_own_memory() -> None:
    kernel = load_text(ADD).instantiate({"M": 2**16, "N": 2**17})
    check_kernel(kernel, "950")
    assert "HBM of 910B4 has 34,359,738,368 bytes (32 GiB)" in refusal("910B4", M=2**16, N=2**16)


def test_numbers_beyond_every_machine_are_refused_and_not_a_fault() -> None:
    assert "EiB" in refusal(M=10**30, N=10**30)


def test_compiling_refuses_them_too() -> None:
    with pytest.raises(TileError, match="HBM of 910B2"):
        lower(load_text(ADD).instantiate({"M": 2**20, "N": 2**20}))


@pytest.mark.parametrize("text", ["0 bytes", "1,023 bytes", "1,536 bytes (1.5 KiB)", "1,099,511,627,776 bytes (1 TiB)"])
def test_bytes_read_well(text: str) -> None:
    assert sized(int(text.split()[0].replace(",", ""))) == text
