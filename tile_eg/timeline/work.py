"""One instruction by its sizes: what the tables of a chip are asked about."""

from __future__ import annotations

from tile_eg.ir.program import AIV, PIPES
from tile_eg.ops.records import record
from tile_eg.ops.types import F32, DType

ANYWHERE = "anywhere"
RUNS = "runs"
HALF_OF_ROUNDS = 0.5
"""In which an operand that is a block a row, or a chunk a row, lies in one group with whole rows, wherever both begin."""
HALVES = ("halves", "folded")
"""The forms of a reduction over rows by halves: whole rows, or each row under a mask of its columns."""


@record(guarded=False)
class Work:
    """One instruction by its sizes. `op` is a name of `ir.program.Instr`.

    `rows` x `cols` (x `depth`) are the elements processed; `dtype` is the destination's and `src_dtype` the main source's.
    `form` and `pitch` (elements between rows in UB) are those of vector instructions; moves of rows that lie anywhere have the
    form `ANYWHERE`, an instruction for each row, and those to L1 of what lies there as it does in GM the form `RUNS`.
    `stride_bytes` is the row pitch in GM or in the workspace (0: rows follow each other), `align_bytes` what the first row is a
    multiple of (0: of all), `other` the far end of a move. `cores` share the memory system (a mean where some have less to do);
    `miss` is the share of a load's bytes that comes from HBM and not from L2, `drawing` how many cores read from HBM at a time
    (0: all of them); `sharing` of the cores read the same bytes at the same time. `conflict` is the share of a vector
    instruction's rounds in which its sources lie in one group of UB's banks, or may, `in_the_way` that in which its results lie
    in banks that a source is read from. `depth` of a tile that is put into another one are the elements of that one, where they
    are copied.
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
    conflict: float = 1.0
    in_the_way: float = 0.0
    miss: float = 0.0
    drawing: float = 0.0
    sharing: float = 1.0

    @property
    def pipe(self) -> str:
        """Core and pipe, e.g. "AIC.MTE2": both cores have an MTE2 and an MTE3."""
        core, pipe = PIPES.get(self.op, (AIV, "V"))
        return f"{core}.{pipe}"
