"""Values of an element loop in the element type of what they are stored to, made of what there is."""

from __future__ import annotations

from tile_eg.frontend.expert.accesses import Axes
from tile_eg.frontend.expert.reader import ExpertReader
from tile_eg.frontend.python.values import nodes
from tile_eg.frontend.ssa.composed import Composer
from tile_eg.frontend.ssa.whole_numbers import UNSIGNED
from tile_eg.ir import kernel as kn
from tile_eg.ops.types import F32, I32, U32


def in_type_of(r: ExpertReader, s: kn.Assign, axes: Axes) -> kn.TileExpr:
    """The value of an assignment; no instruction casts positions to numbers without a sign. TileError where its type is wrong."""
    typed = Composer(kn.Kernel("", tuple(r.tensors.values()), (), ()))
    typed.arrays.update({b.name: kn.Alloc(b.name, "shared", b.dtype, b.shape) for b in r.held.values()})
    typed.arrays.update({n: kn.Alloc(n, "shared", I32 if whole else F32, ()) for n, whole in r.scalars.items()})
    typed.typing.assignment(s)
    value, dtype = s.value, typed.arrays[s.target.name].dtype
    if isinstance(value, kn.Index) and dtype is U32 and axes.uses(value.value):
        value = kn.Cast(U32, value, value.span)
    made = typed.of(value)
    places = any(isinstance(n, kn.Index) and axes.uses(n.value) for n in nodes(made))
    return typed.in_type(made, dtype) if places or {typed.dtype(made), dtype} & {*UNSIGNED} else made
