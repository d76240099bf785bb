"""Kernels in Python that are kept as their author wrote them: levels, scopes, flags and barriers."""

from tile_eg.frontend.expert.decision import is_kept
from tile_eg.frontend.expert.kernel import in_order, kept_kernel, searched_or_in_order

__all__ = ["in_order", "is_kept", "kept_kernel", "searched_or_in_order"]
