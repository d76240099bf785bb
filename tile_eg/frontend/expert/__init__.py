"""Kernels in Python that are kept as their author wrote them: levels, scopes, flags and barriers.

`kernel.py` reads them; it is imported where one is read, since most kernels are searched.
"""

from tile_eg.frontend.expert.decision import in_order, is_kept, searched_or_in_order

__all__ = ["in_order", "is_kept", "searched_or_in_order"]
