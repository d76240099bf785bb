"""The rewrite rules: the project's theories (`theory`), and rules of a user's (`user`)."""

from __future__ import annotations

from importlib import import_module

from tile_eg.rules.theory import INEXACT, LAWS, OF_VALUES, Rule, Theory, read_theory, registry, selected, signatures, theories

__all__ = ["INEXACT", "LAWS", "OF_VALUES", "Rule", "Theory", "read_theory", "registry", "selected", "signatures", "theories"]


def __getattr__(name: str) -> object:
    """`add` and `added`, which need egglog, are imported when they are first asked for."""
    if name not in ("add", "added"):
        raise AttributeError(f"module 'tile_eg.rules' has no attribute {name!r}")
    return getattr(import_module("tile_eg.rules.user"), name)
