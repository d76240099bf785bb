"""What a program is made of: planned buffers, windows of them, instructions, flags and barriers, loops and guards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Union

from tile_eg.errors import Span
from tile_eg.ir.index import ONE, ZERO, Expr
from tile_eg.ir.program.held import Held
from tile_eg.ops import elementwise
from tile_eg.ops.physical import AIV, PIPES
from tile_eg.ops.records import record
from tile_eg.ops.repeats import REPEATED
from tile_eg.ops.whole_tiles import WHOLE_TILES

NOT_KEPT = {"kept": False}
"""Of a field that has no plain form (`ir/plain.py`): a program that comes from a cache has its default there."""


@record(guarded=False)
class Tile:
    """A window of a buffer's slot that starts at (row, col), in elements."""

    buffer: str
    slot: Expr = ZERO
    row: Expr = ZERO
    col: Expr = ZERO


@record(guarded=False)
class Gm:
    """A window of a GM tensor: its first element, and the elements between two rows, which sizes known at run time may decide."""

    tensor: str
    offset: Expr
    stride: int | Expr


Operand = Union[Tile, Gm]

UNARY = (*(op.name for op in elementwise.UNARY.values() if op.native), "copy")
BINARY = tuple(elementwise.BINARY)
SCALAR = tuple(f"{op.name}s" for op in elementwise.BINARY.values() if op.with_scalar)
REDUCE = tuple(elementwise.REDUCE)
COMPARE = tuple(elementwise.COMPARE)
BY_BLOCKS = ("_rows", "_outer")
"""Ends of the names of instructions whose last operand is a vbrcb result."""
SPREAD = (*BY_BLOCKS, "_cols")
MULTIPLY_ADD = ("vmuladd", "vmuladd_outer")
VECTOR = (
    *(f"v{u}" for u in UNARY),
    *(f"v{b}" for b in BINARY),
    *(f"v{s}" for s in SCALAR),
    *(f"v{b}_rows" for b in BINARY),
    *(f"v{b}_cols" for b in BINARY),
    *(f"v{b}_outer" for b in BINARY),
    *(f"vrow{r}" for r in REDUCE),
    *(f"vcol{r}" for r in REDUCE),
    "vrowdot",
    "vcast",
    "vbytes",
    "vnibbles",
    "vpack",
    "vdup",
    "vbeyond",
    "vbrcb",
    "vstrips",
    "vaxpy",
    *MULTIPLY_ADD,
    *(f"vchoose_{c}" for c in COMPARE),
    *(f"vchooses_{c}" for c in COMPARE),
    *(f"vmask_{c}" for c in COMPARE),
    *(f"vcompare_{c}" for c in COMPARE),
    "vbitselect",
    "vramp",
    "vsort32",
    "vtranspose",
    "vpiece",
    "vput",
    *(f"v{w.name}" for w in WHOLE_TILES.values() if not w.made_of_others),
    *(r.instruction for r in REPEATED.values()),
)
BY_ROWS = tuple(f"v{w.name}" for w in WHOLE_TILES.values() if w.by_rows)
"""Of these `steps` are the rows and columns, and `cols` all elements."""
OVERWRITES = ("vaxpy", *MULTIPLY_ADD, "vbeyond")


@record
class Formula:
    """What the scalar unit computes before it issues an instruction.

    op: number (args: a float), argument (the name of a number that the launch passes), index (an Expr), element (one of UB, a
    Tile, or of an input, a Gm), scalar (the name of a number that it keeps), cast, half (a float rounded to f16), neg, sqrt,
    abs, add, sub, mul, div, floordiv, floormod, max, min, select (a condition and two formulas), bitand, bitor, bitxor, shl, shr.
    Conditions, which are 1 or 0: lt, le, gt, ge, eq, ne, and, or, not. `whole`: of whole numbers.
    """

    op: str
    args: tuple
    whole: bool = False

    def operands(self) -> tuple[Operand, ...]:
        """The elements of buffers and tensors that it reads."""
        if self.op == "element":
            return self.args
        return tuple(t for a in self.args if isinstance(a, Formula) for t in a.operands())

    def elements(self) -> tuple[Tile, ...]:
        """The elements of buffers that it reads."""
        return tuple(t for t in self.operands() if isinstance(t, Tile))

    def scalars(self) -> tuple[str, ...]:
        """The kept numbers in it that are no index expressions."""
        if self.op == "scalar":
            return self.args
        return tuple(name for a in self.args if isinstance(a, Formula) for name in a.scalars())

    def indices(self) -> tuple[Expr, ...]:
        """The index expressions in it."""
        if self.op == "element":
            return tuple(e for t in self.args for e in ((t.offset,) if isinstance(t, Gm) else (t.slot, t.row, t.col)))
        found = [(a,) if isinstance(a, Expr) else a.indices() for a in self.args if isinstance(a, Expr | Formula)]
        return tuple(e for part in found for e in part)


@record(guarded=False)
class Instr:
    """One instruction on one pipe; its operands are windows, `rows` x `cols` (x `depth`) is what is valid and processed.

    gm_to_l1   dst nz tile <- rows x cols of src (Gm, or Tile in WS); ND to NZ on the way. Form strips: src holds strips of 32
               bytes a row, `stride` elements from one to the next. Form padded: `depth` rows of src from row `bound` of dst on,
               and zeros in its others
    l1_to_l0a  dst zz (rows=m, depth=k) <- src nz tile; attr transpose: src holds k x m
    l1_to_l0b  dst zn (depth=k, cols=n) <- src nz tile that holds k x n; attr transpose: src holds n x k
               Form scales of both: srcs[1] are the scales of the window, which go along to L0A_MX and L0B_MX
    mmad       dst nz (L0C window) (+)= srcs[0] @ srcs[1]; rows=m, cols=n, depth=k; `init`: 1 overwrites dst, 0 adds; form scales:
               both operands times their scales
    fixpipe    dst (Gm, Tile in WS, Tile in L1) <- src (L0C), cast to the destination's dtype; attr relu; of i32 to f16, and
               to i8, times `scalar`, held with 10 bits of mantissa. `depth`: the rows of
               the product that these are of.
               On architecture 3510 also Tile in UB: of a halved buffer (form dual) each vector core gets its rows, of any other
               each gets all
    ub_to_l1   dst nz tile <- src nd;   l1_to_ub  dst nd <- src nz tile, forms as fixpipe into UB (architecture 3510)
    gm_to_ub   dst nd <- src (Gm, or Tile in WS);   ub_to_gm  dst (Gm or WS) <- src nd
    vOP        dst = OP src (exp ln abs sqrt rsqrt relu reciprocal copy); vadd.. dst = a OP b; vadds.. dst = a OP scalar;
               vadds with a `bound`: dst = a + bound, of f32
    vOP_rows   dst[i, j] = a[i, j] OP b[i]; b is a vbrcb result (rows x 32 bytes); attr swap: b OP a
    vOP_cols   dst[i, j] = a[i, j] OP b[j]; b is a vector;                          attr swap: b OP a
    vOP_outer  dst[i, j] = a[j] OP b[i]; a is a vector, b a vbrcb result;           attr swap: b OP a
    vrowR      dst vector of rows <- src tile, reduced over its cols (max sum min); `scratch` holds partial rows
    vrowdot    dst vector of rows <- srcs[0] * srcs[1], summed over the cols; `scratch` holds a part (`ir.machine.dot_elements`)
    vcolR      dst vector of cols <- src tile, reduced over its rows
    vcast      dst (its dtype) <- src;  vdup  dst = scalar;  vbrcb  dst (rows x 32 bytes) <- src vector, each element repeated
    vbeyond    dst = scalar in the columns from `bound` on, up to `cols`, and in the rows behind `rows`, up to `depth`
    vbytes     dst (i8 or u8) <- src (i16): the two bytes of each element, the lower one first; rows and cols are those of dst
    vnibbles   dst (f16) <- src (i8): the two numbers of 4 bits of each byte, the lower one first; rows and cols are those of dst
    vpack      dst (u8) <- src: a bit for each element that is not 0, eight elements a byte; rows and cols are those of dst
    vstrips    dst[j / n, n * i + j % n] = src[i, j], n elements in 32 bytes: strips one below the other
    vcast      of form strips: the same of the cast elements, of 16 bits
    vaxpy      dst += scalar * src;     vmuladd  dst += a * b;     vmuladd_outer  the same of a[j] and b[i]
    vchoose_OP dst = x where a OP b, else y (srcs a, b, x, y);  vchooses_OP  a OP scalar + bound (srcs a, x, y);
    vmask_OP   dst = x where a OP scalar + bound, else `other` (srcs a, x);
               OP: lt le gt ge eq ne; `scratch` holds the bits of the comparison
    vbitselect  dst = srcs[1] where the bit of an element in srcs[0] (bytes, the lowest bit first) is 1, else srcs[2], or
               `other` where there is none
    vcompare_OP  dst (bytes) = the bits of srcs[0] OP srcs[1], or OP scalar; whole rounds of 256 bytes
    store_element  dst (one element of UB) = `value`, by the scalar unit
    l1_zero    dst nz tile = 0, the whole slot; form window: rows x cols of it
    vgather, vevery, vsort, vmerge   dst <- srcs, over runs of elements, `cols` that they work through (`ops/whole_tiles.py`;
               `steps` are their numbers); vmerge takes two to four sources, its steps are the pairs in each
    vsort32    dst = pairs of srcs[0] and the 32 bits of srcs[1], each 32 of them in order, the largest first
    vtranspose  dst[j, i] <- src[i, j], of `steps` rows and columns, which are whole squares of 16 rows of 32 bytes;
                a third step: elements from one row of src to the next
    vrepeated_OP  dst <- srcs by the masks, repeats and strides in `steps` (`ops/repeats.py`); `mode`: what is written
    vpiece     dst <- the window of src that begins at its element `bound`
    vput       dst <- srcs[0] with srcs[1], rows x cols of it, in the window that begins at its element `bound`
    vramp      dst[i, j] = bound + steps[0] * i + steps[1] * j, of i32, of f32 up to 2^24, of f16 up to 2048; or from `value` on

    `form` of a vector instruction: flat (rows * pitch elements in one run; every operand has the same pitch and cols fills it, or
    rows is 1) or rows (mask and repeat over rows); of vrowR also blocks (`ir.machine.block_steps`), of vcolR halves
    (`ir.machine.halves`); apart of vOP_rows, whose cols fill stretches of 512 bytes, and of the vbrcb that it reads: b lies in
    both bank groups (rows x 64 bytes, by eights).
    `atomic` (fixpipe and ub_to_gm into a tensor): add, max or min; what is there becomes the sum, or the larger or smaller one.
    `unit` of an mmad and of a fixpipe is the unit flag of the blocks of L0C that it touches: 2 keeps them for its own pipe, 3
    hands them over to the other one, block by block; 0: other flags do.
    `pad` of gm_to_ub: what stands behind the end of each row, up to the end of its 32 bytes. `bound` of gm_to_ub: how many of
    `cols` are zeros to the left of what is loaded, 32 bytes of them at most.
    `mode` of a vcast: how it rounds, where not to the nearest even (CAST_FLOOR and the like). A vcast of i32 to f16 multiplies by
    `scalar`.
    `value`: what the scalar unit computes from elements of UB; it takes the place of `scalar`.
    `span` is the place in the source, `rules` who made it, `held` what the result stands for, `when` (0 or 1) guards it.
    """

    op: str
    dst: Operand
    srcs: tuple[Operand, ...] = ()
    rows: Expr = ONE
    cols: Expr = ONE
    depth: Expr = ONE
    scalar: float = 0.0
    init: Expr = ONE
    bound: Expr = ZERO
    other: float = 0.0
    steps: tuple[int, ...] = (0, 0)
    transpose: bool = False
    relu: bool = False
    swap: bool = False
    atomic: str = ""
    form: str = "flat"
    scratch: Tile | None = None
    when: Expr = ONE
    unit: Expr = ZERO
    value: Formula | None = None
    pad: float | None = None
    mode: str = ""
    span: Span | None = field(default=None, compare=False)
    rules: tuple[str, ...] = ()
    held: Held | None = field(default=None, compare=False, repr=False, metadata=NOT_KEPT)

    @property
    def pipe(self) -> str:
        return PIPES[self.op][1] if self.op in PIPES else "V"

    @property
    def core(self) -> str:
        return PIPES[self.op][0] if self.op in PIPES else AIV

    def hands_over(self, other: Instr) -> bool:
        """Whether unit flags order the two: an mmad and a fixpipe of the same blocks of L0C."""
        return {self.op, other.op} == {"mmad", "fixpipe"} and ZERO not in (self.unit, other.unit)

    def reads(self) -> tuple[Operand, ...]:
        """What it reads, an accumulated or overwritten destination included."""
        again = self.op in OVERWRITES or (self.op == "mmad" and self.init != ONE)
        elements = self.value.elements() if self.value else ()
        return (*self.srcs, *elements, self.dst) if again else (*self.srcs, *elements)

    def writes(self) -> tuple[Operand, ...]:
        return (self.dst, self.scratch) if self.scratch else (self.dst,)


@record
class Scalar:
    """The scalar unit keeps `value` under a name, until it keeps another one there.

    Index expressions have a whole number by `ir.index.scalar(name)`, formulas have any by `Formula("scalar", (name,))`.
    """

    name: str
    value: Formula
    span: Span | None = field(default=None, compare=False)


@record
class SetFlag:
    """SetFlag<src_dst>(id): takes effect when pipe `src` has finished what came before."""

    src: str
    dst: str
    id: Expr
    span: Span | None = field(default=None, compare=False)


@record
class WaitFlag:
    src: str
    dst: str
    id: Expr
    span: Span | None = field(default=None, compare=False)


@record
class PipeBarrier:
    pipe: str
    span: Span | None = field(default=None, compare=False)


@record
class CrossSet:
    """CrossCoreSetFlag<mode, pipe>(id): adds one when `pipe` has finished what came before. A loop may decide the id.

    Mode 2 joins the cube core and the vector cores of a block, 1 its vector cores, 0 the cores of one kind of all blocks.
    """

    pipe: str
    id: int | Expr
    span: Span | None = field(default=None, compare=False)
    mode: int = 2


@record
class CrossWait:
    """CrossCoreWaitFlag(id): takes one; on A2/A3 it stops the issue of everything behind it, on all pipes. `mode` is that of the
    sets that it waits for."""

    id: int | Expr
    span: Span | None = field(default=None, compare=False)
    mode: int = 2


@record
class SyncAll:
    """SyncAll<false>(): every core of every block of the launch waits here for all others, at the top of each stream.

    All blocks of the launch run at a time. What a core wrote to GM before it, all others find behind it.
    """

    span: Span | None = field(default=None, compare=False)


@record
class Print:
    """What the scalar unit prints when it is there: `text`, a C format, with `args` in it; or `count` elements of `shown` under
    the number `id`, once all pipes of the core have done what came before; or `text` as a fault, where `holds` is 0.
    `watched`: nothing is printed, but a simulator that watches is told `args`, and `count` bytes from the slot of `shown` on."""

    text: str = ""
    args: tuple[Formula, ...] = ()
    shown: Operand | None = None
    id: int = 0
    count: int = 0
    holds: Expr = ONE
    span: Span | None = field(default=None, compare=False)
    watched: bool = False


@record
class Loop:
    """for var in 0 .. trips; where `until` is given, it says how many trips there are, `trips` at most."""

    var: str
    trips: int
    body: tuple[Node, ...]
    span: Span | None = field(default=None, compare=False)
    until: Expr | None = None


@record
class Let:
    """A name for an index expression, whose value is in `least` .. `most`."""

    name: str
    value: Expr
    most: int
    least: int = 0


@record
class Tasks(Loop):
    """A launch block's loop over its tiles of the grid, outermost in a stream. No two trips write the same elements of a tensor.
    `trips` is the most that any block has, `until` how many this one has: `trips` or one less. `lets` name what each trip works
    on, in order. Where each also ends what the one before began, there is one more than tiles: `behind` names how many these are,
    and `before` has names of how often loops run, each with that for the tile before."""

    until: Expr = ONE
    lets: tuple[Let, ...] = ()
    behind: str = ""
    before: tuple[tuple[str, str], ...] = ()


@record
class When:
    """The body runs where the condition is 1 (the first and last trips of a skewed loop)."""

    condition: Expr
    body: tuple[Node, ...]


@record
class While(When):
    """The body runs again and again, as long as the condition is 1 before it."""


Node = Union[Instr, Scalar, SetFlag, WaitFlag, PipeBarrier, CrossSet, CrossWait, SyncAll, Print, Loop, When]


def walk(nodes: tuple[Node, ...]) -> Iterator[Node]:
    """Every node in program order, loops and guards before their bodies."""
    for n in nodes:
        yield n
        if isinstance(n, Loop | When):
            yield from walk(n.body)
