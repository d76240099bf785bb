"""What is too much for a search: elements that are written one by one in trips that are written out, named values that mention
the ones before them so often that what they are made of doubles from trip to trip, and many statements on many planes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from math import prod
from typing import Any, TypeGuard

from tile_eg.errors import NotSearched, Span, TileError, attempted
from tile_eg.ir.index import Expr, variables
from tile_eg.ir.kernel import Alloc, Assign, For, Kernel, Stmt, assigns, statements
from tile_eg.ops.types import DType

ELEMENTS = 64
"""Elements that a loop writes one by one, each in a statement of its own: assumed. With more the search takes long."""
PARTS = 400
"""Operations and operands of a value that has a name: assumed."""
PLANES = 64
"""Statements on tiles that those on buffers of three and four dimensions become: assumed."""
BYTES = 1 << 17
"""Buffers that find room in UB beside each other, whole, as they lie in a kernel done in order: assumed, of UBs of 192 KiB on."""


def many_elements(written: Sequence[Stmt], span: Span) -> NotSearched | None:
    """Why a kernel is better done in order: trips of a loop that are written out write more than ELEMENTS single elements."""
    if _elements(written) <= ELEMENTS:
        return None
    return NotSearched(f"a loop that writes more than {ELEMENTS} elements one by one takes the search long", span)


def _elements(written: Sequence[Stmt]) -> int:
    """How many single elements are written; one that stays the same in the trips of a loop that these hold, in each of them.
    (Where the loop goes through the elements, they may become rows.)"""
    found = sum(map(_is_element, written))
    for loop in (s for s in written if isinstance(s, For)):
        again = sum(_is_element(s) and all(loop.var not in variables(at) for at in s.target.starts) for s in loop.body)
        found += _elements(loop.body) + (loop.extent - 1) * again
    return found


def _is_element(s: Stmt) -> TypeGuard[Assign]:
    return isinstance(s, Assign) and all(extent in (None, 1) for extent in s.target.extents)


def check_value(name: str, value: Any, span: Span | None) -> None:
    """NotSearched where a value is made of more than PARTS operations and operands; what stands in it twice counts twice."""
    if is_dataclass(value) and _parts(value, {}) > PARTS:
        what = f"a value like `{name}`, which is made of more than {PARTS} operations and operands, takes the search long"
        raise NotSearched(what, span, help="keep what is used more than once in a buffer")


def _parts(value: Any, known: dict[int, int]) -> int:
    """How many nodes a tree has, each counted as often as it stands there; what is shared is walked through once."""
    if id(value) not in known:
        known[id(value)] = 1 + sum(_parts(part, known) for part in _inside(value))
    return known[id(value)]


def _inside(value: Any) -> Iterator[Any]:
    inside = value if isinstance(value, tuple) else (getattr(value, f.name) for f in fields(value) if f.compare)
    return (v for v in inside if isinstance(v, tuple) or (is_dataclass(v) and not isinstance(v, (Expr, DType, Span))))


def many_planes(kernel: Kernel) -> NotSearched | None:
    """Why a kernel is better done in the order of its statements: they would become more than PLANES, each on a plane."""
    from tile_eg.frontend.ssa.planes import written_planes

    buffers = [a for a in statements(kernel.body) if isinstance(a, Alloc)]
    deep = [a for a in buffers if len(a.shape) > 2]
    fit = sum(prod(a.shape) * a.dtype.bits // 8 for a in buffers) <= BYTES
    body = attempted(lambda: written_planes(kernel)) if deep and fit else kernel.body
    if isinstance(body, TileError) or len([*assigns(body)]) <= max(PLANES, len([*assigns(kernel.body)])):
        return None
    what = f"planes of a third dimension would be more than {PLANES} statements, which take the search long"
    return NotSearched(what, deep[0].span)
