"""A chip as typed, read-only data: memories, paths, instruction tables and limits.

Bytes, cycles and bytes per cycle of one core, unless a name says otherwise. The numbers and their sources are in the TOML files.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from tile_eg.ops.records import record
from tile_eg.ops.types import DType, Level


@record
class Memory:
    """One on-chip memory of a core. `align` is what an address must be a multiple of, in bytes."""

    level: Level
    bytes: int
    reserved: int
    framework: int
    align: int
    source: str

    @property
    def usable(self) -> int:
        """Bytes that a kernel may plan with when a TPipe exists, as in every kernel that we emit."""
        return self.bytes - self.reserved - self.framework


@record
class Path:
    """A way between two memories: cycles = startup (isolated) or issue (back to back) + the time that the bytes take.

    Where `overlaps`, an isolated copy takes max(startup, its time back to back). The bytes take what the core itself needs:
    `copy`, and `row` for each request and its bytes / `peak`, at least `row_least` for each row; or what the memories behind it
    need if that is more: all cores together draw `shared` bytes per cycle (infinite where the path is a core's own), and no more
    than `hbm` of them from HBM. A row is cut into requests of at most `request` bytes (0: it is one), and one that starts off a
    block of 32 bytes takes `off_block` more for each block. `miss_peak` is what a core gets of what is not in L2, `miss_startup`
    by how much later a copy of it begins when it is alone. A line that several cores read at the same time is given to one after
    the other: `same_line` cycles each, and what they want of it at `same_rate` bytes a cycle. `curve` holds measured (bytes of a
    transfer, bytes per cycle) pairs of isolated transfers.
    """

    name: str
    startup: float
    issue: float
    peak: float
    shared: float
    curve: tuple[tuple[int, float], ...]
    source: str
    overlaps: bool = False
    copy: float = 0.0
    row: float = 0.0
    row_least: float = 0.0
    off_block: float = 0.0
    miss_peak: float = inf
    hbm: float = inf
    miss_startup: float = 0.0
    request: int = 0
    same_line: float = 0.0
    same_rate: float = inf

    def rate(self, cores: float) -> float:
        """Bytes per cycle that one of `cores` active cores gets of what L2 holds."""
        return min(self.peak, self.shared / cores)

    def cycles(
        self,
        size: float,
        cores: float,
        cold: bool,
        *,
        own: float = 0.0,
        missed: float = 0.0,
        hbm: float = inf,
        least: float = 0.0,
    ) -> float:
        """Cycles of a copy of `size` bytes out of L2: alone (`cold`), or behind another one.

        `own` is what the core needs for its rows, `missed` are the bytes that come from HBM besides, `hbm` the bytes a cycle that
        HBM gives each core. `least` is what it takes besides the start-up at least.
        """
        served = size / self.rate(cores) + missed / min(self.peak, self.miss_peak, hbm)
        queued = self.issue + max(own, served, least)
        if not cold:
            return queued
        first = max(self.startup, queued) if self.overlaps else self.startup - self.issue + queued
        return first + (self.miss_startup * missed / (size + missed) if missed else 0.0)


@record
class Rows:
    """How the memory system cuts rows, in bytes: the bursts of short rows, and the lines of rows that start anywhere."""

    bursts: tuple[int, ...]
    line: int
    source: str

    @property
    def long(self) -> int:
        """Bytes of a row from which it is moved in whole bursts."""
        return max(self.bursts)


@record
class Cube:
    """The matrix unit: multiply-adds per cycle by operand dtype name, and cycles of one Mmad per fractal."""

    macs: Mapping[str, int]
    fractal: float
    issue: float
    startup: float
    source: str


@record
class VectorCost:
    """Cycles of a vector instruction for one element size.

    `slope` per repeat with all operands in one bank group, `free` with the sources in different ones; `fixed` is added when the
    instruction runs alone; `floor` is the least it takes back to back.
    """

    slope: float
    free: float
    fixed: float
    floor: float


@record
class Vector:
    """The vector unit. `ops` maps an operation's name and its element size in bytes (2 or 4) to its cost; `read_write` are cycles
    more for a repeat whose results lie in banks that its sources are read from."""

    repeat_bytes: int
    bank_groups_bytes: int
    barrier: float
    counter_tail: float
    read_write: float
    ops: Mapping[tuple[str, int], VectorCost]
    source: str

    def lanes(self, dtype: DType) -> int:
        """Elements of one repeat."""
        return self.repeat_bytes // dtype.bytes


@record
class Limits:
    """Counts of flags and widths of instruction fields; `nd2nz_rows` is nValue, `nd2nz_pitch` is srcDValue, in elements."""

    event_ids: int
    usable_event_ids: int
    cross_ids: int
    cross_count: int
    repeat: int
    stride_field: int
    nd2nz_rows: int
    nd2nz_pitch: int
    mmad_n: int
    queue_depth: int
    source: str


@record
class Sync:
    """Cycles of synchronisation and of the scalar unit. The latency between cores is not published: a value and its range.

    `refill` are cycles a trip by which pipes wait for each other's flags where a tile has one, two, ... buffers. `scalar_access`
    is what the scalar unit takes to read or write an element of a memory itself. `fullest` is the part of its time that the
    busiest pipe of a skewed loop works at the most.
    """

    flag: float
    barrier: float
    cross_latency: float
    cross_latency_low: float
    cross_latency_high: float
    scalar_issue: float
    scalar_loop: float
    scalar_access: float
    refill: tuple[int, ...]
    fullest: float
    source: str


@record
class Launch:
    """Microseconds around a kernel: `base_us` and `core_us` for each core or group of cores that a launch starts at once."""

    base_us: float
    core_us: float
    mix_us: float
    prologue_us: float
    source: str


@record
class Shared:
    """What all cores draw from together, in bytes per second. `hbm_write` is the rate at which HBM takes what L2 pushes out.

    `l2_kept` is the part of L2's bytes in which data that the cores share is found again, `l2_written` that in which written
    lines stay until others push them out. `reads_least` is the part of HBM that reads have however much is written.
    `first_lost` is what the first core to end a block loses by reading the same lines as others, of what the last one does.
    """

    l2_read: float
    l2_write: float
    hbm_read: float
    hbm_write: float
    l2_kept: float
    l2_written: float
    reads_least: float
    first_lost: float
    source: str


@record(eq=False)
class Chip:
    """A chip by name; two loads of one name give the same object. `clock_mhz` counts the cycles of every number here."""

    name: str
    names: tuple[str, ...]
    architecture: str
    cube_cores: int
    vector_cores: int
    clock_mhz: float
    l2_bytes: int
    hbm_bytes: int
    memories: Mapping[Level, Memory]
    paths: Mapping[str, Path]
    rows: Rows
    cube: Cube
    vector: Vector
    limits: Limits
    sync: Sync
    launch: Launch
    shared: Shared
    sources: Mapping[str, str]
    source: str

    @property
    def npu_arch(self) -> int:
        """The number of the architecture, as __NPU_ARCH__ has it."""
        return int(self.architecture.removeprefix("dav-"))

    def level_bytes(self, level: Level | str) -> int:
        """Bytes of an on-chip level that a kernel may plan with."""
        return self.memories[Level(level)].usable

    def align(self, level: Level) -> int:
        """What addresses of a level must be multiples of, in bytes; 32 in GM and in the workspace (512 is fastest)."""
        return self.memories[level].align if level in self.memories else 32

    def path(self, name: str) -> Path:
        return self.paths[name]

    @property
    def least_ub_pass(self) -> float:
        """Cycles that a kernel of vector cores takes at the least: a load into UB and a store out of it, of 32 bytes each."""
        return sum(self.paths[name].cycles(32, 1, True) for name in ("gm_to_ub", "ub_to_gm"))

    def hbm_share(self, cores: float) -> float:
        """Bytes per cycle that HBM gives each of `cores` cores that read."""
        return self.shared.hbm_read / (self.clock_mhz * 1e6) / cores

    def launch_us(self, started: int, mixed: bool) -> float:
        """Microseconds until a launch that starts so many blocks at once has come to its first instruction."""
        launch = self.launch
        return launch.base_us + launch.core_us * started + launch.prologue_us + (launch.mix_us if mixed else 0.0)

    @property
    def l2_reach(self) -> int:
        """How many bytes the cores may touch until what they touched first is no longer in L2."""
        return int(self.l2_bytes * self.shared.l2_kept)

    @property
    def l2_written(self) -> int:
        """How many bytes the cores may touch until what they wrote first is pushed out of L2."""
        return int(self.l2_bytes * self.shared.l2_written)

    def microseconds(self, cycles: float) -> float:
        return cycles / self.clock_mhz

    @property
    def peak_f16_tflops(self) -> float:
        """Multiply-adds of all cube cores, twice, in 1e12 per second."""
        return self.cube_cores * self.cube.macs["f16"] * 2 * self.clock_mhz * 1e6 / 1e12
