"""What one instruction costs: busy cycles on its pipe and bytes moved, from the chip's tables.

Pure and quick: search models call `cycles` for every candidate, the timeline for every instruction of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd

from tile_eg.chips.model import Chip, Path, VectorCost
from tile_eg.errors import TileError
from tile_eg.ir.machine import BLOCK_ELEMENTS, DOT_PARTS, STRIP, block_steps, halves
from tile_eg.ir.program import AIV, COMPARE, PIPES
from tile_eg.ops.repeats import REPEATED
from tile_eg.ops.types import F32, DType
from tile_eg.ops.whole_tiles import SORTED

_VECTOR_NAME = {
    "sub": "add", "min": "max", "mins": "maxs", "sum": "add", "strips": "copy", "bytes": "copy", "nibbles": "cast",
    "pack": "compare", "bitselect": "select", "every": "reducev2",
    "reshape": "copy", "piece": "copy", "put": "copy", "sort32": "sort", "merge": "mrgsort",
    **{r.instruction[1:]: r.priced_as for r in REPEATED.values()},
}  # fmt: skip


ANYWHERE = "anywhere"


@dataclass(frozen=True)
class Work:
    """One instruction by its sizes. `op` is a name of `ir.program.Instr`.

    `rows` x `cols` (x `depth`) are the elements processed; `dtype` is the destination's and `src_dtype` the main source's.
    `form` and `pitch` (elements between rows in UB) are those of vector instructions; moves of rows that lie anywhere
    have the form `ANYWHERE`, an instruction for each row. `stride_bytes` is the row pitch in GM or in
    the workspace (0: rows follow each other), `align_bytes` what the first row is a multiple of (0: of all), `other` the far end
    of a move. `cores` share the memory system (a mean where some have less to do); `miss` is the share of a load's bytes that
    comes from HBM and not from L2; `sharing` of the cores read the same bytes at the same time. `conflict` says that the sources
    of a vector instruction may lie in one UB bank group.
    """

    op: str
    rows: int
    cols: int
    depth: int = 1
    dtype: DType = F32
    src_dtype: DType = F32
    form: str = "flat"
    pitch: int = 0
    stride_bytes: int = 0
    align_bytes: int = 0
    other: str = "GM"
    cores: float = 1
    conflict: bool = True
    miss: float = 0.0
    sharing: float = 1.0

    @property
    def pipe(self) -> str:
        """Core and pipe, e.g. "AIC.MTE2": both cores have an MTE2 and an MTE3."""
        core, pipe = PIPES.get(self.op, (AIV, "V"))
        return f"{core}.{pipe}"


def cycles(chip: Chip, work: Work, *, cold: bool = False) -> float:
    """Busy cycles of `work` on its pipe, back to back with others; `cold` adds the start-up of an isolated instruction.

    An empty extent costs nothing: the instruction is not issued.
    """
    if work.rows <= 0 or work.cols <= 0 or work.depth <= 0:
        return 0.0
    if work.form == ANYWHERE:
        one = replace(work, rows=1, form="flat")
        warm = cycles(chip, one)
        return work.rows * warm + (cycles(chip, one, cold=True) - warm if cold else 0.0)
    rule = _RULES.get(work.op)
    return rule(chip, work, cold) if rule else _vector(chip, work, cold)


def moved_bytes(work: Work) -> int:
    """Bytes that a move carries, without padding and burst rounding; 0 for a computation."""
    if work.op == "l1_to_l0a":
        return work.rows * work.depth * work.dtype.bytes
    if work.op == "l1_to_l0b":
        return work.cols * work.depth * work.dtype.bytes
    if work.op in ("gm_to_l1", "gm_to_ub", "ub_to_gm", "fixpipe", "ub_to_l1", "l1_to_ub"):
        return work.rows * work.cols * work.dtype.bytes
    return 0


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


# ---- moves ------------------------------------------------------------------------------------------------------------------


def burst_bytes(chip: Chip, row_bytes: int) -> int:
    """Bytes that the memory system moves for a row: its tail is rounded up to a burst of 128, 256 or 512 (ASC)."""
    bursts = chip.rows.bursts
    whole, tail = divmod(row_bytes, bursts[-1])
    return whole * bursts[-1] + (next(b for b in bursts if b >= tail) if tail else 0)


def line_bytes(chip: Chip, row_bytes: int, align_bytes: int) -> int:
    """Bytes that HBM moves for a row whose start is a multiple of `align_bytes` and no more.

    Rows shorter than a line of 512 bytes are rounded up to bursts. Longer ones that start anywhere in a line touch parts of two
    more, and whole lines are moved (ASC data_copy: 1.97 times for 512-byte rows, 1.28 for 2048-byte rows).
    """
    line = chip.rows.line
    if row_bytes < line or align_bytes % line == 0:
        return burst_bytes(chip, row_bytes)
    step = gcd(line, align_bytes)
    return _up(row_bytes, step) + line - step


def gm_bytes(chip: Chip, work: Work, align_bytes: int = 0) -> int:
    """Bytes that a GM copy moves, its rows rounded up one by one: to bursts, or to lines where only `align_bytes` is sure."""
    row, rows = work.cols * work.dtype.bytes, line_rows(work)
    return rows * line_bytes(chip, row, align_bytes) if rows else burst_bytes(chip, work.rows * row)


def line_rows(work: Work) -> int:
    """Rows that are moved one by one; 0 where all of it is one run of bytes."""
    row = work.cols * work.dtype.bytes
    run = work.rows == 1 or (work.stride_bytes in (0, row) and work.op != "gm_to_l1")
    return 0 if run else work.rows


def _gm(chip: Chip, name: str, work: Work, cold: bool) -> float:
    align = gcd(work.stride_bytes or work.cols * work.dtype.bytes, work.align_bytes)
    hit = (1 - work.miss) * gm_bytes(chip, work)
    missed = work.miss * gm_bytes(chip, work, align) if work.miss else 0.0
    hbm, same = chip.hbm_share(work.cores), _shared_lines(chip, work)
    return chip.paths[name].cycles(hit, work.cores, cold, rows=line_rows(work), missed=missed, hbm=hbm, least=same)


def _shared_lines(chip: Chip, work: Work) -> float:
    """Cycles until every core that reads the same lines at the same time has got them, one after the other."""
    if work.sharing <= 1:
        return 0.0
    row, rows = work.cols * work.dtype.bytes, line_rows(work)
    lines = rows * -(-row // chip.rows.line) if rows else -(-work.rows * row // chip.rows.line)
    return lines * work.sharing * chip.rows.same_line


def _gm_to_l1(chip: Chip, work: Work, cold: bool) -> float:
    """ND2NZ copy: 40 + for each row 2 + bytes / 127, at least 3.4 (MSKPP, fit on GEMM rows); a single row needs no NZ.

    Strips are runs of bytes that lie in L1 as they do in GM.
    """
    if work.form == "strips":
        return _gm(chip, "gm_to_l1", replace(work, rows=-(-work.cols // STRIP), cols=work.rows * STRIP), cold)
    return _gm(chip, "gm_to_l1" if work.rows == 1 else "gm_to_l1_nd2nz", work, cold)


def _gm_to_ub(chip: Chip, work: Work, cold: bool) -> float:
    """192 + bytes / 126 isolated (MSKPP), issue 13 (fit)."""
    return _gm(chip, "gm_to_ub", work, cold)


def _ub_to_gm(chip: Chip, work: Work, cold: bool) -> float:
    """121 + bytes / 66 isolated (MSKPP), issue 12 (GE-ATT)."""
    return _gm(chip, "ub_to_gm", work, cold)


def _fixpipe(chip: Chip, work: Work, cold: bool) -> float:
    """To GM at least 82 isolated, bytes / 121 and slower when all cores write (MSKPP, fit); to L1 64 elements per cycle (ASC).

    On 950 also to UB: 128 bytes per cycle, or 256 into both vector cores at once (`form` "dual", ASC).
    """
    inner = {"L1": "l0c_to_l1", "UB": "l0c_to_ub_dual" if work.form == "dual" else "l0c_to_ub"}.get(work.other)
    if inner:
        return _path(chip, inner).cycles(_up(work.rows, 16) * _up(work.cols, 16) * work.dtype.bytes, 1, cold)
    return _gm(chip, "l0c_to_gm", work, cold)


def _direct(name: str) -> Callable[[Chip, Work, bool], float]:
    """Between UB and L1 on 950: 128 bytes per cycle (INI)."""
    return lambda chip, work, cold: _path(chip, name).cycles(work.rows * work.cols * work.dtype.bytes, 1, cold)


def _path(chip: Chip, name: str) -> Path:
    if name not in chip.paths:
        source, target = name.removesuffix("_dual").upper().split("_TO_")
        raise TileError(f"{chip.name} has no path from {source} to {target}")
    return chip.paths[name]


def _l1_to_l0(path: str) -> Callable[[Chip, Work, bool], float]:
    """28 + bytes / 256 (L0A) or / 128 (L0B), every dimension padded to its fractal (ASC, PTO)."""

    def rule(chip: Chip, work: Work, cold: bool) -> float:
        wide = work.rows if path == "l1_to_l0a" else work.cols
        size = _up(wide, 16) * _up(work.depth, max(16, 32 // work.dtype.bytes)) * work.dtype.bytes
        return chip.paths[path].cycles(size, 1, cold)

    return rule


def mmad_fractals(work: Work) -> int:
    """Fractals of 16 x 16 x 32 bytes: every dimension is padded (ASC, theoretical cube performance)."""
    return -(-work.rows // 16) * -(-work.cols // 16) * -(-work.depth // (32 // work.src_dtype.bytes))


def _mmad(chip: Chip, work: Work, cold: bool) -> float:
    """2.4 + 0.992 cycles a half fractal back to back, 23.1 isolated (MSKPP); a float fractal takes two (ASC)."""
    cube = chip.cube
    depth = 32 // work.src_dtype.bytes
    each = cube.fractal * (16 * 16 * depth) / cube.macs[work.src_dtype.name]
    return (cube.startup if cold else cube.issue) + each * mmad_fractals(work)


# ---- vector -----------------------------------------------------------------------------------------------------------------


def _cost(chip: Chip, name: str, element_bytes: int) -> VectorCost:
    return chip.vector.ops[_VECTOR_NAME.get(name, name), 2 if element_bytes <= 2 else 4]


def repeat_cycles(chip: Chip, cost: VectorCost, repeats: int, conflict: bool) -> float:
    """Cycles of enough instructions for `repeats`: slope each, at least the floor, at most 255 repeats in one (MSKPP)."""
    slope = cost.slope if conflict else cost.free
    full, rest = divmod(repeats, chip.limits.repeat)
    total = full * max(cost.floor, slope * chip.limits.repeat)
    return total + (max(cost.floor, slope * rest) if rest else 0.0)


def _vector(chip: Chip, work: Work, cold: bool) -> float:
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
    elif suffix or (work.form == "rows" and work.rows > 1):
        total = calls * repeat_cycles(chip, cost, repeats, work.conflict)
    else:
        total = _flat(chip, cost, work, lanes)
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


def _stored_by_scalar(chip: Chip, work: Work, cold: bool) -> float:
    """The scalar unit writes one element after the other (`scalar_access` of the chip's table)."""
    return work.rows * work.cols * chip.sync.scalar_access


_RULES: dict[str, Callable[[Chip, Work, bool], float]] = {
    "gm_to_l1": _gm_to_l1,
    "l1_zero": _gm_to_l1,  # assumed: as a load of as much, there is no published figure
    "store_element": _stored_by_scalar,
    "gm_to_ub": _gm_to_ub,
    "ub_to_gm": _ub_to_gm,
    "fixpipe": _fixpipe,
    "l1_to_l0a": _l1_to_l0("l1_to_l0a"),
    "l1_to_l0b": _l1_to_l0("l1_to_l0b"),
    "ub_to_l1": _direct("ub_to_l1"),
    "l1_to_ub": _direct("l1_to_ub"),
    "mmad": _mmad,
    "vbrcb": _brcb,
    **{f"v{kind}_{name}": _choice for kind in ("choose", "chooses", "mask") for name in COMPARE},
    "vramp": _ramp,
    "vsort": _sort,
    **{f"vrow{name}": _row_reduce(name) for name in ("max", "min", "sum")},
    "vrowdot": _row_dot,
    **{f"vcol{name}": _col_reduce(name) for name in ("max", "min", "sum")},
}
