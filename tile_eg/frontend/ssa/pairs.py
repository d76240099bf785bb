"""Loops that write pairs, `y[2*j] = x[2*j] * c[j] - x[2*j + 1] * s[j]` and the like for `y[2*j + 1]`, as one loop over all
elements: it reads x, x with its neighbours in each other's place, and each element of c and s twice.

Nothing is taken apart, and what is read twice is gathered once where a loop around does not change it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tile_eg.frontend.ssa.interleaved import all_of, elements_in_turns, free_name
from tile_eg.frontend.ssa.loops import Buffers, Loop, with_loops
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import F32, I32, U32, DType
from tile_eg.ops.whole_tiles import WHOLE_TILES, WORDS

SWAPPED = WHOLE_TILES["swap_pairs"]
SIGNED = {("sub", "add"): -1, ("add", "sub"): 1}
"""What stands before the second operand of a sum whose even elements are the one and whose odd ones are the other: the sign of
the even ones."""
COMMUTES = ("add", "mul", "max", "min")


def paired(kernel: kn.Kernel) -> kn.Kernel:
    """The kernel in which such a loop runs over whole rows."""
    return with_loops(kernel, _instead)


def _instead(s: Loop, buffers: Buffers) -> list[kn.Stmt] | None:
    found = elements_in_turns(s, buffers)
    if found is None:
        return None
    loop = _Pairs(found.variables, found.extents, buffers, s.span)
    value = loop.joined(found.body[0].value, found.body[1].value)
    return [s] if value is None else loop.statements(found.body[0], value)


@dataclass
class _Pairs:
    """One such loop: its variables and extents (the last one counts pairs), and the tiles that it needs beside what it reads."""

    variables: tuple[str, ...]
    extents: tuple[int, ...]
    buffers: Buffers
    span: kn.Span | None
    before: list[kn.Stmt] = field(default_factory=list)
    tiles: dict[tuple[str, str, int], str] = field(default_factory=dict)

    def statements(self, even: kn.Assign, value: kn.TileExpr) -> list[kn.Stmt]:
        extents = (*self.extents[:-1], 2 * self.extents[-1])
        target = replace(even.target, starts=(*even.target.starts[:-1], ix.var(self.variables[-1])))
        return [*self.before, kn.Parallel(self.variables, extents, (replace(even, target=target, value=value),), self.span)]

    def joined(self, even: kn.TileExpr, odd: kn.TileExpr, sign: int = 0) -> kn.TileExpr | None:
        """The expression whose even elements are the one and whose odd ones are the other, in a loop over all; None where it
        reads elements that are no pair. A `sign` stands before even elements, its opposite before odd ones.
        """
        match even, odd:
            case kn.Binary(), kn.Binary():
                return self._binary(even, odd, sign)
            case (kn.Unary(op=a), kn.Unary(op=b)) if a == b and not sign:
                return self._inside(even, even.x, odd.x)
            case (kn.Cast(dtype=a), kn.Cast(dtype=b)) if a == b and not a.whole:
                return self._inside(even, even.x, odd.x, sign)
            case (kn.Number(), kn.Number()) if even.value == odd.value:
                return self._times_sign(even, sign, F32)
            case kn.Region(), kn.Region():
                return self._elements(even, odd, sign)
        return None

    def _inside(self, e: kn.Unary | kn.Cast, even: kn.TileExpr, odd: kn.TileExpr, sign: int = 0) -> kn.TileExpr | None:
        x = self.joined(even, odd, sign)
        return None if x is None else replace(e, x=x)

    def _binary(self, even: kn.Binary, odd: kn.Binary, sign: int) -> kn.TileExpr | None:
        """Operand by operand, those of the odd element in the other order as well where that is the same."""
        orders = [(odd.x, odd.y)]
        if odd.op in COMMUTES:
            orders.append((odd.y, odd.x))
        for x, y in orders:
            found = self._operands(even, (x, y), odd.op, sign)
            if found is not None:
                return found
        return None

    def _operands(self, even: kn.Binary, odd: tuple[kn.TileExpr, kn.TileExpr], op: str, sign: int) -> kn.TileExpr | None:
        """A sign of a product goes to the operand that is the same in both, and may so be found before a loop."""
        first = second = 0
        if (even.op, op) in SIGNED and not sign:
            second, op = SIGNED[even.op, op], "add"
        elif even.op != op or (sign and op != "mul"):
            return None
        elif sign:
            first, second = (sign, 0) if even.x == odd[0] else (0, sign)
        x, y = self.joined(even.x, odd[0], first), self.joined(even.y, odd[1], second)
        return None if x is None or y is None else replace(even, op=op, x=x, y=y)

    def _elements(self, even: kn.Region, odd: kn.Region, sign: int) -> kn.TileExpr | None:
        """Elements 2*j and 2*j + 1 of a tile, in this order or the other, or one element of a tile of half the columns."""
        of, last = self.buffers.get(even.name), self.variables[-1]
        if of is None or len(of.shape) > 2 or (even.name, even.starts[:-1]) != (odd.name, odd.starts[:-1]):
            return None
        free = {name for start in even.starts[:-1] for name in ix.variables(start)}
        if last in free or any(e is not None for e in even.extents) or (sign and of.dtype.whole):
            return None
        one = replace(even, starts=(*even.starts[:-1], ix.var(last)))
        match self._kind(even.starts[-1], odd.starts[-1]):
            case "same":
                return self._times_sign(even, sign, of.dtype)
            case "pair" if of.shape[-1] == 2 * self.extents[-1]:
                return self._times_sign(one, sign, of.dtype)
            case "swapped" if of.shape[-1] == 2 * self.extents[-1] and of.dtype in (*WORDS, *SWAPPED.types):
                return replace(one, name=self._tile(of, "swapped", sign))
            case "twice" if of.shape[-1] == self.extents[-1] and of.dtype in WORDS:
                return replace(one, name=self._tile(of, "twice", sign))
        return None

    def _kind(self, even: ix.Expr, odd: ix.Expr) -> str:
        """What the columns of the even and of the odd element are to each other."""
        col = ix.var(self.variables[-1])
        if even == odd and self.variables[-1] not in ix.variables(even):
            return "same"
        return {(col * 2, col * 2 + 1): "pair", (col * 2 + 1, col * 2): "swapped", (col, col): "twice"}.get((even, odd), "")

    def _times_sign(self, x: kn.TileExpr, sign: int, dtype: DType) -> kn.TileExpr:
        if not sign:
            return x
        name = self._signs((*self.extents[:-1], 2 * self.extents[-1]), sign, dtype)
        return kn.Binary("mul", x, kn.Region(name, tuple(map(ix.var, self.variables)), (None,) * len(self.variables), self.span))

    # ---- the tiles beside what is read: each is made once for the loop ----

    def _tile(self, of: kn.Alloc, kind: str, sign: int) -> str:
        """A tile of swapped or repeated elements, with the sign where there is one."""
        key = (of.name, kind, sign)
        if key not in self.tiles:
            shape = (*of.shape[:-1], 2 * self.extents[-1])
            value: kn.TileExpr
            if sign:
                signs = self._whole(self._signs(shape, sign, of.dtype))
                value = kn.Binary("mul", self._whole(self._tile(of, kind, 0)), signs)
            elif kind == "swapped" and of.dtype in SWAPPED.types:
                value = kn.Whole(SWAPPED.name, (_all_there(of, self.span),), (0, 0), self.span)
            else:
                value = kn.Whole("gather", (_all_there(of, self.span), self._offsets(of, shape, kind)), (0, 0), self.span)
            self.tiles[key] = self._made(f"{of.name}_{kind}", replace(of, shape=shape), value)
        return self.tiles[key]

    def _offsets(self, of: kn.Alloc, shape: tuple[int, ...], kind: str) -> kn.TileExpr:
        """Where each element comes from, in bytes: column j // 2, or the neighbour of j, which is 4 * (j // 2) + 1 - j."""
        column, half = self._column(shape)
        if kind == "swapped":
            half = _plus(_times(half, 4), _plus(_times(column, -1), kn.Number(1.0)))
        row, size = ix.ZERO if len(shape) == 1 else ix.var(self._axes(shape)[0]) * of.shape[-1], of.dtype.bytes
        at = _times(_plus(half, self._whole(self._places("row", shape, row))), size)
        return kn.Cast(U32, kn.Cast(I32, at, self.span), self.span)

    def _signs(self, shape: tuple[int, ...], sign: int, dtype: DType) -> str:
        """`sign` in even columns and its opposite in odd ones: sign * (1 - 2 * (j - 2 * (j // 2)))."""
        key = (dtype.name, str(shape), sign)
        if key not in self.tiles:
            column, half = self._column(shape)
            odd = _plus(column, _times(half, -2))
            value = _plus(_times(odd, -2 * sign), kn.Number(float(sign)))
            self.tiles[key] = self._made("sign", replace(self._floats(shape), dtype=dtype), value)
        return self.tiles[key]

    def _column(self, shape: tuple[int, ...]) -> tuple[kn.TileExpr, kn.TileExpr]:
        """The column of each element, and half of it, cut off."""
        column = self._whole(self._places("column", shape, ix.var(self._axes(shape)[-1])))
        return column, kn.Unary("floor", _times(column, 0.5), self.span)

    def _places(self, what: str, shape: tuple[int, ...], place: ix.Expr) -> str:
        """A tile of numbers that follow from where an element stands."""
        key = (what, f"{shape} {place}", 0)
        if key not in self.tiles:
            axes = self._axes(shape)
            made = self._new(f"pair_{what}", self._floats(shape))
            point = kn.Region(made.name, tuple(map(ix.var, axes)), (None,) * len(axes), self.span)
            self.before.append(kn.Parallel(axes, shape, (kn.Assign(point, kn.Index(place, self.span), self.span),), self.span))
            self.tiles[key] = made.name
        return self.tiles[key]

    def _axes(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        """Variables that run over a tile: those of the loop, and one of its own for the rows where the loop is over one row."""
        rows = self.variables[0] if len(self.variables) == 2 else f"{self.variables[-1]}_row"
        return (*[rows] * (len(shape) - 1), self.variables[-1])

    def _floats(self, shape: tuple[int, ...]) -> kn.Alloc:
        return kn.Alloc("", "fragment", F32, shape, self.span)

    def _made(self, name: str, like: kn.Alloc, value: kn.TileExpr) -> str:
        made = self._new(name, like)
        self.before.append(kn.Assign(all_of(made, self.span), value, self.span))
        return made.name

    def _new(self, name: str, like: kn.Alloc) -> kn.Alloc:
        made = replace(like, name=free_name(name, self.buffers))
        self.buffers[made.name] = made
        self.before.append(made)
        return made

    def _whole(self, name: str) -> kn.Region:
        return all_of(self.buffers[name], self.span)


def _all_there(of: kn.Alloc, span: kn.Span | None) -> kn.TileExpr:
    """A tile, zeros in the place of what its tensor does not have: the operations on whole tiles take all of it."""
    return kn.Pad(all_of(of, span), 0.0, span)


def _times(x: kn.TileExpr, n: float) -> kn.TileExpr:
    return kn.Binary("mul", x, kn.Number(float(n)))


def _plus(x: kn.TileExpr, y: kn.TileExpr) -> kn.TileExpr:
    return kn.Binary("add", x, y)
