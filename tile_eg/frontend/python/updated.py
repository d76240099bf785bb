"""Element loops that update a tensor, `C[i0 + i, j] += a[i, j]`: its window is loaded, updated as a buffer, and stored.

The equality: each iteration reads and writes the one element that is its own, so that all may be read before any is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_eg.frontend.element_sums import names_beside
from tile_eg.frontend.python.parts import exchanged_part
from tile_eg.frontend.python.values import regions_in
from tile_eg.ir.index import ZERO, var, variables
from tile_eg.ir.kernel import Alloc, Assign, Kernel, Parallel, Region, Stmt, exchanged


def with_updates(kernel: Kernel) -> Kernel:
    """The kernel in which such a loop stands between a load and a store."""
    outputs = {t.name: t for t in kernel.tensors if t.output}
    unique = names_beside(kernel)
    buffers: list[Alloc] = []

    def instead(s: Stmt) -> Sequence[Stmt] | None:
        if not isinstance(s, Parallel):
            return None
        around: list[Stmt] = [s]
        for name in dict.fromkeys(a.target.name for a in s.body if isinstance(a, Assign) and a.target.name in outputs):
            if (element := _own_element(s, name)) is None:
                continue
            loop, window = around[len(around) // 2], _window(s, element)
            tile = Region(unique(f"{name}_own"), (ZERO,) * len(window.shape), window.shape, window.span)
            buffers.append(Alloc(tile.name, "shared", outputs[name].dtype, window.shape, s.span))
            assert isinstance(loop, Parallel)
            around[len(around) // 2] = _through(loop, element, tile)
            around = [Assign(tile, window, s.span), *around, Assign(window, tile, s.span)]
        return around

    body = exchanged(kernel.body, instead)
    return replace(kernel, body=(*buffers, *body))


def _own_element(s: Parallel, name: str) -> Region | None:
    """The element of a tensor that each iteration reads and writes, where it touches no other one of it."""
    if not all(isinstance(a, Assign) and not a.atomic and _keeps_nothing(a) for a in s.body):
        return None
    if not any(r.name == name for a in s.body for r in regions_in(a.value)):
        return None
    first, *rest = (r for r in regions_in(s.body) if r.name == name)
    if any(r != first for r in rest) or first.step != 1 or any(e is not None for e in first.extents):
        return None
    used = [sorted(variables(start) & set(s.vars)) for start in first.starts]
    places = [(x, v) for x, vs in zip(first.starts, used, strict=True) for v in vs]
    plain = len(places) == len({x for x, _ in places}) and not any(variables(x - var(v)) & set(s.vars) for x, v in places)
    return first if plain and sorted(v for vs in used for v in vs) == sorted(s.vars) else None


def _keeps_nothing(a: Assign) -> bool:
    """Not a choice between a value and what the target holds: that is a store of a part."""
    return getattr(a.value, "y", None) != a.target or not hasattr(a.value, "condition")


def _window(s: Parallel, element: Region) -> Region:
    """The elements of all iterations."""
    extents = dict(zip(s.vars, s.extents, strict=True))
    own = [next((v for v in s.vars if v in variables(start)), None) for start in element.starts]
    starts = tuple(x if v is None else x - var(v) for x, v in zip(element.starts, own, strict=True))
    return replace(element, starts=starts, extents=tuple(None if v is None else extents[v] for v in own))


def _through(s: Parallel, element: Region, tile: Region) -> Parallel:
    """The loop on the tile."""
    at = tuple(var(v) for start in element.starts for v in s.vars if v in variables(start))
    there = replace(tile, starts=at, extents=(None,) * len(at), span=element.span)
    return replace(s, body=tuple(
        replace(a, target=there if a.target == element else a.target, value=exchanged_part(a.value, element, there))
        for a in s.body
    ))  # fmt: skip
