"""TileLang's `intrinsics`: layouts of tiles, for `T.annotate_layout`. Those of a GPU's shared memory mean nothing here."""

from tile_eg.language.gpu import make_swizzled_layout as make_mma_swizzle_layout
from tile_eg.language.placement import make_col_major_layout, make_nz_layout, make_zn_layout

__all__ = ["make_col_major_layout", "make_mma_swizzle_layout", "make_nz_layout", "make_zn_layout"]
