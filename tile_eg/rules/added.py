"""The theories of the user's that take part in every search of this process: `user.add` reads and checks them."""

from __future__ import annotations

from tile_eg.rules.theory import Theory

ADDED: list[Theory] = []


def added() -> tuple[Theory, ...]:
    """The theories that were added in this process."""
    return tuple(ADDED)
