"""Windows of tensors and buffers as operands of instructions: where they start, their rows and columns, which of them exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from tile_eg.errors import Span, TileError
from tile_eg.frontend.ranges import at_most
from tile_eg.ir import index as ix
from tile_eg.ir.index import ONE, ZERO, Expr, Interval
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.kernel import Region, Tensor
from tile_eg.ir.program import Buffer, Gm, Tile
from tile_eg.ops.records import record
from tile_eg.ops.types import DType, Level


@record
class Held:
    """A buffer that the kernel allocated. `shape` is the author's; rows and columns are its last two dimensions.

    In UB all rows lie one behind the other, those of the leading dimensions included; elsewhere these are slots. Of `truth`: it
    holds bools.
    """

    name: str
    level: Level
    dtype: DType
    shape: tuple[int, ...]
    span: Span | None = None
    slots: int = 1
    truth: bool = False

    @property
    def lead(self) -> tuple[int, ...]:
        return self.shape[:-2]

    @property
    def rows(self) -> int:
        return self.shape[-2] if len(self.shape) > 1 else 1

    @property
    def cols(self) -> int:
        return self.shape[-1]

    def buffer(self) -> Buffer:
        """What is planned, still without an address."""
        layout = {Level.L0A: "zz", Level.L0B: "zn", Level.UB: "nd"}.get(self.level, "nz")
        rows, slots = (prod(self.lead) * self.rows, 1) if self.level is Level.UB else (self.rows, prod(self.lead))
        return Buffer(self.name, self.level, self.dtype, rows, self.cols, self.cols, layout, slots * self.slots)


def same_memory(views: Mapping[str, str], names: Iterable[str]) -> set[str]:
    """These buffers, and all that lie in the same memory under another name; `views` has the buffer of each view."""
    found = set(names)
    bases = {views.get(n, n) for n in found}
    return found | (bases & {*views.values()}) | {view for view, of in views.items() if of in bases}


@record
class Place:
    """A window as an operand: `rows` x `cols` as the author means it, of which `valid_rows` x `valid_cols` exist.

    `whole`: its rows lie one behind the other without gaps. `element`: it is one element, written with indices alone. `counted`:
    how many rows or columns there are, is known at run time, and they are no more than `rows` and `cols`.
    """

    operand: Gm | Tile
    rows: int
    cols: int
    valid_rows: Expr
    valid_cols: Expr
    level: Level
    dtype: DType
    whole: bool
    element: bool = False
    span: Span | None = None
    counted: bool = False

    @property
    def count(self) -> int:
        return self.rows * self.cols

    @property
    def cut(self) -> bool:
        """Whether some of it may lie beyond the end of its tensor."""
        return self.valid_rows.value != self.rows or self.valid_cols.value != self.cols

    def tile(self) -> Tile:
        assert isinstance(self.operand, Tile)
        return self.operand

    def transposed(self) -> Place:
        return replace(self, rows=self.cols, cols=self.rows, valid_rows=self.valid_cols, valid_cols=self.valid_rows)


def of_tensor(t: Tensor, region: Region, ranges: dict[str, Interval], within: Expr = ONE, cols: int | None = None) -> Place:
    """A window of a tensor in GM, where `within` holds, in rows of so many `cols` if it can be. TileError where it is no rows of
    neighbouring elements."""
    strides = [prod(t.shape[axis + 1 :]) for axis in range(len(t.shape))]
    offset = sum((s * n for s, n in zip(region.starts, strides, strict=True)), ZERO)
    counts = region.counts or (None,) * len(t.shape)
    axes = _axes(region.extents, t.shape, region.starts, counts, cols)
    if len(axes) > 2:
        raise TileError(
            f"this window of {t.name} has more than rows and columns", region.span, help="copy it plane by plane, in a loop"
        )
    valid = []
    for a, n in axes:
        inner = prod(t.shape[k] for k in a[1:])
        there = _valid(region.starts[a[0]], n // inner, t.shape[a[0]], ranges, within)
        counted = counts[a[0]]
        valid.append(there * inner if counted is None else ix.simplified(ix.minimum(there, counted), ranges))
    steps = [strides[a[-1]] for a, _ in axes]
    sizes = [n for _, n in axes]
    if len(axes) == 2 and steps[1] != 1:
        raise TileError(
            f"the last dimension of this window of {t.name} is not the tensor's last one", region.span,
            help="rows of neighbouring elements can be copied: index the dimensions behind them with a number",
        )  # fmt: skip
    if not axes:
        one = region.extents and region.extents[-1] and not elements_in(region.starts[-1])
        sizes, valid, steps = [1], [_valid(region.starts[-1], 1, t.shape[-1], ranges, within) if one else ONE], [1]
    if len(sizes) == 1:
        run = steps[0] == 1
        down = not run or cols == 1
        rows, cols = (sizes[0], 1) if down else (1, sizes[0])
        good = (valid[0], ONE) if down else (_there(t, region, axes, ranges, within), valid[0])
        return Place(Gm(t.name, offset, steps[0] if down else max(1, sizes[0])), rows, cols, *good, Level.GM, t.dtype, run,
                     region.shape == (), region.span, any(counts))  # fmt: skip
    return Place(
        Gm(t.name, offset, steps[0]), sizes[0], sizes[1], valid[0], valid[1], Level.GM, t.dtype, steps[0] == sizes[1],
        False, region.span, any(counts),
    )  # fmt: skip


def rows_of(t: Tensor, region: Region, cols: int | None = None, most: int = 2) -> list[int]:
    """The extents of a window of a tensor once neighbours that are one run of elements are joined, to so many as `most`; in rows
    of so many `cols` if it can be."""
    counts = region.counts or (None,) * len(t.shape)
    return [n for _, n in _axes(region.extents, t.shape, region.starts, counts, cols, most)]


def _there(
    t: Tensor, region: Region, axes: Sequence[tuple[tuple[int, ...], int]], ranges: dict[str, Interval], within: Expr
) -> Expr:
    """Whether a single row lies in its tensor: 1 or 0. A row at an index that is read always has to."""
    row = len(t.shape) - 2
    if row < 0 or any(row in a for a, _ in axes) or elements_in(region.starts[row]):
        return ONE
    return _valid(region.starts[row], 1, t.shape[row], ranges, within)


def _axes(
    extents: tuple[int | None, ...], shape: tuple[int, ...], starts: tuple[Expr, ...], counts: tuple[Expr | None, ...],
    cols: int | None, most: int = 2,
) -> list[tuple[tuple[int, ...], int]]:  # fmt: skip
    """The dimensions over which a window extends, neighbours that are one run of elements joined, with their extents.

    The last ones are joined, or the first ones where that leaves rows of so many `cols`."""
    axes: list[tuple[tuple[int, ...], int]] = [((a,), n) for a, n in enumerate(extents)
                                          if n is not None and (n != 1 or counts[a])]  # fmt: skip
    while len(axes) > most:
        last_first = range(len(axes) - 1, 0, -1)
        for k in reversed(last_first) if axes[-1][1] == cols else last_first:
            (outer, n), (inner, m) = axes[k - 1], axes[k]
            run = inner[0] == outer[-1] + 1 and not any(counts[a] for a in (*outer, *inner))
            if run and prod(shape[a] for a in inner) == m and all(starts[a] == ZERO for a in inner):
                axes[k - 1 : k + 1] = [((*outer, *inner), n * m)]
                break
        else:
            break
    return axes


def _valid(start: Expr, extent: int, size: int, ranges: dict[str, Interval], within: Expr) -> Expr:
    """How many of `extent` elements from `start` on lie within `size`, where `within` holds."""
    if at_most(start, size - extent, ranges, within):
        return ix.const(extent)
    return ix.simplified(ix.minimum(extent, size - start), ranges)


def planes_in(b: Held, region: Region) -> int:
    """How many planes, or slots, of a buffer a window takes."""
    return prod(e or 1 for e in region.extents[: len(b.lead)])


def level_for(b: Held, region: Region, levels: Sequence[Level]) -> Level:
    """Where a window of a buffer can be used that has to lie in one of the `levels`; several planes at once, in UB alone."""
    if levels and b.level not in levels:
        return levels[0]
    return Level.UB if planes_in(b, region) > 1 else b.level


def of_buffer(b: Held, region: Region) -> Place:
    """A window of a buffer. TileError where it takes several slots outside of UB."""
    lead = len(b.lead)
    slot = ZERO
    for start, n in zip(region.starts[:lead], b.lead, strict=True):
        slot = slot * n + start
    many = planes_in(b, region)
    if many > 1 and b.level is not Level.UB:
        raise TileError(f"{b.name} has {many} slots here, and one can be used at a time", region.span, help=f"{b.name}[i, :, :]")
    row, col = region.starts[lead] if len(b.shape) > 1 else ZERO, region.starts[-1]
    rows = (region.extents[lead] or 1) if len(b.shape) > 1 else 1
    cols = region.extents[-1] or 1
    if b.level is Level.UB:
        row, slot = row + slot * b.rows, ZERO
        if many > 1 and rows != b.rows:
            what = f"this window of {b.name} takes a part of several planes"
            raise TileError(what, region.span, help="use one plane at a time")
        rows *= many
    whole = rows == 1 or cols == b.cols
    counts = region.counts or (None,) * len(b.shape)
    if any(counts[:lead]):
        raise TileError(f"how many planes of {b.name} are meant has to be known", region.span, help="use one plane at a time")
    valid = (counts[lead] if len(b.shape) > 1 else None) or ix.const(rows), counts[-1] or ix.const(cols)
    return Place(Tile(b.name, slot, row, col), rows, cols, *valid, b.level, b.dtype, whole, region.shape == (), region.span,
                 any(counts))  # fmt: skip
