"""Whether parts of buffers are read of which no element was written: trip by trip, in the first and last block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tile_eg.errors import TileError
from tile_eg.frontend.hints import hint
from tile_eg.frontend.liveness import assigned, mentioned
from tile_eg.frontend.ranges import values_at
from tile_eg.ir import kernel as kn
from tile_eg.ir.index_elements import elements_in

if TYPE_CHECKING:
    import numpy as np

MOST = 1 << 14
"""Assignments that are looked at."""


def check_parts(kernel: kn.Kernel) -> None:
    """Raises TileError at the first assignment that reads a part of a buffer in which nothing was written."""
    for block in (0, -1):
        Parts().run(kernel.body, {name: block % extent for name, extent in kernel.grid})


class Parts:
    """Which elements of each buffer were written so far; `whole` are the buffers of which all were."""

    def __init__(self) -> None:
        self.written: dict[str, np.ndarray] = {}
        self.whole: set[str] = set()
        self.seen = 0

    def run(self, body: tuple[kn.Stmt, ...], at: Mapping[str, Any]) -> None:
        import numpy as np

        for s in body:
            match s:
                case kn.Alloc():
                    self.written[s.name] = np.zeros(s.shape, bool)
                    self.whole.discard(s.name)
                case kn.Assign() if self.seen < MOST:
                    self.seen += 1
                    self.reads(s.value, at, np.True_)
                    self.writes(s.target, at)
                case kn.For():
                    known = s.count is not None and not elements_in(s.count)
                    trips = int(values_at(s.count, at)) if known and s.count is not None else s.extent
                    touched = None if any(kn.allocs(s.body)) else mentioned(s.body) | assigned(s.body)
                    for i in range(s.start, s.start + trips):
                        if self.seen >= MOST or (touched is not None and touched & self.written.keys() <= self.whole):
                            break
                        self.run(s.body, {**at, s.var: i})
                case kn.Parallel():
                    axes = np.ogrid[tuple(slice(n) for n in s.extents)]
                    self.run(s.body, {**at, **dict(zip(s.vars, axes, strict=True))})
                case kn.If() if elements_in(s.condition):
                    self.run((*s.then, *s.otherwise), at)
                case kn.If():
                    self.branch(s, at)

    def branch(self, s: kn.If, at: Mapping[str, Any]) -> None:
        import numpy as np

        truth = np.asarray(values_at(s.condition, at) != 0)
        if truth.all() or not truth.any():
            self.run(s.then if truth.all() else s.otherwise, at)
        else:  # it differs in an element loop
            self.run((*s.then, *s.otherwise), at)

    def writes(self, target: kn.Region, at: Mapping[str, Any]) -> None:
        import numpy as np

        name = target.name
        if name in self.written and name not in self.whole:
            where = self.elements(target, at, np.True_)
            self.written[name][... if where is None else where] = True
            if self.written[name].all():
                self.whole.add(name)

    def reads(self, e: kn.TileExpr, at: Mapping[str, Any], where: Any) -> None:
        match e:
            case kn.Region() if e.name in self.written and e.name not in self.whole:
                found = self.elements(e, at, where)
                if found is not None and self.written[e.name][found].size and not self.written[e.name][found].any():
                    raise TileError(
                        f"this part of `{e.name}` is read before anything is written to it", e.span,
                        help="statements run in the order they stand in: move the write up, or begin with "
                        + hint(f"{e.name} = 0", f"T.clear({e.name})", e.span),
                    )  # fmt: skip
            case kn.Select() if not elements_in(e.condition):
                truth = values_at(e.condition, at) != 0
                self.reads(e.x, at, where & truth)
                self.reads(e.y, at, where & ~truth)
            case (kn.MatMul() | kn.Scaled() | kn.Choose() | kn.Binary() | kn.Select() | kn.Unary() | kn.Cast() | kn.Reduce()
                  | kn.Broadcast()):  # fmt: skip
                for name in ("a", "b", "x", "y", "scale"):
                    if hasattr(e, name):
                        self.reads(getattr(e, name), at, where)

    def elements(self, r: kn.Region, at: Mapping[str, Any], where: Any) -> tuple[np.ndarray, ...] | None:
        """The places of a window's elements, those that are meant `where`; None where an index is read."""
        import numpy as np

        shape, places = self.written[r.name].shape, []
        if any(map(elements_in, r.starts)):
            return None
        slices = [n for n in r.extents if n is not None]
        beside = 0
        for start, extent in zip(r.starts, r.extents, strict=True):
            place = np.asarray(values_at(start, at))
            place = place.reshape((*place.shape, *(1 for _ in slices)))
            if extent is not None:
                beside += 1
                along = np.arange(extent) * (r.step if beside == 1 and len(slices) > 1 else 1)
                place = place + along.reshape((-1, *(1 for _ in slices[beside:])))
            places.append(place)
        where = np.asarray(where)
        *places, where = np.broadcast_arrays(*places, where.reshape((*where.shape, *(1 for _ in slices))))
        inside = where.copy()
        for place, n in zip(places, shape, strict=True):
            inside &= (place >= 0) & (place < n)
        return tuple(place[inside] for place in places)
