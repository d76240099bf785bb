"""A transposed tile is of what its buffer held when it was named."""

from __future__ import annotations


def test_a_transposed_tile_of_a_buffer_that_was_written_since_is_refused(python_error) -> None:
    error = python_error("s = h.T\nT.clear(h)\nT.gemm(p, p, f)\nf[:, :] = h @ p @ s")
    assert "s was computed from h" in error.message
