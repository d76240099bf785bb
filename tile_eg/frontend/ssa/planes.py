"""Buffers and element loops of three and four dimensions, as those of two: a buffer becomes its planes, a loop over planes is
written out. One of four becomes such of three first.

`for h, i, j in Parallel(4, 32, 64)` means the same as four loops over `i, j`, one behind the other, since its iterations are
independent. A buffer of two dimensions whose rows go with planes (`m[h, i]`) becomes its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from tile_eg.errors import NotSearched, TileError, no_form
from tile_eg.frontend.checks import check
from tile_eg.frontend.index_text import index_text
from tile_eg.frontend.trips import refuse_counted
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ir.index import Expr
from tile_eg.ir.operands import parts, regions
from tile_eg.ops.records import record

MOST = 16
"""Planes that are written out; each is a load and an instruction of its own."""

Names = frozenset[str]


def without_planes(kernel: kn.Kernel) -> kn.Kernel:
    """The kernel with buffers and element loops of at most two dimensions. Raises TileError where a plane is not known."""
    return _of_rank(_of_rank(kernel, 3), 2)


def written_planes(kernel: kn.Kernel) -> tuple[kn.Stmt, ...]:
    """The statements of the kernel in which no buffer has more than two dimensions; whether their windows are right is not looked
    at. TileError as of `without_planes`."""
    for rank in (3, 2):
        kernel = replace(kernel, body=tuple(_planes(kernel, rank).body(kernel.body, {})))
    return kernel.body


def _of_rank(kernel: kn.Kernel, rank: int) -> kn.Kernel:
    """The kernel whose buffers and element loops of one dimension more have `rank`."""
    planes = _planes(kernel, rank)
    if not planes.buffers and not planes.variables:
        return kernel
    flat = replace(kernel, body=tuple(planes.body(kernel.body, {})))
    try:
        check(flat)
    except TileError as e:
        e.help = e.help and "planes are not cut at the edge of a tensor: choose a number of planes that divides it"
        raise no_form(e) from None
    return flat


def _planes(kernel: kn.Kernel, rank: int) -> Planes:
    """The buffers that are taken apart and the loop variables that are written out: each asks for more of the other."""
    allocs = {a.name: a for a in kn.statements(kernel.body) if isinstance(a, kn.Alloc)}
    found = Planes(allocs, _names(a for a in allocs.values() if len(a.shape) > rank), frozenset(), rank)
    variables = {_leading(s) for s in kn.statements(kernel.body) if isinstance(s, kn.Parallel) and len(s.vars) > rank}
    loops = {v for s in kn.statements(kernel.body) for v in _variables(s)}
    accesses = [r for a in kn.assigns(kernel.body) for r in (a.target, *regions(a.value))]
    whole = {r.name for a in kn.assigns(kernel.body) for r in _taken_whole(a.value) if len(r.extents) == rank}
    while True:
        buffers = found.buffers | {
            r.name for r in accesses
            if r.name in allocs and r.name not in whole and len(r.starts) > 1 and ix.variables(r.starts[0]) & variables
        }  # fmt: skip
        variables |= {v for r in accesses if r.name in buffers for v in ix.variables(r.starts[0]) & loops}
        new = Planes(allocs, buffers, frozenset(variables), rank)
        if new == found:
            return new
        found = new


def _taken_whole(e: kn.TileExpr) -> Iterator[kn.Region]:
    """The windows of several rows that a reduction, a product or the like takes together: these rows stay one tile."""
    for p in parts(e):
        if isinstance(p, kn.MatMul | kn.Reduce | kn.Whole):
            yield from (r for r in regions(p) if r.extents[0] is not None)


def _names(allocs: Iterator[kn.Alloc]) -> Names:
    return frozenset(a.name for a in allocs)


def _variables(s: kn.Stmt) -> tuple[str, ...]:
    return s.vars if isinstance(s, kn.Parallel) else (s.var,) if isinstance(s, kn.For) and s.kind == "serial" else ()


def _leading(s: kn.Parallel) -> str:
    """The variable that counts the planes of a loop over three dimensions: the first one in what it writes."""
    order = [v for e in next(iter(s.body)).target.starts for v in s.vars if v in ix.variables(e)]
    return order[0] if order else s.vars[0]


@record
class Planes:
    """Takes statements apart. `buffers` are those that become planes, `variables` the loop variables that are written out, `rank`
    how many dimensions are left."""

    allocs: Mapping[str, kn.Alloc]
    buffers: Names
    variables: Names
    rank: int

    def body(self, body: tuple[kn.Stmt, ...], at: dict[str, Expr]) -> Iterator[kn.Stmt]:
        """The statements where the variables that are written out have the values `at`."""
        for s in body:
            yield from self.statement(s, at)

    def statement(self, s: kn.Stmt, at: dict[str, Expr]) -> Iterator[kn.Stmt]:
        match s:
            case kn.Alloc() if s.name in self.buffers:
                yield from (replace(s, name=self.plane(s.name, p), shape=s.shape[1:]) for p in self.of_buffer(s))
            case kn.Alloc():
                yield s
            case kn.Assign():
                yield from self.assign(replace(s, target=self.located(s.target, at), value=self.value(s.value, at)))
            case kn.For() if s.var in self.variables:
                refuse_counted(s, "a loop over planes")
                for p in self.count(s.extent, s.span):
                    yield from self.body(s.body, at | {s.var: ix.const(s.start + p)})
            case kn.For():
                yield replace(s, body=tuple(self.body(s.body, at)))
            case kn.Parallel():
                yield from self.elements(s, at)
            case kn.If():
                condition = ix.substitute(s.condition, at)
                then, otherwise = (tuple(self.body(arm, at)) for arm in (s.then, s.otherwise))
                yield replace(s, condition=condition, then=then, otherwise=otherwise)

    def elements(self, s: kn.Parallel, at: dict[str, Expr]) -> Iterator[kn.Stmt]:
        """An element loop, once for each value of its variable that is written out."""
        variable = next((v for v in s.vars if v in self.variables and v not in at), None)
        if variable is None:
            kept = [(v, n) for v, n in zip(s.vars, s.extents, strict=True) if v not in at]
            body = tuple(b for b in self.body(s.body, at) if isinstance(b, kn.Assign))
            yield replace(s, vars=tuple(v for v, _ in kept), extents=tuple(n for _, n in kept), body=body)
            return
        for p in self.count(s.extents[s.vars.index(variable)], s.span):
            yield from self.elements(s, at | {variable: ix.const(p)})

    def of_buffer(self, s: kn.Alloc) -> range:
        self.count(prod(s.shape[:-2]), s.span)
        return range(s.shape[0])

    def count(self, planes: int, span: kn.Span | None) -> range:
        if planes > MOST:
            raise NotSearched(
                f"{planes} planes of a third dimension are more than the {MOST} that are supported", span,
                help="a tile is rows x columns: let the grid or a loop run over the first dimension",
            )  # fmt: skip
        return range(planes)

    def plane(self, name: str, p: int) -> str:
        """A name for a plane that nothing else has."""
        wish = f"{name}_{p}"
        while wish in self.allocs:
            wish += "_"
        return wish

    # expressions

    def value(self, e: kn.TileExpr, at: dict[str, Expr]) -> kn.TileExpr:
        """An expression with the variables that are written out replaced; its windows still have all their dimensions."""
        if isinstance(e, kn.Region):
            return self.located(e, at)
        if isinstance(e, kn.Index):
            return replace(e, value=ix.substitute(e.value, at))
        if isinstance(e, kn.Select):
            e = replace(e, condition=ix.substitute(e.condition, at))
        return _mapped(e, lambda x: self.value(x, at))

    def located(self, r: kn.Region, at: dict[str, Expr]) -> kn.Region:
        counts = tuple(c if c is None else ix.substitute(c, at) for c in r.counts)
        return replace(r, starts=tuple(ix.substitute(s, at) for s in r.starts), counts=counts)

    def assign(self, s: kn.Assign) -> Iterator[kn.Assign]:
        """An assignment of tiles, once for each plane that it runs over."""
        if not self.several(s):
            yield replace(s, target=self.of_plane(s.target), value=self.fixed(s.value))
            return
        for p in self.count(s.target.shape[0], s.span):
            target, value = (self.at_plane(e, p, len(s.target.shape)) for e in (s.target, s.value))
            assert isinstance(target, kn.Region)
            yield replace(s, target=target, value=value)

    def several(self, s: kn.Assign) -> bool:
        """Whether an assignment runs over planes: its own, or those of a buffer that it reads."""
        opened = any(r.name in self.buffers and r.extents[0] is not None for r in (s.target, *regions(s.value)))
        return bool(s.target.shape) and (opened or len(s.target.shape) > self.rank)

    def fixed(self, e: kn.TileExpr) -> kn.TileExpr:
        return self.of_plane(e) if isinstance(e, kn.Region) else _mapped(e, self.fixed)

    def at_plane(self, e: kn.TileExpr, p: int, rank: int) -> kn.TileExpr:
        """An expression of `rank` dimensions at plane p of the first of them."""
        match e:
            case kn.Region() if len(e.shape) == rank:
                d = next(d for d, n in enumerate(e.extents) if n is not None)
                if e.counts and e.counts[d] is not None:
                    raise TileError(f"how many planes of `{e.name}` are meant varies: not supported", e.span, help=LOOP)
                start = e.starts[d] + (p if e.extents[d] != 1 else 0)
                one = replace(e, starts=_put(e.starts, d, start), extents=_put(e.extents, d, None))
                return self.of_plane(one)
            case kn.MatMul() | kn.Scaled() | kn.Reduce() | kn.Broadcast() | kn.Whole():
                raise NotSearched("products, reductions and the like of planes are not supported yet", e.span, help=LOOP)
        return self.of_plane(e) if isinstance(e, kn.Region) else _mapped(e, lambda x: self.at_plane(x, p, rank))

    def of_plane(self, r: kn.Region) -> kn.Region:
        """A region of a buffer that is taken apart, as one of its planes'."""
        if r.name not in self.buffers:
            return r
        plane = r.starts[0].value
        if plane is None or r.extents[0] is not None:
            raise TileError(f"{_fault(r)}: not supported", r.span, help=LOOP)
        return replace(r, name=self.plane(r.name, plane), starts=r.starts[1:], extents=r.extents[1:], counts=r.counts[1:])


LOOP = "take one plane at a time, by a number or by a serial loop; how many tiles are in flight is the compiler's choice"


def _fault(r: kn.Region) -> str:
    if r.extents[0] is not None:
        return f"several planes of `{r.name}` at once"
    return f"which plane of `{r.name}` this is goes with {index_text(r.starts[0])}"


def _mapped(e: kn.TileExpr, each) -> kn.TileExpr:  # noqa: ANN001
    """The expression with `each` applied to the expressions that it is made of."""
    match e:
        case kn.Unary() | kn.Cast() | kn.Pack() | kn.Pad() | kn.Reduce() | kn.Broadcast():
            return replace(e, x=each(e.x))
        case kn.Binary() | kn.Select():
            return replace(e, x=each(e.x), y=each(e.y))
        case kn.Choose():
            return replace(e, a=each(e.a), b=each(e.b), x=each(e.x), y=each(e.y))
        case kn.Whole():
            return replace(e, xs=tuple(map(each, e.xs)))
        case kn.MatMul():
            return replace(e, a=each(e.a), b=each(e.b))
        case kn.Scaled():
            return replace(e, x=each(e.x), scale=each(e.scale))
    return e


def _put(items: tuple, d: int, value: object) -> tuple:
    return (*items[:d], value, *items[d + 1 :])
