"""What a kernel has to keep to, and what its author should know of it, whichever language it was written in."""

from tile_eg.frontend.checks.kernel import check, statement_faults, type_faults

__all__ = ["check", "statement_faults", "type_faults"]
