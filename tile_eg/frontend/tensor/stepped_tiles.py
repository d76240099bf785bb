"""Tiles of axes that go through a tensor in steps, `x[:, ::2]`, and of outputs whose two parts take turns along their rows.

A load brings all that lies between; the elements of a tile are then taken out of it, as those of two parts are put together
before they are stored. Rows that lie some apart are loaded so.
"""

from __future__ import annotations

from dataclasses import replace

from tile_eg.frontend.tensor.indices import Affine, Axis
from tile_eg.frontend.tensor.layout import Layout
from tile_eg.frontend.tensor.points import Point
from tile_eg.frontend.tensor.roles import Output
from tile_eg.frontend.tensor.tiles import Tiles, held
from tile_eg.ir import index as ix
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import F32


class Stepped:
    """The statements of such tiles in one kernel."""

    def __init__(self, build: Tiles) -> None:
        self.build = build

    def load(self, p: Point, layout: Layout) -> kn.Region:
        """A tile of what is loaded in steps."""
        col = p.args[1][-1]
        axis, step = _along_rows(col, layout)
        if not any(a in layout for a in col.strides):
            return self._column(p, layout)
        if axis is None:
            return self._between(p, layout, col, self.build.tile[layout[-1]])
        count, first = self.build.tile[axis], col.offset % step if step > 0 else 0
        within = _within(col, layout, step - first)
        col = col.plus(within, -1)
        back = max(-step, 0) * (count - 1)
        start = Affine(offset=-first - back)
        fits = step > 0 and col.most + step - first <= self.build.roles.shapes[p.args[0]][-1]
        width = count * step if fits else abs(step) * (count - 1) + first + 1
        key = p.args[0], (*p.args[1][:-1], col.plus(start)), width
        wide = self.build.points.make("between", (), key, p.dtype, p.rounds, p.span, p.axes - {*within.axes})
        home = self.build.home(wide)
        if (wide, layout) not in home.made:
            with self.build.inside(home):
                made = self._between(p, layout, col.plus(start), width)
            home.made[wide, layout] = made
        out = self.build.buffer(p.args[0].lower(), p.dtype or F32, layout, "shared", p.span)
        *rows, j = (ix.var(self.build.unique(v)) for v in ("i", "j")[-len(layout) :])
        place = j * step + (first + back) + self.build.place(within)
        self._loop((*rows, j), out, replace(home.made[wide, layout], starts=(*rows, place)), p)
        return out

    def _column(self, p: Point, layout: Layout) -> kn.Region:
        """What lies some rows apart, of one column."""
        out = self.build.buffer(p.args[0].lower(), p.dtype or F32, layout, "shared", p.span)
        i = ix.var(self.build.unique("i"))
        at = tuple(self.build.place(d) + i * d.strides.get(layout[0], 0) for d in p.args[1])
        self._loop((i,), replace(out, starts=(i,)), kn.Region(p.args[0], at, (), p.span), p)
        return out

    def _between(self, p: Point, layout: Layout, col: Affine, width: int) -> kn.Region:
        """The rows of a tile, with all columns from the first to the last one."""
        name, at = p.args[0], (*p.args[1][:-1], col)
        starts = tuple(self.build.place(d) for d in at)
        shape = (*(self.build.tile[a] for a in layout[:-1]), width)
        out = self.build.new(name.lower(), "shared", p.dtype or F32, shape, p.span)
        row = next(((n, a, d.strides[a]) for n, d in enumerate(at[:-1]) for a in d.strides if a in layout), None)
        if row is None or row[2] == 1:
            extents = (*(self.build.tile[row[1]] if row and n == row[0] else None for n in range(len(at) - 1)), width)
            self.build.emit(kn.Assign(out, held(p, kn.Region(name, starts, extents, p.span)), p.span))
            return out
        i, j = (ix.var(self.build.unique(v)) for v in ("i", "j"))
        places = tuple(s + (i * row[2] if n == row[0] else 0) for n, s in enumerate(starts[:-1]))
        self._loop((i, j), out, kn.Region(name, (*places, starts[-1] + j), (), p.span), p)
        return out

    def store(self, o: Output, other: Output) -> None:
        """Two outputs whose elements take turns, as one tile."""
        build, span = self.build, o.value.span
        layout = build.layouts.of_indices(o.at)
        shape = (*(build.tile[a] for a in layout[:-1]), 2 * build.tile[layout[-1]])
        dtype = o.tensor.dtype if o.tensor.dtype.whole else F32
        both = build.new("t", "fragment", dtype, shape, span)
        *rows, j = (ix.var(build.unique(v)) for v in ("i", "j")[-len(layout) :])
        body = []
        for n, x in enumerate((o, other)):
            part = build.buffer("t", dtype, layout, span=span)
            build.emit(kn.Assign(part, build.stored(x, layout), span))
            target = replace(both, starts=(*rows, j * 2 + n), extents=(None,) * len(shape))
            body.append(kn.Assign(target, replace(part, starts=(*rows, j), extents=(None,) * len(shape)), span))
        names = tuple(str(v.args[0]) for v in (*rows, j))
        build.emit(kn.Parallel(names, (*shape[:-1], shape[-1] // 2), tuple(body), span))
        extents = tuple(next((build.tile[a] for a in d.axes if a in layout), None) for d in o.at[:-1])
        window = kn.Region(o.tensor.name, tuple(build.place(d) for d in o.at), (*extents, shape[-1]), span or o.tensor.span)
        build.emit(kn.Assign(window, both, span))

    def _loop(self, variables: tuple[ix.Expr, ...], out: kn.Region, element: kn.Region, p: Point) -> None:
        names = tuple(str(v.args[0]) for v in variables)
        target = replace(out, starts=variables, extents=(None,) * len(variables))
        element = replace(element, extents=(None,) * len(element.starts))
        shape = tuple(n for n in out.extents if n is not None)
        self.build.emit(kn.Parallel(names, shape, (kn.Assign(target, element, p.span),), p.span))


def _within(col: Affine, layout: Layout, step: int) -> Affine:
    """What goes on from an element to others before the next one of a tile: one load brings all of them."""
    found = Affine(tuple((a, s) for a, s in col.strides.items() if a not in layout and 0 < s < step))
    return found if found.most < step else Affine()


def _along_rows(col: Affine, layout: Layout) -> tuple[Axis | None, int]:
    return next(((a, s) for a, s in col.strides.items() if a in layout and s != 1), (None, 1))

