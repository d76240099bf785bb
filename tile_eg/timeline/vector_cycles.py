"""What one instruction of the vector unit costs, from the chip's tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_eg.chips.model import Chip, VectorCost
from tile_eg.ir.machine import BLOCK_BYTES, BLOCK_ELEMENTS, DOT_PARTS, block_steps, halves, write_cycles
from tile_eg.ir.program import COMPARE
from tile_eg.ops.repeats import REPEATED
from tile_eg.ops.types import F32
from tile_eg.ops.whole_tiles import SORTED
from tile_eg.timeline.work import Work

_VECTOR_NAME = {
    "sub": "add", "min": "max", "mins": "maxs", "sum": "add", "strips": "copy", "bytes": "copy", "nibbles": "cast",
    "pack": "compare", "bitselect": "select", "every": "reducev2",
    "reshape": "copy", "piece": "copy", "put": "copy", "sort32": "sort", "merge": "mrgsort",
    **{r.instruction[1:]: r.priced_as for r in REPEATED.values()},
}  # fmt: skip


def _cost(chip: Chip, name: str, element_bytes: int) -> VectorCost:
    return chip.vector.ops[_VECTOR_NAME.get(name, name), 2 if element_bytes <= 2 else 4]


def repeat_cycles(chip: Chip, cost: VectorCost, repeats: int, conflict: bool) -> float:
    """Cycles of enough instructions for `repeats`: slope each, at least the floor, at most 255 repeats in one (MSKPP)."""
    slope = cost.slope if conflict else cost.free
    full, rest = divmod(repeats, chip.limits.repeat)
    total = full * max(cost.floor, slope * chip.limits.repeat)
    return total + (max(cost.floor, slope * rest) if rest else 0.0)


def vector_places(chip: Chip, work: Work) -> int:
    """Instructions that one of the vector unit is written as, and the barriers between those that need each other."""
    lanes = chip.vector.repeat_bytes // max(work.dtype.bytes, work.src_dtype.bytes)
    chunks = -(-work.cols // lanes)
    kind = work.op[1:]
    if kind.startswith("col"):
        return 2 * (sum(1 + odd for _, odd in halves(work.rows)) if work.form == "halves" else work.rows) - 1
    if kind.startswith("row"):
        return 2 * (_step_calls(work.cols, block_steps(work.cols, work.rows)) if work.form == "blocks" else chunks) - 1
    if kind.startswith(("choose", "mask")):
        return 3 if work.form == "flat" else 3 * work.rows * chunks
    if work.form == "apart":
        return 2 * work.rows if kind != "brcb" else 2
    several = kind.endswith("_rows") or work.form in ("rows", "strips")
    return min(work.rows, chunks) if several else work.rows if kind == "ramp" else 1


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
    calls, repeats = (work.rows, chunks) if work.rows < chunks else (chunks, work.rows)  # the repeat runs the longer way
    if work.form == "apart":
        total = 2 * work.rows * repeat_cycles(chip, cost, chunks // 2, work.conflict)
    elif suffix == "rows" and work.rows < chunks:
        total = calls * max(cost.floor, (cost.slope + cost.free) / 2 * chunks)
    elif suffix == "rows":
        total = _chunks(chip, cost, chunks, work.rows, work.conflict)
    elif suffix or (work.form in ("rows", "strips") and work.rows > 1):
        total = calls * repeat_cycles(chip, cost, repeats, work.conflict)
    else:
        total = _flat(chip, cost, work, lanes)
    if "strips" in (base, work.form):
        apart = work.pitch * work.dtype.bytes // BLOCK_BYTES
        total = max(total, work.rows * chunks * write_cycles(apart, chip.vector.bank_groups_bytes))
    if work.in_the_way:
        total = max(total, work.rows * chunks * (cost.free + chip.vector.read_write))
    return total + (cost.fixed if cold else 0.0)


def _chunks(chip: Chip, cost: VectorCost, chunks: int, rows: int, first: bool) -> float:
    """Instructions for column chunks of 256 bytes against an operand that stays: every other one meets it in its bank group.

    `first` says whether the first chunk does.
    """
    meet = (chunks + first) // 2
    return meet * repeat_cycles(chip, cost, rows, True) + (chunks - meet) * repeat_cycles(chip, cost, rows, False)


def _flat(chip: Chip, cost: VectorCost, work: Work, lanes: int) -> float:
    """One run of rows x pitch elements by count: a count that fills no repeat pays the counter-mode tail (PTO)."""
    count = work.rows * (work.pitch or work.cols) if work.rows > 1 else work.cols
    tail = chip.vector.counter_tail if count % lanes and count > lanes else 0.0
    repeats = -(-count // lanes)
    return max(cost.floor, (cost.slope if work.conflict else cost.free) * repeats) + tail


def _row_reduce(name: str) -> Callable[[Chip, Work, bool], float]:
    """Folds of whole column chunks over all rows, then one whole-reduce a row (7 cycles a repeat, ASC).

    Each fold needs the one before it: a PipeBarrier<PIPE_V> between, which lets it pass through.
    """

    def rule(chip: Chip, work: Work, cold: bool) -> float:
        if work.form == "blocks":
            return _block_reduce(chip, name, work, cold, block_steps(work.cols, work.rows))
        lanes = chip.vector.lanes(work.dtype)
        steps = -(-work.cols // lanes) - 1
        fold = _cost(chip, name, work.dtype.bytes)
        last = _cost(chip, "whole_sum" if name == "sum" else "whole_max", work.dtype.bytes)
        total = _chunks(chip, fold, steps, work.rows, False) + steps * fold.fixed
        return total + repeat_cycles(chip, last, work.rows, False) + (last.fixed if cold else 0.0)

    return rule


def _block_reduce(chip: Chip, name: str, work: Work, cold: bool, steps: Sequence[tuple[str, int]]) -> float:
    """Steps of `block_steps`, each behind the one before it: 64 floats a cycle by blocks (ASC), folds as in `_row_reduce`."""
    kind = "sum" if name == "sum" else "max"
    fold, blocks, whole = (_cost(chip, op, work.dtype.bytes) for op in (name, f"block{kind}", f"whole_{kind}"))
    total, cols = 0.0, work.cols
    for step, left in steps:
        if step == "block":
            total += repeat_cycles(chip, blocks, -(-work.rows * left // BLOCK_ELEMENTS), False) + blocks.fixed
        elif step == "whole":
            total += repeat_cycles(chip, whole, work.rows, False) + whole.fixed
        else:
            folds = -(-cols // left) - 1 + (cols < 2 * left)  # what begins with less than two chunks begins with a copy
            total += _chunks(chip, fold, folds, work.rows, False) + folds * fold.fixed
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
        if work.form == "halves":
            return _by_halves(chip, _cost(chip, name, work.dtype.bytes), work, cold)
        repeats = -(-work.cols // chip.vector.lanes(work.dtype))
        fold = _cost(chip, name, work.dtype.bytes)
        first = repeat_cycles(chip, _cost(chip, "copy", work.dtype.bytes), repeats, False)
        each = repeat_cycles(chip, fold, repeats, work.conflict) + fold.fixed
        return first + (work.rows - 1) * each + (fold.fixed if cold else 0.0)

    return rule


def _by_halves(chip: Chip, fold: VectorCost, work: Work, cold: bool) -> float:
    """Each step behind the one before it; the halves of the rows may lie in one bank group."""
    total, lanes = 0.0, chip.vector.lanes(work.dtype)
    for rows, odd in halves(work.rows):
        total += repeat_cycles(chip, fold, -(-rows * work.cols // lanes), True) + fold.fixed
        total += repeat_cycles(chip, fold, -(-work.cols // lanes), True) + fold.fixed if odd else 0.0
    return total - (0.0 if cold else fold.fixed)


def _choice(chip: Chip, work: Work, cold: bool) -> float:
    """A comparison, and behind it the selection by its bits: over all rounds, or for each row and chunk of 256 bytes."""
    wide = max(work.dtype.bytes, work.src_dtype.bytes)
    compare, select = (_cost(chip, name, wide) for name in ("compare", "select"))
    lanes = chip.vector.repeat_bytes // wide
    if work.form == "flat":
        total = sum(_flat(chip, cost, work, lanes) for cost in (compare, select)) + compare.fixed
    else:
        total = work.rows * -(-work.cols // lanes) * (compare.floor + compare.fixed + select.floor)
    return total + (select.fixed if cold else 0.0)


def _ramp(chip: Chip, work: Work, cold: bool) -> float:
    """The first row as an index, a product and a sum, then one sum for each further row."""
    index, times, plus = (_cost(chip, name, work.dtype.bytes) for name in ("other", "muls", "adds"))
    repeats = -(-work.cols // chip.vector.lanes(work.dtype))
    first = sum(repeat_cycles(chip, cost, repeats, False) + cost.fixed for cost in (index, times, plus))
    return first + (work.rows - 1) * repeat_cycles(chip, plus, repeats, False) + (plus.fixed if cold else 0.0)


def _brcb(chip: Chip, work: Work, cold: bool) -> float:
    """Each repeat turns 8 elements into 8 blocks of 32 bytes (ASC, Brcb)."""
    cost, times = _cost(chip, "brcb", work.dtype.bytes), 2 if work.form == "apart" else 1
    return times * repeat_cycles(chip, cost, -(-max(work.rows, 1) // 8), False) + (cost.fixed if cold else 0.0)


def _sort(chip: Chip, work: Work, cold: bool) -> float:
    """Groups of 32, then merges of four lists each, over pairs of twice as many elements, each behind the one before it."""
    sort, merge = (_cost(chip, name, work.dtype.bytes) for name in ("sort", "mrgsort"))
    lanes = chip.vector.lanes(work.dtype)
    total, length = repeat_cycles(chip, sort, -(-work.cols // lanes), False) + sort.fixed, SORTED
    while length < work.cols:
        total, length = total + repeat_cycles(chip, merge, -(-2 * work.cols // lanes), False) + merge.fixed, 4 * length
    return total - (0.0 if cold else sort.fixed)


def _swap(chip: Chip, work: Work, cold: bool) -> float:
    """Two shifts of numbers of two elements, and behind them their bits in one."""
    shift, both = _cost(chip, "shls", F32.bytes), _cost(chip, "or", work.dtype.bytes)
    repeats = -(-work.cols // chip.vector.lanes(work.dtype))
    total = 2 * repeat_cycles(chip, shift, repeats, False) + shift.fixed + repeat_cycles(chip, both, repeats, work.conflict)
    return total + (both.fixed if cold else 0.0)


VECTOR_RULES: dict[str, Callable[[Chip, Work, bool], float]] = {
    "vbrcb": _brcb,
    **{f"v{kind}_{name}": _choice for kind in ("choose", "chooses", "mask") for name in COMPARE},
    "vramp": _ramp,
    "vsort": _sort,
    "vswap_pairs": _swap,
    **{f"vrow{name}": _row_reduce(name) for name in ("max", "min", "sum")},
    "vrowdot": _row_dot,
    **{f"vcol{name}": _col_reduce(name) for name in ("max", "min", "sum")},
}
