"""`T.reshape` and `T.view` in a kernel that is kept: the memory of a buffer under another name, in another shape or element type.

A view has no memory of its own: it lies where its buffer does, which is planned as if all of the kernel used it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tile_eg.errors import Span, TileError
from tile_eg.frontend.expert.places import Held
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.nibbles import KEPT, whole_bytes
from tile_eg.frontend.python.values import Buffer, as_dtype, describe
from tile_eg.frontend.python.words import sizes
from tile_eg.ops.types import Level

MEANT = "T.reshape and T.view take a whole buffer in UB"


def _view(r: ExpertReader, span: Span, src: Any, shape: Any = None, dtype: Any = None) -> Buffer:
    if not isinstance(src, Buffer) or src.name not in r.held:
        raise TileError(f"{MEANT}, not {describe(src)}", span, help="T.copy the part to a buffer of its own")
    r.place(src, span, Level.UB)
    of = r.held[src.name]
    if of.slots > 1:
        raise TileError(f"{of.name} has a buffer for each stage of a pipelined loop", span, help="leave num_stages out")
    made = of.dtype if dtype is None else whole_bytes(as_dtype(dtype, span), KEPT, span)
    wanted = of.shape if shape is None else sizes(shape, "the size of a buffer", span)
    has, takes = prod(of.shape) * of.dtype.bytes, prod(wanted) * made.bytes
    if has != takes:
        what = f"{of.name} has {has} bytes, and {' x '.join(map(str, wanted))} of {made} are {takes}"
        raise TileError(what, span, help="a view has as many bytes as its buffer")
    name = r.unique(f"{src.name}_view")
    r.held[name] = Held(name, Level.UB, made, wanted, span)
    r.views[name] = r.views.get(src.name, src.name)
    if r.ends is not None:
        r.ends.shared(r, src.name)
    return Buffer(name, made, wanted, src.scope)


def _bitcast(r: ExpertReader, span: Span, src: Any, dtype: Any) -> None:
    """The buffer's own name is that of its view from here on."""
    if r.outer:
        help = 'y = T.view(x, dtype="int32") gives the same bits another name'
        raise TileError("the type of a buffer changes in a loop or branch: not supported", span, help=help)
    made = _view(r, span, src, None, dtype)
    r.local.update({name: made for name, value in r.local.items() if value == src})


def bits_of(r: ExpertReader, span: Span, value: Any) -> Any:
    """A buffer of floats as whole numbers of the same bits; anything else as it is."""
    if not isinstance(value, Buffer) or value.dtype.whole or value.dtype.bits not in (16, 32):
        return value
    return _view(r, span, value, None, f"int{value.dtype.bits}")


WORDS: dict[str, Callable[..., Any]] = {"reshape": _view, "view": _view, "vbitcast": _bitcast}
