"""TileLang's `transform`: the names of its pass switches."""

from tile_eg.jit.switches import PassConfigKey

__all__ = ["PassConfigKey"]
