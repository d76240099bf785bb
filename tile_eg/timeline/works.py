"""From an instruction of a Program to its `Work`: sizes from index expressions, dtypes and pitches from buffers and tensors."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod
from types import MappingProxyType

from tile_eg.chips import Chip
from tile_eg.ir.index import EACH, ZERO, Expr, variables
from tile_eg.ir.machine import cores
from tile_eg.ir.program import AIC, AIV, BY_BLOCKS, BY_ROWS, OVERWRITES, Buffer, Gm, Instr, Operand, Program, Tile
from tile_eg.ir.sharing import Itself, once
from tile_eg.ir.sizes import usual
from tile_eg.ops.records import record
from tile_eg.ops.types import DType, Level
from tile_eg.timeline.banks import meetings
from tile_eg.timeline.instruction import cycles, moved_bytes, places
from tile_eg.timeline.work import ANYWHERE, HALF_OF_ROUNDS, Work

_MOVES = {
    "gm_to_l1": "L1", "gm_to_ub": "UB", "ub_to_gm": "UB", "fixpipe": "L0C", "l1_to_l0a": "L0A", "l1_to_l0b": "L0B",
    "ub_to_l1": "UB", "l1_to_ub": "UB",
}  # fmt: skip


_RAMPS = {0: "fill", 1: "index"}  # what makes the first row of a ramp, by its step to the right
_STORES = ("ub_to_gm", "ub_to_l1", "fixpipe")


@record(guarded=False)
class Price:
    """One instruction with its sizes known: cycles on its pipe, cycles until its result is there, and what it moves.

    `busy` is its time back to back; `fill` is what passes between its end on the pipe and the completion that flags and barriers
    wait for. `path` is "GM->L1" and the like, empty for a computation; `places` are those it takes in its pipe's queue.
    """

    busy: float
    fill: float
    path: str
    bytes: int
    places: int = 1


def align_of(e: Expr) -> int:
    """What an index expression is always a multiple of; 0 for the constant 0."""
    if e.op == "const":
        return abs(e.args[0])
    if e.op == "size":
        return usual(e)
    if e.op in ("add", "min", "max"):
        return gcd(*map(align_of, e.args))
    return prod(map(align_of, e.args)) if e.op == "mul" else 1


def blocks_at_once(program: Program, chip: Chip) -> int:
    """Blocks that the chip's cores run side by side."""
    aic, aiv = (n // program.blocks for n in launched(program))
    return min(chip.cube_cores // aic if aic else chip.vector_cores, chip.vector_cores // aiv if aiv else chip.cube_cores)


def launched(program: Program) -> tuple[int, int]:
    """Cube and vector cores that the whole launch starts."""
    aic, aiv = cores(program.kernel_type)
    return program.blocks * aic, program.blocks * (2 if program.halves and not aic else aiv)


def started(program: Program, at_once: int) -> int:
    """Cores, or groups of a cube core and its vector cores, that a launch starts at once."""
    alone = program.halves and not cores(program.kernel_type)[0]
    return min(at_once, program.blocks) * (2 if alone else 1)


OwnPrices = dict[tuple[int, int, int, int], tuple[Price, Instr]]
"""By `id` of an instruction and its sizes: its price, and the instruction, which keeps the `id` its own."""


def own_prices(program: Program, chip: Chip) -> OwnPrices:
    """Prices that hold for all programs of these buffers, however many blocks they have and whatever L2 holds."""
    return once("own prices", (Itself(program.buffers), Itself(chip)), dict)


def _is_alone(instr: Instr) -> bool:
    """Whether an instruction works within one core: what others do does not delay it."""
    return instr.pipe in ("M", "V") or instr.op.startswith("l1_to_l0")


class Pricer:
    """Prices the instructions of one program on one chip; equal sizes of one instruction are priced once."""

    def __init__(
        self,
        program: Program,
        chip: Chip,
        blocks: float,
        missed: Mapping[int, float],
        sharing: Mapping[int, float] = MappingProxyType({}),
        drawing: Mapping[int, float] = MappingProxyType({}),
        *,
        own: OwnPrices | None = None,
    ) -> None:
        """`blocks` of them share the memory system; `missed` are the shares of loads that come from HBM, by id of the Instr.

        `sharing` says how many cores read the same bytes at the same time: one where it is silent; `drawing` how many read from
        HBM at the time of a load: all where it is silent. `own` are prices that depend on none of these, of programs with the
        same buffers.
        """
        self.chip = chip
        self.buffers = {b.name: b for b in program.buffers}
        self.tensors = {t.name: t for t in program.in_gm}
        self.missed, self.sharing, self.drawing = missed, sharing, drawing
        aic, aiv = (n // program.blocks for n in launched(program))
        self.cores = {AIC: max(1.0, aic * blocks), AIV: max(1.0, aiv * blocks)}
        self.known: dict[tuple[int, int, int, int], Price] = {}
        self.own: OwnPrices = {} if own is None else own

    def turn(self, instr: Instr) -> Expr:
        """All turns cost the same."""
        return ZERO

    def price(self, instr: Instr, rows: int, cols: int, depth: int, turn: int = 0) -> Price:
        """Of an instruction with these valid sizes."""
        key = (id(instr), rows, cols, depth)
        if key not in self.known:
            self.known[key] = self._own(key, instr) if _is_alone(instr) else self._price(instr, rows, cols, depth)
        return self.known[key]

    def _own(self, key: tuple[int, int, int, int], instr: Instr) -> Price:
        if key not in self.own:
            self.own[key] = self._price(instr, *key[1:]), instr
        return self.own[key][0]

    def _price(self, instr: Instr, rows: int, cols: int, depth: int) -> Price:
        work = self.work(instr, rows, cols, depth)
        busy = cycles(self.chip, work)
        fill = cycles(self.chip, work, cold=True) - busy
        path, moved, taken = _path(instr.op, work.other), moved_bytes(work), places(self.chip, work)
        return Price(busy, fill, path, moved, taken)

    def work(self, instr: Instr, rows: int, cols: int, depth: int) -> Work:
        """The instruction as `Work`, with the given valid sizes."""
        store = instr.op in _STORES
        far = instr.dst if store else instr.srcs[0] if instr.srcs else instr.dst
        near = instr.srcs[0] if instr.op in ("ub_to_gm", "ub_to_l1") else instr.dst
        meet = meetings(instr, self.buffers, rows, cols) if instr.op.startswith("v") else None
        if instr.op in BY_ROWS:
            rows, cols = instr.steps[:2]
        return Work(
            op=instr.op, rows=rows, cols=cols, depth=depth * self._kept(instr),
            form=ANYWHERE if _anywhere(far) else _RAMPS.get(instr.steps[1], "flat") if instr.op == "vramp" else instr.form,
            dtype=self._dtype(instr.dst), src_dtype=self._dtype(instr.srcs[0] if instr.srcs else instr.dst),
            pitch=self.buffers[near.buffer].pitch if isinstance(near, Tile) else 0,
            stride_bytes=self._stride(far), other=self._level(far), cores=self.cores[instr.core],
            align_bytes=self._align(far), conflict=meet.sources if meet else self._conflict(instr),
            in_the_way=meet.result if meet else 0.0,
            miss=self.missed.get(id(instr), 0.0), drawing=self.drawing.get(id(instr), 0.0),
            sharing=self.sharing.get(id(instr), 1.0),
        )  # fmt: skip

    def _kept(self, instr: Instr) -> int:
        """Elements of the tile that another one is put into, unless the result takes its place."""
        if instr.op != "vput":
            return 1
        to, old = (self.buffers[o.buffer] for o in (instr.dst, instr.srcs[0]) if isinstance(o, Tile))
        return 1 if to.addresses == old.addresses and to.addresses or to is old else to.rows * to.pitch

    def _dtype(self, operand: Operand) -> DType:
        return self.tensors[operand.tensor].dtype if isinstance(operand, Gm) else self.buffers[operand.buffer].dtype

    def _level(self, operand: Operand) -> str:
        return "GM" if isinstance(operand, Gm) else self.buffers[operand.buffer].level.value

    def _stride(self, operand: Operand) -> int:
        if isinstance(operand, Gm):
            return usual(operand.stride) * self.tensors[operand.tensor].dtype.bytes
        buffer = self.buffers[operand.buffer]
        return buffer.pitch * buffer.dtype.bytes if buffer.level is Level.WS else 0

    def _align(self, operand: Operand) -> int:
        return align_of(operand.offset) * self.tensors[operand.tensor].dtype.bytes if isinstance(operand, Gm) else 0

    def _conflict(self, instr: Instr) -> float:
        """Whether two sources start in the same half of a 512-byte stretch of UB; unknown addresses may. What is compared with a
        number and what is then chosen from are read one after the other."""
        if instr.op.startswith("vmask"):
            return 0.0
        sources = [*instr.srcs, instr.dst] if instr.op in OVERWRITES else instr.srcs
        homes = [self.buffers[s.buffer] for s in sources if isinstance(s, Tile)]
        if len(homes) < 2 or not all(b.addresses for b in homes):
            alternate = instr.op.startswith("vrow") or (instr.op.endswith(BY_BLOCKS) and instr.form != "apart")
            return HALF_OF_ROUNDS if alternate else 1.0
        groups = [self._group(b) for b in homes]
        return float(len(set(groups)) < len(groups))

    def _group(self, buffer: Buffer) -> int:
        vector = self.chip.vector
        return buffer.addresses[0] % vector.bank_groups_bytes // vector.repeat_bytes


def _anywhere(operand: Operand) -> bool:
    return isinstance(operand, Gm) and EACH in variables(operand.offset)


def _path(op: str, other: str) -> str:
    near = _MOVES.get(op)
    if near is None:
        return ""
    return f"{near}->{other}" if op in _STORES else f"{other}->{near}"
