"""A planned kernel and what it is made of: buffers, instructions, flags, loops. Its text, its parser, and what checks a text."""

from tile_eg.ir.program.buffers import Buffer
from tile_eg.ir.program.instructions import (
    BINARY,
    BY_BLOCKS,
    BY_ROWS,
    COMPARE,
    MULTIPLY_ADD,
    OVERWRITES,
    REDUCE,
    SCALAR,
    SPREAD,
    UNARY,
    VECTOR,
    CrossSet,
    CrossWait,
    Formula,
    Gm,
    Instr,
    Let,
    Loop,
    Node,
    Operand,
    PipeBarrier,
    Print,
    Scalar,
    SetFlag,
    SyncAll,
    Tasks,
    Tile,
    WaitFlag,
    When,
    While,
    walk,
)
from tile_eg.ir.program.program import Program
from tile_eg.ops.physical import AIC, AIV, PIPES

__all__ = [
    "AIC", "AIV", "BINARY", "BY_BLOCKS", "BY_ROWS", "COMPARE", "MULTIPLY_ADD", "OVERWRITES", "PIPES", "REDUCE", "SCALAR",
    "SPREAD", "UNARY", "VECTOR", "Buffer", "CrossSet", "CrossWait", "Formula", "Gm", "Instr", "Let", "Loop", "Node", "Operand",
    "PipeBarrier", "Print", "Program", "Scalar", "SetFlag", "SyncAll", "Tasks", "Tile", "WaitFlag", "When", "While", "walk",
]  # fmt: skip
