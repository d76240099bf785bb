"""Tensors that a call gives back, or makes for itself: where nothing reads a workspace, nobody sees what is stored there."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_eg.errors import TileError, TileWarning
from tile_eg.ir.arrays import as_given
from tile_eg.ir.kept import KeptKernel
from tile_eg.ir.kernel import Assign, Kernel, Parallel, Region, Stmt, Tensor, TileExpr, assigns, exchanged
from tile_eg.ir.open_kernel import OpenKernel

if TYPE_CHECKING:
    import numpy as np

    from tile_eg.search.planned import Run


def without_stores(kernel: Kernel, names: Collection[str]) -> Kernel:
    """The kernel without those of these tensors that it only stores to; as it is where no output would be left."""
    unseen = set(names) - set(_kept(kernel.body))
    rest = tuple(t for t in kernel.tensors if t.name not in unseen)
    if not unseen or isinstance(kernel, OpenKernel) or not any(t.output for t in rest):
        return kernel
    return replace(kernel, tensors=rest, body=exchanged(kernel.body, lambda s: _without(s, unseen)))


def _kept(body: Iterable[Stmt]) -> Iterator[str]:
    """What is read, or added to."""
    for s in assigns(body):
        yield from (*_read(s.value), *((s.target.name,) if s.atomic else ()))


def _read(e: TileExpr) -> Iterator[str]:
    if isinstance(e, Region):
        yield e.name
    for part in ("a", "b", "x", "y"):
        if hasattr(e, part):
            yield from _read(getattr(e, part))


def _without(s: Stmt, names: Collection[str]) -> Iterable[Stmt] | None:
    """What stands in the place of a statement without the stores to these tensors."""
    match s:
        case Assign() if s.target.name in names:
            return ()
        case Parallel():
            kept = tuple(a for a in s.body if a.target.name not in names)
            return (replace(s, body=kept),) if kept else ()
    return None


def made_by_call(i: int, kernel: Kernel | KeptKernel, what: str) -> int:
    """The position, counted from the front, of a tensor that a call makes for itself. TileError where the kernel does not write
    it, or reads it first: nothing is there yet."""
    count = len(kernel.tensors)
    if isinstance(i, bool) or not isinstance(i, int) or not -count <= i < count:
        help = "positions are " + ", ".join(f"{k} ({t.name})" for k, t in enumerate(kernel.tensors)) + "; -1 is the last"
        raise TileError(f"{what}: {i!r} is not the position of one of the {count} arguments of {kernel.name}", help=help)
    t = kernel.tensors[i]
    if not t.output:
        others = ", ".join(f"{k} ({o.name})" for k, o in enumerate(kernel.tensors) if o.output)
        help = f"what it writes is at {others}" if others else f"store a tile to it: T.copy(x, {t.name}[i, j])"
        raise TileError(f"{t.name} is in {what}, and {kernel.name} never writes it", t.span, help=help)
    if t.given:
        help = f"write it first; or take it out of {what}, and pass an array"
        raise TileError(f"`{t.name}` is read before it is written, and no call gives it", t.span, help=help)
    return i % count


def given_back(t: Tensor, run: Run, kernel: Kernel | KeptKernel) -> np.ndarray:
    """A tensor that a call gives back. What the kernel does not write is NaN, with a warning, where its author decided what is
    done; otherwise a TileError, as of whole numbers: the rest would be no result."""
    if t.name in run.unwritten:
        from tile_eg.simulator.unwritten import left_unwritten

        told = run.unwritten_text(t.name)
        if not isinstance(kernel, KeptKernel) or kernel.in_order or t.dtype.whole:
            raise left_unwritten(t, told, getattr(kernel, "wholes", ()))
        warnings.warn(f"{told}: they are NaN, and on a chip whatever was there", TileWarning, stacklevel=2)
    return as_given(t, run[t.name])
