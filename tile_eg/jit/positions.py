"""The tensors that `out_idx` and `workspace_idx` name by their positions among the arguments of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from tile_eg.errors import TileError


def positions_of(value: int | Sequence[int] | None, what: str) -> tuple[int, ...]:
    if value is None:
        return ()
    if not isinstance(value, int | Sequence) or isinstance(value, str):
        raise TileError(f"{what} is a position, or a list of them, not {value!r}")
    return (value,) if isinstance(value, int) else tuple(value)
