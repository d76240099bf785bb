"""Times a kernel's text as it ran: the trace of the simulator goes through the same cores and pipes as a Program does.

Instructions, sizes and flags are those that were executed, in the order of their issue; prices come from the chip tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from tile_eg.chips import Chip
from tile_eg.ir.index import const
from tile_eg.ir.machine import CORE_PIPES
from tile_eg.ir.program import AIC, AIV, CrossSet, CrossWait, Instr, Node, PipeBarrier, SetFlag, Tile, WaitFlag
from tile_eg.ir.types import F16, F32, I8, DType
from tile_eg.timeline.cores import Core, Record, StreamError, run_cores
from tile_eg.timeline.expand import Env
from tile_eg.timeline.instruction import Work, cycles, moved_bytes, repeat_cycles
from tile_eg.timeline.reuse import with_reads
from tile_eg.timeline.works import Price

MOVES = {
    "GM->L1": "gm_to_l1", "GM->UB": "gm_to_ub", "UB->GM": "ub_to_gm", "L0C->GM": "fixpipe", "L0C->L1": "fixpipe",
    "L1->L0A": "l1_to_l0a", "L1->L0B": "l1_to_l0b",
}  # fmt: skip
VECTOR = {
    "Sub": "add", "Min": "max", "Mins": "maxs", "Duplicate": "dup", "MulAddDst": "muladd", "WholeReduceMax": "whole_max",
    "WholeReduceMin": "whole_max", "WholeReduceSum": "whole_sum", "BlockReduceMax": "blockmax", "BlockReduceMin": "blockmax",
    "BlockReduceSum": "blocksum", "ReduceSum": "whole_sum", "ReduceMax": "whole_max", "ReduceMin": "whole_max",
}  # fmt: skip
_DTYPES = {1: I8, 2: F16, 4: F32}


class Row(Protocol):
    """What is needed of a row of the simulator's trace (`simulator.findings.TraceRow` says what the fields hold)."""

    @property
    def block(self) -> int: ...
    @property
    def core(self) -> str: ...
    @property
    def pipe(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def tensor(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def sizes(self) -> Sequence[int]: ...


def ran_cycles(rows: Sequence[Row], chip: Chip, tensors: dict[str, int], block: int = 0) -> float:
    """Cycles of one block of a launch that ran with `rows`; `tensors` are the bytes of its inputs and outputs, by name.

    GM that is no tensor is workspace, which L2 holds. StreamError where the trace holds an instruction without a price.
    """
    cubes, vectors = ({(r.block, r.core) for r in rows if (r.core == AIC) == cube} for cube in (True, False))
    missed = _missed(rows, tensors)
    chip = with_reads(chip, _read_share(rows, missed))
    prices = _Prices(chip, {AIC: min(len(cubes), chip.cube_cores), AIV: min(len(vectors), chip.vector_cores)}, missed)
    record = Record()
    cores = []
    for name, mine in ((AIC, (AIC,)), (AIV, ("AIV", "AIV0"))):
        stream = [r for r in rows if r.block == block and r.core in mine]
        if stream:
            cores.append(Core(name, prices.steps(name, stream), prices, chip, record))
    run_cores(cores)
    return max((c.end for c in cores), default=0.0)


def _missed(rows: Sequence[Row], tensors: dict[str, int]) -> dict[str, float]:
    """The share of what is read of each tensor that comes from HBM: every byte once."""
    read: dict[str, int] = dict.fromkeys(tensors, 0)
    seen: dict[tuple[str, int], int] = {}
    for r in rows:
        if r.tensor in tensors and r.path.startswith("GM->"):
            read[r.tensor] += r.bytes
            seen[r.tensor, r.offset] = max(r.bytes, seen.get((r.tensor, r.offset), 0))
    new = {name: sum(n for (tensor, _), n in seen.items() if tensor == name) for name in tensors}
    return {name: min(1.0, min(new[name], size) / max(1, read[name])) for name, size in tensors.items()}


def _read_share(rows: Sequence[Row], missed: dict[str, float]) -> float:
    """Which part of what HBM moves is read."""
    reads = sum(r.bytes * missed[r.tensor] for r in rows if r.tensor in missed and r.path.startswith("GM->"))
    writes = sum(r.bytes for r in rows if r.tensor in missed and r.path.endswith("->GM"))
    return reads / (reads + writes) if writes else 1.0


class _Prices:
    """Makes nodes of rows, and keeps what each instruction costs."""

    def __init__(self, chip: Chip, cores: dict[str, int], missed: dict[str, float]) -> None:
        self.chip, self.cores, self.missed = chip, cores, missed
        self.known: dict[int, Price] = {}
        self.kept: list[Instr] = []

    def price(self, instr: Instr, env: Env) -> Price:
        return self.known[id(instr)]

    def steps(self, core: str, rows: Sequence[Row]) -> Iterator[tuple[Node, Env]]:
        """The stream of one core. Loads of one line into L0 are one move in several instructions: one start-up for all."""
        at = 0
        while at < len(rows):
            row, count = rows[at], 1
            if row.path in ("L1->L0A", "L1->L0B"):
                while at + count < len(rows) and (rows[at + count].line, rows[at + count].path) == (row.line, row.path):
                    count += 1
            yield self._node(core, row, sum(r.bytes for r in rows[at : at + count])), {}
            at += count

    def _node(self, core: str, row: Row, size: int) -> Node:
        word, _, rest = row.name.partition(" ")
        if word in ("SetFlag", "WaitFlag"):
            event, _, number = rest.partition(", ")
            source, target = event.split("_")
            return (SetFlag if word == "SetFlag" else WaitFlag)(source, target, const(int(number)))
        if word == "PipeBarrier":
            return PipeBarrier(row.pipe)
        if word == "CrossCoreSetFlag":
            return CrossSet(row.pipe, int(rest))
        if word == "CrossCoreWaitFlag":
            return CrossWait(int(rest))
        return self._instruction(core, row, size)

    def _instruction(self, core: str, row: Row, size: int) -> Instr:
        if row.pipe not in CORE_PIPES[core]:
            raise StreamError(f"line {row.line}: {row.name} on pipe {row.pipe} has no price")
        op, price = self._vector(row) if row.path == "vector" else self._priced(core, row, size)
        instr = Instr(op, Tile(""))
        self.kept.append(instr)
        self.known[id(instr)] = price
        return instr

    def _priced(self, core: str, row: Row, size: int) -> tuple[str, Price]:
        work = self._work(core, row, size)
        busy = cycles(self.chip, work)
        return work.op, Price(
            busy, cycles(self.chip, work, cold=True) - busy, row.path, moved_bytes(work), work.miss, row.tensor, False
        )

    def _work(self, core: str, row: Row, size: int) -> Work:
        a, b, c, element = row.sizes
        if row.path == "macs":
            return Work("mmad", a, b, c, F32, _dtype(row, element))
        op = MOVES.get(row.path)
        if op is None:
            raise StreamError(f"line {row.line}: {row.name} along {row.path} has no price")
        if op == "l1_to_l0a":
            return Work(op, 16, 1, size // 32, F16, F16)
        if op == "l1_to_l0b":
            return Work(op, 1, 16, size // 32, F16, F16)
        miss = self.missed.get(row.tensor, 0.0) if row.path.startswith("GM->") else 0.0
        dtype, far = _dtype(row, element), "L1" if row.path == "L0C->L1" else "GM"
        return Work(
            op, a, b // element, dtype=dtype, src_dtype=dtype, stride_bytes=c, other=far, cores=self.cores[core], miss=miss
        )

    def _vector(self, row: Row) -> tuple[str, Price]:
        sixteenths, element, conflict, counted = row.sizes
        name = VECTOR.get(row.name, row.name.lower())
        cost = self.chip.vector.ops.get((name, 2 if element <= 2 else 4))
        if cost is None:
            raise StreamError(f"line {row.line}: {row.name} has no price")
        whole = -(-sixteenths // 16)
        if counted:
            tail = self.chip.vector.counter_tail if sixteenths % 16 and whole > 1 else 0.0
            busy = max(cost.floor, (cost.slope if conflict else cost.free) * whole) + tail
        else:
            busy = repeat_cycles(self.chip, cost, whole, bool(conflict))
        return f"v{name}", Price(busy, cost.fixed, "", 0, 0.0, "", False)


def _dtype(row: Row, element: int) -> DType:
    if element not in _DTYPES:
        raise StreamError(f"line {row.line}: {row.name} of elements of {element} bytes has no price")
    return _DTYPES[element]
