"""Loops that take no trip in some blocks.

What such a loop fills before it, and ends where its trips do, is whole where it takes none. That nothing sees is looked at here:
what is stored, summed or multiplied of it has to end there for a reason of its own, such as the end of a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tile_eg.errors import NotSearched, Span, TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.ranges import Ranges, surely_equal
from tile_eg.frontend.ssa.fold import check_invariant
from tile_eg.ir.index import Expr
from tile_eg.ir.kernel import For
from tile_eg.ir.values import VERSIONS, WRITES, Term, made_of

AXES = ("rows", "columns")
ALONG: Mapping[int, int] = {0: 0, 1: 1}
ALIKE = ("unary", "cast", "binary", "choose", "choose_at", "choose_bits")
ELEMENTS: Mapping[str, Mapping[int, int]] = {"elem": ALONG, "elem_row": {1: 0}, "elem_col": {1: 1}}
Place = tuple[Term, int]
"""An axis of a tile."""
Left = dict[Place, TileError]
"""Axes on which a buffer ends sooner than it seems to, each with the mistake that it is where that is seen."""
Narrowed = Callable[[Term, tuple[Expr, Expr]], Term | None]


def check_left(states: Mapping[str, tuple[Term, Term]], variable: str, ranges: Ranges, s: For) -> None:
    """TileError where a loop leaves a tile with other extents if it takes no trip. `states`: what each was before the loop, and
    behind a trip. What an accumulator is filled with may end where it does (`refuse_seen`)."""
    for name, (before, later) in states.items():
        if before.op != "fill":
            check_invariant(name, (before, later), variable, ranges, s)


def left(states: Mapping[str, tuple[Term, Term]], ranges: Ranges, s: For) -> Left:
    """The axes on which a loop leaves less of a tile than stands before it, for `refuse_seen`. `states`: what each was before the
    loop, and is behind it."""
    found: Left = {}
    for name, (before, after) in states.items():
        for axis, (a, b) in enumerate(((before.vrows, after.vrows), (before.vcols, after.vcols))):
            if a is not None and b is not None and not surely_equal(a, b, ranges):
                found[after, axis] = _no_trip(name, axis, s.span)
    return found


def _no_trip(name: str, axis: int, span: Span | None) -> NotSearched:
    return NotSearched(
        f"this loop takes no trip in some blocks, where more {AXES[axis]} of `{name}` exist than its trips leave", span,
        help="choose a tile that divides the tensor, or load a number for what lies beyond its end: "
        + hint("pad(A[i, j], 0)", "T.copy(A[i, j], x, pad_value=0)", span),
    )  # fmt: skip


def noting(left: Left, narrowed: Narrowed) -> Narrowed:
    """`narrowed`, which makes a result of a loop that ends sooner; axes on which it does not are noted as the other's."""

    def result(x: Term, ends: tuple[Expr, Expr]) -> Term | None:
        found = narrowed(x, ends)
        if found is not None:
            left.update({(found, a): left[x, a] for a in (0, 1) if (x, a) in left and _end(x, a) == _end(found, a)})
        return found

    return result


def refuse_seen(outputs: tuple[Term, ...], left: Left, short: Mapping[Term, frozenset[int]]) -> None:
    """TileError where more of what a loop leaves would be seen than there is. `left`: the axes on which it ends sooner than it
    seems to; `short`: of stores of less than their windows the axes on which they are."""
    users: dict[Term, list[Term]] = {}
    terms = made_of(outputs) if left else set()
    for t in terms:
        for x, _ in operands(t):
            users.setdefault(x, []).append(t)
    states = [(t, k, x) for t in terms if t.op == "loop" for k, pair in enumerate(t.args[2]) for x in pair]
    reads = {(t.args[0], t.args[1]): t for t in terms if t.op == "arg"}
    reads |= {(t.args[0], t.args[1]): t for t in terms if t.op == "proj"}
    for loop, k, x in states:
        users.setdefault(x, []).extend(r for of in (loop, loop.args[0]) if (r := reads.get((of, k))) is not None)
    for begun, of in left.items():
        if begun[0] in terms and _seen(begun, users, short):
            raise of


def _seen(begun: Place, users: Mapping[Term, list[Term]], short: Mapping[Term, frozenset[int]]) -> bool:
    """Whether more of a tile is seen on an axis than there is of it."""
    ends: dict[Place, bool] = {}
    known, stack = {begun}, [begun]
    while stack:
        x, axis = stack.pop()
        for u in users.get(x, ()):
            if u.op in WRITES:
                if axis in short.get(u, ()):
                    return True
                continue
            for operand, onto in [*operands(u)] or [(x, ALONG)]:
                if operand is x and axis not in onto:
                    return True
                place = (u, onto[axis]) if operand is x else begun
                if place not in known and not _ends(*place, ends):
                    known.add(place)
                    stack.append(place)
    return False


def operands(t: Term) -> Iterator[tuple[Term, Mapping[int, int]]]:
    """The tiles that a term is made of, each with the axes of the term that its own ones are; the others matter to all of it."""
    match t.op, t.args:
        case "loop" | "arg" | "proj", _:
            return
        case op, _ if op in ELEMENTS or op.startswith("s_"):  # of the nest that they are in
            return
        case "bcast", (axis, v):
            yield v, {1: 0 if axis == 1 else 1}
        case "reduce", (axis, _, v):
            yield v, {0: 1} if axis == 1 else {1: 1}
        case "matmul", (a, b, ta, tb):
            yield a, {1 if ta else 0: 0}
            yield b, {0 if tb else 1: 1}
        case "nest", (scalar,):
            yield from _elements(scalar)
        case op, args:
            onto = ALONG if op in (*ALIKE, *WRITES) else {}
            yield from ((x, onto) for x in args if isinstance(x, Term) and x.op not in VERSIONS)


def _elements(s: Term, summed: bool = False) -> Iterator[tuple[Term, Mapping[int, int]]]:
    """The tiles whose elements a scalar term of an element loop is made of."""
    if s.op in ELEMENTS:
        yield s.args[0], {} if summed else ELEMENTS[s.op]
        return
    for x in s.args:
        if isinstance(x, Term):
            yield from _elements(x, summed or s.op == "s_reduce")


def _ends(t: Term, axis: int, known: dict[Place, bool]) -> bool:
    """Whether a tile ends on an axis for a reason of its own: what it is made of is loaded up to there."""
    if (t, axis) not in known:
        own = ((x, a) for x, onto in operands(t) for a, at in onto.items() if at == axis)
        known[t, axis] = t.op == "load" or any(_end(x, a) == _end(t, axis) and _ends(x, a, known) for x, a in own)
    return known[t, axis]


def _end(t: Term, axis: int) -> Expr | None:
    return t.vcols if axis else t.vrows
