"""Where the cores of a kernel wait for each other that is done in the order of its statements, and has no flags of its own.

Cube and vector cores, and the vector cores among each other, see of one another what lies in GM. Before an instruction that
touches what another core has touched there since they last met, one of the two writing, all cores of the block meet: each has
finished what came before, and goes on when the others have. Both vector cores do each vector statement; what comes out the same
from both, and goes to one place, is stored by the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tile_eg.errors import ReadFirst, TileError
from tile_eg.frontend.expert.handovers import with_handovers
from tile_eg.frontend.expert.places import same_memory
from tile_eg.frontend.expert.reader import On
from tile_eg.frontend.hints import TWO_STREAMS
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.index import BLOCK, SUB, Expr, Interval
from tile_eg.ir.index_elements import all_elements_in, elements_in
from tile_eg.ir.machine import CROSS_IDS
from tile_eg.ir.program import AIC, AIV
from tile_eg.ir.program.tasks import with_indices
from tile_eg.ir.sizes import usual
from tile_eg.ops.records import record

FLAGS = {AIC: (CROSS_IDS[0], "FIX"), AIV: (CROSS_IDS[1], "MTE3")}
"""The flag that a core sets where it meets the others, and the pipe that sets it."""


class _Meeting:
    """Stands among statements where all cores of the block meet."""


FIRST = ix.less(ix.var(SUB), 1)
"""On the first vector core alone."""
MEETING = On(None, _Meeting())  # type: ignore[arg-type]


@record
class _Use:
    """What an instruction touches in GM. `who` says which of the vector cores do it, where that is not both."""

    core: str | None
    tensor: str
    window: tuple[Any, ...]
    written: bool
    added: bool
    who: str


def with_meetings(
    statements: Sequence[Any], halves: bool, ranges: Mapping[str, Interval], views: Mapping[str, str], streams: bool = False
) -> list[Any]:
    """The statements with meetings of the cores where they need them; `halves`: the vector cores do different things.
    `ranges` are those of the variables in indices, `views` says of which buffer each view is.

    Where one kind of core reads what the other writes only further down, `streams` says that each does its own statements by
    itself: then there are flags for what they hand over. TileError where that is not asked for, and where the vector cores would
    store different values to one place, or meet where only one of them comes by.
    """
    late = read_first(statements)
    if late and not streams:
        raise late
    differing = _differing(statements, views) if halves else set()
    done = list(_stored_once(statements, differing)) if halves else list(statements)
    if late:
        return with_handovers(done, lambda node: not _differs(_decides(node), differing))
    return list(_expanded(_Walk(halves, differing, ranges).body(done, {})))


def _expanded(statements: Sequence[Any]) -> Iterator[Any]:
    for on in statements:
        if on is MEETING:
            yield from _met()
        elif isinstance(on.node, pr.Loop | pr.When):
            yield replace(on, node=replace(on.node, body=tuple(_expanded(on.node.body))))
        else:
            yield on


def _met() -> Iterator[On]:
    """The vector cores tell the cube core, which waits for both and then tells them."""
    (there, pipe), (back, own) = FLAGS[AIV], FLAGS[AIC]
    yield from (On(AIV, n) for n in (pr.PipeBarrier("ALL"), pr.CrossSet(pipe, there), pr.CrossWait(back)))
    yield from (On(AIC, n) for n in (pr.PipeBarrier("ALL"), pr.CrossWait(there), pr.CrossSet(own, back)))


@dataclass
class _Walk:
    halves: bool
    differing: set[str]
    ranges: Mapping[str, Interval]

    def body(self, statements: Sequence[Any], pending: dict[_Use, None]) -> list[Any]:
        """The statements with meetings; `pending` is what was touched since the last one, and is kept up."""
        out: list[Any] = []
        for on in statements:
            node = on.node
            if on is MEETING:
                pending.clear()
            elif isinstance(node, pr.Loop | pr.When) and not _differs(_decides(node), self.differing):
                on = replace(on, node=self.nested(node, pending))
            else:
                uses = self.together(on)
                if any(self.meet(a, b) for a in pending for b in uses):
                    out.append(MEETING)
                    pending.clear()
                pending.update(dict.fromkeys(uses))
            out.append(on)
        return out

    def nested(self, node: Any, pending: dict[_Use, None]) -> Any:
        """A loop or a branch that all cores take: its end meets its beginning where it repeats."""
        before = dict(pending)
        body = list(node.body)
        while True:
            inside = dict(pending)
            made = self.body(body, inside)
            if not isinstance(node, pr.Loop | pr.While) or (made == body and inside.keys() <= pending.keys()):
                break
            body = made
            pending |= inside
        pending.clear()
        pending |= before | inside
        return replace(node, body=tuple(made))

    def together(self, on: Any) -> list[_Use]:
        """What a statement touches, with all that stands in it where the vector cores decide by themselves whether it is done."""
        node = on.node
        if not isinstance(node, pr.Loop | pr.When):
            return list(_uses(node))
        who = ix.text(_decides(node))
        uses = [replace(u, who=f"{who} {u.who}") for inner in node.body for u in self.together(inner)]
        for n, a in enumerate(uses):
            if any(self.meet(a, b) for b in uses[:n]):
                raise TileError(
                    f"cores would have to meet at `{a.tensor}` where one of them may not come by", getattr(node, "span", None),
                    help="let the condition be the same on both vector cores",
                )  # fmt: skip
        return uses

    def meet(self, a: _Use, b: _Use) -> bool:
        """Whether the order of two uses matters, and is not that of one core's instructions."""
        if a.tensor != b.tensor or not (a.written or b.written) or (a.added and b.added):
            return False
        if a.core != b.core:
            return True
        other = a.who != b.who or (a.window != b.window and not a.who)
        return self.halves and a.core == AIV and other and not _apart(a, b, self.ranges)


def _apart(a: _Use, b: _Use, ranges: Mapping[str, Interval]) -> bool:
    """Whether what one vector core touches is never what the other one touches, in whatever trips of their loops."""
    names = ix.variables(b.window[0]) - {SUB, BLOCK}
    again = {n: ix.var(f"{n}'") for n in names}
    spans = {**ranges, **{f"{n}'": ranges[n] for n in names if n in ranges}}
    known = ix.variables(a.window[0]) | names <= ranges.keys() | {SUB, BLOCK}
    if not known or elements_in(a.window[0]) or elements_in(b.window[0]):
        return False
    for core in (0, 1):
        first = ix.substitute(a.window[0], {SUB: ix.const(core)})
        second = ix.substitute(b.window[0], {SUB: ix.const(1 - core), **again})
        low, high = ix.bounds(second - first, spans)
        if low < _extent(a, spans) and -high < _extent(b, spans):
            return False
    return True


def _extent(use: _Use, ranges: Mapping[str, Interval]) -> int:
    """How many elements there are from the first to the last that is touched, at most."""
    _, stride, rows, cols = use.window
    down, along = (ix.bounds(e, ranges)[1] for e in (rows, cols))
    return max(0, down - 1) * usual(stride) + along


def _uses(node: Any) -> Iterator[_Use]:
    if not isinstance(node, pr.Instr):
        return
    who = "" if node.when == ix.ONE else ix.text(node.when)
    for operands, written in ((node.reads(), False), (node.writes(), True)):
        for o in operands:
            if isinstance(o, pr.Gm):
                window = (o.offset, o.stride, node.rows, node.cols)
                yield _Use(node.core, o.tensor, window, written, bool(node.atomic), who)


def read_first(statements: Sequence[Any]) -> ReadFirst | None:
    """What is wrong where one kind of core reads what the other one writes only further down."""
    first: dict[str, tuple[_Use, Any]] = {}
    for node in _instructions(statements):
        for use in _uses(node):
            before, span = first.setdefault(use.tensor, (use, node.span))
            if use.written and not before.written and before.core != use.core:
                return ReadFirst(
                    f"`{use.tensor}` is read before it is written: statements mean what they say in the order they stand", span,
                    notes=((f"`{use.tensor}` is first written here", node.span),),
                    help=f"put what the cores do for a step one behind the other; write the flags between the cores: "
                    f"T.set_cross_flag(pipe, n), T.wait_cross_flag(n); or let the cores be two streams: {TWO_STREAMS}",
                )  # fmt: skip
    return None


def _instructions(statements: Sequence[Any]) -> Iterator[Any]:
    for on in statements:
        node = getattr(on, "node", on)
        if isinstance(node, pr.Loop | pr.When):
            yield from _instructions(node.body)
        else:
            yield node


def _decides(node: Any) -> Expr:
    """What says how often a loop or a branch is done."""
    return node.condition if isinstance(node, pr.When) else node.until or ix.ONE


def _differs(e: Expr, differing: set[str]) -> bool:
    """Whether an index is not the same on both vector cores."""
    return SUB in ix.variables(e) or any(r.args[0] in differing for r in all_elements_in(e))


def _differing(statements: Sequence[Any], views: Mapping[str, str]) -> set[str]:
    """The buffers, tensors and kept numbers that hold something else on each of the two vector cores."""
    found, before = set[str](), -1
    while len(found) != before:
        before = len(found)
        _spread(statements, False, found)
        found |= same_memory(views, found)
    return found


def _spread(statements: Sequence[Any], under: bool, found: set[str]) -> None:
    for on in statements:
        node = on.node
        if isinstance(node, pr.Loop | pr.When):
            _spread(node.body, under or _differs(_decides(node), found), found)
        elif isinstance(node, pr.Scalar):
            if under or _depends(node, found) or _of_formula(node.value, found):
                found.add(node.name)
        elif isinstance(node, pr.Instr) and node.core == AIV:
            read = {o.buffer for o in node.reads() if isinstance(o, pr.Tile)}
            own = isinstance(node.dst, pr.Tile)
            if own and (under or read & found or _depends(node, found) or (node.value and _of_formula(node.value, found))):
                found.add(node.dst.buffer)  # type: ignore[union-attr]


def _of_formula(f: pr.Formula, found: set[str]) -> bool:
    return bool(set(f.scalars()) & found or {t.buffer for t in f.elements()} & found)


def _depends(node: Any, found: set[str]) -> bool:
    """Whether an index expression of an instruction is not the same on both vector cores."""
    seen: list[Expr] = []

    def look(e: Expr) -> Expr:
        seen.append(e)
        return e

    with_indices(node, look)
    return any(_differs(e, found) for e in seen)


def _stored_once(statements: Sequence[Any], differing: set[str], under: bool = False) -> Iterator[Any]:
    """The statements in which the first vector core stores what both have, where they would store it to one place."""
    for on in statements:
        node = on.node
        if isinstance(node, pr.Loop | pr.When):
            inner = under or _differs(_decides(node), differing)
            yield replace(on, node=replace(node, body=tuple(_stored_once(node.body, differing, inner))))
        elif _stores(node) and not under and not _differs(node.dst.offset, differing):
            (value,) = node.srcs
            if value.buffer in differing or _depends(node, differing):
                raise TileError(
                    f"both vector cores write the same elements of `{node.dst.tensor}`, and their values differ", node.span,
                    help="let the window begin where the number of the vector core says, or store it in a branch: if vid == 0",
                )  # fmt: skip
            yield replace(on, node=replace(node, when=FIRST))
        else:
            yield on


def _stores(node: Any) -> bool:
    return isinstance(node, pr.Instr) and node.op == "ub_to_gm" and isinstance(node.dst, pr.Gm) and not node.atomic


def check_given_once(statements: Sequence[Any], views: Mapping[str, str]) -> None:
    """TileError where the first vector core gives the cube core a tile of which the other one has another."""
    differing = _differing(statements, views)
    for node in _instructions(statements):
        given = isinstance(node, pr.Instr) and node.op == "ub_to_gm" and isinstance(node.dst, pr.Tile) and node.when == FIRST
        if given and any(isinstance(x, pr.Tile) and x.buffer in differing for x in node.srcs):
            raise TileError(
                "both vector cores copy a tile to the same place in L1, and their values differ", node.span,
                help="let each copy its part: T.copy(x, a[vid * n : vid * n + n, :]), n being the rows of x",
            )  # fmt: skip
