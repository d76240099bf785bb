"""A rule between values with drawn shapes, element types and numbers for its variables, and what its two sides are in numbers.

The meaning is that of `tile_eg.egraph.numbers`, which the audit uses too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from operator import mod, mul
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from tile_eg.egraph.members import Class, Member, Members, Shape
from tile_eg.egraph.numbers import Numbers
from tile_eg.ir.arithmetic import nothing
from tile_eg.ir.arrays import numpy_dtype
from tile_eg.ir.index import Expr, const
from tile_eg.ir.passed import passed
from tile_eg.ops.elementwise import BINARY, COMPARE, REDUCE, UNARY
from tile_eg.ops.types import DTYPES, F32
from tile_eg.rules import signatures
from tile_eg.rules.sexpr import Form, parse

THEORIES = ("10_nest", "20_algebra")
CHOICES = ("Cho", "ChoS", "ChoI", "SCho", "SChoI")
OPS = {"Un": UNARY, "SUn": UNARY, "Red": REDUCE, "SRed": REDUCE, **dict.fromkeys(CHOICES, COMPARE)}
EXPONENT = {"f16": (-14, 15), "bf16": (-126, 127), "f32": (-126, 127)}
LITERAL = '"-.0123456789'
"""How what is no variable begins."""
DIGITS = {"f16": 11, "bf16": 8, "f32": 24}
Size = tuple[int, int]


@dataclass(frozen=True)
class Law:
    """A rule as an equality: its two sides, what has to hold of its variables, and the tables that the theory gives."""

    left: Form
    right: Form
    conditions: tuple[Form, ...]
    facts: tuple[Form, ...]

    @property
    def dtypes(self) -> list[str]:
        """The element types that the result can have."""
        if any(f"'{head}'" in str(self.left) for head in ("MatMul", "Ramp", "AddI", "SIdx")):
            return ["f32"]
        if whole := [op for op in ("shl", "shr") if f"'\"{op}\"'" in str(self.left)]:
            return [d.name for d in BINARY[whole[0]].takes]
        named = {x.strip('"') for c in self.conditions if c[0] == "=" for x in c[1:] if isinstance(x, str)}
        return sorted(named & DIGITS.keys() or DIGITS)


def _of_floats(op: Any) -> bool:
    """Whether an operation takes all floats."""
    return F32 in getattr(op, "takes", (F32,))


def laws(text: str) -> dict[str, Law]:
    """The equalities of values in a theory, by the names of their rules."""
    forms = parse(text)
    tables = {f[1] for f in forms if f[0] == "relation"}
    facts = tuple(f for f in forms if f[0] in tables)
    out = {}
    for form in forms:
        if form[0] in ("rewrite", "rule"):
            name = str(form[form.index(":name") + 1]).strip('"')
            out[name] = Law(*_sides(form), facts)
    return out


def _sides(form: tuple) -> tuple[Form, Form, tuple[Form, ...]]:
    if form[0] == "rewrite":
        return form[1], form[2], form[form.index(":when") + 1] if ":when" in form else ()
    ((_, root, right),) = form[2]
    bound = {c[1]: c[2] for c in form[1] if c[0] == "=" and isinstance(c[2], tuple) and c[2][0] in signatures()}
    left = tuple(bound.get(x, x) for x in bound[root])
    patterns = [("=", name, pattern) for name, pattern in bound.items()]
    return left, right, (("root", root), *(c for c in form[1] if c not in patterns))


def laws_of_values() -> dict[str, Law]:
    """All equalities of the project's theories of values."""
    return {n: x for t in THEORIES for n, x in laws((files("tile_eg.rules") / f"{t}.egg").read_text()).items()}


def numbers_of(dtype: str, count: int, tame: bool) -> st.SearchStrategy[np.ndarray]:
    """Numbers of a type: half of them usual ones, a quarter special ones, a quarter any bits. `tame` has no subnormal ones."""
    kind = numpy_dtype(DTYPES[dtype])
    if DTYPES[dtype].whole:
        drawn = st.binary(min_size=count * kind.itemsize, max_size=count * kind.itemsize)
        return drawn.map(lambda b: np.frombuffer(b, kind).copy())
    size = 3 + kind.itemsize

    def of(drawn: bytes) -> np.ndarray:
        table = np.frombuffer(drawn, np.uint8).reshape(count, size)
        choice, usual, bits = table[:, 0], table[:, 1:3].copy().view(np.int16)[:, 0], table[:, 3:].copy().view(kind)[:, 0]
        special = np.array(specials(dtype, tame), kind)[choice % len(specials(dtype, tame))]
        out = np.where(choice < 128, (usual / 4096).astype(kind), np.where(choice < 192, special, bits))
        small = np.abs(out.astype(np.float64)) < 2.0 ** EXPONENT[dtype][0]
        return np.where(small, np.zeros_like(out), out) if tame else out

    return st.binary(min_size=count * size, max_size=count * size).map(of)


def specials(dtype: str, tame: bool) -> list[float]:
    """Zeros, infinities, NaN, and the ends of the normal and of the subnormal numbers."""
    (low, high), digits = EXPONENT[dtype], DIGITS[dtype]
    ends = [2.0 ** (low - digits + 1), 2.0**low - 2.0 ** (low - digits + 1), (2 - 2.0 ** (1 - digits)) * 2.0**high]
    return [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, -1.0, 2.0**low, -(2.0**high), *([] if tame else ends)]


class Instance:
    """The variables of one law, drawn. A tile's name stands for its class; beyond its valid extents it is NaN."""

    def __init__(self, data: st.DataObject, law: Law, tame: bool = False) -> None:
        self.data, self.law, self.tame = data, law, tame
        self.env: dict[str, Any] = {}
        self.loops: set[str] = set()
        self.arrays: dict[Class, np.ndarray] = {}
        self.rows, self.cols, self.inner = (data.draw(st.integers(1, 5), n) for n in ("rows", "cols", "inner"))
        self.extents = {n: data.draw(st.integers(1, n)) for n in sorted({self.rows, self.cols, self.inner})}
        self.members = Members({}, {}, None)  # type: ignore[arg-type]
        self.passed: dict[str, Any] = {}
        self.numbers = Numbers(self.members, self.passed, {})
        self.dtype = data.draw(st.sampled_from(law.dtypes), "dtype")
        self.declare(law.left, self._shape(), self.dtype)
        for condition in law.conditions:
            self._holds(condition)

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Both sides where both are valid, in the type of the result."""
        with np.errstate(all="ignore"):
            one, other = self.build(self.law.left), self.build(self.law.right)
            shapes = [self.members.shapes[c] for c in (one, other)]
            assert (shapes[0].rows, shapes[0].cols, shapes[0].dtype) == (shapes[1].rows, shapes[1].cols, shapes[1].dtype)
            rows, cols = (min(s.vrows.args[0] for s in shapes), min(s.vcols.args[0] for s in shapes))
            return self.numbers.of(one)[:rows, :cols], self.numbers.of(other)[:rows, :cols]

    def array(self, name: str) -> tuple[np.ndarray, str]:
        """The numbers of a tile, and their type."""
        return self.numbers.known[self.env[name]], self.members.shapes[self.env[name]].dtype.name

    def _shape(self) -> Size:
        left = self.law.left
        return (1, self.rows) if left[0] == "Par" and left[1] == "1" else (self.rows, self.cols)

    # ---- variables: by where they stand ----

    def declare(self, form: Form, shape: Size, dtype: str) -> None:
        """Binds the variables of a pattern of a value."""
        if isinstance(form, str):
            self.tile(form, shape, dtype)
            return
        getattr(self, f"_declare_{form[0].lower()}", self._declare_same)(form, shape, dtype)

    def _declare_same(self, form: Form, shape: Size, dtype: str) -> None:
        self.operator(form)
        for x, sort in zip(form[1:], signatures()[form[0]][0], strict=True):
            if sort == "V":
                self.declare(x, shape, dtype)
            elif sort == "f64":
                self.constant(x, dtype)
            elif sort == "Num":
                self.of_call(x, dtype)
            elif sort == "I":
                self.bind(x, lambda: const(self.data.draw(st.integers(-9, 9))))

    def _declare_binr(self, form: Form, shape: Size, dtype: str) -> None:
        self.operator(form)
        self.declare(form[3], shape, dtype)
        self.declare(form[4], (1, shape[0]), dtype)

    def _declare_binc(self, form: Form, shape: Size, dtype: str) -> None:
        self.operator(form)
        self.declare(form[3], shape, dtype)
        self.declare(form[4], (1, shape[1]), dtype)

    def _declare_cho(self, form: Form, shape: Size, dtype: str) -> None:
        self.operator(form)
        compared = self.data.draw(st.sampled_from(sorted(DIGITS)), "compared")
        for x, held in zip(form[2:], (compared, compared, dtype, dtype), strict=True):
            self.declare(x, shape, held)

    def _declare_bcast(self, form: Form, shape: Size, dtype: str) -> None:
        _, axis, v, n = form
        axis = self.bind(axis, lambda: self.data.draw(st.integers(0, 1)))
        self.bind(n, lambda: shape[axis])
        self.declare(v, (1, shape[1 - axis]), dtype)

    def _declare_cast(self, form: Form, shape: Size, dtype: str) -> None:
        self.bind(form[1], lambda: dtype)
        self.declare(form[2], shape, self.data.draw(st.sampled_from(self.types_of(form[2])), "from"))

    def _declare_piece(self, form: Form, shape: Size, dtype: str) -> None:
        _, offset, *sizes, x = form
        most = 0 if self.data.draw(st.booleans(), "whole") else 2
        before, after = (tuple(self.data.draw(st.integers(0, most), n) for _ in shape) for n in ("before", "after"))
        rows, cols = (sum(n) for n in zip(before, shape, after, strict=True))
        for n in {rows, cols} - self.extents.keys():
            self.extents[n] = self.data.draw(st.integers(1, n))
        self.declare(x, (rows, cols), dtype)
        self.bind(offset, lambda: const(before[0] * cols + before[1]))
        whole = (e.args[0] for e in valid_extents(self.members.shapes[self.build(x)]))
        valid = (const(max(0, min(n, e - b))) for n, e, b in zip(shape, whole, before, strict=True))
        for name, n in zip(sizes, (*shape, *valid), strict=True):
            self.bind(name, lambda n=n: n)

    def _declare_ofwhole(self, form: Form, shape: Size, dtype: str) -> None:
        """Every so many elements of rows that 16 can be made of."""
        _, _, first, step, *sizes, x = form
        self.bind(step, lambda: self.data.draw(st.sampled_from((2, 4)), "step"))
        self.bind(first, lambda: self.data.draw(st.integers(0, self.env[step] - 1), "first"))
        rows = self.data.draw(st.sampled_from((1, 16)), "rows")
        whole = rows, 256 * self.env[step] // rows
        self.extents |= dict(zip(whole, whole, strict=True))
        self.declare(x, whole, dtype)
        for name, n in zip(sizes, (1, 256), strict=True):
            self.bind(name, lambda n=n: n)

    def types_of(self, tile: Form) -> list[str]:
        """The element types that a tile may have: those of a table that the law has for them, else all floats."""
        names = {c[1] for c in self.law.conditions if c[0] == "=" and c[2] == ("dt", tile)}
        tables = {c[0] for c in self.law.conditions if len(c) == 2 and c[1] in names}
        return sorted(literal(f[1]) for f in self.law.facts if f[0] in tables) or sorted(DIGITS)

    def _declare_fill(self, form: Form, shape: Size, dtype: str) -> None:
        self.constant(form[1], dtype)
        for name, x in zip(form[2:], (*shape, dtype), strict=True):
            self.bind(name, lambda x=x: x)

    def _declare_filln(self, form: Form, shape: Size, dtype: str) -> None:
        self.of_call(form[1], dtype)
        for name, x in zip(form[2:], (*shape, dtype), strict=True):
            self.bind(name, lambda x=x: x)

    def of_call(self, name: str, dtype: str) -> None:
        """A number that each call passes, and what this one does."""
        self.constant(f"what is passed for {name}", dtype)
        self.passed[name] = np.float32(self.env[f"what is passed for {name}"])
        self.bind(name, lambda: passed(name))

    def _declare_matmul(self, form: Form, shape: Size, dtype: str) -> None:
        ta, tb = (self.bind(x, lambda: self.data.draw(st.integers(0, 1))) for x in form[3:])
        held = self.data.draw(st.sampled_from(sorted(DIGITS)), "operands")
        a, b = (shape[0], self.inner), (self.inner, shape[1])
        self.declare(form[1], a[::-1] if ta else a, held)
        self.declare(form[2], b[::-1] if tb else b, held)

    def _declare_load(self, form: Form, shape: Size, dtype: str) -> None:
        _, version, offset, stride, *sizes = form
        self.bind(offset, lambda: const(self.data.draw(st.integers(0, 4))))
        self.bind(stride, lambda: shape[1] + self.data.draw(st.integers(0, 3)))
        valid = (const(self.extents[n]) for n in shape)
        for name, x in zip(sizes, (*shape, *valid), strict=True):
            self.bind(name, lambda x=x: x)
        _, before, _, _, stored, *_ = version
        size = 5 + shape[0] * (shape[1] + 3)
        self.bind(before, lambda: self.known("T", np.full(size, 7, numpy_dtype(DTYPES[dtype]))))
        self.declare(stored, shape, dtype)
        for name, x in zip(version[5:], valid_extents(self.members.shapes[self.env[stored]]), strict=True):
            self.bind(name, lambda x=x: x)

    def _declare_addi(self, form: Form, shape: Size, dtype: str) -> None:
        self.declare(form[1], shape, dtype)
        if isinstance(form[2], str):
            self.bind(form[2], lambda: const(self.data.draw(st.integers(-9, 9))))
        else:
            self.bind(form[2][1], lambda: self.data.draw(st.integers(-9, 9)))

    def _declare_ramp(self, form: Form, shape: Size, dtype: str) -> None:
        for name, x in zip(form[1:3], shape, strict=True):
            self.bind(name, lambda x=x: x)
        for name in form[3:]:
            self.bind(name, lambda: self.data.draw(st.integers(-3, 3)))

    def _declare_par(self, form: Form, shape: Size, dtype: str) -> None:
        _, rows, cols, s = form
        for name, x in ((rows, shape[0]), (cols, shape[1])):
            self.bind(name, lambda x=x: x)
        self.scalar(s, shape, dtype)

    def scalar(self, form: Form, shape: Size, dtype: str) -> None:
        """Binds the variables of a scalar expression over all (i, j); a variable for one reads a tile of its own."""
        if isinstance(form, str):
            self.bind(form, lambda: self.make("S", Member("Ld", (self.tile(f"{form}'s", shape, dtype),))))
            return
        head, *args = form
        self.operator(form)
        if head in ("Ld", "LdR", "LdC"):
            self.tile(args[0], {"Ld": shape, "LdR": (1, shape[0]), "LdC": (1, shape[1])}[head], dtype)
        elif head == "K":
            self.constant(args[0], dtype)
            self.bind(args[1], lambda: dtype)
        elif head == "KN":
            self.of_call(args[0], dtype)
            self.bind(args[1], lambda: dtype)
        elif head == "SCast":
            self.bind(args[0], lambda: dtype)
            self.scalar(args[1], shape, self.data.draw(st.sampled_from(sorted(DIGITS)), "from"))
        elif head == "SRed":
            self.bind(args[2], lambda: self.inner)
            self.scalar(args[1], (shape[1] if shape[0] == 1 else shape[0], self.inner), dtype)
        elif head == "SIdx":
            for name in args:
                self.bind(name, lambda: self.data.draw(st.integers(-3, 3)))
            self.env[args[2]] = const(self.env[args[2]])
        elif head == "SChoI":
            for name in args[1:4]:
                self.bind(name, lambda: self.data.draw(st.integers(-3, 3)))
            self.env[args[3]] = const(self.env[args[3]])
            self.scalars(args[4:], shape, dtype)
        elif head == "SCho":
            self.scalars(args[1:3], shape, self.data.draw(st.sampled_from(sorted(DIGITS)), "compared"))
            self.scalars(args[3:], shape, dtype)
        else:
            self.scalars(args[1:], shape, dtype)

    def scalars(self, forms: Iterable[Form], shape: Size, dtype: str) -> None:
        for form in forms:
            self.scalar(form, shape, dtype)

    def operator(self, form: Form) -> None:
        place = 2 if form[0] == "Red" else 1
        if form[0] in ("Un", "Bin", "BinR", "BinC", "BinS", "BinN", "Red", "SUn", "SBin", "SRed", *CHOICES):
            ops = {n: op for n, op in OPS.get(form[0], BINARY).items() if _of_floats(op)}
            self.bind(form[place], lambda: self.data.draw(st.sampled_from(sorted(ops)), "op"))

    def constant(self, form: str, dtype: str) -> None:
        if DTYPES[dtype].whole:
            self.bind(form, lambda: float(self.data.draw(st.integers(0, 8), "constant")))
            return
        usual = [st.floats(-8, 8, width=16), st.sampled_from([x for x in specials(dtype, False) if x == x])]
        listed = [literal(f[1]) for c in self.law.conditions if c[1:] == (form,) for f in self.law.facts if f[0] == c[0]]
        self.bind(form, lambda: self.data.draw(st.sampled_from(listed) if listed else st.one_of(*usual), "constant"))

    def bind(self, atom: str, make: Any) -> Any:
        """What an atom stands for: a literal for itself, a variable for what is made when it is first met."""
        if atom[0] in LITERAL:
            return literal(atom)
        if atom not in self.env:
            self.env[atom] = make()
        return self.env[atom]

    def tile(self, name: str, shape: Size, dtype: str) -> Class:
        def make() -> Class:
            with np.errstate(all="ignore"):
                array = self.data.draw(numbers_of(dtype, shape[0] * shape[1], self.tame), name).reshape(shape)
            valid = (1 if shape[0] == 1 else self.extents[shape[0]], self.extents.get(shape[1], shape[1]))
            array[valid[0] :], array[:, valid[1] :] = nothing(array.dtype), nothing(array.dtype)
            cls = self.known("V", array)
            self.members.shapes[cls] = Shape(*shape, DTYPES[dtype], const(valid[0]), const(valid[1]))
            return cls

        return self.bind(name, make)

    # ---- conditions ----

    def _holds(self, condition: Form) -> None:
        head, *args = condition
        if "'deps'" in str(condition):  # in which loops a value varies says nothing of what it is
            self.loops.add(args[0])
        elif self.loops & set(args):
            return
        elif head == "root":
            self.env[args[0]] = self.build(self.law.left)
        elif head == "=":
            unbound = [x for x in args if isinstance(x, str) and x[0].isalpha() and x not in self.env]
            if unbound:
                self.env[unbound[0]] = self.of(next(x for x in args if x is not unbound[0]))
            assume(self.of(args[0]) == self.of(args[1]))
        elif head in ("!=", "<="):
            a, b = map(self.of, args)
            assume(a != b if head == "!=" else a <= b)
        else:
            rows = [fact[1:] for fact in self.law.facts if fact[0] == head]  # without any, the frontend tells them
            assume(not rows or any(self._fits(row, args) for row in rows))

    def _fits(self, row: tuple, args: list) -> bool:
        given = self.env | {a: literal(a) for a in args if a[0] in LITERAL}
        known = [(literal(x), given[a]) for x, a in zip(row, args, strict=True) if a in given]
        if not all(x == y for x, y in known):
            return False
        self.env |= {a: literal(x) for x, a in zip(row, args, strict=True) if a not in given}
        return True

    def of(self, form: Form) -> Any:
        """A number, a text or a fact."""
        if isinstance(form, str):
            return self.env[form] if form in self.env else literal(form)
        head, *args = form
        if head in FACTS:
            return FACTS[head](self.members.shapes[self.build(args[0])])
        if head == "tdt":
            return self.dtype
        x = [self.of(a) for a in args]
        if head == "/" and not x[1]:
            assume(False)
        less = lambda a: -a  # noqa: E731
        sums = {"/": quotient, "*": mul, "%": mod, "neg": less, "negated": less, "abs": abs}
        return {**sums, "IC": const, "to-f64": float}[head](*x)

    # ---- terms ----

    def known(self, sort: str, array: np.ndarray) -> Class:
        cls = self.make(sort, Member("given", ()))
        self.numbers.known[cls] = array
        return cls

    def make(self, sort: str, member: Member) -> Class:
        cls = (sort, len(self.members.chosen))
        self.members.chosen[cls] = member
        return cls

    def build(self, form: Form) -> Class:
        """The class of a term whose variables are bound."""
        if isinstance(form, str):
            return self.env[form]
        sorts, sort = signatures()[form[0]]
        args = tuple(self.build(x) if s in ("V", "S", "T") else self.of(x) for x, s in zip(form[1:], sorts, strict=True))
        cls = self.make(sort, Member(form[0], args))
        if sort == "V":
            self.members.shapes[cls] = self._shape_of(form[0], args)
        return cls

    def _shape_of(self, head: str, args: tuple) -> Shape:
        tiles = [self.members.shapes[x] for x in args if isinstance(x, tuple) and x[0] == "V"]
        if head == "Load":
            _, _, _, rows, cols, *valid = args
            return Shape(rows, cols, DTYPES[self.dtype], *valid)
        if head == "Par":
            rows, cols, s = args
            valid = [const(1 if n == 1 else self.extents.get(n, n)) for n in (rows, cols)]
            made = self.numbers.scalar(s, (rows, cols)).dtype
            return Shape(rows, cols, next(d for d in DTYPES.values() if numpy_dtype(d) == made), *valid)
        return SHAPES.get(head, lambda x, *_: x)(*tiles, *args)


def quotient(a: Any, b: Any) -> Any:
    """As in egglog: of whole numbers a whole one."""
    return a // b if isinstance(a, int) and isinstance(b, int) else a / b


def _product(a: Shape, b: Shape, _a: Class, _b: Class, ta: int, tb: int) -> Shape:
    m, vm = (a.cols, a.vcols) if ta else (a.rows, a.vrows)
    n, vn = (b.rows, b.vrows) if tb else (b.cols, b.vcols)
    return Shape(m, n, DTYPES["f32"], vm, vn)


def _broadcast(v: Shape, axis: int, _v: Class, n: int) -> Shape:
    return Shape(v.cols, n, v.dtype, v.vcols, const(n)) if axis else Shape(n, v.cols, v.dtype, const(n), v.vcols)


def _reduced(x: Shape, count: int, valid: Expr) -> Shape:
    return Shape(1, count, x.dtype, const(1), valid)


def _choice(*tiles: Shape) -> Shape:
    rows, cols = zip(*map(valid_extents, tiles), strict=True)
    return replace(tiles[-1], vrows=least(*rows), vcols=least(*cols))


SHAPES: dict[str, Callable[..., Shape]] = {
    "Fill": lambda f, r, c, d: Shape(r, c, DTYPES[d], const(r), const(c)),
    "FillN": lambda n, r, c, d: Shape(r, c, DTYPES[d], const(r), const(c)),
    "Cast": lambda x, d, _: replace(x, dtype=DTYPES[d]),
    "Bcast": _broadcast,
    "Red": lambda x, axis, *_: _reduced(x, x.rows, x.vrows) if axis else _reduced(x, x.cols, x.vcols),
    "MatMul": _product,
    "Ramp": lambda r, c, *_: Shape(r, c, DTYPES["f32"], const(r), const(c)),
    "Cho": lambda a, b, x, y, *_: _choice(a, b, x, y),
    "ChoS": lambda a, x, y, *_: _choice(a, x, y),
    "ChoI": lambda a, x, y, *_: _choice(a, x, y),
    "OfWhole": lambda x, _op, _i, _j, r, c, _: Shape(r, c, x.dtype, const(r), const(c)),
    "Piece": lambda x, _o, r, c, i, j, _: Shape(r, c, x.dtype, i, j),
    "Bin": lambda x, y, *_: replace(x, vrows=least(x.vrows, y.vrows), vcols=least(x.vcols, y.vcols)),
}
FACTS: dict[str, Callable[[Shape], Any]] = {
    "rows": lambda s: s.rows, "cols": lambda s: s.cols, "vr": lambda s: s.vrows, "vc": lambda s: s.vcols,
    "dt": lambda s: s.dtype.name, "eb": lambda s: s.dtype.bytes,
}  # fmt: skip


def valid_extents(shape: Shape) -> tuple[Expr, Expr]:
    return shape.vrows, shape.vcols


def least(*extents: Expr) -> Expr:
    return const(min(e.args[0] for e in extents))


def literal(atom: str) -> Any:
    if atom.startswith('"'):
        return atom.strip('"')
    return float(atom) if "." in atom or "inf" in atom else int(atom)
