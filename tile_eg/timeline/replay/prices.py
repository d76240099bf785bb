"""What an instruction of a trace costs: sizes as they ran, prices from the chip's tables, and what the tables do not hold."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import replace

from tile_eg.chips import Chip
from tile_eg.chips.model import VectorCost
from tile_eg.ir.index import ZERO, Expr
from tile_eg.ir.machine import write_cycles
from tile_eg.ir.program import Instr
from tile_eg.ops.types import F16, F32, I8, DType
from tile_eg.timeline.cores import Core, StreamError
from tile_eg.timeline.instruction import cycles, moved_bytes
from tile_eg.timeline.replay.l2 import Traffic, Turns
from tile_eg.timeline.replay.row import Row
from tile_eg.timeline.reuse import with_reads
from tile_eg.timeline.turns import beside
from tile_eg.timeline.vector_cycles import repeat_cycles
from tile_eg.timeline.work import RUNS, Work
from tile_eg.timeline.works import Price

_MOVES = {
    "GM->L1": "gm_to_l1", "GM->UB": "gm_to_ub", "UB->GM": "ub_to_gm", "L0C->GM": "fixpipe", "L1->GM": "ub_to_gm",
    "GM->L0A": "gm_to_l1", "GM->L0B": "gm_to_l1",
}  # fmt: skip
_INNER = {
    "L1->L0A": "l1_to_l0a", "L1->L0B": "l1_to_l0b", "L0C->L1": "l0c_to_l1", "L0C->UB": "l0c_to_ub", "UB->L1": "ub_to_l1",
    "L1->UB": "l1_to_ub", "L1->BT": "l1_to_bt", "L1->FB": "l1_to_bt",
}  # fmt: skip
_VECTOR = {
    "Sub": "add", "Min": "max", "Mins": "maxs", "Duplicate": "dup", "MulAddDst": "muladd", "FusedMulAdd": "muladd",
    "FusedMulAddRelu": "muladd", "WholeReduceMax": "whole_max", "WholeReduceMin": "whole_max", "WholeReduceSum": "whole_sum",
    "BlockReduceMax": "blockmax", "BlockReduceMin": "blockmax", "BlockReduceSum": "blocksum", "PairReduceSum": "blocksum",
    "RepeatReduceSum": "whole_sum", "ReduceSum": "whole_sum", "ReduceMax": "whole_max", "ReduceMin": "whole_max",
    "Not": "abs", "And": "and", "Or": "and", "LeakyRelu": "relu", "AddRelu": "add", "SubRelu": "add", "Compares": "compare",
    "CompareScalar": "compare", "GatherMask": "reducev2", "Sort32": "sort", "Transpose": "transpose", "DataCopy": "copy",
    "CreateVecIndex": "dup", "AddReluCast": "add", "SubReluCast": "add", "MulCast": "mul", "CastDeq": "cast", "AddDeqRelu": "add",
    "ShiftLeft": "muls", "ShiftRight": "muls", "ReduceDataBlock": "blocksum", "ReducePairElem": "blocksum",
    "ReduceRepeat": "whole_sum", "TransDataTo5HD": "transpose",
}  # fmt: skip
_DTYPES = {1: I8, 2: F16, 4: F32}
OTHER = "other"
NEARBY = 8  # loads of a core that are taken to come round again with the next one: those of a trip or two


class RanPrices:
    """Prices the rows of a launch. `cores` are those of each kind in a block, `traffic` says what all of them move. Blocks that
    begin together (`in_step`) wait for each other where they read the same lines.

    `unknown` says which instructions have no entry in the chip's tables, and what they were counted as: name -> (class, lines).
    """

    def __init__(self, chip: Chip, cores: Mapping[str, float], traffic: Traffic, *, in_step: bool) -> None:
        self.chip, self.cores, self.traffic, self.in_step = chip, cores, traffic, in_step
        self.chips = [with_reads(chip, read, written) for read, written in traffic.hbm]
        self.known: dict[int, Price] = {}
        self.kept: list[Instr] = []
        self.unknown: dict[str, tuple[str, set[int]]] = {}
        self.loads: defaultdict[Core, deque[Work]] = defaultdict(lambda: deque(maxlen=NEARBY))

    def turn(self, instr: Instr) -> Expr:
        """Each row of a trace has a price of its own."""
        return ZERO

    def price(self, instr: Instr, rows: int, cols: int, depth: int, turn: int = 0) -> Price:
        return self.known[id(instr)]

    def learn(self, instr: Instr, core: Core, row: Row, size: int, at: Turns) -> None:
        """Prices a row, `size` bytes together with those that are one move with it; `at` is where its core has come to.

        StreamError where its core lacks the pipe.
        """
        if row.pipe not in core.pipes:
            raise StreamError(f"line {row.line}: {core.name} has no pipe {row.pipe} for {row.name}")
        self.kept.append(instr)
        if row.path == "macs":
            price = self._worked(self.chip, self._product(row), row)
        elif row.path in _MOVES:
            price = self._worked(self.chips[at.phase], self._in_turn(self._copy(row, core.kind, at), core, at), row)
        else:
            price = self._vector(row) if row.pipe == "V" else self._inner(row, size)
        self.known[id(instr)] = price

    @staticmethod
    def _worked(chip: Chip, work: Work, row: Row) -> Price:
        busy = cycles(chip, work)
        return Price(busy, cycles(chip, work, cold=True) - busy, _path(row), moved_bytes(work))

    def _copy(self, row: Row, kind: str, at: Turns) -> Work:
        a, b, c, element = row.sizes
        if not element:
            a, b, element = 1, row.bytes, 1
        dtype = _DTYPES.get(element, F32)
        reads = row.path.startswith("GM->")
        return Work(
            _MOVES[row.path], a, max(1, b // dtype.bytes), dtype=dtype, src_dtype=dtype, stride_bytes=c, align_bytes=row.offset,
            form="flat" if row.makes_nz else RUNS, other="GM", cores=max(1.0, self.cores[kind] * self.traffic.at_work(row, at)),
            miss=self.traffic.miss(row, at) if reads else 0.0,
            sharing=self.traffic.readers(row, at) if reads and self.in_step else 1,
        )  # fmt: skip

    def _in_turn(self, work: Work, core: Core, at: Turns) -> Work:
        """A copy beside those that its core did just before: while it reads from L2, other cores have its share of HBM."""
        before, chip = self.loads[core], self.chips[at.phase]
        if work.op not in ("gm_to_l1", "gm_to_ub"):
            return work
        if work.miss:
            work = replace(work, drawing=beside(chip, work, before))
        before.append(work)
        return work

    def _product(self, row: Row) -> Work:
        m, n, k, element = row.sizes
        dtype: DType = _DTYPES.get(element, F16)
        return Work("mmad", m, n, k, F32, dtype)

    def _inner(self, row: Row, size: int) -> Price:
        """A move inside of the core, by the path's table."""
        name = "l0c_to_ub_dual" if row.path == "L0C->UB" and row.sizes[2] == 2 else _INNER.get(row.path, OTHER)
        if name not in self.chip.paths:
            name = OTHER
        if name == OTHER:
            self.note(row, "a move inside of the core")
        path = self.chip.paths[name]
        busy = path.cycles(size, 1, False)
        return Price(busy, path.cycles(size, 1, True) - busy, row.path if "->" in row.path else "", size)

    def _vector(self, row: Row) -> Price:
        sixteenths, element, conflict, counted = row.sizes
        if not sixteenths:
            sixteenths, element = -(-row.bytes // 16), element or 4
        cost = self._cost(row, element)
        whole = -(-sixteenths // 16)
        (apart, in_the_way), conflict = divmod(conflict // 256, 256), conflict % 256
        slope = cost.free + (cost.slope - cost.free) * conflict / 16
        vector = self.chip.vector
        slope = max(slope, cost.free + vector.read_write * in_the_way / 16, write_cycles(apart + 1, vector.bank_groups_bytes))
        if counted:
            tail = self.chip.vector.counter_tail if sixteenths % 16 and whole > 1 else 0.0
            busy = max(cost.floor, slope * whole) + tail
        else:
            busy = repeat_cycles(self.chip, replace(cost, slope=slope), whole, True)
        return Price(busy, cost.fixed, "", 0)

    def _cost(self, row: Row, element: int) -> VectorCost:
        name, size = _VECTOR.get(row.name, row.name.lower()), 2 if element <= 2 else 4
        if (name, size) not in self.chip.vector.ops:
            name = OTHER
            self.note(row, "a vector instruction")
        return self.chip.vector.ops[name, size]

    def note(self, row: Row, what: str) -> None:
        """Remembers that a row was counted as `what`."""
        self.unknown.setdefault(row.name, (what, set()))[1].add(row.line)


def _path(row: Row) -> str:
    return row.path if "->" in row.path else ""
