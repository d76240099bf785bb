"""One text for all sizes is made of values at several: kernels that have other loops there are not one text."""

from __future__ import annotations

from dataclasses import replace

from tile_eg.frontend.ssa import to_values
from tile_eg.frontend.text import load_text
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
