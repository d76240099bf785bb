"""A synchronised Program as Ascend C."""

from tile_eg.emit.ascend_c.kernel import kernel_text

__all__ = ["kernel_text"]
