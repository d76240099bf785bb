"""Values as egglog text: one `let` a term, and the facts that only the frontend knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_eg.egraph.meeting import accesses, meetings
from tile_eg.egraph.quotients import reciprocals
from tile_eg.ir.index import BLOCK, EACH, SUB, Expr, const, variables
from tile_eg.ir.left_padding import LEFT
from tile_eg.ir.machine import USABLE_EVENT_IDS
from tile_eg.ir.passed import Passed
from tile_eg.ir.values import VERSIONS, WRITES, Term, Values, reachable
from tile_eg.ops.types import I32, DType
from tile_eg.transforms.contained import parts_of_loads
from tile_eg.transforms.k_tiling import Tiling, loads_in, longer_loads
from tile_eg.transforms.loaded_again import loads_again
from tile_eg.transforms.packed_operand import loads_of, matrices_of, place, strides

OFFERED = 3
"""Buffers that the rules offer of any tile, at most."""


class Encoder:
    """Writes a kernel's values as egglog commands.

    `index` maps the text of an index expression back to it, `passed` that of what follows from numbers of a call; `met` tells
    where the vector cores would meet (`egraph.meeting`).
    """

    def __init__(self, values: Values, tilings: Sequence[Tiling] = ()) -> None:
        self.values, self.tilings = values, tilings
        self.met = meetings(values)
        self.loop_of = {name: loop for loop, name in values.variables.items()}
        self.lines: list[str] = []
        self.names: dict[Term, str] = {}
        self.index: dict[str, Expr] = {}
        self.passed: dict[str, Passed] = {}
        self.numbered: list[Term] = []
        self.wholes: dict[Term, Term] = {}
        self.ending: dict[Term, Term] = {}

    def encode(self) -> list[str]:
        """The commands, in an order in which each may be run alone."""
        for loop, around in self.values.parents.items():
            self.lines.append(f"(set (parent {loop}) {around})")
            self._depth(loop)
        for tiling in self.tilings:
            self._tiling(tiling)
        for longer, form in longer_loads(self.values, self.tilings):
            self._longer(longer, form)
        for t in self.values.in_gm:
            self.lines.append(f'(set (tdt (Given "{t.name}")) "{t.dtype}")')
            self.lines.append(f'(set (treg (Given "{t.name}")) 0)')
            self.lines.append(f'(set (tname (Given "{t.name}")) "{t.name}")')
        self._slots()
        self._sharing()
        self._strips()
        self._grid()
        self._quotients()
        outs = "(ONil)"
        for name in reversed([self.term(t) for t in self.values.outputs]):
            outs = f"(OCons (gm {name}) {outs})"
        for part, whole, row, col in parts_of_loads(self.names):
            self.lines.append(f"(IsPart {self.names[part]} {self.names[whole]} {row} {col})")
        for part, whole, row in self.values.within:
            if part in self.names:
                self.lines.append(f"(IsPart {self.names[part]} {self.term(whole)} {row} 0)")
        self._staying()
        self.lines.append(f"(let $root {outs})")
        return self.lines

    def _depth(self, loop: int) -> None:
        """Whether the author said how many slots the rings of a loop have; one slot leaves no room for trips to overlap."""
        given = self.values.stages.get(loop, 0)
        self.lines.append(f"(DepthGiven {loop} {given})" if given else f"(DepthFree {loop})")
        if given != 1:
            self.lines.append(f"(MayOverlap {loop})")

    def _staying(self) -> None:
        """Which loads bring again what an earlier loop loaded, and how many buffers for its trips there are flags for."""
        earlier = set[int]()
        for load, first, loop, before in loads_again(self.values, self.names):
            self.lines.append(f"(Again {self.names[load]} {self.names[first]} {loop} {before})")
            earlier.add(before)
        for loop in sorted(earlier):
            trips = self.values.trips[loop]
            self.lines += [f"(Lasting {loop} {n})" for n in (trips, trips + 1) if n <= len(USABLE_EVENT_IDS)]

    def _slots(self) -> None:
        """Numbers of buffers that the author gives, and that are not offered anyway."""
        for slots in sorted({p.slots for p in self.values.places.values() if p.slots > OFFERED}):
            self.lines.append(f"(DepthOpt {slots})")

    def _sharing(self) -> None:
        """Whether both vector cores may work, and which tensors are stored to and loaded from."""
        if all(self.met.values()) and not self.values.tile_each:
            self.lines.append("(Halves)")
        for tensor, found in accesses(self.values).items():
            if {a.store for a in found} == {True, False}:
                self.lines.append(f'(ReadBack "{tensor}")')

    def _strips(self) -> None:
        """Tensors that are there in strips too, and where the loads of them begin there, those of deeper loops included."""
        for tensor, name, stride in strides(self.values):
            self.lines.append(f'(InStrips "{tensor}" "{name}" {stride})')
            found = [x.args[1] for x in loads_of(self.values, tensor)]
            found += [moved[1] for t in self.tilings for o in found if (moved := t.later(o))]
            load = next(loads_of(self.values, tensor))
            dtype, m = load.args[0].args[0].dtype, matrices_of(self.values, load)
            for o in dict.fromkeys(found):
                if m and (at := place(self.values, m, dtype, o)) is not None:
                    self.lines.append(f'(set (in-strips {self.expr(o)} "{tensor}") {self.expr(at)})')

    def _grid(self) -> None:
        """How many tiles there are; the extents of a grid of two dimensions."""
        self.lines.append(f"(Tiles {self.values.blocks})")
        extents = [e for e in self.values.grid if e > 1]
        if len(extents) == 2:
            self.lines.append(f"(Extents {extents[0]} {extents[1]})")

    def _quotients(self) -> None:
        """What may be computed by a product with a reciprocal."""
        constants, rows = reciprocals(self.values)
        self.lines += [f"(Reciprocal {number(c)})" for c in constants]
        self.lines += ["(RowReciprocals)"] if rows else []

    def expr(self, e: Expr) -> str:
        if e.value is not None:
            return f"(IC {e.value})"
        text = str(e)
        if text not in self.index:
            self.index[text] = e
            loops = sorted(self.loop_of[v] for v in variables(e) if v not in (BLOCK, SUB, EACH, LEFT))
            deps = f"(set-of {' '.join(map(str, loops))})" if loops else "(set-empty)"
            self.lines.append(f'(set (ideps (Ix "{text}")) {deps})')
        return f'(Ix "{text}")'

    def _tiling(self, t: Tiling) -> None:
        """A deeper form of a loop, and the index expressions of what it loads."""
        kind = f"Deeper {t.loop} {t.deep} {t.factor} {t.trips}" if t.trips > 1 else f"AllTrips {t.loop} {t.deep} {t.factor}"
        self.lines.append(f"({kind})")
        for load in loads_in(self.values, t.variable):
            moved = t.later(load.args[1])
            if moved is not None:
                offset = self.expr(load.args[1])
                self.lines.append(f"(Strides {offset} {t.loop} {moved[0]})")
                self.lines.append(f"(set (later {offset} {t.deep}) {self.expr(moved[1])})")
            for valid, size in ((load.vrows, load.rows), (load.vcols, load.cols)):
                self._wider(t, valid, size)
        for operand in (x for x in reachable(self.values) if x.op == "scaled"):
            self._wider(t, operand.vcols, operand.cols)

    def _wider(self, t: Tiling, valid: Expr | None, size: int) -> None:
        """How much of the tiles of a deeper trip is valid along an axis, where `valid` is of one tile of `size` elements."""
        wide = t.wider(valid, size) if valid is not None else None
        if valid is not None and wide is not None:
            self.lines.append(f"(set (wider {self.expr(valid)} {t.deep} {size}) {self.expr(wide)})")

    def _longer(self, t: Tiling, form: Tiling | None) -> None:
        """That a load of a loop may bring the tiles of several trips, and how much of them is valid."""
        self.lines.append(f"(Longer {t.loop} {t.factor})")
        source = form.variable if form else t.variable
        for load in loads_in(self.values, source):
            moved = form.later(load.args[1]) if form else (0, load.args[1])
            size, valid = load.cols, load.vcols
            if form and valid is not None:
                size, valid = size * form.factor, form.wider(valid, size)
            step = t.later(moved[1]) if moved else None
            wide = t.ahead(valid, size) if valid is not None else None
            if moved and step and valid is not None and wide is not None and step[0] == size:
                at, own = self.expr(moved[1]), self.expr(valid)
                self.lines.append(f"(set (ahead {at} {own} {t.loop} {t.factor} {size}) {self.expr(wide)})")

    def term(self, t: Term) -> str:
        if t not in self.names:
            whole = self._whole_of(t)
            body = getattr(self, f"_{t.op}")(t) if whole is t else self._ended(t, whole)
            name = f"${len(self.names)}{t.op[0]}"  # ends in no digit: see rules/naming.py
            self.lines.append(f"(let {name} {body})")
            self.names[t] = name
            self._facts(t, name)
        return self.names[t]

    def _facts(self, t: Term, name: str) -> None:
        if t.op == "put":
            self._bordered(t, name)
        if t.op not in WRITES and t.vrows is not None and t.vcols is not None:
            self.lines.append(f"(Source {name} {len(self.numbered)})")
            self.numbered.append(self.ending.get(t, t))
            shortened = t.op == "bytes" and t.vcols.value is None
            if t.op in ("arg", "choose_bits") or shortened or (t.op == "binary" and self._differ(t)):
                self.lines.append(f"(set (vr {name}) {self.expr(t.vrows)})")
                self.lines.append(f"(set (vc {name}) {self.expr(t.vcols)})")

    @staticmethod
    def _differ(t: Term) -> bool:
        x, y = t.args[1], t.args[2]
        return (x.vrows, x.vcols) != (y.vrows, y.vcols)

    def _load(self, t: Term) -> str:
        version, offset, stride = t.args
        at = f"{self.expr(offset)} {stride} {t.rows} {t.cols} {self.expr(t.vrows)} {self.expr(t.vcols)}"  # type: ignore[arg-type]
        return f"(Load {self.term(version)} {at})"

    def of_call(self, x: Passed) -> str:
        """What follows from numbers that each call passes."""
        text = str(x)
        if text not in self.passed:
            self.passed[text] = x
            self.lines.append(f'(set (negated (Nm "{text}")) {self.of_call(-x)})')
        return f'(Nm "{text}")'

    def _fill(self, t: Term) -> str:
        if isinstance(t.args[0], Passed):
            return f'(FillN {self.of_call(t.args[0])} {t.rows} {t.cols} "{t.dtype}")'
        return f'(Fill {number(t.args[0])} {t.rows} {t.cols} "{t.dtype}")'

    def _matmul(self, t: Term) -> str:
        self._half_way(t)
        a, b, ta, tb = t.args
        return f"(MatMul {self.term(a)} {self.term(b)} {int(ta)} {int(tb)})"

    def _half_way(self, t: Term) -> None:
        """Where the second half of a product's depth begins in each of its operands that is loaded."""
        a, b, ta, tb = t.args
        depth = a.rows if ta else a.cols
        for x, down in ((a, ta), (b, not tb)):
            if x.op == "load" and depth % 2 == 0:
                step = depth // 2 * (x.args[2] if down else 1)
                self.lines.append(f"(HalfWay {self.expr(x.args[1])} {step} {self.expr(x.args[1] + step)})")

    def _unary(self, t: Term) -> str:
        return f'(Un "{t.args[0]}" {self.term(t.args[1])})'

    def _binary(self, t: Term) -> str:
        return f'(Bin "{t.args[0]}" {self.term(t.args[1])} {self.term(t.args[2])})'

    def _bcast(self, t: Term) -> str:
        return f"(Bcast {t.args[0]} {self.term(t.args[1])} {t.cols if t.args[0] == 1 else t.rows})"

    def _reduce(self, t: Term) -> str:
        return f'(Red {t.args[0]} "{t.args[1]}" {self.term(t.args[2])})'

    def _choose(self, t: Term) -> str:
        return f'(Cho "{t.args[0]}" {" ".join(map(self.term, t.args[1:]))})'

    def _choose_bits(self, t: Term) -> str:
        return f"(ChoB {' '.join(map(self.term, t.args))})"

    def _choose_at(self, t: Term) -> str:
        op, i, j, bound, x, y = t.args
        return f'(ChoI "{op}" (Ramp {t.rows} {t.cols} {i} {j}) {self.expr(bound)} {self.term(x)} {self.term(y)})'

    def _cast(self, t: Term) -> str:
        return f'(Cast "{t.dtype}" {self.term(t.args[0])})'

    def _nest(self, t: Term) -> str:
        if t.args[0].op == "s_index" and t.dtype is I32:
            i, j, start = t.args[0].args
            return f'(AddI (Cast "i32" (Ramp {t.rows} {t.cols} {i} {j})) {self.expr(start)})'
        return f"(Par {t.rows} {t.cols} {self._scalar(t.args[0], t.dtype)})"

    def _scalar(self, s: Term, dtype: DType | None) -> str:
        if s.op == "number" and isinstance(s.args[0], Passed):
            return f'(KN {self.of_call(s.args[0])} "{s.dtype or dtype}")'
        if s.op == "number":
            return f'(K {number(s.args[0])} "{s.dtype or dtype}")'
        if s.op in ("elem", "elem_row", "elem_col"):
            head = {"elem": "Ld", "elem_row": "LdR", "elem_col": "LdC"}[s.op]
            return f"({head} {self.term(s.args[0])})"
        if s.op == "s_index":
            i, j, start = s.args
            return f"(SIdx {i} {j} {self.expr(start)})"
        if s.op == "s_unary":
            return f'(SUn "{s.args[0]}" {self._scalar(s.args[1], s.dtype)})'
        if s.op == "s_binary":
            x, y = (self._scalar(a, s.dtype) for a in s.args[1:])
            return f'(SBin "{s.args[0]}" {x} {y})'
        if s.op == "s_cast":
            return f'(SCast "{s.dtype}" {self._scalar(s.args[0], None)})'
        if s.op in ("s_choose", "s_choose_at"):
            return self._chosen(s)
        return f'(SRed "{s.args[0]}" {self._scalar(s.args[1], s.dtype)} {s.cols})'

    def _chosen(self, s: Term) -> str:
        op, *rest = s.args
        if s.op == "s_choose":
            a, b, x, y = (self._scalar(p, p.dtype) for p in rest)
            return f'(SCho "{op}" {a} {b} {x} {y})'
        i, j, bound, *pair = rest
        return f'(SChoI "{op}" {i} {j} {self.expr(bound)} {" ".join(self._scalar(p, s.dtype) for p in pair)})'

    def _pack(self, t: Term) -> str:
        return f"(Pack {self.term(t.args[0])})"

    def _bytes(self, t: Term) -> str:
        return f'(Bytes "{t.dtype}" {self.term(t.args[0])})'

    def _scaled(self, t: Term) -> str:
        assert t.vcols is not None
        return f'(Scaled "{t.dtype}" {self.expr(t.vcols)} {self.term(t.args[0])} {self.term(t.args[1])})'

    def _nibbles(self, t: Term) -> str:
        assert t.vcols is not None
        return f"(Nibbles {self.expr(t.vcols)} {self.term(t.args[0])})"

    def _piece(self, t: Term) -> str:
        at, whole = t.args
        row = at // t.cols
        if row.value is None and t.cols == whole.cols and row * t.cols == at:
            self.lines.append(f"(FromRow {self.expr(at)} {t.cols} {self.expr(row)})")
        return f"(Piece {self.expr(at)} {t.rows} {t.cols} {self._valid(t)} {self.term(whole)})"

    def _valid(self, t: Term) -> str:
        assert t.vrows is not None and t.vcols is not None
        return f"{self.expr(t.vrows)} {self.expr(t.vcols)}"

    def _whole_of(self, t: Term) -> Term:
        """A tile of parts, all of which exists where it is made, without the end that is said of it."""
        full = const(t.rows), const(t.cols)
        if t.op not in ("put", "whole") or full == (t.vrows, t.vcols):
            return t
        whole = self.wholes.setdefault(t, replace(t, vrows=full[0], vcols=full[1]))
        self.ending.setdefault(whole, t)
        return whole

    def _ended(self, t: Term, whole: Term) -> str:
        return f"(Piece (IC 0) {t.rows} {t.cols} {self._valid(t)} {self.term(whole)})"

    def _panel(self, t: Term) -> str:
        row, x = t.args
        assert t.vrows is not None
        return f"(Panel {self.expr(row)} {t.rows} {self.expr(t.vrows)} {self.term(x)})"

    def _bordered(self, t: Term, name: str) -> None:
        """At which row a loaded tile stands in one of a number, and has all columns of it."""
        at, under, x = t.args
        alone = x.op == "load" and not {LEFT, EACH} & set(variables(x.args[1]))
        row = at // t.cols
        if under.op == "fill" and alone and (x.vcols, t.vrows) == (const(t.cols), const(t.rows)) and row * t.cols == at:
            self.lines.append(f"(Bordered {name} {self.expr(at)} {self.expr(row)})")

    def _put(self, t: Term) -> str:
        return f"(Put {self.expr(t.args[0])} {self.term(t.args[1])} {self.term(t.args[2])})"

    def _whole(self, t: Term) -> str:
        op, i, j, *xs = t.args
        return f'({"OfWhole" if len(xs) == 1 else "OfWholes"} "{op}" {i} {j} {t.rows} {t.cols} {" ".join(map(self.term, xs))})'

    def _arg(self, t: Term) -> str:
        return f"(Arg {t.args[0]} {t.args[1]})"

    def _proj(self, t: Term) -> str:
        return f"(Proj {t.args[1]} {self.term(t.args[0])})"

    def _loop(self, t: Term) -> str:
        loop, trips, states = t.args[:3]
        chain = "(SNil)"
        for init, after in reversed(states):
            head = "TCons" if init.op in VERSIONS else "SCons"
            chain = f"({head} {self.term(init)} {self.term(after)} {chain})"
        return f"(Loop {loop} {trips} {chain})"

    def _given(self, t: Term) -> str:
        return f'(Given "{t.args[0].name}")'

    def _store(self, t: Term) -> str:
        version, offset, stride, value = t.args
        valid = self._valid(value)  # of a constant, the value alone would not tell
        write = {"store": "Store", "accumulate": "Accumulate"}[t.op]
        self._parts_of(value, offset)
        return f"({write} {self.term(version)} {self.expr(offset)} {stride} {self.term(self._whole_of(value))} {valid})"

    _accumulate = _store

    def _parts_of(self, value: Term, offset: Expr) -> None:
        """Where each part of a row that is put together is stored."""
        while value.op == "put":
            at, value, _ = value.args
            if at.value is not None:
                self.lines.append(f"(set (further {self.expr(offset)} {at.value}) {self.expr(offset + at.value)})")

    def _targ(self, t: Term) -> str:
        return f"(TArg {t.args[0]} {t.args[1]})"

    def _tproj(self, t: Term) -> str:
        return f"(TProj {t.args[1]} {self.term(t.args[0])})"


def number(x: float) -> str:
    """A float as egglog reads it back, infinities included."""
    if x != x:
        return "NaN"
    if x in (float("inf"), float("-inf")):
        return "inf" if x > 0 else "-inf"
    return repr(float(x))
