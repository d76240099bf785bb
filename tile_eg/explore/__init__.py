"""Looking at what was not chosen: numbered alternatives, runners-up of decisions, why not another choice, graphs for others."""

from __future__ import annotations

from tile_eg.explore.author import AuthorAndSearch
from tile_eg.explore.numbered import Alternatives, Numbered, alternatives, schedule_number, schedules_numbered
from tile_eg.explore.runners import explained, runners
from tile_eg.explore.side_by_side import SideBySide
from tile_eg.explore.why_not import WhyNot, why_not

__all__ = [
    "Alternatives", "AuthorAndSearch", "Numbered", "SideBySide", "WhyNot", "alternatives", "explained", "runners",
    "schedule_number", "schedules_numbered", "why_not",
]  # fmt: skip
