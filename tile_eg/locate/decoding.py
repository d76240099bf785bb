"""What the bytes of a buffer's slot say: the window that an instruction has written, in the rows and columns of the value."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.index import SUB, evaluate
from tile_eg.ir.program import Buffer
from tile_eg.locate.watches import Watched, slot_of
from tile_eg.ops.records import record
from tile_eg.ops.types import Level

Array = np.ndarray
L0C_WIDTH = 16


@record
class Window:
    """Rows and columns of a value, from (row, col) on, and where they begin in the slot that holds them."""

    row: int
    col: int
    rows: int
    cols: int
    at: tuple[int, int]


def window_of(watched: Watched, values: Mapping[str, int], valid: tuple[int, int]) -> Window:
    """What an instruction has written of a value of which `valid` rows and columns exist."""
    i, term = watched.instr, watched.held.term
    assert term is not None
    at = evaluate(slot_of(i).row, values), evaluate(slot_of(i).col, values)
    if i.op == "mmad":
        size = evaluate(i.rows, values), evaluate(i.cols, values)
        return Window(*at, min(size[0], valid[0] - at[0]), min(size[1], valid[1] - at[1]), at)
    row = values[SUB] * (term.rows // 2) if watched.held.share == 0 else 0
    col = values[SUB] * (term.cols // 2) if watched.held.share == 1 else 0
    rows = min(valid[0] - row, term.rows // 2 if watched.held.share == 0 else term.rows)
    cols = min(valid[1] - col, term.cols // 2 if watched.held.share == 1 else term.cols)
    return Window(row, col, max(0, rows), max(0, cols), at)


def held_in(watched: Watched, data: bytes, window: Window, values: Mapping[str, int]) -> Array | None:
    """The elements of the window; None where the slot has no room for it, as it holds something else."""
    b = watched.buffer
    assert b is not None
    flat = np.frombuffer(data, np.uint8)
    dtype = numpy_dtype(b.dtype)
    flat = flat[: flat.size // dtype.itemsize * dtype.itemsize].view(dtype)
    rows, cols = (np.arange(n) + a for n, a in zip((window.rows, window.cols), window.at, strict=True))
    if b.level is Level.L0C:
        places = _of_product(b, evaluate(watched.instr.rows, values), window)
    elif b.layout == "nd":
        places = rows[:, None] * b.pitch + cols
    elif b.layout == "pairs":
        places = (rows // 16)[:, None] * (-(-b.cols // 2) * 32) + cols // 2 * 32 + (rows % 16)[:, None] * 2 + cols % 2
    else:
        width = 32 // b.dtype.bytes
        high = -(-b.rows // max(16, width)) * max(16, width)
        places = (cols // width) * (high * width) + cols % width + rows[:, None] * width
    return flat[places] if not places.size or places.max() < flat.size else None


def _of_product(b: Buffer, rows: int, window: Window) -> Array:
    """Where an Mmad of so many rows puts the elements of its window: one such window behind the other, each in fractals."""
    high = -(-rows // 16) * 16
    begin = window.at[0] * (-(-b.cols // L0C_WIDTH) * L0C_WIDTH) + window.at[1] * high
    i, j = np.arange(window.rows)[:, None], np.arange(window.cols)
    return begin + (j // L0C_WIDTH) * (high * L0C_WIDTH) + i * L0C_WIDTH + j % L0C_WIDTH
