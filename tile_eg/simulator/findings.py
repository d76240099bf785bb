"""What a simulated run found: errors of the kernel, and what it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from tile_eg.ops.records import record

if TYPE_CHECKING:
    import numpy as np

MOST_ROWS = 1_500_000
"""Of a trace, which ends there."""


class SimulatorError(Exception):
    """The run itself failed: the text does not compile, the process crashed, or it ran out of time or memory."""


class LimitError(SimulatorError):
    """The run needs more time than it was given: no fault of the text's, as far as is known."""

    help = "give it longer: --seconds NUMBER on the command line, `seconds=` in Python; or run a smaller size"


@record
class Finding:
    """One thing that is wrong with a kernel, at a line of its Ascend C.

    `kind` is one of race, block_race, uninitialised, deadlock, double_set, leftover_flag, flag_id, cross_flag, out_of_bounds,
    misaligned, capacity, field, overlap, overwritten, cache, wrong_memory, wrong_core, kernel_type, queue, assert, launch,
    unwritten, unsupported.
    `other_line` is the other instruction of a race or of a doubled flag (0: none). `file` and `other_file` are the files of the
    lines, as they are included; empty for the kernel's own.
    """

    kind: str
    message: str
    line: int
    other_line: int = 0
    core: str = ""
    pipe: str = ""
    block: int = 0
    file: str = ""
    other_file: str = ""

    def __str__(self) -> str:
        where = (f" of {self.file}" if self.file else "") + "".join(
            f", {part}" for part in (self.core, f"block {self.block}") if part
        )
        return f"line {self.line}{where}: {self.kind}: {self.message}"


@record
class TraceRow:
    """One instruction or flag, in the order of issue: block, core, pipe, name, line, bytes moved.

    `path` is what the bytes count for ("GM->UB", "macs", "vector"); `tensor` and `offset` (in bytes) are where it touches GM.
    `sizes` of a copy: rows, bytes of a row, bytes between rows in GM (of a Fixpipe to UB: how many vector cores get a part),
    bytes of an element; of Mmad: m, n, k, bytes of an element; of a vector instruction: repeats in sixteenths, bytes of its
    widest element, sixteenths of its rounds in which sources share a bank group and, 256 times, of those in which its
    destination is in the way of a source, and 65536 times the blocks of 32 bytes between those that one round writes (modulo
    16), 1 if it goes by a count; of a launch (path "launch"): kernel type, blocks; of a flag between cores: its mode.
    `touched` are the on-chip bytes that it reads and writes: level, first byte, end, 1 if written. A copy that is `past_l2`
    leaves L2 out (SetL2CacheHint). `unit_flag` is that of a Mmad or a Fixpipe: 0 without, 2 keeps its blocks, 3 hands them over.
    A copy that `makes_nz` does so of row-major data on its way.
    """

    block: int
    core: str
    pipe: str
    name: str
    line: int
    bytes: int
    path: str = ""
    tensor: str = ""
    offset: int = 0
    sizes: Sequence[int] = (0, 0, 0, 0)
    touched: Sequence[tuple[str, int, int, int]] = ()
    past_l2: bool = False
    unit_flag: int = 0
    makes_nz: bool = False


@record
class Counts:
    """How often each instruction ran, and the bytes moved along each path (`macs`: multiply-adds of the cube)."""

    instructions: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)


@record
class Delays:
    """What a run with an `order` did: how many instructions took effect later than they were issued, and which write each access
    met, as a number. Two runs with the same fingerprint differ in the order of independent instructions only. `mutated` counts
    how often the mutations of a run applied.
    """

    instructions: int = 0
    fingerprint: str = ""
    mutated: int = 0


@record
class Simulation:
    """The outputs in the order in which they were asked for, the findings (at most 20), the counts, and the trace if wanted.

    `printed` is what the kernel, or a file with a main, printed; `returned` what that main returned. `files` are the texts that
    the kernel's file includes, `paths` where they lie, both by name. `unwritten` has a mask for each output of which elements
    were still unwritten when all blocks had ended, None for the others. `unconfined` says why its process was not, or not
    wholly, confined.
    """

    outputs: Sequence[np.ndarray]
    findings: Sequence[Finding]
    counts: Counts
    trace: Sequence[TraceRow] = ()
    delays: Delays = Delays()
    printed: str = ""
    returned: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    unwritten: Sequence[np.ndarray | None] = ()
    unconfined: str = ""

    @property
    def ok(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "no findings"
