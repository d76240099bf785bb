"""From a schedule to a Program without flags."""

from tile_eg.emit.lower.lowering import plan

__all__ = ["plan"]
