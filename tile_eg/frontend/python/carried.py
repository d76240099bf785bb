"""Tensors that only carry a value from one core to another: a store and a load of one value.

A tensor that a kernel writes and reads, always in the same window, is a buffer of the block that the tensor shows to the caller:
it holds what was written, and what is read is what was written before. The loads go; the stores stay, as the array is the
caller's. Where the parts that are read lie side by side (`workspace[i0 + k*n, j0]` for k in a loop), the loop is first merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tile_eg.errors import Note, NotSearched, TileError, together
from tile_eg.frontend.checks.definite import Definite
from tile_eg.frontend.python.loop_fusion import fused
from tile_eg.frontend.python.merging import Merge, Parted
from tile_eg.frontend.python.row_tiles import rows_of_tensor
from tile_eg.frontend.python.temporaries import temporaries, uses_of
from tile_eg.frontend.python.values import nodes, regions_in
from tile_eg.frontend.ranges import at_most
from tile_eg.ir import index as ix
from tile_eg.ir.index import ZERO, Expr, Interval, var, variables
from tile_eg.ir.kernel import Alloc, Assign, For, If, Kernel, Parallel, Region, Stmt, Tensor, Whole, exchanged

Ranges = dict[str, Interval]
Seen = tuple[Region, tuple[str, ...], Ranges]
UPDATED = "load a window, update it in a buffer, and store it; rows that an index picks: T.atomic_add(W[t[i], j], x[i, j])"


def carried(kernel: Kernel) -> Kernel | TileError:
    """The kernel in which what it reads of a tensor that it also writes is read from a buffer; or why there is none: a window
    that is read is not the one that is written (`NotSearched`), or may not have been written (`ReadFirst`).

    TileError where such a window passes the end of its tensor.
    """
    for t in kernel.tensors:
        if t.output and _is_read(kernel.body, t.name) and not _is_added_to(kernel.body, t.name):
            found = _of_any_length(kernel.body, t.name) or _read_unwritten(kernel, t) or _without_loads(kernel, t)
            if not isinstance(found, Kernel):
                return found
            kernel = found
    return kernel


def _of_any_length(body: Sequence[Stmt], name: str) -> NotSearched | None:
    """A window of which the kernel knows only at run time how much is meant."""
    for r in regions_in(tuple(body)):
        if r.name == name and r.counts:
            message = f"the search has no form for a part of `{name}`, which is written and read, whose length varies"
            return NotSearched(message, r.span)
    return None


def _read_unwritten(kernel: Kernel, t: Tensor) -> TileError | None:
    """What is read of a tensor before it is written, and was not given either."""
    if _given(kernel, t):
        return None
    definite = Definite({t.name: t})
    definite.run(kernel.body, frozenset(), {name: (0, n - 1) for name, n in kernel.grid})
    return together(definite.told.values()) if definite.told else None


def _is_read(body: Sequence[Stmt], name: str) -> bool:
    values = (s.value for s in nodes(tuple(body)) if isinstance(s, Assign))
    return any(r.name == name for value in values for r in regions_in(value))


def _is_added_to(body: Sequence[Stmt], name: str) -> bool:
    """Whether other blocks may add to a tensor meanwhile, so that no buffer stands for it."""
    return any(s.atomic for s in nodes(tuple(body)) if isinstance(s, Assign) and s.target.name == name)


def _without_loads(kernel: Kernel, t: Tensor) -> Kernel | NotSearched:
    body, window = _in_one_window(kernel, t)
    if isinstance(window, NotSearched):
        return window
    of_blocks = {v for x in window.starts for v in variables(x)} <= {name for name, _ in kernel.grid}
    if _given(kernel, t) and not of_blocks:
        message = f"the search has no form for a loop that updates `{t.name}`, which the caller gave, in another window each trip"
        return NotSearched(message, window.span, help=UPDATED)
    kernel = replace(kernel, notes=(*kernel.notes, *_no_longer_given(kernel.body, body)))
    taken = {*(x.name for x in kernel.tensors), *(s.name for s in nodes(body) if isinstance(s, Alloc))}
    name = next(n for n in (t.name + "_tile", *(f"{t.name}_tile{k}" for k in range(len(taken) + 1))) if n not in taken)
    tile = Region(name, (ZERO,) * len(window.shape), window.shape)
    alloc = Alloc(name, "shared", t.dtype, window.shape, t.span)
    changed = tuple(_through(body, t.name, tile, replace(tile, counts=_there(kernel, t, body, window))))
    if _given(kernel, t):
        changed = (Assign(tile, window, window.span), *changed)
        given = tuple(replace(x, given=x.given or x.name == t.name) for x in kernel.tensors)
        kernel = replace(kernel, tensors=given)
    return replace(kernel, body=(alloc, *changed))


def _no_longer_given(before: Sequence[Stmt], after: Sequence[Stmt]) -> Iterator[Note]:
    """That the depth of a loop was given for smaller tiles than those that are loaded."""
    kept = {s.span for s in nodes(tuple(after)) if isinstance(s, For) and s.stages > 1}
    for s in nodes(tuple(before)):
        if isinstance(s, For) and s.stages > 1 and s.span not in kept:
            what = "was for parts of tiles that are loaded as one here: how many slots these have is found"
            yield Note(f"num_stages={s.stages} {what}", s.span)


def _given(kernel: Kernel, t: Tensor) -> bool:
    """Whether a tensor begins with what the caller put there: what it is called says that a workspace does not."""
    return _read_first(kernel.body, t.name) and "workspace" not in t.name.lower()


def _read_first(body: Sequence[Stmt], name: str) -> bool:
    """Whether a tensor is read before it is written: what the caller gave."""
    for s in nodes(tuple(body)):
        if isinstance(s, Assign):
            if any(r.name == name for r in regions_in(s.value)):
                return True
            if s.target.name == name:
                return False
    return False


def _in_one_window(kernel: Kernel, t: Tensor) -> tuple[tuple[Stmt, ...], Region | NotSearched]:
    """The body in which the tensor is seen through one window, and that window, or why there is none: loops that hand on part by
    part stay loops where they can."""
    body = fused(rows_of_tensor(kernel.body, t.name), t.name)
    window = _window(kernel, body, t)
    if isinstance(window, NotSearched):
        body = fused(rows_of_tensor(_merged_loops(kernel, t.name), t.name), t.name)
        window = _window(kernel, body, t)
    return body, window


def _there(kernel: Kernel, t: Tensor, body: Sequence[Stmt], window: Region) -> tuple[Expr | None, ...]:
    """How much of each dimension of a window there is, where the tensor may end in it."""
    ranges = next(ranges for _, _, ranges in _seen(body, t.name, {name: (0, n - 1) for name, n in kernel.grid}, ()))
    each = [(start, n, size) for start, n, size in zip(window.starts, window.extents, t.shape, strict=True) if n is not None]
    counts = tuple(None if at_most(start, size - n, ranges) else ix.minimum(n, size - start) for start, n, size in each)
    return counts if any(counts) else ()


def _through(body: Sequence[Stmt], name: str, tile: Region, there: Region) -> Iterator[Stmt]:
    """The statements with loads of a tensor from the tile, of which as much is `there` as of the tensor, and stores to it through
    the tile."""
    for s in body:
        match s:
            case Assign() if s.target.name == name:
                yield replace(s, target=replace(tile, span=s.target.span), value=_loaded(s.value, name, there))
                yield replace(s, value=replace(tile, span=s.target.span))
            case Assign():
                yield replace(s, value=_loaded(s.value, name, there))
            case For():
                yield replace(s, body=tuple(_through(s.body, name, tile, there)))
            case If():
                arms = (tuple(_through(arm, name, tile, there)) for arm in (s.then, s.otherwise))
                yield replace(s, then=next(arms), otherwise=next(arms))
            case _:
                yield s


def _loaded(e, name: str, tile: Region):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    """A value with the window of a tensor replaced by the tile."""
    if isinstance(e, Region):
        return replace(tile, span=e.span) if e.name == name else e
    if isinstance(e, Whole):
        return replace(e, xs=tuple(_loaded(x, name, tile) for x in e.xs))
    parts = {f: _loaded(getattr(e, f), name, tile) for f in ("a", "b", "x", "y") if hasattr(e, f)}
    return replace(e, **parts) if parts else e


# The one window


def _window(kernel: Kernel, body: tuple[Stmt, ...], t: Tensor) -> Region | NotSearched:
    """The window through which the kernel sees a tensor, wherever it does; or that there are two."""
    found = list(_seen(body, t.name, {name: (0, n - 1) for name, n in kernel.grid}, ()))
    (first, inside, ranges), *rest = found
    for r, around, _ in rest:
        if (r.starts, r.extents) != (first.starts, first.extents) or r.step != 1:
            return _two_windows(t, first, r)
        if around != inside and any(variables(x) & (set(around) ^ set(inside)) for x in r.starts):
            return _two_windows(t, first, r)
    loops = {v for x in first.starts for v in variables(x)} - {name for name, _ in kernel.grid}
    if loops and (elsewhere := [r for r, around, _ in rest if around != inside]):
        return _two_windows(t, first, elsewhere[0])
    return first


def _two_windows(t: Tensor, first: Region, other: Region) -> NotSearched:
    return NotSearched(
        f"`{t.name}` is written and read in this kernel, in windows that differ: not supported yet", other.span,
        notes=(("this is the other window", first.span),),
        help="what one statement hands on to another is the same window of the same block; or keep it in a buffer",
    )  # fmt: skip


def _seen(body: Sequence[Stmt], name: str, ranges: Ranges, around: tuple[str, ...]) -> Iterator[Seen]:
    """Each window of a tensor, with the loops around it and their ranges."""
    for s in body:
        match s:
            case Assign():
                yield from ((r, around, ranges) for r in (*regions_in(s.value), s.target) if r.name == name)
            case For():
                yield from _seen(s.body, name, ranges | {s.var: (s.start, s.start + max(s.extent, 1) - 1)}, (*around, s.var))
            case Parallel():
                inner = {v: (0, n - 1) for v, n in zip(s.vars, s.extents, strict=True)}
                yield from _seen(s.body, name, ranges | inner, (*around, *s.vars))
            case If():
                yield from _seen((*s.then, *s.otherwise), name, ranges, around)


# Loops over parts


def _merged_loops(kernel: Kernel, name: str) -> tuple[Stmt, ...]:
    """The body with the loops merged that read, or write, one part of a tensor in each trip."""
    body = tuple(_rows_at_once(kernel.body, name))
    for s in [s for s in nodes(body) if isinstance(s, For)]:
        if any(r.name == name and any(s.var in variables(x) for x in r.starts) for r in regions_in(s.body)):
            body = _merged(body, s)
    return body


def _rows_at_once(body: Sequence[Stmt], name: str) -> Iterator[Stmt]:
    """The statements in which a loop that copies rows to or from a tensor, one in each trip, is one copy."""
    for s in body:
        match s:
            case For(body=(Assign() as one,)) if (made := _copy_of_rows(s, one, name)) is not None:
                yield made
            case For():
                yield replace(s, body=tuple(_rows_at_once(s.body, name)))
            case If():
                then, otherwise = (tuple(_rows_at_once(arm, name)) for arm in (s.then, s.otherwise))
                yield replace(s, then=then, otherwise=otherwise)
            case _:
                yield s


def _copy_of_rows(loop: For, s: Assign, name: str) -> Assign | None:
    """target[i + n, :] = x[i + m, :] for all i of a loop, as one assignment."""
    if not isinstance(s.value, Region) or name not in (s.target.name, s.value.name) or s.target.name == s.value.name:
        return None
    if loop.count is not None or s.atomic or loop.extent < 1:
        return None
    windows = [_rows_of(r, loop) for r in (s.target, s.value)]
    if any(w is None for w in windows) or len({w.shape for w in windows if w}) > 1:
        return None
    return replace(s, target=windows[0], value=windows[1])  # type: ignore[arg-type]


def _rows_of(r: Region, loop: For) -> Region | None:
    """The rows of a window that a loop goes through one by one; None where it goes through anything else."""
    picked = [d for d, start in enumerate(r.starts) if loop.var in variables(start)]
    if len(picked) != 1 or r.extents[picked[0]] is not None or len(r.shape) > 1 or r.step != 1:
        return None
    d = picked[0]
    first = r.starts[d] - var(loop.var) + loop.start
    if loop.var in variables(first) or any(e is not None for e in r.extents[:d]):
        return None
    starts, extents = list(r.starts), list(r.extents)
    starts[d], extents[d] = first, loop.extent
    return replace(r, starts=tuple(starts), extents=tuple(extents))


def _merged(body: tuple[Stmt, ...], loop: For) -> tuple[Stmt, ...]:
    """The body with one loop as statements on whole tiles; as it is where there is no such form."""
    buffers = {s.name: s.shape for s in nodes(body) if isinstance(s, Alloc)}
    targets = [s.target for s in nodes(loop.body) if isinstance(s, Assign)]
    written = {t.name for t in targets} & buffers.keys()
    moving = all(t.name in buffers or any(loop.var in variables(x) for x in t.starts) for t in targets)
    if loop.start or loop.count is not None or not moving or written != temporaries(loop, buffers, uses_of(body)):
        return body
    merge = Merge(loop.var, loop.extent, buffers)
    done = merge.run(loop.body)
    if isinstance(done, Parted):
        return body
    return _longer(_with(body, loop, done), merge) if written == merge.axes.keys() else body


def _with(body: Iterable[Stmt], loop: For, instead: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements with others in the place of one loop. Slots that the author gave to a loop around it were for tiles of one
    trip each: how many there are of tiles of all trips is left to the search."""
    for s in body:
        match s:
            case For() if s is loop:
                yield from instead
            case For():
                inner = tuple(_with(s.body, loop, instead))
                yield replace(s, body=inner, stages=s.stages if s.stages < 2 or inner == s.body else 0)
            case If():
                yield replace(s, then=tuple(_with(s.then, loop, instead)), otherwise=tuple(_with(s.otherwise, loop, instead)))
            case _:
                yield s


def _longer(body: Iterable[Stmt], merge: Merge) -> tuple[Stmt, ...]:
    """The statements with the allocations of whole tiles."""
    return exchanged(body, lambda s: [replace(s, shape=merge.longer(s.name, s.shape))] if isinstance(s, Alloc) else None)
