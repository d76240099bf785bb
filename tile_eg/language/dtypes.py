"""TileLang's `language.dtypes`: dtypes as objects."""

from tile_eg.language.kernels import ElementType as dtype

__all__ = ["dtype"]
