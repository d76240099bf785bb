"""How long a kernel would take if every pipe were always busy: works of its values, priced by the chip's tables.

It knows no schedule: loads lie in rings, what does not vary in a loop is made before it, panels are as deep as L1 allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from math import gcd

from tile_eg.chips import Chip
from tile_eg.ir.index import EACH, MOST_SIZE, Expr, terms_of, variables
from tile_eg.ir.machine import BLOCK_ELEMENTS, REPEAT_ELEMENTS
from tile_eg.ir.program import AIC, AIV
from tile_eg.ir.values import WRITES, Term, Values
from tile_eg.ops.records import record
from tile_eg.ops.types import F32, Level
from tile_eg.sizing.anatomy import COMPUTED, Anatomy, source
from tile_eg.sizing.room import Room
from tile_eg.timeline.instruction import cycles
from tile_eg.timeline.reuse import with_reads
from tile_eg.timeline.work import Work
from tile_eg.transforms.k_tiling import Tiling, with_k_tilings
from tile_eg.transforms.loaded_again import loads_again

HALVES = 2
IN_PARTS = 1.5  # times as much as L0C has of products, the most of which is under way at a time where they go in parts (assumed)
STEPS = ((128, 256), (256, 128), (128, 128), (64, 256), (256, 64))  # m and n of a step in L0


@record(eq=False)
class Estimate:
    """Cycles of the whole kernel, blocks, the tiles that a block stores, and the bytes that levels would have to hold.

    `cube` says whether it has products, `overlaps` whether UB has room to load and store beside the work; in how many `parts` its
    sums are done, as `sizing.phases` finds. `launch` are those of `cycles` that starting the cores takes. `again`: a loop loads
    what an earlier one did, and may find it in UB at sizes that leave it few trips.
    """

    cycles: float
    blocks: int
    stored: tuple[tuple[int, int], ...]
    bytes: dict[Level, int]
    cube: bool
    overlaps: bool
    parts: int = 1
    launch: float = 0.0
    again: bool = False

    def excess(self, chip: Chip) -> float:
        """How many times too small the smallest level is; at most 1 where all fits."""
        return max((n / chip.level_bytes(level) for level, n in self.bytes.items()), default=0.0)

    def least_us(self, chip: Chip, sure: float) -> float:
        """Microseconds that the kernel takes at the least where it takes so much of its estimate, surely. What every launch
        takes, however few cores it starts, is not estimated."""
        return chip.launch_us(0, mixed=False) + sure * chip.microseconds(self.cycles)


def estimate(values: Values, chip: Chip) -> Estimate:
    """The launch, and as many turns of all cores as the blocks need; in the mean of the turns some cores have nothing to do.

    What a later loop loads again it may find in UB, where there is room for all of it.
    """
    anatomy = Anatomy(values)
    stays = {again: first for again, first, *_ in loads_again(values, anatomy.terms)}
    ways = [_estimated(anatomy, chip, kept) for kept in ({}, stays)[: 1 + bool(stays)]]
    again = bool(stays) or any(loads_again(values, anatomy.terms, MOST_SIZE))
    return replace(min(ways, key=lambda e: (max(1.0, e.excess(chip)), e.cycles)), again=again)


def _estimated(anatomy: Anatomy, chip: Chip, stays: Mapping[Term, Term]) -> Estimate:
    values = anatomy.values
    shares = HALVES if anatomy.cube or anatomy.halves else 1
    cores = chip.cube_cores if anatomy.cube else chip.vector_cores // shares
    turns = -(-values.blocks // cores)
    one = _Estimator(anatomy, chip, values.blocks / turns, shares, stays)
    stored = tuple(sorted((t.args[3].rows, t.args[3].cols) for t in anatomy.terms if t.op in WRITES))
    launch = min(values.blocks, cores) * shares * chip.launch.core_us * chip.clock_mhz
    total = launch + one.filled() + (turns - 1) * one.block()
    return Estimate(total, values.blocks, stored, one.room(), bool(anatomy.cube), one.overlaps, launch=launch)


COSTED_AS = {
    "cast": "cast", "nest": "add", "choose": "select", "choose_at": "select", "choose_bits": "select", "bytes": "copy",
    "nibbles": "cast", "pack": "compare", "whole": "gather", "piece": "copy", "put": "copy",
}  # fmt: skip
"""Instructions by which terms are counted that name none."""


class _Estimator:
    """One block while `at_once` of them run, in the mean; `shares` vector cores work on its tiles.

    `stays` are the loads that find their tiles in UB, each with the load that left them there.
    """

    def __init__(self, anatomy: Anatomy, chip: Chip, at_once: float, shares: int, stays: Mapping[Term, Term]) -> None:
        self.values, self.a, self.shares, self.stays = anatomy.values, anatomy, shares, stays
        self.holds = Room(anatomy.values, anatomy, shares, stays)
        self.chip = chip
        if not anatomy.cube:
            self.chip = with_reads(chip, *self._hbm_bytes())
        self.tilings = with_k_tilings(self.values)[1]
        self.busy: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.priced: dict[Work, float] = {}
        self.sharing = {AIC: at_once, AIV: min(shares * at_once, chip.vector_cores)}
        self.factor = {loop: self._factor(loop) for loop in {t.loop for t in self.tilings}}
        for t in anatomy.terms:
            if t not in stays:
                self._count(t)

    def filled(self) -> float:
        """Cycles of a block with nothing before it: loops are filled, and what stands around them adds up."""
        return sum(self._of(0).values()) + sum(self._loop(x) for x in self._loops(0))

    def block(self) -> float:
        """Cycles of a block among others: its slowest pipe; all of them, where UB has no room to load and store meanwhile."""
        pipes: dict[str, float] = defaultdict(float)
        for region, busy in self.busy.items():
            for pipe, c in busy.items():
                pipes[pipe] += c * self.a.trips(region)
        return max(pipes.values(), default=0.0) if self.overlaps else sum(pipes.values())

    @cached_property
    def overlaps(self) -> bool:
        needed = self.holds.ub() if self.stays else min(self.holds.ub(twice=True), 2 * self.holds.ub())
        return bool(self.a.cube) or needed <= self.chip.level_bytes(Level.UB)

    def room(self) -> dict[Level, int]:
        """Bytes that each level would have to hold."""
        return {Level.L0C: self.holds.l0c(), Level.L1: self.holds.l1(self.factor), Level.UB: self.holds.ub()}

    # ---- works ----

    def _add(self, region: int, work: Work, times: float = 1.0) -> None:
        if work not in self.priced:
            self.priced[work] = cycles(self.chip, work, cold=work.pipe == "AIV.V")
        self.busy[region][work.pipe] += times * self.priced[work]

    def _count(self, t: Term) -> None:
        if t.op == "load":
            self._load(t)
        elif t.op == "matmul":
            self._product(t)
        elif t.op in WRITES:
            self._store(t)
        elif t.op in COMPUTED and t not in self.a.cube and not self.a.on_the_way_out(t):
            self._vector(t)
        if t.op not in ("load", *WRITES) and t.rows:
            self._crossing(t)

    def _load(self, t: Term) -> None:
        users = self.a.users[t]
        if any(u.op == "matmul" for u in users):
            factor, along_rows, offset = self._deeper(t)
            rows, cols = self.a.valid(t)
            rows, cols = (rows, cols * factor) if along_rows else (rows * factor, cols)
            self._bring("gm_to_l1", t, (rows, cols), offset, 1 / factor)
        if any(u.op != "matmul" for u in users):
            self._bring("gm_to_ub", t, self._half(t), t.args[1], 1.0)

    def _bring(self, op: str, t: Term, shape: tuple[int, int], offset: Expr, times: float) -> None:
        """A load of so many rows and columns; rows that lie anywhere are moved one by one."""
        rows, cols = shape
        if EACH in variables(offset):
            rows, times = 1, times * rows
        self._add(self.a.region(t), self._loaded(self._move(op, t, rows, cols, t.args[2]), t, offset), times)

    def _loaded(self, move: Work, t: Term, offset: Expr) -> Work:
        """A move from GM at an offset: how its rows are aligned, and what has to come from HBM."""
        return replace(move, miss=self._miss(t), align_bytes=gcd(*(c * move.dtype.bytes for c in terms_of(offset).values())))

    def _move(self, op: str, t: Term, rows: int, cols: int, stride: int) -> Work:
        assert t.dtype is not None
        core = AIC if op in ("gm_to_l1", "fixpipe") else AIV
        size = t.dtype.bytes
        return Work(op, rows, cols, dtype=t.dtype, src_dtype=t.dtype, stride_bytes=stride * size, cores=self.sharing[core])

    def _miss(self, t: Term) -> float:
        """The share of a load's bytes, over all blocks, that no other has loaded before."""
        version = t.args[0]
        if version.op != "given":
            return 0.0
        whole = 1
        for n in version.args[0].shape:
            whole *= n
        rows, cols = self.a.valid(t)
        return min(1.0, whole / (rows * cols * self.a.trips(self.a.region(t)) * self.values.blocks))

    def _hbm_bytes(self) -> tuple[float, float]:
        """Bytes that HBM reads and writes for all blocks: what is written stays in L2 beside what is read."""
        loads = (t for t in self.a.terms if t.op == "load" and t not in self.stays)
        read = sum(_moved(t, self.a) * self._miss(t) for t in loads) * self.values.blocks
        written = sum(_moved(t.args[3], self.a) for t in self.a.terms if t.op in WRITES) * self.values.blocks
        stays = self.chip.l2_written / (read + written) if written else 1.0
        return read, written * max(0.0, 1 - stays)

    def _product(self, t: Term) -> None:
        a, _, ta, _ = t.args
        rows, cols = self.a.valid(t)
        depth = self.a.valid(a)[0 if ta else 1]
        works = min((self._steps(rows, cols, depth, t, m, n) for m, n in STEPS), key=self._slowest)
        for work, times in works:
            self._add(self.a.region(t), work, times)

    def _steps(self, rows: int, cols: int, depth: int, t: Term, m: int, n: int) -> list[tuple[Work, int]]:
        """Loads and products of steps of m x n that fit L0A and L0B twice."""
        dtype = t.args[0].dtype or F32
        m, n = min(m, rows), min(n, cols)
        room = min(self.chip.level_bytes(Level.L0A) // m, self.chip.level_bytes(Level.L0B) // n) // 2
        room = room * dtype.together // dtype.bytes
        k = min(depth, max(16, room // 16 * 16))
        times = -(-rows // m) * -(-cols // n) * -(-depth // k)
        return [
            (Work("l1_to_l0a", m, n, k, dtype, dtype), times), (Work("l1_to_l0b", m, n, k, dtype, dtype), times),
            (Work("mmad", m, n, k, F32, dtype), times),
        ]  # fmt: skip

    def _slowest(self, works: list[tuple[Work, int]]) -> float:
        pipes: dict[str, float] = defaultdict(float)
        for work, times in works:
            pipes[work.pipe] += times * cycles(self.chip, work)
        return max(pipes.values())

    def _store(self, t: Term) -> None:
        value, region = source(t.args[3]), max(self.a.inside(self._around(t)), key=self.a.depth, default=0)
        if value in self.a.cube or self.a.on_the_way_out(value):
            self._add(region, self._move("fixpipe", value, *self.a.valid(value), t.args[2]))
        else:
            self._add(region, self._move("ub_to_gm", value, *self._half(value), t.args[2]))

    def _around(self, store: Term) -> int:
        """The loop that a store stands in."""
        version = store.args[0]
        while version.op in WRITES:
            version = version.args[0]
        if version.op == "tproj":
            return self.values.parents[version.args[0].args[0]]
        return version.args[0] if version.op == "targ" else 0

    def _vector(self, t: Term) -> None:
        rows, cols = self._half(t)
        dtype = t.dtype or F32
        if t.op == "reduce":
            axis, name, x = t.args
            rows, cols = self._half(x)
            work = Work(f"v{'row' if axis == 1 else 'col'}{name}", rows, cols, dtype=dtype, src_dtype=dtype)
            blocks = axis == 1 and dtype is F32 and (cols % REPEAT_ELEMENTS == 0 or cols <= BLOCK_ELEMENTS)
            forms = [work, replace(work, form="blocks")] if blocks else [work]
            self._add(self.a.region(t), min(forms, key=lambda w: cycles(self.chip, w)))
            return
        name = COSTED_AS.get(t.op) or t.args[0]
        times = self.a.scalar_operations(t) if t.op == "nest" else 1
        op = f"v{name}" if any(name == key for key, _ in self.chip.vector.ops) else "vadd"
        same = t.op == "binary" and t.args[1] == t.args[2]
        self._add(self.a.region(t), Work(op, rows, cols, dtype=dtype, src_dtype=dtype, conflict=same), times)

    def _crossing(self, t: Term) -> None:
        """What one kind of core makes and the other reads goes through the workspace."""
        readers = [u for u in self.a.users[t] if u not in self.a.cube]
        region = self.a.region(t)
        rows, cols = self.a.valid(t)
        if (t in self.a.cube and any(u.op in COMPUTED and not self.a.on_the_way_out(u) for u in readers)) or (
            self.a.on_the_way_out(t) and any(u.op in COMPUTED for u in readers)
        ):
            self._add(region, self._move("fixpipe", t, rows, cols, 0))
            self._add(region, self._move("gm_to_ub", t, *self._half(t), 0))
        panels = [u for u in readers if u.op == "panel"]
        for u in panels:
            self._add(self.a.region(u), self._move("gm_to_ub", u, *self._half(u), 0))
        if panels:
            self._add(region, self._move("fixpipe", t, rows, cols, 0))
        if t not in self.a.cube and t.op in COMPUTED and any(u.op == "matmul" for u in self.a.users[t]):
            self._add(region, self._move("gm_to_l1", t, rows, cols, 0))
            self._add(region, self._move("ub_to_gm", t, *self._half(t), 0))

    def _half(self, t: Term) -> tuple[int, int]:
        rows, cols = self.a.valid(t)
        return (-(-rows // self.shares), cols) if rows > 1 else (rows, -(-cols // self.shares))

    # ---- time ----

    def _of(self, region: int) -> dict[str, float]:
        return self.busy.get(region, {})

    def _loops(self, region: int) -> list[int]:
        return [x for x in self.a.loops if self.values.parents[x] == region]

    def _loop(self, loop: int) -> float:
        """All trips of a loop whose pipes overlap, filled once."""
        pipes = self._of(loop)
        inner = sum(self._loop(x) for x in self._loops(loop))
        slowest = max(pipes.values(), default=0.0)
        trips = self.values.mean_trips(loop)
        fill = (sum(pipes.values()) - slowest) * self.factor.get(loop, 1)
        return trips * (slowest + inner) + fill

    # ---- room ----

    def _deeper(self, load: Term) -> tuple[int, bool, Expr]:
        """How many trips' tiles a load takes at a time, whether they lie side by side, and where they begin."""
        for t in self.tilings:
            moved = t.later(load.args[1])
            if moved is not None and t.factor == self.factor[t.loop]:
                return t.factor, moved[0] == load.cols, moved[1]
        return 1, False, load.args[1]

    def _factor(self, loop: int) -> int:
        """The smallest number of trips whose rows are long, as far as L1 holds two panels of each operand."""
        best = 1
        for t in self.tilings:
            if t.loop == loop and t.trips > 1 and self.holds.l1({loop: t.factor}) <= self.chip.level_bytes(Level.L1):
                best = t.factor
                if all(x.cols * t.factor * x.dtype.bytes >= self.chip.rows.long for x in self._side_by_side(t)):  # type: ignore[union-attr]
                    break
        return best

    def _side_by_side(self, t: Tiling) -> list[Term]:
        loads = [x for x in self.a.terms if x.op == "load"]
        return [x for x in loads if (moved := t.later(x.args[1])) is not None and moved[0] == x.cols]


def _moved(t: Term, a: Anatomy) -> float:
    """Bytes of a tile that are valid, in all trips of a block."""
    rows, cols = a.valid(t)
    return rows * cols * (t.dtype or F32).bytes * a.trips(a.region(t))
