"""Python's garbage collector while a kernel is compiled."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

COLLECTED_AFTER = 300_000
"""Objects that are made before Python's collector runs while a kernel is compiled; usually 700."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Lets Python look for unreachable cycles less often: a compilation makes many objects and drops few before its end.

    In a large kernel a fifth of the time goes into looking through them otherwise.
    """
    usual = gc.get_threshold()
    gc.set_threshold(max(usual[0], COLLECTED_AFTER) if usual[0] else 0, *usual[1:])  # 0: switched off
    try:
        yield
    finally:
        gc.set_threshold(*usual)
