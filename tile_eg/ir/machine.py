"""The machine contract as data (docs/machine.md says the same in words): architecture 2201, Atlas A2 and A3.

The simulator, the emitter, legality and the timeline all read this file, so that none has a machine of its own. Vendor pages
are named in docs/machine.md, clause by clause; the numbers of a single chip are in `tile_eg/chips`.
"""

from __future__ import annotations

from math import gcd

from tile_eg.ops.physical import AIC, AIV
from tile_eg.ops.types import DType, Level

# ---- pipes (clause 1) -------------------------------------------------------------------------------------------------------

SCALAR_PIPE = "S"
CORE_PIPES: dict[str, tuple[str, ...]] = {AIC: ("MTE2", "MTE1", "M", "FIX", "MTE3"), AIV: ("MTE2", "V", "MTE3")}
CORE_LEVELS: dict[str, tuple[Level, ...]] = {AIC: (Level.L1, Level.L0A, Level.L0B, Level.L0C), AIV: (Level.UB,)}
QUEUE_DEPTH = 32

# ---- flags inside a core (clauses 6-8) --------------------------------------------------------------------------------------

EVENTS: dict[str, tuple[str, ...]] = {
    AIC: (
        "M_MTE1", "M_MTE2", "M_FIX", "MTE1_M", "MTE1_MTE2", "MTE1_MTE3", "MTE1_FIX", "MTE2_M", "MTE2_MTE1", "MTE2_MTE3",
        "MTE2_FIX", "MTE3_MTE1", "MTE3_MTE2", "FIX_M", "FIX_MTE1", "FIX_MTE2", "FIX_MTE3",
    ),
    AIV: (
        "S_V", "S_MTE2", "S_MTE3", "V_S", "V_MTE2", "V_MTE3", "MTE2_S", "MTE2_V", "MTE2_MTE3", "MTE3_S", "MTE3_V", "MTE3_MTE2",
    ),
}  # fmt: skip
EVENT_IDS = range(8)
USABLE_EVENT_IDS = range(6)


def valid_event(core: str, src: str, dst: str) -> bool:
    """Whether `core` has a flag from pipe `src` to pipe `dst`."""
    return f"{src}_{dst}" in EVENTS[core]


# ---- flags between cores (clauses 9-13) -------------------------------------------------------------------------------------

ALL_CROSS_IDS = range(16)
CROSS_IDS = range(11)
SYNC_ALL_IDS = range(11, 15)
MAX_CROSS_COUNT = 15
CROSS_SET_PIPES: dict[str, tuple[str, ...]] = {AIC: ("M", "MTE1", "MTE2", "MTE3", "FIX"), AIV: ("V", "MTE2", "MTE3")}
CROSS_WAIT_STOPS_ISSUE = True
SYNC_ALL_HANDOVERS = 3
"""Handovers of a SyncAll of a mixed kernel, one after the other: vector to cube cores, among the cube cores, and back."""

# ---- barriers (clauses 3-5) -------------------------------------------------------------------------------------------------

MMAD_GUARDED_FRACTALS = 10
HARDWARE_GUARDED_PIPES = (SCALAR_PIPE,)


def writes_in_the_way(results: int, source: int) -> bool:
    """Whether 256 bytes that are written from one address of UB on lie in banks that 256 bytes are read from (clause 30).

    Where the first blocks of both lie in one bank, the hardware writes a round later, to the banks that nobody reads.
    """
    return results // BANK_BYTES == source // BANK_BYTES and (results - source) % BANK_ROW // BLOCK_BYTES % 8 != 0


def write_cycles(apart: int, row_bytes: int) -> int:
    """Cycles in which the 8 blocks of a repeat are written that start so many blocks of 32 bytes apart.

    A group of banks holds 32 bytes of every `row_bytes`, and takes one block a cycle (clause 30).
    """
    groups = row_bytes // BLOCK_BYTES
    return -(-8 // min(8, groups // gcd(apart, groups)))


def needs_barrier(pipe: str, m: int = 0, n: int = 0) -> bool:
    """Whether an instruction of `pipe` needs PipeBarrier<pipe> behind an earlier one of that pipe with which it shares memory.

    To share is that the later one reads or overwrites what the earlier one writes, or overwrites what it reads. `m` and `n`
    are those of the two Mmads (the smaller of each): large ones that accumulate in one L0C tile are guarded by the hardware.
    """
    if pipe == "M":
        return (m // FRACTAL) * (n // FRACTAL) < MMAD_GUARDED_FRACTALS
    return pipe not in HARDWARE_GUARDED_PIPES


# ---- kernel types (clauses 13 and 22) ---------------------------------------------------------------------------------------

_CORES: dict[str, tuple[int, int]] = {
    "AIC_ONLY": (1, 0), "AIV_ONLY": (0, 1), "MIX_AIC_1_0": (1, 0), "MIX_AIV_1_0": (0, 1), "MIX_AIC_1_1": (1, 1),
    "MIX_AIC_1_2": (1, 2),
}  # fmt: skip
KERNEL_TYPES = tuple(_CORES)


def cores(kernel_type: str) -> tuple[int, int]:
    """Cube and vector cores of one launched block."""
    return _CORES[kernel_type]


MAX_BLOCKS = 65535
"""Blocks of a launch (clause 24)."""


def has_cross_flags(kernel_type: str) -> bool:
    """Whether flags between cores work: the hardware's scheduler of them is off in AIC_ONLY and AIV_ONLY kernels."""
    return kernel_type.startswith("MIX")


# ---- addresses and fields (clauses 14-19) -----------------------------------------------------------------------------------

ALIGNMENT: dict[Level, int] = {Level.L1: 32, Level.L0A: 512, Level.L0B: 512, Level.L0C: 1024, Level.UB: 32}
BLOCK_BYTES = 32
BANK_BYTES, BANK_ROW = 65536, 512  # of UB on 2201: one of the 16 blocks of 32 bytes in every 512, of one of three 64 KB
REPEAT_BYTES = 256
LINE_BYTES = 512  # of GM: what begins at a multiple of it is moved fastest (clause 15)
MAX_REPEAT = 255
FRACTAL, FRACTAL_BYTES = 16, 512  # rows, and bytes
FIELD_LIMITS: dict[str, tuple[int, int]] = {
    "MmadParams.m": (0, 4095),
    "MmadParams.n": (0, 4095),
    "MmadParams.k": (0, 4095),
    "Nd2NzParams.ndNum": (0, 4095),
    "Nd2NzParams.nValue": (0, 16384),
    "Nd2NzParams.dValue": (0, 65535),
    "Nd2NzParams.srcNdMatrixStride": (0, 65535),
    "Nd2NzParams.srcDValue": (1, 65535),
    "Nd2NzParams.dstNzC0Stride": (1, 16384),
    "Nd2NzParams.dstNzNStride": (1, 16384),
    "Nd2NzParams.dstNzMatrixStride": (0, 16384),
    "Dn2NzParams.nValue": (0, 16384),
    "Dn2NzParams.dValue": (0, 2**21 - 1),
    "LoadData2DMxParams.xStep": (0, 255),
    "LoadData2DMxParams.srcStride": (0, 65535),
    "LoadData2DParams.startIndex": (0, 65535),
    "LoadData2DParams.repeatTimes": (0, 255),
    "LoadData2DParams.srcStride": (0, 65535),
    "LoadData2DParams.dstGap": (0, 65535),
    "FixpipeParamsV220.nSize": (0, 4095),
    "FixpipeParamsV220.mSize": (0, 65535),
    "FixpipeParamsV220.srcStride": (0, 65535),
    "FixpipeParamsV220.dstStride": (1, 2**32 - 1),
    "FixpipeParamsV220.ndNum": (0, 65535),
    "FixpipeParamsV220.srcNdStride": (0, 512),
    "FixpipeParamsV220.dstNdStride": (0, 65535),
    "DataCopyParams.blockCount": (0, 4095),
    "DataCopyParams.blockLen": (0, 65535),
    "DataCopyParams.srcGap": (0, 65535),
    "DataCopyParams.dstGap": (0, 65535),
    "DataCopyExtParams.blockCount": (0, 4095),
    "DataCopyExtParams.blockLen": (0, 2097151),
    "DataCopyExtParams.srcStride": (0, 2**32 - 1),
    "DataCopyExtParams.dstStride": (0, 2**32 - 1),
    "repeatTime": (0, 255),
    "blkStride": (0, 255),
    "repStride": (0, 255),
}
FIXPIPE_ND_ROWS = 8192


def fits(field: str, value: int) -> bool:
    """Whether `value` may stand in an instruction's field, e.g. fits("Nd2NzParams.nValue", 20000) is False."""
    low, high = FIELD_LIMITS[field]
    return low <= value <= high


def most_of(field: str) -> int:
    """The largest value of an instruction's field."""
    return FIELD_LIMITS[field][1]


# ---- fractals ---------------------------------------------------------------------------------------------------------------

STRIP = 16
"""Columns of a strip of 16-bit elements: 32 bytes, the width of a fractal."""


def scale_bytes(rows: int, cols: int) -> int:
    """Bytes in L1 of the scales of a product's operand: fractals of 16 rows and two scales, row by row."""
    return 32 * -(-rows // 16) * -(-cols // 2)


def strip(dtype: DType) -> int:
    """Columns of a strip."""
    return 2 * STRIP // dtype.bytes


# ---- reductions over rows by blocks ------------------------------------------------------------------------------------------

FEW_ROWS = 5  # up to which a whole reduction of each row takes less than two more steps by blocks of all
DOT_PARTS = 2  # in which the rows of a sum of products go through the room for its products
BLOCK_ELEMENTS, REPEAT_ELEMENTS = 8, 64  # of f32: in a block of 32 bytes, in a repeat of 256


def halves(rows: int) -> list[tuple[int, bool]]:
    """The steps of a reduction over rows by halves: how many rows each leaves, and whether one is over, which joins the first."""
    out = []
    while rows > 1:
        rows, over = divmod(rows, 2)
        out.append((rows, bool(over)))
    return out


def block_steps(cols: int, rows: int | None = None) -> tuple[tuple[str, int], ...]:
    """The steps that reduce rows of `cols` elements (f32, up to 8 or a multiple of 64), with the elements that each leaves.

    "block" takes eight neighbours to one; "fold" merges the chunks of 64 where eighths would no longer fill a repeat;
    "whole", where there are few rows, takes what is left of a row to one. `rows` of None are many.
    """
    if cols <= BLOCK_ELEMENTS:
        return (("block", 1),)
    if rows is not None and rows <= FEW_ROWS:
        return _few_steps(cols)
    steps: list[tuple[str, int]] = []
    while cols >= BLOCK_ELEMENTS * REPEAT_ELEMENTS and cols // BLOCK_ELEMENTS % BLOCK_ELEMENTS == 0:
        cols //= BLOCK_ELEMENTS
        steps.append(("block", cols))
    if cols > REPEAT_ELEMENTS:
        steps.append(("fold", REPEAT_ELEMENTS))
    return (*steps, ("block", BLOCK_ELEMENTS), ("block", 1))


def _few_steps(cols: int) -> tuple[tuple[str, int], ...]:
    """By blocks as long as rows then start at blocks, what is more than a chunk by a fold; then each row as a whole."""
    steps, left = [], cols
    while left > 2 * REPEAT_ELEMENTS and left // BLOCK_ELEMENTS % BLOCK_ELEMENTS == 0:
        left //= BLOCK_ELEMENTS
        steps.append(("block", left))
    if left > REPEAT_ELEMENTS:
        steps.append(("fold", REPEAT_ELEMENTS))
    return (*steps, ("whole", 1))


def dot_elements(rows: int, cols: int) -> int:
    """Room of a sum of products over rows: the products of one part, and what the first step leaves of all rows."""
    return rows // DOT_PARTS * cols + rows * block_steps(cols)[0][1]
