"""What a kernel has to keep to, and what its author should know of it, whichever language it was written in."""

from tile_eg.frontend.checks.kernel import check

__all__ = ["check"]
