"""What a copy costs: its rows, the requests that they are cut into, and what the memory system gives all cores together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd

from tile_eg.chips.model import Chip, Path
from tile_eg.errors import TileError
from tile_eg.ir.machine import BLOCK_BYTES, strip
from tile_eg.ops.types import SCALE_BLOCK, SCALED, DType, fractal_depth
from tile_eg.timeline.work import RUNS, Work

Rule = Callable[[Chip, Work, bool], float]


def moved_bytes(work: Work) -> int:
    """Bytes that a move carries, without padding and burst rounding; 0 for a computation."""
    if work.op == "l1_to_l0a":
        return _operand_bytes(work.dtype, work.rows, work.depth) + _scale_bytes(work.dtype, work.rows, work.depth)
    if work.op == "l1_to_l0b":
        return _operand_bytes(work.dtype, work.cols, work.depth) + _scale_bytes(work.dtype, work.cols, work.depth)
    if work.op in ("gm_to_l1", "gm_to_ub", "ub_to_gm", "fixpipe", "ub_to_l1", "l1_to_ub"):
        return work.rows * work.cols * work.dtype.bytes
    return 0


def _operand_bytes(dtype: DType, wide: int, depth: int) -> int:
    """Bytes of a part of a product's operand in L0A or L0B."""
    return wide * depth * dtype.bytes // dtype.together


def _scale_bytes(dtype: DType, wide: int, depth: int) -> int:
    """And of its scales in the memory beside it, where it has some."""
    return wide * -(-depth // SCALE_BLOCK) if dtype in SCALED.values() else 0


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


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
    run = work.rows == 1 or (work.stride_bytes in (0, row) and (work.op != "gm_to_l1" or work.form == RUNS))
    return 0 if run else work.rows


def requests(path: Path, row_bytes: int, align_bytes: int) -> int:
    """Requests that a row is cut into: of the largest power of two that its starts are multiples of, `path.request` at most.

    No smaller ones than a block of 32 bytes are made (ND2NZ on 2201: rows of 512 bytes off 128, 64 and 32 bytes).
    """
    step = gcd(align_bytes or path.request, path.request)
    return -(-row_bytes // max(BLOCK_BYTES, step)) if path.request else 1


def from_hbm(chip: Chip, work: Work) -> tuple[float, float]:
    """Bytes that HBM moves for a load of which L2 holds nothing, and how many a cycle it brings to all cores."""
    name, work = _load(work)
    return gm_bytes(chip, work, _align(work)), _hbm_rate(chip, chip.paths[name])


def _hbm_rate(chip: Chip, path: Path) -> float:
    return min(chip.hbm_share(1), path.hbm)


def _align(work: Work) -> int:
    """What the starts of all rows are multiples of, in bytes."""
    return gcd(work.stride_bytes or work.cols * work.dtype.bytes, work.align_bytes)


def _load(work: Work) -> tuple[str, Work]:
    """The path of a load from GM, and the load as it goes there: an ND2NZ copy of a single row needs no NZ.

    Strips are runs of bytes that lie in L1 as they do in GM.
    """
    if work.form == "strips":
        wide = strip(work.dtype)
        return "gm_to_l1", replace(work, rows=-(-work.cols // wide), cols=work.rows * wide)
    if work.op == "gm_to_ub":
        return "gm_to_ub", work
    if work.form == RUNS:
        return "gm_to_l1", work
    return "gm_to_l1" if work.rows == 1 else "gm_to_l1_nd2nz", work


def _gm(chip: Chip, name: str, work: Work, cold: bool) -> float:
    align, path, rows = _align(work), chip.paths[name], line_rows(work)
    hit = (1 - work.miss) * gm_bytes(chip, work)
    missed = work.miss * gm_bytes(chip, work, align) if work.miss else 0.0
    hbm, same = _hbm_rate(chip, path) / (work.drawing or work.cores), _same_lines(chip, path, work)
    own = _own(path, work, rows, align)
    if missed:
        own = _waited(path, own, missed / work.miss, min(1.0, work.miss * max(1.0, work.sharing)))
    return path.cycles(hit, work.cores, cold, own=own, missed=missed, hbm=hbm, least=same)


def _own(path: Path, work: Work, rows: int, align: int) -> float:
    """Cycles that the core itself needs for the rows of a copy."""
    row = work.cols * work.dtype.bytes
    each = max(path.row_least, requests(path, row, align) * path.row + row / path.peak)
    if align % BLOCK_BYTES:
        each += path.off_block * (row // BLOCK_BYTES + 1)
    return path.copy + rows * each if rows else 0.0


def _waited(path: Path, own: float, size: float, part: float) -> float:
    """The same with what the core waits for: a `part` of its rows is not in L2, and no other row makes up for their time.

    HBM brings a line once for all cores that read it at the same time, and each of them waits for it.
    """
    return own * (1 - part) + max(own * part, part * size / min(path.peak, path.miss_peak))


def _same_lines(chip: Chip, path: Path, work: Work) -> float:
    """Cycles until every core that reads the same lines at the same time has got them, one after the other."""
    if work.sharing <= 1:
        return 0.0
    row, rows = work.cols * work.dtype.bytes, line_rows(work)
    lines = rows * -(-row // chip.rows.line) if rows else -(-work.rows * row // chip.rows.line)
    return work.sharing * (lines * path.same_line + work.rows * row / path.same_rate)


def _gm_to_l1(chip: Chip, work: Work, cold: bool) -> float:
    """ND2NZ copy: 40 + for each row 2 + bytes / 127, at least 3.4 (MSKPP, fit on GEMM rows)."""
    name, load = _load(work)
    return _gm(chip, name, load, cold)


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


def _direct(name: str, cores: int) -> Callable[[Chip, Work, bool], float]:
    """Between UB and L1 on 950: 128 bytes per cycle (INI), a copy for each column of 32-byte blocks and each of the `cores`."""

    def rule(chip: Chip, work: Work, cold: bool) -> float:
        path, copies = _path(chip, name), min(cores, work.rows) * -(-work.cols * work.dtype.bytes // BLOCK_BYTES)
        return path.cycles(work.rows * work.cols * work.dtype.bytes, 1, cold) + (copies - 1) * path.issue

    return rule


def _path(chip: Chip, name: str) -> Path:
    if name not in chip.paths:
        source, target = name.removesuffix("_dual").upper().split("_TO_")
        raise TileError(f"{chip.name} has no path from {source} to {target}")
    return chip.paths[name]


def _l1_to_l0(path: str) -> Callable[[Chip, Work, bool], float]:
    """23.5 + bytes / 256 (L0A) or / 128 (L0B), every dimension padded to its fractal (ASC, fit); scales go after
    their operand (ASC)."""

    def rule(chip: Chip, work: Work, cold: bool) -> float:
        wide = work.rows if path == "l1_to_l0a" else work.cols
        sizes = work.dtype, _up(wide, 16), _up(work.depth, max(16, fractal_depth(work.dtype)))
        own, scales = chip.paths[path].cycles(_operand_bytes(*sizes), 1, cold), _scale_bytes(*sizes)
        return own + chip.paths["l1_to_l0_scales"].cycles(scales, 1, cold) if scales else own

    return rule


MOVES: dict[str, Rule] = {
    "gm_to_l1": _gm_to_l1,
    "l1_zero": _gm_to_l1,  # assumed: as a load of as much, there is no published figure
    "gm_to_ub": _gm_to_ub,
    "ub_to_gm": _ub_to_gm,
    "fixpipe": _fixpipe,
    "l1_to_l0a": _l1_to_l0("l1_to_l0a"),
    "l1_to_l0b": _l1_to_l0("l1_to_l0b"),
    "ub_to_l1": _direct("ub_to_l1", 1),
    "l1_to_ub": _direct("l1_to_ub", 2),
}
