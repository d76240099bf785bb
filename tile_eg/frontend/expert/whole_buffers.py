"""`c[:, :] = a[:, :] * 2.0` in a kernel that is kept: what a loop over its elements under `T.Parallel` is."""

from __future__ import annotations

from dataclasses import fields, replace

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert import scalars
from tile_eg.frontend.expert.accesses import Axes, check_order
from tile_eg.frontend.expert.bools import noted
from tile_eg.frontend.expert.parallel import statement
from tile_eg.frontend.expert.reader import ExpertReader, On
from tile_eg.frontend.python.values import describe
from tile_eg.ir import index as ix
from tile_eg.ir import program as pr
from tile_eg.ir.kernel import Assign, Binary, Cast, Choose, Index, Number, Region, Select, TileExpr, Unary

OF_ELEMENTS = (Number, Index, Unary, Binary, Cast, Choose, Select, Region)


def store(r: ExpertReader, target: Region, value: TileExpr, span: Span | None) -> None:
    """An element by the scalar unit, a buffer or a window of one by vector instructions."""
    if target.shape == ():
        noted(r, target, value, span)
        return scalars.store(r, target, value, span)
    _check(target, value, span)
    variables = [r.unique("i") for _ in target.shape]
    r.grid.update({v: (0, n - 1) for v, n in zip(variables, target.shape, strict=True)})
    s = Assign(_element(target, variables), _elements(value, variables), span)
    *outer, col = zip(variables, target.shape, strict=True)
    row = outer.pop() if outer else (None, 1)
    axes = Axes(row[0], col[0], row[1], col[1])
    check_order(r, (s,), axes)
    with r.block(repeats=False) as made:
        statement(r, s, axes)
    found: list[On] = list(made)  # type: ignore[arg-type]
    for name, extent in reversed(outer):
        found = [On(None, pr.Loop(name, extent, tuple(found), span))]  # type: ignore[arg-type]
    r.statements += found  # type: ignore[arg-type]
    return None


def _check(target: Region, value: TileExpr, span: Span | None) -> None:
    """TileError unless each element of the target is computed of one element of each operand, or of a row or column of it."""
    for e in _parts(value):
        if not isinstance(e, OF_ELEMENTS):
            raise TileError(
                f"{describe(e)} is not computed element by element, as what is assigned to a buffer is in a kernel that is kept",
                span, help="write its word into a buffer first",
            )  # fmt: skip
        if isinstance(e, Region) and e.shape and not _fits(e.shape, target.shape):
            shapes = (" x ".join(map(str, s)) for s in (target.shape, e.shape))
            raise TileError(f"the target has {next(shapes)} elements, and {e.name} has {next(shapes)}", e.span or span,
                            help="slices say which part is meant: b[:, 0:1] is a column that is spread")  # fmt: skip
    for e in (target, *_parts(value)):
        if isinstance(e, Region) and any(e.counts):
            what = "how many elements are assigned has to be known"
            raise TileError(what, e.span or span, help="a copy takes slices like this one")


def _parts(e: TileExpr) -> list[TileExpr]:
    inner = [v for f in fields(e) if isinstance(v := getattr(e, f.name), TileExpr)]  # type: ignore[misc,arg-type]
    return [e, *(p for x in inner for p in _parts(x))]


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    return len(shape) == len(target) and all(n in (1, m) for n, m in zip(shape, target, strict=True))


def _element(x: Region, variables: list[str]) -> Region:
    """The element of a window at these variables; along an extent of 1 there is one for all."""
    left = iter(variables)
    at = [None if n is None else next(left) for n in x.extents]
    starts = tuple(e if v is None or n == 1 else e + ix.var(v) for e, v, n in zip(x.starts, at, x.extents, strict=True))
    return replace(x, starts=starts, extents=(None,) * len(starts))


def _elements(e: TileExpr, variables: list[str]) -> TileExpr:
    if isinstance(e, Region):
        return _element(e, variables) if e.shape else e
    inner = {}
    for f in fields(e):
        if isinstance(v := getattr(e, f.name), TileExpr):  # type: ignore[misc,arg-type]
            inner[f.name] = _elements(v, variables)
    return replace(e, **inner)  # type: ignore[arg-type]
