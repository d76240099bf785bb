"""What one instruction of the vector unit costs, from the chip's tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tile_eg.chips.model import Chip, VectorCost
from tile_eg.ir.machine import BLOCK_BYTES, BLOCK_ELEMENTS, DOT_PARTS, block_steps, halves, write_cycles
from tile_eg.ir.program import COMPARE
from tile_eg.ops.repeats import REPEATED
from tile_eg.ops.types import F32
from tile_eg.ops.whole_tiles import SORTED, TURNED, Turns
from tile_eg.timeline.work import HALVES, Work

SQUARE_BYTES = TURNED * BLOCK_BYTES
_VECTOR_NAME = {
    "sub": "add", "min": "max", "mins": "maxs", "sum": "add", "strips": "copy", "bytes": "copy", "nibbles": "cast",
    "pack": "compare", "bitselect": "select", "every": "reducev2", "beyond": "dup",
    "copy": "adds", "reshape": "adds", "piece": "adds", "put": "adds", "sort32": "sort", "merge": "mrgsort",
    **{r.instruction[1:]: r.priced_as for r in REPEATED.values()},
}  # fmt: skip


def _cost(chip: Chip, name: str, element_bytes: int) -> VectorCost:
    return chip.vector.ops[_VECTOR_NAME.get(name, name), 2 if element_bytes <= 2 else 4]


def slope_of(chip: Chip, cost: VectorCost, conflict: float, in_the_way: float) -> float:
    """Cycles a repeat, where sources meet in a group of banks, and results are in the way of sources, in such shares of them."""
    return max(cost.free + (cost.slope - cost.free) * conflict, cost.free + chip.vector.read_write * in_the_way)


def repeat_cycles(chip: Chip, cost: VectorCost, repeats: int, conflict: float, in_the_way: float = 0.0) -> float:
    """Cycles of enough instructions for `repeats`: slope each, at least the floor, at most 255 repeats in one (MSKPP)."""
    slope = slope_of(chip, cost, conflict, in_the_way)
    full, rest = divmod(repeats, chip.limits.repeat)
    total = full * max(cost.floor, slope * chip.limits.repeat)
    return total + (max(cost.floor, slope * rest) if rest else 0.0)


def vector_places(chip: Chip, work: Work) -> int:
    """Instructions that one of the vector unit is written as, and the barriers between those that need each other."""
    lanes = chip.vector.repeat_bytes // max(work.dtype.bytes, work.src_dtype.bytes)
    chunks = -(-work.cols // lanes)
    kind = work.op[1:]
    if kind.startswith("col"):
        return 2 * (_halving_calls(work, chunks) if work.form in HALVES else work.rows) - 1
    if kind.startswith("row"):
        return 2 * _row_calls(work, lanes, chunks) - 1
    if kind.startswith(("choose", "mask")):
        return 3 if work.form == "flat" else 3 * work.rows * chunks + (_numbers(work) + 1 if _numbers(work) else 0)
    if work.form == "apart":
        return 2 * work.rows if kind != "brcb" else 2
    several = kind.endswith("_rows") or work.form in ("rows", "strips")
    return (min(work.rows, chunks) if several else work.rows if kind == "ramp" else 1) + 2 * (kind == "put" and work.depth > 1)


def _row_calls(work: Work, lanes: int, chunks: int) -> int:
    """Instructions of a reduction of rows."""
    if work.form == "blocks":
        return _step_calls(work.cols, block_steps(work.cols, work.rows))
    if work.form == "halves":
        return 1 + sum(min(work.rows, -(-count // lanes)) for count in _halving_counts(work.cols, lanes))
    return chunks


def _halving_calls(work: Work, chunks: int) -> int:
    """Instructions of a reduction of columns by halves: one for each step and each row over; under a mask a step has more."""
    each = 1 if work.form == "halves" else chunks
    return sum(min(rows, each) + over for rows, over in halves(work.rows))


def _step_calls(cols: int, steps: Sequence[tuple[str, int]]) -> int:
    """Instructions of the steps of a reduction: a fold is one for each chunk after the first."""
    total = 0
    for step, left in steps:
        total, cols = total + (max(1, -(-cols // left) - 1) if step == "fold" else 1), left
    return total


def plain_cycles(chip: Chip, work: Work, cold: bool) -> float:
    """Of an instruction that takes its operands once, element by element."""
    name = work.op[1:]
    base, _, suffix = (name, "", "") if name in _VECTOR_NAME else name.partition("_")
    element = max(work.dtype.bytes, work.src_dtype.bytes) if base == "cast" else work.dtype.bytes
    cost = _cost(chip, base, element)
    lanes = chip.vector.repeat_bytes // element
    chunks = -(-work.cols // lanes)
    meet = work.conflict, work.in_the_way
    if work.form == "apart":
        total = 2 * work.rows * repeat_cycles(chip, cost, chunks // 2, *meet)
    elif (suffix or work.form in ("rows", "strips")) and work.rows > 1:
        total = _in_rows(chip, cost, work.rows, work.cols, lanes, *meet, broadcast=bool(suffix))
    else:
        total = _flat(chip, cost, work, lanes)
    if "strips" in (base, work.form):
        apart = work.pitch * work.dtype.bytes // BLOCK_BYTES
        total = max(total, work.rows * chunks * write_cycles(apart, chip.vector.bank_groups_bytes))
    return total + (cost.fixed if cold else 0.0)


def _in_rows(
    chip: Chip, cost: VectorCost, rows: int, cols: int, lanes: int, conflict: float, in_the_way: float = 0.0, *,
    broadcast: bool = False,
) -> float:  # fmt: skip
    """Rows under a mask of their columns; the repeat runs the longer way."""
    if rows == 1:
        return _counted(chip, cost, cols, lanes, conflict, in_the_way)
    chunks = -(-cols // lanes)
    calls, repeats = (rows, chunks) if rows < chunks else (chunks, rows)
    total = calls * repeat_cycles(chip, cost, repeats, conflict, in_the_way)
    return total + (rows * _rest(chip, cost, cols, lanes, broadcast) if rows < chunks else 0.0)


def _rest(chip: Chip, cost: VectorCost, cols: int, lanes: int, broadcast: bool) -> float:
    """What a row of its own takes for columns that fill no repeat: a tail (PTO), or an instruction where an operand stays."""
    if not cols % lanes or cols < lanes:
        return 0.0
    return cost.floor - cost.free if broadcast else chip.vector.counter_tail


def _flat(chip: Chip, cost: VectorCost, work: Work, lanes: int) -> float:
    """One run of rows x pitch elements by count: a count that fills no repeat pays the counter-mode tail (PTO)."""
    count = work.rows * (work.pitch or work.cols) if work.rows > 1 else work.cols
    return _counted(chip, cost, count, lanes, work.conflict, work.in_the_way)


def _counted(chip: Chip, cost: VectorCost, count: int, lanes: int, conflict: float = 0.0, in_the_way: float = 0.0) -> float:
    """One instruction over a count of elements."""
    tail = chip.vector.counter_tail if count % lanes and count > lanes else 0.0
    return max(cost.floor, slope_of(chip, cost, conflict, in_the_way) * -(-count // lanes)) + tail


def _row_reduce(name: str) -> Callable[[Chip, Work, bool], float]:
    """Folds of whole column chunks over all rows, then one whole-reduce a row (7 cycles a repeat, ASC).

    Each fold needs the one before it: a PipeBarrier<PIPE_V> between, which lets it pass through.
    """

    def rule(chip: Chip, work: Work, cold: bool) -> float:
        if work.form == "blocks":
            return _block_reduce(chip, name, work, cold, block_steps(work.cols, work.rows))
        folds = _halved if work.form == "halves" else _folds
        last = _cost(chip, "whole_sum" if name == "sum" else "whole_max", work.dtype.bytes)
        total = folds(chip, name, work, work.cols)
        return total + repeat_cycles(chip, last, work.rows, False) + (last.fixed if cold else 0.0)

    return rule


def _folds(chip: Chip, name: str, work: Work, cols: int) -> float:
    """Chunks of 256 bytes into one, each behind the one before it: the first two, which lie in different groups of banks, or the
    first alone, where the second is not full; then each further one."""
    lanes, fold, copy = chip.vector.lanes(work.dtype), *(_cost(chip, op, work.dtype.bytes) for op in (name, "copy"))
    folds, way = -(-cols // lanes) - 1, work.in_the_way
    if not folds:
        return 0.0
    pair = cols >= 2 * lanes
    begins = fold if pair else copy
    first = repeat_cycles(chip, begins, work.rows, 0, way) + begins.fixed
    return first + (folds - pair) * (repeat_cycles(chip, fold, work.rows, work.conflict, way) + fold.fixed)


def _halved(chip: Chip, name: str, work: Work, cols: int) -> float:
    """Half of a row's chunks upon the other half, each step behind the one before it; the halves may lie in one bank group."""
    lanes, fold, total = chip.vector.lanes(work.dtype), _cost(chip, name, work.dtype.bytes), 0.0
    for count in _halving_counts(cols, lanes):
        total += _in_rows(chip, fold, work.rows, count, lanes, 1.0) + fold.fixed
    return total


def _halving_counts(cols: int, lanes: int) -> list[int]:
    """Elements of a row that each of the instructions takes: halves, a chunk that is over, and what fills none."""
    chunks, rest = divmod(cols, lanes)
    steps = [count for left, over in halves(chunks) for count in (left * lanes, lanes * over)]
    return [count for count in (*steps, rest) if count]


def _block_reduce(chip: Chip, name: str, work: Work, cold: bool, steps: Sequence[tuple[str, int]]) -> float:
    """Steps of `block_steps`, each behind the one before it: 64 floats a cycle by blocks (ASC), folds as in `_row_reduce`."""
    kind = "sum" if name == "sum" else "max"
    blocks, whole = (_cost(chip, op, work.dtype.bytes) for op in (f"block{kind}", f"whole_{kind}"))
    total, cols = 0.0, work.cols
    for step, left in steps:
        if step == "block":
            total += repeat_cycles(chip, blocks, -(-work.rows * left // BLOCK_ELEMENTS), False) + blocks.fixed
        elif step == "whole":
            total += repeat_cycles(chip, whole, work.rows, False) + whole.fixed
        else:
            total += _folds(chip, name, work, cols)
        cols = left
    last = whole if steps[-1][0] == "whole" else blocks
    return total - (0.0 if cold else last.fixed)


def _row_dot(chip: Chip, work: Work, cold: bool) -> float:
    """The products of each part, then the first step for its rows; the other steps for all rows at once."""
    mul, blocks = _cost(chip, "mul", work.dtype.bytes), _cost(chip, "blocksum", work.dtype.bytes)
    repeats = -(-work.rows * work.cols // DOT_PARTS // chip.vector.lanes(work.dtype))
    products = max(mul.floor, (mul.slope if work.conflict else mul.free) * repeats) + mul.fixed
    return DOT_PARTS * products + (DOT_PARTS - 1) * blocks.fixed + _block_reduce(chip, "sum", work, cold, block_steps(work.cols))


def _col_reduce(name: str) -> Callable[[Chip, Work, bool], float]:
    """The first row copied, then one add (max, min) a further row, each behind the one before it; or half of the rows upon the
    other half."""

    def rule(chip: Chip, work: Work, cold: bool) -> float:
        if work.form in HALVES:
            return _by_halves(chip, _cost(chip, name, work.dtype.bytes), work, cold)
        lanes = chip.vector.lanes(work.dtype)
        fold, copy = (_cost(chip, op, work.dtype.bytes) for op in (name, "copy"))
        first, more = _counted(chip, copy, work.cols, lanes), work.rows - 1
        each = _counted(chip, fold, work.cols, lanes, work.conflict, work.in_the_way)
        waits = copy.fixed + (more - 1) * fold.fixed if more else 0.0
        return first + waits + more * each + ((fold if more else copy).fixed if cold else 0.0)

    return rule


def _by_halves(chip: Chip, fold: VectorCost, work: Work, cold: bool) -> float:
    """Each step behind the one before it; the halves of the rows may lie in one bank group."""
    total, lanes = 0.0, chip.vector.lanes(work.dtype)
    for rows, odd in halves(work.rows):
        if work.form == "halves":
            total += _counted(chip, fold, rows * work.cols, lanes, 1.0) + fold.fixed
        else:
            total += _in_rows(chip, fold, rows, work.cols, lanes, 1.0) + fold.fixed
        total += _counted(chip, fold, work.cols, lanes, 1.0) + fold.fixed if odd else 0.0
    return total - (0.0 if cold else fold.fixed)


def _choice(chip: Chip, work: Work, cold: bool) -> float:
    """A comparison, and behind it the selection by its bits: over all rounds, or for each row and chunk of 256 bytes, behind the
    blocks of the numbers that are compared with and chosen."""
    wide = max(work.dtype.bytes, work.src_dtype.bytes)
    compare, select, dup = (_cost(chip, name, wide) for name in ("compare", "select", "dup"))
    lanes = chip.vector.repeat_bytes // wide
    if work.form == "flat":
        total = sum(_flat(chip, cost, work, lanes) for cost in (compare, select)) + compare.fixed
    else:
        total = work.rows * -(-work.cols // lanes) * (compare.floor + compare.fixed + select.floor)
        total += _numbers(work) * dup.floor + dup.fixed if _numbers(work) else 0.0
    return total + (select.fixed if cold else 0.0)


def _numbers(work: Work) -> int:
    """Blocks that a choice by rows fills with numbers."""
    return (not work.op.startswith("vchoose_")) + work.op.startswith("vmask")


def _ramp(chip: Chip, work: Work, cold: bool) -> float:
    """The first row, one number (`fill`), an index, or its product and a sum; then one sum for each further row."""
    names = ("dup",) if work.form in ("fill", "index") else ("dup", "muls", "adds")
    steps, plus = [_cost(chip, name, work.dtype.bytes) for name in names], _cost(chip, "adds", work.dtype.bytes)
    lanes = chip.vector.lanes(work.dtype)
    first = sum(_counted(chip, cost, work.cols, lanes) + cost.fixed for cost in steps)
    rest, last = (work.rows - 1) * _counted(chip, plus, work.cols, lanes), plus if work.rows > 1 else steps[-1]
    return first + rest - (steps[-1].fixed if work.rows == 1 else 0.0) + (last.fixed if cold else 0.0)


def _put(chip: Chip, work: Work, cold: bool) -> float:
    """The rows that are put, and before them all that they are put into (`depth` elements), where that lies elsewhere."""
    rows = plain_cycles(chip, replace(work, depth=1), cold)
    if work.depth == 1:
        return rows
    all_of_it = replace(work, rows=1, cols=work.depth, depth=1, form="flat", in_the_way=0.0)
    return plain_cycles(chip, all_of_it, True) + rows


def _brcb(chip: Chip, work: Work, cold: bool) -> float:
    """Each repeat turns 8 elements into 8 blocks of 32 bytes (ASC, Brcb)."""
    cost, times = _cost(chip, "brcb", work.dtype.bytes), 2 if work.form == "apart" else 1
    return times * repeat_cycles(chip, cost, -(-max(work.rows, 1) // 8), False) + (cost.fixed if cold else 0.0)


def _sort(chip: Chip, work: Work, cold: bool) -> float:
    """Their indices, groups of 32, then merges of four lists each, over pairs of twice as many elements, each behind the one
    before it."""
    sort, merge, index = (_cost(chip, name, work.dtype.bytes) for name in ("sort", "mrgsort", "dup"))
    lanes = chip.vector.lanes(work.dtype)
    total = _counted(chip, index, work.cols, lanes) + index.fixed
    total, length = total + repeat_cycles(chip, sort, -(-work.cols // lanes), False) + sort.fixed, SORTED
    while length < work.cols:
        total, length = total + repeat_cycles(chip, merge, -(-2 * work.cols // lanes), False) + merge.fixed, 4 * length
    return total - (0.0 if cold else sort.fixed)


def _swap(chip: Chip, work: Work, cold: bool) -> float:
    """Two shifts of numbers of two elements, and behind them their bits in one."""
    shift, both = _cost(chip, "shls", F32.bytes), _cost(chip, "or", work.dtype.bytes)
    repeats = -(-work.cols // chip.vector.lanes(work.dtype))
    total = 2 * repeat_cycles(chip, shift, repeats, False) + shift.fixed + repeat_cycles(chip, both, repeats, work.conflict)
    return total + (both.fixed if cold else 0.0)


def _turned(chip: Chip, work: Work, cold: bool) -> float:
    """Squares of 512 bytes, in the fewest instructions."""
    cost, turns = _cost(chip, "transpose", work.dtype.bytes), Turns.of(work.rows, work.cols, work.dtype)
    each = repeat_cycles(chip, cost, turns.repeats * (SQUARE_BYTES // chip.vector.repeat_bytes), False)
    return turns.calls * each + (cost.fixed if cold else 0.0)


VECTOR_RULES: dict[str, Callable[[Chip, Work, bool], float]] = {
    "vbrcb": _brcb,
    **{f"v{kind}_{name}": _choice for kind in ("choose", "chooses", "mask") for name in COMPARE},
    "vramp": _ramp,
    "vput": _put,
    "vsort": _sort,
    "vswap_pairs": _swap,
    "vtranspose": _turned,
    **{f"vrow{name}": _row_reduce(name) for name in ("max", "min", "sum")},
    "vrowdot": _row_dot,
    **{f"vcol{name}": _col_reduce(name) for name in ("max", "min", "sum")},
}
