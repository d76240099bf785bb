"""TileLang's `jit.adapter.libgen`, of which nothing is here."""

from tile_eg.jit.adapter import WAY
from tile_eg.jit.refused import names_of

__getattr__ = names_of("tile_eg.jit.adapter.libgen", {}, WAY)
