"""One search from a kernel to its fastest program: candidates, the moves between them, one queue, a budget in counts."""

from __future__ import annotations

from tile_eg.search.options import EFFORTS, Effort, SearchOptions, check_names, nearest_rule, search_options

__all__ = ["EFFORTS", "Effort", "SearchOptions", "check_names", "nearest_rule", "search_options"]
