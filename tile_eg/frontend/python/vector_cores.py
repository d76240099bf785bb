"""What `with T.Kernel(n) as (cid, vid)` means: the body runs on both vector cores of a block, with vid 0 and with vid 1.

What comes out the same from both is done once: the halves share it by themselves. What each adds atomically is added twice, but
for sums that the cube core adds. A kernel in which `vid` parts the work has a dimension more in its grid; where both cores also
write the same to one place, or a branch asks which core this is, one block does the work of both in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from math import prod
from typing import Any

from tile_eg.errors import Note, NotSearched, Span, TileError
from tile_eg.frontend.checks.kernel import check, check_reads
from tile_eg.frontend.python.merging import Merge, Parted
from tile_eg.frontend.python.tile_loops import substituted
from tile_eg.frontend.python.values import nodes
from tile_eg.ir.index import ONE, ZERO, Expr, substitute, variables
from tile_eg.ir.kernel import Alloc, Assign, For, If, Kernel, MatMul, Number, Parallel, Region, Stmt, exchanged

CORES = 2


def alike(kernel: Kernel) -> Kernel:
    """The kernel whose body runs on both vector cores without asking which this is: atomic additions are done twice."""
    cube = _in_cube(kernel.body)
    found: list[Note] = []
    return replace(kernel, body=_added_twice(kernel.body, cube, found), notes=(*kernel.notes, *found))


def _added_twice(body: tuple[Stmt, ...], cube: set[str], found: list[Note], vid: str = "") -> tuple[Stmt, ...]:
    """The statements with the additions that both vector cores do at one place done twice; `vid` tells places apart."""

    def twice(s: Stmt) -> tuple[Stmt, ...] | None:
        if not (isinstance(s, Assign) and s.atomic) or vid in mentioned(s.target) or _is_in(cube, s.value):
            return None
        found.append(Note(f"both vector cores of a block do this, so that `{s.target.name}` gets it twice", s.span))
        return s, s

    return exchanged(body, twice)


def _is_in(cube: set[str], value: object) -> bool:
    return isinstance(value, Region) and value.name in cube


def _in_cube(body: tuple[Stmt, ...]) -> set[str]:
    """The buffers in which products add up, and that nothing else is computed into: they are the cube core's."""
    written: dict[str, list[Assign]] = {}
    for n in nodes(body):
        if isinstance(n, Assign):
            written.setdefault(n.target.name, []).append(n)
    product = lambda s: any(isinstance(n, MatMul) for n in nodes(s.value))  # noqa: E731
    return {
        name for name, found in written.items()
        if any(map(product, found)) and all(product(s) or isinstance(s.value, Number) for s in found)
    }  # fmt: skip


def merged(kernel: Kernel, vid: str, place: Span) -> Kernel | NotSearched:
    """The kernel on whole tiles, of which each vector core has a half: what each does is done for both, the cube's work once.

    NotSearched where the halves are not rows or columns of one tile.
    """
    shapes = {n.name: n.shape for n in nodes(kernel.body) if isinstance(n, Alloc)}
    found: list[Note] = []
    twice = _added_twice(kernel.body, _in_cube(kernel.body), found, vid)
    body = Merge(vid, CORES, shapes, once=True).run(twice)
    if isinstance(body, Parted):
        return NotSearched(
            f"beside a matrix product, `{vid}` has to part tiles into halves that lie side by side: {body.reason}",
            body.span or place, notes=(("the half is used here", place),),
            help="write the whole tile and name the half `_`; the halves share the rows by themselves",
        )  # fmt: skip
    return replace(kernel, body=body, notes=(*kernel.notes, *found))


def apart(kernel: Kernel, vid: str) -> Kernel:
    """The kernel whose body asks by `vid` which vector core this is. TileError where both write different values to one place."""
    if (idle := _second_is_idle(kernel, vid)) is not None:
        what = f"with `{vid}` 1 this begins beyond the end of `{idle.name}`: the second vector core has nothing to do"
        notes = (*kernel.notes, Note(what, idle.span))
        return replace(kernel, body=substituted(kernel.body, {vid: ZERO}), notes=notes)
    differs = _differing(kernel.body, vid)
    once = [s for s, _ in _stores(kernel, vid) if vid not in mentioned(s.target)]
    same = {s for s in once if not (_buffers(s.value) & differs or vid in mentioned(s.value))}
    asked = any(isinstance(n, If) and vid in mentioned(n.condition) for n in nodes(kernel.body))
    as_grid = replace(kernel, grid=(*kernel.grid, (vid, CORES)))
    if not same and not asked:
        return as_grid
    for s, sure in _stores(kernel, vid):
        if sure and s in once and s not in same:
            raise TileError(
                f"both vector cores write the same elements of `{s.target.name}`, and `{vid}` makes their values differ", s.span,
                help=f"let the window begin where `{vid}` says, or store it in a branch: if {vid} == 0",
            )  # fmt: skip
    _refuse_meeting(as_grid, same)
    for core in range(CORES):
        check_reads(as_grid, **{vid: core})
    allocs = tuple(n for n in nodes(kernel.body) if isinstance(n, Alloc))
    body = exchanged(kernel.body, lambda s: () if isinstance(s, Alloc) else None)
    turns = [(core, 1) for core in range(CORES)] if asked else [(0, CORES)]  # one by one, where they do not do the same
    return replace(kernel, body=(*allocs, *(For(vid, first, trips, "serial", 0, body) for first, trips in turns)))


def _second_is_idle(kernel: Kernel, vid: str) -> Region | None:
    """A store of a kernel of one block, if with `vid` 1 it stores nothing: each window begins beyond the end of its tensor."""
    shapes = {t.name: t.shape for t in kernel.tensors}
    second = {vid: ONE, **{name: ZERO for name, _ in kernel.grid}}
    stores = [s.target for s in nodes(kernel.body) if isinstance(s, Assign) and s.target.name in shapes]

    def beyond(r: Region) -> bool:
        starts = (substitute(start, second).value for start in r.starts)
        return any(at is not None and at >= size for at, size in zip(starts, shapes[r.name], strict=True))

    alone = prod(extent for _, extent in kernel.grid) == 1
    return stores[0] if alone and stores and all(map(beyond, stores)) else None


def _refuse_meeting(as_grid: Kernel, same: set[Assign]) -> None:
    """TileError where windows that `vid` tells apart overlap, as those of two blocks may not."""
    rest = exchanged(as_grid.body, lambda s: () if s in same else None)
    written = {s.target.name for s in nodes(rest) if isinstance(s, Assign)}
    check(replace(as_grid, body=rest, tensors=tuple(replace(t, output=t.name in written) for t in as_grid.tensors)))


def _stores(kernel: Kernel, vid: str) -> Iterator[tuple[Assign, bool]]:
    """The plain stores to tensors, and whether both cores do each: none of the branches around it asks for `vid`."""
    tensors = {t.name for t in kernel.tensors}

    def inside(body: tuple[Stmt, ...], sure: bool) -> Iterator[tuple[Assign, bool]]:
        for s in body:
            match s:
                case Assign() if s.target.name in tensors and not s.atomic:
                    yield s, sure
                case For() | Parallel():
                    yield from inside(s.body, sure)
                case If():
                    yield from inside((*s.then, *s.otherwise), sure and vid not in mentioned(s.condition))

    yield from inside(kernel.body, True)


def _differing(body: tuple[Stmt, ...], vid: str) -> set[str]:
    """The buffers and tensors whose contents depend on `vid`."""
    found: set[str] = set()

    def walk(body: tuple[Stmt, ...], under: bool) -> None:
        for s in body:
            match s:
                case Assign():
                    if under or vid in mentioned(s) or _buffers(s.value) & found:
                        found.add(s.target.name)
                case For():
                    walk(s.body, under or (s.count is not None and vid in variables(s.count)))
                case Parallel():
                    walk(s.body, under)
                case If():
                    walk((*s.then, *s.otherwise), under or vid in mentioned(s.condition))

    before = -1
    while len(found) != before:
        before = len(found)
        walk(body, False)
    return found


def _buffers(tree: Any) -> set[str]:
    return {n.name for n in nodes(tree) if isinstance(n, Region)}


def mentioned(tree: Any) -> set[str]:
    """The variables in the index expressions of a tree."""
    if isinstance(tree, Expr):
        return set(variables(tree))
    return {v for n in nodes(tree) for f in fields(n) for e in _expressions(getattr(n, f.name)) for v in variables(e)}


def _expressions(value: Any) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        yield from (x for x in value if isinstance(x, Expr))
