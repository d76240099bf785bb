"""Vector instructions with their meaning in NumPy, packed many to a kernel, since compiling a kernel is what costs time.

Each case loads its operands from tensors of its own, runs one instruction on a tile and stores the result. Two blocks share the
rows (or the columns), so that the second one sees a tail whose size only run time knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, ONE, ZERO, Expr
from tile_eg.ir.kernel import Tensor
from tile_eg.ir.machine import block_steps, dot_elements
from tile_eg.ir.program import Buffer, Gm, Instr, Node, Program, Tile
from tile_eg.ops.types import BF16, F16, F32, DType, Level

from .simulated import numpy_type, simulated

UNARY: dict[str, Callable] = {
    "vexp": np.exp, "vln": np.log, "vabs": np.abs, "vsqrt": np.sqrt, "vrelu": lambda x: np.maximum(x, 0),
    "vrsqrt": lambda x: 1 / np.sqrt(x), "vreciprocal": lambda x: 1 / x, "vcopy": lambda x: x,
}  # fmt: skip
BINARY: dict[str, Callable] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
SCALAR: dict[str, Callable] = {
    "vadds": np.add, "vmuls": np.multiply, "vmaxs": np.maximum, "vmins": np.minimum,
}  # fmt: skip
COMPARE: dict[str, Callable] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
REDUCE: dict[str, Callable] = {"max": np.max, "sum": np.sum, "min": np.min}
OPS = (
    *UNARY, *SCALAR, *(f"v{b}{kind}" for b in BINARY for kind in ("", "_rows", "_cols", "_outer")),
    *(f"v{way}{r}" for way in ("row", "col") for r in REDUCE), "vcast", "vdup", "vaxpy", "vramp",
    *(f"vmuladd{kind}" for kind in ("", "_outer")),
    *(f"v{kind}_{c}" for kind in ("choose", "chooses", "mask") for c in COMPARE),
)  # fmt: skip
APPROXIMATE = ("vrsqrt", "vreciprocal")


@dataclass(frozen=True)
class Case:
    """One instruction on a tile of rows x cols; `tail` more rows (or columns), fewer than the tile has, belong to a second block.

    `gap` widens the pitch of the tile in UB by so many 32-byte blocks. `target` is what vcast makes. `blocks` is the form
    of a row reduction, `halves` (halves, folded) that of one by halves, `apart` that of an operation with rows.
    """

    op: str
    dtype: DType
    rows: int
    cols: int
    tail: int = 0
    by_cols: bool = False
    gap: int = 0
    swap: bool = False
    scalar: float = 1.5
    target: DType = F32
    blocks: bool = False
    halves: str = ""
    apart: bool = False

    @property
    def flat(self) -> bool:
        """The flat form is for one row, or for rows without gaps."""
        return self.rows == 1 or (self.cols * self.dtype.bytes % 32 == 0 and not self.gap and not (self.tail and self.by_cols))

    @property
    def reduces_split(self) -> bool:
        """The blocks share what is reduced: each stores a result of its own part."""
        return self.tail > 0 and self.op.startswith("vrow" if self.by_cols else "vcol")

    @property
    def shape(self) -> tuple[int, int]:
        return (self.rows, self.cols + self.tail) if self.by_cols else (self.rows + self.tail, self.cols)


@dataclass
class _Builder:
    """One case's tensors, buffers and instructions."""

    case: Case
    number: int

    def __post_init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.buffers: list[Buffer] = []
        self.nodes: list[Node] = []
        self.top = 0
        c = self.case
        part = lambda size, whole: ix.maximum(0, ix.minimum(size, whole - ix.var(BLOCK) * size)) if c.tail else ix.const(size)  # noqa: E731
        self.rows = ix.const(c.rows) if c.by_cols else part(c.rows, c.rows + c.tail)
        self.cols = part(c.cols, c.cols + c.tail) if c.by_cols else ix.const(c.cols)
        self.row = ZERO if c.by_cols or not c.tail else ix.var(BLOCK) * c.rows
        self.col = ix.var(BLOCK) * c.cols if c.by_cols and c.tail else ZERO

    def buffer(self, rows: int, cols: int, dtype: DType, gap: int = 0) -> Tile:
        block = 32 // dtype.bytes
        pitch = -(-cols // block) * block + gap * block
        name = f"u{self.number}_{len(self.buffers)}"
        b = Buffer(name, Level.UB, dtype, rows, cols, pitch, "nd", 1, (self.top,))
        self.top += -(-b.slot_bytes // 32) * 32
        self.buffers.append(b)
        return Tile(name)

    def tensor(self, shape: tuple[int, ...], dtype: DType, output: bool = False) -> str:
        name = f"{'Y' if output else 'X'}{self.number}_{len(self.tensors)}"
        self.tensors.append(Tensor(name, dtype, shape, output))
        return name

    def load(self, dtype: DType) -> Tile:
        """A tile of the case's shape."""
        c = self.case
        tile = self.buffer(c.rows, c.cols, dtype, c.gap)
        gm = Gm(self.tensor(c.shape, dtype), self.row * c.shape[1] + self.col, c.shape[1])
        self.nodes.append(Instr("gm_to_ub", tile, (gm,), self.rows, self.cols))
        return tile

    def drawn(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers for a tensor; those to be compared are often equal."""
        x = rng.uniform(0.5, 2.0, shape)
        return np.round(4 * x) / 4 if self.case.op.startswith(("vchoose", "vmask")) else x

    def vector(self, along_rows: bool) -> Tile:
        """One value for each row, or for each column."""
        c = self.case
        n, at, valid = (c.rows, self.row, self.rows) if along_rows else (c.cols, self.col, self.cols)
        tile = self.buffer(1, n, c.dtype)
        gm = Gm(self.tensor((c.shape[0 if along_rows else 1],), c.dtype), at, n)
        self.nodes.append(Instr("gm_to_ub", tile, (gm,), ONE, valid))
        return tile

    def store(self, tile: Tile, shape: tuple[int, ...], offset: Expr, rows: Expr, cols: Expr) -> None:
        dtype = next(b.dtype for b in self.buffers if b.name == tile.buffer)
        name = self.tensor(shape, dtype, output=True)
        self.nodes.append(Instr("ub_to_gm", Gm(name, offset, shape[-1]), (tile,), rows, cols))

    def run(self, op: str, dst: Tile, *srcs: Tile, **fields: object) -> None:
        form = fields.pop("form", "flat" if self.case.flat else "rows")
        self.nodes.append(Instr(op, dst, srcs, self.rows, self.cols, form=form, **fields))  # type: ignore[arg-type]

    def build(self) -> None:
        c, name = self.case, self.case.op
        if name.startswith(("vrow", "vcol")):
            return self.reduction() if name != "vrowdot" else self.dot()
        if name == "vcast":
            dst = self.buffer(c.rows, c.cols, c.target, c.gap)
            source = self.load(c.dtype)
            dense = c.rows == 1 or (c.flat and c.cols * c.target.bytes % 32 == 0)
            self.run(name, dst, source, form="flat" if dense else "rows")
        elif name == "vdup":
            dst = self.buffer(c.rows, c.cols, c.dtype, c.gap)
            self.run(name, dst, scalar=c.scalar)
        elif name == "vramp":
            dst = self.buffer(c.rows, c.cols, c.dtype, c.gap)
            self.run(name, dst, bound=ix.var(BLOCK) * 7 - 3, steps=(-2, 3) if c.swap else (5, 1))
        elif name.startswith(("vchoose", "vmask")):
            dst = self.choice()
        elif name in ("vaxpy", "vmuladd"):
            dst = self.load(c.dtype)
            self.run(name, dst, *(self.load(c.dtype) for _ in range(1 if name == "vaxpy" else 2)), scalar=c.scalar)
        elif name.startswith("vmuladd"):
            dst = self.load(c.dtype)
            self.by_blocks(dst)
        else:
            dst = self.elementwise()
        return self.store(dst, c.shape, self.row * c.shape[1] + self.col, self.rows, self.cols)

    def choice(self) -> Tile:
        """Flat where whole rounds of 256 bytes are compared, whatever the tail; a tail of a single row counts its elements."""
        c = self.case
        dst, size = self.buffer(c.rows, c.cols, c.dtype, c.gap), c.dtype.bytes
        short = c.tail and c.rows == 1 and c.by_cols
        rounds = c.cols * size % 256 == 0 if c.tail or c.rows == 1 else c.rows * c.cols * size % 256 == 0
        flat = c.flat and rounds and not short
        bits = self.buffer(1, max(64, -(-c.rows * c.cols // 8)) // size, c.dtype)
        sources = [self.load(c.dtype) for _ in range({"vchoose": 4, "vchooses": 3, "vmask": 2}[c.op[: c.op.index("_")]])]
        fields = {} if c.op.startswith("vchoose_") else {"scalar": c.scalar, "other": -0.75}
        self.run(c.op, dst, *sources, form="flat" if flat else "rows", scratch=bits, **fields)
        return dst

    def elementwise(self) -> Tile:
        c, name = self.case, self.case.op
        dst = self.buffer(c.rows, c.cols, c.dtype, c.gap)
        if name.endswith(("_rows", "_outer")):
            self.by_blocks(dst)
            return dst
        a = self.load(c.dtype)
        if name.endswith("_cols"):
            self.run(name, dst, a, self.vector(False), form="rows", swap=c.swap)
        elif name[1:] in BINARY:
            self.run(name, dst, a, self.load(c.dtype))
        else:
            self.run(name, dst, a, scalar=c.scalar)
        return dst

    def by_blocks(self, dst: Tile) -> None:
        """Of a tile, or of one row for all, with a number of each row."""
        c = self.case
        a = self.vector(False) if c.op.endswith("_outer") else self.load(c.dtype)
        each = (64 if c.apart else 32) // c.dtype.bytes
        v, wide = self.vector(True), self.buffer(-(-c.rows // 8) * 8, each, c.dtype)
        self.nodes.append(Instr("vbrcb", wide, (v,), self.rows, ix.const(each), form="apart" if c.apart else "flat"))
        self.run(c.op, dst, a, wide, form="apart" if c.apart else "rows", swap=c.swap)

    def dot(self) -> None:
        c = self.case
        dst, sources = self.buffer(1, c.rows, c.dtype), (self.load(c.dtype), self.load(c.dtype))
        self.run(c.op, dst, *sources, form="blocks", scratch=self.buffer(1, dot_elements(c.rows, c.cols), c.dtype))
        self.store(dst, (c.rows,), ZERO, ONE, self.rows)

    def reduction(self) -> None:
        c = self.case
        along_rows = c.op.startswith("vrow")
        n, at, valid = (c.rows, self.row, self.rows) if along_rows else (c.cols, self.col, self.cols)
        dst, src = self.buffer(1, n, c.dtype), self.load(c.dtype)
        partial = max(8, sum(left for _, left in block_steps(c.cols, c.rows) if left > 1)) if c.blocks else 256 // c.dtype.bytes
        scratch = self.buffer(c.rows, partial, c.dtype) if along_rows else None
        if c.halves:
            lanes = 256 // c.dtype.bytes
            scratch = self.buffer(*((c.rows, c.cols // lanes // 2 * lanes) if along_rows else (c.rows // 2, c.cols)), c.dtype)
        self.run(c.op, dst, src, form="blocks" if c.blocks else c.halves or "rows", scratch=scratch)
        if c.reduces_split:
            self.store(dst, (2, n), ix.var(BLOCK) * n, ONE, valid)
        else:
            self.store(dst, (c.shape[0 if along_rows else 1],), at, ONE, valid)


def meaning(c: Case, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """What the case computes, on whole tensors in double precision."""
    x = [a.astype(np.float64) for a in inputs]
    if c.op in UNARY:
        return UNARY[c.op](x[0])
    if c.op in SCALAR:
        return SCALAR[c.op](x[0], c.scalar)
    if c.op == "vdup":
        return np.full(c.shape, c.scalar)
    if c.op == "vcast":
        return x[0]
    if c.op == "vramp":
        return positions(c)
    if c.op.startswith(("vchoose", "vmask")):
        against, first, second = x[1:] if c.op.startswith("vchoose_") else (c.scalar, *x[1:], -0.75)[:3]
        return np.where(COMPARE[c.op.rpartition("_")[2]](x[0], against), first, second)
    if c.op == "vaxpy":
        return x[0] + c.scalar * x[1]
    if c.op.startswith("vmuladd"):
        return x[0] + x[1] * (x[2] if c.op == "vmuladd" else x[2][:, None])
    if c.op == "vrowdot":
        return np.sum(x[0] * x[1], axis=1)
    if c.op.startswith(("vrow", "vcol")):
        axis = 1 if c.op.startswith("vrow") else 0
        parts = np.split(x[0], [c.cols if axis else c.rows], axis) if c.reduces_split else [x[0]]
        return np.squeeze(np.stack([REDUCE[c.op[4:]](part, axis=axis) for part in parts]))
    op, _, kind = c.op[1:].partition("_")
    a, b = x[0], x[1][:, None] if kind in ("rows", "outer") else x[1]
    return BINARY[op](b, a) if c.swap else BINARY[op](a, b)


def positions(c: Case) -> np.ndarray:
    """The tiles of both blocks, one beside the other, as far as they are stored."""
    i, j = np.ogrid[: c.rows, : c.cols]
    down, right = (-2, 3) if c.swap else (5, 1)
    tiles = [7 * block - 3 + down * i + right * j for block in range(2)]
    return np.concatenate(tiles, axis=1 if c.by_cols else 0)[: c.shape[0], : c.shape[1]]


def tolerance(c: Case) -> float:
    """Relative to 1 + |value|: rounding of the type, of long sums, of the approximate instructions (contract, clause 17)."""
    if c.op in APPROXIMATE:
        return 2e-3 if c.dtype is F16 else 2e-4
    terms = {"vrowsum": c.shape[1], "vrowdot": c.shape[1], "vcolsum": c.shape[0]}.get(c.op, 2)
    unit = {F16: 2**-10, BF16: 2**-7, F32: 2**-22}
    worst = max(unit[c.dtype], unit[c.target]) if c.op == "vcast" else unit[c.dtype]
    return worst * max(2.0, terms**0.5 * 4)


def check(cases: Sequence[Case], seed: int = 0) -> None:
    """All cases in one kernel, each one's result against its meaning."""
    rng = np.random.default_rng(seed)
    builders = [_Builder(c, n) for n, c in enumerate(cases)]
    arrays: dict[str, np.ndarray] = {}
    for b in builders:
        b.build()
        arrays |= {t.name: b.drawn(rng, t.shape).astype(numpy_type(t.dtype)) for t in b.tensors if not t.output}
    tensors = tuple(t for b in builders for t in b.tensors)
    buffers = tuple(x for b in builders for x in b.buffers)
    nodes = tuple(_once(b) for b in builders)
    vector = tuple(n for part in nodes for n in part)
    got = simulated(Program("k", "910B2", "AIV_ONLY", tensors, 2, False, 0, buffers, (), vector), arrays)
    for b in builders:
        out = next(t for t in b.tensors if t.output)
        want = meaning(b.case, [arrays[t.name] for t in b.tensors if not t.output])
        error = np.abs(got[out.name].astype(np.float64).reshape(want.shape) - want) / (1 + np.abs(want))
        assert error.max() <= tolerance(b.case), (b.case, error.max())


def _once(b: _Builder) -> list[Node]:
    """A case without a tail belongs to the first block alone."""
    if b.case.tail:
        return b.nodes
    return [replace(n, when=ix.less(ix.var(BLOCK), 1)) if isinstance(n, Instr) else n for n in b.nodes]
