"""TileLang's `intrinsics`: layouts of tiles in L1, for `T.annotate_layout`."""

from tile_eg.language.placement import make_col_major_layout, make_nz_layout, make_zn_layout

__all__ = ["make_col_major_layout", "make_nz_layout", "make_zn_layout"]
