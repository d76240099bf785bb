"""Synchronisation: flags, barriers and counters between the cores for a Program that has none, and a judge of those."""

from tile_eg.emit.sync.planning import SyncError, synchronise

__all__ = ["SyncError", "synchronise"]
