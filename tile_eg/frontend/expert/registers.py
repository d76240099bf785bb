"""The steps of a value as instructions: places in UB for their results, beside the author's buffers, and their form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tile_eg.errors import Span
from tile_eg.frontend.expert.accesses import Access, Axes, Unfit, place
from tile_eg.frontend.expert.operands import COL, FULL, ROW, SPREAD, Step, Vector
from tile_eg.frontend.expert.picked import Written, gathered
from tile_eg.frontend.expert.places import Place
from tile_eg.frontend.expert.reader import ExpertReader, On
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import ONE, ZERO, Expr
from tile_eg.ir.machine import BLOCK_BYTES, REPEAT_BYTES
from tile_eg.ir.program import AIV, Tile
from tile_eg.ops.types import DType, Level


class Registers:
    """Writes the steps of one value. `into` is the place of the last result, where that is a buffer of the author's."""

    def __init__(self, r: ExpertReader, axes: Axes, span: Span | None, flat: bool) -> None:
        self.r, self.axes, self.span, self.flat = r, axes, span, flat
        self.places: dict[Vector, Access] = {}
        self.taken: dict[Vector, tuple[int, int]] = {}
        self.free: list[tuple[int, int]] = []
        self.end = 0

    # Room

    def pitch(self, kind: str, dtype: DType) -> int:
        """Elements from row to row of a result: each row begins at a multiple of 32 bytes, unless all is one run."""
        grain = BLOCK_BYTES // dtype.bytes
        if kind == SPREAD:
            return grain
        if kind in (ROW, COL) or self.axes.rows == 1 or self.flat:
            return self.axes.cols if kind in (ROW, FULL) else self.axes.rows
        return -(-self.axes.cols // grain) * grain

    def rows(self, kind: str) -> int:
        return {FULL: self.axes.rows, SPREAD: -(-self.axes.rows // 8) * 8}.get(kind, 1)

    def bytes(self, kind: str, dtype: DType) -> int:
        """Whole rounds, as what reads groups of elements goes beyond the last one."""
        return -(-self.rows(kind) * self.pitch(kind, dtype) * dtype.bytes // REPEAT_BYTES) * REPEAT_BYTES

    def take(self, size: int) -> int:
        for k, (at, room) in enumerate(self.free):
            if room >= size:
                self.free[k : k + 1] = [(at + size, room - size)] if room > size else []
                return at
        self.end += size
        return self.end - size

    def drop(self, v: Vector) -> None:
        if v in self.taken:
            at, size = self.taken.pop(v)
            self.free = sorted([*self.free, (at, size)])

    def put(self, v: Vector) -> None:
        """A place for a result."""
        size = self.bytes(v.kind, v.dtype)
        at = self.take(size)
        self.taken[v] = at, size
        name = temporary(self.r, at, v.dtype, self.rows(v.kind), self.pitch(v.kind, v.dtype))
        pitch = self.pitch(v.kind, v.dtype)
        self.places[v] = Access(name, v.dtype, ZERO, pitch, 1, pitch)

    def of(self, v: Vector) -> Access:
        return v.access or self.places[v]

    # Instructions

    def write(self, steps: list[Step], root: Vector, into: Access | None, early: bool) -> None:
        """All steps; results lie in `into` where they can: the last one, and with `early` those that become it."""
        last = {v: n for n, s in enumerate(steps) for v in s.srcs}
        if into is not None:
            for v in _chain(steps, root, last) if early else [root]:
                self.places[v] = into
        for n, s in enumerate(steps):
            self.step(s, {v for v in s.srcs if last[v] == n})

    def step(self, s: Step, dying: set[Vector]) -> None:
        """An elementwise result may take the place of an operand like it."""
        bits = self.scratch(s)
        alike = {v for v in dying if (v.kind, v.dtype) == (s.out.kind, s.out.dtype)}
        for v in alike:
            self.drop(v)
        if s.out not in self.places:
            self.put(s.out)
        self.issue(s, bits)
        for v in dying - alike:
            self.drop(v)
        if bits is not None:
            self.free = sorted([*self.free, bits[0]])

    def scratch(self, s: Step) -> tuple[tuple[int, int], Tile] | None:
        """Room for the bits of a comparison: one for each element, and two blocks of numbers at least."""
        if not s.op.startswith(("vchoose", "vmask")):
            return None
        dtype = s.srcs[0].dtype
        count = self.rows(s.out.kind) * self.pitch(s.out.kind, dtype)
        size = -(-max(2 * BLOCK_BYTES, count // 8) // REPEAT_BYTES) * REPEAT_BYTES
        at = self.take(size)
        return (at, size), Tile(temporary(self.r, at, dtype, 1, size // dtype.bytes))

    def issue(self, s: Step, bits: Any) -> None:
        if s.op == "load":
            return self.load(s)
        if s.op == "gather":
            return self.gather(s)
        fields = {**s.fields, "span": self.span}
        out = self.of(s.out)
        if s.op == "vbrcb":
            return self.blocks(s, out, fields)
        if s.op == "vramp":
            self.r.instr("vramp", out.tile, rows=ix.const(self.rows(s.out.kind)), cols=self.cols(s.out), **fields)
            return None
        if s.op.endswith(("_rows", "_cols")):
            form, rows, cols = self.by_rows([out, self.of(s.srcs[0])])
        else:
            form, rows, cols = self.form(s.out.kind, [out, *map(self.of, s.srcs)])
        if bits is not None:
            fields["scratch"] = bits[1]
            form, rows, cols = self.compared(s, form, rows, cols)
        self.r.instr(s.op, out.tile, *(self.of(v).tile for v in s.srcs), rows=rows, cols=cols, form=form, **fields)
        return None

    def cols(self, v: Vector) -> Expr:
        return ix.const(self.axes.rows if v.kind == COL else self.axes.cols)

    def form(self, kind: str, operands: list[Access]) -> tuple[str, Expr, Expr]:
        """One run where each operand is one, else row by row."""
        axes = self.axes
        if kind in (ROW, COL):
            return "flat", ONE, ix.const(axes.cols if kind == ROW else axes.rows)
        if axes.rows == 1 or all(a.down == axes.cols for a in operands):
            return "flat", ONE, ix.const(axes.rows * axes.cols)
        return self.by_rows(operands)

    def by_rows(self, operands: list[Access]) -> tuple[str, Expr, Expr]:
        """Raises Unfit where rows do not begin at multiples of 32 bytes."""
        for a in operands if self.axes.rows > 1 else ():
            if a.down != a.pitch:
                raise Unfit(f"rows of {a.name} lie {a.down} elements apart here")
            if a.pitch * a.dtype.bytes % BLOCK_BYTES:
                raise Unfit(f"rows of {a.name} do not begin at multiples of 32 bytes")
        return "rows", ix.const(self.axes.rows), ix.const(self.axes.cols)

    def compared(self, s: Step, form: str, rows: Expr, cols: Expr) -> tuple[str, Expr, Expr]:
        """A comparison in one run goes over whole rounds."""
        count = (cols.value or 0) * s.srcs[0].dtype.bytes
        if form == "rows" or count % REPEAT_BYTES == 0:
            return form, rows, cols
        if s.out.kind == FULL and self.axes.rows > 1:
            return self.by_rows([self.of(v) for v in (s.out, *s.srcs)])
        return "rows", ONE, cols

    def blocks(self, s: Step, out: Access, fields: dict[str, Any]) -> None:
        """Each element as a block of 32 bytes; what stands behind the last of them is read up to the eighth."""
        src, rows = self.of(s.srcs[0]), self.axes.rows
        if rows % 8:
            copy = Vector(COL, src.dtype)
            self.put(copy)
            self.r.instr("vdup", self.of(copy).tile, cols=ix.const(-(-rows // 8) * 8), scalar=0.0, span=self.span)
            self.r.instr("vcopy", self.of(copy).tile, src.tile, cols=ix.const(rows), span=self.span)
            src = self.of(copy)
            self.drop(copy)
        self.r.instr("vbrcb", out.tile, src.tile, rows=ix.const(rows), **fields)

    # Elements from elsewhere

    def load(self, s: Step) -> None:
        """A window of a tensor, once what was in its place is done with."""
        from tile_eg.frontend.expert.moves import PATHS, handover

        source: Place = s.fields["place"]
        out, span = self.of(s.out), self.span
        target = place(out, source.rows, source.cols, source.rows == 1 or out.pitch == source.cols, span)
        handover(self.r, AIV, "V", "MTE2", span)  # type: ignore[arg-type]
        PATHS[Level.GM, Level.UB][0](self.r, span, source, target, {})
        handover(self.r, AIV, "MTE2", "V", span)  # type: ignore[arg-type]

    def gather(self, s: Step) -> None:
        """Element by element, by the scalar unit; zeros where there is none."""
        a, axes = self.of(s.out), self.axes
        down, along = {FULL: (a.down, 1), ROW: (0, 1), COL: (1, 0)}[s.out.kind]
        steps = [(axes.row, down), (axes.col, along)]
        at = sum((ix.var(n) * k for n, k in steps if n is not None and axes.extent(n) > 1), a.base)
        to = Tile(a.name, ZERO, ZERO, at)

        def store() -> None:
            self.r.instr("store_element", to, value=s.fields["value"](), span=self.span)

        def store_what_there_is() -> None:
            there = s.fields["there"]() if "there" in s.fields else ONE
            if there.value == 1:
                return store()
            no_value = partial(self.r.instr, "store_element", to, scalar=0.0, span=self.span)
            for holds, one in ((there, store), (1 - there, no_value)):
                with self.r.block(repeats=False) as then, self.r.where(holds):
                    one()
                self.r.place_node(None, pr.When(holds, tuple(then)))  # type: ignore[arg-type]
            return None

        each(self.r, axes, [n for n, k in steps if n is not None and k], store_what_there_is, self.span)
        if self.r.ends is not None:
            gathered(self.r, self.r.ends, Written(a.tile, axes.row, axes.col, s.fields["of"], s.fields["at"]))


def each(r: ExpertReader, axes: Axes, names: Sequence[str], one: Callable[[], None], span: Span | None) -> None:
    """What `one` writes, for each element."""
    looped = [n for n in names if axes.extent(n) > 1]
    if not looped:
        return one()
    with r.block(repeats=True) as body:
        each(r, axes, looped[1:], one, span)
    r.statements.append(On(None, pr.Loop(looped[0], axes.extent(looped[0]), tuple(body), span)))  # type: ignore[arg-type]
    return None


def _chain(steps: list[Step], root: Vector, last: dict[Vector, int]) -> list[Vector]:
    """The last result, and those before it that are used for the next of these alone, in the same form."""
    made = {s.out: (n, s) for n, s in enumerate(steps)}
    found = [root]
    while found[-1] in made:
        n, s = made[found[-1]]
        before = [v for v in s.srcs if v in made and last[v] == n and (v.kind, v.dtype) == (root.kind, root.dtype)]
        if not before:
            break
        found.append(before[0])
    return found


def temporary(r: ExpertReader, at: int, dtype: DType, rows: int, pitch: int) -> str:
    """A piece of the room behind the author's buffers that all element loops share, `at` bytes from its start."""
    key = f"temporary {at} {dtype} {rows} {pitch}"
    if key not in r.own_keys:
        r.own_keys[key] = name = r.unique("temporary")
        r.own[name] = pr.Buffer(name, Level.UB, dtype, rows, pitch, pitch)
        r.shared[name] = at
    return r.own_keys[key]
