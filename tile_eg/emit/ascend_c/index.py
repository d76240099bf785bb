"""Names, index expressions and tensor windows as Ascend C text, and the checks that every instruction field fits.

Sizes stay `ir.index` expressions until they are printed, so that one bound check serves constants and run-time sizes alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count

from tile_eg.chips import load_chip
from tile_eg.emit.ascend_c.cpp import BESIDE_COMPARISONS, Cpp, Part, fits
from tile_eg.emit.ascend_c.used import expressions_of, read_outside, variables_of
from tile_eg.emit.names import RESERVED, argument_names, kernel_symbol, number_names, size_names, spelled
from tile_eg.errors import LimitError, PlanError
from tile_eg.ir import index as ix
from tile_eg.ir.index import BLOCK, EACH, SUB, ZERO, Expr, Interval
from tile_eg.ir.index_elements import all_elements_in
from tile_eg.ir.machine import MAX_BLOCKS
from tile_eg.ir.program import Buffer, Gm, Instr, Let, Loop, Node, Operand, Program, Scalar, Tasks, Tile, When, walk
from tile_eg.ir.sizes import size, sizes_in
from tile_eg.ops.types import F32, DType, Level

LINE = 120
FIELD32 = 2**32 - 1


class EmitError(PlanError):
    """An instruction that has no text: an error of ours."""


class FieldError(EmitError, LimitError):
    """An instruction with a number that its field cannot hold."""


def ceil_div(e: Expr, n: int) -> Expr:
    return (e + (n - 1)) // n


def round_up(e: Expr, n: int) -> Expr:
    return ceil_div(e, n) * n


def loops_of(nodes: Iterable[Node]) -> dict[str, Interval]:
    """Every loop variable and every other name below with the interval it runs over."""
    out: dict[str, Interval] = {}
    for n in nodes:
        if isinstance(n, Loop):
            out[n.var] = (0, max(n.trips - 1, out.get(n.var, (0, 0))[1]))
        if isinstance(n, Tasks):
            for let in n.lets:
                out[let.name] = (0, max(let.most, out.get(let.name, (0, 0))[1]))
        if isinstance(n, Loop | When):
            for v, (_, high) in loops_of(n.body).items():
                out[v] = (0, max(high, out.get(v, (0, 0))[1]))
    return out


def counted_in(nodes: Iterable[Node], ranges: dict[str, Interval]) -> dict[str, Interval]:
    """The loops whose trips follow from sizes known at run time: their variables with all that they may be."""
    loops = (n for n in walk(tuple(nodes)) if isinstance(n, Loop) and n.until is not None)
    out = {}
    for n in loops:
        assert n.until is not None
        most = ix.MOST_SIZE if isinstance(n, Tasks) else ix.bounds(n.until, ranges)[1]
        out[n.var] = (0, max(0, n.trips - 1, most - 1))
    return out


@dataclass
class Scope:
    """What the text of one core may refer to: C++ names, ranges of variables, the buffers of the program.

    `values` declares the hoisted sizes (named in `cpp`), `indices` those of a tile, by the place of the loop over tiles.
    `changing` are the kept numbers that are set in several places or read outside of their block, and whether they are whole.
    """

    program: Program
    core: str
    cpp: Cpp = field(init=False)
    names: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    ranges: dict[str, Interval] = field(default_factory=dict)
    values: dict[Expr, str] = field(default_factory=dict)
    indices: dict[int, list[str]] = field(default_factory=dict)
    changing: dict[str, bool] = field(default_factory=dict)
    _writers: dict[str, list[Instr]] | None = None

    def __post_init__(self) -> None:
        p = self.program
        loops, arguments = loops_of(p.core(self.core)), argument_names(p)
        loops |= {let.name: (0, let.most) for let in p.lets}
        most = MAX_BLOCKS if p.sizes and p.sizes.blocks.value is None else p.blocks
        self.ranges = {**loops, BLOCK: (0, max(0, most - 1)), SUB: (0, 1), EACH: (0, 0)}
        counts = {name: (low, high + 1) for name, (low, high) in loops.items()}
        self.ranges |= {name: values for name, values in counts.items() if not fits(values)}  # int64_t, as the count is
        self.cpp, sizes = Cpp(self.ranges), size_names(p)
        scalars = Counter(n.name for n in walk(p.core(self.core)) if isinstance(n, Scalar))
        taken = {*RESERVED, *arguments.values(), *sizes.values(), *number_names(p).values()}
        variables = spelled([*loops, *scalars], taken)
        self.cpp.named |= {ix.var(name): variables[name] for name in loops}
        if p.sizes:
            self.cpp.named |= {size(name, n): sizes[name] for name, n in p.sizes.usual}
            self.ranges |= counted_in(p.core(self.core), self.ranges)
        self.cpp.scalars |= {name: variables[name] for name in scalars}
        self.cpp.scalars |= {name: word for name, word in number_names(p).items() if name in p.wholes}
        outer = read_outside(p.core(self.core), set()) if scalars else set()
        declared = {n for n, times in scalars.items() if times > 1 or n in outer}
        self.changing = {n.name: n.value.whole for n in walk(p.core(self.core)) if isinstance(n, Scalar) and n.name in declared}
        self.taken = {*RESERVED, *arguments.values(), *sizes.values(), *number_names(p).values(), *self.ranges,
                      *variables.values(), kernel_symbol(p)}  # fmt: skip
        self.architecture = load_chip(p.chip).architecture
        self.buffers = {b.name: b for b in p.buffers}
        self.tensors = {t.name: t for t in p.in_gm}
        for t in p.in_gm:
            self.cpp.tensors[t.name] = self.names[f"GM {t.name}"] = self.fresh(f"{t.name}_gm")
        for b in p.buffers:
            self.names[b.name] = self.fresh(b.name.replace(".", "_"), f"{b.name.replace('.', '_')}_{b.level.lower()}")

    @cached_property
    def variables(self) -> set[str]:
        """Those in the index expressions of this core."""
        return variables_of(self.program.core(self.core))

    @cached_property
    def lets(self) -> list[Let]:
        """The names of the whole program that this core uses."""
        return [let for let in self.program.lets if let.name in self.variables]

    @cached_property
    def touched(self) -> set[str]:
        """Buffers and tensors that this core's instructions name."""
        out = {r.args[0] for let in self.lets for r in all_elements_in(let.value)}
        for n in walk(self.program.core(self.core)):
            if isinstance(n, Instr):
                named = (n.dst, *n.srcs, *([n.scratch] if n.scratch else []), *(n.value.operands() if n.value else ()))
                out |= {o.tensor if hasattr(o, "tensor") else o.buffer for o in named}
            if isinstance(n, Scalar):
                out |= {o.tensor if hasattr(o, "tensor") else o.buffer for o in n.value.operands()}
            out |= {r.args[0] for e in expressions_of(n) for r in all_elements_in(e)}
        return out

    def fresh(self, *wishes: str) -> str:
        """The first of these C++ names that is free, else the last one with a number."""
        numbered = (f"{wishes[-1]}{n}" for n in count(2))
        name = next(n for n in chain(wishes, numbered) if n not in self.taken)
        self.taken.add(name)
        return name

    def counter(self, wish: str, count: Expr | int) -> str:
        """A fresh name for a variable that counts up to below `count`."""
        name = self.fresh(wish)
        self.ranges[name] = (0, max(0, self.high(ix.wrap(count)) - 1))
        return name

    def bounds(self, e: Expr) -> Interval:
        return self.cpp.bounds(e)

    def high(self, e: Expr) -> int:
        return self.bounds(e)[1]

    def low(self, e: Expr) -> int:
        return self.bounds(e)[0]

    def limit(self, e: Expr) -> str:
        """What something is compared with: in brackets where it is a comparison itself."""
        return self.cpp(e, BESIDE_COMPARISONS)

    def field(self, i: Instr, what: str, e: Expr | int, limit: int) -> str:
        """An instruction field; FieldError where it may be larger than the field holds."""
        e = ix.wrap(e)
        if self.high(e) > limit and not (limit >= FIELD32 and sizes_in(e)):  # that rows lie so far apart is seen at the launch
            raise FieldError(f"{i.op}: {what} is up to {self.high(e)}, its field holds {limit}", i.span)
        return self.cpp(e)

    # Windows

    def writers(self, buffer: str) -> list[Instr]:
        """The instructions of this core that write a buffer."""
        if self._writers is None:
            self._writers = {}
            for n in walk(self.program.core(self.core)):
                if isinstance(n, Instr) and isinstance(n.dst, Tile):
                    self._writers.setdefault(n.dst.buffer, []).append(n)
        return self._writers.get(buffer, [])

    def buffer(self, t: Tile) -> Buffer:
        return self.buffers[t.buffer]

    def dtype(self, o: Operand) -> DType:
        return self.buffer(o).dtype if isinstance(o, Tile) else self.tensors[o.tensor].dtype

    def at(self, o: Operand, offset: Expr | int = ZERO) -> str:
        """The tensor that starts at `offset` elements behind the window's first one (layout nd)."""
        if isinstance(o, Gm):
            return self._indexed(self.names[f"GM {o.tensor}"], o.offset + offset)
        b = self.buffer(o)
        return self._indexed(self.names[b.name], self._slot(b, o.slot), o.row * b.pitch + o.col + offset)

    def pairs(self, o: Gm) -> str:
        """A window of scales, which text names by twos."""
        return self._indexed(self.names[f"GM {o.tensor}"], o.offset // 2)

    def fractal(self, t: Tile, row: Expr | int, col: Expr | int, plus: Expr | int = ZERO) -> str:
        """The element (row, col) of a window in an nz buffer; col is a multiple of the fractal's width."""
        b = self.buffer(t)
        r, c, c0 = t.row + row, t.col + col, self.c0(b)
        return self._indexed(self.names[b.name], self._slot(b, t.slot), c // c0 * (padded_rows(b) * c0) + r * c0 + plus)

    def c0(self, b: Buffer) -> int:
        return 16 if b.level is Level.L0C else 32 // b.dtype.bytes

    def slot(self, t: Tile, offset: Expr | int = ZERO) -> str:
        """`offset` elements into the slot."""
        b = self.buffer(t)
        return self._indexed(self.names[b.name], self._slot(b, t.slot), ix.wrap(offset))

    def _indexed(self, name: str, *offsets: Expr | Part) -> str:
        parts = [o for o in offsets if o != ZERO]
        return f"{name}[{self.cpp.summed(parts)}]" if parts else name

    def _slot(self, b: Buffer, slot: Expr) -> Expr | Part:
        """Where a slot starts, in elements from the buffer's first address."""
        starts = [(a - min(b.addresses)) // b.dtype.bytes * b.dtype.together for a in b.addresses] or [0]
        if self.low(slot) < 0 or self.high(slot) >= len(starts):
            raise EmitError(f"slots {self.low(slot)} to {self.high(slot)} of {b.name}, which has {len(starts)}")
        if len(starts) == 1 or slot.value is not None:
            return ix.const(starts[slot.value or 0])
        steps = {y - x for x, y in zip(starts, starts[1:], strict=False)}
        if len(steps) == 1:
            return slot * steps.pop() + starts[0]
        s = self.limit(slot)
        picks = "".join(f"{s} == {n} ? {x} : " for n, x in enumerate(starts[:-1]))
        return Part(f"({picks}{starts[-1]})", (min(starts), max(starts)))


def padded_rows(b: Buffer) -> int:
    """Rows of an nz buffer with its padding to whole fractals."""
    grain = max(16, 32 // b.dtype.bytes if b.level is not Level.L0C else 16)
    return -(-b.rows // grain) * grain


def call(name: str, *args: str) -> list[str]:
    """A call as one line, or as two where it would be too long."""
    text = f"AscendC::{name}({', '.join(args)});"
    if len(text) <= LINE - 24:
        return [text]
    cut = next((n for n, a in enumerate(args) if n and "Params" in a), len(args) - 1)
    head, tail = ", ".join(args[:cut]), ", ".join(args[cut:])
    return [f"AscendC::{name}({head},", f"    {tail});"]


def not_empty(s: Scope, i: Instr) -> list[str]:
    """The conditions under which an instruction has something to do: zeros are written where there is nothing to load, too."""
    extents = (i.rows, i.cols) if adds_nothing(s, i) or i.form == "padded" else (i.rows, i.cols, i.depth)
    return [f"{s.limit(e)} > 0" for e in dict.fromkeys(extents) if s.low(e) <= 0]


def adds_nothing(s: Scope, i: Instr) -> bool:
    """Whether an instruction is part of a product that may be one of no numbers: it is done with one, which is 0.

    Products with scales begin with some depth in any case.
    """
    return i.form != "scales" and i.op in ("l1_to_l0a", "l1_to_l0b", "mmad") and s.low(i.depth) <= 0


def block(head: str, body: list[str]) -> list[str]:
    return [head + " {", *("    " + line if line else "" for line in body), "}"]


def counted(var: str, count: str, body: list[str], kind: str = "int32_t") -> list[str]:
    """for var in 0 .. count."""
    return block(f"for ({kind} {var} = 0; {var} < {count}; ++{var})", body)



def number(x: float, dtype: DType) -> str:
    """A scalar operand in the element type."""
    if dtype.whole:
        return f"static_cast<{dtype.ascend}>({int(x)}{'LL' if abs(x) >= 2**31 else ''})"
    text = repr(float(x))
    literal = {"inf": "__builtin_inff()", "-inf": "-__builtin_inff()", "nan": '__builtin_nanf("")'}.get(text, text + "f")
    return literal if dtype is F32 else f"static_cast<{dtype.ascend}>({literal})"
