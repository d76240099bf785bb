"""A copy of a matrix in strips of 32 bytes, made by the vector cores: what the cube core then loads are runs of bytes.

Rows that are short, as those of a tile of B are, cost ND2NZ a start each, and rows off a burst several; a strip lies in GM as it
does in L1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, floor, prod

from tile_eg.chips import Chip
from tile_eg.emit.sync import synchronise
from tile_eg.ir.index import BLOCK, MOST_SIZE, SUB, ZERO, Expr, bounds, const, div, maximum, minimum, mod, var, wrap
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import strip
from tile_eg.ir.program import Buffer, Gm, Instr, Let, Node, Program, Tasks, Tile
from tile_eg.ir.program.tasks import tasks
from tile_eg.ir.sizes import Sizes, sizes_in
from tile_eg.ir.values import Values
from tile_eg.ops.records import record
from tile_eg.ops.types import Level
from tile_eg.timeline.engine import run
from tile_eg.transforms.packed_operand import Extent, Matrices, loads_of, matrices_of, strides, times

ROWS, WIDE, LEAST = 64, 16, 8
"""Rows and strips that a vector core takes at a time, twice in UB and twice as strips; 8 of these where the matrix needs it."""
NAMES = {"task": "piece", "tile": "window"}
LAST = {"task": "last_piece", "tile": "last_window"}


def copy_in_strips(
    source: Tensor, target: Tensor, m: Matrices, blocks: int, chip: Chip, sizes: Sizes | None = None
) -> Program:
    """The program of `blocks` pairs of vector cores that fills `target`, of each matrix of `source` its strips, and of each strip
    its rows.

    Columns beyond the last whole window come behind all others, in one that is narrower; where sizes decide how many columns
    there are, each window may be narrower. Zeros fill the last strip.
    """
    width = _width(source, m)
    if isinstance(m.cols, int):
        windows, rest = divmod(m.cols, width)
        loops = [_Windows(source, target, m, 0, windows, width, NAMES).loop(blocks)] if windows else []
        loops += [_Windows(source, target, m, windows * width, 1, rest, LAST).loop(blocks)] if rest else []
    else:
        loops = [_Windows(source, target, m, 0, (m.cols + (width - 1)) // width, width, NAMES).loop(blocks)]
    return synchronise(Program(
        target.name, chip.name, "AIV_ONLY", (source,), blocks, True, 0, _buffers(source, width), (), tuple(loops), (target,),
        sizes=sizes,
    ))  # fmt: skip


def _width(source: Tensor, m: Matrices) -> int:
    """Columns of a window: the wider one, but where narrow ones alone leave no rest."""
    one = strip(source.dtype)
    narrow = isinstance(m.cols, int) and m.cols % (LEAST * one) == 0 and m.cols % (WIDE * one)
    return one * (LEAST if narrow else WIDE)


@record
class _Windows:
    """Windows of 128 rows and of up to `width` columns of each matrix, `across` of them side by side from column `start` on."""

    source: Tensor
    target: Tensor
    m: Matrices
    start: int
    across: Extent
    width: int
    names: Mapping[str, str]

    def loop(self, blocks: int) -> Tasks:
        """The loop of a block over the windows that are its own: half of the rows for each vector core."""
        across, each = wrap(self.across), (wrap(self.m.rows) + (2 * ROWS - 1)) // (2 * ROWS) * self.across
        count, task = each * self.m.count, var(self.names["task"])
        most = min(MOST_SIZE, bounds(count, {})[1])
        window = Let(self.names["tile"], task * blocks + var(BLOCK), most - 1)
        tile, several = var(self.names["tile"]), self.m.count > 1
        matrix, here = (div(tile, each), mod(tile, each)) if several else (const(0), tile)
        row = div(here, across) * (2 * ROWS) + var(SUB) * ROWS
        col = const(self.start) + mod(here, across) * self.width
        open_count = count if count.value is None else None
        return tasks(self.piece(matrix, row, col, task % 2), blocks, [window], self.names, open_count)

    def piece(self, matrix: Expr, row: Expr, col: Expr, slot: Expr) -> tuple[Node, ...]:
        """What a vector core does for its half of a window."""
        rows, cols, one = self.m.rows, self.m.cols, strip(self.source.dtype)
        valid = const(ROWS) if wrap(rows) % (2 * ROWS) == ZERO else maximum(0, minimum(ROWS, rows - row))
        across = const(self.width) if isinstance(cols, int) else minimum(self.width, cols - col)
        wide, long, count = Tile("rows", slot), Tile("strips", slot), (across + (one - 1)) // one
        pad = 0.0 if across % one != ZERO else None
        each = prod(self.m.strips(self.source.dtype)[-2:])
        at = Gm(self.source.name, times(matrix, rows * cols) + times(row, cols) + col, cols)
        to = Gm(self.target.name, times(matrix, each) + times(col, rows) + row * one, rows * one)
        return (
            Instr("gm_to_ub", wide, (at,), valid, across, pad=pad),
            Instr("vstrips", long, (wide,), valid, const(-(-self.width // one) * one), form="rows"),
            Instr("ub_to_gm", to, (long,), count, valid * one),
        )


def copies(values: Values, blocks: int, chip: Chip) -> list[Program]:
    """The copies that a phase of a kernel finds made."""
    return [_copy(values, tensor, name, blocks, chip) for tensor, name, _ in strides(values)]


def _copy(values: Values, tensor: str, name: str, blocks: int, chip: Chip) -> Program:
    """The copy of a tensor; its own sizes are those of the kernel that decide what it copies."""
    named = {t.name: t for t in values.in_gm}
    m, sizes = matrices_of(values, next(loads_of(values, tensor))), values.sizes
    assert m is not None
    if sizes and not any(sizes_in(wrap(n)) for n in (m.rows, m.cols)):
        sizes = None
    if sizes:
        (shape,) = (shape for t, shape in zip(values.tensors, sizes.shapes, strict=True) if t.name == tensor)
        sizes = replace(sizes, shapes=(shape,), blocks=const(blocks))
    return copy_in_strips(named[tensor], named[name], m, blocks, chip, sizes)


def nothing(program: Program, chip: Chip) -> Program:
    """A phase of all cube cores in which these do nothing."""
    blocks, kind = chip.cube_cores, "AIC_ONLY"
    sizes = program.sizes and replace(program.sizes, blocks=const(blocks))
    without = replace(program, buffers=(), lets=(), cube=(), vector=(), shared=())
    return replace(without, kernel_type=kind, blocks=blocks, workspace=0, sizes=sizes)


def tiles_beside(program: Program, values: Values, chip: Chip) -> list[int]:
    """How many tiles of a persistent program to try that are done while the copies which `values` needs are made.

    What is left are whole turns of all blocks, or all tiles where the copies take less than one, and where sizes known at run
    time decide how many tiles there are.
    """
    if values.sizes:
        return [0]
    tasks = next(n for n in program.cube if isinstance(n, Tasks))
    whole = run(program, chip, record=False).cycles
    copied = sum(run(p, chip, record=False).cycles for p in copies(values, program.blocks, chip)) * tasks.trips / whole
    before = {n for n in (floor(copied), ceil(copied)) if not n or n < tasks.trips - 1}
    return sorted(values.blocks - (tasks.trips - n) * program.blocks if n else 0 for n in before)


def _buffers(source: Tensor, width: int) -> tuple[Buffer, ...]:
    size = ROWS * width * source.dtype.bytes
    wide = Buffer("rows", Level.UB, source.dtype, ROWS, width, width, "nd", 2, (0, size), True)
    one = strip(source.dtype)
    count, long, pitch = width // one, ROWS * one, (ROWS + 1) * one  # strips side by side begin in other groups of banks
    at = 2 * size, 2 * size + count * pitch * source.dtype.bytes
    return wide, Buffer("strips", Level.UB, source.dtype, count, long, pitch, "nd", 2, at, True)
