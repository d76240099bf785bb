"""One text for all sizes is made of values at several: kernels that have other loops there are not one text."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
from tile_eg.ir.values import Values
from tile_eg.search.alike import values_of_any_size
from tile_eg.transforms.any_size import NotAlike, of_any_size

LOOPED = """\
kernel k[N: dyn](x: f32[8, N]) -> y: f32[8, N] {
  grid (b) = (1)
  shared t: f32[8, 64]
  for j in serial(ceildiv(N, 64)) {
    t = x[0, j * 64]
    y[0, j * 64] = t * 2
  }
}
"""


def test_a_loop_that_is_not_there_at_other_sizes_is_told() -> None:
    kernel = load_text(LOOPED, "k.tile")
    found = [to_values(kernel.instantiate({"N": n})) for n in (128, 256)]
    found[1] = replace(found[1], trips={})
    assert of_any_size(found, [{"N": 128}, {"N": 256}], {"N": 128}) == NotAlike("it has other loops at other sizes")


def test_a_minimum_that_decides_nothing_at_some_sizes_is_one_at_all() -> None:
    """Causal attention with tiles of 128 queries and 64 keys: the trips end with the tensor only where a tile is not whole."""
    text = """
kernel sums[H: dyn, S: dyn](X: f32[H, S, 64]) -> Y: f32[H, S, 64] {
  grid (bx, h) = (ceildiv(S, 128), H)
  fragment a: f32[128, 64] = 0
  shared x: f32[64, 64]
  for j in serial(min(bx*2 + 2, ceildiv(S, 64))) {
    x = X[h, j*64, 0]
    a = a + colsum(x)[None, :]
  }
  Y[h, bx*128, 0] = a
}
"""
    found = values_of_any_size(load_text(text).instantiate, {"H": 4, "S": 1024})
    assert isinstance(found, Values), found
    assert {str(n) for n in found.counts.values()} == {"min((((block % ((S + 127) / 128)) * 2) + 2), ((S + 63) / 64))"}
