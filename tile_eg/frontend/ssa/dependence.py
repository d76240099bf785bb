"""Element and row loops as lists of statements, and whether each statement may run over all iterations before the next one does.

That is so where every iteration keeps to its own row (or element) of what the loop writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tile_eg.errors import TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.liveness import Names
from tile_eg.frontend.trips import refuse_counted
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.index_elements import elements_in
from tile_eg.ir.operands import regions
from tile_eg.ops.records import record

Shapes = Mapping[str, tuple[int, ...]]
Decide = Callable[[Expr, kn.Span | None, Mapping[str, int]], bool]
Chosen = Callable[[kn.If, Mapping[str, int]], "tuple[kn.Stmt, ...] | None"]


@record
class Step:
    """One assignment of a nest, with the variables of the loops around it and their extents, outermost first."""

    assign: kn.Assign
    extents: dict[str, int]
    depth: int

    def accesses(self) -> list[kn.Region]:
        return [*regions(self.assign.value), self.assign.target]


def is_row_loop(s: kn.For, shapes: Shapes) -> bool:
    """Whether the loop's variable picks the rows or elements of buffers that it writes."""
    found = list(kn.assigns(s.body))
    if any(a.target.name in shapes and _in_runs(a.target, s) for a in found):
        return False
    own = any(a.target.name in shapes and s.var in _plain_variables(a.target) for a in found)
    return own or any(_scatters(a, s.var, shapes) for a in found)


def _in_runs(r: kn.Region, s: kn.For) -> bool:
    """Whether the loop goes from run to run of elements, y[k*n + i] with another loop over i inside it."""
    inner = {v for loop in _loops(s.body) for v in ((loop.var,) if isinstance(loop, kn.For) else loop.vars)}
    found = [ix.variables(x) for x, e in zip(r.starts, r.extents, strict=True) if e is None]
    return any(s.var in v and inner & v for v in found)


def _loops(body: tuple[kn.Stmt, ...]) -> Iterator[kn.For | kn.Parallel]:
    for x in body:
        if isinstance(x, kn.For | kn.Parallel):
            yield from (x, *_loops(x.body))


def _scatters(a: kn.Assign, variable: str, shapes: Shapes) -> bool:
    """Whether a row of a buffer goes to where an index that was read says."""
    rows = any(r.name in shapes and variable in _plain_variables(r) for r in regions(a.value))
    places = [r for s in a.target.starts for r in elements_in(s)]
    return rows and a.target.name not in shapes and any(variable in ix.variables(r) for r in places)


def _plain_variables(r: kn.Region) -> frozenset[str]:
    plain = (ix.variables(s) for s, e in zip(r.starts, r.extents, strict=True) if e is None)
    return frozenset().union(*plain)


def steps(s: kn.For | kn.Parallel, decide: Decide, chosen: Chosen) -> list[Step]:
    """The assignments of a nest in program order. `chosen` makes choices of a branch whose condition is not the same everywhere;
    `decide` answers the conditions of others.

    They are given the extents of the nest's variables around it.
    """
    out: list[Step] = []
    _Collector(decide, chosen, out).collect((s,), {}, 0)
    return out


@record
class _Collector:
    decide: Decide
    chosen: Chosen
    out: list[Step]

    def collect(self, body: tuple[kn.Stmt, ...], extents: dict[str, int], depth: int) -> None:
        for s in body:
            match s:
                case kn.Assign():
                    self.out.append(Step(s, extents, depth))
                case kn.For():
                    refuse_counted(s, "a loop over rows or elements")
                    if s.start:
                        raise TileError("a loop over rows or elements starts at 0: other starts are not supported yet", s.span)
                    self.collect(s.body, extents | {s.var: s.extent}, depth + 1)
                case kn.Parallel():
                    self.collect(s.body, extents | dict(zip(s.vars, s.extents, strict=True)), depth + 1)
                case kn.If():
                    choices = self.chosen(s, extents)
                    if choices is None:
                        choices = s.then if self.decide(s.condition, s.span, extents) else s.otherwise
                    self.collect(choices, extents, depth)


def temporaries(nest: list[Step], shapes: Shapes, after: Names) -> Names | TileError:
    """The buffers that each iteration of the outermost loop fills and uses by itself; or that an iteration uses what another one
    wrote."""
    found: set[str] = set()
    for variable in dict.fromkeys(v for step in nest for v in step.extents):
        inside = [step for step in nest if variable in step.extents]
        for name in dict.fromkeys(step.assign.target.name for step in inside):
            own = _own_elements(name, variable, inside) or _not_temporary(name, variable, nest, inside, shapes, after)
            if isinstance(own, TileError):
                return own
            found |= set() if own else {name}
    return frozenset(found)


def _own_elements(name: str, variable: str, inside: list[Step]) -> bool | TileError:
    """Whether each iteration touches only its own part of a buffer, False where no access depends on the variable; or where two
    of them meet."""
    all_accesses = [r for step in inside for r in step.accesses() if r.name == name]
    depending = [r for r in all_accesses if any(variable in ix.variables(s) for s in r.starts)]
    if not depending:
        return False
    extent = max(step.extents[variable] for step in inside)
    if _apart({_place(r, variable) for r in all_accesses}, extent):
        return True
    if len({r.starts for r in all_accesses}) == 1 and any(map(elements_in, all_accesses[0].starts)):
        return True  # rows whose place is read: that they lie apart is the author's word, and the simulator's to check
    odd = next((r for r in all_accesses if _place(r, variable) != _place(depending[0], variable)), depending[0])
    return TileError(
        f"iterations of `{variable}` meet at `{name}`: one uses what another writes", odd.span,
        notes=(("it is written here", next(s.assign.span for s in inside if s.assign.target.name == name)),),
        help=f"each iteration may touch only its own part, indexed by plain `{variable}`",
    )  # fmt: skip


@record
class _Place:
    """Where an iteration of a loop is: `step` times its variable and `rest`, of one dimension."""

    dim: int
    step: int
    rest: Expr


def _apart(places: set[_Place | None], extent: int) -> bool:
    """Whether no two iterations meet: one place in every iteration, or places that lie between one another's or beyond them."""
    found = [p for p in places if p is not None]
    if len(found) < len(places) or len({(p.dim, p.step) for p in found}) != 1:
        return False
    step = found[0].step
    gaps = [(a.rest - b.rest).value for n, a in enumerate(found) for b in found[:n]]
    return all(gap is not None and (gap % step != 0 or abs(gap) >= extent * abs(step)) for gap in gaps)


def _place(r: kn.Region, variable: str) -> _Place | None:
    """The dimension that the variable picks and the index without it, or None where it does not pick exactly one."""
    dims = [d for d, s in enumerate(r.starts) if variable in ix.variables(s)]
    if len(dims) != 1 or r.extents[dims[0]] is not None:
        return None
    step = multiple(r.starts[dims[0]], variable)
    rest = r.starts[dims[0]] - ix.var(variable) * step
    return None if variable in ix.variables(rest) else _Place(dims[0], step, rest)


def multiple(e: Expr, variable: str) -> int:
    """How often an index has the variable as a term: 2 of 2*i + j; 1 where it stands in something else, as in i % 4."""
    return ix.terms_of(e).get(ix.var(variable), 1)


def _not_temporary(
    name: str, variable: str, nest: list[Step], inside: list[Step], shapes: Shapes, after: Names
) -> TileError | None:
    """What is wrong with a buffer without this loop's variable: it is not written as a whole before it is read, or lives on."""
    first = next(step for step in inside if any(r.name == name for r in step.accesses()))
    target = first.assign.target
    reads_first = any(r.name == name for r in regions(first.assign.value)) or target.name != name
    inner = any(step.depth > 1 and step.assign.target.name == name for step in nest)
    if reads_first or name in after or inner or name not in shapes:
        return TileError(
            f"every iteration of `{variable}` writes the same `{name}`", first.assign.span,
            help=f"index it by `{variable}`, or use a reduction such as "
            + hint("rowmax, rowsum, max(s[i, :])", "T.reduce_max, T.reduce_sum", first.assign.span),
        )  # fmt: skip
    return None
