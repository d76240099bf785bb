"""A kernel's text as it ran: rows of the simulator's trace as the steps of a core, priced from the chip's tables.

Instructions, sizes and flags are those that were executed, in the order of their issue, so that the same engine times them as
times a Program.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_eg.errors import Span as Lines
from tile_eg.ir.index import ONE, ZERO, const
from tile_eg.ir.machine import SCALAR_PIPE, SYNC_ALL_HANDOVERS
from tile_eg.ir.program import AIC, CrossSet, CrossWait, Instr, Node, PipeBarrier, SetFlag, Tile, WaitFlag
from tile_eg.timeline.cores import Core, Step
from tile_eg.timeline.flags import cross_set_step, cross_wait_step, sync_step
from tile_eg.timeline.replay.l2 import SYNC_ALL, Turns
from tile_eg.timeline.replay.prices import RanPrices
from tile_eg.timeline.replay.row import Row
from tile_eg.timeline.replay.units import units
from tile_eg.timeline.steps import append, instruction

SCALAR = "scalar"
BETWEEN_BLOCKS = ("IBSet", "IBWait", "WaitPreBlock", "NotifyNextBlock", "GroupBarrier::Arrive", "GroupBarrier::Wait")
OWN = const(-1)  # an event that no text has


def add_rows(core: Core, rows: Sequence[Row], prices: RanPrices, *, auto_sync: bool) -> dict[int, Row]:
    """Appends the steps of what one core ran; which row each instruction was made of, by id of the Instr.

    Loads of one line into L0 are one move in several instructions: one start-up for all. `auto_sync`: the compiler orders V with
    V and the scalar unit with V where they meet in UB (`--cce-auto-sync`).
    """
    made: dict[int, Row] = {}
    guard, turns, handed = _Guard(core, auto_sync), Turns(), units(rows)
    at = 0
    while at < len(rows):
        row, count = rows[at], 1
        if row.path in ("L1->L0A", "L1->L0B"):
            while at + count < len(rows) and (rows[at + count].line, rows[at + count].path) == (row.line, row.path):
                count += 1
        if at not in handed:
            guard.before(row)
        if row.path or row.name == SYNC_ALL:
            size = sum(r.bytes for r in rows[at : at + count])
            _add_instruction(core, row, size, prices, made, turns, handed.get(at, ""))
        elif row.name.startswith("CrossCore"):
            _add_cross(core, row)
        elif row.name.split(" ")[0] in BETWEEN_BLOCKS:
            prices.note(row, "a wait for other blocks that costs a handover")
            append(core, PipeBarrier(row.pipe), _handover(core))
        else:
            node = _node(row)
            append(core, node, sync_step(core, node))
        turns.after(row)
        at += count
    return made


def _node(row: Row) -> Node:
    """A flag or a barrier."""
    word, _, rest = row.name.partition(" ")
    if word in ("SetFlag", "WaitFlag"):
        event, _, number = rest.partition(", ")
        source, target = event.split("_")
        return (SetFlag if word == "SetFlag" else WaitFlag)(source, target, const(int(number)))
    return PipeBarrier(row.pipe)


def _add_cross(core: Core, row: Row) -> None:
    """A flag between cores: between all of a kind (mode 0), the vector cores of a block (1), the two kinds (2), two cores (4)."""
    word, number = row.name.split(" ")
    mode, id_ = row.sizes[0], int(number)
    if mode == 0:
        if word == "CrossCoreWaitFlag":
            append(core, CrossWait(id_), _meeting(core))
        return
    names = {1: ("AIV0", "AIV1"), 4: (AIC,) if core.kind != AIC else ("AIV1" if id_ >= 16 else "AIV0",)}.get(mode)
    if mode == 4 and core.name == "AIV1":
        id_ += 16
    if word == "CrossCoreSetFlag":
        node = CrossSet(row.pipe, id_)
        append(core, node, cross_set_step(core, node, names) if names else sync_step(core, node))
    else:
        wait = CrossWait(id_)
        step = cross_wait_step(core, wait, names, row.pipe) if names or row.pipe != SCALAR_PIPE else sync_step(core, wait)
        append(core, wait, step)


def _handover(core: Core) -> Step:
    def step() -> bool:
        core.clock += core.chip.sync.cross_latency
        return True

    return step


def _add_instruction(core: Core, row: Row, size: int, prices: RanPrices, made: dict[int, Row], turns: Turns, blocks: str) -> None:
    a, b, c = (const(max(1, n)) for n in row.sizes[:3]) if row.path == "macs" else (ONE, const(max(1, size)), ONE)
    unit, tile = const(row.unit_flag) if blocks else ZERO, Tile(blocks)
    node = Instr(row.name, tile, (tile,), a, b, c, unit=unit, span=Lines("", row.line, 1, row.line, 2))
    made[id(node)] = row
    if row.name == SYNC_ALL:
        alone = bool(row.sizes[0])
        append(core, node, _meeting(core, 1 if alone else SYNC_ALL_HANDOVERS, alone=alone))
    elif row.pipe == SCALAR_PIPE or row.path == SCALAR:
        append(core, node, _scalar(core))
    else:
        prices.learn(node, core, row, size, turns)
        append(core, node, instruction(core, node, row.pipe))


def _scalar(core: Core) -> Step:
    """The scalar unit reads or writes an element itself: nothing is issued meanwhile."""
    cycles = core.chip.sync.scalar_access

    def step() -> bool:
        core.clock += cycles
        return True

    return step


def _meeting(core: Core, handovers: int = 1, *, alone: bool = True) -> Step:
    """All cores of all blocks come together, or all of one kind (`alone`): so many latencies after the last one of this block.

    Other blocks are waited for in `launches`, to which `meetings` says when those of this block had come.
    """
    latency, pipes = handovers * core.chip.sync.cross_latency, list(core.pipes.values())
    number = -1

    def step() -> bool:
        nonlocal number
        if any(p.waiting for p in pipes):
            return False
        if number < 0:
            number = len(core.arrived[alone])
            core.arrived[alone].append(max(core.clock, *(p.done for p in pipes)))
        came = [c.arrived[alone] for c in core.peers.values() if c.kind == core.kind or not alone]
        if any(len(times) <= number for times in came):
            return False
        core.clock = max(times[number] for times in came)
        core.meetings.append(core.clock)
        core.clock += latency
        return True

    return step


class _Guard:
    """Orders what no flag of the text orders, as the machine does it.

    Unit flags let a Fixpipe wait for the Mmad that writes its tile, and the next Mmad for that Fixpipe, where the blocks do not
    change hands as a whole (`units`). On a vector core the
    compiler puts barriers between instructions that meet in UB, one of them writing, where it may.
    """

    def __init__(self, core: Core, auto_sync: bool) -> None:
        self.core = core
        pairs = [("M", "FIX"), ("FIX", "M")] if core.kind == AIC else [("V", "V"), ("V", SCALAR_PIPE)] if auto_sync else []
        self.since: dict[tuple[str, str], list[tuple[str, int, int, int]]] = {pair: [] for pair in pairs}

    def before(self, row: Row) -> None:
        """What is put before a row, and what it leaves for later ones."""
        for pair, since in self.since.items():
            if _orders(row, *pair):
                since.clear()
            elif row.path and row.pipe == pair[1] and any(_meet(a, b) for a in row.touched for b in since):
                self._order(*pair)
                since.clear()
            if row.path and row.pipe == pair[0]:
                since += row.touched

    def _order(self, source: str, target: str) -> None:
        nodes: list[Node] = [SetFlag(source, target, OWN), WaitFlag(source, target, OWN)]
        if source == target:
            nodes = [PipeBarrier(source)]
        for node in nodes:
            append(self.core, node, sync_step(self.core, node))


def _orders(row: Row, source: str, target: str) -> bool:
    """Whether a flag or a barrier orders what comes later on pipe `target` after what was on `source`."""
    if row.name == "PipeBarrier":
        return row.pipe in (source, "ALL") and (source == target or row.pipe == "ALL")
    return row.name.startswith(f"WaitFlag {source}_{target},")


def _meet(a: tuple[str, int, int, int], b: tuple[str, int, int, int]) -> bool:
    return a[0] == b[0] and bool(a[3] or b[3]) and a[1] < b[2] and b[1] < a[2]
