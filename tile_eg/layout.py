"""TileLang's `layout`: how a GPU's tiles lie, for `T.annotate_layout`. How they lie here is found."""

from tile_eg.language.gpu import Fragment, Layout, make_swizzled_layout

make_wgmma_swizzled_layout = make_volta_swizzled_layout = make_linear_layout = make_swizzled_layout
make_full_bank_swizzled_layout = make_half_bank_swizzled_layout = make_quarter_bank_swizzled_layout = make_swizzled_layout

__all__ = ["Fragment", "Layout", "make_swizzled_layout"]
